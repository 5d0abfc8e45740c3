package kernel_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// OP-86: a start with many queues goes on with a few sessions at a time, in order, until
// nothing is left to do in each.
func TestResumeIsBounded(t *testing.T) {
	const sessions = 2*loop.ResumeAtOnce + 3
	dir := t.TempDir()
	script := `{"scenarios":[{"match":"long","steps":[{"text":"late","delay_ms":600000}]},{"match":"later","steps":[{"text":"done","delay_ms":1000}]}]}`
	names := map[string]string{}
	inBubble(t, setup{script: script, dir: dir}, func(t *testing.T, w *world) {
		for i := range sessions {
			id := fmt.Sprintf("s%d", i)
			names[session.TapeName("/ws", id)] = id
			for _, p := range []loop.Prompt{{Text: "long"}, {ID: "a", Text: "later"}, {ID: "b", Text: "later, too"}} {
				p.SessionID, p.Delivery = id, loop.DeliverQueue
				if _, err := w.Loop.Submit(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second)
	})
	marks, err := os.ReadDir(filepath.Join(dir, "tapes", ".queued"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range marks {
		want = append(want, names[m.Name()])
	}
	inBubble(t, setup{dir: dir}, func(t *testing.T, w *world) {
		if err := w.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		running, most := map[string]bool{}, 0
		var order []string
		// A subscriber sees the events of different sessions in any order. Their ids are
		// in the order of the calls of Publish: a turn's end has its id before the next
		// turn can start.
		events := w.events()
		slices.SortFunc(events, func(a, b event.Event) int { return cmp.Compare(a.ID, b.ID) })
		for _, ev := range events {
			switch ev.Kind {
			case event.TurnWasStarted.Name():
				running[ev.SessionID] = true
				if !slices.Contains(order, ev.SessionID) {
					order = append(order, ev.SessionID)
				}
			case event.TurnWasCompleted.Name():
				delete(running, ev.SessionID)
			}
			most = max(most, len(running))
		}
		if most != loop.ResumeAtOnce {
			t.Errorf("%d turns ran at the same time, want %d", most, loop.ResumeAtOnce)
		}
		if len(order) != sessions || len(want) != sessions {
			t.Fatalf("%d of %d sessions went on, want %d", len(order), len(want), sessions)
		}
		for from := 0; from < sessions; from += loop.ResumeAtOnce { // those of one round start together
			to := min(from+loop.ResumeAtOnce, sessions)
			if got, want := slices.Sorted(slices.Values(order[from:to])), slices.Sorted(slices.Values(want[from:to])); !slices.Equal(got, want) {
				t.Errorf("sessions %d to %d were %v, want %v", from, to, got, want)
			}
		}
		for _, id := range order {
			if n := len(w.ends(id)); n != 2 {
				t.Errorf("session %s ended %d turns, want both of its queue", id, n)
			}
		}
	})
}
