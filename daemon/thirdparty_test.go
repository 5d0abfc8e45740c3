package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Without an editable plugin, nobody looks at folders.
func TestLookWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var looked atomic.Int32
		var left atomic.Bool
		more, ended := make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(ended)
			lookWhile(ctx, more, func(context.Context) bool { looked.Add(1); return left.Load() })
		}()
		passes := func(what string, want int32) {
			t.Helper()
			looked.Store(0)
			time.Sleep(10*lookEach + lookEach/2)
			synctest.Wait()
			if got := looked.Load(); got != want {
				t.Errorf("%s: looked %d times, want %d", what, got, want)
			}
		}
		passes("at first", 0)
		left.Store(true)
		more <- struct{}{}
		passes("with one", 10)
		left.Store(false)
		passes("after its end", 1)
		passes("later", 0)
		left.Store(true)
		more <- struct{}{}
		passes("with another", 10)
		cancel()
		<-ended
	})
}
