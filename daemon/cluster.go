package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/control/tunnel"
	"github.com/yaya-ai/yaya/gateway/forward"
	"github.com/yaya-ai/yaya/gateway/sessions"
)

// cluster holds all that a node shares with others: the log, and the connection to the servers
// that keep it.
type cluster struct {
	nodes *nodes.Nodes
	conn  *nats.Conn
	log   *jetstream.Log
	news  *jetstream.Fanout
	// way leads to the other nodes, and forward passes requests on along it.
	way     *tunnel.Tunnel
	forward *forward.Forwarder
	ends    undo
}

// checkEvery is how often a node looks whether it is cut off from the others.
const checkEvery = 500 * time.Millisecond

// openCluster connects a node, whose copy of the log is open.
func openCluster(ctx context.Context, n nodes.Node, members *nodes.Nodes, own jetstream.Copy, log zerolog.Logger) (_ *cluster, err error) {
	c := &cluster{nodes: members}
	if c.conn, err = jetstream.Connect(n.Servers, n.Name, log); err != nil {
		return nil, err
	}
	if c.log, err = jetstream.Open(ctx, c.conn, jetstream.Options{Node: n.Name, Copy: own, Log: log}); err != nil {
		c.conn.Close()
		return nil, err
	}
	if c.news, err = jetstream.NewFanout(c.conn, "yaya_news", log); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.way = tunnel.New(c.conn, "yaya_tunnel", n.Name)
	if c.forward, err = forward.New(members, c.way, log); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// serve serves the requests that other nodes pass on, until the returned function is called.
func (c *cluster) serve(ctx context.Context, devices *auth.Authority, h http.Handler, log zerolog.Logger) (stop func(), err error) {
	l, err := c.way.Listen()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var job sync.WaitGroup
	job.Go(func() {
		if err := c.forward.Serve(ctx, l, devices, h); err != nil {
			log.Error().Err(err).Msg("this node no longer serves what others pass on")
		}
	})
	return func() { cancel(); job.Wait() }, nil
}

// taken returns an error if another node that answers has a session.
func (c *cluster) taken(session string) error {
	if node := c.forward.Locate(context.Background(), sessions.NodePath+"/"+url.PathEscape(session)); node != "" {
		return fmt.Errorf("the session %s is on the node %s: use it there, on the page or over /v1", session, node)
	}
	return nil
}

// between carries news to other nodes, nil if this yaya is alone.
func (c *controlPlane) between() control.Fanout {
	if c.cluster == nil {
		return nil
	}
	return c.cluster.news
}

// Close ends the log and the connection.
func (c *cluster) Close() error {
	c.ends.all()
	err := c.log.Close()
	if c.forward != nil {
		c.forward.Close()
	}
	if c.way != nil {
		err = errors.Join(err, c.way.Close())
	}
	if c.news != nil {
		err = errors.Join(err, c.news.Close())
	}
	c.conn.Close()
	return err
}

// start says that this process is the node, and ends what devices do when it is cut off. While
// nothing can be written it says so later.
func (c *cluster) start(ctx context.Context, devices *auth.Authority) error {
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
