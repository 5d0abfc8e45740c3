package kernel_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// takeAways are the ways in which a history goes away.
var takeAways = map[string]func(w *world) error{
	"archive": func(w *world) error {
		_, err := w.Sessions.Archive("s1", "")
		return err
	},
	"delete": func(w *world) error {
		_, err := w.Sessions.Delete("s1", "", nil)
		return err
	},
	"reset": func(w *world) error {
		s, err := w.Sessions.Find("s1", "")
		if err == nil {
			_, err = s.Reset(true)
		}
		return err
	},
}

// MIS-2, REL-1: a history does not go away while it is summarized, nor before the messages that waited for
// that have their answers. Afterwards it can go.
func TestNothingGoesWhileItIsInUse(t *testing.T) {
	for name, take := range takeAways {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: sums}, func(t *testing.T, w *world) {
				w.talk(5000)
				wait := w.compact(t.Context(), "")
				if a, err := w.Loop.Submit(t.Context(), loop.Prompt{SessionID: "s1", Text: "queued", Delivery: loop.DeliverQueue}); err != nil || !a.Queued {
					t.Fatalf("Submit = %+v, %v, want it queued", a, err)
				}
				if err := take(w); !errors.Is(err, loop.ErrCompacting) {
					t.Errorf("while the history is summarized: %v, want ErrCompacting", err)
				}
				if _, err := wait(); err != nil {
					t.Errorf("Compact = %v, want no error", err)
				}
				synctest.Wait()
				h := w.history("s1")
				equal(t, h[len(h)-2:], "user: queued", "assistant: an answer")
				if err := take(w); err != nil {
					t.Errorf("at rest: %v, want no error", err)
				}
			})
		})
	}
}

// A session goes on right after a summary during which a message was queued: neither is it idle, nor
// may it go away, until the message has its turn.
func TestASessionGoesOnAfterCompact(t *testing.T) {
	for name, take := range takeAways {
		t.Run(name, func(t *testing.T) {
			script := strings.Replace(sums, `{"match":""`, `{"match":"^slow","steps":[{"text":"at last","delay_ms":60000,"chunks":1}]},{"match":""`, 1)
			inBubble(t, setup{script: script}, func(t *testing.T, w *world) {
				w.talk(5000)
				over := make(chan struct{})
				go func() {
					defer close(over)
					_, err := w.Loop.Compact(t.Context(), "s1", "")
					goes, terr := w.Loop.GoesOn("s1"), take(w)
					if err != nil || !goes || !errors.Is(terr, loop.ErrBusy) {
						t.Errorf("right after Compact, %v: it goes on %t, and is taken away with %v; want true, and ErrBusy", err, goes, terr)
					}
				}()
				synctest.Wait()
				if a, err := w.Loop.Submit(t.Context(), loop.Prompt{SessionID: "s1", Text: "slow", Delivery: loop.DeliverQueue}); err != nil || !a.Queued {
					t.Fatalf("Submit = %+v, %v, want it queued", a, err)
				}
				<-over
				time.Sleep(2 * time.Minute) // of the bubble: the turn ends
				if w.Loop.GoesOn("s1") || !w.Loop.Resting("s1") {
					t.Error("after the turn the session goes on, want it at rest")
				}
			})
		})
	}
}

// A prompt that has waited is taken in only if it still may be, and makes no session.
func TestAPromptThatMayNot(t *testing.T) {
	inBubble(t, setup{script: sums}, func(t *testing.T, w *world) {
		no := errors.New("it was closed")
		if _, err := w.Loop.Submit(t.Context(), loop.Prompt{SessionID: "s1", Text: "x", May: func() error { return no }}); !errors.Is(err, no) {
			t.Errorf("Submit = %v, want the reason", err)
		}
		if _, err := w.Sessions.Find("s1", ""); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("Find = %v, want ErrNotFound", err)
		}
		if out, err := w.Loop.Run(t.Context(), loop.Prompt{SessionID: "s1", Text: "x", May: func() error { return nil }}); err != nil || out.Err != nil {
			t.Errorf("Run = %v, %v, want no error", err, out.Err)
		}
	})
}

// While yaya stops, a session with messages that nothing starts any longer is not archived: the next
// process has them.
func TestNothingIsArchivedAtTheEnd(t *testing.T) {
	inBubble(t, setup{script: sums}, func(t *testing.T, w *world) {
		w.run("s1", "hello")
		if err := w.Loop.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Sessions.Archive("s1", ""); !errors.Is(err, loop.ErrShutdown) {
			t.Errorf("Archive = %v, want ErrShutdown", err)
		}
	})
}
