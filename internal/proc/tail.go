package proc

import (
	"io"
	"sync"
)

// tail keeps the last bytes of a stream and drops the rest (UP-13).
type tail struct {
	also io.Writer // gets all of it; optional

	mu  sync.Mutex
	buf []byte
}

// ReadFrom drains r to its end.
func (t *tail) ReadFrom(r io.Reader) (int64, error) {
	chunk := make([]byte, 4096)
	var total int64
	for {
		n, err := r.Read(chunk)
		total += int64(n)
		t.mu.Lock()
		t.buf = append(t.buf, chunk[:n]...)
		if len(t.buf) > 2*stderrTail {
			t.buf = append(t.buf[:0], t.buf[len(t.buf)-stderrTail:]...)
		}
		t.mu.Unlock()
		if t.also != nil && n > 0 {
			_, _ = t.also.Write(chunk[:n]) // in memory
		}
		if err != nil {
			if e, ok := t.also.(interface{ End() }); ok {
				e.End()
			}
			return total, err
		}
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-stderrTail):])
}
