package remote

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

func pipe(t *testing.T) (*writer, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe := newWriter(w)
	t.Cleanup(func() {
		_ = r.Close() // a test may have
		pipe.close()
	})
	return &pipe, r
}

// A program that does not read holds up nobody, and gets every line in its order.
func TestWriterKeepsOrder(t *testing.T) {
	const lines = 400
	w, r := pipe(t)
	line := func(n int) string { return fmt.Sprint(n, strings.Repeat("x", n*40)) } // 3 MB: a pipe has 64 KiB
	for n := range lines {
		if err := w.write([]byte(line(n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(r)
	for n := range lines {
		if !in.Scan() || in.Text() != line(n) {
			t.Fatalf("line %d is %.20q (%v), want %.20q", n, in.Text(), in.Err(), line(n))
		}
		if n%100 == 50 { // while the rest waits
			if err := w.write([]byte("late")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 {
		if !in.Scan() || in.Text() != "late" {
			t.Fatalf("the line is %.20q (%v), want the late one", in.Text(), in.Err())
		}
	}
}

// The lines that wait for a program are bounded.
func TestWriterIsBounded(t *testing.T) {
	w, _ := pipe(t)
	part := make([]byte, 1<<20)
	var err error
	for n := 0; n < 2*maxBacklog>>20 && err == nil; n++ {
		err = w.write(part)
	}
	if !errors.Is(err, errNotReading) {
		t.Errorf("what waits has no bound: %v", err)
	}
}

// That a program is gone is found out, and said to who writes next.
func TestWriterFindsOut(t *testing.T) {
	w, r := pipe(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a line to a program that is gone fails", func() bool { return w.write([]byte("x")) != nil })
}
