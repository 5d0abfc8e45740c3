package downstream

import (
	"bytes"
	"hash/maphash"

	"github.com/yaya-ai/yaya/internal/callctx"
)

// running is a request that runs: its context, and its place among those of its client.
type running struct {
	callctx.Context
	of   *client // nil if it is not among those of a client
	id   []byte  // of the message's memory, which stays until finish
	hash uint64
	next *running // another one of the same hash
}

// request is a request and all that it needs while it runs, in one piece of memory.
type request struct {
	exchange
	running
}

// idSeed prevents clients from choosing ids that collide.
var idSeed = maphash.MakeSeed()

// begin registers a request, whose context has begun, for cancellation. It reports false if the
// id is in use.
func (c *client) begin(r *running, id []byte) bool {
	hash := maphash.Bytes(idSeed, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(hash, id) != nil {
		return false
	}
	if c.inflight == nil {
		c.inflight = map[uint64]*running{}
	}
	r.of, r.id, r.hash, r.next = c, id, hash, c.inflight[hash]
	c.inflight[hash] = r
	return true
}

// find returns the request with an id, nil if none runs; the caller holds mu.
func (c *client) find(hash uint64, id []byte) *running {
	for r := c.inflight[hash]; r != nil; r = r.next {
		if bytes.Equal(r.id, id) {
			return r
		}
	}
	return nil
}

// cancel ends the request with an id, if it runs.
func (c *client) cancel(id []byte) {
	hash := maphash.Bytes(idSeed, id)
	c.mu.Lock()
	r := c.find(hash, id)
	c.mu.Unlock()
	if r != nil {
		r.Cancel(errNoAnswer)
	}
}

// cancelAll ends all requests with a cause.
func (c *client) cancelAll(cause error) {
	c.mu.Lock()
	var all []*running
	for _, r := range c.inflight {
		for ; r != nil; r = r.next {
			all = append(all, r)
		}
	}
	c.mu.Unlock()
	for _, r := range all {
		r.Cancel(cause)
	}
}

// finish ends the request's context, and takes it from those of its client. Further calls do
// nothing.
func (r *running) finish(cause error) {
	r.Cancel(cause)
	if r.of == nil {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	var before *running
	for o := r.of.inflight[r.hash]; o != nil; before, o = o, o.next {
		if o != r {
			continue
		}
		switch {
		case before != nil:
			before.next = r.next
		case r.next != nil:
			r.of.inflight[r.hash] = r.next
		default:
			delete(r.of.inflight, r.hash)
		}
		return
	}
}
