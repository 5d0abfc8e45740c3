package memlimit

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// OP-101: the heap of a yaya with many sessions grows by as many bytes between two collections
// as one with few, and never by so little that it is collected all the time.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 200}, {4 << 20, 200}, {6 << 20, 200}, {12 << 20, 100}, {20 << 20, 60}, {32 << 20, 37}, {1 << 40, 30},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("for a heap of %d bytes: got %d %%, want %d %%", c.live, got, c.want)
		}
	}
}

// OP-101: the percentage follows what each collection has kept, and GOGC takes precedence.
func TestHeadroomFollowsTheHeap(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	percent := func() int {
		runtime.GC()
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	t.Setenv("GOGC", "77")
	Headroom()
	if got := percent(); got != 100 {
		t.Errorf("with GOGC in the environment: got %d %%, want what it was, 100 %%", got)
	}
	t.Setenv("GOGC", "")
	Headroom()
	kept := make([]byte, 64<<20)
	eventually.True(t, "a large heap has the least percentage", func() bool { return percent() == leastPercent })
	runtime.KeepAlive(kept)
	eventually.True(t, "a small heap has the highest percentage again", func() bool { return percent() == mostPercent })
}

// OP-101: memory that a process no longer needs goes back to the system while it rests, and
// not while it works.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		name     string
		was, now usage
		want     bool
	}{
		{"nothing to give", usage{}, usage{live: 3 << 20, objects: 4 << 20, free: 1 << 20, cycles: 1}, false},
		{"garbage", usage{}, usage{live: 3 << 20, objects: 8 << 20, cycles: 1}, true},
		{"free", usage{}, usage{live: 3 << 20, objects: 3 << 20, free: 8 << 20, cycles: 3}, true},
		{"at work", usage{cycles: 10}, usage{live: 3 << 20, objects: 12 << 20, free: 30 << 20, cycles: 14}, false},
		{"after a collection", usage{}, usage{live: 3 << 20, objects: 2 << 20, free: 1 << 20}, false},
	} {
		if got := (&resting{was: c.was}).due(c.now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	before := heapNow()
	done := make(chan struct{})
	go func() { Rest(ctx); close(done) }()
	eventually.True(t, "the start's garbage was collected", func() bool { return heapNow().cycles > before.cycles })
	cancel()
	<-done
}

// OP-101: a process that comes to rest after work gives back the buffers in pools, which count
// as live until then, and does so once.
func TestRestEmptiesPools(t *testing.T) {
	r := resting{}
	for i, step := range []struct {
		now  usage
		want bool
	}{
		{usage{live: 60 << 20, objects: 60 << 20, cycles: 50}, false}, // at work
		{usage{live: 60 << 20, objects: 60 << 20, cycles: 51}, true},
		{usage{live: 3 << 20, objects: 4 << 20, cycles: 53}, false},
		{usage{live: 3 << 20, objects: 4 << 20, cycles: 53}, false},
	} {
		if got := r.due(step.now); got != step.want {
			t.Errorf("after %d intervals: due = %v, want %v", i+1, got, step.want)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // giveBack alone collects
	var pool sync.Pool
	for range 64 {
		b := make([]byte, 1<<20)
		pool.Put(&b)
	}
	giveBack()
	if got := heapNow().objects; got > 32<<20 {
		t.Errorf("after 64 MiB were put into a pool: the heap has %d bytes, want less than 32 MiB", got)
	}
	runtime.KeepAlive(&pool)
}
