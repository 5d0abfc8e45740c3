// Package linelog keeps the last lines of a source, bounded, with the time of each,
// for later readers and for followers.
package linelog

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/worded"
)

// Bounds of a ring.
const (
	maxLine  = 2 << 10   // bytes of a line; the rest is cut off
	maxBytes = 256 << 10 // of all lines
	maxLines = 2000
)

// Line is one line. Its text is untrusted and unmodified.
type Line struct {
	ID     int64     `json:"id"`
	Time   time.Time `json:"time"`
	Stream string    `json:"stream" doc:"stderr, log (what the server sent as a log message), yaya (what yaya did with it)"`
	Level  string    `json:"level,omitempty" doc:"of a log message"`
	Text   string    `json:"text"`
}

// Ring keeps lines. The zero ring is ready, its methods are safe for concurrent use,
// and none of them waits.
type Ring struct {
	mu    sync.Mutex
	lines []Line
	size  int
	last  int64
	news  chan struct{}
}

// Add adds a line.
func (r *Ring) Add(stream, level, text string) {
	text = cut.Text(strings.TrimRight(text, "\r\n"), maxLine)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.lines = append(r.lines, Line{r.last, time.Now().UTC(), stream, level, strings.Clone(text)})
	r.size += len(text)
	gone := 0
	for r.size > maxBytes || len(r.lines)-gone > maxLines {
		r.size -= len(r.lines[gone].Text)
		r.lines[gone] = Line{}
		gone++
	}
	r.lines = r.lines[gone:]
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// After returns the lines that came after the one with that id, at most the last n of
// them; a negative id is the beginning. If lines among those were dropped because later ones
// needed their room, a line before the others says how many.
func (r *Ring) After(id int64, n int) []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	id = max(id, 0)
	from := len(r.lines) - int(min(int64(len(r.lines)), max(r.last-id, 0)))
	out := []Line{}
	if gone := r.last - int64(len(r.lines)) - id; gone > 0 && len(r.lines) <= n {
		out = append(out, Line{r.last - int64(len(r.lines)), r.lines[0].Time, "yaya", "", dropped(gone)})
	}
	return append(out, r.lines[max(from, len(r.lines)-n):]...)
}

// dropped says that lines are missing.
func dropped(n int64) string {
	lines := worded.Count(n, "line that came before this was dropped", "lines that came before this were dropped")
	return fmt.Sprintf("%s: yaya keeps the last %d lines of a server, and %d KiB", lines, maxLines, maxBytes>>10)
}

// News returns a channel that is closed when the next line comes.
func (r *Ring) News() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.news == nil {
		r.news = make(chan struct{})
	}
	return r.news
}

// Splitter splits a process's output stream into lines. It is for one goroutine.
type Splitter struct {
	Line func(line string) // is called with each line
	rest []byte
	over bool // the line is longer than is kept: its rest is skipped
}

// Write accepts output; an incomplete line waits for its end.
func (s *Splitter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := maxLine + 1 - len(s.rest); !s.over {
			s.rest = append(s.rest, line[:min(len(line), room)]...)
			s.over = len(line) > room
		}
		if !whole {
			break
		}
		s.End()
		p = rest
	}
	return n, nil
}

// End emits the rest as a line.
func (s *Splitter) End() {
	if text := strings.TrimRight(string(s.rest), "\r \t"); text != "" {
		s.Line(text)
	}
	s.rest, s.over = s.rest[:0], false
}
