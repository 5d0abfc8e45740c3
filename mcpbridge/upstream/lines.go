package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
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

// lines reads messages that are a line each. A line that is too large costs itself,
// and one that finds no memory waits in a file: those behind it on the pipe come
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
}

func newLines(r io.Reader, at room, ctx context.Context) *lines {
	return &lines{br: bufio.NewReaderSize(r, 64<<10), fill: filler{room: at}, ctx: ctx}
}

// read reads until something ends it, which it returns: never nil.
func (l *lines) read() error {
	defer l.fill.drop()
	for {
		if err := l.next(); err != nil {
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
		switch err := l.fill.more(len(piece)); {
		case errors.Is(err, errTooLarge):
			return l.skip(newEnds(l.fill.buf.B), piece, more, err)
		case errors.Is(err, errNoRoom):
			if p := l.park(); p != nil {
				return l.putAside(p, piece, more)
			}
			if err := l.await(len(piece)); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		l.fill.buf.B = append(l.fill.buf.B, piece...)
		if !more {
			return l.deliver(l.fill.take())
		}
		if piece, more, err = l.chunk(); err != nil {
			return err
		}
	}
}

// await makes room for a line that cannot be put anywhere: those behind it wait, too.
func (l *lines) await(n int) error {
	waits := l.fill
	waits.ctx = l.ctx
	err := waits.more(n)
	l.fill.buf, l.fill.share = waits.buf, waits.share
	return err
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

func newEnds(start []byte) *ends {
	e := &ends{head: bytes.Clone(start[:min(len(start), glimpsed)])}
	e.add(start)
	return e
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
func (l *lines) skip(e *ends, piece []byte, more bool, why error) error {
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

// park opens a file for a line, nil when there is nowhere to put one.
func (l *lines) park() *parked {
	if l.fill.aside == nil {
		return nil
	}
	p := &parked{size: int64(l.fill.limit), room: l.fill.room}
	if aside.Add(p.size) > maxAside {
		aside.Add(-p.size)
		return nil
	}
	var err error
	if p.f, err = l.fill.aside(); err != nil {
		aside.Add(-p.size)
		return nil
	}
	return p
}

// putAside reads the rest of a line into a file.
func (l *lines) putAside(p *parked, piece []byte, more bool) error {
	e := newEnds(l.fill.buf.B)
	_, werr := p.f.Write(l.fill.buf.B)
	l.fill.drop()
	for {
		if e.n+int64(len(piece)) > int64(l.fill.limit) {
			werr = tooLarge(l.fill.limit)
		} else if werr == nil {
			if _, werr = p.f.Write(piece); werr != nil {
				werr = fmt.Errorf("its answer found no memory, and cannot be put aside: %w", werr)
			}
		}
		if werr != nil {
			p.close()
			return l.skip(e, piece, more, werr)
		}
		if e.add(piece); !more {
			break
		}
		var err error
		if piece, more, err = l.chunk(); err != nil {
			p.close()
			return err
		}
	}
	aside.Add(e.n - p.size)
	p.size = e.n
	if l.late(e.head, e.tail, p) {
		return nil
	}
	buf, err := p.load(l.ctx)
	if err != nil {
		return err
	}
	return l.deliver(buf)
}
