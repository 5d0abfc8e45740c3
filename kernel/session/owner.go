package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// ErrElsewhere means that another node of a cluster owns a session.
var ErrElsewhere = errors.New("the session is on another node")

// ErrUnavailable means that nobody knows whether this node owns a session, because the cluster does not answer.
var ErrUnavailable = errors.New("the cluster cannot be reached, and sessions pause until it can")

// ErrBehind means that the cluster has more of a session than this node.
var ErrBehind = errors.New("the cluster has more of the session than this node")

// Away is a session of a node that does not answer.
type Away struct {
	ID, Node, Workspace string
	Data                json.RawMessage // see [Owner]; nil if nothing was said
	Said                time.Time
}

// Owner decides which node of a cluster may write to a session, and copies what it writes. A session
// goes with its sub-agents, whose files are its own. All methods are safe for concurrent use.
type Owner interface {
	Claims
	Copies
}

// Claims are the part of an [Owner] that decides who may write.
type Claims interface {
	// Hold returns nil while this node may act for a session; it claims one that no node has. The error
	// wraps [ErrElsewhere] if another node owns it, [ErrBehind] if this node lacks entries, and
	// [ErrUnavailable] if nobody can say so.
	Hold(ctx context.Context, id, workspace string) error
	// Elsewhere returns the node that owns a session, "" for this one, for none, and if nobody knows.
	Elsewhere(ctx context.Context, id string) (node string)
	// Takeover claims the session of a node that is dead, and makes its files in a folder below the data
	// directory. It first asks whether this node can work in the session's folder. The error wraps
	// [ErrNotFound] if no node has the session, and [ErrElsewhere] while its node runs.
	Takeover(ctx context.Context, id string, may func(workspace string) error) (dir string, err error)
	// Fetch makes the files of a session in such a folder without claiming it.
	Fetch(ctx context.Context, id string) (dir string, err error)
	// Gone says that a session was deleted.
	Gone(ctx context.Context, id string) error
}

// Copies are the part of an [Owner] that copies files.
type Copies interface {
	// Grew has what is new of a file copied. It does not wait.
	Grew(id string, f File)
	// Kept returns nil once a file is copied up to a size.
	Kept(ctx context.Context, id string, f File) error
	// Copied reports whether all of a session's files is copied.
	Copied(ctx context.Context, id string, files []File) (bool, error)
	// Describe says what a session is, for lists while its node is dead. It does not wait.
	Describe(id string, data json.RawMessage)
	// Away returns what dead nodes have said of their sessions.
	Away(ctx context.Context, nodes []string) ([]Away, error)
}

// acts reports whether a kind of event does something that must not happen on two nodes.
func acts(kind string) bool {
	switch kind {
	case event.UserMessageReceived.Name(), event.TurnWasStarted.Name(), event.LLMCallRequest.Name(), event.ToolCallRequest.Name():
		return true
	}
	return false
}

// hold returns nil while this node may act for a session. One that another node has taken over is put away.
func (m *Manager) hold(id, workspace string) error {
	if m.cfg.Owner == nil {
		return nil
	}
	err := m.cfg.Owner.Hold(context.Background(), event.Root(id), workspace)
	switch {
	case errors.Is(err, ErrElsewhere):
		return errors.Join(err, m.GiveUp(event.Root(id)))
	case errors.Is(err, ErrBehind):
		if _, err := m.giveUp(event.Root(id), true); err != nil {
			return err
		}
		if _, err := m.Adopt(context.Background(), event.Root(id)); err != nil {
			return err
		}
		return fmt.Errorf("session %s: %w, and this node has fetched it: try again", id, err)
	}
	return err
}

// stays reports whether a session that this node has is still its own, as far as anybody knows. One that is
// not is put away.
func (m *Manager) stays(id string) (bool, error) {
	if m.Elsewhere(context.Background(), id) == "" {
		return true, nil
	}
	away, err := m.giveUp(event.Root(id), false)
	return !away, err
}

// forgotten says in the cluster that a session is gone, or that a sub-agent of one is.
func (m *Manager) forgotten(id string) error {
	if m.cfg.Owner == nil || event.Root(id) != id {
		return nil // the files of its session follow again when one of them is missed
	}
	return m.cfg.Owner.Gone(context.Background(), id)
}

// end has others remove what they keep of a session that is gone. The log has what they could not remove,
// since nobody can delete or archive the session again. They keep nothing of a sub-agent.
func (m *Manager) end(id string) {
	if event.Root(id) != id {
		return
	}
	if err := m.ended(id); err != nil {
		m.cfg.Log.Warn().Err(err).Str("session", id).Msg("what others keep of a session that is gone is still there")
	}
}

// Away returns the sessions of other nodes that do not answer, as far as they were copied.
func (m *Manager) Away(ctx context.Context, nodes []string) ([]Away, error) {
	if m.cfg.Owner == nil || len(nodes) == 0 {
		return nil, nil
	}
	return m.cfg.Owner.Away(ctx, nodes)
}

// Known reports whether this node has a session, as far as it knows without looking at its tape.
func (m *Manager) Known(id string) bool { return m.ensure() == nil && len(m.index.sameID(id)) > 0 }

// Owned visits the sessions of this node of which others may have copies, without those of sub-agents.
func (m *Manager) Owned(ctx context.Context, visit func(id, workspace string) error) error {
	if err := m.ensure(); err != nil {
		return err
	}
	for _, r := range m.index.find(func(r *row) bool { return event.Root(r.id) == r.id }) {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, _, err := m.header(tapeFile(r.key.tape()))
		if err != nil { // damaged, or gone
			continue
		}
		if err := visit(r.id, h.Workspace); err != nil {
			return err
		}
	}
	return nil
}

// Elsewhere returns the node of a cluster that owns a session, "" if it is this one, none, or unknown.
func (m *Manager) Elsewhere(ctx context.Context, id string) string {
	if m.cfg.Owner == nil {
		return ""
	}
	return m.cfg.Owner.Elsewhere(ctx, event.Root(id))
}
