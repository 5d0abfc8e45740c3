package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// MIS-6: clients that listen learn once that skills have changed; without listeners nobody looks,
// and a later one learns what has changed meanwhile.
func TestSkillChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listening, broken atomic.Bool
		var text atomic.Value
		var looks, told atomic.Int32
		text.Store("a")
		end := watchSkills(listening.Load, func(context.Context) ([]byte, error) {
			looks.Add(1)
			if broken.Load() {
				return nil, errors.New("unreadable")
			}
			s, _ := text.Load().(string)
			return []byte(s), nil
		}, func() { told.Add(1) })
		defer end()
		after := func(what string, wantTold int32) {
			t.Helper()
			time.Sleep(3 * skillsEach)
			synctest.Wait()
			if got := told.Load(); got != wantTold {
				t.Errorf("%s: told %d times, want %d", what, got, wantTold)
			}
		}
		after("nobody listens", 0)
		if got := looks.Load(); got != 1 {
			t.Errorf("looked %d times without a listener, want only at the start", got)
		}
		text.Store("b")
		after("changed, nobody listens", 0)
		listening.Store(true)
		after("somebody listens", 1)
		after("nothing has changed", 1)
		broken.Store(true)
		after("unreadable", 1)
		broken.Store(false)
		after("readable again", 1)
		text.Store("c")
		after("changed", 2)
	})
}
