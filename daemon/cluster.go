package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/embedded"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/control/tunnel"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/forward"
)

// cluster holds all that a node shares with others: the log, and the connection to the servers
// that keep it.
type cluster struct {
	nodes *nodes.Nodes
	own   *embedded.Server // nil if NATS servers of the team keep the log
	conn  *nats.Conn
	log   *jetstream.Log
	tapes *tapes.Tapes // of the sessions of agents; nil until there is a kernel
	// beside are the streams that are kept beside the log, by as many servers.
	beside []*jetstream.Stream
	news   *jetstream.Fanout
	// way leads to the other nodes, and forward passes requests on along it.
	way     *tunnel.Tunnel
	forward *forward.Forwarder
	ends    undo

	looking  sync.Mutex // held while other nodes are asked, see nobodyBetter
	looked   time.Time
	noBetter bool
}

// checkEvery is how often a node looks whether it is cut off from the others.
const checkEvery = 500 * time.Millisecond

// openCluster connects a node, whose copy of the log is open.
func (c *controlPlane) openCluster(ctx context.Context, data *os.Root, n nodes.Node, log zerolog.Logger) error {
	cl := c.cluster
	if err := cl.nodes.Check(); err != nil { // the others would refuse it
		return err
	}
	if err := cl.connect(ctx, data, n, c.devices.Identity(), log); err != nil {
		return err
	}
	var err error
	if cl.log, err = jetstream.Open(ctx, cl.conn, jetstream.Options{Node: n.Name, Copy: c.files, Log: log}); err != nil {
		return err
	}
	for _, name := range tapes.Streams() {
		s, err := jetstream.NewStream(cl.conn, name)
		if err != nil {
			return err
		}
		cl.beside = append(cl.beside, s)
	}
	if cl.news, err = jetstream.NewFanout(cl.conn, "yaya_news", log); err != nil {
		return err
	}
	if cl.way, err = tunnel.New(cl.conn, "yaya_tunnel", n.Name); err != nil {
		return err
	}
	cl.forward, err = forward.New(cl.nodes, cl.way, log)
	return err
}

// serve serves the requests that other nodes pass on, until the returned function is called.
func (c *cluster) serve(ctx context.Context, devices *auth.Authority, h http.Handler, log zerolog.Logger) (stop func()) {
	l := c.way.Listen()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var job sync.WaitGroup
	job.Go(func() {
		if err := c.forward.Serve(ctx, l, devices, h); err != nil {
			log.Error().Err(err).Msg("this node no longer serves what others pass on")
		}
	})
	return func() { cancel(); job.Wait() }
}

// changesTopic is where nodes tell each other which of their parts have changed that all of them show.
const changesTopic = "dashboard"

// tellChanges tells the other nodes which parts of this one have changed.
func (c *cluster) tellChanges(parts []string) { c.news.Publish(changesTopic, "changed", parts) }

// hearChanges has changed called with the parts of other nodes that have changed, until the returned
// function is called.
func (c *cluster) hearChanges(changed func(parts ...string)) (end func()) {
	return c.news.Subscribe(func(topic, _ string, payload any) {
		raw, foreign := payload.(json.RawMessage) // this node's own news are a []string
		var parts []string
		if topic != changesTopic || !foreign || json.Unmarshal(raw, &parts) != nil {
			return
		}
		changed(slices.DeleteFunc(parts, func(p string) bool { return p != admin.PartApprovals && p != admin.PartSessions })...)
	})
}

// answers reports whether somebody sees the inbox on another node, and may answer.
func (c *cluster) answers() bool {
	return c.forward.Locate(context.Background(), admin.NodeAudience) != ""
}

// between carries news to other nodes, nil if this yaya is alone.
func (c *controlPlane) between() control.Fanout {
	if c.cluster == nil {
		return nil
	}
	return c.cluster.news
}

// Close ends the log, the connection, and then the server of this node.
func (c *cluster) Close() error {
	c.ends.all()
	var err error
	if c.tapes != nil {
		err = c.tapes.Close()
	}
	if c.log != nil {
		err = errors.Join(err, c.log.Close())
	}
	if c.forward != nil {
		c.forward.Close()
	}
	if c.way != nil {
		err = errors.Join(err, c.way.Close())
	}
	if c.news != nil {
		err = errors.Join(err, c.news.Close())
	}
	return errors.Join(err, c.disconnect())
}

// start says that this process is the node, and ends what devices do when it is cut off. While
// nothing can be written it says so later.
func (c *cluster) start(ctx context.Context, devices *auth.Authority, log zerolog.Logger) error {
	err := c.nodes.Start(ctx, c.log)
	announced := err == nil
	if err != nil && !errors.Is(err, control.ErrUnavailable) {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var job sync.WaitGroup
	job.Go(func() {
		tick := time.NewTicker(checkEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if c.log.State().Behind > auth.MaxBehind {
				devices.Recheck()
				continue
			}
			if announced {
				continue
			}
			err := c.nodes.Start(ctx, c.log)
			if announced = err == nil; err != nil && !errors.Is(err, control.ErrUnavailable) && ctx.Err() == nil {
				c.nodes.Lose(err)
				return
			}
		}
	})
	if c.own != nil {
		job.Go(func() { c.resize(ctx, log) })
	}
	c.ends.add(func() { stop(); job.Wait() })
	return nil
}

// cluster returns all that this node shares with others, nil if this yaya is alone.
func (st *stores) cluster() *cluster {
	if st.controlPlane == nil {
		return nil
	}
	return st.controlPlane.cluster
}

// members are the nodes of the cluster, nil if this yaya is alone.
func (c *controlPlane) members() *nodes.Nodes {
	if c.cluster == nil {
		return nil
	}
	return c.cluster.nodes
}

// kernelID is the id of a yaya's kernel, which no other has.
func kernelID(serverID string, n *nodes.Node) string {
	switch {
	case n == nil:
	case n.Kernel != "":
		return n.Kernel
	default: // the nodes of a cluster have one identity
		sum := sha256.Sum256([]byte(serverID + "\n" + n.Name))
		serverID = hex.EncodeToString(sum[:])
	}
	return "k_" + serverID[:16]
}
