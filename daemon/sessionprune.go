package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/kernel/session"
)

// PruneRequest is the request of yaya session prune.
type PruneRequest struct {
	Before   time.Time `json:"before"`
	Archived bool      `json:"archived,omitempty"` // archived sessions, instead of others
	DryRun   bool      `json:"dry_run,omitempty"`
}

// PruneAnswer names what was deleted, or would be.
type PruneAnswer struct {
	Names []string `json:"names"`
}

// Prune deletes sessions while no daemon runs.
func Prune(ctx context.Context, m *session.Manager, req PruneRequest, record Record) (done PruneAnswer, err error) {
	if req.Archived {
		done.Names, err = pruneArchives(ctx, m, req, record)
		return done, err
	}
	old, err := m.Stale(req.Before)
	if err != nil || len(old) == 0 {
		return done, err
	}
	if !req.DryRun {
		if err := record(ctx, "sessions_pruned", "sessions", map[string]any{"count": len(old), "before": control.Stamp(req.Before)}); err != nil {
			return done, err
		}
	}
	var errs []error
	for _, s := range old {
		if !req.DryRun {
			if _, err := m.Delete(s.ID, s.Workspace, nil); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		done.Names = append(done.Names, s.ID)
	}
	return done, errors.Join(errs...)
}

// pruneArchives removes archived sessions, once the audit has taken it down.
func pruneArchives(ctx context.Context, m *session.Manager, req PruneRequest, record Record) (names []string, err error) {
	all, _, err := m.Archives("", 1<<30)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.At.Before(req.Before) && !a.Needed {
			names = append(names, a.Name)
		}
	}
	if req.DryRun {
		return names, nil
	}
	if len(names) > 0 {
		if err := record(ctx, "archives_pruned", "archives", map[string]any{"count": len(names), "before": control.Stamp(req.Before)}); err != nil {
			return nil, err
		}
	}
	_, err = m.PruneArchives(req.Before)
	return names, err
}

// prune deletes sessions of the running yaya.
func prune(ctx context.Context, m *session.Manager, v1 *sessions.Service, req PruneRequest, record Record) (done PruneAnswer, err error) {
	if req.Archived {
		done.Names, err = pruneArchives(ctx, m, req, record)
		return done, err
	}
	done.Names, err = v1.Prune(ctx, req.Before, req.DryRun)
	return done, err
}
