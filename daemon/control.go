package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// controlPlane is the phase of the control log, with what follows from it: the devices, and
// the plane of kernels and agents.
type controlPlane struct {
	log     *auditLog
	devices *auth.Authority
	plane   *plane.Plane
	reads   *admin.Reads
	kernel  string // id of this kernel
	keys    *os.Root
	files   *local.Log
	cluster *cluster   // nil if this yaya is alone
	lost    chan error // why this yaya is no longer a node
}

// openControlPlane opens the control plane of a place that is locked.
func openControlPlane(ctx context.Context, at *place) (_ *controlPlane, err error) {
	defer func() { err = withRemedy(at.data, err) }()
	data, log := at.data, at.log
	if err := data.MkdirAll("keys", 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	keys, err := data.OpenRoot("keys")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	c := &controlPlane{keys: keys, reads: new(admin.Reads), lost: make(chan error, 1)}
	node, err := nodes.Read(keys)
	if err != nil {
		return nil, errors.Join(err, keys.Close())
	}
	who := auth.AuthorityConfig{Keys: keys, Known: true, Conceal: at.secrets.ConcealString}
	if node == nil {
		who.Known, err = local.Prepare(journal.Root(data), journal.Root(keys))
	} else {
		who.Node, err = node.Name, local.PrepareReplica(journal.Root(data))
	}
	if err != nil {
		return nil, errors.Join(err, keys.Close())
	}
	if c.devices, err = auth.NewAuthority(who); err != nil {
		return nil, errors.Join(err, keys.Close())
	}
	c.kernel = kernelID(c.devices.ServerID(), node)
	epoch := c.devices.ServerID()
	if node != nil {
		epoch += "." + node.Name // nodes number the updates of agents by themselves
	}
	c.plane = plane.New(plane.Config{KernelID: c.kernel, Epoch: epoch, Log: log})
	o := local.Options{Node: c.kernel, Projections: []control.Projection{c.devices, c.plane, c.reads}, Log: log}
	if node == nil {
		o.Seal = &local.SealOptions{Keys: keys}
	} else {
		c.cluster = new(cluster)
		c.cluster.nodes = nodes.New(nodes.Config{Node: *node, Kernel: c.kernel, Identity: c.devices.Identity(), Lost: func(err error) { c.lost <- err }, Leave: c.cluster.leave})
		o.Replica, o.Projections = true, append(o.Projections, c.cluster.nodes)
	}
	if c.files, err = local.Open(journal.Timed(journal.Root(data), at.metrics.Synced("control")), o); err != nil {
		return nil, errors.Join(DamagedAt(data, err), keys.Close())
	}
	var changes control.Log = c.files
	if node != nil {
		if err = c.openCluster(ctx, data, *node, log); err != nil {
			return nil, errors.Join(err, c.Close(ctx))
		}
		changes = c.cluster.log
	}
	c.log = &auditLog{changes, c.files, at.secrets}
	if err := c.devices.Start(changes); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	if err := c.tellNow(data); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	if err := c.devices.ClockBehind(); err != nil {
		log.Warn().Err(err).Msg("tokens are dated by the audit, not by this machine's clock")
	}
	restoreUses(data, c.devices, log)
	return c, nil
}

// auditLog is the control log for entries that nothing but the audit depends on: declared
// secrets are masked in their targets and payloads.
type auditLog struct {
	control.Log
	files   *local.Log // of this node
	secrets *masked.Secrets
}

// Block returns the file of the log that an entry is in, false for none: queries use it.
func (l *auditLog) Block(index int64) (control.Block, bool) { return l.files.Block(index) }

// Append implements [control.Log].
func (l *auditLog) Append(ctx context.Context, c control.Change, check func() error) (control.Entry, error) {
	if c.Target = l.secrets.ConcealString(c.Target); l.secrets.Declared() {
		raw, err := c.Marshal()
		if err != nil {
			return control.Entry{}, err
		}
		c.Payload = json.RawMessage(l.secrets.ConcealJSON(raw))
	}
	return l.Log.Append(ctx, c, check)
}

// Close closes the log.
func (c *controlPlane) Close(context.Context) error {
	var err error
	if c.cluster != nil {
		err = c.cluster.Close()
	}
	return errors.Join(err, c.files.Close(), c.keys.Close())
}

// decided puts the answer to an ask into the audit: who has let what run, and in which
// sandbox.
func (c *controlPlane) decided(req approval.Request, d approval.Decision) error {
	payload := map[string]any{"session_id": req.SessionID, "tool": req.ToolName, "digest": req.Digest, "response": d.Response}
	if req.Sandbox != "" {
		payload["sandbox"] = req.Sandbox
	}
	if len(req.Weaker) > 0 {
		payload["weaker"] = req.Weaker
	}
	_, err := c.log.Append(context.Background(), control.Change{
		Event: "approval_answered", Actor: Printable(cmp.Or(d.By, "unknown"), 100), Target: d.ID, Payload: payload,
	}, nil)
	return err
}

// sealed puts into the audit that secrets of an earlier yaya lie in the sealed file now.
func (c *controlPlane) sealed(n int) error {
	_, err := c.log.Append(context.Background(), control.Change{
		Event: "secrets_sealed", Actor: c.kernel, Target: secrets.File, Payload: map[string]any{"count": n},
	}, nil)
	return err
}

// trusted puts into the audit which folders somebody trusts, and no longer trusts.
func (c *controlPlane) trusted(event, by string, r folder.Record) error {
	_, err := c.log.Append(context.Background(), control.Change{
		Event: event, Actor: Printable(cmp.Or(by, "unknown"), 100), Target: clipPath(r.Folder),
		Payload: map[string]any{"folder": r.Folder, "digest": r.Digest, "items": len(r.Items)},
	}, nil)
	return err
}

// clipPath makes a path fit the target of an audit entry, whose payload has all of it.
func clipPath(p string) string {
	if len(p) > 200 {
		return "…" + p[len(p)-190:]
	}
	return p
}

// watch puts into the audit that tools of servers have been quarantined: once for
// each set of them.
func (c *controlPlane) watch(b *bus.Bus) error {
	var last sync.Map // server → what was recorded of it
	_, err := bus.On(b, bus.SubscribeOptions{Name: "audit"}, mcpbridge.Quarantined, func(ctx context.Context, _ event.Event, q mcpbridge.ToolsQuarantined) error {
		if len(q.Tools) == 0 { // the approved definitions stay in use
			last.Delete(q.Server)
			return nil
		}
		now := strings.Join(slices.Sorted(maps.Keys(q.Tools)), " ")
		if was, known := last.Load(q.Server); known && was == now {
			return nil
		}
		names := slices.Sorted(maps.Keys(q.Tools))
		_, err := c.log.Append(ctx, control.Change{
			Event: "tools_quarantined", Actor: c.kernel, Target: Printable(q.Server, 100),
			Payload: map[string]any{"count": len(names), "tools": names[:min(len(names), 100)]},
		}, nil)
		if err == nil {
			last.Store(q.Server, now)
		}
		return err
	})
	return err
}

// WithControl runs f with the API of the daemon, or with one of this process's own
// if none runs.
func WithControl(ctx context.Context, g *Flags, f func(*Backend) error) error {
	return controlled(ctx, g, nil, f)
}

// WithServers is [WithControl] with the configuration of the servers, and the secrets. Without a
// daemon no server is started.
func WithServers(ctx context.Context, g *Flags, f func(*Backend) error) error {
	return controlled(ctx, g, serversAlone, f)
}

// controlled runs f with the daemon, or alone with the control plane and with what more
// adds to the API.
func controlled(ctx context.Context, g *Flags, more func(alone) (func(), error), f func(*Backend) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	return eitherWay(ctx, p, f, func() error {
		return g.withControlPlane(ctx, p, func(at *place, c *controlPlane) error {
			known, err := p.Folders(at.data, at.settings)
			if err != nil {
				return err
			}
			known.Audit(manage.NewPermits(at.data.Name()).Forgetting(c.trusted))
			cfg := admin.Config{Devices: c.devices, Control: c.log, Folders: known, Version: Version(), Log: at.log}
			if more != nil {
				done, err := more(alone{&cfg, at})
				if err != nil {
					return err
				}
				defer done()
			}
			return f(ownBackend(admin.New(cfg)))
		})
	})
}

// withControlPlane runs f while no daemon runs, with the control plane.
func (g *Flags) withControlPlane(ctx context.Context, p Paths, f func(*place, *controlPlane) error) (err error) {
	at, err := openPlace(g, p, access{lock: true, log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer end(ctx, at, &err)
	c, err := openControlPlane(ctx, at)
	if err != nil {
		return err
	}
	defer end(ctx, c, &err)
	return f(at, c)
}

// eitherWay runs remote with the daemon or, if none runs, alone, which has the data
// directory for itself.
func eitherWay(ctx context.Context, p Paths, remote func(*Backend) error, alone func() error) error {
	for patience := time.Now().Add(lockPatience); ; {
		if done, err := WithDaemon(ctx, p, remote); done {
			return err
		}
		// A daemon that starts has the lock before it answers, and another command has
		// it for a moment.
		err := alone()
		if !errors.Is(err, errRunning) || time.Now().After(patience) {
			return err
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// How long a command waits for whoever works on the data directory, and how often it
// looks.
const (
	lockPatience = 5 * time.Second
	lockRetry    = 50 * time.Millisecond
)

// alone is the control plane of a command that no daemon answers.
type alone struct {
	cfg *admin.Config
	at  *place
}

// serversAlone adds the configuration of the servers, without any that runs.
func serversAlone(x alone) (func(), error) {
	own, err := x.manager()
	if err != nil {
		return nil, err
	}
	x.cfg.Servers = serverAdmin{m: own}
	x.cfg.Secrets = &secretAdmin{x.at.vault, x.at.settings, own} // which knows what refers to them
	x.cfg.Catalog = newCatalogAdmin(x.at, own)
	return own.Close, nil
}

// manager looks after the configuration of the servers, of which none runs.
func (x alone) manager() (*manage.Manager, error) {
	return x.at.manager(nil, x.cfg.Folders)
}

// manager looks after the servers of some files, or without any of yaya's own and of the
// current folder. None of them runs.
func (at *place) manager(files []string, known *folder.Store) (*manage.Manager, error) {
	l, err := manage.Load(at.Servers(), files)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the current folder: %w", err)
	}
	if err := l.Here(files, dir, known); err != nil {
		return nil, err
	}
	m := manage.New(manage.Config{
		File: at.Servers(), Own: len(files) == 0, Here: dir, Home: at.Home, Data: at.data.Name(), Ungiven: at.ungiven(at.flags.OwnFiles(at.Paths, files)),
		Folders: known, Trust: trust.NewStore(at.data), Permits: manage.NewPermits(at.data.Name()), Sandboxes: at.Sandboxes(at.settings),
		Secret: at.vault.Get, Log: at.log,
	}, l)
	if len(files) == 0 {
		at.bring(m)
	}
	return m, nil
}

// ServersIn describes the servers of some files, beside a daemon or without one. It starts none
// of them.
func ServersIn(ctx context.Context, g *Flags, files []string) (_ []admin.Server, err error) {
	p, err := g.Paths()
	if err != nil {
		return nil, err
	}
	at, err := openPlace(g, p, access{log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	defer end(ctx, at, &err)
	known, err := p.Folders(at.data, at.settings)
	if err != nil {
		return nil, err
	}
	m, err := at.manager(files, known)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	all := serverAdmin{m: m}.List()
	for i := range all {
		if all[i].State == "stopped" {
			all[i].Reason = "this command starts no server (to check it: yaya mcp list --mcp-config FILE)"
		}
	}
	return all, nil
}

// AsOwner is a handler that only this process reaches: who asks is its user.
func AsOwner(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), auth.LocalOwner)))
	})
}

// answered is an error that the API has answered.
type answered struct {
	status int
	text   string
}

func (e *answered) Error() string { return e.text }

// AnsweredWith reports whether the API has answered with an error of that status.
func AnsweredWith(err error, status int) bool {
	e, ok := errors.AsType[*answered](err)
	return ok && e.status == status
}

// API sends a request to the API: in as JSON unless it is nil, the answer into
// out unless that is nil.
func (b *Backend) API(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://yaya"+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		return b.Refusal(ctx, resp)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(resp.Body, MaxAnswer)).Decode(out)
}

// Refusal reads an error that the API has answered.
func (b *Backend) Refusal(ctx context.Context, resp *http.Response) error {
	text, own := refusalText(resp)
	unknown := own == "resource not found" || own == "there is no such resource" // older versions say the latter
	if own == "" || unknown || resp.StatusCode == http.StatusMethodNotAllowed {
		if err := b.otherVersion(ctx); err != nil {
			return err
		}
	}
	return &answered{resp.StatusCode, cmp.Or(text, "yaya answered "+resp.Status)}
}
