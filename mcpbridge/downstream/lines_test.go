package downstream

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// slowPipe lets each write wait until the test says so, and counts them.
type slowPipe struct {
	begun, end chan struct{}
	got        bytes.Buffer
	writes     int
	err        error
}

func (p *slowPipe) Write(b []byte) (int, error) {
	if p.begun != nil {
		p.begun <- struct{}{}
		<-p.end
	}
	p.writes++
	if p.err != nil {
		return 0, p.err
	}
	return p.got.Write(b)
}

// Lines that come during a write go out with one write, in their order; only those wait for which
// there is no room.
func TestLinesGoOutTogether(t *testing.T) {
	p := &slowPipe{begun: make(chan struct{}), end: make(chan struct{})}
	l := newLines(p, func() { t.Error("the pipe is broken") })
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.write([]byte("first")); err != nil {
			t.Errorf("write = %v, want no error", err)
		}
	})
	<-p.begun
	want := "first\n"
	for i := range 50 {
		if err := l.write(fmt.Appendf(nil, "line %d", i)); err != nil {
			t.Errorf("write = %v, want no error", err)
		}
		want += fmt.Sprintf("line %d\n", i)
	}
	p.end <- struct{}{}
	<-p.begun
	large := strings.Repeat("x", together)
	wg.Go(func() { // it waits, and goes out by itself
		if err := l.writeParts(parts{[]byte("{"), []byte(large), []byte("}")}); err != nil {
			t.Errorf("writeParts = %v, want no error", err)
		}
	})
	p.end <- struct{}{}
	for range 3 {
		<-p.begun
		p.end <- struct{}{}
	}
	wg.Wait()
	want += "{" + large + "}\n"
	if got := p.got.String(); got != want || p.writes != 5 {
		t.Errorf("got %d bytes in %d writes, want %d in 5, and the lines in their order", len(got), p.writes, len(want))
	}
}

func TestLinesAreWhole(t *testing.T) {
	p := new(slowPipe)
	l := newLines(p, func() {})
	var wg sync.WaitGroup
	large := strings.Repeat("y", together)
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				msg := parts{fmt.Appendf(nil, "<%d ", i), fmt.Appendf(nil, "%d", j), []byte(">")}
				if j%10 == 0 {
					msg[1] = []byte(large)
				}
				if j%10 == 5 {
					msg = append(msg, []byte(large))
				}
				if err := l.writeParts(msg); err != nil {
					t.Errorf("writeParts = %v, want no error", err)
				}
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSuffix(p.got.String(), "\n"), "\n")
	if len(lines) != 800 {
		t.Errorf("got %d lines, want 800", len(lines))
	}
	for _, line := range lines {
		if strings.Count(line, "<") != 1 || strings.Count(line, ">") != 1 || line[0] != '<' {
			t.Errorf("a line is not whole: %.100s", line)
		}
	}
}

// A broken pipe is told once, and later lines get its error.
func TestBrokenLines(t *testing.T) {
	broken, why := 0, errors.New("why")
	l := newLines(&slowPipe{err: why}, func() { broken++ })
	for range 3 {
		if err := l.write([]byte("x")); !errors.Is(err, why) {
			t.Errorf("write = %v, want %v", err, why)
		}
	}
	if err := l.writeParts(parts{make([]byte, together)}); !errors.Is(err, why) {
		t.Errorf("writeParts = %v, want %v", err, why)
	}
	if broken != 1 {
		t.Errorf("told %d times, want once", broken)
	}
}
