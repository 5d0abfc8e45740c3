package loop_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// REL-1, OP-112: queues of a version that made no markers go on after an upgrade, whatever
// step of the upgrade a loss of power ends; sessions without a queue get no marker.
func TestQueuesOfOldDataGoOn(t *testing.T) {
	for step := 1; ; step++ {
		ended := false
		synctest.Test(t, func(t *testing.T) {
			h := &history{t: t, chance: &chance{r: rand.New(rand.NewPCG(1, 2))}, disk: journaltest.NewDisk(), turns: map[string]bool{}, worked: map[string]int{}} //nolint:gosec // a test that can be repeated
			p := h.begin(0)
			h.slow = time.Hour
			submit := func(session, text string) {
				if _, err := p.l.Submit(t.Context(), loop.Prompt{SessionID: session, ID: text, Text: text, Delivery: loop.DeliverQueue}); err != nil {
					t.Fatal(err)
				}
			}
			submit("s2", "alone")
			for _, text := range []string{"first", "second", "third"} {
				submit("s1", text)
			}
			h.disk = h.disk.Killed()
			h.end(p, new(sync.WaitGroup)) // on the disk that the killed process left
			for _, name := range h.disk.Names("tapes/.queued") {
				if err := h.disk.Remove("tapes/.queued/" + name); err != nil {
					t.Fatal(err)
				}
			}
			broken := errors.New("the power is off")
			disk, killed := &journaltest.Faults{FS: h.disk}, false
			disk.Before = func(s journaltest.Step) error {
				if killed = killed || s.N == step; killed {
					return broken
				}
				return nil
			}
			err := session.MarkQueues(disk)
			ended = err == nil && !killed
			if !ended && !errors.Is(err, broken) {
				t.Errorf("step %d: MarkQueues = %v, want the error of the disk", step, err)
			}
			h.disk = h.disk.PowerLost(h.chance.r)
			if !ended {
				if err := session.MarkQueues(h.disk); err != nil {
					t.Fatal(err)
				}
			}
			if marks := h.disk.Names("tapes/.queued"); len(marks) != 1 {
				t.Errorf("step %d: the markers are %v, want that of s1 alone", step, marks)
			}
			h.slow = 0
			p = h.begin(0)
			if err := p.l.Resume(t.Context()); err != nil {
				t.Errorf("step %d: Resume = %v, want no error", step, err)
			}
			time.Sleep(time.Hour)
			got := read(t, p.m, "s1")
			if h.worked["second"] != 1 || h.worked["third"] != 1 || got.at["second"] >= got.at["third"] {
				t.Errorf("step %d: %v turns began, want one with the second prompt, and then one with the third", step, h.worked)
			}
			if left := h.disk.Names("tapes/.queued"); len(left) > 0 {
				t.Errorf("step %d: markers of empty queues are left: %v", step, left)
			}
			h.end(p, new(sync.WaitGroup))
		})
		if ended || t.Failed() {
			if step < 4 {
				t.Errorf("it ended after %d steps", step)
			}
			return
		}
	}
}
