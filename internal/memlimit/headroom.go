package memlimit

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A collection starts when the heap has grown by so many percent of what it keeps. A small
// heap may double: at Go's default, garbage collection took a tenth of the time of a relay
// under load. One with much to keep, such as the index of many sessions, grows by as many
// bytes as a small one does, but never so little that it is collected all the time.
const (
	mostPercent, leastPercent = 200, 30
	headroom                  = 12 << 20 // bytes
)

// Headroom sets how far the heap grows before each collection, and after each for what it has
// kept, as long as the process lives. GOGC in the environment takes precedence.
func Headroom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostPercent)
	adapt(mostPercent)
}

// adapt sets the percentage again after the next collection, which finds the object that it
// makes unreachable.
func adapt(percent int) {
	type probe struct{ _ *int } // with a pointer, so that it shares its memory with no other object
	runtime.SetFinalizer(new(probe), func(*probe) {
		if next := percentFor(heapNow().live); next != percent {
			debug.SetGCPercent(next)
			percent = next
		}
		adapt(percent)
	})
}

// Rest gives memory back to the system: what only the start of the process has needed, and
// then, until ctx ends, what no longer serves a process that has little to do. It is for the
// whole process, and collects garbage.
func Rest(ctx context.Context) {
	giveBack()
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	r := resting{was: heapNow()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.due(heapNow()) {
			giveBack()
			r.was = heapNow()
		}
	}
}

// giveBack collects twice: a [sync.Pool] keeps its content through one collection.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// resting decides when memory goes back to the system.
type resting struct {
	was    usage
	worked bool // since memory last went back
}

// due reports whether a process that uses so much has come to rest. After work that is always
// worth the collections: buffers in pools count as live, so [usage.spare] does not show them.
func (r *resting) due(now usage) bool {
	idle := now.idleSince(r.was)
	r.was = now
	if !idle {
		r.worked = true
		return false
	}
	if !r.worked && now.spare() < enough {
		return false
	}
	r.worked = false
	return true
}

const (
	restEvery = 15 * time.Second
	fewCycles = 3       // collections in that time, of a process that has little to do
	enough    = 4 << 20 // bytes; less is not worth a collection
)

// usage holds Go's numbers about the heap.
type usage struct {
	live, objects, free, cycles uint64
}

// heapNow returns zeros for what Go does not say.
func heapNow() usage {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	var n [4]uint64
	for i := range s {
		if s[i].Value.Kind() == metrics.KindUint64 {
			n[i] = s[i].Value.Uint64()
		}
	}
	return usage{n[0], n[1], n[2], n[3]}
}

func (u usage) idleSince(was usage) bool { return u.cycles-was.cycles <= fewCycles }

// spare returns the bytes that a collection would give back: free ones, and those that have come
// since the last one, of which most is garbage in a process at rest.
func (u usage) spare() uint64 { return u.free + u.objects - min(u.live, u.objects) }

func percentFor(live uint64) int {
	return int(min(max(headroom*100/max(live, 1), leastPercent), mostPercent))
}
