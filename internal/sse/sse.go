// Package sse reads and writes server-sent events (WHATWG HTML §9.2).
//
// The reader bounds every event and never buffers more than that bound; the
// encoder cannot be made to emit a field that its caller did not ask for,
// whatever line breaks the data holds. Neither starts a goroutine, and
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
	// Grow, if set, returns data with room for n more bytes, in other memory if need
	// be: the data of an event lies in what it returned last. Its error ends the event.
	Grow func(data []byte, n int) ([]byte, error)
	// Spill, if set, takes the data of an event of more than Most bytes, in order, while
	// it comes; the event itself has none then. It must not keep what it is given. Its
	// error ends the event.
	Spill func(data []byte) error
	Most  int

	r     *bufio.Reader
	limit int
	id    string
	retry time.Duration
	begun bool

	afterCR bool // the last line ended in CR, so a LF that follows belongs to it
	within  bool // an event has begun whose rest is to be skipped
}

// assembly is an event that is being read.
type assembly struct {
	data    []byte // of the event from start on, and the line that is being read
	start   int
	has     bool // there is data
	spilled bool // some of it has gone to Spill
	passing bool // the rest of the line goes there, too
}

// NewReader reads from r. An event of more than limit bytes is [ErrTooLarge]; what is
// left of it is skipped by [Reader.Skip].
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 4096), limit: limit}
}

// Next returns the next event that carries data. An event that the end of the
// stream cuts off is dropped, as the standard demands, and reported as
// [io.EOF]. With [ErrTooLarge] comes the start of its data, unless that was spilled.
func (r *Reader) Next() (Event, error) {
	var (
		ev    Event
		e     assembly
		total int
	)
	for {
		at := len(e.data)
		n, err := r.line(&e, r.limit-total)
		if err != nil {
			if !e.has {
				e.data = bytes.TrimPrefix(bytes.TrimPrefix(e.data, []byte("data:")), []byte{' '})
			}
			return Event{Data: e.data[min(e.start, len(e.data)):]}, err
		}
		total += n
		if e.passing {
			e.passing = false
			continue
		}
		at = min(at, len(e.data)-n) // what came before may have been spilled
		line := e.data[at:]
		if len(line) == 0 {
			total = 0
			if !e.has {
				ev = Event{}
				continue
			}
			ev.ID, ev.Data = r.id, e.data[e.start:]
			if e.spilled {
				err, ev.Data = r.Spill(ev.Data), nil
			}
			return ev, err
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if !e.has { // it stays where it was read
				e.has, e.start = true, len(e.data)-len(value)
				continue
			}
			// The name of the field is as long as a line break, and longer.
			e.data = e.data[:at+1+copy(e.data[at+1:], value)]
			e.data[at] = '\n'
			continue
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
		e.data = e.data[:at]
	}
}

// LastID returns the id of the last event that had one.
func (r *Reader) LastID() string { return r.id }

// Retry returns the time that the stream wants to pass before it is opened
// again; 0 when it did not say.
func (r *Reader) Retry() time.Duration { return r.retry }

// line appends the next line to the data without its end, which may be LF, CRLF or CR,
// and returns its length.
func (r *Reader) line(e *assembly, limit int) (n int, err error) {
	if !r.begun {
		r.begun = true
		if bom, _ := r.r.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
			_, _ = r.r.Discard(3)
		}
	}
	for {
		buf, err := r.peek()
		if err != nil {
			if errors.Is(err, io.EOF) && n > 0 {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
		i := bytes.IndexAny(buf, "\r\n")
		piece := buf
		if i >= 0 {
			piece = buf[:i]
		}
		if n+len(piece) > limit {
			r.within = true
			return n, ErrTooLarge
		}
		if err := r.add(e, piece, n); err != nil {
			r.within = true
			return n, err
		}
		n += len(piece)
		if i < 0 {
			_, _ = r.r.Discard(len(buf))
			continue
		}
		// The LF of a CRLF is skipped when the next line is read: waiting for it
		// here would hold back an event that is complete.
		r.afterCR = buf[i] == '\r'
		_, _ = r.r.Discard(i + 1)
		return n, nil
	}
}

// add takes a piece of a line of which n bytes came before.
func (r *Reader) add(e *assembly, piece []byte, n int) (err error) {
	if e.passing {
		return r.Spill(piece)
	}
	if len(e.data)+len(piece) > cap(e.data) && r.Grow != nil {
		if e.data, err = r.Grow(e.data, len(piece)); err != nil {
			return err
		}
	}
	e.data = append(e.data, piece...)
	if r.Spill == nil || len(e.data) <= r.Most {
		return nil
	}
	line := e.data[len(e.data)-n-len(piece):]
	if e.has {
		if err = r.Spill(e.data[e.start : len(e.data)-len(line)]); err != nil {
			return err
		}
		e.data, e.start, e.spilled = e.data[:copy(e.data, line)], 0, true
		line = e.data
	}
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if isData && len(value) > 0 { // else it is not known whether a space follows
		if e.has {
			err = r.Spill([]byte{'\n'})
		}
		if err == nil {
			err = r.Spill(bytes.TrimPrefix(value, []byte{' '}))
		}
		e.data, e.start, e.has, e.spilled, e.passing = e.data[:0], 0, true, true, true
		return err
	}
	if len(e.data) > r.Most {
		return ErrTooLarge // nothing but data is so long
	}
	return nil
}

// peek returns what is there to be read, one byte at least.
func (r *Reader) peek() ([]byte, error) {
	for {
		if _, err := r.r.Peek(1); err != nil {
			return nil, err
		}
		buf, _ := r.r.Peek(r.r.Buffered())
		if !r.afterCR {
			return buf, nil
		}
		r.afterCR = false
		if buf[0] != '\n' {
			return buf, nil
		}
		_, _ = r.r.Discard(1)
	}
}

// Skip reads what is left of the event that Next could not return, and returns the
// last n bytes of its data. It does nothing if the event is gone.
func (r *Reader) Skip(n int) (tail []byte, err error) {
	if !r.within {
		return nil, nil
	}
	line := 1 // bytes of the line so far; it has begun
	for {
		buf, err := r.peek()
		if err != nil {
			return tail, err
		}
		i := bytes.IndexAny(buf, "\r\n")
		if i == 0 && line == 0 {
			r.within, r.afterCR = false, buf[0] == '\r'
			_, _ = r.r.Discard(1)
			return tail, nil
		}
		piece := buf
		if i >= 0 {
			piece, line = buf[:i], 0
			r.afterCR = buf[i] == '\r'
			i++
		} else {
			line += len(piece)
			i = len(buf)
		}
		if tail = append(tail, piece...); len(tail) > 2*n {
			tail = tail[:copy(tail, tail[len(tail)-n:])]
		}
		_, _ = r.r.Discard(i)
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
