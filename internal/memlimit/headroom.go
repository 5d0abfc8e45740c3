package memlimit

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// A collection starts when the heap has grown by so many percent of what it keeps. A small
// heap may double: at Go's default, garbage collection took a tenth of the time of a relay
// under load. One with much to keep, such as the index of many sessions, grows by as many
// bytes as a small one does, but never so little that it is collected all the time.
const (
	mostPercent, leastPercent = 200, 50
	headroom                  = 16 << 20 // bytes
)

// Headroom sets how far the heap grows before each collection, for a heap that is small. GOGC
// in the environment takes precedence, here and in [Settle].
func Headroom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(mostPercent)
	}
}

// Settle gives memory back that only the start of the process has needed, and sets the
// headroom for what the heap keeps now. It is for the whole process, and collects garbage.
func Settle() {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percentFor(live()))
	}
}

// live returns how many bytes of the heap the last collection kept; 0 if Go does not say.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

func percentFor(live uint64) int {
	return int(min(max(headroom*100/max(live, 1), leastPercent), mostPercent))
}
