package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A call that its tool answers with an error is a failure, in whatever form it is relayed.
func TestStatsCountFailures(t *testing.T) {
	object := func(text string) jsonrpc.Object {
		o, err := jsonrpc.ParseObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range []struct {
		name    string
		res     tool.Result
		outcome string
	}{
		{"a result", tool.Result{OK: true, Native: &tool.NativeResult{Result: object(`{"content":[]}`)}}, "ok"},
		{"a result that is not an error", tool.Result{OK: true, Native: &tool.NativeResult{Result: object(`{"content":[],"isError":false}`)}}, "ok"},
		{"a result that is an error", tool.Result{OK: true, Native: &tool.NativeResult{Result: object(`{"content":[],"isError":true}`)}}, "tool"},
		{"an error of the protocol", tool.Result{Native: &tool.NativeResult{Error: []byte(`{"code":1}`)}}, "error"},
		{"a refusal", tool.Fail(tool.ErrRejected, "no"), "rejected"},
		{"a server that is not there", tool.Fail(tool.ErrUnavailable, "no"), "unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMetrics()
			m.ToolCalled(tool.Call{Origin: tool.OriginMCP}, tool.Definition{Identity: tool.Identity{Provider: "p"}}, c.res, time.Millisecond)
			s, err := m.Stats()
			if err != nil {
				t.Fatal(err)
			}
			want := 1.0
			if c.outcome == "ok" {
				want = 0
			}
			if got := s.Providers["p"]; got.Total != 1 || got.Errors != want {
				t.Errorf("counted %+v, want 1 call and %v failed", got, want)
			}
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			if line := `yaya_tool_calls_total{origin="mcp",outcome="` + c.outcome + `",provider="p"} 1`; !strings.Contains(w.Body.String(), line) {
				t.Errorf("the metrics lack %s", line)
			}
		})
	}
}

func TestStats(t *testing.T) {
	m := NewMetrics()
	m.Gauge("yaya_x", "x", func() float64 { return 7 })
	call := func(provider string, ok bool, took time.Duration, n int) {
		res := tool.Result{OK: ok}
		if !ok {
			res.ErrorKind = tool.ErrTool
		}
		for range n {
			m.ToolCalled(tool.Call{Origin: tool.OriginMCP}, tool.Definition{Identity: tool.Identity{Provider: provider}}, res, took)
		}
	}
	call("fast", true, 2*time.Millisecond, 90)
	call("fast", false, 2*time.Millisecond, 10)
	call("slow", true, 2*time.Minute, 1)
	s, err := m.Stats()
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := s.Providers["fast"], s.Providers["slow"]
	if fast.Total != 100 || fast.Errors != 10 || slow.Total != 1 || slow.Errors != 0 || s.All.Total != 101 || s.All.Errors != 10 {
		t.Errorf("got %+v; want 10 errors in 100 calls of fast, 0 in 1 of slow, 10 in 101 of all", s)
	}
	if fast.P50 < time.Millisecond || fast.P50 > 2500*time.Microsecond || fast.P95 <= fast.P50 || slow.P50 != time.Minute {
		t.Errorf("quantiles %v %v %v", fast.P50, fast.P95, slow.P50)
	}
	if s.All.P50 != fast.P50 && (s.All.P50 < time.Millisecond || s.All.P50 > 2500*time.Microsecond) {
		t.Errorf("of all: %v", s.All.P50)
	}
	if s.Values["yaya_x"] != 7 || s.Values["go_goroutines"] < 1 {
		t.Errorf("values %v", s.Values)
	}
}

// Values with a label are read when the metrics are: those that are not known yet are
// not among them, and those that are gone are gone.
func TestLabelledValues(t *testing.T) {
	m := NewMetrics()
	var backend map[string]float64
	m.Gauges("yaya_backend", "b", "backend", func() map[string]float64 { return backend })
	m.Counters("yaya_denials_total", "d", "profile", func() map[string]float64 { return map[string]float64{"command": 2, "server": 0} })
	shown := func() string {
		t.Helper()
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		var ours []string
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "yaya_backend") || strings.HasPrefix(line, "yaya_denials") || strings.HasPrefix(line, "# TYPE yaya_denials") {
				ours = append(ours, strings.TrimSpace(line))
			}
		}
		return strings.Join(ours, "\n")
	}
	const denials = "# TYPE yaya_denials_total counter\n" + `yaya_denials_total{profile="command"} 2` + "\n" + `yaya_denials_total{profile="server"} 0`
	for _, c := range []struct {
		name, backend, want string
	}{
		{"not known yet", "", denials},
		{"known", "one", `yaya_backend{backend="one"} 1` + "\n" + denials},
		{"another", "two", `yaya_backend{backend="two"} 1` + "\n" + denials},
	} {
		t.Run(c.name, func(t *testing.T) {
			if backend = nil; c.backend != "" {
				backend = map[string]float64{c.backend: 1}
			}
			if got := shown(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Tokens of all models are summed up: those of the input, cached or not, and those of the output.
func TestStatsCountTokens(t *testing.T) {
	m := NewMetrics()
	tokens := newTurns(m.reg).tokens
	for kind, n := range map[string]float64{"input": 5, "cache_read": 2, "cache_write": 1, "output": 3} {
		tokens.WithLabelValues("p", "m", kind).Add(n)
		tokens.WithLabelValues("q", "m", kind).Add(n)
	}
	s, err := m.Stats()
	if err != nil || s.TokensIn != 16 || s.TokensOut != 6 {
		t.Errorf("Stats = %v in, %v out, %v, want 16 and 6", s.TokensIn, s.TokensOut, err)
	}
}
