package load

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// canned answers every request with the same bytes, and then closes.
func canned(t *testing.T, response string) (string, <-chan *http.Request) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan *http.Request, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			t.Errorf("ReadRequest() = %v, want no error", err)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		requests <- r
		_, _ = io.WriteString(c, response)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String(), requests
}

func TestPost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, response, body string
		session              string
		stream, fails        bool
	}{
		{name: "length", response: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nMcp-Session-Id: s-1\r\n\r\n{}", body: "{}", session: "s-1"},
		{name: "chunks of events", response: "HTTP/1.1 200 OK\r\ncontent-type:text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n4\r\n{}\n\n\r\n0\r\n\r\n", body: "data: {}\n\n", stream: true},
		{name: "until the end", response: "HTTP/1.1 200 OK\r\n\r\n{}", body: "{}"},
		{name: "accepted", response: "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"},
		{name: "no content", response: "HTTP/1.1 204 No Content\r\n\r\n"},
		{name: "an error", response: "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", fails: true},
		{name: "a negative length", response: "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n", fails: true},
		{name: "a huge length", response: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", fails: true},
		{name: "a huge chunk", response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", fails: true},
		{name: "not a chunk", response: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", fails: true},
		{name: "cut off", response: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", fails: true},
		{name: "nothing", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr, requests := canned(t, c.response)
			conn, err := Endpoint{Addr: addr, Path: "/mcp", Header: "X-Mine: 1\r\n"}.Dial()
			if err != nil {
				t.Fatalf("Dial() = %v, want no error", err)
			}
			defer func() { _ = conn.Close() }()
			if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatalf("SetDeadline() = %v, want no error", err)
			}
			a, err := conn.Post([]byte(`{"id":1}`), "mine")
			if (err != nil) != c.fails {
				t.Fatalf("Post() = %v, want an error: %v", err, c.fails)
			}
			if !c.fails && (string(a.Body) != c.body || a.Session != c.session || a.Stream != c.stream) {
				t.Errorf("Post() = %q, session %q, stream %v; want %q, %q, %v", a.Body, a.Session, a.Stream, c.body, c.session, c.stream)
			}
			r := <-requests
			if r.URL.Path != "/mcp" || r.Header.Get("Mcp-Session-Id") != "mine" || r.Header.Get("X-Mine") != "1" || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
				t.Errorf("the request was to %s with %v, want /mcp with the session and the given header", r.URL, r.Header)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		latencies []time.Duration
		q         float64
		want      time.Duration
	}{{nil, .5, 0}, {[]time.Duration{1}, .99, 1}, {[]time.Duration{1, 2, 3, 4, 5}, .5, 3}, {[]time.Duration{1, 2, 3, 4, 5}, 1, 5}} {
		if got := Quantile(c.latencies, c.q); got != c.want {
			t.Errorf("Quantile(%v, %v) = %v, want %v", c.latencies, c.q, got, c.want)
		}
	}
	for _, c := range []struct {
		xs   []float64
		want float64
	}{{nil, 0}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1}, 4}} {
		if got := Median(c.xs); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.xs, got, c.want)
		}
	}
}
