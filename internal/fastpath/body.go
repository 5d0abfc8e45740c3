package fastpath

import (
	"errors"
	"io"
	"net/http"
)

// body is the body of a request.
type body struct {
	x      *exchange
	left   int64 // bytes that have not been read
	closed bool
	cut    bool // the handler has read that it ends early
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed || b.x.over.Load():
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := b.read(p)
	b.cut = b.cut || errors.Is(err, io.ErrUnexpectedEOF)
	return n, err
}

// read reads from what has arrived with the head, and then from the connection.
func (b *body) read(p []byte) (int, error) {
	c := b.x.c
	p = p[:min(int64(len(p)), b.left)]
	var n int
	var err error
	arrived := b.Arrived()
	if c.start == len(c.buf) {
		if len(p) < small {
			err = c.fill()
		} else {
			n, err = c.nc.Read(p)
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	if n == 0 {
		n = copy(p, c.buf[c.start:])
		c.start += n
	}
	if b.left -= int64(n); b.left == 0 {
		err = io.EOF
	}
	if !arrived && b.Arrived() {
		c.lookout.begin()
	}
	return n, err
}

// Arrived reports whether all of the body is here, so that reading it waits for nobody.
func (b *body) Arrived() bool { return b.left <= int64(len(b.x.c.buf)-b.x.c.start) }

// Close implements [io.Closer]. The rest is read before the answer.
func (b *body) Close() error {
	b.closed = true
	return nil
}
