package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Config describes a plugin to run. Folder, Description and Procs are required.
type Config struct {
	Folder      string // absolute, without symbolic links
	Description Description
	Procs       *proc.Manager
	// Sandboxes runs the program in the profile "plugin"; nil runs it without a sandbox.
	Sandboxes *sandbox.Sandboxes
	// Env looks up a variable of yaya's environment; nil has none.
	Env func(string) (string, bool)
	// Verify is called before each start; its error refuses it. Optional.
	Verify func() error
	// Current holds the plugin that the tools of this one lead to once it is unloaded: its
	// successor. Optional.
	Current *Current
	Version string // of yaya
}

// Current holds the loaded one among the plugins of one name. The zero value holds none.
type Current struct{ p atomic.Pointer[Plugin] }

// Plugin is a plugin out of process; it implements [plugin.Plugin],
// [plugin.HealthChecker] and [plugin.Guard].
type Plugin struct {
	cfg    Config
	calls  chan struct{} // tool calls that may run
	logs   *rate.Limiter
	starts chan struct{} // holds a value while nobody starts the process

	mu       sync.Mutex
	c        plugin.Context // while it is loaded
	conn     *conn          // the last process; nil before the first
	ready    *conn          // prepared, and not in use yet
	tools    []Tool
	exits    int // in a row, without a success between them
	exited   time.Time
	why      error     // of the last exit or failed start
	failing  bool      // the last event was a failure
	decided  time.Time // when it last answered as a guard
	silenced int       // log lines that were dropped
	denials  int
	denied   string // the last connection that the sandbox refused
	retired  sync.WaitGroup
	leaving  map[*conn]bool // processes whose calls go on
}

// New returns a plugin that is not started.
func New(cfg Config) *Plugin {
	if cfg.Env == nil {
		cfg.Env = func(string) (string, bool) { return "", false }
	}
	if cfg.Current == nil {
		cfg.Current = new(Current)
	}
	p := &Plugin{cfg: cfg, calls: make(chan struct{}, MaxCalls), logs: rate.NewLimiter(LogRate, LogBurst), starts: make(chan struct{}, 1), leaving: map[*conn]bool{}}
	p.starts <- struct{}{}
	return p
}

// Manifest implements [plugin.Plugin].
func (p *Plugin) Manifest() plugin.Manifest { return p.cfg.Description.Manifest() }

// Subscriptions implements [plugin.Plugin].
func (p *Plugin) Subscriptions() []string { return slices.Clone(p.cfg.Description.Subscriptions) }

// Prepare implements [plugin.Preparer]: it starts the process.
func (p *Plugin) Prepare(ctx context.Context, c plugin.Context) (tools []string, err error) {
	p.reset(c)
	cn, told, err := p.start(ctx, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.c, p.ready = nil, nil
		return nil, err
	}
	p.ready, p.tools = cn, told.Tools
	for _, t := range told.Tools {
		tools = append(tools, t.Name)
	}
	return tools, nil
}

// reset makes a plugin one that is being loaded.
func (p *Plugin) reset(c plugin.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.c, p.exits, p.failing, p.why, p.tools = c, 0, false, nil, nil
}

// OnLoad implements [plugin.Plugin]: it starts the process, unless it is prepared, and registers
// its tools.
func (p *Plugin) OnLoad(ctx context.Context, c plugin.Context) error {
	p.mu.Lock()
	cn := p.ready
	p.mu.Unlock()
	if cn == nil || !cn.alive() {
		if cn != nil {
			cn.finish(ctx)
		}
		if _, err := p.Prepare(ctx, c); err != nil {
			return err
		}
	}
	p.mu.Lock()
	cn, p.ready = p.ready, nil
	p.conn = cn
	tools := p.tools
	p.mu.Unlock()
	p.cfg.Current.p.Store(p) // a tool can be called as soon as it is registered
	for _, t := range tools {
		if err := c.RegisterTool(&remoteTool{p.cfg.Current, t.definition()}); err != nil {
			p.mu.Lock()
			p.c, p.conn = nil, nil
			p.mu.Unlock()
			cn.stop(ctx)
			return err
		}
	}
	return nil
}

var errUnloaded = errors.New("the plugin is not loaded")

// connected returns the running process, and starts it again if it has exited.
func (p *Plugin) connected(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	cn, c := p.conn, p.c
	p.mu.Unlock()
	switch {
	case c == nil:
		return nil, errUnloaded
	case cn != nil && cn.alive():
		return cn, nil
	}
	select {
	case <-p.starts:
		defer func() { p.starts <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	cn, c = p.conn, p.c
	wait := time.Until(p.exited.Add(pause(p.exits)))
	p.mu.Unlock()
	if c == nil {
		return nil, errUnloaded
	}
	if cn != nil && cn.alive() { // somebody else has started it
		return cn, nil
	}
	if cn != nil {
		cn.finish(ctx)
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: it starts again in %v", p.reason(), wait.Round(time.Second))
		}
	}
	return p.restart(ctx, c)
}

// restart starts the process of a loaded plugin again.
func (p *Plugin) restart(ctx context.Context, c plugin.Context) (*conn, error) {
	cn, told, err := p.start(ctx, c)
	if err != nil {
		p.mu.Lock()
		p.exits++
		p.exited, p.why = time.Now(), err
		p.mu.Unlock()
		return nil, err
	}
	p.mu.Lock()
	same, loaded := reflect.DeepEqual(told.Tools, p.tools), p.c == c
	if same && loaded {
		p.conn = cn
	}
	p.mu.Unlock()
	switch {
	case !loaded:
		cn.stop(ctx)
		return nil, errUnloaded
	case !same:
		cn.stop(ctx)
		return nil, errors.New("it describes other tools than before: reload it (yaya plugin reload)")
	}
	return cn, nil
}

// pause is the time from an exit to the next start: none after the first, then from a second
// to a minute.
func pause(exits int) time.Duration {
	if exits <= 1 {
		return 0
	}
	return backoff.Pause(time.Second, time.Minute, exits-2)
}

func (p *Plugin) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil {
		return p.why
	}
	return errors.New("its process is not running")
}

// succeeded ends a row of failures.
func (p *Plugin) succeeded() {
	p.mu.Lock()
	c, row := p.c, p.exits > 0 || p.failing
	p.exits, p.failing = 0, false
	p.mu.Unlock()
	if row && c != nil {
		c.Report(nil)
	}
}

// OnEvent implements [plugin.Plugin].
func (p *Plugin) OnEvent(ctx context.Context, ev event.Event, _ plugin.Context) error {
	cn, err := p.connected(ctx)
	if err == nil {
		asked := serves[plugin.Category(p.cfg.Description.Category)] == ev.Kind
		if asked {
			cn.gave(ev)
		}
		deadline, _ := ctx.Deadline()
		_, err = cn.call(ctx, MethodEvent, sentEvent{ev, max(time.Until(deadline).Milliseconds(), 0)}, nil)
		if err != nil && asked {
			cn.took(ev.ID)
		}
	}
	if err == nil {
		p.succeeded()
		return nil
	}
	p.mu.Lock()
	p.failing = true
	p.mu.Unlock()
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Errorf("the plugin answered: %w", e)
	}
	return err
}

// sentEvent are [EventParams] as the kernel marshals them.
type sentEvent struct {
	Event      event.Event `json:"event"`
	DeadlineMS int64       `json:"deadline_ms"`
}

// lost implements [incoming].
func (p *Plugin) lost(cn *conn, err error, told bool) {
	p.mu.Lock()
	c := p.c
	current := p.conn == cn
	if current {
		p.exits++
		p.exited, p.why = time.Now(), err
	}
	p.mu.Unlock()
	if c == nil || !current {
		return
	}
	for _, id := range cn.unanswered() {
		c.Fail(id, fmt.Errorf("plugin %s failed: %w", p.cfg.Description.Name, err))
	}
	if !told {
		c.Report(err)
	}
}

// OnUnload implements [plugin.Plugin]. Tool calls that run go on, unless the plugin fails.
func (p *Plugin) OnUnload(ctx context.Context, _ plugin.Context) error {
	p.mu.Lock()
	cn, failing := cmp.Or(p.conn, p.ready), p.failing
	p.c, p.conn, p.ready = nil, nil, nil
	goesOn := cn != nil && !failing && cn.busy()
	if goesOn {
		p.leaving[cn] = true
		p.retired.Go(func() { p.retire(cn) })
	}
	p.mu.Unlock()
	switch {
	case cn == nil, goesOn:
	case failing:
		cn.kill()
	default:
		cn.stop(ctx)
	}
	return nil
}

// retire ends a process once its calls have ended.
func (p *Plugin) retire(cn *conn) {
	cn.settle()
	cn.stop(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leaving, cn)
}

// Close waits for the processes whose calls have outlived their plugin, and kills them when
// ctx ends. The plugin was unloaded before.
func (p *Plugin) Close(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		left := slices.Collect(maps.Keys(p.leaving))
		p.mu.Unlock()
		for _, cn := range left {
			cn.p.Kill()
		}
	})
	defer stop()
	p.retired.Wait()
	return nil
}

// Leaving reports whether a process of it goes on with calls, although it is no longer loaded.
func (p *Plugin) Leaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.leaving) > 0
}

// Idle reports whether a plugin is not loaded, and no process of it runs.
func (p *Plugin) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.c == nil && len(p.leaving) == 0
}

// HealthCheck implements [plugin.HealthChecker].
func (p *Plugin) HealthCheck(ctx context.Context, _ plugin.Context) plugin.HealthReport {
	p.mu.Lock()
	cn, why, denials, denied := p.conn, p.why, p.denials, p.denied
	p.mu.Unlock()
	if cn == nil || !cn.alive() {
		return plugin.HealthReport{Status: plugin.Failing, Summary: stopped(why).Error()}
	}
	report := p.asked(ctx, cn)
	if denials > 0 {
		if report.Status == plugin.Healthy {
			report.Status = plugin.Degraded
		}
		report.Details = append(report.Details, plugin.HealthCheck{Name: "sandbox", Status: plugin.Degraded, Message: fmt.Sprintf("%s; the last: %s", worded.Count(denials, "connection was refused", "connections were refused"), denied)})
	}
	return report
}

// stopped says that the process does not run.
func stopped(why error) error {
	if why == nil {
		why = errors.New("its process is not running")
	}
	return fmt.Errorf("%w; the next call starts it again", why)
}

// Trouble implements [plugin.Troubled].
func (p *Plugin) Trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || p.conn.alive() {
		return nil
	}
	return stopped(p.why)
}

// asked asks the plugin how it is.
func (p *Plugin) asked(ctx context.Context, cn *conn) plugin.HealthReport {
	raw, err := cn.call(ctx, MethodHealth, Nothing{}, nil)
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound {
		return plugin.HealthReport{Status: plugin.Healthy, Summary: plugin.NoChecks}
	}
	var told HealthResult
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil {
		return plugin.HealthReport{Status: plugin.Degraded, Summary: "the check failed: " + oneLine(err.Error())}
	}
	report := plugin.HealthReport{Status: plugin.Health(told.Status), Summary: oneLine(told.Summary)}
	for _, d := range told.Details[:min(len(told.Details), 64)] {
		check := plugin.HealthCheck{Name: oneLine(d.Name), Status: plugin.Health(d.Status), Message: oneLine(d.Message)}
		switch check.Status {
		case plugin.Healthy, plugin.Degraded, plugin.Failing:
		default:
			check.Status = plugin.Degraded
		}
		report.Details = append(report.Details, check)
	}
	return report
}

// PID returns the process id of the program, 0 if it does not run.
func (p *Plugin) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || !p.conn.alive() {
		return 0
	}
	return p.conn.pid()
}
