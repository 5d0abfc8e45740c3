// Package sse reads and writes server-sent events (WHATWG HTML §9.2).
//
// The reader bounds every event and never buffers more than that bound; the
// encoder cannot be made to emit a field that its caller did not ask for,
// whatever line breaks the data holds (HT-10). Neither starts a goroutine, and
// a value of either is for one goroutine at a time.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ErrTooLarge says that an event or a line passed the reader's bound.
var ErrTooLarge = errors.New("sse: event exceeds the size limit")

// Event is one dispatched event. Data is owned by the receiver.
type Event struct {
	Name string // "" means "message"
	ID   string
	Data []byte
}

// Reader reads events from a stream.
type Reader struct {
	r     *bufio.Reader
	limit int
	id    string
	retry time.Duration
	begun bool

	afterCR bool // the last line ended in CR, so a LF that follows belongs to it
}

// NewReader reads from r; an event of more than limit bytes ends the stream
// with [ErrTooLarge].
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 4096), limit: limit}
}

// Next returns the next event that carries data. An event that the end of the
// stream cuts off is dropped, as the standard demands, and reported as
// [io.EOF].
func (r *Reader) Next() (Event, error) {
	var (
		ev    Event
		data  []byte
		has   bool
		total int
	)
	for {
		line, err := r.line(r.limit - total)
		if err != nil {
			return Event{}, err
		}
		total += len(line)
		if len(line) == 0 {
			total = 0
			if !has {
				ev = Event{}
				continue
			}
			ev.ID, ev.Data = r.id, data
			return ev, nil
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if has {
				data = append(data, '\n')
			}
			data = append(data, value...)
			has = true
		case "event":
			ev.Name = string(value)
		case "id":
			if !bytes.ContainsRune(value, 0) {
				r.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// LastID returns the id of the last event that had one.
func (r *Reader) LastID() string { return r.id }

// Retry returns the time that the stream wants to pass before it is opened
// again; 0 when it did not say.
func (r *Reader) Retry() time.Duration { return r.retry }

// line returns the next line without its end, which may be LF, CRLF or CR. The
// bytes are valid until the next call.
func (r *Reader) line(limit int) ([]byte, error) {
	if !r.begun {
		r.begun = true
		if bom, _ := r.r.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
			_, _ = r.r.Discard(3)
		}
	}
	var long []byte
	for {
		if _, err := r.r.Peek(1); err != nil {
			if err == io.EOF && len(long) > 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, err
		}
		buf, _ := r.r.Peek(r.r.Buffered())
		if r.afterCR {
			r.afterCR = false
			if buf[0] == '\n' {
				_, _ = r.r.Discard(1)
				continue
			}
		}
		i := bytes.IndexAny(buf, "\r\n")
		if i < 0 {
			if len(long)+len(buf) > limit {
				return nil, ErrTooLarge
			}
			long = append(long, buf...)
			_, _ = r.r.Discard(len(buf))
			continue
		}
		if len(long)+i > limit {
			return nil, ErrTooLarge
		}
		end := buf[i]
		var out []byte
		if long == nil {
			out = append(out, buf[:i]...)
		} else {
			out = append(long, buf[:i]...)
		}
		_, _ = r.r.Discard(i + 1)
		// The LF of a CRLF is skipped when the next line is read: waiting for it
		// here would hold back an event that is complete.
		r.afterCR = end == '\r'
		return out, nil
	}
}

// Append appends one event to dst. Name and id must hold no line break and no
// NUL; data may hold anything and arrives with line breaks as LF.
func Append(dst []byte, ev Event) ([]byte, error) {
	for _, s := range []string{ev.Name, ev.ID} {
		if strings.ContainsAny(s, "\r\n\x00") {
			return dst, fmt.Errorf("sse: %q cannot be an event name or id", s)
		}
	}
	if ev.Name != "" {
		dst = append(append(append(dst, "event: "...), ev.Name...), '\n')
	}
	if ev.ID != "" {
		dst = append(append(append(dst, "id: "...), ev.ID...), '\n')
	}
	if bytes.IndexByte(ev.Data, '\n') < 0 && bytes.IndexByte(ev.Data, '\r') < 0 {
		dst = append(append(append(dst, "data: "...), ev.Data...), '\n')
		return append(dst, '\n'), nil
	}
	normal := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(ev.Data))
	for line := range strings.SplitSeq(normal, "\n") {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return append(dst, '\n'), nil
}
