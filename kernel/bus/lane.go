package bus

import (
	"sync"

	"github.com/yaya-ai/yaya/kernel/event"
)

// A subscription keeps up to maxSpare lanes that went out of use, of up to spareEvents
// places each.
const (
	maxSpare    = 16
	spareEvents = 64
)

// lane holds the events of one session that a subscription has not handled yet. Its
// subscription's mutex guards it.
type lane struct {
	sub     *Subscription
	session string
	events  []*event.Event // from first on
	first   int
	next    *lane // in the queue of lanes, or of spare ones
}

func (l *lane) push(ev *event.Event) {
	if len(l.events) == cap(l.events) && l.first > len(l.events)/2 {
		n := copy(l.events, l.events[l.first:])
		clear(l.events[n:])
		l.events, l.first = l.events[:n], 0
	}
	l.events = append(l.events, ev)
}

// pop returns the first event, or nil.
func (l *lane) pop() *event.Event {
	if l.first == len(l.events) {
		return nil
	}
	ev := l.events[l.first]
	l.events[l.first] = nil
	if l.first++; l.first == len(l.events) {
		l.events, l.first = l.events[:0], 0
	}
	return ev
}

// drop forgets the events, and returns their number.
func (l *lane) drop() int {
	n := len(l.events) - l.first
	l.events, l.first = nil, 0
	return n
}

// maxIdle is how many workers wait for lanes. New ones cost more: their stacks grow first.
const maxIdle = 8

// workers run the lanes that have events. As long as a lane waits, a worker is on its way
// that no handler holds up: so a handler that blocks delays its own session and
// subscription only. A worker that finishes a lane takes the next one, and waits when there
// is none, or ends if enough others wait.
type workers struct {
	wait sync.WaitGroup

	mu          sync.Mutex
	first, last *lane
	coming      int // workers that were started or woken and have not taken a lane yet
	idle        int // those that wait
	wake        chan struct{}
	ended       bool
}

// run queues lanes, which are linked from first to last.
func (w *workers) run(first, last *lane) {
	w.mu.Lock()
	if w.first == nil {
		w.first = first
	} else {
		w.last.next = first
	}
	w.last = last
	w.release()
}

// release releases the mutex, and calls a worker if a lane waits and none is on its way.
func (w *workers) release() {
	call := w.first != nil && w.coming == 0
	start := call && w.idle == 0
	switch {
	case start:
		w.wait.Add(1)
	case call:
		w.idle--
		w.wake <- struct{}{} // which has room for all of them
	}
	if call {
		w.coming++
	}
	w.mu.Unlock()
	if start {
		go w.work()
	}
}

func (w *workers) work() {
	defer w.wait.Done()
	for called := true; called; _, called = <-w.wake {
		w.mu.Lock()
		w.coming--
		for w.first != nil {
			l := w.first
			if w.first = l.next; w.first == nil {
				w.last = nil
			}
			l.next = nil
			w.release()
			l.sub.drain(l)
			w.mu.Lock()
		}
		if w.ended || w.idle == maxIdle {
			w.mu.Unlock()
			return
		}
		w.idle++
		w.mu.Unlock()
	}
}

// end ends the workers that wait, and the others once no lane waits.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended, w.idle = true, 0
	close(w.wake)
}
