package fastpath_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/fastpath"
)

// both runs a test on a server without the fast path and on one with it, with the clock of the test.
func both(t *testing.T, h http.HandlerFunc, test func(t *testing.T, r *road)) {
	t.Helper()
	for name, fast := range map[string]bool{"net/http": false, "fast path": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newRoad(t, fast, h)) })
		})
	}
}

// An answer to a body that does not arrive says that the connection closes: the client must not
// send its next request on it.
func TestHalfABodyCloses(t *testing.T) {
	both(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/read" {
			if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading the body = %v, want %v", err, os.ErrDeadlineExceeded)
			}
		}
		w.WriteHeader(http.StatusRequestTimeout)
	}, func(t *testing.T, r *road) {
		for _, path := range []string{"/read", "/unread"} {
			c := r.dial()
			send(t, c, strings.TrimSuffix(post(path, "xyz"), "z"))
			if resp, _ := status(t, c); !resp.Close {
				t.Errorf("%s: the answer has close %v, want true", path, resp.Close)
			}
			ended(t, c)
		}
	})
}

// A connection on which nothing arrives ends as soon as one with half a head.
func TestSilentConnectionEnds(t *testing.T) {
	both(t, echo, func(t *testing.T, r *road) {
		if took := ended(t, r.dial()); took != headTimeout {
			t.Errorf("a connection without a request ended after %v, want %v", took, headTimeout)
		}
	})
}

// A connection of the program before this one may be idle at first.
func TestKeptConnectionIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(t, true, http.HandlerFunc(echo), func(c *fastpath.Config) { c.Kept = true })
		if took := ended(t, r.dial()); took < idleTimeout || took > idleTimeout*11/10 {
			t.Errorf("the connection ended after %v, want %v, or a tenth more", took, idleTimeout)
		}
		c := r.dial()
		time.Sleep(time.Minute)
		send(t, c, post("/a", "x"))
		if resp, _ := status(t, c); resp.StatusCode != http.StatusOK {
			t.Errorf("got %s after a minute, want status 200", resp.Status)
		}
	})
}

// Line ends behind a request begin no head, and do not exempt the next head from its deadline.
func TestLineEndsBehindARequest(t *testing.T) {
	both(t, echo, func(t *testing.T, r *road) {
		c := r.dial()
		send(t, c, post("/a", "x"))
		status(t, c)
		send(t, c, "\r\n")
		time.Sleep(time.Minute)
		send(t, c, "\r\n")
		send(t, c, "POST /a HTTP/1.1\r\n")
		if took := ended(t, c); took != headTimeout {
			t.Errorf("half a head behind line ends ended the connection after %v, want %v", took, headTimeout)
		}
	})
}

// A server that stops does not wait for what is between two requests.
func TestShutdownAfterLineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(t, true, http.HandlerFunc(echo))
		c := r.dial()
		send(t, c, post("/a", "x")+"\r\n")
		status(t, c)
		synctest.Wait()
		if err := r.fast.Close(); err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		if err := r.fast.Shutdown(t.Context()); err != nil || time.Since(since) > time.Second {
			t.Errorf("Shutdown() = %v after %v, want nil at once", err, time.Since(since))
		}
	})
}

// A check that panics ends its connection, and nothing else.
func TestAdmitPanics(t *testing.T) {
	r := newRoad(t, true, http.HandlerFunc(echo), func(c *fastpath.Config) {
		c.Admit = func(r *http.Request) (http.Handler, *http.Request, bool) {
			if r.URL.Path == "/bad" {
				panic("on purpose")
			}
			return c.Handler, r, true
		}
	})
	if got := r.exchange([]byte(post("/bad", "x")), 0); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
	if got := answers(r.exchange([]byte(post("/a", "x")), 0), http.MethodPost); len(got) != 1 || got[0].Status != "200 OK" {
		t.Errorf("after that: got %+v, want one answer with status 200", got)
	}
}

// narrow notes how many bytes reads have room for.
type narrow struct {
	net.Conn
	reads chan int
}

func (n *narrow) Unread([]byte) {}

func (n *narrow) Read(b []byte) (int, error) {
	n.reads <- len(b)
	return n.Conn.Read(b)
}

// A connection is read from with room for more than a byte: net/http reads single bytes to see
// whether a client is still there, and so whoever hands over connections takes them.
func TestReadsHaveRoom(t *testing.T) {
	r := newRoad(t, true, http.HandlerFunc(echo))
	client, server := net.Pipe()
	reads := make(chan int, 100)
	r.l.conns <- &narrow{server, reads}
	defer func() { _ = client.Close() }()
	send(t, client, strings.TrimSuffix(post("/a", "xyz"), "z"))
	send(t, client, "z")
	in := bufio.NewReader(client)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), `"body":"xyz"`) {
		t.Errorf("got %q, %v, want the body echoed", body, err)
	}
	for range len(reads) {
		if n := <-reads; n < 2 {
			t.Errorf("a read had room for %d bytes, want more", n)
		}
	}
}
