package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
)

// sums answers requests for summaries after a minute, and everything else at once.
const sums = `{"scenarios":[{"match":"^## ","steps":[{"text":"notes of it","delay_ms":60000,"chunks":1}]},{"match":"","steps":[{"text":"an answer"}]}]}`

// talk has a conversation of about that many tokens in the session s1.
func (w *world) talk(tokens int) {
	w.t.Helper()
	for n := range 10 {
		if out := w.run("s1", fmt.Sprintf("question %d: %s", n, strings.Repeat("word ", tokens*4/10/5))); out.Err != nil {
			w.t.Fatalf("turn %d ends with %v, want no error", n, out.Err)
		}
	}
}

// compact runs Compact in the background. The function that it returns waits for its end.
func (w *world) compact(ctx context.Context, keep string) func() (loop.Compacted, error) {
	var done loop.Compacted
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		done, err = w.Loop.Compact(ctx, "s1", keep)
	}()
	synctest.Wait()
	return func() (loop.Compacted, error) {
		<-over
		return done, err
	}
}

// summaryRequests returns the requests for summaries.
func (w *world) summaryRequests() (out []event.LLMRequest) {
	for _, ev := range w.web.all("llm.call.request") {
		if r := ev.Payload.(event.LLMRequest); strings.HasPrefix(r.Messages[0].Content, "Sum up") {
			out = append(out, r)
		}
	}
	return out
}

// MIS-2: a history is summarized on demand in a window that is nearly empty, with compaction off. The
// model is told what to keep, without secrets; system messages, the last question and what came last
// stay; the next turn gets the summary, and so does the next process.
func TestCompactOnDemand(t *testing.T) {
	dir := t.TempDir()
	var after []string
	secrets := new(masked.Secrets)
	secrets.Declare("hunter2-hunter2")
	inBubble(t, setup{dir: dir, script: sums, secrets: secrets, settings: map[string]string{"compaction.enabled": `false`}}, func(t *testing.T, w *world) {
		w.talk(5000)
		s, err := w.Sessions.Open("s1", "")
		if err == nil {
			_, err = s.Say(session.Message{Role: "system", Content: "always be brief"}, "", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		w.talk(5000)
		if _, err := w.Loop.Submit(t.Context(), loop.Prompt{SessionID: "s1", Text: "a question that waits", Hold: true}); err != nil {
			t.Fatal(err)
		}
		before := w.history("s1")
		done, err := w.Loop.Compact(t.Context(), "s1", "the port, and hunter2-hunter2")
		if err != nil || done.TokensBefore < 10_000 || done.TokensAfter > done.TokensBefore/3 {
			t.Fatalf("Compact = %+v, %v, want a history of a third at most", done, err)
		}
		after = w.history("s1")
		if after[0] != "system: notes of it" || after[1] != "system: always be brief" || after[len(after)-1] != "user: a question that waits" || !slices.Equal(after[2:], before[len(before)-len(after)+2:]) {
			t.Errorf("the history is %q, want the summary, the system message, and the end as it was", after)
		}
		asked := w.summaryRequests()
		if len(asked) != 1 || !strings.Contains(asked[0].Messages[0].Content, "the port, and ") || strings.Contains(fmt.Sprint(asked), "hunter2") || !strings.Contains(asked[0].Messages[1].Content, "question 0") {
			t.Errorf("the model of summaries was asked %v, want once, to keep the port, with question 0 and no secret", asked)
		}
		if got := w.web.all("session.compaction.completed"); len(got) != 1 || got[0].Payload.(event.CompactionCompleted).How != event.Summarized {
			t.Errorf("got %d ends of a compaction, want one with a summary", len(got))
		}
		if state, _ := w.Loop.State("s1"); state != loop.Idle || !w.Loop.Resting("s1") {
			t.Errorf("afterwards the session is %s, want it idle", state)
		}
		equal(t, w.ends("s1"), slices.Repeat([]string{"completed"}, 20)...)
	})
	inBubble(t, setup{dir: dir, script: sums}, func(t *testing.T, w *world) {
		equal(t, w.history("s1"), after...)
		if out := w.run("s1", "and now?"); out.Err != nil || out.Text != "an answer" {
			t.Errorf("the next turn: %q, %v, want an answer", out.Text, out.Err)
		}
	})
}

// A history that would not get shorter stays: no model is called, or its summary is dropped.
func TestNothingToCompact(t *testing.T) {
	p := &tight{window: 100_000, words: named}
	inTight(t, "", p, nil, func(t *testing.T, w *world) {
		w.run("s1", "hello")
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrNothingToCompact) || p.summaries > 0 {
			t.Errorf("a short history: %v after %d calls, want ErrNothingToCompact without one", err, p.summaries)
		}
		w.talk(600)
		p.long = true
		before := w.history("s1")
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrNothingToCompact) || p.summaries != 1 {
			t.Errorf("a summary as long as the history: %v after %d calls, want ErrNothingToCompact after one", err, p.summaries)
		}
		equal(t, w.history("s1"), before...)
		w.talk(4000)
		before = w.history("s1")
		p.long, p.broken = false, true
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrSummary) || strings.Count(err.Error(), "out of order") != 1 {
			t.Errorf("without a summary: %v, want ErrSummary that says why once", err)
		}
		equal(t, w.history("s1"), before...)
		p.broken = false
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); err != nil {
			t.Errorf("with a model that works: %v, want no error", err)
		}
		if _, err := w.Loop.Compact(t.Context(), "gone", ""); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("a session that does not exist: %v, want ErrNotFound", err)
		}
	})
}

// Messages that come while a history is summarized are refused, or run afterwards, and none is lost; a
// turn keeps the history from being summarized.
func TestCompactIsBusy(t *testing.T) {
	submit := func(w *world, p loop.Prompt) (loop.Admission, error) {
		p.SessionID = "s1"
		return w.Loop.Submit(w.t.Context(), p)
	}
	inBubble(t, setup{script: sums}, func(t *testing.T, w *world) {
		w.talk(5000)
		wait := w.compact(t.Context(), "")
		for name, p := range map[string]loop.Prompt{"rejected": {Text: "a"}, "held": {Text: "b", Hold: true, Delivery: loop.DeliverQueue}} {
			if _, err := submit(w, p); !errors.Is(err, loop.ErrBusy) || !errors.Is(err, loop.ErrCompacting) {
				t.Errorf("a message, %s: %v, want ErrCompacting", name, err)
			}
		}
		if _, err := submit(w, loop.Prompt{Text: "c", Delivery: loop.DeliverSteer, ExpectedTurn: "turn_x"}); !errors.Is(err, loop.ErrTurn) {
			t.Errorf("a message for a turn: %v, want ErrTurn", err)
		}
		for _, p := range []loop.Prompt{{Text: "queued", Delivery: loop.DeliverQueue}, {Text: "steering", Delivery: loop.DeliverSteer}} {
			if a, err := submit(w, p); err != nil || !a.Queued {
				t.Errorf("%s: %+v, %v, want it queued", p.Text, a, err)
			}
		}
		if _, err := w.Loop.Retry("s1", ""); !errors.Is(err, loop.ErrCompacting) {
			t.Errorf("Retry = %v, want ErrCompacting", err)
		}
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrCompacting) {
			t.Errorf("a second Compact = %v, want ErrCompacting", err)
		}
		w.Loop.Release("s1")
		if state, turn := w.Loop.State("s1"); state != loop.Idle || turn != "" || w.Loop.Resting("s1") {
			t.Errorf("State = %s, %q, want idle, and not at rest", state, turn)
		}
		if done, err := wait(); err != nil || done.TokensAfter >= done.TokensBefore {
			t.Errorf("Compact = %+v, %v, want a shorter history", done, err)
		}
		synctest.Wait()
		h := w.history("s1")
		equal(t, h[len(h)-4:], "user: queued", "assistant: an answer", "user: steering", "assistant: an answer")
		if h[0] != "system: notes of it" {
			t.Errorf("the history begins with %q, want the summary", h[0])
		}
	})
	inBubble(t, setup{script: `{"steps":[{"text":"slow","delay_ms":1000}]}`}, func(t *testing.T, w *world) {
		if _, err := submit(w, loop.Prompt{Text: "go"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrBusy) || errors.Is(err, loop.ErrCompacting) {
			t.Errorf("while a turn runs: %v, want ErrBusy", err)
		}
		time.Sleep(2 * time.Second)
		equal(t, w.ends("s1"), "completed")
	})
}

// A cancel, a client that goes away, a message that interrupts, one of an adapter, and shutdown end a
// summary at once, and the call of the model with it. The history stays as it was.
func TestCompactIsCancelled(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for name, c := range map[string]struct {
		end  func(t *testing.T, w *world)
		want error
		then []string // the end of the history
	}{
		"cancel": {func(t *testing.T, w *world) {
			if !w.Loop.Cancel("s1") {
				t.Error("Cancel found nothing to cancel")
			}
		}, loop.ErrInterrupted, nil},
		"the client goes": {func(*testing.T, *world) { leave() }, context.Canceled, nil},
		"a message that interrupts": {func(t *testing.T, w *world) {
			if out, err := w.Loop.Run(t.Context(), loop.Prompt{SessionID: "s1", Text: "now", Delivery: loop.DeliverInterrupt}); err != nil || out.Err != nil {
				t.Errorf("its turn: %v, %v, want no error", err, out.Err)
			}
		}, loop.ErrInterrupted, []string{"user: now", "assistant: an answer"}},
		"an adapter's message": {func(t *testing.T, w *world) {
			if err := w.web.ctx.Emit(event.UserMessageReceived.Name(), "s1", event.UserMessage{Text: "hey"}); err != nil {
				t.Error(err)
			}
		}, loop.ErrSuperseded, []string{"user: hey", "assistant: an answer"}},
		"an adapter's interrupt": {func(t *testing.T, w *world) {
			if err := w.web.ctx.Emit(event.UserInterrupt.Name(), "s1", event.Empty{}); err != nil {
				t.Error(err)
			}
		}, loop.ErrInterrupted, nil},
		"shutdown": {func(t *testing.T, w *world) {
			if err := w.Loop.Close(t.Context()); err != nil {
				t.Errorf("Close = %v, want no error", err)
			}
		}, loop.ErrShutdown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: sums}, func(t *testing.T, w *world) {
				w.talk(5000)
				before := w.history("s1")
				begun := time.Now()
				ctx := ctx
				if name != "the client goes" {
					ctx = t.Context()
				}
				wait := w.compact(ctx, "")
				if n := len(w.summaryRequests()); n != 1 {
					t.Fatalf("%d requests for a summary, want one", n)
				}
				c.end(t, w)
				if _, err := wait(); !errors.Is(err, c.want) {
					t.Errorf("Compact = %v, want %v", err, c.want)
				}
				synctest.Wait()
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("it took %v to end, want no wait for the model", took)
				}
				equal(t, w.history("s1"), append(before, c.then...)...)
				if name == "shutdown" {
					return
				}
				var last event.Event
				for _, ev := range w.events() {
					if _, ok := ev.Payload.(event.LLMError); ok {
						last = ev
					}
				}
				if !strings.HasPrefix(last.SessionID, event.BridgePrefix) {
					t.Errorf("the model's call did not end: %+v", last)
				}
			})
		})
	}
}

// A session at its limit has nothing summarized; a summary counts.
func TestBudgetOfCompact(t *testing.T) {
	p := &tight{window: 100_000, words: named, price: 0.01}
	inTight(t, "", p, nil, func(t *testing.T, w *world) {
		w.talk(4000)
		if done, err := w.Loop.Compact(t.Context(), "s1", ""); err != nil || done.CostUSD != 0.01 {
			t.Errorf("Compact = %+v, %v, want a cost of 0.01", done, err)
		}
		w.talk(4000)
		set(t, w.Settings, budget.SessionKey, `21`)
		before := w.history("s1")
		_, err := w.Loop.Compact(t.Context(), "s1", "")
		if !errors.Is(err, loop.ErrBudget) || !strings.Contains(err.Error(), "raise the limit") || p.summaries != 1 {
			t.Errorf("at the limit: %v after %d summaries, want ErrBudget, the remedy, and no call", err, p.summaries-1)
		}
		equal(t, w.history("s1"), before...)
	})
}

// The model of summaries gets nothing that a guard denies: neither what to keep, nor a message that no
// model has got yet.
func TestCompactAsksGuards(t *testing.T) {
	g := &censor{}
	inBubble(t, setup{script: sums, plugins: []plugin.Plugin{g}}, func(t *testing.T, w *world) {
		w.talk(5000)
		if _, err := w.Loop.Compact(t.Context(), "s1", "the FORBIDDEN word"); !errors.Is(err, loop.ErrDenied) || !strings.Contains(err.Error(), "plugin censor: no") {
			t.Errorf("Compact to keep what is denied = %v, want ErrDenied by the guard", err)
		}
		for _, text := range []string{"FORBIDDEN message", "another"} {
			if _, err := w.Loop.Submit(t.Context(), loop.Prompt{SessionID: "s1", Text: text, Hold: true}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrDenied) {
			t.Errorf("Compact of a message that is denied = %v, want ErrDenied", err)
		}
		if n := len(w.summaryRequests()); n > 0 {
			t.Errorf("%d requests for summaries, want none", n)
		}
	})
}

// The session's own model sums up, or that of model.summary.
func TestTheModelOfCompact(t *testing.T) {
	for set, want := range map[string]string{"": "chosen-1", "test-tight/small-1": "small-1"} {
		p := &tight{window: 100_000, words: named}
		inTight(t, "", p, map[string]string{"model.summary": `"` + set + `"`}, func(t *testing.T, w *world) {
			w.talk(4000)
			s, err := w.Sessions.Open("s1", "")
			if err == nil {
				err = s.SetModel(t.Context(), "test-tight/chosen-1")
			}
			if err == nil {
				_, err = w.Loop.Compact(t.Context(), "s1", "")
			}
			if err != nil || !slices.Equal(p.summedBy, []string{want}) {
				t.Errorf("model.summary %q: the models %q summed up, %v, want %s", set, p.summedBy, err, want)
			}
		})
	}
}

// A summary is as short as the settings want it, and none is made without a text, or once the loop has
// ended.
func TestBoundsOfCompact(t *testing.T) {
	p := &tight{window: 100_000, words: named}
	inTight(t, "", p, nil, func(t *testing.T, w *world) {
		w.talk(12_000)
		set(t, w.Settings, "compaction.target", `600`)
		if done, err := w.Loop.Compact(t.Context(), "s1", ""); err != nil || done.TokensAfter > 700 {
			t.Errorf("with a target of 600: %+v, %v, want about that", done, err)
		}
		w.talk(12_000)
		before := w.history("s1")
		p.silent = true
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrSummary) || !strings.Contains(err.Error(), "empty") {
			t.Errorf("with an empty summary: %v, want ErrSummary that says so", err)
		}
		equal(t, w.history("s1"), before...)
		if err := w.Loop.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		was := p.summaries
		if _, err := w.Loop.Compact(t.Context(), "s1", ""); !errors.Is(err, loop.ErrShutdown) || p.summaries != was {
			t.Errorf("after Close: %v after %d calls, want ErrShutdown without one", err, p.summaries-was)
		}
	})
}
