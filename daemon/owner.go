package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control/tapes"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/session"
)

// owner is the [session.Owner] of a node.
type owner struct {
	tapes  *tapes.Tapes
	log    zerolog.Logger
	ready  chan struct{} // closed once there is a kernel
	kernel *kernel.Kernel

	comparing sync.Mutex // held while sessions are compared with the cluster's copies
}

// openOwner begins to say that this node runs.
func openOwner(n *cluster, data *os.Root, log zerolog.Logger) (_ *owner, err error) {
	o := &owner{log: log, ready: make(chan struct{})}
	o.tapes, err = tapes.Open(n.conn, tapes.Options{
		Node: n.nodes.Name(), Data: data, Log: log,
		Copies: func(ctx context.Context) (int, error) {
			k, err := n.log.Keepers(ctx)
			return k.Copies, err
		},
		Files: func(id string) ([]tapes.File, error) {
			files, err := o.kernel.Sessions.Files(id)
			return mapped(files), err
		},
		Lost:    o.lost,
		Renewed: o.renewed,
	})
	n.tapes = o.tapes
	return o, err
}

// serve has it work for a kernel.
func (o *owner) serve(k *kernel.Kernel) {
	o.kernel = k
	close(o.ready)
}

func mapped(files []session.File) []tapes.File {
	out := make([]tapes.File, len(files))
	for i, f := range files {
		out[i] = tapes.File(f)
	}
	return out
}

// lost puts a session away that another node has taken over.
func (o *owner) lost(id, node string) {
	o.kernel.Loop.Cancel(id)
	if err := o.kernel.Sessions.GiveUp(id); err != nil {
		o.log.Error().Err(err).Str("session", id).Str("node", node).Msg("a session that another node has taken over could not be put away")
	}
}

// renewed puts away the sessions that others have taken over while this node had no lease, has those
// copied that nobody has a copy of, and goes on with those that wait.
func (o *owner) renewed(ctx context.Context) {
	select {
	case <-o.ready:
	case <-ctx.Done():
		return
	}
	o.comparing.Lock() // the lease may change again meanwhile
	defer o.comparing.Unlock()
	told := ""
	for {
		err := o.compare(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if now := err.Error(); now != told {
			told = now
			o.log.Warn().Err(err).Msg("not every session could be compared with the cluster's copy")
		}
		if !errors.Is(err, tapes.ErrUnavailable) {
			return
		}
		select { // the rest of them later
		case <-time.After(compareAgain):
		case <-ctx.Done():
		}
	}
}

// compareAgain is when sessions are compared again that could not be.
const compareAgain = 2 * time.Second

// compare does what [owner.renewed] says once. The error wraps [tapes.ErrUnavailable] if the cluster has not answered.
func (o *owner) compare(ctx context.Context) error {
	k := o.kernel
	var errs []error
	err := k.Sessions.Owned(ctx, func(id, workspace string) error {
		switch node, known := o.tapes.Owner(ctx, id); {
		case !known:
			return tapes.ErrUnavailable
		case node == "":
			err := o.tapes.Hold(ctx, id, workspace)
			if errors.Is(err, tapes.ErrUnavailable) {
				return err
			}
			if err != nil { // one of them does not hold up the others
				errs = append(errs, fmt.Errorf("session %s: %w", id, err))
			}
		case node != o.tapes.Node():
			o.lost(id, node)
		}
		return nil
	})
	if err == nil {
		err = o.comeBack(ctx)
	}
	if errors.Is(err, tapes.ErrUnavailable) {
		return err // and nothing goes on yet
	}
	if k.Loop != nil {
		errs = append(errs, k.Loop.Resume(ctx))
	}
	return errors.Join(append(errs, err)...)
}

// comeBack fetches the sessions of this node that it has lost.
func (o *owner) comeBack(ctx context.Context) error {
	rows, err := o.tapes.Rows(ctx, []string{o.tapes.Node()})
	if err != nil {
		return fmt.Errorf("%w (%w)", tapes.ErrUnavailable, err)
	}
	var errs []error
	for _, r := range rows {
		if o.kernel.Sessions.Known(r.Session) {
			continue
		}
		if _, err := o.kernel.Sessions.Adopt(ctx, r.Session); err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrElsewhere) {
			errs = append(errs, fmt.Errorf("session %s: %w", r.Session, err))
		}
	}
	return errors.Join(errs...)
}

// named gives errors the meaning that they have for sessions.
func named(err error) error {
	if e, is := errors.AsType[*tapes.ElsewhereError](err); is {
		return worded.Error(session.ErrElsewhere, "%v", e)
	}
	switch {
	case errors.Is(err, tapes.ErrBehind):
		return worded.Error(session.ErrBehind, "%v", err)
	case errors.Is(err, tapes.ErrUnavailable):
		return worded.Error(session.ErrUnavailable, "%v", err)
	case errors.Is(err, tapes.ErrUnknown):
		return worded.Error(session.ErrNotFound, "%v", err)
	}
	return err
}

// Hold implements [session.Owner].
func (o *owner) Hold(ctx context.Context, id, workspace string) error {
	return named(o.tapes.Hold(ctx, id, workspace))
}

// Elsewhere implements [session.Owner].
func (o *owner) Elsewhere(ctx context.Context, id string) string {
	node, _ := o.tapes.Owner(ctx, id)
	if node == o.tapes.Node() {
		return ""
	}
	return node
}

// Grew implements [session.Owner].
func (o *owner) Grew(id string, f session.File) {
	o.tapes.Grew(id, tapes.File(f))
}

// Kept implements [session.Owner].
func (o *owner) Kept(ctx context.Context, id string, f session.File) error {
	return named(o.tapes.Kept(ctx, id, tapes.File(f)))
}

// Copied implements [session.Owner].
func (o *owner) Copied(ctx context.Context, id string, files []session.File) (bool, error) {
	return o.tapes.Copied(ctx, id, mapped(files))
}

// Gone implements [session.Owner].
func (o *owner) Gone(ctx context.Context, id string) error {
	return o.tapes.Gone(ctx, id)
}

// Takeover implements [session.Owner].
func (o *owner) Takeover(ctx context.Context, id string, may func(string) error) (string, error) {
	dir, err := o.tapes.Takeover(ctx, id, may)
	return dir, named(err)
}

// Fetch implements [session.Owner].
func (o *owner) Fetch(ctx context.Context, id string) (string, error) {
	dir, err := o.tapes.Fetch(ctx, id)
	return dir, named(err)
}

// Describe implements [session.Owner].
func (o *owner) Describe(id string, data json.RawMessage) { o.tapes.Describe(id, data) }

// Away implements [session.Owner].
func (o *owner) Away(ctx context.Context, nodes []string) ([]session.Away, error) {
	rows, err := o.tapes.Rows(ctx, nodes)
	out := make([]session.Away, len(rows))
	for i, r := range rows {
		out[i] = session.Away{ID: r.Session, Node: r.Node, Workspace: r.Workspace, Data: r.Data, Said: r.At}
	}
	return out, err
}
