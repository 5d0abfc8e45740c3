package daemon

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/embedded"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/keyfile"
)

// FoundAgain makes this node the first one of another incarnation of its cluster, from its copy of the
// log: for when the servers that kept the log are gone for good. Nodes of the earlier incarnation cannot
// connect to it. No daemon may run. agreed is asked before anything changes, with the other nodes, which
// are removed. route is the node's address for others, "" for the one that it has. It can be repeated
// after a failure.
func (g *Flags) FoundAgain(ctx context.Context, route string, agreed func(others []string) error) (n nodes.Node, err error) {
	return n, g.asNode(func(data, keys *os.Root, node nodes.Node) (err error) {
		n = node
		n.Route, n.Routes, n.Incarnation = cmp.Or(route, n.Route), nil, rand.Text()
		identity, err := keyfile.Read(keys, auth.ServerKeyFile)
		if err != nil {
			return err
		}
		key, ok := identity.(ed25519.PrivateKey)
		if !ok {
			return fmt.Errorf("keys/%s is not an Ed25519 key: restore it from a backup", auth.ServerKeyFile)
		}
		members := nodes.New(nodes.Config{Node: n, Identity: key})
		own, err := local.Open(journal.Root(data), local.Options{Replica: true, Projections: []control.Projection{members}})
		if err != nil {
			return DamagedAt(data, err)
		}
		defer func() { err = errors.Join(err, own.Close()) }()
		if len(members.Members()) == 0 {
			return errors.New("this node has no copy of the log: restore a backup of a node first (yaya restore)")
		}
		if err := agreed(members.Others()); err != nil {
			return err
		}
		if err := setServerAside(data); err != nil {
			return err
		}
		if err := putAll(own, nodes.FoundedAgain(n, members.Members())); err != nil {
			return err
		}
		if err := own.Sync(ctx); err != nil {
			return err
		}
		c := new(cluster)
		defer func() { err = errors.Join(err, c.disconnect()) }()
		if err := c.first(ctx, data, n, key); err != nil {
			return err
		}
		if err := jetstream.Found(ctx, c.conn, jetstream.Options{Node: n.Name, Replicas: 1}, own); err != nil {
			return err
		}
		return n.Write(keys)
	})
}

// MoveNode changes the address at which other nodes reach this one, which tells them when it starts. No
// daemon may run.
func (g *Flags) MoveNode(route string) (n nodes.Node, err error) {
	return n, g.asNode(func(_, keys *os.Root, node nodes.Node) error {
		n = node
		n.Route = route
		return n.Write(keys)
	})
}

// asNode runs f for a node that keeps the log itself, while no daemon runs.
func (g *Flags) asNode(f func(data, keys *os.Root, n nodes.Node) error) error {
	return g.holdingData(func(_ Paths, data *os.Root) error {
		node, err := nodeIn(data)
		switch {
		case err != nil:
			return err
		case node == nil:
			return errors.New("this yaya is not a node of a cluster: yaya cluster init --listen HOST:PORT makes it the first one")
		case node.Route == "":
			return errors.New("NATS servers keep the log of this cluster, not its nodes: restore the stream there (nats stream restore)")
		}
		keys, err := data.OpenRoot("keys")
		if err != nil {
			return err
		}
		return errors.Join(f(data, keys, *node), keys.Close())
	})
}

// setServerAside moves the folder of the node's server away, which belongs to the earlier incarnation.
func setServerAside(data *os.Root) error {
	if _, err := data.Lstat(embedded.Folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside := "former-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := data.Mkdir(aside, 0o700); err != nil {
		return err
	}
	return data.Rename(embedded.Folder, path.Join(aside, embedded.Folder))
}

// putAll adds changes to a copy of the log.
func putAll(to *local.Log, changes []control.Change) error {
	s := to.State()
	for i, c := range changes {
		payload, err := c.Marshal()
		if err != nil {
			return err
		}
		e := control.Entry{Index: s.Last + 1 + int64(i), Term: s.Term + 1, Time: time.Now().UTC(), Event: c.Event, Actor: c.Actor, Target: c.Target, Payload: payload}
		if err := to.Put(e); err != nil {
			return err
		}
	}
	return nil
}
