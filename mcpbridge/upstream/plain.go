package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
)

// Most answers to a call have a head of the same few fields. Reading these by hand takes a
// fifth of the time of [http.ReadResponse], which reads all others: its parser decides what
// HTTP is, and this one accepts a part of that.

const (
	plainStatus = "HTTP/1.1 200 OK"
	maxDigits   = 15 // of a length
)

// plainFields are the fields that a plain head may have. Of those that are not named in
// [plainHead.field], nobody here asks for the value.
var plainFields = []string{
	"Content-Type", "Content-Length", "Transfer-Encoding", mcp.HeaderSessionID, "Connection",
	"Date", "Server", "Keep-Alive", "X-Powered-By", "ETag", "Cache-Control", "Vary", mcp.HeaderProtocolVersion,
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "X-Content-Type-Options",
}

// plainHead is the head of a plain answer. The slices are of the buffer that it was read from.
type plainHead struct {
	size    int   // bytes, with the empty line
	length  int64 // -1 if it is not said
	chunked bool
	media   []byte // Content-Type
	session []byte // Mcp-Session-Id
}

// parsePlain parses the head at the beginning of b. It reports false for one that is not
// complete or not plain.
func parsePlain(b []byte) (h plainHead, ok bool) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 || !bytes.HasPrefix(b, []byte(plainStatus+"\r\n")) {
		return h, false
	}
	h = plainHead{size: end + 4, length: -1}
	for rest := b[len(plainStatus)+2 : end+2]; len(rest) > 0; {
		line, after, found := bytes.Cut(rest, []byte("\r\n"))
		if !found || !h.field(line) {
			return h, false
		}
		rest = after
	}
	return h, h.chunked != (h.length >= 0) && h.media != nil
}

// field takes a line of the head; it reports false for one that makes the head not plain.
func (h *plainHead) field(line []byte) bool {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found {
		return false
	}
	which := -1
	for i, known := range plainFields {
		if len(known) == len(name) && bytes.EqualFold(name, []byte(known)) {
			which = i
			break
		}
	}
	if which < 0 {
		return false
	}
	for _, c := range value {
		if c < ' ' || c > '~' {
			return false
		}
	}
	value = bytes.Trim(value, " ")
	switch plainFields[which] {
	case "Content-Type":
		if h.media != nil || len(value) == 0 {
			return false
		}
		h.media = value
	case mcp.HeaderSessionID:
		if h.session != nil {
			return false
		}
		h.session = value
	case "Connection":
		return bytes.EqualFold(value, []byte("keep-alive"))
	case "Transfer-Encoding":
		if h.chunked || string(value) != "chunked" {
			return false
		}
		h.chunked = true
	case "Content-Length":
		if h.length >= 0 || len(value) == 0 || len(value) > maxDigits {
			return false
		}
		for _, c := range value {
			if c < '0' || c > '9' {
				return false
			}
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		h.length = n
		return err == nil
	}
	return true
}

// plainBody is the body of a plain answer with a length.
type plainBody struct {
	r    *bufio.Reader
	left int64
}

// Read implements [io.Reader].
func (b *plainBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		err = io.ErrUnexpectedEOF
	case err == nil && b.left == 0:
		err = io.EOF
	}
	return n, err
}

// Close implements [io.Closer]; [directBody] closes the connection.
func (b *plainBody) Close() error { return nil }

// chunkedBody is the body of a plain answer in chunks.
type chunkedBody struct {
	io.Reader
	r *bufio.Reader
}

// Read implements [io.Reader]. It leaves a trailer to be read: then the connection does not get
// another request.
func (b *chunkedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	end, perr := b.r.Peek(2)
	if perr != nil {
		return n, io.ErrUnexpectedEOF
	}
	if string(end) == "\r\n" {
		_, _ = b.r.Discard(2) // it is in the buffer
	}
	return n, io.EOF
}

// Close implements [io.Closer]; [directBody] closes the connection.
func (b *chunkedBody) Close() error { return nil }

// plain returns the answer of the connection if it is plain, else nil: then nothing of it has
// been consumed.
func (c *directConn) plain(req *http.Request) *http.Response {
	if _, err := c.r.Peek(1); err != nil {
		return nil // whoever reads next gets the error
	}
	buf, err := c.r.Peek(c.r.Buffered())
	if err != nil {
		return nil
	}
	h, ok := parsePlain(buf)
	if !ok {
		return nil
	}
	c.remember(&h)
	_, _ = c.r.Discard(h.size) // it is in the buffer
	// The answer is one piece of memory, which does not belong to the connection: somebody may
	// look at it when the connection has another request.
	a := &struct {
		http.Response
		body  directBody
		whole plainBody
	}{
		Response: http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: c.header, ContentLength: h.length, Request: req,
		},
		body: directBody{c: c, keep: true},
	}
	if h.chunked {
		a.body.ReadCloser = &chunkedBody{httputil.NewChunkedReader(c.r), c.r}
	} else {
		a.whole = plainBody{c.r, h.length}
		a.body.ReadCloser = &a.whole
	}
	a.Body = &a.body
	return &a.Response
}

// remember makes the header of an answer, unless it is that of the last one. Nobody changes the
// header of an answer.
func (c *directConn) remember(h *plainHead) {
	if c.header != nil && c.media == string(h.media) && c.session == string(h.session) && (h.session != nil) == (len(c.header) == 2) {
		return
	}
	c.media, c.session = string(h.media), string(h.session)
	c.header = http.Header{"Content-Type": {c.media}}
	if h.session != nil {
		c.header[mcp.HeaderSessionID] = []string{c.session}
	}
}
