package wire

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/bufpool"
)

// Limits of a connection's queue.
const (
	maxQueued     = 256
	maxQueuedSize = 1 << 20  // bytes
	batchSize     = 32 << 10 // bytes of one write
	// batchDelay is how long volatile messages wait for others: a system call for
	// each is the cost of delivering them.
	batchDelay = 25 * time.Millisecond
	lastTime   = time.Second
)

// writeTimeout is how long a client has to take what is written; a variable, so that tests can be slow.
var writeTimeout = 10 * time.Second

// errSlow says that a client does not read what it gets.
var errSlow = errors.New("the client does not keep up")

// queue holds the frames that a connection still has to write. One goroutine writes while there
// is something, and there is none while there is nothing.
type queue struct {
	conn  net.Conn
	ended func(error) // called once, when nothing more can be written

	mu      sync.Mutex
	frames  [][]byte
	spare   [][]byte
	size    int
	writing bool
	waiting bool      // batch has been set
	last    []byte    // is written as the last, behind which the connection is closed
	drop    bool      // what is queued is not written before
	until   time.Time // what is under way has to be written, and last; at least lastTime
	closed  bool
	batch   *time.Timer
	room    chan struct{} // closed when there is room again; nil if nobody waits
	idle    sync.WaitGroup
}

// push appends a frame; it never waits. soon says that it need not be written at
// once. When the queue is full, it reports errSlow: the connection has to end.
func (q *queue) push(frame []byte, soon bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.last != nil {
		return nil
	}
	if len(q.frames) >= maxQueued || q.size+len(frame) > maxQueuedSize {
		return errSlow
	}
	q.add(frame, soon)
	return nil
}

// backlog returns how many bytes are queued.
func (q *queue) backlog() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size
}

// add appends a frame and sees to it that somebody writes it; mu is held.
func (q *queue) add(frame []byte, soon bool) {
	q.frames = append(q.frames, frame)
	q.size += len(frame)
	switch {
	case q.writing || (soon && q.waiting):
	case soon:
		q.waiting = true
		if q.batch == nil {
			q.batch = time.AfterFunc(batchDelay, q.due)
		} else {
			q.batch.Reset(batchDelay)
		}
	default:
		q.start()
	}
}

// start begins to write; mu is held.
func (q *queue) start() {
	q.writing = true
	q.idle.Add(1)
	go q.write()
}

// due is when volatile messages have waited long enough.
func (q *queue) due() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = false
	if !q.writing && !q.closed && len(q.frames) > 0 {
		q.start()
	}
}

// wait pushes a frame when there is room, so that what is caught up with goes at
// the client's pace and leaves half of the queue to what is new.
func (q *queue) wait(frame []byte, done <-chan struct{}) error {
	for {
		q.mu.Lock()
		if q.closed || q.last != nil {
			q.mu.Unlock()
			return net.ErrClosed
		}
		if len(q.frames) < maxQueued/2 && (q.size == 0 || q.size+len(frame) <= maxQueuedSize/2) {
			q.add(frame, false)
			q.mu.Unlock()
			return nil
		}
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-done:
			return net.ErrClosed
		}
	}
}

// finish drops what is queued, writes one last frame, and ends the connection. A
// write that is under way and the last frame have grace to end.
func (q *queue) finish(last []byte, grace time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.drop {
		return
	}
	q.last, q.drop, q.until = last, true, time.Now().Add(grace)
	clear(q.frames)
	q.frames, q.size = q.frames[:0], 0
	if !q.writing {
		q.start()
		return
	}
	_ = q.conn.SetWriteDeadline(q.until) // it fails if the connection is gone
}

// flush is finish, but what is queued is written first.
func (q *queue) flush(last []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.last != nil {
		return
	}
	q.last = last
	if !q.writing {
		q.start()
	}
}

// write writes until there is nothing left, several frames at a time. Each write
// holds whole frames, so that what gorilla writes by itself can only stand between
// two of them.
func (q *queue) write() {
	defer q.idle.Done()
	for {
		q.mu.Lock()
		if len(q.frames) == 0 {
			last := q.last
			if last == nil || q.closed {
				q.writing = false
				q.mu.Unlock()
				return
			}
			q.closed = true
			until := q.until
			q.mu.Unlock()
			if least := time.Now().Add(lastTime); until.Before(least) {
				until = least
			}
			_ = q.conn.SetWriteDeadline(until)
			_, err := q.conn.Write(last)
			q.ended(err)
			return
		}
		frames := q.frames
		q.frames, q.spare, q.size = q.spare[:0], nil, 0
		if q.room != nil {
			close(q.room)
			q.room = nil
		}
		q.mu.Unlock()
		err := q.all(frames)
		clear(frames)
		q.mu.Lock()
		q.spare = frames[:0]
		if cap(q.spare) > 32 {
			q.spare = nil // an idle connection keeps little
		}
		if err != nil {
			q.closed, q.writing = true, false
			q.mu.Unlock()
			q.ended(err)
			return
		}
		q.mu.Unlock()
	}
}

func (q *queue) all(frames [][]byte) error {
	var buf *bufpool.Buffer
	defer func() { buf.Release() }()
	for len(frames) > 0 {
		if drop, err := q.timely(); drop || err != nil {
			return err
		}
		out := frames[0]
		frames = frames[1:]
		if len(frames) > 0 && len(out)+len(frames[0]) <= batchSize {
			if buf == nil {
				buf = bufpool.Get(batchSize)
			}
			buf.B = append(buf.B[:0], out...)
			for len(frames) > 0 && len(buf.B)+len(frames[0]) <= batchSize {
				buf.B = append(buf.B, frames[0]...)
				frames = frames[1:]
			}
			out = buf.B
		}
		if _, err := q.conn.Write(out); err != nil {
			return err
		}
	}
	return nil
}

// timely gives the next write its time; drop says that there is to be none.
func (q *queue) timely() (drop bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drop {
		return true, nil
	}
	return false, q.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// grace waits for the last frame, if there is one.
func (q *queue) grace() {
	q.mu.Lock()
	ending := q.last != nil // also while the writer, which has closed the queue, writes it
	q.mu.Unlock()
	if ending {
		q.idle.Wait()
	}
}

// stop waits for the writer; the connection has been closed.
func (q *queue) stop() {
	q.mu.Lock()
	q.closed = true
	if q.batch != nil {
		q.batch.Stop()
	}
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
	q.mu.Unlock()
	q.idle.Wait()
}
