package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger remembers what would be on tapes.
type ledger struct {
	mu    sync.Mutex
	notes []string // session kind
	data  []any
	fail  error
}

func (l *ledger) Note(session string, ev event.Event, data any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.notes = append(l.notes, session+" "+ev.Kind)
	l.data = append(l.data, data)
	return nil
}

// world is a runtime behind a dispatcher on a bus, with an adapter that can
// answer.
type world struct {
	t      *testing.T
	bus    *bus.Bus
	rt     *approval.Runtime
	disp   *tool.Dispatcher
	web    *bus.Emitter
	ledger *ledger
	ran    int

	mu     sync.Mutex
	events []event.Event
	answer func(r event.ApprovalRequest) *event.ApprovalResponse // nil: nobody answers
}

type args struct {
	Cmd string `json:"cmd"`
}

func newWorld(t *testing.T, change ...func(*approval.Config)) *world {
	t.Helper()
	w := &world{t: t, bus: bus.New(bus.Config{}), ledger: &ledger{}}
	cfg := approval.Config{Bus: w.bus, Ledger: w.ledger, Log: zerolog.Nop()}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if w.rt, err = approval.New(cfg); err != nil {
		t.Fatal(err)
	}
	if w.web, err = w.bus.Plugin("web"); err != nil {
		t.Fatal(err)
	}
	reg := new(tool.Registry)
	sh, err := tool.New(tool.Definition{Name: "sh", Kind: tool.KindExec, Description: "runs", RequiresApproval: true}, func(context.Context, tool.Call, args) (tool.Result, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran++
		return tool.OK("ran"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.Register(sh); err != nil {
		t.Fatal(err)
	}
	w.disp = tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Approver: w.rt, Agent: func(string) tool.Caller { return tool.Caller{Principal: "agent:test"} }, Log: zerolog.Nop()})
	stop, err := w.disp.Serve(context.Background(), w.bus)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.rt.Close()
		stop()
		if err := errors.Join(w.disp.Close(context.Background()), w.bus.Close(context.Background())); err != nil {
			t.Errorf("Close of the dispatcher and the bus = %v, want no error", err)
		}
	})
	return w
}

// adapter subscribes like a user surface: it sees asks and answers some.
func (w *world) adapter(answer func(event.ApprovalRequest) *event.ApprovalResponse) {
	w.t.Helper()
	w.answer = answer
	kinds := []string{"approval.request", "approval.response", "approval.cancelled", "tool.call.result", "tool.error"}
	_, err := w.bus.Subscribe(bus.SubscribeOptions{Name: "web"}, kinds, func(_ context.Context, ev event.Event) error {
		w.mu.Lock()
		w.events = append(w.events, ev)
		answer := w.answer
		w.mu.Unlock()
		if r, ok := ev.Payload.(event.ApprovalRequest); ok {
			if a := answer(r); a != nil {
				_, err := bus.Publish(w.web, event.ApprovalAnswered, event.KernelSession, *a)
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func always(a event.ApprovalAnswer, feedback string) func(event.ApprovalRequest) *event.ApprovalResponse {
	return func(r event.ApprovalRequest) *event.ApprovalResponse {
		return &event.ApprovalResponse{ID: r.ID, Response: a, Feedback: feedback}
	}
}

func never(event.ApprovalRequest) *event.ApprovalResponse { return nil }

// call asks for a tool call over the bus and returns its one terminal event.
func (w *world) call(session, cmd string) event.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	raw, _ := json.Marshal(args{cmd})
	ev, err := bus.Request(ctx, w.bus.Kernel(), event.ToolCallRequest, session, event.ToolRequest{ID: "c", Name: "sh", Args: raw, SchemaVersion: "v1"}, event.ToolCallResult.Kind(), event.ToolCallError.Kind())
	if err != nil {
		w.t.Fatal(err)
	}
	return ev
}

// then changes how the adapter answers.
func (w *world) then(answer func(event.ApprovalRequest) *event.ApprovalResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// seen returns what the adapter has seen, when it has seen all there is.
func (w *world) seen() []event.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func (w *world) count(kind string) (n int) {
	for _, ev := range w.seen() {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

func rejected(t *testing.T, ev event.Event, want string) {
	t.Helper()
	e, ok := ev.Payload.(event.ToolError)
	if !ok || e.Kind != event.ToolRejected || !strings.Contains(e.Brief, want) {
		t.Errorf("got %+v, want a rejection with %q", ev.Payload, want)
	}
}

func ok(t *testing.T, ev event.Event) {
	t.Helper()
	if r, is := ev.Payload.(event.ToolResult); !is || !r.OK {
		t.Errorf("got %+v, want a result that is OK", ev.Payload)
	}
}

// Y-133, Y-134, Y-34, Y-35, Y-37, Y-141, Y-142: the gate runs between validation
// and run; the three answers.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(always(event.Approve, ""))
		ok(t, w.call("s1", "ls"))
		ok(t, w.call("s1", "ls"))
		if w.ran != 2 || w.count("approval.request") != 2 { // approve is for once
			t.Errorf("ran %d times after %d asks", w.ran, w.count("approval.request"))
		}
		first := w.seen()[0]
		if r := first.Payload.(event.ApprovalRequest); first.SessionID != event.KernelSession || r.ToolName != "sh" || string(r.Params) != `{"cmd":"ls"}` || r.ID == "" || r.Brief == "" {
			t.Errorf(`got %+v; want the ask of sh {"cmd":"ls"} with an id and a brief, on the kernel session`, first)
		}
		w.then(always(event.Reject, "use git instead"))
		ev := w.call("s1", "ls")
		rejected(t, ev, "use git instead")
		if w.ran != 2 {
			t.Error("a rejected call ran")
		}
		// The model gets all of the feedback, however long.
		long := strings.Repeat("why ", 200)
		w.then(always(event.Reject, long))
		if d := w.call("s1", "ls").Payload.(event.ToolError).Detail; !strings.Contains(string(d), strings.TrimSpace(long)) {
			t.Errorf("got %s, want all of the feedback in it", d)
		}
		if _, err := bus.Request(t.Context(), w.bus.Kernel(), event.ToolCallRequest, "s1", event.ToolRequest{ID: "c", Name: "sh", Args: []byte(`{"cmd":7}`), SchemaVersion: "v1"}, event.ToolCallError.Kind()); err != nil {
			t.Fatal(err)
		}
		if w.count("approval.request") != 4 {
			t.Error("invalid arguments were put to a person")
		}
	})
}

// Y-135, Y-136, Y-137, Y-196: an approval for the session covers exactly the same
// call, in that session and its sub-agents, and nothing else.
func TestApproveForSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(always(event.ApproveForSession, ""))
		for i, c := range []struct {
			session, cmd string
			asks         int
		}{
			{"s1", "ls", 1},
			{"s1", "ls", 1},
			{"s1::agent::0a1b2c3d", "ls", 1},            // Y-196: granted to the parent
			{"s1::agent::0a1b2c3d::agent::ff", "ls", 1}, // and further down
			{"s1", "ls -l", 2},                          // other arguments
			{"s2", "ls", 3},                             // another session
			{"s3::agent::0a", "ls", 4},                  // granted to a child …
			{"s3", "ls", 5},                             // … is not granted to its parent
		} {
			ok(t, w.call(c.session, c.cmd))
			if n := w.count("approval.request"); n != c.asks {
				t.Errorf("call %d: %d asks, want %d", i, n, c.asks)
			}
		}
		// A changed definition is another tool; the order of members is not.
		grants := func(def tool.Definition, raw string) bool {
			before := w.count("approval.request")
			if err := w.rt.Approve(t.Context(), tool.Call{SessionID: "s9", Args: json.RawMessage(raw)}, def, ""); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return w.count("approval.request") == before
		}
		def := tool.Definition{Name: "x__y", Identity: tool.Identity{Provider: "x", Tool: "y"}, InputSchema: []byte(`{}`)}
		if grants(def, `{"a":1,"b":[1,2]}`) || !grants(def, `{ "b":[1,2], "a":1 }`) {
			t.Error("member order decides")
		}
		for name, change := range map[string]func(*tool.Definition){
			"description": func(d *tool.Definition) { d.Description = "evil" },
			"schema":      func(d *tool.Definition) { d.InputSchema = []byte(`{"type":"object"}`) },
			"provider":    func(d *tool.Definition) { d.Identity.Provider = "z" },
			"split":       func(d *tool.Definition) { d.Identity = tool.Identity{Provider: "xy", Tool: ""} },
		} {
			d := def
			change(&d)
			if grants(d, `{"a":1,"b":[1,2]}`) {
				t.Errorf("the grant outlived a change of the %s", name)
			}
		}
		if grants(def, `{"a":1.0,"b":[1,2]}`) || grants(def, `{"a":1,"b":[2,1]}`) {
			t.Error("other arguments were granted")
		}
	})
}

// Y-138, Y-139, Y-36: an ask that nobody answers ends after the timeout, leaves
// nothing behind, and says why.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		w := newWorld(t, func(c *approval.Config) { c.Timeout = func(string) time.Duration { return wait } })
		w.adapter(never)
		for _, want := range []time.Duration{time.Minute, 5 * time.Second} {
			start := time.Now()
			rejected(t, w.call("s1", "ls"), "timeout")
			if took := time.Since(start); took != want {
				t.Errorf("took %v, want %v", took, want)
			}
			wait = 5 * time.Second
		}
		synctest.Wait()
		if len(w.rt.Pending()) != 0 || w.count("approval.cancelled") != 2 {
			t.Errorf("%d pending, %d withdrawn", len(w.rt.Pending()), w.count("approval.cancelled"))
		}
		var c event.ApprovalCancelled
		for _, ev := range w.seen() {
			if x, is := ev.Payload.(event.ApprovalCancelled); is {
				c = x
				if ev.SessionID != event.KernelSession {
					t.Error("not on the kernel session")
				}
			}
		}
		if c.Reason != "timeout" || c.ID == "" {
			t.Errorf(`got %+v, want the reason "timeout" and an id`, c)
		}
		if _, err := w.rt.Answer(c.ID, event.Approve, "", "late"); !errors.Is(err, approval.ErrUnknown) {
			t.Errorf("answered after the timeout: %v", err)
		}
		if w.ran != 0 {
			t.Error("it ran")
		}
	})
}

// Y-140: a shutdown ends asks at once, and refuses new ones.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(never)
		done := make(chan event.Event)
		go func() { done <- w.call("s1", "ls") }()
		synctest.Wait()
		start := time.Now()
		w.rt.Close()
		rejected(t, <-done, "shutdown")
		rejected(t, w.call("s1", "ls"), "shutdown")
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		synctest.Wait()
		if w.count("approval.cancelled") != 1 || len(w.rt.Pending()) != 0 {
			t.Error("not withdrawn")
		}
		w.rt.Close()
	})
}

// Y-144: an ask that takes longer than a handler may does not deadlock: the session
// continues, siblings settle, and the answer counts at once.
func TestSlowAnswerIsNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(func(r event.ApprovalRequest) *event.ApprovalResponse {
			if strings.Contains(string(r.Params), "slow") {
				return nil
			}
			return &event.ApprovalResponse{ID: r.ID, Response: event.Approve}
		})
		start := time.Now()
		slow := make(chan event.Event)
		go func() { slow <- w.call("s1", "slow") }()
		synctest.Wait()
		ok(t, w.call("s1", "quick")) // a sibling in the same session
		time.Sleep(40 * time.Second) // past the handler deadline of 30 s
		p := w.rt.Pending()
		if len(p) != 1 || !p[0].Deadline.Equal(start.Add(time.Minute)) {
			t.Fatalf("got %+v, want one ask with the deadline %v", p, start.Add(time.Minute))
		}
		if _, err := w.rt.Answer(p[0].ID, event.Approve, "", "phone"); err != nil {
			t.Fatal(err)
		}
		ok(t, <-slow)
		if took := time.Since(start); took != 40*time.Second {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if w.count("tool.call.result")+w.count("tool.error") != 2 {
			t.Error("not exactly one end each")
		}
	})
}

// The first answer wins, and the losers learn the recorded decision (TW-11).
func TestFirstAnswerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(never)
		done := make(chan event.Event)
		go func() { done <- w.call("s1", "ls") }()
		synctest.Wait()
		id := w.rt.Pending()[0].ID
		if _, err := w.rt.Answer(id, "maybe", "", "x"); err == nil || errors.Is(err, approval.ErrUnknown) {
			t.Errorf("got %v, want an error other than %v", err, approval.ErrUnknown)
		}
		if _, err := w.rt.Answer("appr_guess", event.Approve, "", "x"); !errors.Is(err, approval.ErrUnknown) {
			t.Errorf("got %v, want %v", err, approval.ErrUnknown)
		}
		if d, err := w.rt.Answer(id, event.Reject, "no", "first"); err != nil || d.By != "first" {
			t.Errorf(`got %+v, %v; want the decision of "first"`, d, err)
		}
		d, err := w.rt.Answer(id, event.Approve, "", "second")
		if !errors.Is(err, approval.ErrAnswered) || d.Response != event.Reject || d.By != "first" || d.Feedback != "no" {
			t.Errorf("the loser learns %+v, %v", d, err)
		}
		rejected(t, <-done, "no")
		if want := []string{"s1 approval.request", "s1 approval.response"}; !slices.Equal(w.ledger.notes, want) {
			t.Errorf("recorded %v", w.ledger.notes)
		}
		rec := w.ledger.data[1].(approval.Decision)
		if raw, _ := json.Marshal(rec); string(raw) != fmt.Sprintf(`{"id":%q,"response":"reject","feedback":"no","by":"first","tool_name":"sh","call_id":"c"}`, id) {
			t.Errorf(`got %s; want the rejection of %s by "first", with the feedback "no"`, raw, id)
		}
	})
}

// Y-143: identical calls at once are identical asks; the kernel does not merge
// them, so that an adapter can show their number and answer each.
func TestIdenticalAsksAreNotMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(never)
		done := make(chan event.Event)
		for range 3 {
			go func() { done <- w.call("s1", "ls") }()
		}
		synctest.Wait()
		ps := w.rt.Pending()
		if len(ps) != 3 || ps[0].Digest != ps[1].Digest || ps[0].ID == ps[1].ID || w.count("approval.request") != 3 {
			t.Fatalf("got %+v; want 3 asks with one digest, and an id for each", ps)
		}
		for i, p := range ps {
			if _, err := w.rt.Answer(p.ID, []event.ApprovalAnswer{event.Approve, event.Reject, event.Approve}[i], "", "web"); err != nil {
				t.Errorf("Answer to ask %d = %v, want no error", i, err)
			}
		}
		for range 3 {
			<-done
		}
		if w.ran != 2 {
			t.Errorf("ran %d times", w.ran)
		}
	})
}

// A sub-agent's ask reaches its root session's readers; with nobody there at all
// it is denied at once (TW-14).
func TestSubAgentsAndNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start := time.Now()
		rejected(t, w.call("s1::agent::a", "ls"), "nobody is there to ask")
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		w.adapter(always(event.Approve, ""))
		ok(t, w.call("s1::agent::a::agent::b", "ls"))
		want := []string{
			"s1::agent::a::agent::b approval.request", "s1 approval.request",
			"s1::agent::a::agent::b approval.response", "s1 approval.response",
		}
		if !slices.Equal(w.ledger.notes, want) {
			t.Errorf("recorded %v", w.ledger.notes)
		}
		if r := w.ledger.data[1].(approval.Request); r.SessionID != "s1::agent::a::agent::b" || len(r.Decisions) != 3 || r.Digest == "" {
			t.Errorf("the root's record is %+v", r)
		}
	})
}

// Cancelling the call withdraws the ask.
func TestCancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(never)
		done := make(chan event.Event)
		go func() { done <- w.call("s1", "ls") }()
		synctest.Wait()
		start := time.Now()
		if _, err := bus.Publish(w.web, event.UserInterrupt, "s1", event.Empty{}); err != nil {
			t.Fatal(err)
		}
		ev := <-done
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		if e, is := ev.Payload.(event.ToolError); !is || e.Kind != event.ToolRejected {
			t.Errorf("got %+v, want the kind %s", ev.Payload, event.ToolRejected)
		}
		synctest.Wait()
		if w.count("approval.cancelled") != 1 || len(w.rt.Pending()) != 0 || w.ran != 0 {
			t.Error("the ask is still there")
		}
	})
}

// R30, W-44: every answer is audited before it counts, and an answer that cannot be
// audited is a rejection.
func TestAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		broken := false
		w := newWorld(t, func(c *approval.Config) {
			c.Audit = func(r approval.Request, d approval.Decision) error {
				if broken {
					return errors.New("the disk is full")
				}
				seen = append(seen, r.SessionID+" "+r.ToolName+" "+string(d.Response)+" by "+d.By)
				return nil
			}
		})
		w.adapter(never)
		answer := func(want string) {
			t.Helper()
			done := make(chan event.Event)
			go func() { done <- w.call("s1", "ls") }()
			synctest.Wait()
			if len(w.rt.Pending()) != 1 {
				t.Fatal("nobody is asked")
			}
			if _, err := w.rt.Answer(w.rt.Pending()[0].ID, event.ApproveForSession, "", "phone"); (err != nil) != broken {
				t.Errorf("broken %v: %v", broken, err)
			}
			if ev := <-done; ev.Kind != want {
				t.Errorf("broken %v: the call ends with %s", broken, ev.Kind)
			}
		}
		broken = true
		answer(event.ToolCallError.Name())
		broken = false
		answer(event.ToolCallResult.Name()) // the answer before has granted nothing
		if len(seen) != 1 || seen[0] != "s1 sh approve_for_session by phone" || w.ran != 1 {
			t.Errorf("%v, and it ran %d times", seen, w.ran)
		}
	})
}

// R11: a call whose ask cannot be recorded does not run.
func TestFailingLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(always(event.ApproveForSession, ""))
		w.ledger.fail = errors.New("disk full")
		rejected(t, w.call("s1", "ls"), "disk full")
		if w.count("approval.request") != 0 || w.ran != 0 {
			t.Error("asked without a record")
		}
		w.ledger.fail = nil
		w.then(func(r event.ApprovalRequest) *event.ApprovalResponse {
			w.ledger.mu.Lock()
			w.ledger.fail = errors.New("disk full")
			w.ledger.mu.Unlock()
			return &event.ApprovalResponse{ID: r.ID, Response: event.Approve}
		})
		rejected(t, w.call("s1", "ls"), "disk full")
		if w.ran != 0 {
			t.Error("ran on an answer that is not recorded")
		}
	})
}

func TestRules(t *testing.T) {
	rules, err := approval.ParseRules([]byte(`[
		{"tool":"fs__*","decision":"ask"},
		{"tool":"fs__read*","decision":"allow"},
		{"provider":"evil","decision":"deny","reason":"not this one"},
		{"kind":"exec","origin":"loop","decision":"allow"}]`), approval.Callers{})
	if err != nil {
		t.Fatal(err)
	}
	p := approval.Policy{Rules: func() ([]approval.Rule, error) { return rules, nil }}
	for _, c := range []struct {
		name, provider string
		kind           tool.Kind
		origin         tool.Origin
		want           tool.Decision
	}{
		{"fs__read_file", "fs", tool.KindRead, tool.OriginLoop, tool.Ask}, // the strictest that matches
		{"x", "evil", tool.KindRead, tool.OriginMCP, tool.Deny},
		{"fs__x", "evil", tool.KindRead, tool.OriginLoop, tool.Deny}, // the strictest comes later
		{"sh", "", tool.KindExec, tool.OriginLoop, tool.Allow},
		{"sh", "", "strange", tool.OriginLoop, tool.Allow}, // unknown counts as exec
		{"sh", "", tool.KindExec, tool.OriginMCP, tool.Ask},
		{"cat", "", tool.KindRead, tool.OriginLoop, tool.Allow},     // the default
		{"other", "srv", tool.KindRead, tool.OriginLoop, tool.Ask},  // the default
		{"other", "srv", tool.KindRead, tool.OriginMCP, tool.Allow}, // the default
	} {
		v, err := p.Decide(t.Context(), tool.Call{Origin: c.origin}, tool.Definition{Name: c.name, Identity: tool.Identity{Provider: c.provider, Tool: c.name}, Kind: c.kind})
		if err != nil || v.Decision != c.want {
			t.Errorf("%+v: got %+v, %v; want %v", c, v, err, c.want)
		}
	}
	for _, bad := range []string{`{}`, `[{"decision":"perhaps"}]`, `[{"tol":"x","decision":"allow"}]`, `[{"tool":"[","decision":"allow"}]`, `[{}]`} {
		if _, err := approval.ParseRules([]byte(bad), approval.Callers{}); err == nil || !strings.Contains(err.Error(), "approval.rules") {
			t.Errorf(`%s: got %v, want an error, err with "approval.rules"`, bad, err)
		}
	}
	broken := approval.Policy{Rules: func() ([]approval.Rule, error) { return nil, errors.New("unreadable") }}
	if _, err := broken.Decide(t.Context(), tool.Call{}, tool.Definition{}); err == nil {
		t.Error("rules that cannot be read allow")
	}
}

// TW-09, TW-10: an approval for a session covers the shown content and everything else
// that was bound, not only the arguments; the ask contains the shown content.
func TestGrantsBindWhatWasPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var shown []string
		w.adapter(func(r event.ApprovalRequest) *event.ApprovalResponse {
			shown = append(shown, string(r.Params))
			return &event.ApprovalResponse{ID: r.ID, Response: event.ApproveForSession}
		})
		for _, tt := range []struct {
			name, shown, binds string
			asks               bool
		}{
			{"first", `{"cmd":"x","file":"1"}`, "a", true},
			{"the same", `{"file":"1","cmd":"x"}`, "a", false},
			{"another file", `{"cmd":"x","file":"2"}`, "a", true},
			{"another digest", `{"cmd":"x","file":"1"}`, "b", true},
			{"not prepared", "", "", true},
		} {
			n := len(shown)
			call := tool.Call{Name: "sh", Args: json.RawMessage(`{"cmd":"x"}`), SessionID: "s"}
			if tt.shown != "" {
				call.Prepared = &tool.Prepared{Shown: json.RawMessage(tt.shown), Binds: []byte(tt.binds)}
			}
			if err := w.rt.Approve(t.Context(), call, tool.Definition{Name: "sh"}, ""); err != nil {
				t.Fatal(err)
			}
			if asked := len(shown) > n; asked != tt.asks || (asked && shown[n] != string(call.Bound())) {
				t.Errorf("%s: asked %v about %q, want %v about %q", tt.name, asked, shown[n:], tt.asks, call.Bound())
			}
		}
	})
}

// The audit records the sandbox of a prepared call, and nothing that its arguments
// claim about it.
func TestAuditHasTheSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var audited []approval.Request
		secrets := new(masked.Secrets)
		secrets.Declare("k3y-value-0123456789")
		w := newWorld(t, func(c *approval.Config) {
			c.Secrets = secrets
			c.Audit = func(r approval.Request, _ approval.Decision) error {
				audited = append(audited, r)
				return nil
			}
		})
		w.adapter(always(event.Approve, ""))
		args := json.RawMessage(`{"sandbox":"command (namespaces)","weaker":["nothing"]}`)
		for _, call := range []tool.Call{
			{Name: "sh", Args: args, SessionID: "s"},
			{Name: "sh", Args: args, SessionID: "s", Prepared: &tool.Prepared{Shown: args, Sandbox: "outside"}},
			{Name: "sh", Args: args, SessionID: "s", Prepared: &tool.Prepared{Shown: args, Sandbox: "check (landlock)", Weaker: []string{"no k3y-value-0123456789"}}},
		} {
			if err := w.rt.Approve(t.Context(), call, tool.Definition{Name: "sh"}, ""); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for _, r := range audited {
			got += fmt.Sprintf("%s %q\n", r.Sandbox, r.Weaker)
		}
		if want := " []\noutside []\ncheck (landlock) [\"no ****\"]\n"; got != want {
			t.Errorf("audited:\n%swant:\n%s", got, want)
		}
	})
}
