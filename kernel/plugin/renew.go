package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Preparer is implemented by plugins whose loading takes time, such as the start of a process.
type Preparer interface {
	// Prepare does what can be done while another plugin of its name is loaded, and returns the
	// names of the tools that OnLoad will register. OnLoad follows, or else OnUnload. An error
	// leaves nothing that has to be unloaded.
	Prepare(ctx context.Context, c Context) (tools []string, err error)
}

// Troubled is implemented by plugins that can be loaded and not work.
type Troubled interface {
	// Trouble returns why the plugin does not work, nil if it works. It answers at once, and does
	// not use the registry.
	Trouble() error
}

// Replace loads a plugin in the place of the one with its name, if there is one, which it
// unloads. It cannot replace a bundled one.
func (r *Registry) Replace(ctx context.Context, p Plugin) error {
	l, was, err := r.successor(p)
	if err != nil {
		return err
	}
	if r.beside(was, l) {
		if done, err := r.renew(ctx, was, l); done {
			return err
		}
	}
	return r.replace(ctx, was, l)
}

// Restart is [Registry.Replace] for somebody who wants the present process to end first, whatever
// comes of it.
func (r *Registry) Restart(ctx context.Context, p Plugin) error {
	l, was, err := r.successor(p)
	if err != nil {
		return err
	}
	return r.replace(ctx, was, l)
}

// Renew is [Registry.Replace] for a plugin whose files have changed: in the place of a tool or a
// model provider, one that does not start leaves the loaded one where it is, whose status says why.
func (r *Registry) Renew(ctx context.Context, p Plugin) error {
	l, was, err := r.successor(p)
	if err != nil {
		return err
	}
	if !r.beside(was, l) {
		return r.replace(ctx, was, l)
	}
	done, err := r.renew(ctx, was, l)
	if !done {
		r.Stale(l.manifest.Name, err)
	}
	return err
}

// Stale notes in the status of a plugin why its changed files were not loaded.
func (r *Registry) Stale(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.byName[name]
	if l == nil {
		return
	}
	text := r.cfg.Secrets.ConcealString(firstLine(err))
	if l.status == Loaded {
		l.stale = text
		return
	}
	l.failure = text
}

func (r *Registry) successor(p Plugin) (l, was *loaded, err error) {
	l = &loaded{plugin: p, manifest: p.Manifest()}
	r.mu.Lock()
	defer r.mu.Unlock()
	was = r.byName[l.manifest.Name]
	if was != nil && was.bundled {
		return nil, nil, fmt.Errorf("plugin %s is a part of yaya: give yours another name", l.manifest.Name)
	}
	if was != nil { // settings that switch it on or off hold from the next start on
		on := !was.off
		l.on = &on
	}
	return l, was, nil
}

// beside reports whether a plugin can be prepared while the one that it replaces is loaded: one that
// is neither a tool nor a model provider may hold what only one can have, such as a port or a database.
func (r *Registry) beside(was, l *loaded) bool {
	_, prepares := l.plugin.(Preparer)
	if !prepares || was == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return was.status == Loaded && (was.manifest.Category == Tool || was.manifest.Category == LLMProvider)
}

// renew prepares a plugin beside the loaded one of its name, and then puts it in its place: its
// tools are offered, and its guards are asked, all the time. Unless it is done, nothing has changed.
func (r *Registry) renew(ctx context.Context, was, l *loaded) (done bool, err error) {
	if err := check(l); err != nil {
		return false, err
	}
	if missing := r.missing(l); missing != "" {
		return false, requires(missing)
	}
	if l.ctx, err = r.context(l.manifest); err != nil {
		return false, err
	}
	tools, err := l.plugin.(Preparer).Prepare(ctx, l.ctx)
	if err != nil {
		return false, err
	}
	if err := r.free(was, tools); err != nil {
		return false, errors.Join(err, r.onUnload(l))
	}
	if err := r.beginGuard(l.manifest); err != nil {
		return false, errors.Join(fmt.Errorf("what it guards: %w", err), r.onUnload(l))
	}
	l.ctx.before = was.ctx
	r.mu.Lock()
	subs := was.subs
	r.mu.Unlock()
	for _, s := range subs { // what comes from now on is for the new one
		s.Detach()
	}
	err = r.tryLoad(ctx, l)
	r.mu.Lock()
	here := was.status == Loaded // else it has just failed, and is unloaded
	if here {
		was.status = Unloading
	}
	l.status = Loaded
	if err != nil {
		l.status, l.failure = Failed, r.cfg.Secrets.ConcealString(firstLine(err))
	}
	r.byName[l.manifest.Name] = l
	if i := slices.Index(r.order, was); i >= 0 {
		r.order = slices.Clone(r.order)
		r.order[i] = l
	}
	r.mu.Unlock()
	if here {
		r.drain(was)
		was.ctx.withdraw()
		if uerr := r.onUnload(was); uerr != nil {
			r.cfg.Log.Error().Err(uerr).Str("plugin", was.manifest.Name).Msg("a plugin could not be unloaded cleanly")
		}
		r.mu.Lock()
		was.status = Unloaded
		r.mu.Unlock()
	}
	if err != nil {
		err = errors.Join(err, r.onUnload(l))
		r.failLoad(l, err)
		return true, fmt.Errorf("plugin %s: %s", l.manifest.Name, l.failure)
	}
	r.forgetFailure(l.manifest.Name)
	r.settleGuard(l.manifest)
	if l.manifest.ToolName != "" {
		r.cfg.Tools.DeclareLegacy(l.manifest.Name, l.manifest.ToolName)
	}
	_, err = bus.Publish(r.kernel, event.PluginWasReloaded, event.KernelSession, event.PluginReloaded{Name: l.manifest.Name, Version: l.manifest.Version})
	r.report(err)
	return true, nil
}

// free returns an error about a tool whose name is taken, by others than the plugin that has it now.
func (r *Registry) free(was *loaded, tools []string) error {
	have := was.ctx.registered()
	now := r.cfg.Tools.Snapshot()
	for i, name := range tools {
		if slices.Contains(tools[:i], name) {
			return fmt.Errorf("it has two tools %s", name)
		}
		if _, taken := now.Lookup(name); taken && !slices.Contains(have, name) {
			return fmt.Errorf("its tool %s has the name of a tool of yaya, or of another plugin", name)
		}
	}
	return nil
}

// replace unloads a plugin and loads another one in its place; was can be nil.
func (r *Registry) replace(ctx context.Context, was, l *loaded) error {
	name := l.manifest.Name
	if was != nil {
		if err := r.forget(was); err != nil {
			return err
		}
	}
	if err := r.declare(l); err != nil {
		r.failLoad(l, err)
		return err
	}
	if missing := r.missing(l); missing != "" {
		err := requires(missing)
		r.failLoad(l, err)
		return err
	}
	r.load(ctx, l, was != nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.status == Failed {
		return fmt.Errorf("plugin %s: %s", name, l.failure)
	}
	return nil
}

func requires(name string) error { return fmt.Errorf("it requires %s, which is not loaded", name) }
