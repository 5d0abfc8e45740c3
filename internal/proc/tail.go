package proc

import (
	"io"
	"sync"
)

// tail keeps the last bytes of a stream and drops the rest (UP-13).
type tail struct {
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
		if err != nil {
			return total, err
		}
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-stderrTail):])
}
