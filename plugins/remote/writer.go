package remote

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

var errNotReading = errors.New("the plugin does not read its input")

// writer writes lines without making its callers wait. A line is written at once if the pipe has
// room for it; otherwise a goroutine that lives while there is something to write writes what has
// gathered.
type writer struct {
	f   *os.File
	raw syscall.RawConn // nil for none

	mu      sync.Mutex
	backlog []byte
	spare   []byte
	running bool
	dead    error
	idle    sync.WaitGroup
}

func newWriter(f *os.File) writer {
	raw, err := f.SyscallConn()
	if err != nil { // it is closed: writing says so
		raw = nil
	}
	return writer{f: f, raw: raw}
}

// write sends a line, which it may append to.
func (w *writer) write(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dead != nil:
		return w.dead
	case len(w.backlog)+len(line) > maxBacklog:
		return errNotReading
	}
	line = append(line, '\n')
	if !w.running && w.raw != nil {
		if line = line[writeNow(w.raw, line):]; len(line) == 0 {
			return nil
		}
	}
	w.backlog = append(w.backlog, line...)
	if !w.running {
		w.running = true
		w.idle.Go(w.drain)
	}
	return nil
}

func (w *writer) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.backlog) > 0 && w.dead == nil {
		out := w.backlog
		w.backlog, w.spare = w.spare[:0], nil
		w.mu.Unlock()
		_, err := w.f.Write(out)
		w.mu.Lock()
		if cap(out) <= 1<<20 {
			w.spare = out
		}
		w.dead = err
	}
	w.running = false
}

// close closes the pipe, which tells the program to exit, and waits for the goroutine.
func (w *writer) close() {
	_ = w.f.Close()
	w.idle.Wait()
}
