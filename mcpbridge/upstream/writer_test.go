package upstream

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/intake"
)

// A single message that is larger than the backlog may be goes out, and those behind it
// do; a second one is an error of its own call.
func TestWriterTakesAMessageAboveItsBacklog(t *testing.T) {
	r, f, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := newLineWriter(f)
	big := make([]byte, maxBacklog+1000)
	for i := range big {
		big[i] = 'x'
	}
	want := 0
	for name, step := range []struct {
		msg []byte
		err error
	}{{big[:intake.Small], nil}, {big, nil}, {[]byte("small"), nil}, {big, errNotReading}, {[]byte("small"), nil}} {
		if err := w.write(step.msg); !errors.Is(err, step.err) || err != nil && !strings.Contains(err.Error(), "MiB are waiting to be written") {
			t.Errorf("message %d of %d bytes: %v, want %v", name, len(step.msg), err, step.err)
		} else if err == nil {
			want += len(step.msg) + 1
		}
	}
	read := make(chan int64)
	go func() {
		n, _ := io.Copy(io.Discard, r)
		read <- n
	}()
	w.idle.Wait()
	if w.small != 0 || w.large != 0 {
		t.Errorf("%d and %d bytes are counted when all are written, want none", w.small, w.large)
	}
	w.close()
	if got := <-read; got != int64(want) {
		t.Errorf("the server got %d bytes, want %d", got, want)
	}
}
