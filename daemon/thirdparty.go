package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// thirdParty loads the plugins that the user has installed. It implements [admin.Installer].
type thirdParty struct {
	c     *core
	store *installed.Store

	mu       sync.Mutex
	busy     map[string]chan struct{} // plugins that are being changed; closed at the end of it
	current  map[string]*remote.Current
	made     []*remote.Plugin
	edited   map[string]*installed.Watch // editable ones, by name
	held     proposals
	fetching chan struct{} // holds a value while a client runs
	more     chan struct{} // holds a value when one was added

	stop     context.CancelFunc
	watching sync.WaitGroup
}

func newThirdParty(c *core) *thirdParty {
	t := &thirdParty{c: c, store: installed.NewStore(c.st.at.data), busy: map[string]chan struct{}{}, current: map[string]*remote.Current{}, edited: map[string]*installed.Watch{}, more: make(chan struct{}, 1), fetching: make(chan struct{}, 1), stop: func() {}}
	t.held.failed = t.notRemoved
	return t
}

// load loads all, in the order in which they are discovered. One that cannot be loaded keeps
// nobody else from it.
func (t *thirdParty) load(ctx context.Context) {
	t.loadIf(ctx, func(plugin.Plugin) bool { return true })
	t.watching.Go(func() { t.notRemoved(removeStale(os.TempDir(), time.Now())) })
}

// loadIf is load for the plugins that are wanted.
func (t *thirdParty) loadIf(ctx context.Context, wanted func(plugin.Plugin) bool) {
	entries, err := t.store.List()
	if err != nil {
		t.c.st.at.log.Error().Err(err).Msg("not every installed plugin can be read")
	}
	var all []plugin.Plugin
	for _, e := range entries {
		p, err := t.plugin(e)
		if err == nil {
			err = collision(p.Manifest(), all)
		}
		if err != nil {
			p = broken{e, err}
		}
		if !wanted(p) {
			t.unwatch(e.Name)
			continue
		}
		all = append(all, p)
	}
	all = append(all, t.missing(entries)...)
	t.c.kernel.Plugins.Load(ctx, false, all...)
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.mu.Lock()
	t.stop = cancel
	t.mu.Unlock()
	t.watching.Go(func() { lookWhile(watch, t.more, t.look) })
}

// broken is a plugin whose description cannot be read: it is listed with the reason.
type broken struct {
	installed.Entry
	err error
}

func (b broken) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: b.Name, Version: b.Version, Category: plugin.Skill}
}
func (broken) Subscriptions() []string                                    { return nil }
func (b broken) OnLoad(context.Context, plugin.Context) error             { return b.err }
func (broken) OnUnload(context.Context, plugin.Context) error             { return nil }
func (broken) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// plugin makes the plugin of an entry.
func (t *thirdParty) plugin(e installed.Entry) (plugin.Plugin, error) {
	d, parts, err := e.Describe()
	if err == nil && d.Name != e.Name {
		err = fmt.Errorf("%s says that it is %q", e.Folder(), d.Name)
	}
	if err == nil {
		if holder := t.c.kernel.Plugins.Holder(d.Manifest()); holder != "" {
			err = collides(d.Manifest(), holder)
		}
	}
	if err != nil {
		return nil, err
	}
	if parts != nil {
		t.watch(e)
		m := d.Manifest()
		m.Guards = guards(parts.Hooks)
		return &agentPackage{all: t.c.packages, e: e, m: m, parts: parts}, nil
	}
	return t.process(e, d), nil
}

// process makes a plugin that is a process.
func (t *thirdParty) process(e installed.Entry, d remote.Description) *remote.Plugin {
	t.mu.Lock()
	if t.current[e.Name] == nil {
		t.current[e.Name] = new(remote.Current)
	}
	p := remote.New(remote.Config{
		Folder: e.Folder(), Description: d, Procs: t.c.procs, Sandboxes: t.c.st.sandboxes, Env: os.LookupEnv,
		Verify: e.Verify, Current: t.current[e.Name], Version: Version(),
	})
	t.made = append(slices.DeleteFunc(t.made, (*remote.Plugin).Idle), p)
	var old []*remote.Plugin // whose calls go on
	for _, m := range t.made {
		if m.Manifest().Name == e.Name && m.Leaving() {
			old = append(old, m)
		}
	}
	t.mu.Unlock()
	for _, m := range old[:max(len(old)+1-maxLeaving, 0)] { // the present one is about to leave, too
		t.c.st.at.log.Warn().Str("plugin", e.Name).Msg("the plugin was loaded again too often while calls ran: those in its oldest process end")
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.Close(now)
	}
	t.watch(e)
	return p
}

// maxLeaving is how many earlier processes of a plugin may go on with their calls.
const maxLeaving = 3

// change waits until nobody else changes a plugin. The returned function lets others do so.
func (t *thirdParty) change(name string) (done func()) {
	for {
		t.mu.Lock()
		other := t.busy[name]
		if other == nil {
			mine := make(chan struct{})
			t.busy[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.busy, name)
				close(mine)
			}
		}
		t.mu.Unlock()
		<-other
	}
}

// unwatch looks at the files of a plugin no longer.
func (t *thirdParty) unwatch(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.edited, name)
}

// watch looks at the files of an editable plugin from now on.
func (t *thirdParty) watch(e installed.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Editable {
		t.edited[e.Name] = installed.NewWatch(e.Folder())
		select {
		case t.more <- struct{}{}:
		default: // somebody is about to learn of it
		}
	} else {
		delete(t.edited, e.Name)
	}
}

// switchedOn reports whether the settings let a plugin run.
func switchedOn(settings *config.Store, name string) bool {
	v, _, ok := settings.Get("plugin." + config.Namespace(name) + ".enabled")
	return !ok || string(v) != "false"
}

// replace loads a plugin in the place of the one of its name, in one of the ways that the kernel
// knows.
func (t *thirdParty) replace(ctx context.Context, e installed.Entry, way func(context.Context, plugin.Plugin) error) error {
	p, err := t.plugin(e)
	if err != nil {
		t.c.kernel.Plugins.Stale(e.Name, err)
		return err
	}
	return way(ctx, p)
}

// forgetPermits forgets what the servers of a package were allowed: other files are not allowed that.
func (t *thirdParty) forgetPermits(e installed.Entry) error {
	return t.c.st.permits.Forget(sandbox.Real(e.Folder()))
}

// Reload implements [admin.Installer].
func (t *thirdParty) Reload(ctx context.Context, name, digest string) error {
	defer t.change(name)()
	e, err := t.store.Get(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no installed plugin %s", admin.ErrRefused, name)
	}
	if err == nil && digest != "" {
		if err = t.forgetPermits(e); err == nil {
			e, err = t.store.Accept(name, digest)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	return t.replace(context.WithoutCancel(ctx), e, t.c.kernel.Plugins.Restart)
}

// Uninstall implements [admin.Installer].
func (t *thirdParty) Uninstall(_ context.Context, name string, purge bool) error {
	defer t.change(name)()
	t.unwatch(name)
	e, unread := t.store.Get(name)
	err := t.c.kernel.Plugins.Forget(name)
	// A plugin that is installed again, such as a guard, must not be silently switched off.
	_, unset := t.c.st.at.settings.Unset("plugin." + config.Namespace(name) + ".enabled")
	err = errors.Join(err, unset)
	if unread == nil {
		err = errors.Join(err, t.forgetPermits(e))
	}
	return errors.Join(err, t.store.Remove(name, purge))
}

// lookEach is the time between two looks at the files of editable plugins.
const lookEach = 250 * time.Millisecond

// lookWhile looks again and again, from a value of more until look finds nothing to look at,
// and from the next value on again.
func lookWhile(ctx context.Context, more <-chan struct{}, look func(context.Context) bool) {
	tick := time.NewTicker(lookEach)
	tick.Stop()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-more:
			tick.Reset(lookEach)
		case <-tick.C:
			if !look(ctx) {
				tick.Stop()
			}
		}
	}
}

// look begins to load editable plugins again whose files have changed, and reports whether there are
// any. One that does not answer holds up no other.
func (t *thirdParty) look(ctx context.Context) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, w := range t.edited {
		if t.busy[name] == nil && w.Changed() {
			t.watching.Go(func() { t.renew(ctx, name) })
		}
	}
	return len(t.edited) > 0
}

func (t *thirdParty) renew(ctx context.Context, name string) {
	defer t.change(name)()
	e, err := t.store.Get(name)
	if err == nil {
		err = t.replace(ctx, e, t.c.kernel.Plugins.Renew)
	}
	if err != nil && ctx.Err() == nil {
		t.c.st.at.log.Warn().Err(err).Str("plugin", name).Msg("the changed plugin was not loaded")
	}
}

// endWatch ends the watching of files, before the kernel stops.
func (t *thirdParty) endWatch() {
	t.mu.Lock()
	stop := t.stop
	t.mu.Unlock()
	stop()
	t.watching.Wait()
}

// Close waits for the processes whose calls have outlived their plugin.
func (t *thirdParty) Close(ctx context.Context) error {
	t.mu.Lock()
	made := t.made
	t.mu.Unlock()
	errs := []error{t.held.close()}
	for _, p := range made {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}

// InstalledPackage describes the present files of an installed plugin.
func InstalledPackage(g *Flags, name string) (shown admin.PluginPackage, err error) {
	p, err := g.Paths()
	if err != nil {
		return shown, err
	}
	data, err := os.OpenRoot(p.Data)
	if err != nil {
		return shown, fmt.Errorf("data directory: %w", err)
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	present, err := installed.NewStore(data).Present(name)
	if err != nil {
		return shown, err
	}
	shown, err = pluginPackage(present, nil)
	shown.Changes = present.Changes
	return shown, errors.Join(err, present.Close())
}
