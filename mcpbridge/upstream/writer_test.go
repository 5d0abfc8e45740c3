package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/bufpool"
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

// Messages of every size that come at the same time arrive whole, those of one caller in their
// order, and memory that the writer took over is given back once.
func TestWriterKeepsMessagesWhole(t *testing.T) {
	r, f, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := newLineWriter(f)
	read := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(r)
		read <- all
	}()
	const callers, each = 8, 90
	var given, back atomic.Int32
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				size := 10
				if j%7 == 0 {
					size = batchSize + 50_000
				}
				buf := bufpool.Get(size + 100)
				buf.OnRelease(func() { back.Add(1) })
				buf.B = fmt.Appendf(buf.B, "<%d %d %s>", i, j, bytes.Repeat([]byte{'x'}, size))
				taken, err := w.writeFrom(buf.B, buf)
				if err != nil {
					t.Errorf("writeFrom = %v, want no error", err)
				}
				if given.Add(1); !taken { // its memory is used again at once
					clear(buf.B)
					buf.Release()
				}
			}
		})
	}
	wg.Wait()
	w.idle.Wait()
	w.close()
	lines := strings.Split(strings.TrimSuffix(string(<-read), "\n"), "\n")
	if len(lines) != callers*each {
		t.Errorf("got %d lines, want %d", len(lines), callers*each)
	}
	var next [callers]int
	for _, line := range lines {
		var i, j int
		_, err := fmt.Sscanf(line[:min(len(line), 12)], "<%d %d x", &i, &j)
		if err != nil || j != next[i] || strings.Count(line, "<") != 1 || !strings.HasSuffix(line, "x>") {
			t.Fatalf("line %.60s…: %v; want message %d of caller %d, whole", line, err, next[i], i)
		}
		next[i]++
	}
	if back.Load() != given.Load() {
		t.Errorf("%d buffers were given back, want %d", back.Load(), given.Load())
	}
	if w.small != 0 || w.large != 0 {
		t.Errorf("%d and %d bytes are counted when all are written, want none", w.small, w.large)
	}
}
