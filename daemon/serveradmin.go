package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// newManager looks after the servers that run here, until it is closed: those of yaya's own
// file, unless others were named.
func newManager(b *bridge, own bool) *manage.Manager {
	st := b.core.st
	m := manage.New(manage.Config{
		File: st.at.Servers(), Own: own, Here: st.workspace, Home: st.at.Home, Data: st.self.data, Listens: func() []string { return st.self.listens },
		Ungiven: st.at.ungiven(st.outside), Folders: st.folders, Trust: st.trust, Permits: st.permits, Sandboxes: st.sandboxes, Secret: st.at.vault.Get,
		Bridge: b.mcp, Host: b.host, Log: st.at.log,
		Changed: func(approvals bool) {
			parts := []string{admin.PartServers, admin.PartTools}
			if approvals {
				parts = append(parts, admin.PartQuarantine)
			}
			b.changes.tell(parts...)
		},
	}, b.loaded)
	b.onOtherwise(m.SandboxesChanged)
	b.core.packages.bringTo(m.Bring)
	return m
}

// ungiven are the folders and files that no server is given.
func (p Paths) ungiven(ours ownFiles) func() (folders, files []string) {
	ours.paths = p // where no daemon runs, no flags name another file
	own := append(Hidden(p.Own()), p.Socket(), SandboxCaches(p.Home))
	return func() (folders, files []string) {
		files, readable := ours.files()
		files = append(files, readable...)
		elsewhere, unchanged, err := ours.Elsewhere()
		if err != nil {
			elsewhere = ours.paths.usual() // no server starts then, and says why
		}
		return own, slices.Concat(files, elsewhere, unchanged)
	}
}

// serverAdmin manages MCP servers for the admin API. It implements [admin.Servers].
type serverAdmin struct {
	m       *manage.Manager
	metrics *gateway.Metrics // of calls, nil where none runs
	log     zerolog.Logger
	past    *pastStates // nil where none runs
}

// told is an error of a kind, with words of its own.
type told struct {
	kind error
	text string
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// answerOf is an error of a manager as the API knows it.
func answerOf(err error) error {
	for from, to := range map[error]error{manage.ErrUnknown: admin.ErrUnknown, manage.ErrRefused: admin.ErrRefused, manage.ErrStale: admin.ErrStale} {
		if errors.Is(err, from) {
			return &told{to, err.Error()}
		}
	}
	return err
}

// prepared is a change as the API knows it.
func prepared(p manage.Prepared) admin.Prepared {
	return admin.Prepared{
		Server: p.Server, New: p.New, Runs: p.Runs, Config: p.Config, Notes: p.Notes,
		Apply: func(ctx context.Context) error { return answerOf(p.Apply(ctx)) },
	}
}

// List implements [admin.Servers].
func (s serverAdmin) List() []admin.Server {
	var stats gateway.Stats
	if s.metrics != nil {
		var err error
		if stats, err = s.metrics.Stats(); err != nil { // a broken gauge must not hide the servers
			s.log.Warn().Err(err).Msg("the metrics cannot be read")
			stats = gateway.Stats{}
		}
	}
	out := []admin.Server{}
	for _, x := range s.m.List() {
		row := admin.Server{
			Name: x.Name, Transport: string(x.Transport), Endpoint: x.Endpoint, File: x.File, Editable: x.Editable,
			State: x.State, Reason: x.Reason, Config: x.Config, Revision: x.Revision, Withheld: x.Withheld,
		}
		if x.Profile != "" {
			row.Sandbox = &admin.ServerSandbox{Profile: x.Profile, Allowed: x.Allowed}
		}
		if x.Status != nil {
			showStatus(&row, *x.Status)
			row.History = s.past.of(x.Name)
			c := stats.Providers[x.Name]
			row.Calls = admin.Calls{Total: c.Total, Errors: c.Errors, P50MS: c.P50.Seconds() * 1000, P95MS: c.P95.Seconds() * 1000}
		}
		out = append(out, row)
	}
	return out
}

// showStatus adds to a server how its provider is.
func showStatus(row *admin.Server, st feature.Status) {
	row.Since, row.Tools, row.Restarts, row.LastError, row.Diagnostics = st.Since, st.Tools, st.Restarts, st.LastError, st.Diagnostics
	row.StartMS = float64(st.StartTook.Microseconds()) / 1000
	d := DetailOf(st)
	row.Stderr = d.Stderr
	if row.Sandbox == nil {
		return
	}
	if e := d.Sandbox; e != nil {
		row.Sandbox.Backend, row.Sandbox.Enforced = e.Backend, e.Has.Names()
		row.Sandbox.Missing, row.Sandbox.Breaks = e.Missing, e.Breaks
	}
	for _, x := range d.Denied {
		row.Sandbox.Denied = append(row.Sandbox.Denied, admin.ServerDenial{What: x.What, Allow: x.Allow})
	}
}

// Prepare implements [admin.Servers].
func (s serverAdmin) Prepare(name string, config json.RawMessage, revision string) (admin.Prepared, error) {
	p, err := s.m.Prepare(name, config, revision)
	return prepared(p), answerOf(err)
}

// Allow implements [admin.Servers].
func (s serverAdmin) Allow(name string, what admin.ServerPermit, remove bool) (admin.Prepared, error) {
	p, err := s.m.Allow(name, servers.Sandbox{Read: what.Read, Write: what.Write, Hosts: what.Hosts, Env: what.Env}, remove)
	return prepared(p), answerOf(err)
}

// Switch implements [admin.Servers].
func (s serverAdmin) Switch(ctx context.Context, name string, on bool, record func() error) error {
	return answerOf(s.m.Switch(ctx, name, on, record))
}

// SwitchTool implements [admin.Servers].
func (s serverAdmin) SwitchTool(ctx context.Context, name, tool string, on bool, record func() error) error {
	return answerOf(s.m.SwitchTool(ctx, name, tool, on, record))
}

// Remove implements [admin.Servers].
func (s serverAdmin) Remove(_ context.Context, name string) error { return answerOf(s.m.Remove(name)) }

// Known implements [admin.Servers].
func (s serverAdmin) Known(name string) error { return answerOf(s.m.Known(name)) }

// Restart implements [admin.Servers].
func (s serverAdmin) Restart(ctx context.Context, name string) error {
	return answerOf(s.m.Restart(ctx, name))
}

// Importable implements [admin.Servers].
func (s serverAdmin) Importable() []admin.Importable {
	out := []admin.Importable{}
	for _, x := range s.m.Importable() {
		row := admin.Importable{Client: x.Client, Path: x.Path}
		for _, y := range x.Servers {
			row.Servers = append(row.Servers, admin.ImportServer(y))
		}
		out = append(out, row)
	}
	return out
}

// Import implements [admin.Servers].
func (s serverAdmin) Import(client string) ([]admin.Prepared, error) {
	all, err := s.m.Import(client)
	if err != nil {
		return nil, answerOf(err)
	}
	out := []admin.Prepared{}
	for _, p := range all {
		out = append(out, prepared(p))
	}
	return out, nil
}

// Waiting implements [admin.Servers].
func (s serverAdmin) Waiting() ([]admin.Waiting, error) {
	all, err := s.m.Waiting()
	if err != nil {
		return nil, answerOf(err)
	}
	out := []admin.Waiting{}
	for _, w := range all {
		row := admin.Waiting{Server: w.Server, Reason: w.Reason, Runs: w.Runs, Config: w.Config, Tools: []admin.WaitingTool{}, Instructions: w.Instructions, Digest: w.Digest}
		for _, t := range w.Tools {
			row.Tools = append(row.Tools, admin.WaitingTool{Name: t.Name, New: t.New, Wording: t.Wording, Diff: t.Diff})
		}
		out = append(out, row)
	}
	return out, nil
}

// Approve implements [admin.Servers].
func (s serverAdmin) Approve(ctx context.Context, server, digest string, tools []string) error {
	return answerOf(s.m.Approve(ctx, server, digest, auth.FromContext(ctx).Actor(), tools))
}
