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
	// maxSkipped bounds a skipped line: a server that exceeds it does not write lines at all.
	maxSkipped = 1 << 30
	// glimpsed is how much of each end of a skipped line is kept.
	glimpsed = 4 << 10
)

var errEndless = errors.New("the server sent a line of more than 1 GiB")

// lines reads messages, one per line. A line that is too large, or for which there is no room,
// is skipped; a large one goes to a file. The lines behind it on the pipe still arrive.
type lines struct {
	br   *bufio.Reader
	fill filler
	last int // size of the last line that one read did not bring

	// line handles a line that is not blank. It owns the bytes, which are in buf.
	line func(line []byte, buf *bufpool.Buffer) error
	// late handles a line in a file. It reports false if no caller waits for the line, which
	// then has to be read back at once.
	late func(head, tail []byte, p *parked) bool
	// lost is called for a line that cannot be kept, first with its head and again with its
	// tail. It reports whether it recognized the line.
	lost func(head, tail []byte, why error) bool
	// enough is called after each line; an error ends the connection. Optional.
	enough func() error
}

func newLines(r io.Reader, at room) *lines {
	return &lines{br: bufio.NewReaderSize(r, 64<<10), fill: filler{room: at}}
}

// read reads until an error, which it returns; it never returns nil. ctx bounds waiting for
// room; the end of the reader is what ends it.
func (l *lines) read(ctx context.Context) error {
	defer l.fill.drop()
	for {
		err := l.next(ctx)
		if err == nil && l.enough != nil {
			err = l.enough()
		}
		if err != nil {
			return err
		}
	}
}

// chunk returns a piece of a line, and whether the line continues.
func (l *lines) chunk() (piece []byte, more bool, err error) {
	piece, err = l.br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return piece, true, nil
	}
	return piece, false, err
}

// next reads one line. It drops a line without an end at the end of the stream.
func (l *lines) next(ctx context.Context) error {
	piece, more, err := l.chunk()
	if err != nil {
		return err
	}
	if more { // many are as long as the one before them
		l.fill.buf = bufpool.Get(min(max(2*len(piece), min(l.last, 8*len(piece))), l.fill.limit))
	}
	for {
		if why := l.fill.add(ctx, piece); why != nil {
			return l.skip(piece, more, why)
		}
		if !more {
			if l.fill.file == nil && len(l.fill.buf.B) > len(piece) {
				l.last = len(l.fill.buf.B)
			}
			return l.whole(ctx)
		}
		if piece, more, err = l.chunk(); err != nil {
			return err
		}
	}
}

// whole delivers a complete line.
func (l *lines) whole(ctx context.Context) error {
	buf, file := l.fill.take()
	if file != nil {
		var err error
		if buf, err = file.handOut(ctx, l.late, l.lost); buf == nil {
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

// skip reads the rest of a line that is not kept, and reports the reason.
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
