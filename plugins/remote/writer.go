package remote

import (
	"errors"
	"os"
	"sync"
)

var errNotReading = errors.New("the plugin does not read its input")

// writer writes lines without making its callers wait. A goroutine that lives while there is
// something to write writes what has gathered at once.
type writer struct {
	f *os.File

	mu      sync.Mutex
	backlog []byte
	spare   []byte
	running bool
	dead    error
	idle    sync.WaitGroup
}

// write queues a line.
func (w *writer) write(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.dead != nil:
		return w.dead
	case len(w.backlog)+len(line) > maxBacklog:
		return errNotReading
	}
	w.backlog = append(append(w.backlog, line...), '\n')
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
