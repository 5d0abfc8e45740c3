package callctx

import "context"

// Watcher learns of the end of a context, on any goroutine. It must not block.
type Watcher interface{ ContextEnded() }

// Func is a function that is a [Watcher].
type Func func()

// ContextEnded implements [Watcher].
func (f Func) ContextEnded() { f() }

// Hook connects a context with a [Watcher]. It may be attached again after Detach has returned
// true; after false neither it nor the watcher may be used for another call, because somebody
// else may be about to tell the watcher. A Hook has one owner: its methods are not safe for
// concurrent use.
type Hook struct {
	who   Watcher
	child *Context // that ends with the context, in place of who

	at         *Context    // that it is on
	stop       func() bool // on a context of another kind
	attached   bool        // guarded by at.mu, as the next line is
	prev, next *Hook
}

// Attach tells who of the end of ctx, at once if it has ended.
func (h *Hook) Attach(ctx context.Context, who Watcher) {
	h.who = who
	h.attach(ctx)
}

// attach reports whether ctx is a Context.
func (h *Hook) attach(ctx context.Context) bool {
	h.at, h.stop = nil, nil
	if c := of(ctx); c != nil {
		if !h.on(c) {
			h.run(c)
		}
		return true
	}
	switch {
	case ctx.Done() == nil:
	case ctx.Err() != nil:
		h.stop = never
		h.run(ctx)
	default:
		h.stop = context.AfterFunc(ctx, func() { h.run(ctx) })
	}
	return false
}

func never() bool { return false }

// of returns the Context whose end is that of ctx, nil if there is none.
func of(ctx context.Context) *Context {
	if l, ok := ctx.(linked); ok {
		return l.callContext()
	}
	if c, ok := ctx.Value(&own).(*Context); ok && c.Done() == ctx.Done() { // with values on top
		return c
	}
	return nil
}

// on attaches the hook to c; it reports false if c has ended.
func (h *Hook) on(c *Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.at = c
	if c.err != nil {
		return false
	}
	h.attached, h.prev, h.next = true, nil, c.hooks
	if h.next != nil {
		h.next.prev = h
	}
	c.hooks = h
	return true
}

func (h *Hook) run(ctx context.Context) {
	if h.child != nil {
		h.child.follow(ctx)
		return
	}
	h.who.ContextEnded()
}

// Detach removes the hook. It reports false if the watcher has been told, or is about to be.
func (h *Hook) Detach() bool {
	ok := h.detach()
	if ok {
		h.at, h.stop, h.who = nil, nil, nil
	}
	return ok
}

func (h *Hook) detach() bool {
	c := h.at
	switch {
	case h.stop != nil:
		return h.stop()
	case c == nil: // it is on nothing that ends
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.attached {
		return false
	}
	h.attached = false
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		c.hooks = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.prev, h.next = nil, nil
	return true
}
