package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a plugin that remembers, and does what it is told.
type fake struct {
	m        plugin.Manifest
	subs     []string
	onLoad   func(c plugin.Context) error
	onEvent  func(ctx context.Context, ev event.Event, c plugin.Context) error
	onUnload func(ctx context.Context) error

	mu  sync.Mutex
	log []string
	ctx plugin.Context
}

func (f *fake) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, s)
}

func (f *fake) notes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (f *fake) Manifest() plugin.Manifest { return f.m }
func (f *fake) Subscriptions() []string   { return f.subs }

func (f *fake) OnLoad(_ context.Context, c plugin.Context) error {
	f.note("load")
	f.ctx = c
	if f.onLoad != nil {
		return f.onLoad(c)
	}
	return nil
}

func (f *fake) OnEvent(ctx context.Context, ev event.Event, c plugin.Context) error {
	f.note(ev.Kind)
	if f.onEvent != nil {
		return f.onEvent(ctx, ev, c)
	}
	return nil
}

func (f *fake) OnUnload(ctx context.Context, _ plugin.Context) error {
	f.note("unload")
	if f.onUnload != nil {
		return f.onUnload(ctx)
	}
	return nil
}

// checked is a fake with a health check.
type checked struct {
	fake
	check func(ctx context.Context) plugin.HealthReport
}

func (c *checked) HealthCheck(ctx context.Context, _ plugin.Context) plugin.HealthReport {
	return c.check(ctx)
}

func adapter(name string, subs ...string) *fake {
	return &fake{m: plugin.Manifest{Name: name, Version: "1.0.0", Category: plugin.Adapter, AdapterID: name}, subs: subs}
}

func of(c plugin.Category, name string, subs ...string) *fake {
	f := &fake{m: plugin.Manifest{Name: name, Version: "1.0.0", Category: c}, subs: subs}
	switch c {
	case plugin.Adapter:
		f.m.AdapterID = name
	case plugin.LLMProvider:
		f.m.ProviderID = name
	case plugin.Strategy:
		f.m.StrategyID = name
	case plugin.Memory:
		f.m.MemoryKind = "long-term"
	case plugin.Tool, plugin.Skill:
	}
	return f
}

type world struct {
	t    *testing.T
	dir  string
	bus  *bus.Bus
	cfg  *config.Store
	reg  *tool.Registry
	root *os.Root
	*plugin.Registry

	mu  sync.Mutex
	got []event.Event
}

func newWorld(t *testing.T, change ...func(*plugin.Config)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), bus: bus.New(bus.Config{}), reg: new(tool.Registry)}
	var err error
	if w.root, err = os.OpenRoot(w.dir); err != nil {
		t.Fatal(err)
	}
	if w.cfg, err = config.Open(config.Options{Root: w.root}); err != nil {
		t.Fatal(err)
	}
	kinds := []string{"plugin.loaded", "plugin.reloaded", "plugin.removed", "plugin.error", "llm.call.error"}
	if _, err := w.bus.Subscribe(bus.SubscribeOptions{Name: "w"}, kinds, func(_ context.Context, ev event.Event) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.got = append(w.got, ev)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	cfg := plugin.Config{Bus: w.bus, Config: w.cfg, Tools: w.reg, State: w.root, Log: zerolog.Nop()}
	for _, c := range change {
		c(&cfg)
	}
	if w.Registry, err = plugin.NewRegistry(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Errorf("Stop of the plugins = %v, want no error", err)
		}
		if err := w.bus.Close(context.Background()); err != nil {
			t.Errorf("Close of the bus = %v, want no error", err)
		}
		_ = w.root.Close()
	})
	return w
}

func (w *world) events() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range w.got {
		s := ev.Kind
		switch p := ev.Payload.(type) {
		case event.PluginLoaded:
			s += " " + p.Name + " " + p.Version + " " + p.Category
		case event.PluginReloaded:
			s += " " + p.Name + " " + p.Version
		case event.PluginRemoved:
			s += " " + p.Name
		case event.PluginError:
			s += " " + p.Name + ": " + p.Error
		case event.LLMError:
			s += " " + p.RequestID + ": " + p.Error
		}
		if ev.Source != event.KernelSource {
			w.t.Errorf("%s comes from %s", s, ev.Source)
		}
		out = append(out, s)
	}
	return out
}

func (w *world) status(name string) plugin.Status {
	w.t.Helper()
	for _, s := range w.Snapshot() {
		if s.Name == name {
			return s
		}
	}
	w.t.Fatalf("there is no plugin %s", name)
	return plugin.Status{}
}

func (w *world) say(session string) {
	w.t.Helper()
	if _, err := bus.Publish(w.bus.Kernel(), event.UserMessageReceived, session, event.UserMessage{Text: "hi"}); err != nil {
		w.t.Fatal(err)
	}
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Y-6, Y-7, Y-105, Y-154: the closed set of categories, one each, and what a
// manifest must say.
func TestManifest(t *testing.T) {
	if got := len(plugin.Categories()); got != 6 {
		t.Errorf("%d categories", got)
	}
	for _, c := range plugin.Categories() {
		if err := of(c, "some-plugin").m.Check(); err != nil {
			t.Errorf("Check of a %s plugin = %v, want nil", c, err)
		}
	}
	for name, change := range map[string]func(*plugin.Manifest){
		"another category":   func(m *plugin.Manifest) { m.Category = "database" },
		"no category":        func(m *plugin.Manifest) { m.Category = "" },
		"two categories":     func(m *plugin.Manifest) { m.StrategyID = "s" },
		"a tool as well":     func(m *plugin.Manifest) { m.ToolName = "t" },
		"no id":              func(m *plugin.Manifest) { m.AdapterID = "" },
		"camel case":         func(m *plugin.Manifest) { m.Name = "myPlugin" },
		"underscore":         func(m *plugin.Manifest) { m.Name = "my_plugin" },
		"the kernel's name":  func(m *plugin.Manifest) { m.Name = "kernel" },
		"the sessions'":      func(m *plugin.Manifest) { m.Name = "session" },
		"the sub-agents'":    func(m *plugin.Manifest) { m.Name = "agent" },
		"the servers'":       func(m *plugin.Manifest) { m.Name = "mcp" },
		"the summaries'":     func(m *plugin.Manifest) { m.Name = "compaction" },
		"the page's":         func(m *plugin.Manifest) { m.Name = "web-api-tools" },
		"the page's tests":   func(m *plugin.Manifest) { m.Name = "web-api-test" },
		"a path":             func(m *plugin.Manifest) { m.Name = "../x" },
		"no semver":          func(m *plugin.Manifest) { m.Version = "1.0" },
		"strange memory":     func(m *plugin.Manifest) { *m = of(plugin.Memory, "m").m; m.MemoryKind = "both" },
		"provider, no id":    func(m *plugin.Manifest) { *m = of(plugin.LLMProvider, "m").m; m.ProviderID = "" },
		"strategy, no id":    func(m *plugin.Manifest) { *m = of(plugin.Strategy, "m").m; m.StrategyID = "" },
		"requires itself":    func(m *plugin.Manifest) { m.Requires = []string{m.Name} },
		"overlong":           func(m *plugin.Manifest) { m.Name = strings.Repeat("a", 65) },
		"the kernel's voice": func(m *plugin.Manifest) { m.Name = "" },
	} {
		m := adapter("good").m
		change(&m)
		if err := m.Check(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// Y-3, Y-43, Y-105: each after what it requires, otherwise in the order given;
// what cannot be loaded keeps nothing else from it; bundled or not is the same
// path.
func TestLoadOrder(t *testing.T) {
	for _, bundled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var order []string
			mk := func(name string, requires ...string) *fake {
				f := adapter(name)
				f.m.Requires = requires
				f.onLoad = func(plugin.Context) error { order = append(order, name); return nil }
				return f
			}
			bad := mk("bad")
			bad.onLoad = func(plugin.Context) error { return errors.New("no port") }
			w.Load(t.Context(), bundled, mk("c", "a"), mk("b"), mk("a", "b"), mk("loop-1", "loop-2"), mk("loop-2", "loop-1"),
				mk("orphan", "nobody"), bad, mk("needs-bad", "bad"), mk("b"))
			equal(t, order, "b", "a", "c")
			for name, want := range map[string]string{
				"c": "loaded", "loop-1": "failed", "orphan": "failed", "bad": "failed", "needs-bad": "failed",
			} {
				if got := w.status(name); string(got.Status) != want || (got.Error == "") != (want == "loaded") || got.Bundled != bundled {
					t.Errorf("%s: got %+v, want Status %v, %v, Bundled %v", name, got, want, (want == "loaded"), bundled)
				}
			}
			synctest.Wait()
			got := w.events()
			if got[1] != "plugin.loaded b 1.0.0 adapter" || got[0] != "plugin.error b: a plugin named b is already loaded" || !slices.Contains(got, "plugin.error bad: no port") || !slices.Contains(got, "plugin.error orphan: it requires nobody, which is not loaded") {
				t.Errorf("got %q; want b loaded once, and errors for the other b, bad and orphan", got)
			}
			if err := w.Remove("a"); (err == nil) == bundled { // the one difference: the remove guard
				t.Errorf("remove: %v", err)
			}
		})
	}
}

// Y-107, Y-109: on_load comes before any event, on_unload after the last.
func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := adapter("web", "user.message.received")
		f.onLoad = func(plugin.Context) error {
			w.say("s1") // too early for it
			time.Sleep(time.Second)
			return nil
		}
		w.Load(t.Context(), false, f)
		w.say("s1")
		synctest.Wait()
		f.onLoad = nil
		if err := w.Reload(t.Context(), "web"); err != nil {
			t.Fatal(err)
		}
		w.say("s1")
		synctest.Wait()
		if err := w.Remove("web"); err != nil {
			t.Fatal(err)
		}
		w.say("s1")
		synctest.Wait()
		equal(t, f.notes(), "load", "user.message.received", "unload", "load", "user.message.received", "unload")
		equal(t, w.events(), "plugin.loaded web 1.0.0 adapter", "plugin.removed web", "plugin.reloaded web 1.0.0", "plugin.removed web")
		if s := w.status("web"); s.Status != plugin.Unloaded { // Y-168: loaded → unloaded
			t.Errorf("got %+v, want the status %s", s, plugin.Unloaded)
		}
		if err := w.Remove("web"); err == nil {
			t.Error("removed twice")
		}
		if err := w.Reload(t.Context(), "web"); err != nil || w.status("web").Status != plugin.Loaded {
			t.Errorf("it cannot come back: %v", err)
		}
	})
}

// Y-8, Y-9, Y-10, Y-11, Y-12, Y-13, Y-85, Y-106: which events reach whom.
func TestRouting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *plugin.Config) {
			c.Strategy = func(session string) string { return map[string]string{"s1": "react", "s2": "other"}[session] }
		})
		for k, v := range map[string]string{"providers.one.plugin": `"llm-a"`, "providers.two.plugin": `"llm-b"`} {
			if err := w.cfg.Set(k, json.RawMessage(v)); err != nil {
				t.Fatal(err)
			}
		}
		sh := of(plugin.Tool, "tool-sh", "tool.call.request")
		sh.m.ToolName = "sh"
		a, b := of(plugin.LLMProvider, "llm-a", "llm.call.request"), of(plugin.LLMProvider, "llm-b", "llm.call.request")
		react, other := of(plugin.Strategy, "react", "strategy.decide.request"), of(plugin.Strategy, "other", "strategy.decide.request")
		mem := of(plugin.Memory, "memory", "memory.query", "memory.write")
		skill := of(plugin.Skill, "skill", "user.message.received")
		web := adapter("web", "assistant.message.delta", "assistant.message.done", "tool.call.start", "plugin.error", "kernel.ready")
		w.Load(t.Context(), true, sh, a, b, react, other, mem, skill, web)
		k := w.bus.Kernel()
		publish := func(_ event.Event, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		publish(bus.Publish(k, event.ToolCallRequest, "s1", event.ToolRequest{ID: "1", Name: "sh"}))
		publish(bus.Publish(k, event.ToolCallRequest, "s1", event.ToolRequest{ID: "2", Name: "other"}))
		publish(bus.Publish(k, event.ToolCallRequest, "s1", event.ToolRequest{ID: "3", Name: "sh", SchemaVersion: "v1"})) // the dispatcher's
		publish(bus.Publish(k, event.LLMCallRequest, "s1", event.LLMRequest{Provider: "two"}))
		publish(bus.Publish(k, event.StrategyDecideRequest, "s1", event.DecideRequest{}))
		publish(bus.Publish(k, event.StrategyDecideRequest, "s2", event.DecideRequest{}))
		publish(bus.Publish(k, event.StrategyDecideRequest, "s2", event.DecideRequest{}))
		publish(bus.Publish(k, event.MemoryQueried, "s1", event.MemoryQuery{}))
		publish(bus.Publish(k, event.MemoryWritten, "s1", event.MemoryWrite{}))
		publish(bus.Publish(k, event.UserMessageReceived, "s1", event.UserMessage{}))
		publish(bus.Publish(k, event.AssistantMessageDone, "s1", event.AssistantMessage{}))
		publish(bus.Publish(k, event.ToolCallStart, "s1", event.ToolCall{}))
		publish(bus.Publish(k, event.KernelIsReady, "kernel", event.KernelReady{}))
		synctest.Wait()
		equal(t, sh.notes(), "load", "tool.call.request")
		equal(t, a.notes(), "load")
		equal(t, b.notes(), "load", "llm.call.request")
		equal(t, react.notes(), "load", "strategy.decide.request")
		equal(t, other.notes(), "load", "strategy.decide.request", "strategy.decide.request")
		equal(t, mem.notes(), "load", "memory.query", "memory.write")
		equal(t, skill.notes(), "load", "user.message.received")
		got := web.notes()
		slices.Sort(got)
		equal(t, got, "assistant.message.done", "kernel.ready", "load", "tool.call.start")
		if !w.HasStrategy("react") || w.HasStrategy("nope") || !w.HasMemory() {
			t.Error("what is loaded is not known")
		}
	})
}

// A request to a provider that does not exist is answered, not left alone.
func TestUnknownProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.cfg.Set("providers.lost.plugin", json.RawMessage(`"llm-gone"`)); err != nil {
			t.Fatal(err)
		}
		for provider, want := range map[string]string{"none": `provider "none" not found`, "lost": "needs the plugin llm-gone"} {
			ev, err := bus.Request(t.Context(), w.bus.Kernel(), event.LLMCallRequest, "s1", event.LLMRequest{Provider: provider}, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
			if err != nil || !strings.Contains(ev.Payload.(event.LLMError).Error, want) {
				t.Errorf("got %+v, %v; want an error with: %s", ev, err, want)
			}
		}
	})
}

// Y-8…Y-13, Y-19, Y-44, Y-64, R14: a plugin emits events under its own name, and only
// of the kinds of its category.
func TestEmitting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		all := map[plugin.Category]*fake{}
		for _, c := range plugin.Categories() {
			all[c] = of(c, "p-"+string(c))
			w.Load(t.Context(), false, all[c])
		}
		payloads := map[string]any{
			"user.message.received": event.UserMessage{}, "user.interrupt": nil, "approval.response": event.ApprovalResponse{Response: event.Approve},
			"tool.call.result": event.ToolResult{}, "tool.progress": event.ToolProgress{},
			"llm.call.response": event.LLMResponse{}, "llm.call.error": event.LLMError{}, "llm.call.delta": event.LLMDelta{}, "llm.call.retry": event.LLMRetry{}, "llm.call.fallback": event.LLMFallback{},
			"strategy.decide.response": event.DecideResponse{Next: event.NextDone}, "memory.result": event.MemoryResult{},
			"x.any.thing": map[string]int{"a": 1}, "plugin.error": event.PluginError{}, "kernel.error": event.KernelError{}, "tool.error": event.ToolError{},
			"session.started": event.SessionStarted{}, "memory.write": event.MemoryWrite{}, "no.such.kind": nil,
		}
		may := map[plugin.Category]string{
			plugin.Adapter:     "user.message.received user.interrupt approval.response x.any.thing",         // Y-8
			plugin.Tool:        "tool.call.result tool.progress x.any.thing",                                 // Y-9
			plugin.LLMProvider: "llm.call.response llm.call.error llm.call.delta llm.call.retry x.any.thing", // Y-10
			plugin.Strategy:    "strategy.decide.response x.any.thing",                                       // Y-11
			plugin.Memory:      "memory.result x.any.thing",                                                  // Y-12
			plugin.Skill: "user.message.received user.interrupt approval.response tool.call.result tool.progress llm.call.response " +
				"llm.call.error llm.call.delta llm.call.retry strategy.decide.response memory.result memory.write x.any.thing", // Y-13
		}
		var sources []string
		if _, err := w.bus.Subscribe(bus.SubscribeOptions{Name: "s"}, []string{"x.any.thing"}, func(_ context.Context, ev event.Event) error {
			sources = append(sources, ev.Source)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for c, f := range all {
			for kind, p := range payloads {
				session := "s1"
				if kind == "approval.response" {
					session = "kernel"
				}
				err := f.ctx.Emit(kind, session, p)
				if want := slices.Contains(strings.Fields(may[c]), kind); (err == nil) != want {
					t.Errorf("%s emits %s: %v", c, kind, err)
				}
			}
		}
		synctest.Wait()
		slices.Sort(sources)
		equal(t, sources, "p-adapter", "p-llm-provider", "p-memory", "p-skill", "p-strategy", "p-tool")
	})
}

// Y-110: a plugin's context offers settings, tools, secrets and a folder.
func TestContext(t *testing.T) {
	w := newWorld(t)
	for k, v := range map[string]string{"plugin.my_tool.port": `7`, "plugin.other.port": `8`, "strategy": `"s"`, "providers.abc.plugin": `"x"`} {
		if err := w.cfg.Set(k, json.RawMessage(v)); err != nil {
			t.Fatal(err)
		}
	}
	f := of(plugin.Tool, "my-tool")
	w.Load(t.Context(), false, f)
	c := f.ctx
	if string(c.Config("port")) != "7" || c.Config("nothing") != nil || string(c.Kernel("strategy")) != `"s"` {
		t.Error("settings")
	}
	for _, key := range []string{"plugin.other.port", "providers.abc.plugin", "_meta.x"} {
		if c.Kernel(key) != nil {
			t.Errorf("%s is readable", key)
		}
	}
	if c.Providers().GetInstance("abc") == nil || c.Log() == nil {
		t.Error("providers, log")
	}
	dir, err := c.StateDir()
	if want := filepath.Join(w.dir, "my-tool"); err != nil || dir != want {
		t.Errorf("state directory %s, %v; want %s", dir, err, want)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", st.Mode())
	}
	mk := func(name string) tool.Tool {
		x, err := tool.New(tool.Definition{Name: name, Kind: tool.KindRead, Description: "d"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) { return tool.OK(""), nil })
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if err := c.RegisterTool(mk("mine")); err != nil { // Y-118
		t.Fatal(err)
	}
	if _, ok := w.reg.Snapshot().Lookup("mine"); !ok {
		t.Error("the tool is not there")
	}
	if err := w.Remove("my-tool"); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.reg.Snapshot().Lookup("mine"); ok { // PL-09
		t.Error("the tool outlived its plugin")
	}
	a := adapter("web")
	w.Load(t.Context(), false, a)
	if err := a.ctx.RegisterTool(mk("x")); !errors.Is(err, plugin.ErrCategory) {
		t.Errorf("an adapter registers tools: %v", err)
	}
}

// Y-164, Y-165, Y-168, Y-108: N failures in a row unload; a success in between
// resets the count; the state in between is visible.
func TestFailureLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := adapter("web", "user.message.received", "user.interrupt")
		f.onEvent = func(_ context.Context, ev event.Event, _ plugin.Context) error {
			if ev.Kind == "user.message.received" {
				return errors.New("bad day\nwith a stack")
			}
			return nil
		}
		leave := make(chan struct{})
		f.onUnload = func(context.Context) error { <-leave; return nil }
		w.Load(t.Context(), true, f)
		w.say("s1")
		w.say("s1")
		if _, err := bus.Publish(w.bus.Kernel(), event.UserInterrupt, "s1", event.Empty{}); err != nil {
			t.Fatal(err)
		}
		w.say("s1")
		w.say("s1")
		synctest.Wait()
		if s := w.status("web"); s.Status != plugin.Loaded {
			t.Fatalf("two and two failures unloaded it: %+v", s)
		}
		w.say("s1")
		synctest.Wait()
		if s := w.status("web"); s.Status != plugin.Unloading {
			t.Errorf("on its way out it is %+v", s)
		}
		if err := w.Reload(t.Context(), "web"); !errors.Is(err, plugin.ErrUnloading) {
			t.Errorf("a second unloading: %v", err)
		}
		close(leave)
		synctest.Wait()
		if s := w.status("web"); s.Status != plugin.Failed || !strings.Contains(s.Error, "3 failures in a row, the last: web") && !strings.Contains(s.Error, "bad day") {
			t.Errorf("got %+v, want it failed after 3 failures in a row", s)
		}
		n := len(f.notes())
		w.say("s1")
		synctest.Wait()
		if len(f.notes()) != n {
			t.Error("it still gets events")
		}
		errs := 0
		for _, e := range w.events() {
			if strings.HasPrefix(e, "plugin.error web: ") {
				errs++
				if strings.Contains(e, "stack") {
					t.Errorf("more than a line: %q", e)
				}
			}
		}
		if got := w.events(); errs != 5 || got[len(got)-1] != "plugin.removed web" {
			t.Errorf("%d errors, then %q", errs, got[len(got)-1])
		}
	})
}

// Y-165: the threshold can be set.
func TestThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.cfg.Set("plugins.max_failures", json.RawMessage(`1`)); err != nil {
			t.Fatal(err)
		}
		f := adapter("web", "user.message.received")
		f.onEvent = func(context.Context, event.Event, plugin.Context) error { panic("boom") }
		w.Load(t.Context(), true, f)
		w.say("s1")
		synctest.Wait()
		if s := w.status("web"); s.Status != plugin.Failed {
			t.Errorf("got %+v, want the status %s", s, plugin.Failed)
		}
	})
}

// Y-166, Y-170, R36: a handler that hangs is charged at its deadline, and delays
// neither its other sessions nor anybody else.
func TestHangingPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		bad, good := adapter("bad", "user.message.received"), adapter("good", "user.message.received")
		var ended atomic.Int32
		bad.onEvent = func(ctx context.Context, ev event.Event, _ plugin.Context) error {
			if ev.SessionID == "s1" {
				<-ctx.Done()
				ended.Add(1)
				<-release // and does not even go then
			}
			return nil
		}
		w.Load(t.Context(), true, bad, good)
		w.say("s1")
		w.say("s2")
		w.say("s1")
		synctest.Wait()
		if len(good.notes()) != 4 || len(bad.notes()) != 3 {
			t.Errorf("good %v, bad %v", good.notes(), bad.notes())
		}
		start := time.Now()
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := len(w.events()); n != 2 || ended.Load() != 0 {
			t.Errorf("charged before its deadline: %v", w.events())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.events(); len(got) != 3 || !strings.Contains(got[2], "deadline") || ended.Load() != 1 {
			t.Errorf("after %v: %v", time.Since(start), got)
		}
		close(release)
	})
}

// Y-169: a failure over the news of a failure goes no further.
func TestFailureOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.cfg.Set("plugins.max_failures", json.RawMessage(`100`)); err != nil {
			t.Fatal(err)
		}
		a, b := adapter("a", "plugin.error", "kernel.error", "user.message.received"), adapter("b", "plugin.error", "kernel.error")
		fail := func(context.Context, event.Event, plugin.Context) error { return errors.New("no") }
		a.onEvent, b.onEvent = fail, fail
		w.Load(t.Context(), true, a, b)
		w.say("s1")
		if _, err := bus.Publish(w.bus.Kernel(), event.KernelFailed, "kernel", event.KernelError{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, w.events(), "plugin.loaded a 1.0.0 adapter", "plugin.loaded b 1.0.0 adapter", "plugin.error a: no")
	})
}

// Everybody who waits for an answer learns at once that it will not come.
func TestFailingResponder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := of(plugin.Strategy, "react", "strategy.decide.request")
		s.onEvent = func(context.Context, event.Event, plugin.Context) error { return errors.New("no idea") }
		w.Load(t.Context(), true, s)
		start := time.Now()
		_, err := bus.Request(t.Context(), w.bus.Kernel(), event.StrategyDecideRequest, "s1", event.DecideRequest{}, event.StrategyDecideResponse.Kind())
		if err == nil || !strings.Contains(err.Error(), "react failed") || !strings.Contains(err.Error(), "no idea") || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// Y-167: a plugin that cannot be loaded is failed, with the reason and the stack
// in its state directory, and leaves nothing behind.
func TestFailedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := of(plugin.Tool, "tool-x", "config.updated")
		f.onLoad = func(c plugin.Context) error {
			x, err := tool.New(tool.Definition{Name: "half", Kind: tool.KindRead, Description: "d"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) { return tool.OK(""), nil })
			if err != nil {
				return err
			}
			if err := c.RegisterTool(x); err != nil {
				return err
			}
			panic("half way")
		}
		unknown := adapter("unknown", "no.such.kind")
		w.Load(t.Context(), true, f, unknown)
		synctest.Wait()
		if s := w.status("tool-x"); s.Status != plugin.Failed || s.Error != "panic: half way" {
			t.Errorf(`got %+v; want it failed with "panic: half way"`, s)
		}
		data, err := os.ReadFile(filepath.Join(w.dir, "tool-x", "load-error.txt"))
		if err != nil || !strings.Contains(string(data), "plugin_test.go") {
			t.Errorf("no stack: %s, %v", data, err)
		}
		if w.reg.Snapshot().Len() != 0 {
			t.Error("a half registered tool")
		}
		if s := w.status("unknown"); s.Status != plugin.Failed {
			t.Errorf("got %+v, want the status %s", s, plugin.Failed)
		}
		f.onLoad = nil
		err = w.Reload(t.Context(), "tool-x")
		if _, left := os.Stat(filepath.Join(w.dir, "tool-x", "load-error.txt")); err != nil || !errors.Is(left, os.ErrNotExist) {
			t.Errorf("Reload() = %v, and the reason of the failure is there (%v), want no error and that it is not", err, left)
		}
	})
}

// A plugin that floods is slowed by its own publishing or cut off, and the
// others' events arrive.
func TestFloodingPlugin(t *testing.T) {
	w := newWorld(t)
	slow := adapter("slow", "x.flood.drop", "user.message.received")
	gate := make(chan struct{})
	slow.onEvent = func(_ context.Context, ev event.Event, _ plugin.Context) error {
		if ev.Kind == "x.flood.drop" {
			<-gate
		}
		return nil
	}
	good, flood := adapter("good", "user.message.received"), adapter("flood")
	w.Load(t.Context(), true, slow, good, flood)
	for range 1500 { // more than a subscription holds
		if err := flood.ctx.Emit("x.flood.drop", "s9", map[string]int{"a": 1}); err != nil {
			t.Fatal(err)
		}
	}
	w.say("s1")
	eventually.True(t, "it is known", func() bool { return slices.Contains(good.notes(), "user.message.received") })
	close(gate)
	// It fell behind, was charged, and goes on with what is new.
	eventually.True(t, "it is known", func() bool {
		return slices.ContainsFunc(w.events(), func(s string) bool { return strings.HasPrefix(s, "plugin.error slow: ") })
	})
	eventually.True(t, "it is known", func() bool {
		w.say("s2")
		return slices.Contains(slow.notes(), "user.message.received")
	})
}

// Y-212: switched off is not loaded.
func TestDisabled(t *testing.T) {
	w := newWorld(t)
	if err := w.cfg.Set("plugin.my_web.enabled", json.RawMessage(`false`)); err != nil {
		t.Fatal(err)
	}
	f := adapter("my-web")
	w.Load(t.Context(), true, f)
	if s := w.status("my-web"); s.Status != plugin.Unloaded || s.Enabled || len(f.notes()) != 0 {
		t.Errorf("got %+v, want it disabled and never loaded", s)
	}
}

// Y-132, Y-130: a legacy tool declares its name; a clash with a v1 tool is
// logged by the registry of tools.
func TestLegacyTool(t *testing.T) {
	var log strings.Builder
	w := newWorld(t)
	w.reg.Log = zerolog.New(&log)
	x, err := tool.New(tool.Definition{Name: "sh", Kind: tool.KindRead, Description: "d"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) { return tool.OK(""), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := w.reg.Register(x); err != nil {
		t.Fatal(err)
	}
	f := of(plugin.Tool, "tool-sh", "tool.call.request")
	f.m.ToolName, f.m.ToolSchema = "sh", []byte(`{"type":"object"}`)
	w.Load(t.Context(), true, f)
	if !strings.Contains(log.String(), `"level":"warn"`) || !strings.Contains(log.String(), "tool-sh") {
		t.Errorf("got %s, want a warning about tool-sh", log.String())
	}
}

// Y-79: the registry seeds the instances of the loaded providers.
func TestSeed(t *testing.T) {
	w := newWorld(t)
	bad := of(plugin.LLMProvider, "llm-bad")
	bad.onLoad = func(plugin.Context) error { return errors.New("no") }
	w.Load(t.Context(), true, bad, adapter("web"), of(plugin.LLMProvider, "llm-echo"))
	if err := w.Seed(); err != nil {
		t.Fatal(err)
	}
	if all := w.cfg.Providers().ListInstances(); len(all) != 1 || all[0].ID != "llm-echo" || w.cfg.Providers().ActiveID() != "llm-echo" {
		t.Errorf("got %+v; want llm-echo alone, and active", all)
	}
}

// Y-111, Y-112, Y-115, Y-116, Y-117: health, whatever the plugin does.
func TestDoctor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		mk := func(name string, check func(ctx context.Context) plugin.HealthReport) *checked {
			return &checked{*adapter(name), check} //nolint:govet // not used yet
		}
		release := make(chan struct{})
		broken := adapter("broken")
		broken.onLoad = func(plugin.Context) error { return errors.New("no disk") }
		w.Load(t.Context(), true, adapter("plain"), broken,
			mk("well", func(context.Context) plugin.HealthReport {
				return plugin.HealthReport{Status: plugin.Healthy, Summary: "fine", Details: []plugin.HealthCheck{{Name: "key", Status: plugin.Healthy}}}
			}),
			mk("half", func(context.Context) plugin.HealthReport {
				return plugin.HealthReport{Status: plugin.Degraded, Summary: "no key"}
			}),
			mk("panics", func(context.Context) plugin.HealthReport { panic("ouch") }),
			mk("odd", func(context.Context) plugin.HealthReport { return plugin.HealthReport{Status: "great"} }),
			mk("hangs", func(context.Context) plugin.HealthReport { <-release; return plugin.HealthReport{} }))
		synctest.Wait()
		before := len(w.events())
		for range 2 { // Y-117: asking again changes nothing
			start := time.Now()
			got := w.Doctor(t.Context(), 3*time.Second)
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("took %v", took)
			}
			for i, want := range []struct {
				plugin, summary string
				status          plugin.Health
			}{
				{"plain", "no checks registered", plugin.Healthy}, // Y-111
				{"broken", "failed: no disk", plugin.Failing},
				{"well", "fine", plugin.Healthy},
				{"half", "no key", plugin.Degraded},
				{"panics", "the check panicked: ouch", plugin.Failing}, // Y-115
				{"odd", `the check answered with status "great"`, plugin.Failing},
				{"hangs", "no answer within 3s", plugin.Degraded}, // Y-116
			} {
				if d := got[i]; d.Plugin != want.plugin || d.Summary != want.summary || d.Status != want.status {
					t.Errorf("got %+v, want %+v", d, want)
				}
			}
			if plugin.Worst(got) != plugin.Failing || plugin.Worst(got[3:4]) != plugin.Degraded || plugin.Worst(nil) != plugin.Healthy {
				t.Error("the worst is not the worst")
			}
		}
		synctest.Wait()
		if len(w.events()) != before {
			t.Errorf("the doctor was heard on the bus: %v", w.events())
		}
		close(release)
	})
	raw, err := json.Marshal(plugin.HealthReport{Status: plugin.Healthy, Summary: "s", Details: []plugin.HealthCheck{{Name: "n", Status: plugin.Failing}}})
	if err != nil || string(raw) != `{"status":"ok","summary":"s","details":[{"name":"n","status":"failed","message":""}]}` { // Y-112
		t.Errorf(`got %s, want {"status":"ok","summary":"s","details":[{"name":"n","status":"failed","message":""}]}`, raw)
	}
}

// Y-43: a plugin that is installed again takes the place of the old one.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer := adapter("web", "user.message.received"), adapter("web", "user.message.received")
		newer.m.Version = "2.0.0"
		w.Load(t.Context(), false, older)
		if err := w.Replace(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		w.say("s1")
		synctest.Wait()
		equal(t, older.notes(), "load", "unload")
		equal(t, newer.notes(), "load", "user.message.received")
		equal(t, w.events(), "plugin.loaded web 1.0.0 adapter", "plugin.removed web", "plugin.reloaded web 2.0.0")
		if got := w.Snapshot(); len(got) != 1 || got[0].Version != "2.0.0" {
			t.Errorf("Snapshot() = %+v, want version 2.0.0 alone", got)
		}
		newer.onUnload = func(context.Context) error { return errors.New("busy") }
		if err := w.Forget("web"); err == nil || len(w.Snapshot()) != 0 {
			t.Errorf("Forget() = %v and leaves %+v, want the error of its unloading, and nothing", err, w.Snapshot())
		}
	})
}

// Failures outside a handler count like those in one, and a success ends the row.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := of(plugin.Tool, "hammer")
		w.Load(t.Context(), false, f)
		for _, err := range []error{errors.New("one"), errors.New("two"), nil, errors.New("three"), errors.New("four")} {
			f.ctx.Report(err)
		}
		synctest.Wait()
		if got := w.status("hammer").Status; got != plugin.Loaded {
			t.Errorf("after two failures in a row it is %s, want %s", got, plugin.Loaded)
		}
		f.ctx.Report(errors.New("five"))
		synctest.Wait()
		if got := w.status("hammer"); got.Status != plugin.Failed || !strings.Contains(got.Error, "five") {
			t.Errorf("after three failures in a row it is %+v, want %s because of the last", got, plugin.Failed)
		}
	})
}

// An outcome that a plugin reports after it was replaced does not count for its successor.
func TestReportOfReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer := of(plugin.Tool, "hammer"), of(plugin.Tool, "hammer")
		w.Load(t.Context(), false, older)
		if err := w.Replace(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		newer.ctx.Report(errors.New("one"))
		newer.ctx.Report(errors.New("two"))
		older.ctx.Report(nil)
		newer.ctx.Report(errors.New("three"))
		synctest.Wait()
		if got := w.status("hammer").Status; got != plugin.Failed {
			t.Errorf("after three failures in a row it is %s, want %s", got, plugin.Failed)
		}
	})
}

// The list of plugins and the doctor show no secrets, such as in the last words of a process.
func TestFailuresConcealSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "correct-horse-battery"
		secrets := new(masked.Secrets)
		secrets.Declare(secret)
		w := newWorld(t, func(c *plugin.Config) { c.Secrets = secrets })
		broken, tired := adapter("broken"), adapter("tired")
		broken.onLoad = func(plugin.Context) error { return errors.New("key " + secret) }
		w.Load(t.Context(), true, broken, tired, &checked{*adapter("well"), func(context.Context) plugin.HealthReport { //nolint:govet // not used yet
			return plugin.HealthReport{Status: plugin.Healthy, Summary: "key " + secret, Details: []plugin.HealthCheck{{Name: secret, Status: plugin.Healthy, Message: secret}}}
		}})
		for range 3 {
			tired.ctx.Report(errors.New("key " + secret))
		}
		synctest.Wait()
		for what, got := range map[string]any{"Snapshot()": w.Snapshot(), "Doctor()": w.Doctor(t.Context(), time.Second)} {
			if text := fmt.Sprintf("%+v", got); strings.Contains(text, secret) || !strings.Contains(text, "key ") {
				t.Errorf("%s = %s, want the texts without the secret", what, text)
			}
		}
	})
}

// A skill asks the plugins of another category, and gets the event that answers.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		memory := of(plugin.Memory, "notes", "memory.query")
		memory.onEvent = func(_ context.Context, ev event.Event, c plugin.Context) error {
			return c.Emit("memory.result", ev.SessionID, event.MemoryResult{Hits: []event.MemoryEntry{{Text: "blue"}}, Request: event.Request{RequestID: ev.ID}})
		}
		skill, other := of(plugin.Skill, "asks"), adapter("other")
		w.Load(t.Context(), false, memory, skill, other)
		query := json.RawMessage(`{"query":"color","k":1}`)
		ev, err := skill.ctx.Request(t.Context(), "memory.query", "s1", query)
		if got, ok := ev.Payload.(event.MemoryResult); err != nil || !ok || got.Hits[0].Text != "blue" {
			t.Errorf("Request() = %+v, %v, want the memory's hit", ev, err)
		}
		if _, err := other.ctx.Request(t.Context(), "memory.query", "s1", query); !errors.Is(err, plugin.ErrCategory) {
			t.Errorf("Request() of an adapter = %v, want %v", err, plugin.ErrCategory)
		}
		if _, err := skill.ctx.Request(t.Context(), "x.asks.it", "s1", query); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("Request() of an event that nobody answers = %v, want %v", err, bus.ErrRefused)
		}
	})
}
