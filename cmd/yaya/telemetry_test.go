package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/telemetry/telemetrytest"
)

// traced is a server of the official SDK that keeps the trace contexts of its calls.
type traced struct {
	mu     sync.Mutex
	meta   []string // traceparent in _meta
	header []string // traceparent of the HTTP request
}

func (s *traced) define(srv *sdk.Server) {
	sdk.AddTool(srv, &sdk.Tool{Name: "weather"}, func(_ context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		parent, _ := r.Params.Meta["traceparent"].(string)
		s.meta = append(s.meta, parent)
		if r.Extra != nil {
			s.header = append(s.header, r.Extra.Header.Get("traceparent"))
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "sunny"}}}, nil, nil
	})
}

func (s *traced) last() (meta, header string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.meta) == 0 || len(s.header) == 0 {
		return "", ""
	}
	return s.meta[len(s.meta)-1], s.header[len(s.header)-1]
}

// spanOf waits for a span that has arrived.
func spanOf(t *testing.T, c *telemetrytest.Collector, what string, is func(telemetrytest.Span) bool) (out telemetrytest.Span) {
	t.Helper()
	eventually.True(t, "the collector has "+what, func() bool {
		all := c.Spans()
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			out = all[i]
		}
		return i >= 0
	})
	return out
}

// OP-65, OP-68: the trace of a real client passes through yaya to a real server, and a collector
// sees yaya's spans between both; an agent's turn is such a trace, too. OP-64:
// the collector gets yaya's metrics. OP-69: the metrics that alert rules and dashboard name are there.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	c := telemetrytest.New(t)
	var s traced
	b := newBox(t)
	b.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_METRIC_EXPORT_INTERVAL=200", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"}
	b.must("mcp", "add", "far", changing(t, s.define))
	b.must("config", "set", "approval.rules", `[{"provider":"far","decision":"allow"}]`)
	b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"tool_calls":[{"name":"far__weather","args":{}}]},{"text":"done"}]}`)
	b.serve()

	client, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	if _, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "far__weather", Arguments: map[string]any{}, Meta: sdk.Meta{"traceparent": "00-" + id + "-" + span + "-01", "tracestate": "v=1"}}); err != nil {
		t.Fatal(err)
	}
	served := spanOf(t, c, "the client's request", func(x telemetrytest.Span) bool { return x.Trace == id && x.Kind == "SPAN_KIND_SERVER" })
	sent := spanOf(t, c, "the request to the server", func(x telemetrytest.Span) bool { return x.Trace == id && x.Kind == "SPAN_KIND_CLIENT" })
	if served.Parent != span || sent.Parent != served.ID || served.Name != "tools/call weather" || sent.Attributes["yaya.server"] != "far" {
		t.Errorf("the spans are %+v and %+v, want a chain below %s", served, sent, span)
	}
	if meta, header := s.last(); meta != "00-"+id+"-"+sent.ID+"-01" || header != meta {
		t.Errorf("the server got %q and %q, want the span %s of yaya's request in both", meta, header, sent.ID)
	}
	// yaya records nothing that the client does not record; the server sees the client's context.
	const off = "00-11111111111111111111111111111111-2222222222222222-00"
	if _, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "far__weather", Arguments: map[string]any{}, Meta: sdk.Meta{"traceparent": off}}); err != nil {
		t.Fatal(err)
	}
	if meta, _ := s.last(); meta != off {
		t.Errorf("the server got %q, want the client's %q", meta, off)
	}

	b.must("run", "--approve", "rules", "how is the weather?")
	turn := spanOf(t, c, "the turn", func(x telemetrytest.Span) bool { return strings.HasPrefix(x.Name, "invoke_agent ") })
	tool := spanOf(t, c, "the tool call", func(x telemetrytest.Span) bool { return x.Name == "execute_tool far__weather" })
	below := spanOf(t, c, "the agent's request to the server", func(x telemetrytest.Span) bool {
		return x.Trace == turn.Trace && x.Kind == "SPAN_KIND_CLIENT" && x.Attributes["mcp.method.name"] != ""
	})
	model := spanOf(t, c, "a model call", func(x telemetrytest.Span) bool { return strings.HasPrefix(x.Name, "chat ") })
	if tool.Parent != turn.ID || model.Parent != turn.ID || below.Parent != tool.ID || below.Trace != turn.Trace {
		t.Errorf("turn %+v, tool %+v, model %+v, request %+v: want a tree", turn, tool, model, below)
	}
	if meta, _ := s.last(); meta != "00-"+turn.Trace+"-"+below.ID+"-01" {
		t.Errorf("the server got %q, want the span %s of the turn's trace", meta, below.ID)
	}
	for _, name := range []string{"mcp.server.operation.duration", "mcp.client.operation.duration", "gen_ai.client.token.usage", "yaya_turns_total", "yaya_fsync_seconds"} {
		eventually.True(t, "the collector has the metric "+name, func() bool { return c.Has(name) })
	}
	if r := c.Resource(); r["service.name"] != "yaya" || r["deployment.environment.name"] != "test" {
		t.Errorf("the resource is %v", r)
	}
	metricsExist(t, b)
}

// metricsExist compares the names in deploy with those that a yaya shows.
func metricsExist(t *testing.T, b *box) {
	t.Helper()
	var there map[string]bool
	// The search for a back end of sandboxes begins after the start, and its result is shown once it is known.
	eventually.True(t, "the metrics name the back end of sandboxes", func() bool {
		there = metricNames(t, b)
		return there["yaya_sandbox_backend"]
	})
	names := regexp.MustCompile(`\b(yaya|go|process)_[a-z0-9_]+`)
	for _, file := range []string{"prometheus-rules.yml", "grafana-dashboard.json"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(data) {
			t.Errorf("%s is not JSON", file)
		}
		found := names.FindAllString(string(data), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics, want more: is the pattern right?", file, len(found))
		}
		slices.Sort(found)
		for _, name := range slices.Compact(found) {
			if !there[name] {
				t.Errorf("%s names %s, which no yaya shows", file, name)
			}
		}
	}
}

// metricNames are the names of the series that /metrics can show now.
func metricNames(t *testing.T, b *box) map[string]bool {
	t.Helper()
	code, text, _ := b.raw(http.MethodGet, "/metrics", "")
	if code != http.StatusOK {
		t.Fatalf("GET /metrics: %d", code)
	}
	// Shown with TLS alone; and up is Prometheus' own.
	there := map[string]bool{"yaya_certificate_expiry_timestamp_seconds": true}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "#" && f[1] == "TYPE" {
			there[f[2]] = true
			if f[3] == "histogram" {
				there[f[2]+"_bucket"], there[f[2]+"_sum"], there[f[2]+"_count"] = true, true, true
			}
		}
	}
	return there
}

// OP-66: a wrong variable of OpenTelemetry does not stop yaya: log and doctor name it, with or without
// a daemon, readiness is degraded, and no header is shown.
func TestWrongTelemetry(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS=authorization hunter2"}
	const want = "OTEL_EXPORTER_OTLP_HEADERS: entry 1 has no ="
	if out := b.must("doctor"); !strings.Contains(out, want) || strings.Contains(out, "hunter2") {
		t.Errorf("doctor alone says %s, want %q", out, want)
	}
	d := b.daemon("serve", "--listen", b.addr)
	eventually.True(t, "the log names the variable", func() bool { return strings.Contains(d.said.String(), want) })
	if out := b.must("doctor"); !strings.Contains(out, want) {
		t.Errorf("doctor says %s, want %q", out, want)
	}
	if code, text, _ := b.raw(http.MethodGet, "/health?ready=1", ""); code != http.StatusOK || !strings.Contains(string(text), `"telemetry"`) {
		t.Errorf("readiness is %d %s, want 200 with the check telemetry", code, text)
	}
	if said := d.said.String(); strings.Contains(said, "hunter2") {
		t.Errorf("the log quotes a header: %s", said)
	}
}
