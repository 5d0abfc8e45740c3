package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/yaya-ai/yaya/internal/bufpool"
)

const (
	// maxSkipped bounds a line that is skipped: a server that goes on writes no lines.
	maxSkipped = 1 << 30
	// glimpsed is how much is kept of each end of a line that is not kept.
	glimpsed = 4 << 10
)

var errEndless = errors.New("the server sent a line of more than 1 GiB")

// lines reads messages that are a line each. A line that is too large, or finds no
// room, costs itself; a large one goes to a file. Those behind it on the pipe come
// through.
type lines struct {
	br   *bufio.Reader
	fill filler
	ctx  context.Context // ends with the connection

	// line takes a line that is not blank. The bytes are its to keep, and lie in buf.
	line func(line []byte, buf *bufpool.Buffer) error
	// late takes a line that lies in a file. It reports false when the line is not
	// what somebody waits for, and must be had at once.
	late func(head, tail []byte, p *parked) bool
	// lost is told of a line that cannot be had, when its head is there and again
	// when its tail is. It reports whether it has seen what the line is.
	lost func(head, tail []byte, why error) bool
	// enough is asked after each line whether the connection ends. Optional.
	enough func() error
}

func newLines(r io.Reader, at room, ctx context.Context) *lines {
	return &lines{br: bufio.NewReaderSize(r, 64<<10), fill: filler{room: at, ctx: ctx}, ctx: ctx}
}

// read reads until something ends it, which it returns: never nil.
func (l *lines) read() error {
	defer l.fill.drop()
	for {
		err := l.next()
		if err == nil && l.enough != nil {
			err = l.enough()
		}
		if err != nil {
			return err
		}
	}
}

// chunk returns a piece of a line, and whether the line goes on after it.
func (l *lines) chunk() (piece []byte, more bool, err error) {
	piece, err = l.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return piece, true, nil
	}
	return piece, false, err
}

// next reads one line. A line that the end of the stream cuts off is dropped.
func (l *lines) next() error {
	piece, more, err := l.chunk()
	if err != nil {
		return err
	}
	if more {
		l.fill.buf = bufpool.Get(min(8*len(piece), l.fill.limit))
	}
	for {
		if why := l.fill.add(piece); why != nil {
			return l.skip(piece, more, why)
		}
		if !more {
			return l.whole()
		}
		if piece, more, err = l.chunk(); err != nil {
			return err
		}
	}
}

// whole hands on a line that is complete.
func (l *lines) whole() error {
	buf, file := l.fill.take()
	if file != nil {
		var err error
		if buf, err = file.handOut(l.ctx, l.late, l.lost); buf == nil {
			return err
		}
	}
	return l.deliver(buf)
}

func (l *lines) deliver(buf *bufpool.Buffer) error {
	line := bytes.TrimSpace(buf.B)
	if len(line) == 0 {
		buf.Release()
		return nil
	}
	return l.line(line, buf)
}

// ends are the head and the tail of a line.
type ends struct {
	head, tail []byte
	n          int64
}

func (e *ends) add(piece []byte) {
	e.n += int64(len(piece))
	if len(piece) >= glimpsed {
		e.tail, piece = e.tail[:0], piece[len(piece)-glimpsed:]
	}
	if e.tail = append(e.tail, piece...); len(e.tail) > 2*glimpsed {
		e.tail = e.tail[:copy(e.tail, e.tail[len(e.tail)-glimpsed:])]
	}
}

// skip reads the rest of a line that is not kept, and says why it is not.
func (l *lines) skip(piece []byte, more bool, why error) error {
	var e ends
	if file := l.fill.file; file != nil && file.size > 0 {
		head, tail, err := file.ends()
		if err != nil {
			return err
		}
		e = ends{head, tail, file.size}
	} else if l.fill.buf != nil {
		b := l.fill.buf.B
		e.head = bytes.Clone(b[:min(len(b), glimpsed)])
		e.add(b)
	}
	l.fill.drop()
	known := l.lost(e.head, nil, why)
	for {
		if e.add(piece); !more {
			break
		}
		if e.n > maxSkipped {
			return errEndless
		}
		var err error
		if piece, more, err = l.chunk(); err != nil {
			return err
		}
	}
	if !known {
		l.lost(e.head, e.tail, why)
	}
	return nil
}
