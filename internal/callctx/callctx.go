// Package callctx has the context of a call that passes through yaya.
//
// A [Context] behaves like one of [context.WithCancelCause], and contexts of the standard
// library derive from it as from any other; [context.Cause] knows its cause. It differs in what
// it costs: it is part of the struct that describes the call, and [Hook], which is part of one
// as well, takes the place of [context.AfterFunc]. A context that begins under another Context
// and ends without anybody having asked for its channel allocates nothing. Many [Alarm]s share
// one timer.
//
// Contexts are not recycled: whoever keeps one past the end of its call sees an ended context.
// Nothing here starts a goroutine, except where a hook waits for a context of another kind.
// All methods are safe for concurrent use where nothing else is said.
package callctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is the context of a call. [Context.Begin] or [Context.BeginDetached] comes before all
// other methods, and each Context needs a Cancel in the end, or its parent keeps it. It must
// not be copied.
type Context struct {
	parent   context.Context // a base context: of the values, and of the end unless it is detached
	detached bool
	foreign  bool // the parent is of another kind, whose end comes here a moment later
	link     Hook // on the parent

	over  atomic.Bool     // err and ended are set
	mu    sync.Mutex      // of the fields below
	done  chan struct{}   // nil until somebody asks for it
	err   error           // set once
	ended context.Context // a base context: an ended one of the standard library, with the cause
	hooks *Hook           // those that are attached
}

// own is the key under which a Context finds itself.
var own int

// linked is implemented by Context and by the types that embed it.
type linked interface{ callContext() *Context }

func (c *Context) callContext() *Context { return c }

// Begin makes c a child of parent: it has the values of parent, and ends with it.
func (c *Context) Begin(parent context.Context) {
	c.parent = parent
	c.link.child = c
	c.foreign = !c.link.attach(parent)
}

// BeginDetached gives c the values of parent, but neither its end nor its deadline.
func (c *Context) BeginDetached(parent context.Context) {
	c.parent, c.detached = parent, true
}

// Cancel ends c with a cause, which is [context.Canceled] if it is nil. The first end counts.
func (c *Context) Cancel(cause error) {
	if c.foreign && c.parent.Err() != nil {
		c.follow(c.parent)
		return
	}
	if c.end(context.Canceled, cause) {
		c.link.detach()
	}
}

// end reports whether it has ended c.
func (c *Context) end(err, cause error) bool {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return false
	}
	c.err, c.ended = err, endedBy(err, cause)
	c.over.Store(true) // before the channel closes: then Err returns something
	if c.done != nil {
		close(c.done)
	}
	first := c.hooks
	c.hooks = nil
	for h := first; h != nil; h = h.next {
		h.attached = false
	}
	c.mu.Unlock()
	for h := first; h != nil; {
		next := h.next
		h.run(c)
		h = next
	}
	return true
}

// follow ends c, because parent has ended.
func (c *Context) follow(parent context.Context) { c.end(parent.Err(), context.Cause(parent)) }

// canceled and expired are the ended contexts of the most frequent causes.
var canceled, expired = with(context.Canceled), with(context.DeadlineExceeded)

// with returns an ended context that has a cause.
func with(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

func endedBy(err, cause error) context.Context {
	if cause == nil {
		cause = err
	}
	switch any(cause) { // these very errors, not those that wrap them
	case context.Canceled:
		return canceled
	case context.DeadlineExceeded:
		return expired
	}
	return with(cause)
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err implements [context.Context].
func (c *Context) Err() error {
	if !c.over.Load() {
		if c.foreign {
			return c.parent.Err()
		}
		return nil
	}
	c.mu.Lock() // until the channel is closed
	defer c.mu.Unlock()
	return c.err
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) {
	if c.detached {
		return time.Time{}, false
	}
	return c.parent.Deadline()
}

// Value implements [context.Context]. [context.Cause] looks for a context of the standard
// library under a key of its own, which no other value has, and takes the cause from that.
func (c *Context) Value(key any) any {
	if key == &own {
		return c
	}
	if c.over.Load() {
		if v := c.ended.Value(key); v != nil {
			return v
		}
	}
	return c.parent.Value(key)
}

// AfterFunc registers f for the end of c; contexts that derive from c call it. Unlike the f of
// [context.AfterFunc], f is called by whoever ends c, and must not block. stop reports whether
// it has prevented that.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	h := &Hook{who: Func(f)}
	if !h.on(c) {
		go f() // the caller may hold a lock that f needs
	}
	return h.detach
}
