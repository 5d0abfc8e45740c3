package downstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bridged is a tool of a provider, as the relay sees it.
type bridged struct {
	def tool.Definition
	run func(ctx context.Context, c tool.Call) (tool.Result, error)
}

func (b *bridged) Definition() tool.Definition { return b.def }
func (b *bridged) ObeysContext()               {}
func (b *bridged) Invoke(ctx context.Context, c tool.Call) (tool.Result, error) {
	return b.run(ctx, c)
}

func relay(name string, run func(ctx context.Context, c tool.Call) (tool.Result, error)) *bridged {
	return &bridged{tool.Definition{
		Name: name, InputSchema: json.RawMessage(`{"type":"object"}`),
		Native: json.RawMessage(`{"name":"own","inputSchema":{"type":"object","$schema":"x"},"future":12345678901234567890}`),
	}, run}
}

func ok(raw string) (tool.Result, error) {
	o, err := jsonrpc.ParseObject([]byte(raw))
	return tool.Result{OK: true, Native: &tool.NativeResult{Result: o}}, err
}

type rig struct {
	t       testing.TB
	reg     *tool.Registry
	srv     *downstream.Server
	url     string
	changed func()

	mu    sync.Mutex
	ended []string
}

// owner says that every request is the owner's.
func owner(*http.Request) (tool.Caller, bool) { return tool.LocalOwner, true }

func newRig(t testing.TB, tools ...tool.Tool) *rig {
	t.Helper()
	r := &rig{t: t, reg: new(tool.Registry)}
	var ps []tool.Provided
	for _, x := range tools {
		ps = append(ps, tool.Provided{Tool: x})
	}
	if errs := r.reg.Replace("srv", ps); errs != nil {
		t.Fatal(errs)
	}
	r.srv = downstream.New(downstream.Config{
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: r.reg}), Registry: r.reg, Version: "test",
		Caller: owner,
		Watch: func(f func([]string)) func() {
			r.changed = func() { f([]string{"srv"}) }
			return func() {}
		},
		SessionEnded: func(s string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, s)
		},
	})
	hs := httptest.NewServer(r.srv)
	r.url = hs.URL
	t.Cleanup(func() {
		r.srv.Close()
		hs.Close()
	})
	return r
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (r *rig) send(method, body string, header map[string]string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body) //nolint:forbidigo // test
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(data)}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// session initialises a legacy session and returns its header.
func (r *rig) session() map[string]string {
	r.t.Helper()
	a := r.send("POST", initialize, nil)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || len(id) < 26 || !strings.Contains(a.body, `"protocolVersion":"2025-06-18"`) {
		r.t.Fatalf("initialize: %+v", a)
	}
	h := map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-06-18"}
	if a := r.send("POST", initialized, h); a.status != 202 {
		r.t.Fatalf("initialized: %+v", a)
	}
	return h
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func modern(method, name string) map[string]string {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

// stream opens a stream and returns its events.
func (r *rig) stream(method, body string, header map[string]string) (<-chan string, func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, method, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		r.t.Fatalf("status %d", resp.StatusCode)
	}
	out := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		defer resp.Body.Close()
		rd := sse.NewReader(resp.Body, 1<<20)
		for {
			ev, err := rd.Next()
			if err != nil {
				return
			}
			out <- string(ev.Data)
		}
	}()
	return out, func() { cancel(); <-done }
}

func next(t *testing.T, ch <-chan string) string {
	t.Helper()
	select {
	case s := <-ch:
		return s
	case <-time.After(eventually.Limit):
		t.Fatal("nothing came")
		return ""
	}
}

// ends reports whether a stream is closed, whatever comes by it before.
func ends(ch <-chan string) bool {
	for limit := time.After(eventually.Limit); ; {
		select {
		case _, open := <-ch:
			if !open {
				return true
			}
		case <-limit:
			return false
		}
	}
}
