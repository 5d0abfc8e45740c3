package fastpath_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fastpath"
)

// echo answers with everything that it gets, in the way that the path names.
func echo(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if r.URL.Path == "/panic" {
		panic("on purpose")
	}
	if r.URL.Path == "/unread" {
		h.Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("not read"))
		return
	}
	body, err := io.ReadAll(r.Body)
	r.Header = r.Header.Clone()
	r.Header.Del("Content-Length") // the fast path leaves it out
	seen, merr := json.Marshal(map[string]any{
		"method": r.Method, "url": r.URL.String(), "uri": r.RequestURI, "host": r.Host, "header": r.Header, "length": r.ContentLength,
		"proto": r.Proto, "te": r.TransferEncoding, "close": r.Close, "body": string(body), "error": fmt.Sprint(err), "remote": r.RemoteAddr, "form": r.Form == nil,
	})
	if merr != nil {
		panic(merr)
	}
	switch r.URL.Path {
	case "/announced":
		h.Set("Content-Length", fmt.Sprint(len(seen)))
	case "/short":
		h.Set("Content-Length", fmt.Sprint(len(seen)+1))
	case "/long":
		h.Set("Content-Length", "1")
	case "/typed":
		h.Set("Content-Type", "application/json")
	case "/untyped":
		h["Content-Type"] = nil
	case "/empty":
		w.WriteHeader(http.StatusAccepted)
		return
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		if _, err := w.Write(seen); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
		return
	case "/nothing":
		return
	case "/strange":
		h.Set("X-Breaks", "a\r\nX-Smuggled: b")
		h["bad name"] = []string{"x"}
		h["x-lower"] = []string{" padded "}
		w.WriteHeader(599)
		w.WriteHeader(http.StatusOK) // too late
	case "/closing":
		h.Set("Connection", "close")
	case "/dated":
		h.Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
	case "/large":
		seen = bytes.Repeat(seen, 1+40_000/len(seen))
		seen = append(seen, bytes.Repeat([]byte{'x'}, 40_000-len(seen)%40_000)...)
	case "/large/announced":
		seen = bytes.Repeat([]byte("0123456789"), 10_000)
		h.Set("Content-Length", "100000")
	case "/pieces":
		for i := range 50 {
			_, _ = fmt.Fprintf(w, "piece %d of many, which are small\n", i)
		}
	case "/stream":
		h.Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			if err := rc.Flush(); err != nil {
				panic(err)
			}
		}
		return
	case "/flushed":
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
	case "/abort":
		_, _ = w.Write(bytes.Repeat([]byte("x"), 5000))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/late":
		w.WriteHeader(http.StatusOK)
		h.Set("Content-Type", "text/html")
		h.Set("Content-Encoding", "x")
		h.Set("Connection", "close")
		h.Set("X-Late", "x")
	case "/connected":
		h.Set("Connection", "X-A")
	case "/connected/closing":
		h.Set("Connection", "X-A, close")
	case "/unmodified":
		h.Set("Content-Length", "5")
		w.WriteHeader(http.StatusNotModified)
		return
	case "/none/announced":
		h.Set("Content-Length", "5")
		w.WriteHeader(http.StatusNoContent)
		return
	case "/early":
		w.WriteHeader(http.StatusEarlyHints)
	}
	_, _ = w.Write(seen)
}

// answered is an answer as a client sees it.
type answered struct {
	Status  string
	Header  http.Header
	Length  int64
	Chunked []string
	Close   bool
	Body    string
	Err     string
}

// answers parses everything that a server has sent. The last one has in Err how that ended, if
// it is not an answer.
func answers(raw []byte, method string) (out []answered) {
	in := bufio.NewReader(bytes.NewReader(raw))
	for {
		if _, err := in.Peek(1); err != nil {
			return out
		}
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			rest, _ := io.ReadAll(in)
			return append(out, answered{Err: err.Error() + ": " + string(rest)})
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode == http.StatusEarlyHints {
			continue
		}
		if resp.Header.Get("Date") != "Mon, 02 Jan 2006 15:04:05 GMT" && resp.Header.Get("Date") != "" {
			resp.Header.Set("Date", "now")
		}
		out = append(out, answered{resp.Status, resp.Header, resp.ContentLength, resp.TransferEncoding, resp.Close, string(body), fmt.Sprint(err)})
	}
}

func post(path, body string, fields ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost:8787\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, strings.Join(fields, ""), len(body), body)
}

// cases are the bytes of connections, by what is special about them.
func cases() map[string]string {
	out := map[string]string{
		"one":                     post("/a", `{"a":1}`),
		"the same thrice":         strings.Repeat(post("/a", `{"a":1}`), 3),
		"other lengths":           post("/a", "") + post("/a", "x") + post("/a", strings.Repeat("x", 20_000)) + post("/a", "xy"),
		"other fields":            post("/a", "1", "Mcp-Name: x\r\n") + post("/a", "2", "Mcp-Name: y\r\n") + post("/a", "3", "Mcp-Name: x\r\n"),
		"six heads":               post("/1", "1") + post("/2", "2") + post("/3", "3") + post("/4", "4") + post("/5", "5") + post("/6", "6") + post("/1", "1"),
		"a path that is not its":  post("/a", "1") + post("/slow", "2") + post("/a", "3"),
		"then a GET":              post("/a", "1") + "GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n" + post("/a", "2"),
		"no host":                 "POST /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
		"two hosts":               post("/a", "x", "Host: b\r\n"),
		"an odd host":             "POST /a HTTP/1.1\r\nHost: a b\r\nContent-Length: 1\r\n\r\nx",
		"an empty host":           "POST /a HTTP/1.1\r\nHost:\r\nContent-Length: 1\r\n\r\nx",
		"two lengths":             post("/a", "x", "Content-Length: 1\r\n"),
		"different lengths":       post("/a", "x", "content-length: 2\r\n") + "y",
		"a signed length":         "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
		"a negative length":       "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx",
		"a padded length":         "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 01\r\n\r\nx",
		"a spaced length":         "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length:  \t 1 \r\n\r\nx",
		"a listed length":         "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
		"a huge length":           "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nx",
		"chunks":                  "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + post("/a", "2"),
		"chunks and a length":     post("/a", "x", "Transfer-Encoding: chunked\r\n"),
		"an odd encoding":         post("/a", "x", "Transfer-Encoding: xchunked\r\n"),
		"expect":                  post("/a", "x", "Expect: 100-continue\r\n"),
		"expect else":             post("/a", "x", "Expect: 200-ok\r\n"),
		"an upgrade":              post("/a", "x", "Connection: upgrade\r\nUpgrade: h2c\r\n"),
		"asks to close":           post("/a", "x", "Connection: close\r\n") + post("/a", "y"),
		"asks to stay":            post("/a", "x", "Connection: Keep-Alive\r\n") + post("/a", "y"),
		"version 1.0":             strings.ReplaceAll(post("/a", "x"), "HTTP/1.1", "HTTP/1.0"),
		"version 1.2":             strings.ReplaceAll(post("/a", "x"), "HTTP/1.1", "HTTP/1.2"),
		"version 2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"line feeds alone":        strings.ReplaceAll(post("/a", "x"), "\r\n", "\n"),
		"one line feed alone":     strings.Replace(post("/a", "x"), "8787\r\n", "8787\n", 1),
		"a return in a value":     post("/a", "x", "X-A: a\rb\r\n"),
		"a zero in a value":       post("/a", "x", "X-A: a\x00b\r\n"),
		"letters of others":       post("/a", "x", "X-A: \xc3\xa4\r\n"),
		"a folded field":          post("/a", "x", "X-A: a\r\n b\r\n"),
		"a space before a colon":  post("/a", "x", "X-A : a\r\n"),
		"no name":                 post("/a", "x", ": a\r\n"),
		"no colon":                post("/a", "x", "X-A\r\n"),
		"an odd name":             post("/a", "x", "X(A): a\r\n"),
		"a token as name":         post("/a", "x", "X!#$%&'*+.^`|~: a\r\n"),
		"names twice":             post("/a", "x", "X-A: 1\r\nx-a: 2\r\n"),
		"names in other cases":    post("/a", "x", "aCCept: 1\r\nX_Y: 2\r\n"),
		"an empty field":          post("/a", "x", "X-A:\r\n"),
		"a query":                 post("/a?b=c&d", "x"),
		"an escaped path":         post("/a%2fb", "x"),
		"a bad escape":            post("/a%zz", "x"),
		"dots":                    post("/../a", "x") + post("//a", "x"),
		"a whole URL":             post("http://localhost:8787/a", "x"),
		"no path":                 post("*", "x"),
		"spaces in the path":      post("/a b", "x"),
		"a fragment":              post("/a#b", "x"),
		"a small method":          strings.Replace(post("/a", "x"), "POST", "post", 1),
		"another method":          strings.Replace(post("/a", "x"), "POST", "PUT", 1),
		"a space more":            strings.Replace(post("/a", "x"), "POST ", "POST  ", 1),
		"an empty line first":     "\r\n" + post("/a", "x"),
		"a long head":             post("/a", "x", "X-A: "+strings.Repeat("a", 10_000)+"\r\n"),
		"a head that is too long": post("/a", "x", "X-A: "+strings.Repeat("a", 50_000)+"\r\n"),
		"many fields":             post("/a", "x", manyFields(40)),
		"half a head":             "POST /a HTTP/1.1\r\nHost: a\r\n",
		"half a method":           "POS",
		"nothing at all":          "",
		"half a body":             post("/a", "x")[:len(post("/a", "xyz"))-3] + "",
		"a body cut off":          strings.TrimSuffix(post("/a", "xyz"), "z"),
		"line ends behind":        post("/a", "x") + "\r\n" + post("/a", "y") + "\r\n",
		"many line ends":          post("/a", "x") + "\r\n\r\n\r\n" + post("/a", "y"),
		"more than the body":      post("/a", "x") + "y",
		"a cut body not read":     strings.TrimSuffix(post("/unread", "xyz"), "z"),
		"a body not read":         post("/unread", "x") + post("/a", "y"),
		"much that is not read":   post("/unread", strings.Repeat("x", 200_000)) + post("/a", "y"),
		"too much is not read":    post("/unread", strings.Repeat("x", 300_000)) + post("/a", "y"),
		"a cookie":                post("/a", "x", "Cookie: a=b; c=d\r\nAuthorization: Bearer x\r\nPragma: no-cache\r\n"),
	}
	for _, path := range []string{"announced", "short", "typed", "untyped", "empty", "none", "nothing", "strange", "closing", "dated", "large", "large/announced", "pieces", "stream", "flushed", "abort", "early", "panic", "long", "late", "connected", "connected/closing", "unmodified", "none/announced"} {
		out["answers: "+path] = post("/"+path, "x") + post("/a", "y")
	}
	return out
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: %d\r\n", i, i)
	}
	return b.String()
}

// A client cannot tell whether the fast path or net/http has served it, whatever it sends, and in
// whatever pieces that arrives; nor can a handler.
func TestRoadsAreEqual(t *testing.T) {
	h := http.HandlerFunc(echo)
	slow, fast := newRoad(t, false, h), newRoad(t, true, h)
	for name, sent := range cases() {
		want := answers(slow.exchange([]byte(sent), 0), http.MethodPost)
		for _, pieces := range []int{0, 1, 7, 100, 4096} {
			if pieces == 1 && len(sent) > 20_000 {
				continue
			}
			got := answers(fast.exchange([]byte(sent), pieces), http.MethodPost)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, in pieces of %d: got\n%.2000s\nwant\n%.2000s", name, pieces, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
				break
			}
		}
	}
}

// The fast path itself serves what it is for: otherwise the comparisons compare net/http with itself.
func TestLaneServes(t *testing.T) {
	var served int
	r := newRoad(t, true, http.HandlerFunc(echo), func(c *fastpath.Config) {
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served++
			echo(w, r)
		})
	})
	all := cases()
	for name, want := range map[string]int{"one": 1, "the same thrice": 3, "other lengths": 4, "other fields": 3, "six heads": 7, "a path that is not its": 1, "then a GET": 1, "a token as name": 0, "chunks": 0, "answers: stream": 2} {
		served = 0
		r.exchange([]byte(all[name]), 0)
		if served != want {
			t.Errorf("%s: the fast path has served %d requests, want %d", name, served, want)
		}
	}
}
