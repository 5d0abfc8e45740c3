package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/callctx"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// serveOn accepts connections and hands the requests of each, with its number, to serve, until
// that returns false.
func serveOn(t *testing.T, serve func(conn, request int, c net.Conn) bool) (to *url.URL) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for m := 1; ; m++ {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if !serve(n, m, c) {
						return
					}
				}
			}()
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/mcp"}
}

const plainAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

func turn(ctx context.Context, d *direct, to *url.URL, body []byte) error {
	req := newRequest(ctx, http.MethodPost, to, http.Header{})
	req.Body, req.ContentLength = newRawBody(body), int64(len(body))
	resp, err := d.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// A connection that the server has closed, or on which it has said something unasked, gets no
// request: the request goes out once, on another one.
func TestStaleConnections(t *testing.T) {
	for name, end := range map[string]func(c net.Conn) bool{
		"closed": func(net.Conn) bool { return false },
		"unasked": func(c net.Conn) bool {
			_, err := io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n")
			return err == nil
		},
	} {
		for size, body := range map[string][]byte{"small": []byte("{}"), "large": make([]byte, 2*directBuffer)} {
			t.Run(name+"/"+size, func(t *testing.T) {
				var requests atomic.Int32
				to := serveOn(t, func(n, _ int, c net.Conn) bool {
					requests.Add(1)
					if _, err := io.WriteString(c, plainAnswer); err != nil {
						return false
					}
					return n > 1 || end(c)
				})
				d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
				defer d.CloseIdleConnections()
				if err := turn(t.Context(), d, to, body); err != nil {
					t.Fatal(err)
				}
				eventually.True(t, "the connection is stale", func() bool {
					d.mu.Lock()
					defer d.mu.Unlock()
					list := d.idle[origin{"http", to.Host}]
					return len(list) == 0 || !list[0].alive() // it may have been closed with the answer
				})
				if err := turn(t.Context(), d, to, body); err != nil {
					t.Errorf("RoundTrip after the connection became stale = %v, want an answer", err)
				}
				if got := requests.Load(); got != 2 {
					t.Errorf("the server got %d requests, want 2", got)
				}
			})
		}
	}
}

// The end of a call interrupts its connection, which gets no other request.
func TestEndInterruptsTheConnection(t *testing.T) {
	why := errors.New("why")
	asked := make(chan struct{})
	to := serveOn(t, func(n, _ int, c net.Conn) bool {
		if n == 1 {
			close(asked)
			_, _ = io.Copy(io.Discard, c) // until it is closed
			return false
		}
		_, err := io.WriteString(c, plainAnswer)
		return err == nil
	})
	d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
	defer d.CloseIdleConnections()
	var ctx callctx.Context
	ctx.Begin(t.Context())
	go func() {
		<-asked
		ctx.Cancel(why)
	}()
	if err := turn(&ctx, d, to, []byte("{}")); !errors.Is(err, why) {
		t.Errorf("RoundTrip = %v, want %v", err, why)
	}
	if err := turn(&ctx, d, to, []byte("{}")); err == nil {
		t.Error("RoundTrip of an ended call = nil, want an error")
	}
	if err := turn(t.Context(), d, to, []byte("{}")); err != nil {
		t.Errorf("RoundTrip = %v, want an answer", err)
	}
}

// Idle connections are closed in time, including those to servers that are called no more.
func TestIdleConnectionsEnd(t *testing.T) {
	ended := make(chan struct{})
	to := serveOn(t, func(_, _ int, c net.Conn) bool {
		if _, err := io.WriteString(c, plainAnswer); err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, c) // until it is closed
		close(ended)
		return false
	})
	d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
	defer d.CloseIdleConnections()
	if err := turn(t.Context(), d, to, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	d.prune()
	if len(d.idleTo(to)) != 1 || d.tidy == nil {
		t.Fatal("a connection that has just been used is gone, or nobody closes it later")
	}
	d.idleTo(to)[0].since = time.Now().Add(-idleKept)
	d.prune()
	<-ended
	if len(d.idle) != 0 || d.tidy != nil {
		t.Errorf("%d origins with idle connections, timer %v; want none", len(d.idle), d.tidy)
	}
}
