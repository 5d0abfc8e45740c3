package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// asPlain reads an answer of a connection by hand, nil if it is not plain.
func asPlain(data []byte, req *http.Request) (resp *http.Response, rest *bufio.Reader) {
	c := &directConn{left: maxHeaderRead}
	c.r = bufio.NewReaderSize(bytes.NewReader(data), directBuffer)
	return c.plain(req), c.r
}

// FuzzPlainAnswer: what is read by hand means the same to net/http, with the same end; anything
// else is left as it came.
func FuzzPlainAnswer(f *testing.F) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, seed := range []string{
		head + "Content-Length: 2\r\n\r\n{}",
		head + "Content-Length: 2\r\nMcp-Session-Id: abc\r\nDate: Thu, 26 Nov 2026 10:00:00 GMT\r\n\r\n{}HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nX-Powered-By: Express\r\ncontent-type: application/json; charset=utf-8\r\nContent-Length: 3\r\nETag: W/\"3\"\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n{ }",
		head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", head + "Content-Length: +2\r\n\r\n{}", head + "Content-Length: 2, 2\r\n\r\n{}",
		head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", head + "Connection: close\r\nContent-Length: 2\r\n\r\n{}",
		head + "Content-Length : 2\r\n\r\n{}", head + "Content-Length: 2\r\n folded\r\n\r\n{}", head + "Content-Length: 2\n\r\n\r\n{}", head + "Vary: a\x00b\r\nContent-Length: 0\r\n\r\n",
		head + "Content-Length: 000000000000002\r\n\r\n{}", head + "Content-Length:2\r\nServer:\r\n\r\n{}", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 204 No Content\r\n\r\n",
		head + "Content-Length: 9\r\n\r\n{}", head + "DPoP-Nonce: n\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 100 Continue\r\n\r\n" + head + "Content-Length: 2\r\n\r\n{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > directBuffer {
			return
		}
		req := &http.Request{Method: http.MethodPost}
		got, rest := asPlain(data, req)
		if got == nil {
			if left, err := io.ReadAll(rest); err != nil || !bytes.Equal(left, data) {
				t.Fatalf("%q is not plain, and %q, %v is left; want all of it", data, left, err)
			}
			return
		}
		ref := bufio.NewReaderSize(bytes.NewReader(data), directBuffer)
		want, err := http.ReadResponse(ref, req)
		if err != nil {
			t.Fatalf("%q is read as plain, and net/http says %v", data, err)
		}
		for _, name := range []string{"Content-Type", mcp.HeaderSessionID} {
			if got.Header.Get(name) != want.Header.Get(name) {
				t.Errorf("%q: %s is %q, want %q", data, name, got.Header.Get(name), want.Header.Get(name))
			}
		}
		for name := range want.Header {
			if name == "Retry-After" || name == "Www-Authenticate" || name == "Dpop-Nonce" || name == "Location" || name == "Content-Encoding" {
				t.Errorf("%q is read as plain although it has %s", data, name)
			}
		}
		if got.StatusCode != want.StatusCode || got.ContentLength != want.ContentLength || got.Close != want.Close || (got.ContentLength < 0) != slices.Equal(want.TransferEncoding, []string{"chunked"}) {
			t.Errorf("%q is %d, %d bytes, close %v; want %d, %d bytes, close %v, encoding %v", data, got.StatusCode, got.ContentLength, got.Close, want.StatusCode, want.ContentLength, want.Close, want.TransferEncoding)
		}
		text, gerr := io.ReadAll(got.Body)
		wanted, werr := io.ReadAll(want.Body)
		behind, _ := io.ReadAll(rest)
		// Trailers are left unread, good or bad, so that the connection is closed.
		trailer := got.ContentLength < 0 && gerr == nil && len(behind) > 0 && (werr != nil || len(want.Trailer) > 0)
		if !bytes.Equal(text, wanted) || (gerr == nil) != (werr == nil) && !trailer {
			t.Errorf("%q has the body %q, %v; want %q, %v", data, text, gerr, wanted, werr)
		}
		if want, _ := io.ReadAll(ref); gerr == nil && !trailer && !bytes.Equal(behind, want) {
			t.Errorf("%q: %q is left behind the answer, want %q", data, behind, want)
		}
	})
}

// answersWith answers every request on a connection with the same bytes.
func answersWith(t testing.TB, answer string) *http.Request {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// A connection is used again after a plain answer, and not after one that was not read to its
// end; an answer cannot be read once it was closed, when the connection may have the next one.
func TestPlainAnswers(t *testing.T) {
	body := strings.Repeat("x", 3000)
	req := answersWith(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
	defer d.CloseIdleConnections()
	post := func() *http.Response {
		t.Helper()
		r := req.Clone(t.Context())
		r.Body = newRawBody([]byte("{}"))
		resp, err := d.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	idle := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.idle[origin{"http", req.URL.Host}])
	}
	first := post()
	if text, err := io.ReadAll(first.Body); err != nil || string(text) != body {
		t.Errorf("the body has %d bytes, %v; want %d", len(text), err, len(body))
	}
	_ = first.Body.Close()
	if n := idle(); n != 1 {
		t.Errorf("%d connections are kept, want the one", n)
	}
	second := post()
	if n, err := first.Body.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("Read of the first body, once it was closed, = %d, %v; want an error", n, err)
	}
	if _, err := io.ReadFull(second.Body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_ = second.Body.Close()
	if n := idle(); n != 0 {
		t.Errorf("%d connections are kept with an answer that was not read, want none", n)
	}
}

func BenchmarkAnswer(b *testing.B) {
	for name, more := range map[string]string{"plain": "", "net/http": "X-Other: 1\r\n"} {
		b.Run(name, func(b *testing.B) {
			answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Thu, 26 Nov 2026 10:00:00 GMT\r\n" + more + "Content-Length: 2\r\n\r\n{}")
			in := bytes.NewReader(answer)
			c := &directConn{left: maxHeaderRead, r: bufio.NewReaderSize(in, directBuffer)}
			req := &http.Request{Method: http.MethodPost}
			b.ReportAllocs()
			for b.Loop() {
				in.Reset(answer)
				c.r.Reset(in)
				resp := c.plain(req)
				if resp == nil {
					var err error
					if resp, err = http.ReadResponse(c.r, req); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
