package stdioproxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge/stdioproxy"
)

const (
	hello  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`
	joined = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// daemon is an MCP endpoint in memory. Its requests are in seen, as "METHOD what".
type daemon struct {
	t      *testing.T
	answer func(ctx context.Context, id json.RawMessage, method string) *http.Response // of other methods than initialize

	mu       sync.Mutex
	away     bool
	shaking  func() error // called for each initialize; nil does nothing
	sessions int          // that it has had
	session  string       // the one that it knows
	stream   *io.PipeWriter
	seen     []string
}

func reply(status int, kind, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func result(id json.RawMessage, text string) *http.Response {
	return reply(200, "application/json", fmt.Sprintf("{\"jsonrpc\":\"2.0\",\n\"id\":%s,\"result\":%q}", id, text))
}

func (d *daemon) RoundTrip(r *http.Request) (*http.Response, error) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &m); err != nil {
			d.t.Errorf("the daemon got %q: %v", body, err)
		}
	}
	d.mu.Lock()
	if d.away {
		d.mu.Unlock()
		return nil, &net.OpError{Op: "dial", Err: errors.New("nobody listens")}
	}
	if shaking := d.shaking; m.Method == "initialize" && shaking != nil {
		d.mu.Unlock()
		if err := shaking(); err != nil {
			return nil, err
		}
		d.mu.Lock()
	}
	session := r.Header.Get("Mcp-Session-Id")
	d.seen = append(d.seen, strings.TrimSpace(r.Method+" "+m.Method))
	known := session == d.session
	if m.Method == "initialize" {
		d.sessions++
		d.session = fmt.Sprint("s", d.sessions)
		resp := result(m.ID, d.session)
		resp.Header.Set("Mcp-Session-Id", d.session)
		d.mu.Unlock()
		return resp, nil
	}
	if r.Method == http.MethodGet && known {
		body, stream := io.Pipe()
		d.stream = stream
		context.AfterFunc(r.Context(), func() { _ = stream.CloseWithError(r.Context().Err()) })
		d.mu.Unlock()
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, ContentLength: -1}, nil
	}
	d.mu.Unlock()
	switch {
	case !known:
		return reply(404, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}`), nil
	case r.Method == http.MethodDelete:
		return reply(204, "", ""), nil
	case m.ID == nil:
		return reply(202, "", ""), nil
	}
	resp := d.answer(r.Context(), m.ID, m.Method)
	if resp == nil {
		return nil, io.EOF
	}
	return resp, nil
}

// restart ends the daemon's stream and forgets its session, as a restart does.
func (d *daemon) restart(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away, d.session = away, "none"
	_ = d.stream.Close()
}

func (d *daemon) asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

// rig is a client whose lines go through a proxy to a daemon.
type rig struct {
	*daemon
	in   *io.PipeWriter
	mu   sync.Mutex
	out  bytes.Buffer
	stop context.CancelFunc
	done chan error
}

func (r *rig) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

// start runs a proxy; the client has introduced itself.
func start(t *testing.T, answer func(ctx context.Context, id json.RawMessage, method string) *http.Response) *rig {
	r := begin(t, answer)
	r.wants(t, "the handshake", r.says(t, hello, joined), `{"jsonrpc":"2.0", "id":0,"result":"s1"}`)
	return r
}

// begin runs a proxy.
func begin(t *testing.T, answer func(ctx context.Context, id json.RawMessage, method string) *http.Response) *rig {
	ctx, stop := context.WithCancel(t.Context())
	in, w := io.Pipe()
	r := &rig{daemon: &daemon{t: t, answer: answer}, in: w, stop: stop, done: make(chan error, 1)}
	cfg := stdioproxy.Config{Client: &http.Client{Transport: r.daemon}, URL: "http://yaya/mcp", Refusal: func(resp *http.Response) (string, bool) {
		return "you are a stranger", resp.Header.Get("Content-Type") == "text/plain"
	}}
	go func() { r.done <- stdioproxy.Serve(ctx, cfg, in, r) }()
	t.Cleanup(func() {
		_ = w.Close()
		stop()
	})
	return r
}

// says sends lines and returns what has come once nothing moves.
func (r *rig) says(t *testing.T, lines ...string) []string {
	t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(r.in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	return r.heard()
}

func (r *rig) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.out.String()
	r.out.Reset()
	return strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })
}

func (r *rig) wants(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func echo(_ context.Context, id json.RawMessage, method string) *http.Response {
	return result(id, method)
}

func TestRequestAndAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		r := start(t, func(ctx context.Context, id json.RawMessage, method string) *http.Response {
			switch method {
			case "slow":
				<-slow
			case "told":
				return reply(200, "text/event-stream", "id: 1\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+string(id)+",\"result\":1}\n\n")
			}
			return echo(ctx, id, method)
		})
		r.wants(t, "a request", r.says(t, `{"jsonrpc":"2.0","id":"a b","method":"ping"}`), `{"jsonrpc":"2.0", "id":"a b","result":"ping"}`)
		r.wants(t, "a request beside one that takes longer", r.says(t, `{"jsonrpc":"2.0","id":1,"method":"slow"}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`), `{"jsonrpc":"2.0", "id":2,"result":"ping"}`)
		close(slow)
		synctest.Wait()
		r.wants(t, "the longer one", r.heard(), `{"jsonrpc":"2.0", "id":1,"result":"slow"}`)
		r.wants(t, "an answer in several events", r.says(t, `{"jsonrpc":"2.0","id":3,"method":"told"}`), `{"jsonrpc":"2.0","method":"notifications/progress"}`, `{"jsonrpc":"2.0", "id":3,"result":1}`)
		r.wants(t, "a notification", r.says(t, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`))
		if _, err := io.WriteString(r.stream, "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}\n\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.wants(t, "a message that nobody asked for", r.heard(), `{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
		_ = r.in.Close()
		if err := <-r.done; err != nil {
			t.Errorf("Serve() = %v at the end of the input, want nil", err)
		}
		if seen := r.asked(); seen[len(seen)-1] != "DELETE" {
			t.Errorf("the daemon was asked %q, want the session deleted at the end", seen)
		}
	})
}

// A large answer passes while it comes; when it breaks off, its line ends.
func TestLargeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rest *io.PipeWriter
		r := start(t, func(_ context.Context, id json.RawMessage, method string) *http.Response {
			if method == "ping" {
				return echo(t.Context(), id, method)
			}
			body, w := io.Pipe()
			rest = w
			go func() { _, _ = fmt.Fprintf(w, "{\"jsonrpc\":\"2.0\",\n\"id\":%s,\"result\":\"", id) }()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: 8 << 20}
		})
		r.wants(t, "the beginning", r.says(t, `{"jsonrpc":"2.0","id":1,"method":"large"}`), `{"jsonrpc":"2.0", "id":1,"result":"`)
		_ = rest.CloseWithError(errors.New("gone"))
		synctest.Wait()
		got := r.heard()
		if len(got) != 1 || !strings.Contains(got[0], `"id":1,"error":`) || !strings.Contains(got[0], "gone") {
			t.Errorf("after the answer broke off: got %q, want an error of request 1", got)
		}
		r.wants(t, "the next request", r.says(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`), `{"jsonrpc":"2.0", "id":2,"result":"ping"}`)
	})
}

// A daemon that ends while it works may have done what it was asked for: the client is told
// so, but for requests that change nothing.
func TestDaemonEndsDuringARequest(t *testing.T) {
	const effect = "the call may or may not have taken effect"
	for method, want := range map[string]bool{"tools/call": true, "x.example/begin": true, "tools/list": false, "resources/read": false, "ping": false} {
		for how, answer := range map[string]func() *http.Response{
			"in the middle of its answer": func() *http.Response {
				body, w := io.Pipe()
				go func() { _ = w.CloseWithError(io.ErrUnexpectedEOF) }()
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, ContentLength: -1}
			},
			"without an answer": func() *http.Response { return nil },
		} {
			t.Run(method+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := start(t, func(context.Context, json.RawMessage, string) *http.Response { return answer() })
					got := r.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":"x"}}`, method))
					if len(got) != 1 || !strings.Contains(got[0], `"id":1,"error":{"code":-32603,"message":"yaya's daemon broke off before it answered: `) || strings.Contains(got[0], effect) != want {
						t.Errorf("got %q, want one error that says that it broke off, and %q: %t", got, effect, want)
					}
				})
			})
		}
	}
}

func TestDaemonGoesAwayAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, echo)
		r.restart(true)
		got := r.says(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		if len(got) != 1 || !strings.Contains(got[0], `"id":1,"error":{"code":-32603,"message":"yaya's daemon cannot be reached: `) || !strings.Contains(got[0], "start it with 'yaya serve'") {
			t.Errorf("without a daemon: got %q, want one error that says how to start it", got)
		}
		r.daemon.mu.Lock()
		r.away, r.seen = false, nil
		r.daemon.mu.Unlock()
		var lines, want []string
		for id := range 5 {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0", "id":%d,"result":"ping"}`, id))
		}
		r.wants(t, "with the daemon back", r.says(t, lines...), want...)
		count := map[string]int{}
		for _, what := range r.asked() {
			count[what]++
		}
		if count["POST initialize"] != 1 || count["POST notifications/initialized"] != 1 || count["GET"] != 1 {
			t.Errorf("the daemon was asked %v, want the client introduced once, and one stream", count)
		}
		if _, err := io.WriteString(r.stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.wants(t, "the new stream", r.heard(), `{"jsonrpc":"2.0","method":"notifications/x"}`)
	})
}

// Requests wait while the client is introduced again, and one introduction that fails is
// not the last.
func TestRequestsWhileTheClientIsIntroducedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, echo)
		held := make(chan error)
		r.daemon.mu.Lock()
		r.shaking = func() error { return <-held }
		r.daemon.mu.Unlock()
		r.restart(false)
		r.wants(t, "before the handshake", r.says(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`))
		r.wants(t, "during the handshake", r.says(t, `{"jsonrpc":"2.0","id":3,"method":"ping"}`))
		held <- errors.New("nobody listens")
		synctest.Wait()
		if got := r.heard(); len(got) != 1 || !strings.Contains(got[0], `"error":{"code":-32603,"message":"yaya's daemon cannot be reached: `) {
			t.Errorf("after a handshake that failed: got %q, want an error of one request", got)
		}
		r.daemon.mu.Lock()
		r.shaking = nil
		r.daemon.mu.Unlock()
		held <- nil
		synctest.Wait()
		got := r.heard()
		if len(got) != 2 || strings.Contains(strings.Join(got, ""), "error") {
			t.Errorf("after the handshake: got %q, want the results of two requests", got)
		}
	})
}

func TestRefusedLines(t *testing.T) {
	refuse := func(_ context.Context, id json.RawMessage, method string) *http.Response {
		switch method {
		case "stranger":
			return reply(403, "text/plain", "go away")
		case "nameless":
			return reply(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too deep"}}`)
		case "named":
			return reply(400, "application/json", `{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":-32602,"message":"no"}}`)
		}
		return reply(500, "application/json", `{}`)
	}
	for name, c := range map[string]struct {
		line, want string
		passed     bool // to the daemon
	}{
		"not JSON":             {`{`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message cannot be read: `, false},
		"an id in it":          {`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"the message cannot be read: `, false},
		"not a message":        {`{"x":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message cannot be read: `, false},
		"before the endpoint":  {`{"jsonrpc":"2.0","id":7,"method":"stranger"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"you are a stranger"}}`, true},
		"without its id":       {`{"jsonrpc":"2.0","id":7,"method":"nameless"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"too deep"}}`, true},
		"under its id":         {`{"jsonrpc":"2.0","id":7,"method":"named"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`, true},
		"without a word of it": {`{"jsonrpc":"2.0","id":7,"method":"other"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"yaya's daemon has refused the message: 500 Internal Server Error"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, refuse)
				before := len(r.asked())
				got := r.says(t, c.line)
				if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
					t.Errorf("%s: got %q, want one line that begins with %q", c.line, got, c.want)
				}
				if passed := len(r.asked()) > before; passed != c.passed {
					t.Errorf("%s: passed to the daemon: got %t, want %t", c.line, passed, c.passed)
				}
				r.wants(t, "the handshake after it", r.says(t, hello), `{"jsonrpc":"2.0", "id":0,"result":"s2"}`)
			})
		})
	}
}

// The end of the input, and that of the context, end the proxy: what is under way has a
// second after the one, and no time after the other.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		last string // what the client asks for before
		end  func(*rig)
		want time.Duration
	}{
		"the input ends":                       {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, func(r *rig) { _ = r.in.Close() }, time.Second},
		"the context ends":                     {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, func(r *rig) { r.stop() }, 0},
		"the input ends, and nothing is asked": {"", func(r *rig) { _ = r.in.Close() }, 0},
		"the input of a listener ends":         {`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`, func(r *rig) { _ = r.in.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, func(ctx context.Context, id json.RawMessage, method string) *http.Response {
					<-ctx.Done()
					return echo(ctx, id, method)
				})
				if c.last != "" {
					r.wants(t, "a request without an answer", r.says(t, c.last))
				}
				begin := time.Now()
				c.end(r)
				if err := <-r.done; err != nil {
					t.Errorf("Serve() = %v, want nil", err)
				}
				if took := time.Since(begin); took != c.want {
					t.Errorf("Serve() took %v to end, want %v", took, c.want)
				}
			})
		})
	}
}

// FID-5: a client may ping before it introduces itself, with a daemon as without.
func TestPingBeforeTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, echo)
		r.wants(t, "a ping", r.says(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`), `{"jsonrpc":"2.0","id":"p","result":{}}`)
		if got := r.asked(); len(got) != 0 {
			t.Errorf("the daemon was asked %q, want nothing: it does not know the client", got)
		}
		r.says(t, hello, joined)
		r.wants(t, "a ping afterwards", r.says(t, `{"jsonrpc":"2.0","id":"q","method":"ping"}`), `{"jsonrpc":"2.0", "id":"q","result":"ping"}`)
		_ = r.in.Close()
		if err := <-r.done; err != nil {
			t.Errorf("Serve() = %v, want nil", err)
		}
	})
}
