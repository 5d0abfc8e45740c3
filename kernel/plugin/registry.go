package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// State is a stage in the life of a plugin.
type State string

// The states: loaded → unloading → failed for one that failed too often, loaded
// → unloaded for one that was stopped.
const (
	Loaded    State = "loaded"
	Unloading State = "unloading"
	Failed    State = "failed"
	Unloaded  State = "unloaded"
)

// ErrUnloading means that a plugin is being unloaded, or is not loaded.
var ErrUnloading = errors.New("the plugin is being unloaded already")

const failureFile = "load-error.txt" // in the plugin's directory: why it could not be loaded

const (
	unloadTimeout = 10 * time.Second // of OnUnload
	drainTimeout  = 2 * time.Second  // for the events that came before
)

// Config assembles a registry. Bus, Config, Tools and State are required.
type Config struct {
	Bus    *bus.Bus
	Config *config.Store
	Tools  *tool.Registry
	State  *os.Root // plugins' directories are below
	// Strategy returns the id of the strategy that a session uses.
	Strategy func(session string) string
	// Secrets are concealed in everything that plugins emit or store. Optional.
	Secrets *masked.Secrets
	// Budget limits what the calls of models cost that plugins make themselves. Optional.
	Budget Budget
	// Denied is called with every denial by a guard. Optional.
	Denied func(Denial) error
	Log    zerolog.Logger
}

// Registry holds the plugins.
type Registry struct {
	cfg    Config
	kernel *bus.Emitter
	router *bus.Subscription
	spent  *spending         // nil without a budget
	counts *bus.Subscription // of it

	guarding sync.Mutex             // held while guards change
	guards   atomic.Pointer[guards] // nil without any

	mu      sync.Mutex
	order   []*loaded // as loaded; stopped in reverse
	byName  map[string]*loaded
	stopped bool
	work    sync.WaitGroup
}

// loaded is a plugin with the registry's record of it. The registry's mutex guards
// the fields after manifest.
type loaded struct {
	plugin   Plugin
	manifest Manifest
	bundled  bool
	ctx      *pluginContext

	status   State
	off      bool  // was switched off when it was to be loaded
	on       *bool // whether it is loaded, whatever the settings say; nil: they decide
	failure  string
	stale    string // why its changed files were not loaded
	failures int    // in a row
	subs     []*bus.Subscription
	kinds    []string                   // that it subscribes to
	defaults map[string]json.RawMessage // of its settings; nil until one is asked for
}

// NewRegistry returns an empty registry.
func NewRegistry(cfg Config) (*Registry, error) {
	r := &Registry{cfg: cfg, kernel: cfg.Bus.Kernel(), byName: map[string]*loaded{}}
	var err error
	r.router, err = bus.On(cfg.Bus, bus.SubscribeOptions{Name: "plugin-router"}, event.LLMCallRequest, r.unrouted)
	if err != nil {
		return nil, err
	}
	if cfg.Budget != nil {
		r.spent = &spending{budget: cfg.Budget, open: map[string]time.Time{}}
		if r.counts, err = r.spent.follow(cfg.Bus); err != nil {
			return nil, err
		}
	}
	cfg.Bus.SetPanel(event.MemoryQueried.Name(), r.memories())
	return r, nil
}

func (r *Registry) has(name string, c Category) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.byName[name]
	return l != nil && l.status == Loaded && l.manifest.Category == c
}

// HasStrategy reports whether a strategy with that id is loaded.
func (r *Registry) HasStrategy(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.order, func(l *loaded) bool {
		return l.status == Loaded && l.manifest.Category == Strategy && l.manifest.StrategyID == id
	})
}

// HasMemory reports whether a memory is loaded.
func (r *Registry) HasMemory() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.order, func(l *loaded) bool { return l.status == Loaded && l.manifest.Category == Memory })
}

// Load loads plugins, each after those it requires. A plugin that cannot be loaded
// is in state failed, and does not prevent others from loading, except those that
// require it. Bundled plugins cannot be removed.
func (r *Registry) Load(ctx context.Context, bundled bool, plugins ...Plugin) {
	var wait []*loaded
	for _, p := range plugins {
		l := &loaded{plugin: p, bundled: bundled}
		if err := r.declare(l); err != nil {
			r.failLoad(l, err)
			continue
		}
		wait = append(wait, l)
	}
	for len(wait) > 0 {
		i := slices.IndexFunc(wait, func(l *loaded) bool { return r.missing(l) == "" })
		if i < 0 {
			break
		}
		l := wait[i]
		wait = slices.Delete(wait, i, i+1)
		r.load(ctx, l, false)
	}
	for _, l := range wait {
		r.failLoad(l, requires(r.missing(l)))
	}
}

// declare adds a plugin without loading it.
func (r *Registry) declare(l *loaded) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("manifest: panic: %v", v)
		}
	}()
	l.manifest = l.plugin.Manifest()
	if err := check(l); err != nil {
		return err
	}
	r.mu.Lock()
	taken := r.byName[l.manifest.Name] != nil
	r.mu.Unlock()
	if taken { // what it would guard is not that plugin's
		return fmt.Errorf("a plugin named %s is already loaded", l.manifest.Name)
	}
	if err := r.beginGuard(l.manifest); err != nil {
		return fmt.Errorf("what it guards: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName[l.manifest.Name] != nil {
		return fmt.Errorf("a plugin named %s is already loaded", l.manifest.Name)
	}
	if l.ctx, err = r.context(l.manifest); err != nil {
		return err
	}
	l.status = Unloaded
	r.byName[l.manifest.Name] = l
	return nil
}

// check returns an error if a plugin cannot be what its manifest says.
func check(l *loaded) error {
	if err := l.manifest.Check(); err != nil {
		return err
	}
	if _, guards := l.plugin.(Guard); !guards && len(l.manifest.Guards) > 0 {
		return errors.New("its manifest has guards, and it cannot be asked")
	}
	return nil
}

// context returns what a plugin gets.
func (r *Registry) context(m Manifest) (*pluginContext, error) {
	emitter, err := r.cfg.Bus.Plugin(m.Name)
	if err != nil {
		return nil, err
	}
	return &pluginContext{r: r, manifest: m, emitter: emitter, log: r.cfg.Log.With().Str("plugin", m.Name).Logger()}, nil
}

// missing returns the first requirement that is not loaded, "" if none is.
func (r *Registry) missing(l *loaded) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range l.manifest.Requires {
		if other := r.byName[name]; other == nil || other.status != Loaded {
			return name
		}
	}
	return ""
}

// load runs OnLoad and subscribes the plugin.
func (r *Registry) load(ctx context.Context, l *loaded, again bool) {
	on := l.ctx.enabled()
	if l.on != nil {
		on = *l.on
	}
	r.mu.Lock()
	if !slices.Contains(r.order, l) {
		r.order = append(r.order, l)
	}
	l.off = !on
	r.mu.Unlock()
	if !on {
		return // it stays unloaded
	}
	if err := r.tryLoad(ctx, l); err != nil {
		r.failLoad(l, err)
		return
	}
	r.mu.Lock()
	l.status, l.failure, l.failures = Loaded, "", 0
	r.mu.Unlock()
	r.forgetFailure(l.manifest.Name)
	r.settleGuard(l.manifest)
	var err error
	if again {
		_, err = bus.Publish(r.kernel, event.PluginWasReloaded, event.KernelSession, event.PluginReloaded{Name: l.manifest.Name, Version: l.manifest.Version})
	} else {
		_, err = bus.Publish(r.kernel, event.PluginWasLoaded, event.KernelSession, event.PluginLoaded{Name: l.manifest.Name, Version: l.manifest.Version, Category: string(l.manifest.Category)})
	}
	r.report(err)
	if l.manifest.ToolName != "" {
		r.cfg.Tools.DeclareLegacy(l.manifest.Name, l.manifest.ToolName)
	}
}

func (r *Registry) tryLoad(ctx context.Context, l *loaded) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		if err != nil {
			r.unsubscribe(l)
			l.ctx.withdraw()
		}
	}()
	kinds := l.plugin.Subscriptions()
	if err := l.plugin.OnLoad(ctx, l.ctx); err != nil {
		return err
	}
	return r.subscribe(l, kinds)
}

// failLoad records that a plugin could not be loaded, with the details in its state
// directory.
func (r *Registry) failLoad(l *loaded, err error) {
	name := cmp.Or(l.manifest.Name, "(unnamed)")
	r.mu.Lock()
	l.status, l.failure = Failed, r.cfg.Secrets.ConcealString(firstLine(err))
	if !slices.Contains(r.order, l) {
		r.order = append(r.order, l)
	}
	r.mu.Unlock()
	r.cfg.Log.Error().Err(err).Str("plugin", name).Msg("a plugin could not be loaded")
	if namePattern().MatchString(name) {
		werr := r.cfg.State.MkdirAll(name, 0o700)
		if werr == nil {
			werr = r.cfg.State.WriteFile(path.Join(name, failureFile), r.cfg.Secrets.Conceal(fmt.Appendf(nil, "%s\n%v\n", time.Now().UTC().Format(time.RFC3339), err)), 0o600)
		}
		if werr != nil {
			r.cfg.Log.Warn().Err(werr).Str("plugin", name).Msg("the reason could not be written to its state directory")
		}
	}
	r.announce(name, err)
}

// forgetFailure removes the details of an earlier failure to load.
func (r *Registry) forgetFailure(name string) {
	if err := r.cfg.State.Remove(path.Join(name, failureFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.cfg.Log.Warn().Err(err).Str("plugin", name).Msg("the reason of an earlier failure could not be removed")
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (r *Registry) announce(name string, err error) {
	_, perr := bus.Publish(r.kernel, event.PluginFailed, event.KernelSession, event.PluginError{Name: name, Error: firstLine(err)})
	r.report(perr)
}

// report logs errors of publishing; a closed bus has no listeners.
func (r *Registry) report(err error) {
	if err != nil && !errors.Is(err, bus.ErrClosed) {
		r.cfg.Log.Error().Err(err).Msg("a plugin event could not be published")
	}
}

// subscribe subscribes a plugin to the bus.
func (r *Registry) subscribe(l *loaded, kinds []string) error {
	if len(kinds) == 0 {
		return nil
	}
	timeout := r.cfg.Config.Duration("plugins.handler_timeout")
	sub, err := r.cfg.Bus.Subscribe(bus.SubscribeOptions{
		Name: l.manifest.Name, Timeout: timeout, Filter: r.filter(l),
		OnOutcome: func(o bus.Outcome) { r.outcome(l, o) },
		OnEnd: func(err error) {
			if errors.Is(err, bus.ErrLagging) {
				r.background(func() { r.lagging(l, kinds) })
			}
		},
	}, kinds, func(ctx context.Context, ev event.Event) error {
		return l.plugin.OnEvent(ctx, ev, l.ctx)
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	l.subs, l.kinds = append(l.subs, sub), kinds
	r.mu.Unlock()
	return nil
}

// background runs f on a goroutine that Stop waits for.
func (r *Registry) background(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.work.Go(f)
	}
}

func (r *Registry) unsubscribe(l *loaded) {
	r.mu.Lock()
	subs := l.subs
	l.subs = nil
	r.mu.Unlock()
	for _, s := range subs {
		s.Close()
	}
}

// Seed writes the first provider instances.
func (r *Registry) Seed() error {
	var names []string
	r.mu.Lock()
	for _, l := range r.order {
		if l.manifest.Category == LLMProvider && l.status == Loaded {
			names = append(names, l.manifest.Name)
		}
	}
	r.mu.Unlock()
	return r.cfg.Config.SeedProviders(names)
}

// Reload unloads a plugin and loads it again, even one that has failed.
func (r *Registry) Reload(ctx context.Context, name string) error {
	r.mu.Lock()
	l := r.byName[name]
	status := State("")
	if l != nil {
		status = l.status
	}
	r.mu.Unlock()
	if l == nil {
		return fmt.Errorf("there is no plugin %s", name)
	}
	switch status {
	case Loaded:
		if err := r.unload(l, Unloaded); err != nil {
			return err
		}
	case Unloading:
		return ErrUnloading
	case Failed, Unloaded:
	}
	r.load(ctx, l, true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.status != Loaded {
		return fmt.Errorf("plugin %s: %s", name, cmp.Or(l.failure, "it is switched off"))
	}
	return nil
}

// forget unloads a plugin, whatever its state, and takes it off the list.
func (r *Registry) forget(l *loaded) error {
	err := r.unload(l, Unloaded)
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.status == Unloading {
		return err // by somebody else
	}
	r.order = slices.DeleteFunc(slices.Clone(r.order), func(o *loaded) bool { return o == l })
	if r.byName[l.manifest.Name] == l {
		delete(r.byName, l.manifest.Name)
	}
	if errors.Is(err, ErrUnloading) {
		return nil // it was not loaded
	}
	return err
}

// Remove unloads a plugin permanently. Bundled ones stay.
func (r *Registry) Remove(name string) error {
	r.mu.Lock()
	l := r.byName[name]
	r.mu.Unlock()
	switch {
	case l == nil:
		return fmt.Errorf("there is no plugin %s", name)
	case l.bundled:
		return fmt.Errorf("plugin %s is a part of yaya: switch it off: %s", name, r.cfg.Config.Remedy("plugin."+config.Namespace(name)+".enabled", "false"))
	}
	if err := r.unload(l, Unloaded); err != nil {
		return err
	}
	return r.endGuard(name)
}

// Forget is [Registry.Remove] for a plugin that is uninstalled: it can have failed, and is
// no longer listed.
func (r *Registry) Forget(name string) error {
	r.mu.Lock()
	l := r.byName[name]
	r.mu.Unlock()
	switch {
	case l == nil:
		return fmt.Errorf("there is no plugin %s", name)
	case l.bundled:
		return fmt.Errorf("plugin %s is a part of yaya and cannot be uninstalled", name)
	}
	return errors.Join(r.forget(l), r.endGuard(name))
}

// Stop unloads all plugins, the last loaded first, and waits until no goroutine
// of the registry is left.
func (r *Registry) Stop() error {
	r.mu.Lock()
	r.stopped = true
	all := slices.Clone(r.order)
	r.mu.Unlock()
	r.work.Wait()
	var errs []error
	for _, l := range slices.Backward(all) {
		r.mu.Lock()
		up := l.status == Loaded
		r.mu.Unlock()
		if up {
			errs = append(errs, r.unload(l, Unloaded))
		}
	}
	r.router.Close()
	if r.counts != nil {
		r.counts.Close()
	}
	return errors.Join(errs...)
}
