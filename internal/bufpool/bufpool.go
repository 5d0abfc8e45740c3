// Package bufpool lends byte buffers for messages on their way through.
//
// A buffer belongs to one holder at a time, who hands it on or releases it. One
// that is never released is collected like any other memory, so forgetting costs
// speed and releasing twice is the only mistake: after Release neither the buffer
// nor anything that aliases it may be used. All functions are safe for concurrent
// use.
package bufpool

import (
	"errors"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// Buffers are kept by size: what a small message needs must not hold on to what a large one
// needed. There are four classes to each power of two, so that a buffer is at most a quarter
// larger than asked for: a message of 256 KiB and its envelope have 320 KiB, not 512.
const (
	minBits = 11 // 2 KiB
	maxBits = 28 // 256 MiB; larger ones are not kept
	steps   = 4
)

const (
	classes   = (maxBits-minBits)*steps + 1
	large     = (largeBits - minBits) * steps // the first class of large buffers
	largeBits = 20                            // 1 MiB
)

var (
	pools   [large]sync.Pool
	shelves [classes - large]shelf
)

// A shelf has the large buffers of a class that nobody holds, until the next collection. A
// [sync.Pool] keeps them per processor: a caller on another processor would not find them and
// would allocate, so that twice the memory would be in use.
type shelf struct {
	mu   sync.Mutex
	free []weak.Pointer[Buffer] // guarded by mu
}

// take returns a buffer, if there is one.
func (s *shelf) take() *Buffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := len(s.free) - 1; n >= 0; n-- {
		b := s.free[n].Value()
		s.free = s.free[:n]
		if b != nil {
			return b
		}
	}
	return nil
}

func (s *shelf) put(b *Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = slices.DeleteFunc(s.free, func(p weak.Pointer[Buffer]) bool { return p.Value() == nil })
	s.free = append(s.free, weak.Make(b))
}

// sizeOf is the size of the buffers of a class.
func sizeOf(class int) int { return (steps + class%steps) << (minBits - 2 + class/steps) }

// classOf is the largest class whose buffers have at most n bytes; negative if there is none.
func classOf(n int) int {
	if n < 1<<minBits {
		return -1
	}
	high := bits.Len(uint(n)) - 1 //nolint:gosec // positive
	return (high-minBits)*steps + n>>(high-2)&(steps-1)
}

// Buffer is a lent buffer. B may be appended to and replaced.
type Buffer struct {
	B []byte

	told      func() // that it has been given back
	forgotten runtime.Cleanup
}

// OnRelease makes the pool call f when the buffer is released, or when nobody can
// release it: f must not use the buffer, and may be called from any goroutine.
func (b *Buffer) OnRelease(f func()) {
	b.told = f
	b.forgotten = runtime.AddCleanup(b, func(f func()) { f() }, f)
}

// Forget declares that nobody will release the buffer: its bytes belong to their
// present holder. Forgetting nil does nothing.
func (b *Buffer) Forget() {
	if b == nil || b.told == nil {
		return
	}
	b.disown()()
}

// disown returns what is to be told about the buffer, which is told about nothing then.
func (b *Buffer) disown() func() {
	f := b.told
	b.told = nil
	b.forgotten.Stop()
	return f
}

// HandOver moves the release function of b to another buffer, and releases b.
func (b *Buffer) HandOver(to *Buffer) {
	if b.told != nil {
		to.OnRelease(b.disown())
	}
	b.Release()
}

// Get returns an empty buffer with room for n bytes.
func Get(n int) *Buffer {
	class := max(classOf(n-1)+1, 0)
	if class >= classes {
		return &Buffer{B: make([]byte, 0, n)}
	}
	var b *Buffer
	if class < large {
		b, _ = pools[class].Get().(*Buffer)
	} else {
		b = shelves[class-large].take()
	}
	if b == nil {
		return &Buffer{B: make([]byte, 0, sizeOf(class))}
	}
	b.B = b.B[:0]
	return b
}

// Release gives the buffer back. Releasing nil does nothing.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	if b.told != nil {
		defer b.disown()() // afterwards: a caller that has waited for room takes these bytes
	}
	// A buffer that has grown belongs to the largest class that it can serve.
	switch class := classOf(cap(b.B)); {
	case class < 0 || class >= classes:
	case class < large:
		pools[class].Put(b)
	default:
		shelves[class-large].put(b)
	}
}

// ErrTooLarge reports that a reader returned more data than allowed.
var ErrTooLarge = errors.New("more data than the limit allows")

// grow moves the content of b into a larger buffer.
func grow(b *Buffer, n int) *Buffer {
	bigger := Get(n)
	bigger.B = append(bigger.B, b.B...)
	b.Release()
	return bigger
}

// ReadAll reads r to its end, at most limit bytes.
func ReadAll(r io.Reader, limit int) (*Buffer, error) {
	b := Get(16 << 10)
	for {
		if len(b.B) == cap(b.B) {
			b = grow(b, 2*cap(b.B))
		}
		n, err := r.Read(b.B[len(b.B):cap(b.B)])
		b.B = b.B[:len(b.B)+n]
		switch {
		case len(b.B) > limit:
			b.Release()
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			b.Release()
			return nil, err
		}
	}
}
