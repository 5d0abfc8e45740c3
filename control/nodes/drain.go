package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// ErrDrained is the error about the last node that takes clients.
var ErrDrained = errors.New("no other node takes new clients")

// drained is the payload of [evDrained].
type drained struct {
	Over bool `json:"over,omitempty"` // it takes clients again
}

func (d drained) since(t time.Time) time.Time {
	if d.Over {
		return time.Time{}
	}
	return t
}

// Drain has a node take no new clients, until it starts again, or until Drain is called with over. One
// node takes them at least.
func (n *Nodes) Drain(ctx context.Context, actor, node string, over bool) error {
	_, err := n.log.Append(ctx, control.Change{Event: evDrained, Actor: actor, Target: node, Payload: drained{over}}, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.members[node] == nil {
			return ErrUnknown
		}
		for _, m := range n.members {
			if over || m.Name != node && m.Drained.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("%w than %s: have another one take them first (yaya cluster drain --end NODE)", ErrDrained, node)
	})
	return err
}

// Drained reports whether this node takes no new clients. A process that has not started as the node
// yet is not the one that was drained.
func (n *Nodes) Drained() bool { return n.drained.Load() }

// note notes whether this node is drained; mu is held.
func (n *Nodes) note() {
	m := n.members[n.cfg.Node.Name]
	n.drained.Store(n.running && m != nil && !m.Drained.IsZero())
}
