package memlimit

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// OP-101: the heap of a yaya with many sessions grows by as many bytes between two collections
// as one with few, and never by so little that it is collected all the time.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 200}, {4 << 20, 200}, {8 << 20, 200}, {16 << 20, 100}, {20 << 20, 80}, {32 << 20, 50}, {1 << 40, 50},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("for a heap of %d bytes: got %d %%, want %d %%", c.live, got, c.want)
		}
	}
}

// OP-101: what only the start needed is given back, and GOGC takes precedence.
func TestSettle(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	t.Setenv("GOGC", "77")
	Headroom()
	Settle()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("with GOGC in the environment: got %d %%, want what it was, 100 %%", got)
	}
	t.Setenv("GOGC", "")
	Headroom()
	if got := debug.SetGCPercent(100); got != mostPercent {
		t.Errorf("for a small heap: got %d %%, want %d %%", got, mostPercent)
	}
	kept := make([]byte, 64<<20)
	Settle()
	if got := debug.SetGCPercent(100); got != leastPercent {
		t.Errorf("with %d bytes kept: got %d %%, want %d %%", len(kept), got, leastPercent)
	}
	runtime.KeepAlive(kept)
}
