package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// The maker of a call can be asked; the first answer counts, and the other question
// ends with it.
func TestAskCaller(t *testing.T) {
	def := tool.Definition{Name: "t", Identity: tool.Identity{Provider: "p", Tool: "t"}}
	call := tool.Call{ID: "1", Name: "t", Args: json.RawMessage(`{"a":1}`), SessionID: "s", Origin: tool.OriginMCP}
	type world struct {
		rt    *approval.Runtime
		asked []approval.Request
		ended int
		mu    sync.Mutex
	}
	setup := func(t *testing.T, others bool, ask func(context.Context) (event.ApprovalAnswer, string, error)) *world {
		t.Helper()
		w := new(world)
		b := bus.New(bus.Config{})
		rt, err := approval.New(approval.Config{
			Bus: b, Timeout: func(string) time.Duration { return 5 * time.Second }, Audience: func(string) bool { return others },
			Asker: func(tool.Call) approval.Ask {
				if ask == nil {
					return nil
				}
				return func(ctx context.Context, req approval.Request) (event.ApprovalAnswer, string, error) {
					w.mu.Lock()
					w.asked = append(w.asked, req)
					w.mu.Unlock()
					a, f, err := ask(ctx)
					w.mu.Lock()
					w.ended++
					w.mu.Unlock()
					return a, f, err
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.rt = rt
		t.Cleanup(func() {
			rt.Close()
			if err := b.Close(context.Background()); err != nil {
				t.Errorf("Close of the bus = %v, want no error", err)
			}
		})
		return w
	}
	say := func(a event.ApprovalAnswer, feedback string) func(context.Context) (event.ApprovalAnswer, string, error) {
		return func(context.Context) (event.ApprovalAnswer, string, error) { return a, feedback, nil }
	}
	rejected := func(err error, feedback string) bool {
		r, ok := errors.AsType[*tool.RejectedError](err)
		return ok && r.Feedback == feedback
	}

	w := setup(t, false, say(event.Approve, ""))
	args := append(json.RawMessage(nil), call.Args...)
	mine := call
	mine.Args = args
	if err := w.rt.Approve(t.Context(), mine, def, "brief"); err != nil || len(w.asked) != 1 || w.ended != 1 {
		t.Fatalf("approved: %v, asked %d", err, len(w.asked))
	}
	copy(args, `{"b":2}`) // the caller's memory is its own
	if string(w.asked[0].Params) != `{"a":1}` || w.asked[0].Digest == "" {
		t.Errorf("asked %s", w.asked[0].Params)
	}

	w = setup(t, false, say(event.ApproveForSession, ""))
	for range 2 {
		if err := w.rt.Approve(t.Context(), call, def, "brief"); err != nil {
			t.Fatal(err)
		}
	}
	changed := def
	changed.Description = "other"
	if err := w.rt.Approve(t.Context(), call, changed, "brief"); err != nil || len(w.asked) != 2 {
		t.Errorf("a changed definition: %v, asked %d times", err, len(w.asked))
	}

	w = setup(t, false, say(event.Reject, "no"))
	if err := w.rt.Approve(t.Context(), call, def, "brief"); !rejected(err, "no") {
		t.Errorf(`got %v, want the rejection "no"`, err)
	}
	w = setup(t, false, func(context.Context) (event.ApprovalAnswer, string, error) { return "", "", errors.New("gone") })
	if err := w.rt.Approve(t.Context(), call, def, "brief"); !rejected(err, "the client could not be asked: gone") {
		t.Errorf(`got %v; want the rejection "the client could not be asked: gone"`, err)
	}
	w = setup(t, false, say("perhaps", ""))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	if err := w.rt.Approve(ctx, call, def, "brief"); err == nil {
		t.Error("an invalid answer counts")
	}
	cancel()
	w = setup(t, false, nil)
	if err := w.rt.Approve(t.Context(), call, def, "brief"); err == nil {
		t.Error("with nobody to ask")
	}

	// The caller cannot be asked, but somebody else can: the ask is theirs.
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, true, func(context.Context) (event.ApprovalAnswer, string, error) { return "", "", errors.New("gone") })
		done := make(chan error, 1)
		go func() { done <- w.rt.Approve(t.Context(), call, def, "brief") }()
		synctest.Wait() // the caller has failed
		if len(w.asked) != 1 || len(w.rt.Pending()) != 1 {
			t.Fatalf("asked %d times, %d asks wait", len(w.asked), len(w.rt.Pending()))
		}
		if _, err := w.rt.Answer(w.rt.Pending()[0].ID, event.Approve, "", "somebody"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("when somebody else can be asked: %v", err)
		}
	})

	// Somebody else answers first: the question to the caller ends.
	w = setup(t, true, func(ctx context.Context) (event.ApprovalAnswer, string, error) {
		<-ctx.Done()
		return "", "", ctx.Err()
	})
	done := make(chan error, 1)
	go func() { done <- w.rt.Approve(t.Context(), call, def, "brief") }()
	for deadline := time.Now().Add(eventually.Limit); len(w.rt.Pending()) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	if _, err := w.rt.Answer(w.rt.Pending()[0].ID, event.Approve, "", "somebody"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || w.ended != 1 {
		t.Errorf("got %v, the question has ended %d times", err, w.ended)
	}
}
