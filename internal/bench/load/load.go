// Package load is the client of the benchmarks: HTTP/1.1 connections that do no
// more than a call of a tool needs, so that the client costs little of the
// processor it shares with what it measures.
//
// A [Conn] is for one goroutine. An answer is valid until the next Post.
package load

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxBody bounds a response: what is measured may be at fault.
const maxBody = 64 << 20

// Endpoint is where messages are posted to.
type Endpoint struct {
	Addr, Path string
	Header     string      // further header lines, each with its CRLF
	TLS        *tls.Config // nil without TLS
}

// Conn is one kept-alive connection to an endpoint.
type Conn struct {
	c  net.Conn
	r  *bufio.Reader
	w  *bufio.Writer
	to Endpoint
	in []byte
}

// Answer is a response.
type Answer struct {
	Body    []byte
	Session string // its Mcp-Session-Id; "" without one
	Stream  bool   // Body is a stream of server-sent events
}

// Dial connects.
func (e Endpoint) Dial() (*Conn, error) {
	c, err := net.Dial("tcp", e.Addr) //nolint:noctx // loopback
	if err != nil {
		return nil, err
	}
	if e.TLS != nil {
		cfg := e.TLS.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(e.Addr)
		secure := tls.Client(c, cfg)
		if err := secure.Handshake(); err != nil { //nolint:noctx // loopback
			_ = c.Close()
			return nil, err
		}
		c = secure
	}
	return &Conn{c: c, r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10), to: e}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.c.Close() }

// SetDeadline bounds the following posts.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// head is the beginning of a response, before its body.
type head struct {
	status  int
	length  int // -1 without a Content-Length
	chunked bool
	answer  Answer
}

// Post sends a body, in the session unless it is "", and reads the response to
// its end. A status that is not 2xx is an error; the connection cannot be used
// after any error.
func (c *Conn) Post(body []byte, session string) (Answer, error) {
	fmt.Fprintf(c.w, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n%s", c.to.Path, c.to.Addr, len(body), c.to.Header)
	if session != "" {
		fmt.Fprintf(c.w, "Mcp-Session-Id: %s\r\n", session)
	}
	_, _ = c.w.WriteString("\r\n")
	_, _ = c.w.Write(body)
	if err := c.w.Flush(); err != nil {
		return Answer{}, err
	}
	h, err := c.head()
	if err != nil {
		return Answer{}, err
	}
	switch {
	case h.status == http.StatusNoContent:
		return h.answer, nil
	case h.chunked:
		err = c.chunks()
	case h.length > maxBody:
		err = fmt.Errorf("%s answered %d bytes", c.to.Addr, h.length)
	case h.length < 0:
		c.in, err = io.ReadAll(io.LimitReader(c.r, maxBody))
	default:
		c.in = slices.Grow(c.in[:0], h.length)[:h.length]
		_, err = io.ReadFull(c.r, c.in)
	}
	h.answer.Body = c.in
	return h.answer, err
}

func (c *Conn) head() (head, error) {
	h := head{length: -1}
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return h, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			if !bytes.HasPrefix(line, []byte("HTTP/1.1 20")) || len(line) < 12 {
				return h, fmt.Errorf("%s answered %s", c.to.Addr, line)
			}
			h.status, _ = strconv.Atoi(string(line[9:12]))
			continue
		}
		if len(line) == 0 {
			return h, nil
		}
		k, v, _ := strings.Cut(string(line), ":")
		v = strings.TrimSpace(v)
		switch {
		case strings.EqualFold(k, "Content-Length"):
			if h.length, err = strconv.Atoi(v); err != nil || h.length < 0 {
				return h, fmt.Errorf("%s answered with the length %q", c.to.Addr, v)
			}
		case strings.EqualFold(k, "Mcp-Session-Id"):
			h.answer.Session = v
		case strings.EqualFold(k, "Content-Type"):
			h.answer.Stream = strings.HasPrefix(v, "text/event-stream")
		case strings.EqualFold(k, "Transfer-Encoding"):
			h.chunked = true
		}
	}
}

func (c *Conn) chunks() error {
	c.in = c.in[:0]
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return err
		}
		at := len(c.in)
		if at+int(n) > maxBody {
			return fmt.Errorf("%s answered more than %d bytes", c.to.Addr, maxBody)
		}
		c.in = slices.Grow(c.in, int(n)+2)[:at+int(n)+2]
		if _, err := io.ReadFull(c.r, c.in[at:]); err != nil {
			return err
		}
		c.in = c.in[:at+int(n)]
		if n == 0 {
			return nil
		}
	}
}

// Quantile returns a quantile of sorted latencies, and 0 of none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// Median returns the median, and 0 of no figures.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	return xs[len(xs)/2]
}
