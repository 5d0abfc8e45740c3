// Package intake reads data from others into memory: a buffer grows with the data
// that has arrived, never with an announced length, and large bodies count against
// a budget that no party can use up for the others.
package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"sync"
)

// Errors of [Budget.Read].
var (
	ErrTooLarge = errors.New("the body is larger than its limit")
	// ErrBusy reports that there is no memory for the body at present: try again
	// later.
	ErrBusy = errors.New("too much is being received at once")
)

const (
	// free is the size up to which a body is not counted: the number of connections
	// bounds that memory, and nearly all bodies are smaller.
	free  = 16 << 10
	first = 4 << 10 // bytes, of a body whose length is not known

	maxBudget = 256 << 20
)

// Budget is memory for bodies that are being received or worked on, in bytes. Its
// methods are safe for concurrent use.
type Budget struct {
	total, each int64

	mu    sync.Mutex
	held  int64
	party map[string]int64
}

// NewBudget returns a budget of which one party gets at most a half.
func NewBudget(total int64) *Budget {
	return &Budget{total: total, each: total / 2, party: map[string]int64{}}
}

// Bodies is the budget of the process: a quarter of its memory limit, and at most
// 256 MiB.
var Bodies = sync.OnceValue(func() *Budget {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = 4 * maxBudget
	}
	return NewBudget(min(limit/4, maxBudget))
})

// Held is a part of a budget. The zero value holds nothing.
type Held struct {
	b     *Budget
	party string
	n     int64
	share *Share // of a queue, instead of n bytes of the budget
}

// Any reports whether it holds anything.
func (h *Held) Any() bool { return h.n > 0 || h.share != nil }

// Move returns what h holds, for another to release. A nil h holds nothing.
func (h *Held) Move() Held {
	if h == nil {
		return Held{}
	}
	out := *h
	h.n, h.share = 0, nil
	return out
}

// Park moves the share of h from [Requests] to [Parked]. It reports false when there is
// no room.
func (h *Held) Park() bool {
	if h.share == nil || h.share.q == Parked() {
		return true
	}
	parked := Parked().TryTake(h.party, h.share.n)
	if parked == nil {
		return false
	}
	h.share.Release()
	h.share = parked
	return true
}

// Release returns it; further calls do nothing.
func (h *Held) Release() {
	h.share.Release()
	h.share = nil
	if h.n == 0 {
		return
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.b.held -= h.n
	if h.b.party[h.party] -= h.n; h.b.party[h.party] == 0 {
		delete(h.b.party, h.party)
	}
	h.n = 0
}

// more takes n further bytes; it reports false if fewer are left.
func (h *Held) more(n int64) bool {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	if h.b.held+n > h.b.total || h.b.party[h.party]+n > h.b.each {
		return false
	}
	h.b.held += n
	h.b.party[h.party] += n
	h.n += n
	return true
}

// InUse returns how many bytes are held.
func (b *Budget) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Read reads a body of at most limit bytes for a party, into dst as far as there is
// room. size is the announced length, -1 if there is none; a shorter body is
// [io.ErrUnexpectedEOF]. The returned Held counts until it is released; on an error
// it is already released.
func (b *Budget) Read(dst []byte, r io.Reader, size int64, party string, limit int) (data []byte, held Held, err error) {
	return b.ReadQueued(context.Background(), nil, dst, r, size, party, limit)
}

// ReadQueued is like Read, but a body of more than [Small] bytes is counted in a queue
// instead, when so much has arrived: it waits there until ctx ends, and is not refused.
func (b *Budget) ReadQueued(ctx context.Context, q *Queue, dst []byte, r io.Reader, size int64, party string, limit int) (data []byte, held Held, err error) {
	if size > int64(limit) {
		return dst[:0], Held{}, ErrTooLarge
	}
	held = Held{b: b, party: party}
	if data, err = held.read(ctx, q, dst[:0], r, size, limit); err != nil {
		held.Release()
	} else if n := len(data); held.share != nil && size < 0 {
		// Everything that could have arrived was counted, and the buffer grew for it.
		if cap(data)-n > n/4 {
			data = bytes.Clone(data)
		}
		held.share.Shrink(int64(n))
	}
	return data, held, err
}

func (h *Held) read(ctx context.Context, q *Queue, buf []byte, r io.Reader, size int64, limit int) ([]byte, error) {
	if size >= 0 {
		limit = int(size) // the rest does not belong to the body
	}
	counted := free // bytes that there is an allowance for
	for {
		if size >= 0 && int64(len(buf)) == size {
			return buf, nil
		}
		room := min(limit+1, counted) // one more byte reveals a body that is too large
		if size >= 0 {
			room = min(limit, counted)
		}
		if len(buf) == room {
			if q != nil && counted >= Small {
				share, err := q.Take(ctx, h.party, int64(limit))
				if err != nil {
					return buf, err
				}
				h.Release()
				h.share, counted = share, limit+1
				continue
			}
			more := min(counted, limit+1-counted) // twice as much, or what may come
			if !h.more(int64(more)) {
				return buf, ErrBusy
			}
			counted += more
			continue
		}
		if len(buf) == cap(buf) {
			next := max(2*cap(buf), first)
			if cap(buf) < free && size >= 0 { // small ones are read at once
				next = free
			}
			if len(buf) >= Small {
				next = 8 * cap(buf)
			}
			buf = slices.Grow(buf, min(next, room)-len(buf))
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), room)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, ErrTooLarge
		case errors.Is(err, io.EOF) && size >= 0 && int64(len(buf)) < size:
			return buf, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}
