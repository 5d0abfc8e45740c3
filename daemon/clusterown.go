package daemon

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/embedded"
	"github.com/yaya-ai/yaya/control/jetstream"
	"github.com/yaya-ai/yaya/control/nodes"
)

// Times of a cluster whose nodes keep the log themselves.
const (
	resizeEvery = time.Second
	leaveTime   = 30 * time.Second // of a server that is taken out of those that keep the log
)

// ownConfig configures the server in a node.
func ownConfig(data *os.Root, n nodes.Node, identity ed25519.PrivateKey, log zerolog.Logger) (embedded.Config, error) {
	key, err := n.Key(identity)
	return embedded.Config{Data: data, Node: n.Name, Identity: key, Route: n.Route, Routes: n.Routes, Log: log}, err
}

// connect connects a node to the servers that keep the log: to its own one, which it starts, if the
// nodes do that.
func (c *cluster) connect(ctx context.Context, data *os.Root, n nodes.Node, identity ed25519.PrivateKey, log zerolog.Logger) (err error) {
	var more []nats.Option
	if n.Route != "" {
		cfg, err := ownConfig(data, n, identity, log)
		if err != nil {
			return err
		}
		cfg.Routes, cfg.Removed = c.nodes.Routes(), c.nodes.Removed
		if c.own, err = embedded.Start(ctx, cfg); err != nil {
			return fmt.Errorf("%w (the address %s is that of --listen, in keys/%s)", err, n.Route, nodes.File)
		}
		more = c.own.Options()
	}
	c.conn, err = jetstream.Connect(n.Servers, n.Name, log, more...)
	return err
}

// first starts the server of the node that founds a cluster.
func (c *cluster) first(ctx context.Context, data *os.Root, n nodes.Node, identity ed25519.PrivateKey) error {
	cfg, err := ownConfig(data, n, identity, zerolog.Nop())
	if err != nil {
		return err
	}
	if c.own, err = embedded.StartFirst(ctx, cfg); err != nil {
		return fmt.Errorf("%w (--listen %s)", err, cfg.Route)
	}
	c.conn, err = jetstream.Connect(nodes.Servers{}, cfg.Node, cfg.Log, c.own.Options()...)
	return err
}

// disconnect ends the connection, and the server of this node, if it has one.
func (c *cluster) disconnect() error {
	if c.conn != nil {
		c.conn.Close()
	}
	if c.own == nil {
		return nil
	}
	return c.own.Close()
}

// resize has as many servers keep the log as there should be, as long as the server of this node
// leads: they become more when nodes join, and fewer when some are removed.
func (c *cluster) resize(ctx context.Context, log zerolog.Logger) {
	tick := time.NewTicker(resizeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !c.own.Leads() {
			continue
		}
		n, err := c.own.Size()
		if err == nil {
			err = c.log.Resize(ctx, embedded.Copies(n))
		}
		for _, s := range c.beside {
			if err == nil {
				err = s.Resize(ctx, embedded.Copies(n))
			}
		}
		if err != nil && ctx.Err() == nil { // a server that has just joined may not run yet
			log.Debug().Err(err).Msg("the servers that keep the log cannot be changed now")
		}
	}
}

// leave takes the server of a node out of those that keep the log. Of two servers, the other one has
// to be the only one before: neither can decide anything when one is gone.
func (c *cluster) leave(ctx context.Context, node string) error {
	if c.own == nil {
		return nil
	}
	if !c.log.State().Quorum {
		return fmt.Errorf("%w: a majority of the nodes has to run so that one can be removed, and of two nodes both", control.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if all := c.nodes.Members(); len(all) == 2 {
		i := slices.IndexFunc(all, func(m nodes.Member) bool { return m.Name != node })
		err := c.log.Alone(ctx, all[i].Name)
		for _, s := range c.beside {
			if err == nil {
				err = s.Alone(ctx, all[i].Name)
			}
		}
		if err != nil {
			return fmt.Errorf("%w: of two nodes both have to run until %s keeps the log alone: %w", control.ErrUnavailable, all[i].Name, err)
		}
	}
	if err := c.own.Drop(ctx, node); err != nil {
		return fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	return nil
}
