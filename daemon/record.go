package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Note is the audit entry about something that a command has done itself.
type Note struct {
	Event   string         `json:"event"`
	Target  string         `json:"target"`
	Payload map[string]any `json:"payload"`
}

// Events of notes.
const (
	backupMade      = "backup_made"
	dataRepaired    = "data_repaired"
	sessionRepaired = "session_repaired"
)

// Record puts an entry of the user that runs yaya into the audit.
type Record func(ctx context.Context, event, target string, payload map[string]any) error

func (c *controlPlane) record(ctx context.Context, event, target string, payload map[string]any) error {
	_, err := c.log.Append(ctx, control.Change{Event: event, Actor: control.Owner, Target: Printable(target, 200), Payload: payload}, nil)
	return err
}

// withRecord runs f while no daemon runs, with the audit.
func (g *Flags) withRecord(ctx context.Context, p Paths, f func(Record) error) error {
	return g.withControlPlane(ctx, p, func(_ *place, c *controlPlane) error { return f(c.record) })
}

// ChangeSessions lets the daemon change sessions or, without one, this process, which
// records what it changes.
func (g *Flags) ChangeSessions(ctx context.Context, remote func(*Backend) error, alone func(*session.Manager, Record) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	return eitherWay(ctx, p, remote, func() error {
		return g.withRecord(ctx, p, func(r Record) error {
			return WithSessions(g, func(m *session.Manager) error { return alone(m, r) })
		})
	})
}

// note puts into the audit what a command has done, through the daemon if one runs. It
// changes no data directory that has no audit, or another format.
func (g *Flags) note(ctx context.Context, p Paths, n Note) error {
	err := eitherWay(ctx, p, func(b *Backend) error {
		return b.API(ctx, http.MethodPost, "/cli/audit", n, nil)
	}, func() error {
		if has, err := auditable(p); err != nil || !has {
			return err
		}
		return g.withRecord(ctx, p, func(r Record) error { return r(ctx, n.Event, n.Target, n.Payload) })
	})
	if err != nil {
		return fmt.Errorf("the audit has no entry about this: %w", err)
	}
	return nil
}

// auditable reports whether there is an audit that can be written without an upgrade.
func auditable(p Paths) (has bool, err error) {
	data, err := os.OpenRoot(p.Data)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if _, err := data.Lstat("control"); err != nil {
		return false, nil //nolint:nilerr // it has no audit
	}
	older, err := checkFormat(data)
	if err == nil && older {
		err = errors.New("the data directory has an older format")
	}
	return err == nil, err
}

// noteRoute takes notes of commands.
func (c *controlPlane) noteRoute(mux *http.ServeMux) {
	mux.HandleFunc("POST /cli/audit", func(w http.ResponseWriter, r *http.Request) {
		var n Note
		if err := api.Decode(r, maxRequest, &n); err != nil {
			api.Refuse(w, r, api.Detail, err)
			return
		}
		if !slices.Contains([]string{backupMade, dataRepaired, sessionRepaired}, n.Event) {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusBadRequest, "commands do not record the event %s", Printable(n.Event, 60)))
			return
		}
		if err := c.record(r.Context(), n.Event, n.Target, n.Payload); err != nil {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusServiceUnavailable, "%s", feature.Clean(err.Error(), 4096)))
			return
		}
		api.Write(w, http.StatusOK, struct{}{})
	})
}

// noteOfBackup returns the audit entry about a backup.
func noteOfBackup(b Backup) Note {
	return Note{backupMade, filepath.Base(b.File), map[string]any{"file": b.File, "files": b.Files, "bytes": b.Bytes, "encrypted": b.Encrypted}}
}
