//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/sse"
)

// serveUpstream serves an upstream of both eras whose tool "crash" does no harm.
func serveUpstream(t *testing.T) (*upstream, string) {
	t.Helper()
	u := newUpstream()
	u.modern, u.crash = true, func() {}
	s := httptest.NewServer(u)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return u, s.URL
}

// failures are the names of the checks that did not pass.
func failures(t *testing.T, base string) []string {
	t.Helper()
	out, err := runChecks(t.Context(), endpoint{base: base, path: "/mcp"})
	if err != nil {
		t.Fatalf("runChecks() = %v, want no error", err)
	}
	if len(out) != len(checks) {
		t.Errorf("got %d outcomes, want %d", len(out), len(checks))
	}
	var failed []string
	for _, o := range out {
		if o.err != nil {
			t.Logf("%s: %v", o.check, o.err)
			failed = append(failed, o.check)
		}
	}
	return failed
}

func TestUpstreamPassesEveryCheck(t *testing.T) {
	t.Parallel()
	_, base := serveUpstream(t)
	if got := failures(t, base); len(got) > 0 {
		t.Errorf("the checks %q fail at the upstream itself, want none", got)
	}
}

// lossy relays between a client and an upstream, and loses something: keep sees
// every message, may change it, and says whether it goes on.
type lossy struct {
	to   string
	keep func(m map[string]any) bool
	dead atomic.Bool
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.dead.Load() {
		http.Error(w, "the upstream is gone", http.StatusBadGateway)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if len(body) > 0 {
		kept, ok := l.pass(body)
		if !ok {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		body = kept
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, l.to+"/mcp", bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Content-Length")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for _, k := range []string{"Content-Type", "Mcp-Session-Id"} {
		if v := resp.Header.Get(k); v != "" {
			w.Header().Set(k, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		data, _ := io.ReadAll(resp.Body)
		if kept, ok := l.pass(data); ok {
			data = kept
		}
		_, _ = w.Write(data)
		return
	}
	_ = http.NewResponseController(w).Flush()
	events := sse.NewReader(resp.Body, maxMessage)
	for {
		ev, err := events.Next()
		if err != nil {
			return
		}
		if kept, ok := l.pass(ev.Data); ok {
			writeEvent(w, kept)
		}
	}
}

func (l *lossy) pass(data []byte) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return data, true
	}
	if !l.keep(m) {
		return nil, false
	}
	out, err := json.Marshal(m)
	return out, err == nil
}

func drops(method string) func(*lossy, map[string]any) bool {
	return func(_ *lossy, m map[string]any) bool { return m["method"] != method }
}

// ofResult calls f with the result of a response.
func ofResult(f func(map[string]any)) func(*lossy, map[string]any) bool {
	return func(_ *lossy, m map[string]any) bool {
		if r, ok := m["result"].(map[string]any); ok {
			f(r)
		}
		return true
	}
}

// firstText calls f with the text of the first part of a result, and puts what it
// returns in its place.
func firstText(f func(string) string) func(*lossy, map[string]any) bool {
	return ofResult(func(r map[string]any) {
		content, _ := r["content"].([]any)
		if len(content) == 0 {
			return
		}
		part, _ := content[0].(map[string]any)
		if text, ok := part["text"].(string); ok {
			part["text"] = f(text)
		}
	})
}

// floats makes every number a float, as decoders do without further notice.
func floats(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			v[k] = floats(one)
		}
	case []any:
		for i, one := range v {
			v[i] = floats(one)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
		return nil
	}
	return v
}

// faults has for every check a relay that loses what it looks for, and nothing else.
var faults = map[string]func(l *lossy, m map[string]any) bool{
	"modern era":      ofResult(func(r map[string]any) { delete(r, "supportedVersions") }),
	"whole tool list": ofResult(func(r map[string]any) { delete(r, "nextCursor") }),
	"fields of tools": ofResult(func(r map[string]any) {
		tools, _ := r["tools"].([]any)
		for _, tool := range tools {
			delete(tool.(map[string]any), "x-unknown")
		}
	}),
	"results": ofResult(func(r map[string]any) { delete(r, "isError") }),
	"errors": func(_ *lossy, m map[string]any) bool {
		if e, ok := m["error"].(map[string]any); ok {
			delete(e, "data")
		}
		return true
	},
	"numbers and text": ofResult(func(r map[string]any) { r["structuredContent"] = floats(r["structuredContent"]) }),
	"progress":         drops("notifications/progress"),
	"cancellation":     drops("notifications/cancelled"),
	"logging":          drops("notifications/message"),
	"resources":        ofResult(func(r map[string]any) { delete(r, "resourceTemplates") }),
	"prompts, completion": ofResult(func(r map[string]any) {
		if _, ok := r["completion"]; ok {
			r["completion"] = map[string]any{"values": []any{}}
		}
	}),
	"elicitation":    drops("elicitation/create"),
	"sampling":       drops("sampling/createMessage"),
	"list changes":   drops("notifications/tools/list_changed"),
	"large results":  firstText(func(s string) string { return s[:min(len(s), 1<<19)] }),
	"sessions apart": firstText(func(s string) string { return strings.Replace(s, "client 0", "client 1", 1) }),
	"recovery": func(l *lossy, m map[string]any) bool {
		params, _ := m["params"].(map[string]any)
		if params["name"] == "crash" {
			l.dead.Store(true)
		}
		return true
	},
}

// Every check fails for a relay that loses what it looks for, and no other does.
func TestChecksSeeALossyRelay(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	if len(faults) != len(checks) {
		t.Errorf("got %d faults, want one for each of the %d checks", len(faults), len(checks))
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, base := serveUpstream(t)
			l := &lossy{to: base}
			l.keep = func(m map[string]any) bool { return fault(l, m) }
			relay := httptest.NewServer(l)
			defer relay.Close()
			defer relay.CloseClientConnections()
			if got, want := failures(t, relay.URL), []string{name}; !slices.Equal(got, want) {
				t.Errorf("the checks %q fail, want %q", got, want)
			}
		})
	}
}

// The loader counts calls that fail, and those that succeed.
func TestLoader(t *testing.T) {
	t.Parallel()
	_, base := serveUpstream(t)
	for _, c := range []struct {
		name  string
		fault func(string) string
		fails bool
	}{
		{"whole", func(s string) string { return s }, false},
		{"shortened", func(s string) string { return s[:min(len(s), 10)] }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &lossy{to: base}
			change := firstText(c.fault)
			l.keep = func(m map[string]any) bool { return change(l, m) }
			relay := httptest.NewServer(l)
			defer relay.Close()
			defer relay.CloseClientConnections()
			loads, err := openLoader(t.Context(), endpoint{base: relay.URL, path: "/mcp"}, 2)
			if err != nil {
				t.Fatalf("openLoader() = %v, want no error", err)
			}
			defer loads.close()
			r, err := loads.run(context.Background(), loadCase{"", 2, 2, 64}, 50_000_000)
			if c.fails != (err != nil) || c.fails != (r.failed > 0) || c.fails == (r.calls > 0) {
				t.Errorf("run() = %d calls, %d failed, %v; want failures: %v", r.calls, r.failed, err, c.fails)
			}
			if len(r.latencies) != r.calls || !slices.IsSorted(r.latencies) {
				t.Errorf("got %d latencies, sorted: %v; want %d, sorted", len(r.latencies), slices.IsSorted(r.latencies), r.calls)
			}
		})
	}
}

func TestUpstreamOverStdio(t *testing.T) {
	t.Parallel()
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ü"}}}
not JSON
{"jsonrpc":"2.0","id":3,"method":"nothing"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}
`
	var out bytes.Buffer
	if err := newUpstream().serveStdio(strings.NewReader(in), &out); err != nil {
		t.Fatalf("serveStdio() = %v, want no error", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{`"protocolVersion":"2025-06-18"`, `"id":2,"result":{"content":[{"type":"text","text":"ü"}]}`, `"code":-32601`} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d of %q, want one with %q", i, lines, want)
		}
	}
}

// An answer does not wait in memory for a request that follows a notification.
func TestUpstreamOverStdioFlushes(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	read, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- newUpstream().serveStdio(in, out) }()
	got := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(read).ReadString('\n')
		got <- line
	}()
	if _, err := io.WriteString(feed, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-got:
		if !strings.Contains(line, `"id":1`) {
			t.Errorf("got %q, want the answer of request 1", line)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer in 10 s, want one before the next request")
	}
	_ = feed.Close()
	_ = read.Close()
	if err := <-served; err != nil {
		t.Errorf("serveStdio() = %v, want no error", err)
	}
}
