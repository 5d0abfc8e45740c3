// Package kernel assembles the kernel: the bus, the sessions, the registry of
// plugins, the tools with their one dispatcher, the approvals, and the loop.
// Everything else is a plugin, and the kernel knows none of them by name.
//
// [Open] assembles, [Kernel.Start] loads plugins in the order given, and
// [Kernel.Stop] stops everything in reverse order. Parts of the data directory that
// only one process may use are locked one by one, tape by tape.
package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// refreshEvery is how often the kernel checks for configuration changes of other
// processes; a check costs one stat.
const refreshEvery = time.Second

// Config assembles a kernel. Data and Settings are required.
type Config struct {
	Data      *os.Root // the data directory
	Settings  *config.Store
	Workspace string // of sessions that are opened without one
	Version   string
	Observer  tool.Observer // sees every tool call
	// Asker returns how to ask whoever makes a call; see [approval.Config].
	Asker func(tool.Call) approval.Ask
	// Audit is called with every answer to an ask; see [approval.Config].
	Audit func(approval.Request, approval.Decision) error
	// Denied is called with every denial by a plugin that guards. Optional.
	Denied func(plugin.Denial) error
	// Scopes are those that rules and profiles may name.
	Scopes []string
	// Secrets are concealed in events, tapes, artifacts and results of tools.
	// Optional.
	Secrets *masked.Secrets
	// Owner says which sessions this node of a cluster may write to; nil: all.
	Owner session.Owner
	// Models is the catalogue of models; nil: the one that comes with yaya.
	Models *models.Catalogue
	// Synced is called with the time of every fsync of a tape. Optional.
	Synced func(time.Duration)
	Log    zerolog.Logger
}

// Kernel is the kernel. The composition root uses its parts directly; plugins get
// their [plugin.Context] instead.
type Kernel struct {
	Bus       *bus.Bus
	Settings  *config.Store
	Sessions  *session.Manager
	Tools     *tool.Registry
	Dispatch  *tool.Dispatcher
	Artifacts *tool.Store
	Approvals *approval.Runtime
	Loop      *loop.Loop
	Plugins   *plugin.Registry

	cfg      Config
	later    later
	sessions *os.Root // sessions/, for artifacts
	state    *os.Root // plugins/

	stopServing func()
	background  context.Context // a base context: of the parts that run until Stop
	endOfDay    context.CancelFunc
	work        sync.WaitGroup
	stop        sync.Once
	endTurns    sync.Once
	failed      chan error
}

// Open assembles the parts and starts those that serve others.
func Open(cfg Config) (k *Kernel, err error) {
	k = &Kernel{cfg: cfg, Settings: cfg.Settings, Tools: &tool.Registry{Log: cfg.Log}, failed: make(chan error, 1)}
	k.background, k.endOfDay = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Stop(context.Background(), "start failed"))
		}
	}()
	if k.sessions, err = sub(cfg.Data, "sessions"); err != nil {
		return k, err
	}
	if k.state, err = sub(cfg.Data, "plugins"); err != nil {
		return k, err
	}
	tapes := journal.Root(cfg.Data)
	if cfg.Synced != nil {
		tapes = journal.Timed(tapes, cfg.Synced)
	}
	k.Sessions, err = session.OpenManager(session.Config{
		FS: tapes, Workspace: cfg.Workspace, Owner: cfg.Owner, Adopted: k.adopted, Secrets: cfg.Secrets, Log: cfg.Log,
		HeartbeatTimeout: cfg.Settings.Duration("session.heartbeat_timeout"), ReapInterval: cfg.Settings.Duration("session.reap_interval"),
	})
	if err != nil {
		return k, err
	}
	k.Bus = bus.New(bus.Config{OnOutcome: k.outcome, Recorder: k.Sessions, Secrets: cfg.Secrets})
	k.Sessions.Bind(k.Bus)
	cfg.Settings.Bind(k.Bus)
	k.Artifacts = tool.NewStore(k.sessions)
	k.Artifacts.Secrets = cfg.Secrets
	k.Artifacts.Saved = func(id, name string) { k.Sessions.Saved(id, "sessions/"+name) }
	if err := k.decide(); err != nil {
		return k, err
	}
	if k.stopServing, err = k.Dispatch.Serve(k.background, k.Bus); err != nil {
		return k, err
	}
	reader, err := tool.NewReadArtifact(k.Artifacts)
	if err != nil {
		return k, err
	}
	if err := k.Tools.Register(reader); err != nil {
		return k, err
	}
	if err := k.drive(); err != nil {
		return k, err
	}
	k.watch("sessions", k.Sessions.Run)
	k.watch("settings", k.refresh)
	return k, nil
}

func sub(root *os.Root, name string) (*os.Root, error) {
	if err := root.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	r, err := root.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return r, nil
}

// decide sets up policy and approval of tool calls.
func (k *Kernel) decide() (err error) {
	k.Approvals, err = approval.New(approval.Config{
		Bus: k.Bus, Ledger: ledger{k.Sessions}, Secrets: k.cfg.Secrets, Log: k.cfg.Log,
		Audience: k.audience, Asker: k.cfg.Asker, Audit: k.cfg.Audit,
		Timeout: k.askTimeout,
	})
	if err != nil {
		return err
	}
	k.Tools.SetView(k.later.view)
	k.Dispatch = tool.NewDispatcher(tool.DispatcherConfig{
		Registry: k.Tools, Observer: k.cfg.Observer, Artifacts: k.Artifacts, Secrets: k.cfg.Secrets, Log: k.cfg.Log,
		Policy: approval.Policy{Rules: config.Derive(k.Settings, k.rules)}, Approver: k.Approvals, Agent: k.agent,
	})
	k.Dispatch.SetLimit(k.planning)
	return nil
}

// sessionAskTimeout is how long asks of a session wait unless somebody has set a time: a person has to
// read a plan or a diff, and may be at another device (USE-4).
const sessionAskTimeout = time.Hour

// askTimeout returns how long asks of a session wait. Those of an MCP client's calls and tasks keep the
// default of Y-138: their client waits, and gives up by itself.
func (k *Kernel) askTimeout(id string) time.Duration {
	const setting = "approval.timeout"
	root := event.Root(id)
	if own := k.later.approvalTimeout(root); own > 0 {
		return own
	}
	_, from, _ := k.Settings.Get(setting)
	if _, client := k.later.clientOf(root); from == config.FromDefault && !client && event.CheckClientSession(root) == nil {
		return sessionAskTimeout
	}
	return k.Settings.Duration(setting)
}

// audience reports whether anybody can be asked about a session: an adapter that
// asks, somebody who answers for all sessions, or a reader of the session or of its
// root with the right to answer.
func (k *Kernel) audience(id string) bool {
	if k.Bus.Wanted(event.ApprovalRequested.Name()) || k.later.answers() {
		return true
	}
	root := event.Root(id)
	for _, s := range []string{id, root} {
		if s, ok := k.Sessions.Get(s); ok && s.Answerable() {
			return true
		}
	}
	return false
}

func (k *Kernel) rules(s *config.Store) ([]approval.Rule, error) {
	raw, _, _ := s.Get("approval.rules")
	if len(raw) == 0 {
		return nil, nil
	}
	groups, err := s.Groups()
	if err != nil {
		return nil, err
	}
	return approval.ParseRules(raw, approval.Callers{Groups: groups, Scopes: k.cfg.Scopes})
}

// agent returns the caller for the turns of a session: its agent, and behind it the client
// that has begun the session and, for a sub-agent, the agents above it.
func (k *Kernel) agent(session string) tool.Caller {
	c := tool.Caller{Principal: tool.AgentPrefix + k.Loop.StrategyOf(session), Tools: k.toolsOf(session)}
	if of, is := k.later.clientOf(session); is {
		c.Behind, c.BehindHas, c.Via = []string{of.Principal}, of.Has, tool.OriginMCP
	}
	for i := strings.LastIndex(session, event.AgentSeparator); i >= 0; i = strings.LastIndex(session, event.AgentSeparator) {
		session = session[:i]
		c.Behind = append(c.Behind, tool.AgentPrefix+k.Loop.StrategyOf(session))
	}
	return c
}

// toolsOf returns the tools that a sub-agent may call: none if that cannot be read.
func (k *Kernel) toolsOf(id string) []string {
	if event.Root(id) == id || k.Sessions == nil {
		return nil
	}
	s, err := k.Sessions.Find(id, "")
	if err == nil {
		var only []string
		if only, err = s.Tools(); err == nil {
			return only
		}
	}
	k.cfg.Log.Error().Err(err).Str("session", id).Msg("a sub-agent has no tools: its list cannot be read")
	return []string{}
}

// drive sets up the plugins and the loop that uses them.
func (k *Kernel) drive() (err error) {
	spent := budget.New(budget.Config{Data: k.cfg.Data, Sessions: k.sessions, Saved: k.Sessions.Saved, Limit: k.Settings.Int})
	k.Plugins, err = plugin.NewRegistry(plugin.Config{
		Bus: k.Bus, Config: k.Settings, Tools: k.Tools, State: k.state, Secrets: k.cfg.Secrets, Denied: k.cfg.Denied, Log: k.cfg.Log, Budget: spent,
		Strategy: func(id string) string { return k.Loop.StrategyOf(id) },
	})
	if err != nil {
		return err
	}
	k.Loop, err = loop.New(loop.Config{
		Bus: k.Bus, Tools: k.Tools, Sessions: k.Sessions, Secrets: k.cfg.Secrets, Boundary: k.later.boundary, Prepare: k.later.undriven, Log: k.cfg.Log,
		Strategy: func() string { return k.Settings.Text("strategy") },
		Ready: func(id string) error {
			if !k.Plugins.HasStrategy(id) {
				return fmt.Errorf("there is no strategy %q: yaya plugin list shows the plugins that are loaded", id)
			}
			return nil
		},
		HasMemory: k.Plugins.HasMemory,
		Provider: func() (string, string, error) {
			i, model, err := k.Settings.Providers().Active()
			return i.ID, model, err
		},
		Budget:        spent,
		Chosen:        k.chosen,
		Fallbacks:     func() []string { return k.Settings.Texts("model.fallbacks") },
		MaxIterations: func() int { return k.Settings.Int("loop.max_iterations") },
		Attached:      k.attached,
		Admit:         k.admitted,
		Notes:         k.later.note,
		Standing:      k.later.stands,
		Look:          k.later.looks,
		Model:         k.model,
		Summary:       k.summaryModel,
		LLMTimeout:    func() time.Duration { return k.Settings.Duration("loop.llm_timeout") },
		Compaction: func() (session.CompactOptions, bool) {
			return session.CompactOptions{
				Threshold: k.Settings.Int("compaction.threshold"), Target: k.Settings.Int("compaction.target"), Tries: k.Settings.Int("compaction.tries"),
			}, k.Settings.Bool("compaction.enabled")
		},
	})
	if err != nil {
		return err
	}
	k.Sessions.SetAtRest(k.Loop.AtRest)
	k.Dispatch.AddHook(k.Loop.Guard())
	k.Dispatch.AddHook(k.Plugins)
	return nil
}

// admitted asks hooks, and then the plugins that guard messages.
func (k *Kernel) admitted(ctx context.Context, session, prompt string) (string, error) {
	notes, err := k.later.admitted(ctx, session, prompt)
	if err != nil {
		return "", err
	}
	return notes, k.Plugins.Admit(ctx, session, prompt)
}

// ledger writes asks and answers to tapes.
type ledger struct{ m *session.Manager }

func (l ledger) Note(id string, ev event.Event, data any) error {
	s, ok := l.m.Get(id)
	if !ok {
		return nil // not a conversation: a client's MCP session, say
	}
	entry, err := s.Note(ev, data)
	if err != nil {
		return err
	}
	return s.Sync(context.Background(), entry)
}

// adopted goes on with a session that was taken over from another node.
func (k *Kernel) adopted(s *session.Session) {
	if k.Loop != nil {
		k.Loop.Continue(s)
	}
}

// outcome logs failures of the kernel's own subscriptions, which have no other
// effect.
func (k *Kernel) outcome(o bus.Outcome) {
	if o.Err != nil {
		k.cfg.Log.Error().Err(o.Err).Str("subscriber", o.Subscriber).Str("kind", o.Event.Kind).Msg("an event handler failed")
	}
}

// watch runs a part of the kernel in the background. If it fails, the kernel fails.
func (k *Kernel) watch(name string, run func(ctx context.Context) error) {
	k.work.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				k.Fail(name, fmt.Errorf("panic: %v", v))
			}
		}()
		if err := run(k.background); err != nil {
			k.Fail(name, err)
		}
	})
}

// Fail announces a fault of the kernel itself; [Kernel.Failed] then yields it.
func (k *Kernel) Fail(source string, err error) {
	_, perr := bus.Publish(k.Bus.Kernel(), event.KernelFailed, event.KernelSession, event.KernelError{Source: source, Message: err.Error()})
	k.cfg.Log.Error().Err(errors.Join(err, perr)).Str("part", source).Msg("the kernel failed")
	select {
	case k.failed <- fmt.Errorf("kernel: %s: %w", source, err):
	default: // the first is enough
	}
}

// Failed yields the kernel's fault, if there is one. The program then stops the
// kernel and exits with an error.
func (k *Kernel) Failed() <-chan error { return k.failed }

// refresh applies configuration changes of other processes.
func (k *Kernel) refresh(ctx context.Context) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	var last string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := k.Settings.Refresh()
		if err != nil && err.Error() != last { // the last good settings stay in force
			k.cfg.Log.Warn().Err(err).Msg("changed settings were not applied")
		}
		last = ""
		if err != nil {
			last = err.Error()
		}
	}
}

// Start loads the bundled plugins, writes the first provider instances, has the others
// loaded, and announces that the kernel is ready.
func (k *Kernel) Start(ctx context.Context, plugins ...plugin.Plugin) error {
	if err := k.Plugins.Expect(); err != nil {
		return err
	}
	// Adapters start last, when everything that they expose is running.
	first := slices.IndexFunc(plugins, func(p plugin.Plugin) bool { return p.Manifest().Category == plugin.Adapter })
	if first < 0 {
		first = len(plugins)
	}
	for _, part := range [][]plugin.Plugin{plugins[:first], plugins[first:]} {
		k.Plugins.Load(ctx, true, part...)
		if err := k.Plugins.Seed(); err != nil {
			return fmt.Errorf("the first providers: %w", err)
		}
	}
	k.later.loaded(ctx)
	_, err := bus.Publish(k.Bus.Kernel(), event.KernelIsReady, event.KernelSession, event.KernelReady{Version: k.cfg.Version})
	return err
}

// Resume goes on with what an earlier process left: sessions with a queue first, then those
// that it left in a turn, or between a message and its turn. It returns why it could not
// open some of them. Call it once, after [Kernel.Start]; the sessions can be used meanwhile.
func (k *Kernel) Resume(ctx context.Context) error {
	return errors.Join(k.Loop.Resume(ctx), k.Loop.Repair(ctx))
}

// Stop ends everything, in the reverse order of its start: asks, turns, plugins,
// tools, sessions, and the bus. It may be called more than once.
func (k *Kernel) Stop(ctx context.Context, reason string) (err error) {
	k.stop.Do(func() { err = k.shutdown(ctx, reason) })
	return err
}

// EndTurns is the first part of [Kernel.Stop]: it announces the end, cancels every turn and waits for
// them. Surfaces that show sessions close after it: they have seen the ends of turns then.
func (k *Kernel) EndTurns(ctx context.Context, reason string) (err error) {
	k.endTurns.Do(func() {
		var errs []error
		if k.Approvals != nil {
			k.Approvals.Close() // before the shutdown is announced
		}
		if k.Bus != nil {
			_, err := bus.Publish(k.Bus.Kernel(), event.KernelShutsDown, event.KernelSession, event.KernelShutdown{Reason: reason})
			errs = append(errs, err)
		}
		if k.Loop != nil {
			errs = append(errs, k.Loop.Close(ctx))
		}
		err = errors.Join(errs...)
	})
	return err
}

func (k *Kernel) shutdown(ctx context.Context, reason string) error {
	errs := []error{k.EndTurns(ctx, reason)}
	if k.Plugins != nil {
		errs = append(errs, k.Plugins.Stop())
	}
	k.endOfDay()
	if k.stopServing != nil {
		k.stopServing()
	}
	if k.Dispatch != nil {
		errs = append(errs, k.Dispatch.Close(ctx))
	}
	k.work.Wait()
	if k.Sessions != nil {
		errs = append(errs, k.Sessions.Close(ctx))
	}
	if k.Bus != nil {
		errs = append(errs, k.Bus.Close(ctx))
	}
	for _, r := range []*os.Root{k.sessions, k.state} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

// CheckSetting refuses invalid values that would deny every call. scopes are those
// that rules may name.
func CheckSetting(s *config.Store, scopes []string, key string, v json.RawMessage) error {
	if strings.HasPrefix(key, config.GroupsPrefix) {
		if err := approval.CheckGroup(v); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if key != "approval.rules" {
		return nil
	}
	groups, err := s.Groups()
	if err != nil {
		return err
	}
	_, err = approval.ParseRules(v, approval.Callers{Groups: groups, Scopes: scopes})
	return err
}
