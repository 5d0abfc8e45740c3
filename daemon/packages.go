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
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/installed"
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
	denied map[string]error // packages whose hooks guard, and cannot run
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
	delete(p.all.denied, p.e.Name)
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
	state := filepath.Join(above, "state")
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
func packageServers(name string, parts *agentpackage.Package, folder, state string) (_ []servers.Server, bad []servers.Invalid, _ error) {
	file := filepath.Join(folder, "mcp.json")
	entries, literal := map[string]any{}, map[string]bool{}
	for _, s := range parts.Servers {
		is := name + "-" + s.Name
		if s.Name == name {
			is = name
		}
		raw, err := s.Entry(folder, state)
		var entry map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &entry)
		}
		if err == nil && entry["command"] != nil {
			err = addState(entry, state)
		}
		if err != nil {
			bad = append(bad, servers.Invalid{Name: is, File: file, Err: err})
			continue
		}
		entries[is], literal[is] = entry, s.Literal()
	}
	doc, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		return nil, nil, err
	}
	cfg, err := servers.ParseProject(file, doc)
	if err != nil {
		return nil, nil, err
	}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		s.Package, s.OwnParts, s.Literal = name, []string{folder, state}, literal[s.Name]
	}
	return cfg.Servers, append(bad, cfg.Invalid...), nil
}

// addState lets a server write the folder of its package's state. It stays in the strict sandbox:
// who wants it in another one configures it himself.
func addState(entry map[string]any, state string) error {
	box, ok := entry["sandbox"].(map[string]any)
	if !ok {
		if entry["sandbox"] != nil {
			return errors.New("its sandbox is not an object")
		}
		box = map[string]any{}
	}
	if box["profile"] != nil {
		return errors.New("its sandbox has a profile, which a package cannot choose")
	}
	write, _ := box["write"].([]any)
	box = maps.Clone(box)
	box["write"] = append(slices.Clone(write), state)
	entry["sandbox"] = box
	return nil
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
	return manage.PlacesOf(s), nil
}

// deny has hooks deny every call, because those of a package cannot run.
func (p *packages) deny(name string, err error) {
	p.mu.Lock()
	p.denied[name] = fmt.Errorf("the hooks of the package %s: %w", name, err)
	p.mu.Unlock()
	p.changed()
}

// allow ends that.
func (p *packages) allow(name string) {
	p.mu.Lock()
	delete(p.denied, name)
	p.mu.Unlock()
	p.changed()
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
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.denied)) {
		out.Err = errors.Join(out.Err, p.denied[name])
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
