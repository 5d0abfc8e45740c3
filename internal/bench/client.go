package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is an MCP endpoint, spoken to in the legacy era.
type target struct {
	addr, path string
	tool       string
	name       string // that the client announces; "" for bench
	session    string
	// lenient targets may lose a connection now and then, as the standard
	// library's reverse proxy does under quick successions on one connection.
	lenient bool
}

// conn is one kept-alive HTTP/1.1 connection.
type conn struct {
	c  net.Conn
	r  *bufio.Reader
	w  *bufio.Writer
	t  *target
	in []byte
}

func (t *target) dial() (*conn, error) {
	c, err := net.Dial("tcp", t.addr) //nolint:noctx // loopback
	if err != nil {
		return nil, err
	}
	return &conn{c: c, r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10), t: t}, nil
}

// post sends a body and returns the answer's, which is valid until the next.
func (c *conn) post(body []byte) ([]byte, string, error) {
	fmt.Fprintf(c.w, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", c.t.path, c.t.addr, len(body))
	if c.t.session != "" {
		fmt.Fprintf(c.w, "Mcp-Session-Id: %s\r\n", c.t.session)
	}
	_, _ = c.w.WriteString("\r\n")
	_, _ = c.w.Write(body)
	if err := c.w.Flush(); err != nil {
		return nil, "", err
	}
	length, session, chunked := 0, "", false
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return nil, "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 20")) {
			return nil, "", fmt.Errorf("%s answered %s", c.t.addr, line)
		}
		if len(line) == 0 {
			break
		}
		k, v, _ := strings.Cut(string(line), ": ")
		switch {
		case strings.EqualFold(k, "Content-Length"):
			length, _ = strconv.Atoi(v)
		case strings.EqualFold(k, "Mcp-Session-Id"):
			session = v
		case strings.EqualFold(k, "Transfer-Encoding"):
			chunked = true
		}
	}
	if chunked {
		return c.chunks(session)
	}
	c.in = slices.Grow(c.in[:0], length)[:length]
	_, err := io.ReadFull(c.r, c.in)
	return c.in, session, err
}

func (c *conn) chunks(session string) ([]byte, string, error) {
	c.in = c.in[:0]
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return nil, "", err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return nil, "", err
		}
		at := len(c.in)
		c.in = slices.Grow(c.in, int(n)+2)[:at+int(n)+2]
		if _, err := io.ReadFull(c.r, c.in[at:]); err != nil {
			return nil, "", err
		}
		c.in = c.in[:at+int(n)]
		if n == 0 {
			return c.in, session, nil
		}
	}
}

// open starts a session.
func (t *target) open() error {
	c, err := t.dial()
	if err != nil {
		return err
	}
	defer func() { _ = c.c.Close() }()
	_, t.session, err = c.post([]byte(t.hello()))
	return err
}

// hello begins a session.
func (t *target) hello() string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + cmp.Or(t.name, "bench") + `","version":"1"}}}`
}

// load holds the measurements of one round.
type load struct {
	perSecond float64
	calls     int
	latencies []time.Duration
}

func (l load) quantile(q float64) time.Duration {
	if len(l.latencies) == 0 {
		return 0
	}
	return l.latencies[int(q*float64(len(l.latencies)-1))]
}

var errWrong = errors.New("a wrong answer")

// run keeps inFlight calls with size bytes of argument going for d.
func (t *target) run(inFlight, size int, d time.Duration) (load, error) {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	all := make([][]time.Duration, inFlight)
	text := strings.Repeat("x", size)
	deadline := time.Now().Add(d)
	start := time.Now()
	for i := range inFlight {
		wg.Go(func() {
			err := func() error {
				c, err := t.dial()
				if err != nil {
					return err
				}
				defer func() { _ = c.c.Close() }()
				for n := 0; time.Now().Before(deadline); n++ {
					// Ids differ between the connections that share a session.
					id := strconv.Itoa(i*100_000_000 + n)
					body := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + t.tool + `","arguments":{"text":"` + text + `"}}}`)
					begun := time.Now()
					out, _, err := c.post(body)
					if err != nil && t.lenient {
						_ = c.c.Close()
						if c, err = t.dial(); err != nil {
							return err
						}
						continue
					}
					if err != nil {
						return err
					}
					all[i] = append(all[i], time.Since(begun))
					if !bytes.HasPrefix(out, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result"`)) || len(out) < size {
						return fmt.Errorf("%w: %.200s", errWrong, out)
					}
				}
				return nil
			}()
			if err != nil {
				err = fmt.Errorf("%s: %w", t.addr, err)
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return load{}, *err
	}
	lat := slices.Concat(all...)
	slices.Sort(lat)
	return load{float64(len(lat)) / took.Seconds(), len(lat), lat}, nil
}
