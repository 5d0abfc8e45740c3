package upstream

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Bounds of the backlog of messages to a server.
const (
	// maxBacklog bounds the bytes in the backlog, separately for small and for large messages;
	// the call that exceeds it fails. One large message may wait regardless of its size:
	// another setting limits messages.
	maxBacklog = 64 << 20
	batchSize  = 64 << 10 // small messages go out together up to this size
)

// flushes is how many batches of others a caller writes at most after its own message.
const flushes = 4

// lineWriter writes messages without ever blocking its callers. It writes at once as much as
// the pipe takes. Messages that come during a write go out with the next one, which the same caller
// makes; a goroutine that lives while there is a backlog writes the rest. The writer
// copies what waits, or takes over its memory: a server could answer a message that it has not
// read yet, and the memory of the message would be reused while it is still being sent.
type lineWriter struct {
	f   *os.File
	raw syscall.RawConn

	mu      sync.Mutex
	busy    bool // somebody writes, and owns the next four fields
	put     func(fd uintptr) bool
	now     []byte
	wrote   int
	failed  error
	backlog []unsent
	small   int // bytes in it of small messages, and of large ones
	large   int
	running bool // drain runs
	dead    error
	idle    sync.WaitGroup
}

// unsent is a part of the backlog: a large message, or a batch of small ones.
type unsent struct {
	b     []byte
	buf   *bufpool.Buffer // holds the bytes
	count *int            // that they are in
}

func newLineWriter(f *os.File) *lineWriter {
	w := &lineWriter{f: f}
	w.raw, w.dead = f.SyscallConn()
	w.put = w.once
	return w
}

// write sends msg as one line. An error means that none of it was sent,
// except where the connection is lost in the middle.
func (w *lineWriter) write(msg []byte) error {
	_, err := w.writeFrom(msg, nil)
	return err
}

// writeFrom is write for a message in a buffer. It reports whether it has taken the buffer over;
// otherwise the caller may use it again.
func (w *lineWriter) writeFrom(msg []byte, own *bufpool.Buffer) (taken bool, _ error) {
	msg = jsonrpc.Line(msg)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		return false, notSent(w.dead)
	}
	if w.running || w.busy {
		waits := w.large
		if len(msg) <= intake.Small {
			waits = w.small
		}
		if waits > 0 && waits+len(msg) > maxBacklog {
			return false, fmt.Errorf("%w: %d MiB are waiting to be written", errNotReading, (w.small+w.large)>>20)
		}
		return w.queue(msg, own), nil
	}
	line := append(msg, '\n')
	n, err := w.try(line)
	switch {
	case err != nil && n == 0:
		return false, notSent(err)
	case err != nil:
		return false, err
	case n < len(line):
		taken = w.front(line[n:], own)
	}
	for range flushes {
		if len(w.backlog) == 0 || w.dead != nil || n < len(line) {
			break
		}
		out := w.shift()
		line = out.b
		n, _ = w.try(line) // if the connection is over, those whose messages these are learn that
		if *out.count -= n; n == len(line) {
			out.buf.Release()
			continue
		}
		out.b = line[n:]
		w.backlog = slices.Insert(w.backlog, 0, out)
	}
	if len(w.backlog) > 0 && w.dead == nil {
		w.running = true
		w.idle.Go(w.drain)
	}
	return taken, nil
}

// queue adds msg and a line break to the backlog, to the last batch if it has room. It reports
// whether it has taken the buffer over.
func (w *lineWriter) queue(msg []byte, own *bufpool.Buffer) (taken bool) {
	need := len(msg) + 1
	*w.counter(need) += need
	if need > batchSize && own != nil {
		w.backlog = append(w.backlog, unsent{append(msg, '\n'), own, w.counter(need)})
		return true
	}
	if n := len(w.backlog); n > 0 {
		if last := &w.backlog[n-1]; cap(last.buf.B) <= batchSize && last.count == w.counter(need) && cap(last.b)-len(last.b) >= need {
			last.b = append(append(last.b, msg...), '\n')
			return false
		}
	}
	buf := bufpool.Get(max(need, batchSize))
	w.backlog = append(w.backlog, unsent{append(append(buf.B, msg...), '\n'), buf, w.counter(need)})
	return false
}

// front puts the rest of a message before the backlog.
func (w *lineWriter) front(rest []byte, own *bufpool.Buffer) (taken bool) {
	u := unsent{rest, own, w.counter(len(rest))}
	*u.count += len(rest)
	if taken = own != nil && len(rest) > batchSize; !taken {
		u.buf = bufpool.Get(len(rest))
		u.b = append(u.buf.B, rest...)
	}
	w.backlog = slices.Insert(w.backlog, 0, u)
	return taken
}

// shift takes the first part out of the backlog.
func (w *lineWriter) shift() unsent {
	out := w.backlog[0]
	w.backlog[0] = unsent{}
	w.backlog = w.backlog[1:]
	return out
}

// counter returns the count that a batch of n bytes belongs to. A large message is a
// batch by itself.
func (w *lineWriter) counter(n int) *int {
	if n > intake.Small {
		return &w.large
	}
	return &w.small
}

// try writes as much as the pipe takes now, without mu, which is held before and after.
func (w *lineWriter) try(b []byte) (int, error) {
	w.busy, w.now, w.wrote, w.failed = true, b, 0, nil
	w.mu.Unlock()
	err := w.raw.Write(w.put)
	w.mu.Lock()
	w.busy, w.now = false, nil
	if err == nil {
		err = w.failed
	}
	if err != nil {
		w.dead, w.backlog = err, nil
	}
	return w.wrote, err
}

// once is [lineWriter.put], which a call of a method does not allocate.
func (w *lineWriter) once(fd uintptr) bool {
	for w.wrote < len(w.now) {
		n, err := writeNow(fd, w.now[w.wrote:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return true
		case err != nil:
			w.failed = err
			return true
		}
		w.wrote += n
	}
	return true
}

func (w *lineWriter) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.backlog) > 0 && w.dead == nil {
		out := w.shift()
		*out.count -= len(out.b)
		w.mu.Unlock()
		_, err := w.f.Write(out.b)
		out.buf.Release()
		w.mu.Lock()
		if err != nil {
			w.dead = err
		}
	}
	w.backlog, w.small, w.large, w.running = nil, 0, 0, false
}

// close closes the writing side, which tells the server to exit, and waits for the goroutine.
func (w *lineWriter) close() {
	_ = w.f.Close()
	w.idle.Wait()
}
