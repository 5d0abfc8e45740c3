package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/yaya-ai/yaya/hooks"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// packages are the packages for agents that are loaded. Their skills and hooks count as the user's
// own, and their servers as those of a folder that was agreed to.
type packages struct {
	// bring takes over the servers of a package, and returns notes.
	bring func(ctx context.Context, name string, l []servers.Server) []string
	// changed is called when hooks have changed.
	changed func()

	mu     sync.Mutex
	loaded map[string]*agentPackage
}

// agentPackage is an installed package as a plugin, which has no process.
type agentPackage struct {
	all   *packages
	e     installed.Entry
	m     plugin.Manifest
	parts *agentpackage.Package
	real  string // its folder, without links in the path
}

// Manifest implements [plugin.Plugin].
func (p *agentPackage) Manifest() plugin.Manifest { return p.m }

// Decide implements [plugin.Guard]. The hooks of a package decide by themselves; the kernel denies
// what they guard while the package is not loaded, because a guard that is left out guards nothing.
func (*agentPackage) Decide(context.Context, plugin.Question) (tool.Verdict, error) {
	return tool.Verdict{Decision: tool.Allow}, nil
}

// guards are the points at which hooks can deny.
func guards(all []hookconf.Hook) (out []string) {
	for point, event := range map[string]hookconf.Event{plugin.GuardTool: hookconf.PreTool, plugin.GuardPrompt: hookconf.Prompt} {
		if slices.ContainsFunc(all, func(h hookconf.Hook) bool { return h.Event == event }) {
			out = append(out, point)
		}
	}
	slices.Sort(out)
	return out
}

// Subscriptions implements [plugin.Plugin].
func (*agentPackage) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*agentPackage) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin].
func (p *agentPackage) OnLoad(ctx context.Context, c plugin.Context) error {
	state, err := stateOf(c)
	if err != nil {
		return fmt.Errorf("the folder of the package's state: %w", err)
	}
	if p.real, err = filepath.EvalSymlinks(p.e.Folder()); err != nil {
		return err
	}
	l, bad, err := packageServers(p.m.Name, p.parts, p.real, state)
	if err != nil {
		return err
	}
	for _, x := range bad { // as it was shown
		c.Log().Warn().Str("server", x.Name).Err(x.Err).Msg("a server of the package is left out")
	}
	p.all.mu.Lock()
	p.all.loaded[p.e.Name] = p
	p.all.mu.Unlock()
	p.all.changed()
	for _, note := range p.all.bring(ctx, p.e.Name, l) {
		c.Log().Warn().Msg(note)
	}
	return nil
}

// stateOf makes the folder that the servers of a package may write, beside its files.
func stateOf(c plugin.Context) (string, error) {
	above, err := c.StateDir()
	if err != nil {
		return "", err
	}
	state := filepath.Join(above, remote.StateFolder)
	if err := os.MkdirAll(state, 0o700); err != nil { //nolint:forbidigo // in the folder of this plugin
		return "", err
	}
	return filepath.EvalSymlinks(state)
}

// OnUnload implements [plugin.Plugin].
func (p *agentPackage) OnUnload(ctx context.Context, _ plugin.Context) error {
	p.all.mu.Lock()
	mine := p.all.loaded[p.e.Name] == p
	if mine {
		delete(p.all.loaded, p.e.Name)
	}
	p.all.mu.Unlock()
	if mine {
		p.all.changed()
		p.all.bring(ctx, p.e.Name, nil)
	}
	return nil
}

// packageServers turns the servers of a package into those of a folder.
func packageServers(name string, parts *agentpackage.Package, folder, state string) (out []servers.Server, bad []servers.Invalid, _ error) {
	file := filepath.Join(folder, "mcp.json")
	entries := map[string]json.RawMessage{}
	for _, s := range parts.Servers {
		is := name + "-" + s.Name
		if s.Name == name {
			is = name
		}
		entry, err := s.Entry(folder, state)
		if err != nil {
			bad = append(bad, servers.Invalid{Name: is, File: file, Err: err})
			continue
		}
		entries[is] = entry
	}
	doc, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return nil, nil, err
	}
	format := servers.FormatClaudeCode // Codex has the same
	if parts.Format == agentpackage.AgentPlugins {
		format = servers.FormatAgentPlugins
	}
	cfg, err := servers.ParsePackage(file, doc, format)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range cfg.Servers {
		s.Package, s.OwnParts = name, []string{folder, state}
		if err := bound(&s, state); err != nil {
			bad = append(bad, servers.Invalid{Name: s.Name, File: file, Err: err})
			continue
		}
		out = append(out, s)
	}
	for _, x := range cfg.Invalid {
		x.Err = sandbox.FixedProfile(x.Err)
		bad = append(bad, x)
	}
	return out, bad, nil
}

// bound keeps a server that is started in the strict sandbox, where it can write the folder of its
// package's state: who wants it in another sandbox configures it himself.
func bound(s *servers.Server, state string) error {
	if s.Transport != servers.Stdio {
		return nil
	}
	var box servers.Sandbox
	if s.Sandbox != nil {
		box = *s.Sandbox
	}
	if box.Profile != "" {
		return errors.New("its sandbox has a profile, which a package cannot choose")
	}
	box.Write = append(slices.Clone(box.Write), state)
	if s.Sandbox = &box; s.SandboxProfile() != servers.SandboxServer {
		return fmt.Errorf("it would not run in the profile %s", servers.SandboxServer)
	}
	return nil
}

// bring adds the servers of the installed packages to those that are managed without a daemon.
func (at *place) bring(m *manage.Manager) {
	at.eachPackage(at.settings, func(e installed.Entry, parts *agentpackage.Package) {
		state := filepath.Join(at.data.Name(), "plugins", e.Name, remote.StateFolder)
		l, _, err := packageServers(e.Name, parts, sandbox.Real(e.Folder()), sandbox.Real(state)) // yaya plugin list names those that are left out
		if err != nil {
			at.log.Warn().Err(err).Str("plugin", e.Name).Msg("the servers of a package cannot be read")
			return
		}
		for _, note := range m.Bring(context.Background(), e.Name, l) {
			at.log.Warn().Str("plugin", e.Name).Msg(note)
		}
	})
}

// mayStart returns what a server of a package reads and writes, or why it does not start: its
// files must be those that were agreed to.
func (p *packages) mayStart(s servers.Server) (servers.Places, error) {
	of := p.get(s.Package)
	if of == nil {
		return servers.Places{}, fmt.Errorf("the package %s is not loaded", s.Package)
	}
	if err := of.e.Verify(); err != nil {
		return servers.Places{}, err
	}
	// Literally: a server could have put a link where its next start would follow it.
	return manage.PlacesOf(s).Named(), nil
}

// bringTo says who takes over the servers of packages; before any is loaded.
func (p *packages) bringTo(bring func(ctx context.Context, name string, l []servers.Server) []string) {
	p.bring = bring
}

// get returns a loaded package, nil if it is not.
func (p *packages) get(name string) *agentPackage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loaded[name]
}

// list returns the loaded packages by name.
func (p *packages) list() (out []*agentPackage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.loaded)) {
		out = append(out, p.loaded[name])
	}
	return out
}

// hooks are the hooks of all packages.
func (p *packages) hooks() (out hooks.Found) {
	for _, of := range p.list() {
		out.Hooks = append(out.Hooks, hooksIn(of.real, of.parts)...)
	}
	return out
}

// hooksIn are the hooks of a package in a folder.
func hooksIn(folder string, parts *agentpackage.Package) (out []hookconf.Hook) {
	for _, h := range parts.Hooks {
		h.Root, h.File = folder, filepath.Join(folder, filepath.FromSlash(h.File))
		out = append(out, h)
	}
	return out
}

// skillFolders are the folders of skills of all packages.
func (p *packages) skillFolders() (out []string) {
	for _, of := range p.list() {
		out = append(out, skillFolders(of.real, of.parts)...)
	}
	return out
}

func skillFolders(folder string, parts *agentpackage.Package) (out []string) {
	for _, name := range parts.SkillFolders {
		out = append(out, filepath.Join(folder, filepath.FromSlash(name)))
	}
	return out
}

// shown are the folders of packages that commands may read: scripts of skills and hooks lie there.
func (p *packages) shown() (out []string) {
	for _, of := range p.list() {
		if len(of.parts.Skills) > 0 || len(of.parts.Hooks) > 0 {
			out = append(out, of.real)
		}
	}
	return out
}

// shows reports whether commands may read a folder because of a package.
func (p *packages) shows(dir string) bool {
	return sandbox.Within(p.shown(), dir)
}
