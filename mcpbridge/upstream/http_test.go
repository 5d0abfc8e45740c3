package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

// sdkServer is a foreign server: the official SDK's.
func sdkServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "adds"}, func(ctx context.Context, req *sdk.CallToolRequest, in addIn) (*sdk.CallToolResult, any, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			for i := range 3 {
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 3})
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(in.A + in.B)}}}, nil, nil
	})
	return s
}

// listenAt serves h on an address until stop is called; it can be served again.
func listenAt(t *testing.T, addr string, h http.Handler) (string, func()) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			_ = srv.Close()
			<-done
		})
	}
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func sdkHandler(stateless bool) http.Handler {
	s := sdkServer()
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless})
}

func remote(name, url string) servers.Server {
	return servers.Server{Name: name, Transport: servers.HTTP, URL: url, FallBackToSSE: true}
}

// Foreign servers over every HTTP transport and era.
func TestForeignServers(t *testing.T) {
	r := newRig(t)
	stateful, _ := listenAt(t, "127.0.0.1:0", sdkHandler(false))
	stateless, _ := listenAt(t, "127.0.0.1:0", sdkHandler(true))
	goServer := mcpserver.NewMCPServer("mcp-go", "1")
	goServer.AddTool(mcpgo.NewTool("add"), func(_ context.Context, req mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(fmt.Sprint(req.GetInt("a", 0) + req.GetInt("b", 0))), nil
	})
	both, _ := listenAt(t, "127.0.0.1:0", mcpserver.NewStreamableHTTPServer(goServer))
	legacy := httptest.NewUnstartedServer(nil)
	legacy.Config.Handler = mcpserver.NewSSEServer(goServer, mcpserver.WithBaseURL("http://"+legacy.Listener.Addr().String()))
	legacy.Start()
	t.Cleanup(legacy.CloseClientConnections)

	r.add(remote("stateful", "http://"+stateful))
	r.add(remote("stateless", "http://"+stateless))
	r.add(remote("mcpgo", "http://"+both+"/mcp"))
	r.add(servers.Server{Name: "sse", Transport: servers.SSE, URL: legacy.URL + "/sse"})
	fall := remote("fallback", legacy.URL+"/sse") // POST to it is refused: it speaks HTTP+SSE only
	r.add(fall)
	r.host.Boundary(t.Context())
	for name, era := range map[string]string{"stateful": "legacy", "stateless": "modern", "mcpgo": "modern", "sse": "legacy", "fallback": "legacy"} {
		st := r.ready(name)
		d := st.Detail.(upstream.Detail)
		if string(d.Peer.Era) != era {
			t.Errorf("%s: era %s, want %s", name, d.Peer.Era, era)
		}
		if got := native(t, r.call(name+"__add", `{"a":2,"b":3}`)); !strings.Contains(got, `"text":"5"`) {
			t.Errorf("%s: got %s, want %q in it", name, got, `"text":"5"`)
		}
	}
	if d := r.status("fallback").Detail.(upstream.Detail); d.Transport != servers.SSE {
		t.Errorf("fallback speaks %s", d.Transport)
	}
	for _, name := range []string{"stateful", "stateless"} {
		var n atomic.Int32
		r.callAs("c", name+"__add", `{"name":"x","arguments":{"a":1,"b":1},"_meta":{"progressToken":1}}`, func(tool.Progress) { n.Add(1) })
		if n.Load() != 3 {
			t.Errorf("%s: %d progress notes, want 3", name, n.Load())
		}
	}
	if err := r.host.Close(t.Context()); err != nil { // before the SSE server, whose streams would stay
		t.Errorf("Close of the host = %v, want no error", err)
	}
	legacy.Close()
}

// The HTTP upstream is restarted during a client's session: the next call
// succeeds.
func TestHTTPUpstreamRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, stateless := range []bool{false, true} {
		for _, session := range []string{"", servers.Shared} {
			t.Run(fmt.Sprintf("stateless=%v session=%s", stateless, session), func(t *testing.T) {
				r := newRig(t)
				addr, stop := listenAt(t, freeport.Addr(t), sdkHandler(stateless))
				s := remote("srv", "http://"+addr)
				s.Session = session
				r.add(s)
				r.ready("srv")
				for range 3 {
					if got := native(t, r.callAs("client", "srv__add", `{"name":"x","arguments":{"a":2,"b":3}}`, nil)); !strings.Contains(got, `"5"`) {
						t.Fatalf("got %v, want %q in it", got, `"5"`)
					}
					stop()
					if res := r.callAs("client", "srv__add", `{"name":"x","arguments":{"a":2,"b":3}}`, nil); res.OK || !strings.Contains(res.Text(), "srv") {
						t.Errorf("while it is down: %+v", res)
					}
					_, stop = listenAt(t, addr, sdkHandler(stateless))
					if got := native(t, r.callAs("client", "srv__add", `{"name":"x","arguments":{"a":2,"b":3}}`, nil)); !strings.Contains(got, `"5"`) {
						t.Fatalf("got %v, want %q in it", got, `"5"`)
					}
				}
			})
		}
	}
}

// A restart between two calls in quick succession, on connections that were in
// use a moment ago.
func TestQuickHTTPRestart(t *testing.T) {
	r := newRig(t)
	addr, stop := listenAt(t, freeport.Addr(t), sdkHandler(true))
	r.add(remote("srv", "http://"+addr))
	r.ready("srv")
	for i := range 10 {
		if got := native(t, r.callAs("client", "srv__add", `{"name":"x","arguments":{"a":2,"b":3}}`, nil)); !strings.Contains(got, `"5"`) {
			t.Fatalf("call %d: %s", i, got)
		}
		stop()
		_, stop = listenAt(t, addr, sdkHandler(true))
	}
}

// A quick restart that nobody notices but by the lost session.
func TestSessionForgotten(t *testing.T) {
	r := newRig(t)
	var h atomic.Pointer[http.Handler]
	set := func() { x := sdkHandler(false); h.Store(&x) }
	set()
	addr, _ := listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { (*h.Load()).ServeHTTP(w, req) }))
	for _, session := range []string{servers.Shared, servers.PerClient} {
		s := remote(session, "http://"+addr)
		s.Session = session
		r.add(s)
		r.ready(session)
		r.callAs("client", session+"__add", `{"name":"x","arguments":{"a":2,"b":3}}`, nil)
		set()
		if got := native(t, r.callAs("client", session+"__add", `{"name":"x","arguments":{"a":2,"b":3}}`, nil)); !strings.Contains(got, `"5"`) {
			t.Errorf("%s: got %s, want %q in it", session, got, `"5"`)
		}
	}
}

// handshake answers as a legacy server and leaves the calls to f.
func handshake(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) //nolint:forbidigo // bounded
		id := "1"
		if _, after, ok := strings.Cut(string(body), `"id":`); ok {
			id, _, _ = strings.Cut(after, ",")
		}
		answer := func(s string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, id, s)
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(string(body), "server/discover"):
			answer(`"error":{"code":-32601,"message":"no"}`)
		case strings.Contains(string(body), `"initialize"`):
			answer(`"result":` + initResult)
		case strings.Contains(string(body), "notifications/"):
			w.WriteHeader(http.StatusAccepted)
		case strings.Contains(string(body), "tools/list"):
			answer(`"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
		default:
			r.Header.Set("X-Test-Id", id)
			f(w, r)
		}
	}
}

// UP-23, UP-29: hostile HTTP servers are bounded, explained, and get no
// credentials that are not theirs.
func TestHostileHTTPServers(t *testing.T) {
	r := newRig(t)
	var canary atomic.Int32
	other, _ := listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { canary.Add(1) }))
	sse := func(w http.ResponseWriter) func(string) {
		w.Header().Set("Content-Type", "text/event-stream")
		return func(s string) {
			_, _ = io.WriteString(w, s)
			_ = http.NewResponseController(w).Flush()
		}
	}
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"redirect": {func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://"+other+"/steal", http.StatusTemporaryRedirect)
		}, "another origin"},
		"html": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>login</html>") }, `"text/html; charset=utf-8" instead of JSON`},
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "kaput\x1b[31m", http.StatusInternalServerError)
		}, `HTTP 500 Internal Server Error: kaput\u{1b}`},
		"unauth": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "does not accept the credentials"},
		"nojson": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
		}, "malformed answer"},
		"otherid": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":424242,"result":{}}`)
		}, "has the id of another request"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Repeat("x", 9<<20))
		}, "its answer is larger than 8 MiB; raise the setting servers.max_message_bytes"},
		"breaksoff": {func(w http.ResponseWriter, _ *http.Request) { sse(w)("data: {\n") }, "broke off"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			say := sse(w)
			say("data: ")
			for range 10 {
				say(strings.Repeat("x", 1<<20))
			}
		}, "its answer is larger than 8 MiB; raise the setting servers.max_message_bytes"},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) {
			say := sse(w)
			for range 100 {
				say("data: nonsense\n\n")
			}
		}, "not JSON-RPC"},
		"trickle": {func(w http.ResponseWriter, req *http.Request) {
			say := sse(w)
			for req.Context().Err() == nil {
				say(": still here\n")
				time.Sleep(20 * time.Millisecond)
			}
		}, "did not answer within 2s"},
	} {
		addr, _ := listenAt(t, "127.0.0.1:0", handshake(tc.h))
		s := remote(name, "http://"+addr+"/mcp")
		s.Session, s.CallTimeout = servers.Shared, eventually.Limit
		if name == "trickle" {
			s.CallTimeout = 2 * time.Second
		}
		s.Headers = map[string]string{"Authorization": "Bearer secret"}
		r.add(s)
		r.ready(name)
		res := r.call(name+"__t", `{}`)
		if res.OK || !strings.Contains(res.Text(), tc.want) || !strings.Contains(res.Text(), fmt.Sprintf("server %q", name)) {
			t.Errorf("%s: got %q, want %q", name, res.Text(), tc.want)
		}
		if strings.Contains(res.Text(), "secret") {
			t.Errorf("%s: the error tells the secret", name)
		}
	}
	if canary.Load() != 0 {
		t.Error("a redirect to another origin was followed")
	}
}

// LD-08: a thousand callers of a server that is overloaded, broken or silent ask it
// at most as often as they call: nothing is asked again, and it is left alone
// after a while.
func TestFailuresAreNotMultiplied(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter, r *http.Request){
		"429": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			http.Error(w, "later", http.StatusTooManyRequests)
		},
		"500":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) },
		"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var calls atomic.Int64
			foreign := sdkHandler(true)
			addr, _ := listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Mcp-Method") == "tools/call" {
					calls.Add(1)
					_, _ = io.Copy(io.Discard, req.Body)
					fail(w, req)
					return
				}
				foreign.ServeHTTP(w, req)
			}))
			s := remote("srv", "http://"+addr)
			s.CallTimeout = eventually.Limit
			if name == "silence" {
				s.CallTimeout = 2 * time.Second
			}
			r.add(s)
			r.ready("srv")
			var callers sync.WaitGroup
			var good atomic.Int64
			for n := range 1000 {
				callers.Go(func() {
					if res := r.callAs(fmt.Sprint("client", n%50), "srv__add", `{"name":"x","arguments":{"a":1,"b":1}}`, nil); res.OK {
						good.Add(1)
					}
				})
			}
			callers.Wait()
			if n := calls.Load(); n == 0 || n > 1000 || good.Load() != 0 {
				t.Errorf("1000 calls became %d, of which %d were answered", n, good.Load())
			}
		})
	}
}

// A server that cannot be reached says so, and is found when it comes.
func TestServerThatComesLater(t *testing.T) {
	r := newRig(t)
	addr, stop := listenAt(t, freeport.Addr(t), http.NotFoundHandler())
	stop()
	r.add(remote("srv", "http://"+addr))
	r.host.Boundary(t.Context())
	if st := r.status("srv"); st.State != feature.Failed || !strings.Contains(st.Reason, "cannot connect") {
		t.Errorf("status: %+v", st)
	}
	listenAt(t, addr, sdkHandler(false))
	r.ready("srv")
	if n := r.host.Boundary(t.Context()).Len(); n != 1 {
		t.Errorf("%d tools", n)
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), 8)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + limit&0x3ffff
		var got []string
		lost := 0
		err := upstream.ReadLines(strings.NewReader(string(data)), limit, func(line []byte, _ *bufpool.Buffer) error {
			if len(line) == 0 || strings.ContainsRune(string(line), '\n') {
				t.Fatalf("line %q", line)
			}
			got = append(got, string(line))
			return nil
		}, func(_, tail []byte) bool {
			if tail != nil {
				lost++
			}
			return false
		})
		if err == nil {
			t.Fatal("the end is not reported")
		}
		if err != io.EOF { //nolint:errorlint // the very end of the input, unwrapped
			return
		}
		var want []string
		whole := string(data)
		for l := range strings.SplitSeq(whole[:strings.LastIndexByte(whole, '\n')+1], "\n") {
			switch n := len(l) + 1; {
			case n > limit:
				lost--
			case strings.TrimSpace(l) != "":
				want = append(want, strings.TrimSpace(l))
			}
		}
		if lost != 0 {
			t.Fatalf("told of %d lines too many that are above the limit", lost)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
