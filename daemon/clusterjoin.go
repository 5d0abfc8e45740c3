package daemon

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/embedded"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/keyfile"
)

// joinTime is how long a node waits for the one that it asks.
const joinTime = 30 * time.Second

// Founding says how to found a cluster.
type Founding struct {
	Node     nodes.Node
	Replicas int // servers that keep the log; 0: three if there are so many, else one
}

// FoundCluster makes this yaya the first node of a cluster, which begins with its log. No daemon
// may run. It can be repeated after a failure. It returns how many servers keep the log.
func (g *Flags) FoundCluster(ctx context.Context, f Founding) (replicas int, err error) {
	p, err := g.Paths()
	if err != nil {
		return 0, err
	}
	c := new(cluster)
	defer func() { err = errors.Join(err, c.disconnect()) }()
	if replicas = 1; f.Node.Route == "" {
		if c.conn, err = jetstream.Connect(f.Node.Servers, f.Node.Name, zerolog.Nop()); err != nil {
			return 0, err
		}
		if err := reached(ctx, c.conn, f.Node.Servers.URL); err != nil {
			return 0, err
		}
		if replicas = f.Replicas; replicas == 0 {
			if replicas = 1; len(c.conn.Servers()) >= 3 {
				replicas = 3
			}
		}
	}
	err = g.withControlPlane(ctx, p, func(at *place, plane *controlPlane) error {
		if plane.cluster != nil {
			return fmt.Errorf("this yaya is the node %s of a cluster already", plane.cluster.nodes.Name())
		}
		if f.Node.Route != "" {
			if err := c.first(ctx, at.data, f.Node, plane.devices.Identity()); err != nil {
				return err
			}
		}
		f.Node.Kernel = plane.kernel // its agents stay its own
		_, err := plane.log.Append(ctx, nodes.Founded(f.Node), nil)
		return err
	})
	if err != nil {
		return 0, err
	}
	return replicas, g.holdingData(func(_ Paths, data *os.Root) (err error) {
		keys, err := data.OpenRoot("keys")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, keys.Close()) }()
		own, err := local.Open(journal.Root(data), local.Options{Replica: true})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, own.Close()) }()
		if err := jetstream.Found(ctx, c.conn, jetstream.Options{Node: f.Node.Name, Replicas: replicas}, own); err != nil {
			return err
		}
		return f.Node.Write(keys)
	})
}

// reached waits until a server is there.
func reached(ctx context.Context, conn *nats.Conn, url string) error {
	ctx, cancel := context.WithTimeout(ctx, joinTime/3)
	defer cancel()
	for conn.Status() != nats.CONNECTED {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("no NATS server answers at %s: %w", url, errors.Join(conn.LastError(), ctx.Err()))
		}
	}
	return nil
}

// Joined says what has become of a yaya that was alone before.
type Joined struct {
	Node  string
	Aside string // folder of what it had alone, "" for nothing
}

// Joining says how to join a cluster.
type Joining struct {
	Name  string
	Route string // where the others reach the server in this node, if the nodes keep the log
	Again bool   // it may be a node already, of this cluster before it was founded again, for example
}

// JoinCluster makes this yaya a node. No daemon may run. Its own log and keys are moved aside:
// its devices and tokens are no longer valid. agreed is asked before that, with how many there
// are.
func (g *Flags) JoinCluster(ctx context.Context, i nodes.Invitation, j Joining, agreed func(devices int) error) (out Joined, err error) {
	p, err := g.Paths()
	if err != nil {
		return out, err
	}
	_, err = os.Stat(filepath.Join(p.Data, filepath.Dir(filepath.FromSlash(local.File)))) //nolint:forbidigo // whether it is there
	fresh := errors.Is(err, fs.ErrNotExist)
	known := 0
	if j.Again {
		err = g.heldByNobody()
	} else if err = g.withControlPlane(ctx, p, func(_ *place, c *controlPlane) error {
		if c.cluster != nil {
			return fmt.Errorf("this yaya is the node %s of a cluster already: --again has it leave that one", c.cluster.nodes.Name())
		}
		known = c.devices.Enrolled()
		return nil
	}); errors.Is(err, nodes.ErrRemoved) { // a node that was removed can join again
		err = nil
	}
	if err != nil {
		return out, err
	}
	if err := agreed(known); err != nil {
		return out, err
	}
	asking, err := nodes.Ask(i, j.Name, j.Route)
	if err != nil {
		return out, err
	}
	answer, err := askToJoin(ctx, i.URL, asking.Request)
	if err != nil {
		return out, err
	}
	w, err := asking.Welcome(answer)
	if err != nil {
		return out, err
	}
	out.Node = j.Name
	return out, g.holdingData(func(_ Paths, data *os.Root) error {
		aside := "alone-" + time.Now().UTC().Format("20060102T150405Z")
		if err := becomeNode(data, aside, w); err != nil {
			return err
		}
		if fresh { // it has never run
			return data.RemoveAll(aside)
		}
		out.Aside = aside
		return nil
	})
}

// heldByNobody returns an error if a daemon runs.
func (g *Flags) heldByNobody() error {
	return g.holdingData(func(Paths, *os.Root) error { return nil })
}

// becomeNode moves the log and the keys of a yaya that was alone aside, and makes it a node.
func becomeNode(data *os.Root, aside string, w nodes.Welcome) (err error) {
	if err := data.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	for _, name := range []string{path.Dir(local.File), "keys", embedded.Folder} {
		if err := data.Rename(name, path.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := data.MkdirAll("keys", 0o700); err != nil {
		return err
	}
	keys, err := data.OpenRoot("keys")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keys.Close()) }()
	if _, err := local.Prepare(journal.Root(data), journal.Root(keys)); err != nil {
		return err
	}
	key, err := keyfile.Marshal(ed25519.NewKeyFromSeed(w.Identity))
	if err != nil {
		return err
	}
	if _, err := atomicfile.Write(keys, auth.ServerKeyFile, key); err != nil {
		return err
	}
	return w.Node.Write(keys)
}

// askToJoin sends a request to join.
func askToJoin(ctx context.Context, base string, request []byte) ([]byte, error) {
	raw, err := json.Marshal(gateway.JoinBody{Sealed: request})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	at := strings.TrimSuffix(base, "/") + gateway.JoinPath
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // both messages are sealed, so no certificate has to vouch for the other side
	defer t.CloseIdleConnections()
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("the node that has made the invitation cannot be reached: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := refusalText(resp)
		return nil, fmt.Errorf("the cluster refuses: %s", Printable(text, 300))
	}
	var out gateway.JoinBody
	if err := json.NewDecoder(io.LimitReader(resp.Body, 2*nodes.MaxJoin)).Decode(&out); err != nil {
		return nil, errors.New("what answers there is not a node of a cluster")
	}
	return out.Sealed, nil
}
