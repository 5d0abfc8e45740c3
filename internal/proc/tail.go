package proc

import (
	"bytes"
	"io"
	"sync"
)

// tail keeps the last bytes of a stream and drops the rest.
type tail struct {
	also io.Writer // gets all of it; optional

	mu  sync.Mutex
	buf []byte
	cut bool // there was more before
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
			t.buf, t.cut = append(t.buf[:0], t.buf[len(t.buf)-stderrTail:]...), true
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

// String returns what is kept. The line that it begins in the middle of is left out, if
// another follows: a part of a line is not told for what it is.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := max(0, len(t.buf)-stderrTail)
	kept := t.buf[from:]
	if i := bytes.IndexByte(kept, '\n'); (t.cut || from > 0) && i >= 0 && i+1 < len(kept) {
		kept = kept[i+1:]
	}
	return string(kept)
}
