package kernel_test

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
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/agent_tool"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a kernel with the bundled plugins, whose model follows a script.
type world struct {
	*kernel.Kernel
	t    *testing.T
	dir  string
	web  *adapter
	stop func()

	agents *agent_tool.Plugin

	mu  sync.Mutex
	ran []string // tool calls that ran
}

// adapter is a user surface: it sees everything and answers asks.
type adapter struct {
	mu     sync.Mutex
	events []event.Event
	ctx    plugin.Context
	answer func(event.ApprovalRequest) (event.ApprovalAnswer, string) // nil: nobody
	asks   bool
}

func (*adapter) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "test-web", Version: "1.0.0", Category: plugin.Adapter, AdapterID: "web"}
}

func (a *adapter) Subscriptions() []string {
	var kinds []string
	for k := range event.Public() {
		if k.Name != event.ApprovalRequested.Name() || a.asks {
			kinds = append(kinds, k.Name)
		}
	}
	return append(kinds, "x.agent.subagent.started", "x.agent.subagent.completed", "x.agent.subagent.failed", "x.agent.allowlist.narrowed")
}

func (a *adapter) OnLoad(_ context.Context, c plugin.Context) error { a.ctx = c; return nil }
func (a *adapter) OnUnload(context.Context, plugin.Context) error   { return nil }

func (a *adapter) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	a.mu.Lock()
	a.events = append(a.events, ev)
	answer := a.answer
	a.mu.Unlock()
	if r, ok := ev.Payload.(event.ApprovalRequest); ok && answer != nil {
		if v, feedback := answer(r); v != "" {
			return c.Emit(event.ApprovalAnswered.Name(), event.KernelSession, event.ApprovalResponse{ID: r.ID, Response: v, Feedback: feedback})
		}
	}
	return nil
}

// kinds returns what was seen on a session, deltas and requests left out when
// they repeat.
func (a *adapter) kinds(id string) (out []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ev := range a.events {
		if ev.SessionID == id && (len(out) == 0 || out[len(out)-1] != ev.Kind) {
			out = append(out, ev.Kind)
		}
	}
	return out
}

func (a *adapter) all(kind string) (out []event.Event) {
	synctest.Wait() // until it has seen what there is
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ev := range a.events {
		if ev.Kind == kind {
			out = append(out, ev)
		}
	}
	return out
}

type setup struct {
	script   string
	settings map[string]string
	nobody   bool // no adapter that asks
	answer   func(event.ApprovalRequest) (event.ApprovalAnswer, string)
	plugins  []plugin.Plugin
	dir      string
	secrets  *masked.Secrets // optional
}

func approveAll(event.ApprovalRequest) (event.ApprovalAnswer, string) { return event.Approve, "" }

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, dir: s.dir}
	if w.dir == "" {
		w.dir = t.TempDir()
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if s.script != "" {
		set(t, settings, "plugin.llm_echo.script", s.script)
	}
	for k, v := range s.settings {
		set(t, settings, k, v)
	}
	k, err := kernel.Open(kernel.Config{Data: root, Settings: settings, Workspace: "/ws", Version: "test", Secrets: s.secrets, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	w.Kernel = k
	w.tools()
	w.web = &adapter{answer: s.answer, asks: !s.nobody}
	w.agents = agent_tool.New(k.Sessions, k.Loop, agent_tool.Files{User: filepath.Join(w.dir, "agents"), Known: k.Tools.Snapshot})
	k.AddStanding(w.agents.Note)
	plugins := append([]plugin.Plugin{w.web, strategy_react.New(), llm_echo.New(), memory_sqlite.New(filepath.Join(w.dir, "memory.db")), w.agents}, s.plugins...)
	if err := k.Start(t.Context(), plugins...); err != nil {
		t.Fatal(err)
	}
	w.stop = sync.OnceFunc(func() {
		if err := k.Stop(context.Background(), "test over"); err != nil {
			t.Errorf("Stop of the kernel = %v, want no error", err)
		}
		_ = root.Close()
	})
	t.Cleanup(w.stop)
	return w
}

func set(t *testing.T, s *config.Store, key, v string) {
	t.Helper()
	if err := s.Set(key, json.RawMessage(v)); err != nil {
		t.Fatal(err)
	}
}

type sleepArgs struct {
	Name string `json:"name"`
	MS   int    `json:"ms,omitempty"`
}

// tools registers work: it takes a while and then says its name; and danger,
// which needs approval.
func (w *world) tools() {
	run := func(ctx context.Context, _ tool.Call, a sleepArgs) (tool.Result, error) {
		select {
		case <-time.After(time.Duration(a.MS) * time.Millisecond):
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran = append(w.ran, a.Name)
		return tool.OK(a.Name, tool.Text("did "+a.Name)), nil
	}
	for _, d := range []tool.Definition{
		{Name: "work", Kind: tool.KindRead, Description: "works"},
		{Name: "danger", Kind: tool.KindExec, Description: "is dangerous", RequiresApproval: true},
	} {
		x, err := tool.New(d, run)
		if err == nil {
			err = w.Tools.Register(x)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) run(id, text string) loop.Outcome {
	w.t.Helper()
	out, err := w.Loop.Run(w.t.Context(), loop.Prompt{SessionID: id, Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) history(id string) (out []string) {
	w.t.Helper()
	s, err := w.Sessions.Open(id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	msgs, err := s.Messages()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range msgs {
		line := m.Role + ": " + m.Content
		for _, c := range m.ToolCalls {
			line += " [" + c.Name + " " + string(c.Args) + "]"
		}
		out = append(out, line)
	}
	return out
}

func (w *world) tape(id string) (out []string) {
	w.t.Helper()
	s, err := w.Sessions.Open(id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	err = s.Entries(0, func(e session.Entry) error {
		var p struct{ Role, Name string }
		_ = json.Unmarshal(e.Payload, &p)
		out = append(out, strings.TrimSpace(e.Kind+" "+p.Role+p.Name))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// ends returns how the turns of a session ended, in order.
func (w *world) ends(id string) (out []string) {
	for _, ev := range w.events() {
		if ev.SessionID != id {
			continue
		}
		switch p := ev.Payload.(type) {
		case event.TurnCompleted:
			out = append(out, "completed")
		case event.TurnFailed:
			out = append(out, "failed "+p.Kind)
		case event.TurnCancelled:
			out = append(out, "cancelled "+p.Reason)
		}
	}
	return out
}

func (w *world) events() []event.Event {
	synctest.Wait()
	w.web.mu.Lock()
	defer w.web.mu.Unlock()
	return slices.Clone(w.web.events)
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// inBubble runs a test with a fake clock.
func inBubble(t *testing.T, s setup, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		f(t, w)
		w.stop()
	})
}

// Y-157, Y-160, Y-163: the whole sequence, in its one order.
func TestTurnOrder(t *testing.T) {
	inBubble(t, setup{
		script:   `{"steps":[{"text":"let me see","tool_calls":[{"name":"work","args":{"name":"a"}}]},{"text":"all done"}]}`,
		settings: map[string]string{"plugin.strategy_react.memory": `"full"`},
		answer:   approveAll,
	}, func(t *testing.T, w *world) {
		out := w.run("s1", "go on")
		if out.Err != nil || out.Text != "all done" || out.Steps != 2 || len(out.Calls) != 1 || out.Usage.Output == 0 || out.Usage.Total != out.Usage.Input+out.Usage.Output {
			t.Errorf(`got %+v; want "all done" in 2 steps with one call, and the sum of the tokens`, out)
		}
		synctest.Wait()
		// The tape has them in the order in which the kernel accepted them.
		equal(t, w.tape("s1"),
			"anchor session/start", "message user", "event turn.started",
			"event strategy.decide.response", "event memory.query", "event memory.result",
			"event strategy.decide.response", "event llm.call.response",
			"event strategy.decide.response", "tool_call work", "event tool.call.start", "tool_result",
			"event strategy.decide.response", "event llm.call.response",
			"event strategy.decide.response", "message assistant", "event memory.write", "event turn.completed")
		equal(t, w.history("s1"), "user: go on", `assistant: let me see [work {"name":"a"}]`, "tool: did a", "assistant: all done")
		// Another session finds the memories.
		w.run("s2", "go on")
		for _, ev := range w.web.all("llm.call.request") {
			r := ev.Payload.(event.LLMRequest)
			if ev.SessionID == "s2" && !strings.Contains(r.Messages[2].Content, "The user said: go on") {
				t.Errorf("nothing was recalled: %+v", r.Messages)
			}
		}
	})
}

// Y-23, Y-24, Y-31: adapters see the events of a turn.
func TestWhatAdaptersSee(t *testing.T) {
	inBubble(t, setup{script: `{"steps":[{"text":"one two","tool_calls":[{"name":"work","args":{"name":"a"}}]},{"text":"three four five","delay_ms":5}]}`}, func(t *testing.T, w *world) {
		w.run("s1", "go")
		synctest.Wait()
		var text strings.Builder
		for _, ev := range w.web.all("assistant.message.delta") {
			text.WriteString(ev.Payload.(event.Delta).Content)
		}
		if text.String() != "one twothree four five" {
			t.Errorf("streamed %q", text.String())
		}
		done := w.web.all("assistant.message.done")
		if len(done) != 1 || done[0].Payload.(event.AssistantMessage).Content != "three four five" {
			t.Errorf(`got %+v, want one message "three four five"`, done)
		}
		start := w.web.all("tool.call.start")[0].Payload.(event.ToolCall)
		if start.Name != "work" || string(start.Args) != `{"name":"a"}` {
			t.Errorf(`got %+v, want work with {"name":"a"}`, start)
		}
		// Every delta comes before the end of its message.
		k := w.web.kinds("s1")
		if slices.Index(k, "assistant.message.done") < slices.Index(k, "assistant.message.delta") {
			t.Errorf("got %v, want the deltas before the end of their message", k)
		}
	})
}

// A late reader never sees a delta behind the message that it belongs to.
func TestDeltasComeFirst(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		var kinds []string
		var mu sync.Mutex
		if _, err := w.Sessions.Attach("s1", session.AttachOptions{Send: func(_ context.Context, it session.Item) error {
			mu.Lock()
			defer mu.Unlock()
			kinds = append(kinds, it.Event.Kind)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			w.run("s1", strings.Repeat("word ", 200)+fmt.Sprint(i))
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		open := false
		for i, k := range kinds {
			switch k {
			case "turn.started":
				open = true
			case "assistant.message.done":
				open = false
			case "assistant.message.delta":
				if !open {
					t.Fatalf("item %d is a delta without a message", i)
				}
			}
		}
	})
}

// A strategy of its own, for decisions that the loop must refuse.
type strategy struct {
	decide func(event.LoopState) (event.DecideResponse, error)
}

func (*strategy) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "strategy-test", Version: "1.0.0", Category: plugin.Strategy, StrategyID: "test"}
}
func (*strategy) Subscriptions() []string                        { return []string{"strategy.decide.request"} }
func (*strategy) OnLoad(context.Context, plugin.Context) error   { return nil }
func (*strategy) OnUnload(context.Context, plugin.Context) error { return nil }
func (s *strategy) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	d, err := s.decide(ev.Payload.(event.DecideRequest).State)
	if err != nil {
		return err
	}
	d.Request = event.Request{RequestID: ev.ID}
	return c.Emit("strategy.decide.response", ev.SessionID, d)
}

// model is a provider that answers without the runner of the bundled ones, as a plugin does.
type model struct{ answer event.LLMResponse }

func (*model) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "llm-test", Version: "1.0.0", Category: plugin.LLMProvider, ProviderID: "test"}
}
func (*model) Subscriptions() []string                        { return []string{"llm.call.request"} }
func (*model) OnLoad(context.Context, plugin.Context) error   { return nil }
func (*model) OnUnload(context.Context, plugin.Context) error { return nil }
func (m *model) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	m.answer.Request = event.Request{RequestID: ev.ID}
	return c.Emit("llm.call.response", ev.SessionID, m.answer)
}

// An answer without text and calls is a failure, from whatever provider: a turn without an answer
// would count as done.
func TestEmptyAnswer(t *testing.T) {
	for text, want := range map[string]string{"": "failed empty", " \n": "failed empty", "x": "completed"} {
		inBubble(t, setup{plugins: []plugin.Plugin{&model{event.LLMResponse{Text: text}}}, settings: map[string]string{"providers.mine.plugin": `"llm-test"`, "provider": `"mine"`}}, func(t *testing.T, w *world) {
			w.run("s1", "go")
			equal(t, w.ends("s1"), want)
		})
	}
}

// Y-158, Y-11, Y-41, Y-42: a strategy decides what, not in which order.
func TestStrategyCannotChangeTheOrder(t *testing.T) {
	llm := event.DecideResponse{Next: event.NextLLM, Provider: "llm-echo"}
	for name, c := range map[string]struct {
		decide func(event.LoopState) (event.DecideResponse, error)
		want   string
	}{
		"done before the model": {func(event.LoopState) (event.DecideResponse, error) {
			return event.DecideResponse{Next: event.NextDone}, nil
		}, "failed strategy"},
		"tools before the model": {func(event.LoopState) (event.DecideResponse, error) {
			return event.DecideResponse{Next: event.NextTool}, nil
		}, "failed strategy"},
		"memory after the model": {func(s event.LoopState) (event.DecideResponse, error) {
			if s.Step > 0 {
				return event.DecideResponse{Next: event.NextMemory}, nil
			}
			return llm, nil
		}, "failed strategy"},
		"memory twice": {func(s event.LoopState) (event.DecideResponse, error) {
			return event.DecideResponse{Next: event.NextMemory, Query: "q"}, nil
		}, "failed strategy"},
		"the model over open calls": {func(event.LoopState) (event.DecideResponse, error) { return llm, nil }, "failed strategy"},
		"an error": {func(event.LoopState) (event.DecideResponse, error) {
			return event.DecideResponse{}, errors.New("no idea")
		}, "failed strategy"},
		"a panic": {func(event.LoopState) (event.DecideResponse, error) { panic("oh") }, "failed strategy"},
		"no such provider": {func(event.LoopState) (event.DecideResponse, error) {
			return event.DecideResponse{Next: event.NextLLM, Provider: "nope"}, nil
		}, "failed other"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{
				script:   `{"steps":[{"tool_calls":[{"name":"work","args":{"name":"a"}}]}]}`,
				settings: map[string]string{"strategy": `"test"`}, plugins: []plugin.Plugin{&strategy{c.decide}},
			}, func(t *testing.T, w *world) {
				start := time.Now()
				out := w.run("s1", "go")
				if out.Err == nil || time.Since(start) > time.Second {
					t.Errorf("after %v: %+v", time.Since(start), out)
				}
				equal(t, w.ends("s1"), c.want)
			})
		})
	}
}

// Y-156: react is the default; a setting or a session's own choice changes it.
func TestStrategySelection(t *testing.T) {
	own := &strategy{func(s event.LoopState) (event.DecideResponse, error) {
		if s.Answered {
			return event.DecideResponse{Next: event.NextDone}, nil
		}
		return event.DecideResponse{Next: event.NextLLM, Provider: "llm-echo", System: "be brief", Tools: []string{"work"}}, nil
	}}
	inBubble(t, setup{plugins: []plugin.Plugin{own}}, func(t *testing.T, w *world) {
		system := func(id string) (string, int) {
			w.run(id, "hi")
			synctest.Wait()
			rs := w.web.all("llm.call.request")
			r := rs[len(rs)-1].Payload.(event.LLMRequest)
			return r.Messages[0].Content, len(r.Tools)
		}
		if s, n := system("s1"); s != strategy_react.DefaultPrompt || n != 4 {
			t.Errorf("got %q, %d tools", s, n)
		}
		w.Loop.SetStrategy("s2", "test")
		if s, n := system("s2"); s != "be brief" || n != 1 {
			t.Errorf("got %q, %d tools", s, n)
		}
		set(t, w.Settings, "strategy", `"test"`)
		if s, _ := system("s1"); s != "be brief" {
			t.Errorf(`got %q, want "be brief"`, s)
		}
		set(t, w.Settings, "strategy", `"gone"`)
		if out := w.run("s1", "hi"); out.Err == nil || !strings.Contains(out.Err.Error(), `no strategy "gone"`) {
			t.Errorf(`got %+v; want an error: no strategy "gone"`, out)
		}
	})
}

// Y-74, Y-88, Y-86, Y-85: flipping the active provider counts from the next
// decision, and a changed instance from the next call.
func TestProviderSwitch(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		if out := w.run("s1", "hi"); out.Text != "echo: hi" {
			t.Fatalf(`got %+v; want "echo: hi"`, out)
		}
		set(t, w.Settings, "providers.other.plugin", `"llm-echo"`)
		set(t, w.Settings, "providers.other.model", `"m2"`)
		set(t, w.Settings, "providers.other.script", `{"steps":[{"text":"other"}]}`)
		set(t, w.Settings, "provider", `"other"`)
		synctest.Wait()
		if out := w.run("s1", "hi"); out.Text != "other" {
			t.Errorf(`got %+v, want "other"`, out)
		}
		rs := w.web.all("llm.call.request")
		if r := rs[len(rs)-1].Payload.(event.LLMRequest); r.Provider != "other" || r.Model != "m2" {
			t.Errorf("got %+v, want the provider other and the model m2", r)
		}
		if ts := w.web.all("turn.started"); ts[1].Payload.(event.TurnStarted).Model != "m2" {
			t.Errorf("got %+v, want the model m2", ts[1])
		}
		set(t, w.Settings, "providers.other.script", `{"steps":[{"text":"new words"}]}`)
		synctest.Wait()
		if out := w.run("s1", "again"); out.Text != "new words" {
			t.Errorf(`got %+v, want "new words"`, out)
		}
		if _, err := w.Settings.Unset("providers.other.*"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if out := w.run("s1", "hi"); out.Err == nil || !strings.Contains(out.Err.Error(), `"other" does not exist`) {
			t.Errorf(`got %+v; want an error: "other" does not exist`, out)
		}
	})
}

// Y-159: a turn sees what was said before, across a restart.
func TestHydration(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		inBubble(t, setup{dir: dir}, func(t *testing.T, w *world) {
			w.run("s1", fmt.Sprint("turn ", i))
			synctest.Wait()
			rs := w.web.all("llm.call.request")
			var got []string
			for _, m := range rs[len(rs)-1].Payload.(event.LLMRequest).Messages[1:] {
				got = append(got, m.Role+": "+m.Content)
			}
			if i == 0 {
				equal(t, got, "user: turn 0")
			} else {
				equal(t, got, "user: turn 0", "assistant: echo: turn 0", "user: turn 1")
			}
		})
	}
}

// Y-161: without a session store a turn starts from its one message, and still
// has its own tool results.
func TestWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, setup{script: `{"scenarios":[{"match":"tool","steps":[{"tool_calls":[{"name":"work","args":{"name":"a"}}]}]}]}`})
		defer w.stop()
		b := bus.New(bus.Config{})
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		// The plugins answer on a bus of their own, which keeps nothing.
		reg, err := plugin.NewRegistry(plugin.Config{Bus: b, Config: w.Settings, Tools: new(tool.Registry), State: root, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		reg.Load(t.Context(), true, strategy_react.New(), llm_echo.New())
		stop, err := w.Dispatch.Serve(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		l, err := loop.New(loop.Config{Bus: b, Tools: w.Tools, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		var asked []event.LLMRequest
		if _, err := bus.On(b, bus.SubscribeOptions{Name: "t"}, event.LLMCallRequest, func(_ context.Context, _ event.Event, r event.LLMRequest) error {
			asked = append(asked, r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"one", "two tool"} {
			if out, err := l.Run(t.Context(), loop.Prompt{SessionID: "s1", Text: text}); err != nil || out.Err != nil {
				t.Fatalf("got %v, %v, want no error", out, err)
			}
		}
		synctest.Wait()
		if len(asked) != 3 || len(asked[1].Messages) != 2 || asked[1].Messages[1].Content != "two tool" {
			t.Errorf(`got %+v; want 3 requests, the second with 2 messages, the last of which is "two tool"`, asked)
		}
		if m := asked[2].Messages; len(m) != 4 || m[3].Role != "tool" || m[3].Content != "did a" {
			t.Errorf(`got %+v; want 4 messages, the last the result "did a" of a tool`, m)
		}
		if err := errors.Join(l.Close(t.Context()), reg.Stop()); err != nil {
			t.Errorf("Close of the loop and Stop of the plugins = %v, want no error", err)
		}
		stop()
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("Close of the bus = %v, want no error", err)
		}
	})
}

// Y-162: calls of one turn run at once; each result finds its call; the model
// gets them in the order of its calls.
func TestParallelCalls(t *testing.T) {
	inBubble(t, setup{script: `{"steps":[{"tool_calls":[{"name":"work","args":{"name":"slow","ms":3000}},{"name":"work","args":{"name":"bad","ms":"x"}},{"name":"nope","args":{}},{"name":"work","args":{"name":"quick","ms":1000}}]},{"text":"ok"}]}`}, func(t *testing.T, w *world) {
		start := time.Now()
		if out := w.run("s1", "go"); out.Err != nil || len(out.Calls) != 4 {
			t.Errorf("got %+v, want 4 calls and no error", out)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v: they did not run at once", took)
		}
		equal(t, w.ran, "quick", "slow")
		h := w.history("s1")
		if h[2] != "tool: did slow" || !strings.Contains(h[3], "invalid arguments for work") || !strings.Contains(h[4], `unknown tool "nope"`) || h[5] != "tool: did quick" {
			t.Errorf("got %q, want the results in the order of the calls", h)
		}
	})
}

// MIS-1, OP-5: a turn may take hundreds of model calls; then it ends clearly, and the bound
// can be set.
func TestMaxIterations(t *testing.T) {
	steps := func(n int) string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf(`{"tool_calls":[{"name":"work","args":{"name":"n%d"}}]}`, i))
		}
		return `{"steps":[` + strings.Join(s, ",") + `]}`
	}
	inBubble(t, setup{script: steps(200)}, func(t *testing.T, w *world) {
		if out := w.run("s0", "go"); out.Err != nil || out.Steps != 201 || len(w.ran) != 200 {
			t.Errorf("got %d steps, %d calls, %v; want 201 and 200", out.Steps, len(w.ran), out.Err)
		}
		if got := w.Settings.Int("loop.max_iterations"); got != 500 || loop.DefaultMaxIterations != 500 {
			t.Errorf("the bound is %d by default, want 500", got)
		}
		w.ran = nil
		set(t, w.Settings, "loop.max_iterations", `16`)
		out := w.run("s1", "go")
		if out.Kind != "max_iterations" || out.Steps != 16 || len(w.ran) != 16 || !strings.HasSuffix(out.Err.Error(), "16 model calls (setting loop.max_iterations): send a message to go on") {
			t.Errorf("got %+v, want max_iterations after 16 steps and 16 calls", out)
		}
		equal(t, w.ends("s1"), "failed max_iterations")
		set(t, w.Settings, "loop.max_iterations", `3`)
		if out := w.run("s1", "again"); out.Steps != 3 {
			t.Errorf("got %+v, want 3 steps", out)
		}
	})
}

// TW-21: the same call over and over is stopped, others are not.
func TestDuplicateCallGuard(t *testing.T) {
	same := `{"tool_calls":[{"name":"work","args":{"name":"a"}}]}`
	inBubble(t, setup{script: `{"steps":[` + strings.Join([]string{same, same, same, same, same}, ",") + `,{"tool_calls":[{"name":"work","args":{"name":"b"}}]},{"text":"ok"}]}`}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Err != nil || out.Text != "ok" {
			t.Errorf(`got %+v, want "ok" and no error`, out)
		}
		equal(t, w.ran, "a", "a", "a", "b")
		if h := w.history("s1"); !strings.Contains(h[8], "this turn has made this very call 3 times") {
			t.Errorf("got %q, want the notice of 3 same calls", h[8])
		}
		w.run("s1", "go") // another turn may
		if len(w.ran) != 8 {
			t.Errorf("ran %v", w.ran)
		}
	})
}

// A call that is answered differently each time is not a repetition: the output of a command that runs, say.
func TestSameCallWithNews(t *testing.T) {
	var steps []string
	for range 8 {
		steps = append(steps, `{"tool_calls":[{"name":"tick","args":{}}]}`)
	}
	inBubble(t, setup{script: `{"steps":[` + strings.Join(steps, ",") + `,{"text":"ok"}]}`}, func(t *testing.T, w *world) {
		n := 0
		tick, err := tool.New(tool.Definition{Name: "tick", Kind: tool.KindRead, Description: "counts"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
			n++
			return tool.OK("counted", tool.Text(fmt.Sprint(min(n, 4)))), nil
		})
		if err == nil {
			err = w.Tools.Register(tick)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out := w.run("s1", "go"); out.Err != nil || n != 6 {
			t.Errorf("the tool ran %d times (%v), want until it has answered 3 times the same, which is 6", n, out.Err)
		}
	})
}

// A model that makes one call again and again, whatever it is told, ends its turn soon, and says why.
func TestEndlessRepetition(t *testing.T) {
	same := `{"tool_calls":[{"name":"work","args":{"name":"a"}}]}`
	inBubble(t, setup{script: `{"steps":[` + strings.Repeat(same+",", 60) + `{"text":"ok"}]}`}, func(t *testing.T, w *world) {
		out := w.run("s1", "go")
		if out.Kind != "repeated_calls" || out.Steps != 13 || !strings.Contains(out.Err.Error(), "repeats the call of work") {
			t.Errorf("got %s after %d steps, %v; want repeated_calls after 3 calls and 10 denials", out.Kind, out.Steps, out.Err)
		}
		equal(t, w.ran, "a", "a", "a")
		equal(t, w.ends("s1"), "failed repeated_calls")
	})
}

// OP-6: a turn may make the same call again after it has changed something.
func TestSameCallAfterAChange(t *testing.T) {
	var steps []string
	for i := range 6 {
		steps = append(steps, fmt.Sprintf(`{"tool_calls":[{"name":"danger","args":{"name":"change %d"}}]},{"tool_calls":[{"name":"work","args":{"name":"check"}}]}`, i))
	}
	inBubble(t, setup{script: `{"steps":[` + strings.Join(steps, ",") + `,{"text":"ok"}]}`, answer: approveAll}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Err != nil || len(w.ran) != 12 {
			t.Errorf("ran %q, %v; want six changes and six checks", w.ran, out.Err)
		}
	})
}

// Y-22: cancelling is immediate, ends calls, model and asks, and the turn once.
func TestCancel(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		how    func(w *world) error
	}{
		"in a tool, by the loop":     {`{"steps":[{"tool_calls":[{"name":"work","args":{"name":"a","ms":60000}}]}]}`, func(w *world) error { w.Loop.Cancel("s1"); return nil }},
		"in a tool, by an adapter":   {`{"steps":[{"tool_calls":[{"name":"work","args":{"name":"a","ms":60000}}]}]}`, func(w *world) error { return w.web.ctx.Emit("user.interrupt", "s1", nil) }},
		"in the model":               {`{"steps":[{"text":"a b c d e f","delay_ms":60000}]}`, func(w *world) error { w.Loop.Cancel("s1"); return nil }},
		"in the model, from outside": {`{"steps":[{"text":"a b c d e f","delay_ms":60000}]}`, func(w *world) error { return w.web.ctx.Emit("user.interrupt", "s1", nil) }},
		"in an ask":                  {`{"steps":[{"tool_calls":[{"name":"danger","args":{"name":"a"}}]}]}`, func(w *world) error { w.Loop.Cancel("s1"); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: c.script}, func(t *testing.T, w *world) {
				done := make(chan loop.Outcome)
				go func() { done <- w.run("s1", "go") }()
				time.Sleep(time.Second)
				start := time.Now()
				if err := c.how(w); err != nil {
					t.Fatal(err)
				}
				out := <-done
				if took := time.Since(start); took > 0 {
					t.Errorf("took %v", took)
				}
				if !errors.Is(out.Err, loop.ErrInterrupted) || out.Kind != "cancelled" || len(w.ran) != 0 {
					t.Errorf("got %+v, want it cancelled with %v and no call run", out, loop.ErrInterrupted)
				}
				time.Sleep(time.Minute)
				equal(t, w.ends("s1"), "cancelled interrupted")
				if n := len(w.Approvals.Pending()); n != 0 {
					t.Errorf("%d asks are left", n)
				}
				if state, _ := w.Loop.State("s1"); state != loop.Idle || w.Loop.Cancel("s1") {
					t.Errorf("it is %s", state)
				}
				set(t, w.Settings, "plugin.llm_echo.script", `{}`)
				synctest.Wait()
				if out := w.run("s1", "go on"); out.Err != nil {
					t.Errorf("the session does not go on: %+v", out)
				}
			})
		})
	}
}

// The known deadlocks: each ends in one terminal event within its own time.
func TestKnownDeadlocks(t *testing.T) {
	danger := `{"scenarios":[{"match":"go","steps":[{"tool_calls":[{"name":"danger","args":{"name":"a"}}]}]},{"match":"delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"go"}}]}]}]}`
	t.Run("an approval that takes longer than a handler may", func(t *testing.T) {
		inBubble(t, setup{script: danger}, func(t *testing.T, w *world) {
			go func() {
				time.Sleep(40 * time.Second)
				if state, _ := w.Loop.State("s1"); state != loop.RequiresAction {
					t.Errorf("it is %s", state)
				}
				if _, err := w.Approvals.Answer(w.Approvals.Pending()[0].ID, event.Approve, "", "phone"); err != nil {
					t.Errorf("Answer = %v, want no error", err)
				}
			}()
			start := time.Now()
			if out := w.run("s1", "go"); out.Err != nil || out.Text != "did a" || time.Since(start) != 40*time.Second {
				t.Errorf("after %v: %+v", time.Since(start), out)
			}
			equal(t, w.ends("s1"), "completed")
		})
	})
	t.Run("a rejected call", func(t *testing.T) {
		inBubble(t, setup{script: danger, answer: func(event.ApprovalRequest) (event.ApprovalAnswer, string) {
			return event.Reject, "not on my machine"
		}}, func(t *testing.T, w *world) {
			if out := w.run("s1", "go"); out.Err != nil || !strings.Contains(out.Text, "not on my machine") || len(w.ran) != 0 {
				t.Errorf("got %+v; want the feedback in the text, and no call run", out)
			}
			equal(t, w.ends("s1"), "completed")
		})
	})
	t.Run("an ask that nobody answers", func(t *testing.T) {
		inBubble(t, setup{script: danger}, func(t *testing.T, w *world) {
			start := time.Now()
			if out := w.run("s1", "go"); out.Err != nil || !strings.Contains(out.Text, "timeout") || time.Since(start) != time.Hour {
				t.Errorf("after %v: %+v", time.Since(start), out)
			}
			equal(t, w.ends("s1"), "completed")
		})
	})
	t.Run("a sub-agent's ask with nobody there", func(t *testing.T) {
		inBubble(t, setup{script: danger, nobody: true, settings: map[string]string{"approval.rules": `[{"tool":"agent","decision":"allow"}]`}}, func(t *testing.T, w *world) {
			start := time.Now()
			out := w.run("s1", "delegate")
			if out.Err != nil || !strings.Contains(out.Text, "nobody is there to ask") || time.Since(start) != 0 {
				t.Errorf("after %v: %+v", time.Since(start), out)
			}
			equal(t, w.ends("s1"), "completed")
		})
	})
	t.Run("a sub-agent's ask with a reader of its root", func(t *testing.T) {
		inBubble(t, setup{script: danger, nobody: true, settings: map[string]string{"approval.rules": `[{"tool":"agent","decision":"allow"}]`}}, func(t *testing.T, w *world) {
			if _, err := w.Sessions.Attach("s1", session.AttachOptions{Send: func(_ context.Context, it session.Item) error {
				if r, ok := it.Event.Payload.(event.ApprovalRequest); ok {
					_, err := w.Approvals.Answer(r.ID, event.Approve, "", "reader")
					return err
				}
				return nil
			}}); err != nil {
				t.Fatal(err)
			}
			if out := w.run("s1", "delegate"); out.Err != nil || out.Text != "did a" {
				t.Errorf(`got %+v, want "did a" and no error`, out)
			}
		})
	})
	t.Run("shutdown in an ask", func(t *testing.T) {
		inBubble(t, setup{script: danger}, func(t *testing.T, w *world) {
			done := make(chan loop.Outcome)
			go func() { done <- w.run("s1", "go") }()
			time.Sleep(time.Second)
			start := time.Now()
			w.stop()
			out := <-done
			if took := time.Since(start); took > 0 {
				t.Errorf("took %v", took)
			}
			// Its ask was cancelled first; whether the turn then ended by itself or was
			// cancelled, it has ended once.
			if n := len(w.ends("s1")); n != 1 || len(w.ran) != 0 {
				t.Errorf("%d ends: %+v", n, out)
			}
			// Y-140: asks end before anybody hears of the shutdown.
			var order []string
			for _, ev := range w.events() {
				if ev.Kind == "approval.cancelled" || ev.Kind == "kernel.shutdown" {
					order = append(order, ev.Kind)
				}
			}
			if len(order) != 2 {
				t.Errorf("got %v, want approval.cancelled and kernel.shutdown", order)
			}
			if c := w.web.all("approval.cancelled")[0].Payload.(event.ApprovalCancelled); c.Reason != "shutdown" {
				t.Errorf(`got %+v, want the reason "shutdown"`, c)
			}
		})
	})
}

// Delivery of prompts while a turn runs.
func TestDelivery(t *testing.T) {
	script := `{"scenarios":[{"match":"long","steps":[{"tool_calls":[{"name":"work","args":{"name":"a","ms":5000}}]}]}]}`
	start := func(w *world) chan loop.Outcome {
		done := make(chan loop.Outcome)
		go func() { done <- w.run("s1", "long") }()
		time.Sleep(time.Second)
		return done
	}
	submit := func(w *world, p loop.Prompt) (loop.Admission, error) {
		p.SessionID = "s1"
		return w.Loop.Submit(w.t.Context(), p)
	}
	t.Run("reject", func(t *testing.T) {
		inBubble(t, setup{script: script}, func(t *testing.T, w *world) {
			done := start(w)
			if _, err := submit(w, loop.Prompt{ID: "p", Text: "hi"}); !errors.Is(err, loop.ErrBusy) {
				t.Errorf("got %v, want %v", err, loop.ErrBusy)
			}
			if _, err := submit(w, loop.Prompt{Text: "hi", Delivery: "somehow"}); err == nil {
				t.Error("any delivery will do")
			}
			<-done
			if len(w.history("s1")) != 4 { // nothing was stored
				t.Errorf("got %q, want 4 messages", w.history("s1"))
			}
			if a, err := submit(w, loop.Prompt{ID: "p", Text: "hi"}); err != nil || a.Duplicate {
				t.Errorf("its id is taken: %+v %v", a, err)
			}
		})
	})
	t.Run("queue", func(t *testing.T) {
		inBubble(t, setup{script: script}, func(t *testing.T, w *world) {
			done := start(w)
			for _, id := range []string{"q1", "q2", "q3"} {
				if a, err := submit(w, loop.Prompt{ID: id, Text: "do " + id, Delivery: loop.DeliverQueue}); err != nil || !a.Queued {
					t.Errorf("got %+v, %v; want it queued", a, err)
				}
			}
			if a, err := submit(w, loop.Prompt{ID: "q1", Text: "do q1", Delivery: loop.DeliverQueue}); err != nil || !a.Duplicate || !a.Queued {
				t.Errorf("got %+v, %v; want a duplicate that is queued", a, err)
			}
			left, err := w.Loop.Queue(t.Context(), "s1", []string{"q3", "q1"}) // q2 is taken back, q3 comes first
			if err != nil || len(left) != 2 {
				t.Errorf("got %+v, %v; want 2 prompts left", left, err)
			}
			if _, err := w.Loop.Queue(t.Context(), "s1", []string{"q2"}); err == nil {
				t.Error("a prompt came back from nowhere")
			}
			<-done
			time.Sleep(time.Second)
			equal(t, w.history("s1"), "user: long", `assistant:  [work {"name":"a","ms":5000}]`, "tool: did a", "assistant: did a",
				"user: do q3", "assistant: echo: do q3", "user: do q1", "assistant: echo: do q1")
			equal(t, w.ends("s1"), "completed", "completed", "completed")
		})
	})
	// REL-1, OP-3: a restart goes on with a queue by itself.
	t.Run("queue survives a restart", func(t *testing.T) {
		dir := t.TempDir()
		inBubble(t, setup{script: script, dir: dir}, func(t *testing.T, w *world) {
			done := start(w)
			if _, err := submit(w, loop.Prompt{ID: "q1", Text: "later", Delivery: loop.DeliverQueue}); err != nil {
				t.Fatal(err)
			}
			w.stop()
			<-done
		})
		inBubble(t, setup{dir: dir}, func(t *testing.T, w *world) {
			s, err := w.Sessions.Open("s1", "")
			if err != nil {
				t.Fatal(err)
			}
			if sn, _ := s.Snapshot(); len(sn.Queue) != 1 {
				t.Errorf("got %+v, want one prompt in the queue", sn)
			}
			if err := w.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			w.run("s1", "last")
			h := w.history("s1")
			equal(t, h[len(h)-4:], "user: later", "assistant: echo: later", "user: last", "assistant: echo: last")
			if marks, err := os.ReadDir(filepath.Join(dir, "tapes", ".queued")); err != nil || len(marks) > 0 {
				t.Errorf("got %v, %v; want no marker for an empty queue", marks, err)
			}
		})
	})
	// REL-1, REL-2: between the end of a turn and the start of what waits behind it, and
	// after a restart, nothing runs and the queue is not empty.
	t.Run("queue behind what waits while nothing runs", func(t *testing.T) {
		dir := t.TempDir()
		inBubble(t, setup{script: script, dir: dir}, func(t *testing.T, w *world) {
			done := start(w)
			if _, err := submit(w, loop.Prompt{ID: "q1", Text: "one", Delivery: loop.DeliverQueue}); err != nil {
				t.Fatal(err)
			}
			w.stop()
			<-done
		})
		inBubble(t, setup{dir: dir}, func(t *testing.T, w *world) {
			for _, p := range []loop.Prompt{{ID: "q2", Text: "two"}, {ID: "q3", Text: "three"}} {
				p.Delivery = loop.DeliverQueue
				if a, err := submit(w, p); err != nil || !a.Queued {
					t.Errorf("%s: got %+v, %v; want it queued", p.ID, a, err)
				}
			}
			time.Sleep(time.Second)
			h := w.history("s1")
			equal(t, h[len(h)-6:], "user: one", "assistant: echo: one", "user: two", "assistant: echo: two", "user: three", "assistant: echo: three")
		})
	})
	t.Run("steer", func(t *testing.T) {
		inBubble(t, setup{script: script}, func(t *testing.T, w *world) {
			done := start(w)
			_, turn := w.Loop.State("s1")
			if _, err := submit(w, loop.Prompt{Text: "x", Delivery: loop.DeliverSteer, ExpectedTurn: "turn_other"}); !errors.Is(err, loop.ErrTurn) {
				t.Errorf("got %v, want %v", err, loop.ErrTurn)
			}
			if a, err := submit(w, loop.Prompt{Text: "and be nice", Delivery: loop.DeliverSteer, ExpectedTurn: turn}); err != nil || a.TurnID != turn {
				t.Errorf("got %+v, %v; want it in the turn %s", a, err, turn)
			}
			<-done
			h := w.history("s1")
			if h[3] != "user: and be nice" || h[4] != "assistant: echo: and be nice" {
				t.Errorf("got %q, want the steering message and its answer at 3 and 4", h)
			}
			equal(t, w.ends("s1"), "completed")
		})
	})
	t.Run("steer into the end", func(t *testing.T) {
		inBubble(t, setup{script: `{"scenarios":[{"match":"long","steps":[{"text":"an answer","delay_ms":1000}]}]}`}, func(t *testing.T, w *world) {
			done := make(chan loop.Outcome)
			go func() { done <- w.run("s1", "long") }()
			time.Sleep(1500 * time.Millisecond) // half of it is streamed
			if _, err := submit(w, loop.Prompt{Text: "wait", Delivery: loop.DeliverSteer}); err != nil {
				t.Fatal(err)
			}
			<-done
			equal(t, w.history("s1"), "user: long", "user: wait", "assistant: echo: wait")
			equal(t, w.ends("s1"), "completed")
		})
	})
	// The last moments: while the strategy decides that it is done, and after.
	t.Run("steer at the last moment", func(t *testing.T) {
		var w *world
		steered := false
		own := &strategy{func(s event.LoopState) (event.DecideResponse, error) {
			if s.Answered {
				if !steered {
					steered = true
					if a, err := w.Loop.Submit(context.Background(), loop.Prompt{SessionID: "s1", Text: "one more thing", Delivery: loop.DeliverSteer}); err != nil || a.TurnID != s.TurnID {
						t.Errorf("got %+v, %v; want it in the turn %s", a, err, s.TurnID)
					}
				}
				return event.DecideResponse{Next: event.NextDone}, nil
			}
			return event.DecideResponse{Next: event.NextLLM, Provider: "llm-echo"}, nil
		}}
		inBubble(t, setup{settings: map[string]string{"strategy": `"test"`}, plugins: []plugin.Plugin{own}}, func(t *testing.T, inner *world) {
			w = inner
			if out := w.run("s1", "go"); out.Err != nil || out.Text != "echo: one more thing" {
				t.Errorf(`got %+v; want "echo: one more thing" and no error`, out)
			}
			equal(t, w.history("s1"), "user: go", "assistant: echo: go", "user: one more thing", "assistant: echo: one more thing")
			equal(t, w.ends("s1"), "completed")
		})
	})
	// A turn that is about to end is nobody's reason to be refused: clients learn of its
	// end a moment before there is room for the next.
	for _, delivery := range []loop.Delivery{loop.DeliverSteer, loop.DeliverReject} {
		t.Run(string(delivery)+" behind the last moment", func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, w *world) {
				late := make(chan loop.Admission, 1)
				var once sync.Once
				// While the end of the message is being published, the turn cannot be joined.
				if _, err := w.Bus.Subscribe(bus.SubscribeOptions{Name: "late", Filter: func(event.Event) bool {
					once.Do(func() {
						go func() {
							a, err := submit(w, loop.Prompt{Text: "too late", Delivery: delivery})
							if err != nil {
								t.Errorf("a prompt at the end of the turn: %v, want it to be admitted", err)
							}
							late <- a
						}()
						time.Sleep(time.Second)
					})
					return false
				}}, []string{"assistant.message.done"}, func(context.Context, event.Event) error { return nil }); err != nil {
					t.Fatal(err)
				}
				first := w.run("s1", "go")
				if a := <-late; a.TurnID == first.TurnID || a.TurnID == "" {
					t.Errorf("got %+v, want a turn other than %s", a, first.TurnID)
				}
				time.Sleep(time.Second)
				equal(t, w.history("s1"), "user: go", "assistant: echo: go", "user: too late", "assistant: echo: too late")
				equal(t, w.ends("s1"), "completed", "completed")
			})
		})
	}
	t.Run("steer at any moment", func(t *testing.T) {
		w := newWorld(t, setup{}) // in real time: the moments differ
		for i := range 60 {
			if _, err := submit(w, loop.Prompt{Text: fmt.Sprint("first ", i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(i) * 20 * time.Microsecond)
			text := fmt.Sprint("second ", i)
			if _, err := submit(w, loop.Prompt{Text: text, Delivery: loop.DeliverSteer}); err != nil {
				t.Fatal(err)
			}
			for n := 0; ; n++ { // whatever the moment, a prompt that is admitted is answered
				if state, _ := w.Loop.State("s1"); state == loop.Idle {
					break
				} else if n > 5000 {
					t.Fatal("it does not end")
				}
				time.Sleep(time.Millisecond)
			}
			h := w.history("s1")
			if h[len(h)-1] != "assistant: echo: "+text {
				t.Fatalf("round %d ends with %q", i, h[max(0, len(h)-4):])
			}
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		inBubble(t, setup{script: script}, func(t *testing.T, w *world) {
			done := start(w)
			if a, err := submit(w, loop.Prompt{Text: "now", Delivery: loop.DeliverInterrupt}); err != nil || a.TurnID == "" {
				t.Errorf("got %+v, %v; want a turn and no error", a, err)
			}
			<-done
			time.Sleep(time.Second)
			equal(t, w.ends("s1"), "cancelled interrupted", "completed")
			h := w.history("s1")
			if len(h) != 5 || !strings.Contains(h[2], "was cancelled") || h[4] != "assistant: echo: now" {
				t.Errorf(`got %q; want 5 messages, with the cancelled one at 2 and the answer to "now" at 4`, h)
			}
		})
	})
	t.Run("supersede", func(t *testing.T) { // what bus adapters get
		inBubble(t, setup{script: script}, func(t *testing.T, w *world) {
			done := start(w)
			for _, text := range []string{"second", "third"} {
				if err := w.web.ctx.Emit("user.message.received", "s1", event.UserMessage{Text: text}); err != nil {
					t.Fatal(err)
				}
			}
			<-done
			time.Sleep(time.Second)
			ends := w.ends("s1")
			if ends[0] != "cancelled superseded by a newer message" || ends[len(ends)-1] != "completed" {
				t.Errorf("got %q; want the first superseded, and the last completed", ends)
			}
			h := w.history("s1")
			if h[len(h)-1] != "assistant: echo: third" || !slices.Contains(h, "user: second") {
				t.Errorf(`got %q; want "second" in it, and the answer to "third" last`, h)
			}
		})
	})
}

// The same id and content is the same prompt, once; other content is a conflict.
func TestIdempotence(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		p := loop.Prompt{SessionID: "s1", ID: "m1", Text: "hi"}
		first, err := w.Loop.Submit(t.Context(), p)
		if err != nil || first.Duplicate || first.TurnID == "" || first.Entry != 2 {
			t.Fatalf("got %+v, %v; want entry 2 in a turn, and no duplicate", first, err)
		}
		time.Sleep(time.Second)
		again, err := w.Loop.Submit(t.Context(), p)
		if err != nil || !again.Duplicate || again.Entry != first.Entry {
			t.Errorf("got %+v, %v; want a duplicate with entry %d", again, err, first.Entry)
		}
		p.Text = "other"
		if _, err := w.Loop.Submit(t.Context(), p); !errors.Is(err, loop.ErrConflict) {
			t.Errorf("got %v, want %v", err, loop.ErrConflict)
		}
		equal(t, w.history("s1"), "user: hi", "assistant: echo: hi")
	})
}

// A model that fails: the turn fails once, with the kind; a retry works.
func TestModelErrorsAndRetry(t *testing.T) {
	inBubble(t, setup{script: `{"steps":[{"error":{"kind":"status","status_code":401,"message":"bad key"}},{"text":"fine now"}]}`}, func(t *testing.T, w *world) {
		out := w.run("s1", "go")
		if want := "llm-echo: status 401: bad key; to set another key: yaya secret set llm-echo, then"; out.Kind != "status" || !strings.HasPrefix(out.Err.Error(), want) {
			t.Errorf("got %+v, want the kind status and the error %q", out, want)
		}
		a, err := w.Loop.Retry("s1", "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		equal(t, w.ends("s1"), "failed status", "completed")
		equal(t, w.history("s1"), "user: go", "assistant: fine now")
		if _, err := w.Loop.Retry("s1", ""); !errors.Is(err, loop.ErrNothing) {
			t.Errorf("got %+v, %v; want %v", a, err, loop.ErrNothing)
		}
	})
	inBubble(t, setup{script: `{"steps":[{"error":{"kind":"status","status_code":429,"retry_after_s":7,"message":"slow down"}},{"text":"fine now"}]}`}, func(t *testing.T, w *world) {
		start := time.Now()
		if out := w.run("s1", "go"); out.Err != nil || time.Since(start) != 7*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), out)
		}
	})
}

// An interrupted turn can be retried after the restart, and its calls are known
// to have no result.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, setup{dir: dir}, func(t *testing.T, w *world) {
		w.run("s1", "before")
		s, err := w.Sessions.Open("s1", "")
		if err != nil {
			t.Fatal(err)
		}
		// A turn as a crash leaves it.
		k := w.Bus.Kernel()
		for _, err := range []error{
			second(bus.Publish(k, event.UserMessageReceived, "s1", event.UserMessage{Text: "go"})),
			second(bus.Publish(k, event.TurnWasStarted, "s1", event.TurnStarted{TurnID: "turn_x"})),
			second(bus.Publish(k, event.LLMCallResponse, "s1", event.LLMResponse{ToolCalls: []event.ToolCall{{ID: "c", Name: "work", Args: []byte(`{}`)}}})),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		_ = s
	})
	inBubble(t, setup{dir: dir, script: `{"steps":[{"text":"took it up again"}]}`}, func(t *testing.T, w *world) {
		if _, err := w.Loop.Retry("s1", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		h := w.history("s1")
		if len(h) != 6 || !strings.Contains(h[4], "interrupted") || h[5] != "assistant: took it up again" {
			t.Errorf(`got %q; want 6 messages, with an interrupted one at 4 and "took it up again" last`, h)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Y-51, Y-52, Y-160, Y-180: a long history is summed up by the model before the
// turn that would need it.
func TestCompactionInATurn(t *testing.T) {
	inBubble(t, setup{
		script:   `{"scenarios":[{"match":"## user","steps":[{"text":"they talked at length"}]}]}`,
		settings: map[string]string{"compaction.enabled": `true`, "compaction.threshold": `2000`, "compaction.target": `400`},
	}, func(t *testing.T, w *world) {
		for range 6 {
			w.run("s1", strings.Repeat("word ", 300))
		}
		synctest.Wait()
		if n := len(w.web.all("session.compaction.completed")); n == 0 || len(w.web.all("session.compaction.failed")) > 0 {
			t.Fatalf("%d compactions", n)
		}
		h := w.history("s1")
		if !strings.HasPrefix(h[0], "system: they talked at length") || len(h) > 9 {
			t.Errorf("got %.80q; want the summary first, and at most 9 messages", h)
		}
		if !slices.Contains(w.tape("s1"), "anchor compaction") {
			t.Error("there is no anchor")
		}
		for _, e := range w.ends("s1") {
			if e != "completed" {
				t.Errorf("a turn ended %s", e)
			}
		}
	})
}

// Y-53: when the model cannot sum up, the turn goes on as it would have.
func TestCompactionFails(t *testing.T) {
	failing := `{"error":{"kind":"other","message":"no"}}`
	inBubble(t, setup{
		script:   `{"scenarios":[{"match":"## user","steps":[` + strings.Join([]string{failing, failing, failing}, ",") + `]}]}`,
		settings: map[string]string{"compaction.enabled": `true`, "compaction.threshold": `600`, "compaction.target": `200`},
	}, func(t *testing.T, w *world) {
		for range 3 {
			if out := w.run("s1", strings.Repeat("word ", 300)); out.Err != nil {
				t.Errorf("got %+v, want no error", out)
			}
		}
		synctest.Wait()
		if f := w.web.all("session.compaction.failed"); len(f) == 0 || f[0].SessionID != event.KernelSession {
			t.Errorf("got %+v, want a failed compaction on the kernel session", f)
		}
	})
}

// Y-193, Y-195, Y-197, Y-69, Y-70, Y-199: a sub-agent works in a fork and
// reports.
func TestSubAgent(t *testing.T) {
	inBubble(t, setup{
		script: `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"do the thing","tools":["work"]}}]},{"text":"delegated"}]},
			{"match":"do the thing","steps":[{"tool_calls":[{"name":"work","args":{"name":"inside"}},{"name":"danger","args":{"name":"boom"}}]},{"text":"the thing is done"}]}]}`,
		answer: approveAll,
	}, func(t *testing.T, w *world) {
		out := w.run("s1", "delegate it")
		if out.Err != nil || out.Text != "delegated" {
			t.Fatalf(`got %+v, want "delegated" and no error`, out)
		}
		synctest.Wait()
		started := w.web.all("x.agent.subagent.started")[0]
		var s agent_tool.Started
		if err := json.Unmarshal(started.Payload.(json.RawMessage), &s); err != nil {
			t.Fatal(err)
		}
		if started.SessionID != "_bridge:agent-tool" || s.ParentID != "s1" || s.Goal != "do the thing" || s.Strategy != "react" || !slices.Equal(s.Tools, []string{"work"}) {
			t.Errorf(`got %+v, want the sub-agent of s1 for "do the thing" with work alone`, s)
		}
		if id, ok := strings.CutPrefix(s.ChildID, "s1::agent::"); !ok || len(id) != 8 {
			t.Errorf("child %s", s.ChildID)
		}
		var c agent_tool.Completed
		if err := json.Unmarshal(w.web.all("x.agent.subagent.completed")[0].Payload.(json.RawMessage), &c); err != nil {
			t.Fatal(err)
		}
		if c.ChildID != s.ChildID || c.FinalText != "the thing is done" || c.StepsUsed != 2 || !slices.Equal(c.ForbiddenToolHits, []string{"danger"}) {
			t.Errorf("got %+v; want the end of %s after 2 steps, with danger as a forbidden tool", c, s.ChildID)
		}
		var n agent_tool.Narrowed // Y-72, Y-198: not asked about, not run, told once
		if ev := w.web.all("x.agent.allowlist.narrowed"); len(ev) != 1 || json.Unmarshal(ev[0].Payload.(json.RawMessage), &n) != nil || !slices.Equal(n.Attempted, []string{"danger"}) || !slices.Equal(n.Allowed, []string{"work"}) {
			t.Errorf("got %+v; want it narrowed once: danger was tried, and work is allowed", n)
		}
		equal(t, w.ran, "inside")
		for _, ev := range w.web.all("llm.call.request") {
			if r := ev.Payload.(event.LLMRequest); ev.SessionID == s.ChildID && (len(r.Tools) != 1 || r.Tools[0].Name != "work") {
				t.Errorf("the child's model is offered %+v, want work alone", r.Tools)
			}
		}
		// One ask for the spawn, from the kernel, and none for a call that nobody can allow.
		var asked []string
		for _, ev := range w.web.all("approval.request") {
			asked = append(asked, ev.Payload.(event.ApprovalRequest).ToolName)
		}
		equal(t, asked, "agent")
		// The parent's tape has nothing of the child's but its result.
		for _, line := range w.history("s1") {
			if strings.Contains(line, "inside") {
				t.Errorf("the parent's history has %q", line)
			}
		}
		h := w.history(s.ChildID)
		if h[0] != "user: delegate it" || h[len(h)-1] != "assistant: the thing is done" {
			t.Errorf("the child's history is %q", h)
		}
	})
}

// Y-194, R25: no deeper than configured, refused before anything is forked.
func TestSubAgentDepth(t *testing.T) {
	nested := `{"scenarios":[{"match":".","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"deeper"}}]}]}]}`
	for _, limit := range []int{0, 2} {
		s := setup{script: nested, answer: approveAll}
		want := 5
		if limit > 0 {
			want = limit
			s.settings = map[string]string{"agent_tool.max_depth": fmt.Sprint(limit)}
		}
		inBubble(t, s, func(t *testing.T, w *world) {
			out := w.run("s1", "go")
			if out.Err != nil || !strings.Contains(out.Text, fmt.Sprintf("sub-agents may nest %d deep", want)) {
				t.Errorf("got %+v, want the limit of %d levels in the text", out, want)
			}
			synctest.Wait()
			deepest := 0
			for _, ev := range w.web.all("session.forked") {
				deepest = max(deepest, strings.Count(ev.Payload.(event.SessionForked).ChildID, "::agent::"))
			}
			if deepest != want {
				t.Errorf("%d deep, want %d", deepest, want)
			}
		})
	}
}

// S-57, TW-19, R25: no more than 8 sub-agents of one session, and 32 below one root, at
// a time; the others are refused and the turn goes on.
func TestSubAgentFanOut(t *testing.T) {
	calls := func(n int, goal string) string {
		var c []string
		for i := range n {
			c = append(c, fmt.Sprintf(`{"name":"agent","args":{"goal":"%s %d"}}`, goal, i))
		}
		return `[` + strings.Join(c, ",") + `]`
	}
	refused := func(w *world, text string) (n int) {
		for _, ev := range w.web.all("tool.call.result") {
			if strings.Contains(string(ev.Payload.(event.ToolResult).Envelope), text) {
				n++
			}
		}
		for _, ev := range w.web.all("tool.error") {
			if strings.Contains(string(ev.Payload.(event.ToolError).Detail), text) {
				n++
			}
		}
		return n
	}
	slow := `{"match":"slow","steps":[{"tool_calls":[{"name":"work","args":{"name":"a","ms":5000}}]}]}`
	inBubble(t, setup{answer: approveAll, script: `{"scenarios":[{"match":"^go","steps":[{"tool_calls":` + calls(10, "slow") + `}]},` + slow + `]}`}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Err != nil {
			t.Errorf("got %+v, want no error", out)
		}
		if n := refused(w, "this session already runs 8 sub-agents"); n != 2 || len(w.web.all("session.forked")) != 8 {
			t.Errorf("%d were refused, %d started", n, len(w.web.all("session.forked")))
		}
		if out := w.run("s1", "go"); out.Err != nil || len(w.web.all("session.forked")) != 16 {
			t.Errorf("afterwards: %+v", out) // the places are free again
		}
	})
	inBubble(t, setup{answer: approveAll, script: `{"scenarios":[{"match":"^go","steps":[{"tool_calls":` + calls(5, "branch") + `}]},{"match":"^branch","steps":[{"tool_calls":` + calls(8, "slow") + `}]},` + slow + `]}`}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Err != nil {
			t.Errorf("got %+v, want no error", out)
		}
		// A branch whose sub-agents are all refused ends, says so, and another gets its
		// place.
		n, started := refused(w, "32 sub-agents are already running"), len(w.web.all("session.forked"))
		if started < 32 || started > 32+5 || n+started < 5+5*8 {
			t.Errorf("%d were refused, %d started", n, started)
		}
	})
}

// Y-71: a sub-agent that takes too long, and one whose parent is cancelled.
func TestSubAgentEnds(t *testing.T) {
	script := `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"slow thing","max_wall_seconds":%s}}]}]},
		{"match":"slow thing","steps":[{"tool_calls":[{"name":"work","args":{"name":"a","ms":3600000}}]}]}]}`
	reason := func(w *world) string {
		var f agent_tool.Failed
		ev := w.web.all("x.agent.subagent.failed")
		if len(ev) != 1 || json.Unmarshal(ev[0].Payload.(json.RawMessage), &f) != nil || !strings.HasPrefix(f.ChildID, "s1::agent::") {
			w.t.Fatalf("got %+v, want one failed sub-agent of s1", ev)
		}
		return f.Reason
	}
	inBubble(t, setup{script: fmt.Sprintf(script, "30"), answer: approveAll}, func(t *testing.T, w *world) {
		start := time.Now()
		out := w.run("s1", "delegate")
		synctest.Wait()
		if out.Err != nil || time.Since(start) != 30*time.Second || reason(w) != "timeout" || !strings.Contains(out.Text, "timeout") {
			t.Errorf("after %v: %+v", time.Since(start), out)
		}
	})
	inBubble(t, setup{script: fmt.Sprintf(script, "0"), answer: approveAll}, func(t *testing.T, w *world) {
		done := make(chan loop.Outcome)
		go func() { done <- w.run("s1", "delegate") }()
		time.Sleep(5 * time.Second)
		w.Loop.Cancel("s1")
		out := <-done
		synctest.Wait()
		if out.Kind != "cancelled" || reason(w) != "cancelled" || len(w.ran) != 0 {
			t.Errorf("got %+v, want it cancelled and no call run", out)
		}
		for _, ev := range w.web.all("session.forked") {
			if state, _ := w.Loop.State(ev.Payload.(event.SessionForked).ChildID); state != loop.Idle {
				t.Errorf("the child is %s", state)
			}
		}
	})
}

// Y-45, Y-170: the kernel says when it is ready, when it goes, and when it fails.
func TestKernelEvents(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		synctest.Wait()
		if ev := w.web.all("kernel.ready"); len(ev) != 1 || ev[0].Payload.(event.KernelReady).Version != "test" || ev[0].SessionID != event.KernelSession {
			t.Errorf("got %+v; want one kernel.ready of the version test, on the kernel session", ev)
		}
		w.Fail("clock", errors.New("it stands still"))
		select {
		case err := <-w.Failed():
			if !strings.Contains(err.Error(), "clock: it stands still") {
				t.Errorf(`got %v; want "clock: it stands still" in it`, err)
			}
		default:
			t.Error("nobody would notice")
		}
		synctest.Wait()
		if ev := w.web.all("kernel.error"); len(ev) != 1 || ev[0].Payload.(event.KernelError).Source != "clock" || ev[0].Source != event.KernelSource {
			t.Errorf("got %+v; want one kernel.error of clock, from the kernel", ev)
		}
		w.stop()
		if ev := w.web.all("kernel.shutdown"); len(ev) != 1 || ev[0].Payload.(event.KernelShutdown).Reason != "test over" {
			t.Errorf(`got %+v, want one kernel.shutdown with the reason "test over"`, ev)
		}
	})
}

// Y-1, Y-3: the bundled plugins stand in the registry like any other.
func TestBundledPlugins(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		want := map[string]plugin.Category{"strategy-react": plugin.Strategy, "llm-echo": plugin.LLMProvider, "memory-sqlite": plugin.Memory, "agent-tool": plugin.Tool, "test-web": plugin.Adapter}
		for _, s := range w.Plugins.Snapshot() {
			if want[s.Name] != s.Category || s.Status != plugin.Loaded {
				t.Errorf("got %+v, want it loaded with the category %q", s, want[s.Name])
			}
			delete(want, s.Name)
		}
		if len(want) > 0 {
			t.Errorf("missing: %v", want)
		}
		if ds := w.Plugins.Doctor(t.Context(), time.Second); plugin.Worst(ds) != plugin.Healthy {
			t.Errorf("got %+v, want all healthy", ds)
		}
	})
}

// A data directory that another kernel has changed while this one runs.
func TestSettingsOfAnotherProcess(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world) {
		root, err := os.OpenRoot(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		other, err := config.Open(config.Options{Root: root})
		if err != nil {
			t.Fatal(err)
		}
		set(t, other, "plugin.llm_echo.script", `{"steps":[{"text":"from outside"}]}`)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if out := w.run("s1", "hi"); out.Text != "from outside" {
			t.Errorf(`got %+v, want "from outside"`, out)
		}
	})
}

// Y-79, Y-86: the provider that the first start has written can be asked at
// once, before the news of it has reached its plugin.
func TestFirstTurnOfTheFirstStart(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, setup{})
			if out := w.run("s1", "hi"); out.Err != nil || out.Text != "echo: hi" {
				t.Errorf(`got %+v; want "echo: hi" and no error`, out)
			}
			w.stop()
		})
	}
}
