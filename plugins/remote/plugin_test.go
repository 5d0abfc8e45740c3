package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A plugin's tool is in the registry like a bundled one, and is called in its process.
func TestTool(t *testing.T) {
	w := newWorld(t)
	p := w.load("tool", "tool")
	if s := w.status(); s.Status != plugin.Loaded || s.Bundled {
		t.Fatalf("got %+v, want it %s and not bundled; the log:\n%s", s, plugin.Loaded, w.logged())
	}
	var progress atomic.Int32
	res := w.call(t.Context(), "upper", `{"text":"abc"}`, func(tool.Progress) { progress.Add(1) })
	if !res.OK || res.Text() != "ABC" || progress.Load() != 1 {
		t.Errorf("upper = %+v with %d reports of progress, want ABC with 1", res, progress.Load())
	}
	if res := w.call(t.Context(), "upper", `{"text":1}`, nil); res.ErrorKind != tool.ErrValidation {
		t.Errorf("upper with a number = %+v, want %s", res, tool.ErrValidation)
	}
	if res := w.call(t.Context(), "fails", `{}`, nil); res.ErrorKind != tool.ErrTool || res.Text() != "it does not work" {
		t.Errorf("fails = %+v, want its own error", res)
	}
	if d := w.Doctor(t.Context(), plugin.DefaultCheckTimeout); d[0].Status != plugin.Healthy || d[0].Summary != "well" {
		t.Errorf("Doctor() = %+v, want what the plugin says", d)
	}
	pid := p.PID()
	if err := w.Remove("subject"); err != nil {
		t.Errorf("Remove() = %v, want no error", err)
	}
	if res := w.call(t.Context(), "upper", `{"text":"abc"}`, nil); res.ErrorKind != tool.ErrNotFound {
		t.Errorf("upper of a removed plugin = %+v, want %s", res, tool.ErrNotFound)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Errorf("process %d runs on", pid)
	}
}

// Y-8 to Y-13: every category gets what it is asked, and its answers pass.
func TestCategories(t *testing.T) {
	for _, c := range []struct {
		category, kind string
		ask            func(w *world) error
		want           []string
	}{
		{"llm-provider", "llm.call.request", func(w *world) error {
			_, err := bus.Publish(w.bus.Kernel(), event.LLMCallRequest, "s1", event.LLMRequest{Provider: "subject"})
			return err
		}, []string{"subject s1 llm.call.response", "from the plugin"}},
		{"llm-provider", "llm.call.request", func(w *world) error { // as yaya provider test asks
			_, err := bus.Publish(w.bus.Kernel(), event.LLMCallRequest, "_bridge:web-api-test:1", event.LLMRequest{Provider: "subject"})
			return err
		}, []string{"subject _bridge:web-api-test:1 llm.call.response", "from the plugin"}},
		{"memory", "memory.query", func(w *world) error {
			_, err := bus.Publish(w.bus.Kernel(), event.MemoryQueried, "_bridge:other:1", event.MemoryQuery{Query: "color"})
			return err
		}, []string{"subject _bridge:other:1 memory.result", "blue"}},
		{"strategy", "strategy.decide.request", func(w *world) error {
			_, err := bus.Publish(w.bus.Kernel(), event.StrategyDecideRequest, "s1", event.DecideRequest{})
			return err
		}, []string{"subject s1 strategy.decide.response", "done"}},
		{"memory", "memory.query", func(w *world) error {
			_, err := bus.Publish(w.bus.Kernel(), event.MemoryQueried, "s1", event.MemoryQuery{Query: "color"})
			return err
		}, []string{"subject s1 memory.result", "blue"}},
		{"adapter", "user.message.received", func(w *world) error { w.say("s1", "hello"); return nil }, []string{"subject s1 x.subject.heard", "hello"}},
		{"skill", "user.message.received", func(w *world) error { w.say("s1", "hello"); return nil }, []string{"subject s1 x.subject.heard", "hello"}},
	} {
		t.Run(c.category, func(t *testing.T) {
			w := newWorld(t)
			w.load(c.category, c.category, fmt.Sprintf("subscriptions = [%q]", c.kind))
			if err := w.Seed(); err != nil {
				t.Fatal(err)
			}
			if err := c.ask(w); err != nil {
				t.Fatal(err)
			}
			w.sees(c.want...)
		})
	}
}

// A skill asks another plugin, and gets the event that answers.
func TestSkillRequests(t *testing.T) {
	w := newWorld(t)
	w.load("skill", "skill", `subscriptions = ["user.message.received"]`)
	if _, err := w.bus.Subscribe(bus.SubscribeOptions{Name: "memory"}, []string{"memory.query"}, func(_ context.Context, ev event.Event) error {
		_, err := bus.Publish(w.bus.Kernel(), event.MemoryAnswered, ev.SessionID, event.MemoryResult{Hits: []event.MemoryEntry{{Text: "green"}}, Request: event.Request{RequestID: ev.ID}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.say("s1", "ask")
	w.sees("subject s1 x.subject.heard", "memory.result", "green")
}

// PL-01, R14: a plugin speaks under its own name, and for nobody else.
func TestEmitsAreItsOwn(t *testing.T) {
	for _, c := range []struct{ name, category, emit, want string }{
		{"another plugin's event", "adapter", `{"kind":"x.other.heard","session":"s1","payload":{}}`, "not an event of its own"},
		{"another plugin's session", "adapter", `{"kind":"x.subject.heard","session":"_bridge:other","payload":{}}`, "belongs to another plugin"},
		{"the kernel's event", "skill", `{"kind":"plugin.error","session":"kernel","payload":{"name":"web","error":"x"}}`, "does not emit plugin.error"},
		{"an assistant's message", "skill", `{"kind":"assistant.message.done","session":"s1","payload":{"content":"x"}}`, "does not emit"},
		{"an approval by a skill", "skill", `{"kind":"approval.response","session":"kernel","payload":{"id":"a","response":"approve"}}`, "does not emit approval.response"},
		{"an approval without permission", "adapter", `{"kind":"approval.response","session":"kernel","payload":{"id":"a","response":"approve"}}`, "needs the permission approvals"},
		{"another category's answer", "skill", `{"kind":"llm.call.response","session":"s1","payload":{"text":"x","request_id":"r"}}`, "does not emit llm.call.response"},
		{"an answer that nobody asked for", "memory", `{"kind":"memory.result","session":"s1","payload":{"hits":[],"request_id":"r"}}`, "was not given"},
		{"a reserved session", "adapter", `{"kind":"user.message.received","session":"kernel","payload":{"text":"x"}}`, "not one"},
		{"a malformed payload", "adapter", `{"kind":"user.message.received","session":"s1","payload":[]}`, "cannot unmarshal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.load(c.category, c.category, `subscriptions = ["user.message.received"]`)
			w.say("s1", "emit "+c.emit)
			w.sees("kernel kernel plugin.error", c.want)
			if s := w.status(); s.Status != plugin.Loaded {
				t.Errorf("after one refusal it is %s, want %s", s.Status, plugin.Loaded)
			}
		})
	}
}

// An adapter with the permission answers approvals, as itself.
func TestApprovalsPermitted(t *testing.T) {
	w := newWorld(t)
	w.load("adapter", "adapter", `subscriptions = ["user.message.received"]`, "[permissions]", "approvals = true")
	w.say("s1", `emit {"kind":"approval.response","session":"kernel","payload":{"id":"a","response":"reject","source":"web","provider_id":"llm-echo"}}`)
	w.sees("subject kernel approval.response", "reject")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range w.got {
		raw, err := json.Marshal(ev.Payload)
		if err != nil || strings.Contains(string(raw), "web") || strings.Contains(string(raw), "llm-echo") {
			t.Errorf("%s has %s, %v, want nothing of what the plugin says of others in members of its own", ev.Kind, raw, err)
		}
	}
}

// Y-164, Y-165: errors count as those of a bundled plugin, and a success ends the row.
func TestLadder(t *testing.T) {
	w := newWorld(t)
	p := w.load("adapter", "adapter", `subscriptions = ["user.message.received"]`)
	pid := p.PID()
	for _, text := range []string{"fail", "fail", "hello", "fail", "fail"} {
		w.say("s1", text)
	}
	w.say("s1", "last")
	w.sees("x.subject.heard", "last")
	if s := w.status(); s.Status != plugin.Loaded {
		t.Fatalf("after two failures in a row it is %+v, want %s", s, plugin.Loaded)
	}
	for range 3 {
		w.say("s1", "fail")
	}
	w.waitLoaded(plugin.Failed)
	w.sees("plugin.removed", "subject")
	if s := w.status(); !strings.Contains(s.Error, "as it was told") {
		t.Errorf("got the failure %q, want the plugin's words", s.Error)
	}
	eventually.True(t, "its process has ended", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); return err != nil })
}

// A crash fails what waits for it, and the next event starts the process again.
func TestCrash(t *testing.T) {
	w := newWorld(t)
	p := w.load("adapter", "adapter", `subscriptions = ["user.message.received"]`)
	first := p.PID()
	w.say("s1", "exit")
	w.sees("plugin.error", "exited with status 3")
	w.say("s1", "hello")
	w.sees("x.subject.heard", "hello")
	if now := p.PID(); now == first || now == 0 {
		t.Errorf("the process is %d after the crash of %d, want another", now, first)
	}
	for range 3 {
		w.say("s1", "exit")
	}
	w.waitLoaded(plugin.Failed)
}

// A crash in a tool call is that call's failure, counts once, and the next call works.
func TestCrashInCall(t *testing.T) {
	w := newWorld(t)
	w.load("tool", "tool")
	res := w.call(t.Context(), "crash", `{}`, nil)
	if res.ErrorKind != tool.ErrCrashed || !strings.Contains(res.Text(), "exited with status 3; it last said: so long") {
		t.Errorf("crash = %+v, want %s with the reason", res, tool.ErrCrashed)
	}
	if res := w.call(t.Context(), "upper", `{"text":"a"}`, nil); !res.OK {
		t.Errorf("upper after a crash = %+v, want it to work", res)
	}
	for range 2 { // the call that works in between has ended the row
		w.call(t.Context(), "crash", `{}`, nil)
	}
	if res := w.call(t.Context(), "upper", `{"text":"a"}`, nil); !res.OK {
		t.Errorf("upper after two crashes in a row = %+v, want it to work", res)
	}
	for range 3 {
		w.call(t.Context(), "crash", `{}`, nil)
	}
	w.waitLoaded(plugin.Failed)
}

// eager calls tools that are being registered.
type eager struct {
	plugin.Context
	got []tool.Result
}

func (e *eager) RegisterTool(t tool.Tool) error {
	if t.Definition().Name != "upper" {
		return nil
	}
	res, err := t.Invoke(context.Background(), tool.Call{Name: "upper", Args: []byte(`{"text":"a"}`)})
	e.got = append(e.got, res)
	return err
}

// A tool that is called before all are registered reaches the process that has described it.
func TestCallWhileLoading(t *testing.T) {
	w := newWorld(t)
	first := w.load("tool", "tool")
	p, e := w.make(first.cfg.Folder), &eager{Context: first.c}
	if err := p.OnLoad(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	pid := p.PID()
	if len(e.got) != 1 || e.got[0].Text() != "A" || pid == 0 {
		t.Errorf("upper = %+v in process %d, want A", e.got, pid)
	}
	if err := p.OnUnload(t.Context(), e); err != nil {
		t.Errorf("OnUnload() = %v, want no error", err)
	}
}

// A call that runs when the plugin is replaced ends in the old process; new calls go to the
// new one.
func TestReplaceKeepsCalls(t *testing.T) {
	w := newWorld(t)
	folder, current := w.folder("tool", "tool"), new(Current)
	makeOne := func() *Plugin {
		p := w.make(folder)
		p.cfg.Current = current
		return p
	}
	older, newer := makeOne(), makeOne()
	w.Load(t.Context(), false, older)
	first := older.PID()
	wake := filepath.Join(w.dir, "wake")
	began, done := make(chan struct{}), make(chan tool.Result, 1)
	pinned := w.tools.Snapshot()
	go func() {
		done <- w.call(t.Context(), "sleep", fmt.Sprintf(`{"text":%q}`, wake), func(tool.Progress) { close(began) })
	}()
	<-began
	gone := false
	stop := w.tools.Watch(func(uint64) {
		_, offered := w.tools.Snapshot().Lookup("upper")
		gone = gone || !offered
	})
	if err := w.Replace(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if stop(); gone {
		t.Error("the tool was gone for a while, want it there all the time")
	}
	if older.PID() != 0 || newer.PID() == first || newer.PID() == 0 {
		t.Errorf("the processes are %d and %d, want none and another than %d", older.PID(), newer.PID(), first)
	}
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: w.tools})
	if res := d.Call(t.Context(), pinned, tool.Call{Name: "upper", Args: []byte(`{"text":"a"}`), Origin: tool.OriginCLI, Caller: tool.Caller{Principal: "owner"}}); !res.OK {
		t.Errorf("a call of a turn that began before = %+v, want it to reach the new process", res)
	}
	if err := os.WriteFile(wake, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if res := <-done; !res.OK || res.Text() != "awake" {
		t.Errorf("the call that ran = %+v, want its result", res)
	}
	if err := older.Close(t.Context()); err != nil {
		t.Errorf("Close() = %v, want no error", err)
	}
	eventually.True(t, "the old process has ended", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", first)); return err != nil })
	w.sees("plugin.reloaded", "subject")
}
