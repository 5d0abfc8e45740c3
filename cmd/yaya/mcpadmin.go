package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// serverAdmin is what the admin API does with MCP servers: yaya's own file, and the
// bridge that runs what is in it. Without a bridge it works on the file alone.
type serverAdmin struct {
	a   *app
	p   paths
	own bool // the servers are those of yaya's own file, and of the project

	// changing is held while a server is changed, which may wait for one to stop; mu
	// guards what follows, and is held for a moment.
	changing sync.Mutex
	mu       sync.Mutex
	list     map[string]servers.Server // configured and readable
	bad      []servers.Invalid         // configured and not
	wait     []pending                 // of a folder that is not trusted

	here    string            // the folder whose servers are offered
	brought map[string]string // what those were when they were started
	work    sync.WaitGroup
	ends    bool
}

// newServerAdmin looks after the servers that were loaded, from yaya's own file
// unless others were named.
func newServerAdmin(a *app, p paths, l loaded, own bool) *serverAdmin {
	s := &serverAdmin{a: a, p: p, own: own, list: map[string]servers.Server{}, wait: l.pending, here: a.workspace, brought: l.brought}
	for _, x := range l.servers {
		s.list[x.Name] = x
	}
	for _, x := range l.invalid {
		if !slices.ContainsFunc(l.pending, func(y pending) bool { return y.server.Name == x.Name }) {
			s.bad = append(s.bad, x)
		}
	}
	a.folders.OnChange(func(dir string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ends {
			s.work.Go(func() { s.reconsider(dir) })
		}
	})
	return s
}

// Close waits for what is under way, and looks at no folder from then on.
func (s *serverAdmin) Close() {
	s.mu.Lock()
	s.ends = true
	s.mu.Unlock()
	s.work.Wait()
}

// List implements [admin.Servers].
func (s *serverAdmin) List() []admin.Server {
	stats, states, invalid := s.observed()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []admin.Server{}
	for name, x := range s.list {
		row := s.row(x)
		st, running := states[name]
		switch {
		case running:
			row.State, row.Reason, row.Since, row.Tools, row.Restarts, row.LastError, row.Diagnostics = string(st.State), st.Reason, st.Since, st.Tools, st.Restarts, st.LastError, st.Diagnostics
			d := detailOf(st)
			row.Stderr = d.Stderr
			if row.Sandbox != nil {
				if e := d.Sandbox; e != nil {
					row.Sandbox.Backend, row.Sandbox.Enforced = e.Backend, e.Has.Names()
					row.Sandbox.Missing, row.Sandbox.Breaks = e.Missing, e.Breaks
				}
				for _, x := range d.Denied {
					row.Sandbox.Denied = append(row.Sandbox.Denied, admin.ServerDenial{What: x.What, Allow: x.Allow})
				}
			}
			row.StartMS = float64(st.StartTook.Microseconds()) / 1000
			c := stats.Providers[name]
			row.Calls = admin.Calls{Total: c.Total, Errors: c.Errors, P50MS: c.P50.Seconds() * 1000, P95MS: c.P95.Seconds() * 1000}
		case x.Disabled:
			row.State = "disabled"
		case s.a.bridge == nil:
			row.State, row.Reason = "stopped", "yaya is not running"
		default:
			row.State, row.Reason = "invalid", cmp.Or(invalid[name], "it is not running")
		}
		out = append(out, row)
	}
	for _, x := range s.bad {
		out = append(out, admin.Server{Name: x.Name, File: x.File, Editable: s.editable(x.File), State: "invalid", Reason: feature.Clean(x.Err.Error(), 1024), Config: json.RawMessage("null")})
	}
	for _, x := range s.wait {
		row := s.row(x.server)
		row.State, row.Reason = "waiting", fmt.Sprintf("the folder %s brings it, which is not trusted: yaya trust %s", x.folder.Folder, x.folder.Folder)
		out = append(out, row)
	}
	slices.SortFunc(out, func(x, y admin.Server) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// observed is what is known of the servers that run.
func (s *serverAdmin) observed() (stats gateway.Stats, states map[string]feature.Status, invalid map[string]string) {
	states, invalid = map[string]feature.Status{}, map[string]string{}
	if s.a.bridge == nil {
		return stats, states, invalid
	}
	stats, err := s.a.metrics.Stats()
	if err != nil { // a broken gauge must not hide the servers
		s.a.log.Warn().Err(err).Msg("the metrics cannot be read")
		stats = gateway.Stats{}
	}
	for _, st := range s.a.host.Status() {
		states[st.ID] = st
	}
	for _, inv := range s.a.bridge.InvalidServers() {
		invalid[inv.Name] = feature.Clean(inv.Err.Error(), 1024)
	}
	return stats, states, invalid
}

// report says how the servers are, as they are configured now.
func (s *serverAdmin) report(mcpURL string) report {
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.list))
	s.mu.Unlock()
	return s.a.report(mcpURL, list)
}

func (s *serverAdmin) row(x servers.Server) admin.Server {
	masked, err := x.Masked()
	if err != nil { // cannot be: it was made of JSON
		masked = json.RawMessage("null")
	}
	row := admin.Server{Name: x.Name, Transport: string(x.Transport), Endpoint: x.Endpoint(), File: x.File, Editable: s.editable(x.File), Config: masked, Revision: revision(x)}
	if profile := x.SandboxProfile(); profile != "" {
		row.Sandbox = &admin.ServerSandbox{Profile: profile, Allowed: s.inSandbox(s.a.permitted(x))}
	}
	return row
}

// inSandbox says what a server's process may do.
func (s *serverAdmin) inSandbox(x servers.Server) string { return x.InSandbox(x.Places(s.scope(x))) }

// scope resolves the variables of a server's paths.
func (s *serverAdmin) scope(x servers.Server) servers.Scope {
	if x.Project {
		return inFolder(filepath.Dir(x.File))
	}
	return servers.Scope{Env: os.LookupEnv, Home: s.p.home, Workspace: s.here}
}

func (s *serverAdmin) editable(file string) bool { return s.own && file == s.p.servers() }

// refused is [admin.ErrRefused] with a reason.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", admin.ErrRefused, fmt.Sprintf(format, args...))
}

// mayChange reports why a server cannot be changed here; mu is held.
func (s *serverAdmin) mayChange(name string) error {
	if !s.own {
		return refused("the servers come from the files that --mcp-config names")
	}
	x, known := s.list[name]
	if known && !s.editable(x.File) {
		return refused("%q stands in %s, which is not yaya's own", name, x.File)
	}
	return nil
}

// Prepare implements [admin.Servers].
func (s *serverAdmin) Prepare(name string, config json.RawMessage, from string) (admin.Prepared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayChange(name); err != nil {
		return admin.Prepared{}, err
	}
	now, known := s.list[name]
	if from != "" && (!known || from != revision(now)) {
		return admin.Prepared{}, &told{admin.ErrStale, fmt.Sprintf("the server %q was changed meanwhile", name)}
	}
	doc, err := json.Marshal(map[string]any{"mcpServers": map[string]json.RawMessage{name: config}})
	if err != nil {
		return admin.Prepared{}, refused("%v", err)
	}
	cfg, err := servers.Parse("the request", doc, servers.FormatYaya)
	if err != nil {
		return admin.Prepared{}, refused("%v", err)
	}
	if len(cfg.Invalid) > 0 {
		return admin.Prepared{}, refused("server %q: %v", name, cfg.Invalid[0].Err)
	}
	if len(cfg.Servers) != 1 {
		return admin.Prepared{}, refused("the configuration is not that of one server")
	}
	wanted, err := cfg.Servers[0].Unmask(now)
	if err != nil {
		return admin.Prepared{}, refused("server %q: %v", name, err)
	}
	expanded, _, _ := wanted.Expand(servers.Scope{Env: os.LookupEnv, Home: s.p.home, Workspace: s.here, Secret: s.namedSecret}) // lacks says what it lacks
	if err := s.a.itself(expanded); err != nil {
		return admin.Prepared{}, refused("server %q: %v", name, err)
	}
	wanted.File = s.p.servers()
	known = known || slices.ContainsFunc(s.bad, func(i servers.Invalid) bool { return i.Name == name })
	notes := cfg.Warnings
	for _, c := range cfg.Changes {
		notes = append(notes, c.Text)
	}
	return s.prepared(wanted, known, notes)
}

// prepared is the change that makes a server what is wanted; mu is held.
func (s *serverAdmin) prepared(wanted servers.Server, known bool, notes []string) (admin.Prepared, error) {
	masked, err := wanted.Masked()
	if err != nil {
		return admin.Prepared{}, err
	}
	base, err := s.state(wanted.Name)
	if err != nil {
		return admin.Prepared{}, err
	}
	if wanted.Disabled {
		notes = append(notes, "it is switched off: nothing is started")
	}
	notes = append(slices.Clone(notes), s.lacks(wanted)...)
	runs := wanted.Runs()
	if wanted.Sandbox != nil {
		runs += ", " + s.inSandbox(wanted)
	}
	return admin.Prepared{Server: wanted.Name, New: !known, Runs: runs, Config: masked, Notes: notes, Apply: func(ctx context.Context) error {
		s.changing.Lock()
		defer s.changing.Unlock()
		s.mu.Lock()
		now, err := s.state(wanted.Name)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if now != base {
			return &told{admin.ErrStale, fmt.Sprintf("the server %q was changed since this was proposed: try again", wanted.Name)}
		}
		return s.put(ctx, wanted)
	}}, nil
}

// state is how a server is configured now; mu is held.
func (s *serverAdmin) state(name string) (string, error) {
	x, known := s.list[name]
	if !known {
		return "", nil
	}
	raw, err := json.Marshal(x)
	return string(raw), err
}

// put writes a server down and runs it, unless its entry was edited in the file and the
// edit is not taken over; changing is held.
func (s *serverAdmin) put(ctx context.Context, x servers.Server) error {
	data, err := s.read()
	if err != nil {
		return err
	}
	if err := s.asRead(data, x.Name); err != nil {
		return err
	}
	if data, err = servers.Set(s.p.servers(), data, x); err != nil {
		return refused("%v", err) // the file is its user's, and has a mistake
	}
	if err := s.write(data); err != nil {
		return err
	}
	s.take(ctx, x)
	return nil
}

// take makes an entry of yaya's own file what is known of its server, and runs it;
// changing is held.
func (s *serverAdmin) take(ctx context.Context, x servers.Server) {
	s.mu.Lock()
	s.list[x.Name] = x
	s.bad = slices.DeleteFunc(s.bad, func(i servers.Invalid) bool { return i.Name == x.Name })
	s.mu.Unlock()
	s.run(ctx, x)
}

// asRead reports that yaya's own file, whose content is data, has another entry for a
// server than the one that was read from it: to write it would lose what its user has
// edited.
func (s *serverAdmin) asRead(data []byte, name string) error {
	x, bad, err := entryIn(s.p.servers(), data, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := s.state(name)
	if err != nil {
		return err
	}
	file := ""
	if x != nil {
		raw, err := json.Marshal(x)
		if err != nil {
			return err
		}
		file = string(raw)
	}
	wasBad := slices.ContainsFunc(s.bad, func(i servers.Invalid) bool {
		return bad != nil && i.Name == name && i.Err.Error() == bad.Error()
	})
	if file == known && (bad == nil || wasBad) {
		return nil
	}
	return &told{admin.ErrStale, fmt.Sprintf("the entry of %q in %s was edited, and the edit is not taken over: yaya reload says why; then try again", name, s.p.servers())}
}

// entryIn returns the entry of a server in the content of yaya's own file, nil if there
// is none; bad is why it cannot be used.
func entryIn(file string, data []byte, name string) (x *servers.Server, bad, err error) {
	cfg, err := servers.Parse(file, data, servers.FormatYaya)
	if err != nil {
		return nil, nil, refused("%v", err)
	}
	for i := range cfg.Servers {
		if cfg.Servers[i].Name == name {
			return &cfg.Servers[i], nil, nil
		}
	}
	for _, i := range cfg.Invalid {
		if i.Name == name {
			return nil, i.Err, nil
		}
	}
	return nil, nil, nil
}

// run restarts a server as it is configured; changing is held.
func (s *serverAdmin) run(ctx context.Context, x servers.Server) {
	if s.a.bridge == nil {
		return
	}
	s.a.bridge.Remove(x.Name)
	for _, w := range s.a.bridge.Add(context.WithoutCancel(ctx), x) {
		s.a.log.Warn().Msg(w)
	}
	s.a.changed(admin.PartServers, admin.PartTools)
}

// Remove implements [admin.Servers].
func (s *serverAdmin) Remove(_ context.Context, name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	err := s.mayChange(name)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	data, err := s.read()
	if err != nil {
		return err
	}
	data, found, err := servers.Unset(s.p.servers(), data, name)
	if err != nil {
		return refused("%v", err)
	}
	if !found {
		return &told{admin.ErrUnknown, fmt.Sprintf("there is no server %q in %s", name, s.p.servers())}
	}
	if err := s.write(data); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.list, name)
	s.bad = slices.DeleteFunc(s.bad, func(i servers.Invalid) bool { return i.Name == name })
	s.mu.Unlock()
	if s.a.bridge != nil {
		s.a.bridge.Remove(name)
	}
	err = s.a.trust.Forget(name) // nothing of it is left to write it again
	s.a.changed(admin.PartServers, admin.PartTools, admin.PartQuarantine)
	if err != nil {
		return fmt.Errorf("the server %q is removed, and what was approved of it is not forgotten: %w", name, err)
	}
	return nil
}

// Restart implements [admin.Servers].
func (s *serverAdmin) Restart(ctx context.Context, name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	x, known := s.list[name]
	err := s.unknown(name)
	s.mu.Unlock()
	switch {
	case !known:
		return err
	case x.Disabled:
		return refused("%q is switched off: yaya mcp enable %s", name, name)
	case s.a.bridge == nil:
		return refused("yaya is not running, so that %q runs nowhere: yaya serve", name)
	}
	s.run(ctx, x)
	if why := s.unusable(name); why != nil {
		return refused("%q was not started: %v", name, why)
	}
	return nil
}

// unusable is why a server that was added to the bridge cannot be used, nil if it can,
// or if nothing runs here.
func (s *serverAdmin) unusable(name string) error {
	if s.a.bridge == nil {
		return nil
	}
	for _, i := range s.a.bridge.InvalidServers() {
		if i.Name == name {
			return i.Err
		}
	}
	return nil
}

// Importable implements [admin.Servers].
func (s *serverAdmin) Importable() []admin.Importable {
	out := []admin.Importable{}
	others := discover(s.p.home)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range others {
		if len(f.config.Servers) == 0 {
			continue
		}
		i := admin.Importable{Client: f.label, Path: f.loc.Path}
		taken, _ := s.merged(f)
		for _, x := range f.config.Servers {
			isNew := slices.ContainsFunc(taken, func(t servers.Taken) bool { return t.From == f.from() && t.Was() == x.Name })
			i.Servers = append(i.Servers, admin.ImportServer{Name: x.Name, Endpoint: x.Endpoint(), Known: !isNew})
		}
		out = append(out, i)
	}
	return out
}

// merged are the servers of another client that yaya does not have; mu is held.
func (s *serverAdmin) merged(f found) ([]servers.Taken, []servers.Left) {
	have := slices.Collect(maps.Values(s.list))
	return servers.Merge(have, []servers.Source{f.source()}, func(servers.Clash) servers.Conflict { return servers.Rename })
}

// Import implements [admin.Servers].
func (s *serverAdmin) Import(client string) ([]admin.Prepared, error) {
	others := discover(s.p.home)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(others, func(f found) bool { return f.label == client })
	if i < 0 {
		return nil, fmt.Errorf("%w: the client %q has configured nothing here", admin.ErrUnknown, client)
	}
	out := []admin.Prepared{}
	taken, _ := s.merged(others[i])
	for _, t := range taken {
		x := t.Server
		if err := s.mayChange(x.Name); err != nil {
			return nil, err
		}
		x.File, x.Format = s.p.servers(), servers.FormatYaya
		p, err := s.prepared(x, false, t.Changes)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
