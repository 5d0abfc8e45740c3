package session_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/session"
)

// OP-14, REL-1: the tape of a session that is being forked stays for the fork, however early it is deleted
// or reset.
func TestTheTapeOfAForkStays(t *testing.T) {
	for name, away := range map[string]func(w *world) error{
		"delete": func(w *world) error {
			_, err := w.Delete("parent", "", nil)
			return err
		},
		"reset": func(w *world) error {
			_, err := w.open("parent").Reset(false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var w *world
			var forking atomic.Bool
			var took sync.WaitGroup
			disk := &journaltest.Faults{Before: func(journaltest.Step) error {
				if !forking.CompareAndSwap(true, false) {
					return nil
				}
				over := make(chan struct{})
				took.Go(func() {
					defer close(over)
					if err := away(w); err != nil {
						t.Errorf("%s = %v, want no error", name, err)
					}
				})
				select { // it waits for the fork, or is over long before
				case <-over:
				case <-time.After(200 * time.Millisecond):
				}
				return nil
			}}
			w = newWorld(t, dir, func(c *session.Config) { disk.FS = c.FS; c.FS = disk })
			w.say("parent", "hello")
			if err := w.open("parent").Sync(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			forking.Store(true)
			if _, err := w.Fork("parent", "child"); err != nil {
				t.Fatalf("Fork = %v, want no error", err)
			}
			took.Wait()
			w.stop()
			w = newWorld(t, dir)
			if msgs, err := w.open("child").Messages(); err != nil || len(msgs) != 1 || msgs[0].Content != "hello" {
				t.Errorf("the fork has %+v, %v, want the message of its parent", msgs, err)
			}
		})
	}
}
