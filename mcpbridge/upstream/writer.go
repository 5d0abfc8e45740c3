package upstream

import (
	"errors"
	"fmt"
	"os"
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

// lineWriter writes messages without ever blocking its callers. It writes at once as much as
// the pipe takes; a goroutine that lives while there is a backlog writes the rest, in as few
// writes as possible. It copies its input: a server could answer a message that it has not read
// yet, and the memory of the message would be reused while it is still being sent.
type lineWriter struct {
	f   *os.File
	raw syscall.RawConn

	mu      sync.Mutex
	put     func(fd uintptr) bool // writes now, once
	now     []byte
	wrote   int
	failed  error
	backlog []*bufpool.Buffer
	small   int // bytes in it of small messages, and of large ones
	large   int
	running bool
	dead    error
	idle    sync.WaitGroup
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
	msg = jsonrpc.Line(msg)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		return notSent(w.dead)
	}
	if w.running {
		waits := w.large
		if len(msg) <= intake.Small {
			waits = w.small
		}
		if waits > 0 && waits+len(msg) > maxBacklog {
			return fmt.Errorf("%w: %d MiB are waiting to be written", errNotReading, (w.small+w.large)>>20)
		}
		w.queue(msg)
		return nil
	}
	line := append(msg, '\n')
	n, err := w.try(line)
	if err != nil {
		w.dead = err
		if n == 0 {
			return notSent(err)
		}
		return err
	}
	if n < len(line) {
		w.queue(line[n : len(line)-1])
		w.running = true
		w.idle.Go(w.drain)
	}
	return nil
}

// queue adds msg and a line break to the backlog, to the last batch if it has
// room.
func (w *lineWriter) queue(msg []byte) {
	need := len(msg) + 1
	*w.counter(need) += need
	if n := len(w.backlog); n > 0 {
		if last := w.backlog[n-1]; cap(last.B) <= batchSize && cap(last.B)-len(last.B) >= need {
			last.B = append(append(last.B, msg...), '\n')
			return
		}
	}
	b := bufpool.Get(max(need, batchSize))
	b.B = append(append(b.B, msg...), '\n')
	w.backlog = append(w.backlog, b)
}

// counter returns the count that a batch of n bytes belongs to. A large message is a
// batch by itself.
func (w *lineWriter) counter(n int) *int {
	if n > intake.Small {
		return &w.large
	}
	return &w.small
}

// try writes as much as the pipe takes now; mu is held.
func (w *lineWriter) try(b []byte) (int, error) {
	w.now, w.wrote, w.failed = b, 0, nil
	err := w.raw.Write(w.put)
	w.now = nil
	if err == nil {
		err = w.failed
	}
	return w.wrote, err
}

// once is [lineWriter.put], which a call of a method does not allocate.
func (w *lineWriter) once(fd uintptr) bool {
	for w.wrote < len(w.now) {
		n, err := syscall.Write(int(fd), w.now[w.wrote:]) //nolint:gosec // a descriptor fits
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
		out := w.backlog[0]
		w.backlog[0] = nil
		w.backlog = w.backlog[1:]
		*w.counter(len(out.B)) -= len(out.B)
		w.mu.Unlock()
		_, err := w.f.Write(out.B)
		out.Release()
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
