package fastpath_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fastpath"
)

// dial returns a connection in memory to a server.
func (r *road) dial() net.Conn {
	client, server := net.Pipe()
	r.l.conns <- &rewound{Conn: server}
	return client
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, c net.Conn) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// ended waits for the end of a connection, and returns how long that took.
func ended(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	since := time.Now()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("the connection ended with %q, %v, want nothing", rest, err)
	}
	return time.Since(since)
}

// A head, a body and a pause that take too long end the connection on both roads, at about the
// same time.
func TestDeadlines(t *testing.T) {
	for name, fast := range map[string]bool{"net/http": false, "fast path": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					rc := http.NewResponseController(w)
					if err := rc.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
						t.Error(err)
					}
					_, err := io.ReadAll(r.Body)
					if errors.Is(err, os.ErrDeadlineExceeded) {
						w.WriteHeader(http.StatusRequestTimeout)
						return
					}
					if err := rc.SetReadDeadline(time.Time{}); err != nil {
						t.Error(err)
					}
				})
				r := newRoad(t, fast, h)
				c := r.dial()
				send(t, c, "POST /a HTTP/1.1\r\nHost: a\r\n")
				if took := ended(t, c); took != headTimeout {
					t.Errorf("half a head ended the connection after %v, want %v", took, headTimeout)
				}
				c = r.dial()
				send(t, c, post("/a", "x"))
				status(t, c)
				if took := ended(t, c); took < idleTimeout || took > idleTimeout*11/10 {
					t.Errorf("a pause ended the connection after %v, want %v, or a tenth more", took, idleTimeout)
				}
				c = r.dial()
				send(t, c, post("/a", "x"))
				status(t, c)
				time.Sleep(time.Minute)
				send(t, c, post("/a", "x"))
				status(t, c)
				send(t, c, strings.TrimSuffix(post("/a", "xyz"), "z"))
				since := time.Now()
				if resp, _ := status(t, c); resp.StatusCode != http.StatusRequestTimeout || time.Since(since) != 30*time.Second {
					t.Errorf("half a body got %s after %v, want %d after 30 s", resp.Status, time.Since(since), http.StatusRequestTimeout)
				}
				ended(t, c)
			})
		})
	}
}

// A client that does not read ends its connection: after the time that the handler allows for a
// write, however short, or at most twice that.
func TestWriteDeadline(t *testing.T) {
	for _, in := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		t.Run(in.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrote := make(chan error, 1)
				r := newRoad(t, true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(in)); err != nil {
						t.Error(err)
					}
					_, err := w.Write(make([]byte, 1<<20))
					wrote <- err
				}))
				c := r.dial()
				defer func() { _ = c.Close() }()
				since := time.Now()
				send(t, c, post("/a", "x"))
				if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(since) < in || time.Since(since) > 2*in {
					t.Errorf("the write failed with %v after %v, want a deadline within %v to %v", err, time.Since(since), in, 2*in)
				}
			})
		})
	}
}

// loopback starts a server on a TCP listener.
func loopback(t *testing.T, h http.Handler) (*fastpath.Listener, string) {
	t.Helper()
	var lc net.ListenConfig
	inner, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := fastpath.Listen(tcpConns{inner}, fastpath.Config{
		Handler: h, Takes: func(string) bool { return true }, Context: func(net.Conn) context.Context { return context.Background() },
		HeadTimeout: headTimeout, IdleTimeout: idleTimeout,
	})
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headTimeout}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		l.Abort()
		l.Wait()
		<-done
	})
	return l, inner.Addr().String()
}

type tcpConns struct{ net.Listener }

func (l tcpConns) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tcpConn{TCPConn: c.(*net.TCPConn)}, nil
}

type tcpConn struct {
	*net.TCPConn
	again []byte
}

func (c *tcpConn) Unread(b []byte) { c.again = append(c.again, b...) }

func (c *tcpConn) Read(b []byte) (int, error) {
	if len(c.again) > 0 {
		n := copy(b, c.again)
		c.again = c.again[n:]
		return n, nil
	}
	return c.TCPConn.Read(b)
}

func connect(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// A client that leaves ends its request, whether it closes its connection, half of it, or
// resets it. One that sends its next request early does not.
func TestClientsThatLeave(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"closes":      func(c *net.TCPConn) error { return c.Close() },
		"closes half": func(c *net.TCPConn) error { return c.CloseWrite() },
		"resets":      func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			began, over := make(chan struct{}), make(chan struct{})
			_, addr := loopback(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				began <- struct{}{}
				<-r.Context().Done()
				close(over)
			}))
			c := connect(t, addr)
			send(t, c, post("/a", "x"))
			<-began
			if err := leave(c); err != nil {
				t.Fatal(err)
			}
			<-over
		})
	}
	t.Run("sends more", func(t *testing.T) {
		began := make(chan struct{}, 2)
		_, addr := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- struct{}{}
			select {
			case <-time.After(250 * time.Millisecond): // several looks
				w.WriteHeader(http.StatusAccepted)
			case <-r.Context().Done():
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
		c := connect(t, addr)
		send(t, c, post("/a", "x"))
		<-began
		send(t, c, post("/a", "y"))
		in := bufio.NewReader(c)
		for n := range 2 {
			resp, err := http.ReadResponse(in, nil)
			if err != nil || resp.StatusCode != http.StatusAccepted {
				t.Fatalf("answer %d: got %v, %v, want status 202", n, resp, err)
			}
		}
	})
}

// Shutdown ends connections without a request at once, and the others when they have their answer,
// which says that the connection closes.
func TestShutdown(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	l, addr := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began <- struct{}{}
			<-goOn
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	fresh, idle, busy := connect(t, addr), connect(t, addr), connect(t, addr)
	send(t, idle, post("/a", "x"))
	status(t, idle)
	send(t, busy, post("/wait", "x"))
	<-began
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with a request under way returned %v, want %v", err, context.DeadlineExceeded)
	}
	ended(t, fresh)
	ended(t, idle)
	over := make(chan error, 1)
	go func() { over <- l.Shutdown(t.Context()) }()
	close(goOn)
	if resp, _ := status(t, busy); resp.StatusCode != http.StatusAccepted || !resp.Close {
		t.Errorf("got %s, close %v, want status 202 and that the connection closes", resp.Status, resp.Close)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// A client that stops in the middle of a head holds up nobody: it has asked nothing yet. One byte
// on a kept connection is such a head, too.
func TestShutdownAmidHeads(t *testing.T) {
	whole := post("/a", "x")
	for _, kept := range []bool{false, true} {
		for _, half := range []string{"P", "POST /a HTTP/1.1\r\n", whole[:strings.Index(whole, "\r\n\r\n")+2]} {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad(t, true, http.HandlerFunc(echo))
				c := r.dial()
				if kept {
					send(t, c, whole)
					status(t, c)
				}
				send(t, c, half)
				time.Sleep(100 * time.Millisecond)
				if err := r.fast.Close(); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if err := r.fast.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took > 0 {
					t.Errorf("Shutdown waited %v for %q (kept: %v), want no time", took, half, kept)
				}
				ended(t, c)
			})
		}
	}
}

// The state of a connection is reported as net/http reports it. One that is handed on is
// net/http's after its last one.
func TestStates(t *testing.T) {
	for sent, want := range map[string][]string{
		post("/a", "x") + post("/a", "y"):   {"new", "active", "idle", "closed"},
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n": {"new", "active"},
	} {
		var mu sync.Mutex
		var got []string
		r := newRoad(t, true, http.HandlerFunc(echo), func(c *fastpath.Config) {
			c.State = func(_ net.Conn, s http.ConnState) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, s.String())
			}
		})
		r.exchange([]byte(sent), 0)
		eventually.True(t, fmt.Sprintf("the states of %q are %v", sent, want), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(got, want)
		})
	}
}

// Shutdown finds each connection idle, or its goroutine finds that the server is about to stop,
// however the two meet.
func TestShutdownWhileClientsWork(t *testing.T) {
	for range 20 {
		var served atomic.Int32
		l, addr := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			w.WriteHeader(http.StatusAccepted)
		}))
		var clients sync.WaitGroup
		for range 8 {
			c := connect(t, addr)
			clients.Go(func() {
				in := bufio.NewReader(c)
				for {
					if _, err := io.WriteString(c, post("/a", "x")); err != nil {
						return
					}
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Close {
						return
					}
				}
			})
		}
		eventually.True(t, "clients work", func() bool { return served.Load() > 20 })
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients.Wait()
	}
}
