package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Config assembles a host. Registry and Dispatcher are required.
type Config struct {
	Registry   *tool.Registry
	Dispatcher *tool.Dispatcher
	Log        zerolog.Logger
	// StartGrace is how long a boundary waits for providers that are in their
	// first start, counted from their installation. Default 5 s.
	StartGrace time.Duration
	// OnStatus is called after every change of a provider's state, in order per
	// provider. It must not block.
	OnStatus func(Status)
	// Mask returns a text without the secrets in it; nil leaves texts as they are.
	Mask func(string) string
}

// Timing of the supervision.
const (
	startTimeout     = 20 * time.Second
	startMax         = 5 * time.Minute // for a start that computes
	workLook         = time.Second     // between two checks for progress
	workLeast        = 20 * time.Millisecond
	stopTimeout      = 6 * time.Second
	backoffFirst     = time.Second
	backoffMax       = 60 * time.Second
	healthyReset     = 5 * time.Minute
	demandFloor      = 500 * time.Millisecond // between attempts that calls ask for
	discoverInterval = 5 * time.Second        // between discoveries after list changes
	boundaryTimeout  = 5 * time.Second        // of a discovery at a boundary
)

var (
	// ErrDuplicate reports that a provider with the same id is installed.
	ErrDuplicate = errors.New("a provider with that id is already installed")
	// ErrClosed reports that the host was closed.
	ErrClosed = errors.New("the feature host is closed")
)

// Host runs contributions. Its methods are safe for concurrent use.
type Host struct {
	cfg    Config
	ctx    context.Context // a base context: of tasks and providers, which outlive the call that installs them
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	providers map[string]*supervisor
	services  []Service
	diags     []string
	watchers  map[int]func(providers []string)
	watchSeq  int
	announced *tool.Snapshot // generation known to watchers
}

// NewHost returns an empty host.
func NewHost(cfg Config) *Host {
	cfg.StartGrace = cmp.Or(cfg.StartGrace, 5*time.Second)
	h := &Host{cfg: cfg, providers: map[string]*supervisor{}, watchers: map[int]func([]string){}, announced: new(tool.Snapshot)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Install installs a contribution: it registers tools and hooks, starts services in
// order, and starts tasks and providers. Providers start in parallel and in the
// background. On an error, Install stops the services that it started and registers
// none of c's tools.
func (h *Host) Install(ctx context.Context, c Contribution) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	for _, p := range c.Providers {
		if id := p.Info().ID; id == "" || h.providers[id] != nil {
			return fmt.Errorf("install %s: provider %q: %w", c.Name, id, ErrDuplicate)
		}
	}
	var started []Service
	for _, s := range c.Services {
		started = append(started, s)
		if err := s.Start(ctx); err != nil {
			errs := []error{fmt.Errorf("install %s: service %s: %w", c.Name, s.Name(), err)}
			for _, s := range slices.Backward(started) {
				errs = append(errs, s.Stop(ctx))
			}
			return errors.Join(errs...)
		}
	}
	if err := h.cfg.Registry.Register(c.Tools...); err != nil {
		errs := []error{fmt.Errorf("install %s: %w", c.Name, err)}
		for _, s := range slices.Backward(started) {
			errs = append(errs, s.Stop(ctx))
		}
		return errors.Join(errs...)
	}
	h.services = append(h.services, started...)
	for _, hook := range c.Hooks {
		h.cfg.Dispatcher.AddHook(hook)
	}
	for _, t := range c.Tasks {
		h.tasks.Go(func() {
			if err := t.Run(h.ctx); err != nil && h.ctx.Err() == nil {
				h.diagnose(fmt.Sprintf("background task %s ended: %v", t.Name, err))
			}
		})
	}
	for _, p := range c.Providers {
		s := newSupervisor(h, p)
		h.providers[p.Info().ID] = s
		go s.run()
	}
	return nil
}

const maxDiagnostics = 32

func (h *Host) diagnose(msg string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.diags = append(h.diags, h.clean(msg))
	if len(h.diags) > maxDiagnostics {
		h.diags = slices.Clone(h.diags[len(h.diags)-maxDiagnostics:])
	}
}

// Diagnostics returns events of services and tasks, oldest first.
func (h *Host) Diagnostics() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.diags)
}

// Remove stops a provider, waits for it and removes its tools. It reports whether
// the provider existed.
func (h *Host) Remove(id string) bool {
	h.mu.Lock()
	s := h.providers[id]
	delete(h.providers, id)
	h.mu.Unlock()
	if s == nil {
		return false
	}
	s.stop()
	h.cfg.Registry.Replace(id, nil)
	h.changed()
	return true
}

// Close stops everything in the reverse order of its start and returns when nothing
// runs.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	all := make([]*supervisor, 0, len(h.providers))
	for _, s := range h.providers {
		all = append(all, s)
	}
	services := h.services
	h.services = nil
	h.mu.Unlock()

	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(s.stop)
	}
	wg.Wait()
	h.cancel()
	h.tasks.Wait()
	var errs []error
	for _, s := range slices.Backward(services) {
		if err := s.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop service %s: %w", s.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// Watch calls f whenever the offered tools have changed or may have, with the providers
// of those tools, "" for yaya itself: after a change the caller should call
// [Host.Boundary] again. f must not block.
func (h *Host) Watch(f func(providers []string)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchSeq++
	id := h.watchSeq
	h.watchers[id] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, id)
	}
}

// changed notifies the watchers, unless nothing is new: neither the snapshot has
// changed since the last time nor does a provider have to list its tools again.
func (h *Host) changed() {
	generation := h.cfg.Registry.Snapshot().Generation()
	var dirty []string
	for _, s := range h.supervisors() {
		s.mu.Lock()
		if s.dirty {
			dirty = append(dirty, s.info.ID)
		}
		s.mu.Unlock()
	}
	h.mu.Lock()
	news := generation != h.announced.Generation() || len(dirty) > 0
	h.mu.Unlock()
	if news {
		h.announce(dirty...)
	}
}

// announce notifies the watchers that the tools of some providers may have changed,
// together with those that have changed since the last time.
func (h *Host) announce(providers ...string) {
	snap := h.cfg.Registry.Snapshot()
	h.mu.Lock()
	providers = append(providers, snap.ChangedSince(h.announced)...)
	h.announced = snap
	fs := make([]func([]string), 0, len(h.watchers))
	for _, f := range h.watchers {
		fs = append(fs, f)
	}
	h.mu.Unlock()
	slices.Sort(providers)
	providers = slices.Compact(providers)
	for _, f := range fs {
		f(providers)
	}
}

func (h *Host) supervisors() []*supervisor {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*supervisor, 0, len(h.providers))
	for _, s := range h.providers {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *supervisor) int { return strings.Compare(a.info.ID, b.info.ID) })
	return all
}

// Boundary brings the registry up to date and returns its snapshot: it waits,
// within the grace, for providers in their first start, and discovers
// again where tools have changed. Call it where a turn begins or a client
// lists tools.
func (h *Host) Boundary(ctx context.Context) *tool.Snapshot {
	var wg sync.WaitGroup
	for _, s := range h.supervisors() {
		if s.needsBoundary() {
			wg.Go(func() { s.boundary(ctx) })
		}
	}
	wg.Wait()
	return h.cfg.Registry.Snapshot()
}

// Settle waits, within the grace, for providers in their first start.
func (h *Host) Settle(ctx context.Context) {
	for _, s := range h.supervisors() {
		ctx, cancel := context.WithDeadline(ctx, s.born.Add(h.cfg.StartGrace))
		s.settled(ctx)
		cancel()
	}
}

// Status returns the state of every provider, by id.
func (h *Host) Status() []Status {
	all := h.supervisors()
	out := make([]Status, len(all))
	for i, s := range all {
		out[i] = s.status()
	}
	return out
}

// WaitReady waits until a provider is ready; if it is not when ctx ends, the error
// says why.
func (h *Host) WaitReady(ctx context.Context, id string) error {
	h.mu.Lock()
	s := h.providers[id]
	h.mu.Unlock()
	if s == nil {
		return fmt.Errorf("provider %q not found", id)
	}
	return s.await(ctx)
}

// clean makes an error safe to show: it masks secrets and then applies [Clean].
func (h *Host) clean(text string) string {
	if h.cfg.Mask != nil {
		text = h.cfg.Mask(text)
	}
	return Clean(text, 1024)
}
