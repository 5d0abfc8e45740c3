package follow_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/follow"
)

// COD-3: however clients come and go, nobody holds a follower that has ended, and of two
// followers of a session one is over before the next begins.
func TestManyComeAndGo(t *testing.T) {
	each(t, "around the end of the time", func(t *testing.T, w *world) {
		var clients sync.WaitGroup
		for seed := range uint64(8) {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(17, seed))
				for range 200 {
					v, err := w.set.Join(t.Context(), "s")
					if err != nil {
						t.Errorf("Join = %v, want nil", err)
						return
					}
					time.Sleep(time.Duration(r.IntN(3)) * linger / 2)
					v.Lock()
					if v.Ended() {
						t.Error("Ended() = true for a follower that is held, want false")
					}
					v.Unlock()
					if r.IntN(2) == 0 {
						v.Finish()
					} else {
						v.Leave()
					}
					time.Sleep(time.Duration(r.IntN(9)) * linger / 4)
				}
			})
		}
		clients.Wait()
		w.set.Close()
		if _, err := w.set.Join(t.Context(), "s"); !errors.Is(err, follow.ErrClosed) {
			t.Errorf("Join after Close = %v, want ErrClosed", err)
		}
		if w.views < 10 {
			t.Errorf("%d followers came and went, want at least 10", w.views)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		open := false
		for _, line := range w.log {
			switch line[:4] {
			case "open":
				if open {
					t.Fatal("a follower began before the one before had ended")
				}
				open = true
			case "clos":
				open = false
			}
		}
		if open {
			t.Error("the last follower has not ended, want that Close waits for it")
		}
	})
}
