package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/telemetry/telemetrytest"
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

// open sends to a collector of the test's, with those variables.
func open(t *testing.T, c *telemetrytest.Collector, env map[string]string) *Telemetry {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "yaya_x"}, func() float64 { return 1 }))
	x, err := Open(t.Context(), Config{
		Endpoint: c.URL, Env: func(name string) string { return env[name] }, Version: "1", Instance: "k", Metrics: reg,
		Failed: func(err error) { t.Errorf("telemetry: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// OP-66: nothing is sent unless an endpoint says where to, and a request then costs nothing.
func TestOff(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"no variable":       {},
		"disabled":          {"OTEL_SDK_DISABLED": "true", envEndpoint: "http://127.0.0.1:4318"},
		"exporters of none": {envEndpoint: "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
	} {
		x, err := Open(t.Context(), Config{Env: func(name string) string { return env[name] }})
		if x != nil || err != nil {
			t.Errorf("%s: Open() = %v, %v, want nil", name, x, err)
		}
	}
	var off *Telemetry
	ctx := t.Context()
	parent := Context{Parent: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}
	if n := testing.AllocsPerRun(100, func() {
		ctx, served := off.Served(ctx, Call{Method: methodCallTool}, parent)
		sent, op := off.Sent(off.InTurn(ctx, "t", "c"), Call{Method: methodCallTool})
		op.End(sent, "")
		served.Named("s", "t")
		served.End(ctx, "")
	}); n != 0 {
		t.Errorf("a request allocates %v objects, want none", n)
	}
	off.Close(ctx)
}

// OP-66: a request that is not sampled allocates nothing either.
func TestUnsampledAllocatesNothing(t *testing.T) {
	c := telemetrytest.New(t)
	x := open(t, c, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_always_off"})
	defer x.Close(t.Context())
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		ctx, served := x.Served(ctx, Call{Method: methodCallTool, Principal: "owner"}, Context{})
		sent, op := x.Sent(ctx, Call{Method: methodCallTool, Target: "echo", Server: "s", Transport: Pipe})
		op.End(sent, "")
		served.Named("s", "echo")
		served.End(ctx, "")
	}); n != 0 {
		t.Errorf("a request that is not sampled allocates %v objects, want none", n)
	}
}

// OP-67: wrong settings are refused, with the reason.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint string
		env      map[string]string
		want     string
	}{
		"no URL":   {"::", nil, "not a URL"},
		"a scheme": {"grpc://h:4317", nil, "http://"},
		"password": {"http://u:p@h:4318", nil, "OTEL_EXPORTER_OTLP_HEADERS"},
		"grpc":     {"http://h:4317", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"},
		"sampler":  {"http://h:4318", map[string]string{"OTEL_TRACES_SAMPLER": "some"}, "OTEL_TRACES_SAMPLER"},
		"ratio":    {"http://h:4318", map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, "from 0 to 1"},
		"query":    {"http://h:4318?key=x", nil, "query"},
	} {
		x, err := Open(t.Context(), Config{Endpoint: c.endpoint, Env: func(name string) string { return c.env[name] }})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Open() = %v, want %q", name, err, c.want)
		}
		x.Close(t.Context())
	}
}

// OP-67: a client's trace is recorded if the client records it, and others by the ratio.
func TestSampler(t *testing.T) {
	sampled, not := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, c := range []struct {
		name, arg        string
		yes, no          bool
		rootMin, rootMax int // of 10,000
	}{
		{"", "", true, false, 10000, 10000},
		{"always_on", "", true, true, 10000, 10000},
		{"always_off", "", false, false, 0, 0},
		{"parentbased_always_off", "", true, false, 0, 0},
		{"parentbased_traceidratio", "0.1", true, false, 700, 1300},
	} {
		s, err := newSampler(c.name, c.arg)
		if err != nil {
			t.Fatal(err)
		}
		for parent, want := range map[string]bool{sampled: c.yes, not: c.no} {
			if _, got := s.decide(parse([]byte(parent), nil)); got != want {
				t.Errorf("%s: %s is recorded: %v, want %v", c.name, parent, got, want)
			}
		}
		n := 0
		for range 10000 {
			if _, ok := s.decide(parse(nil, nil)); ok {
				n++
			}
		}
		if n < c.rootMin || n > c.rootMax {
			t.Errorf("%s: %d of 10,000 are recorded, want %d to %d", c.name, n, c.rootMin, c.rootMax)
		}
	}
}

// OP-65: only what W3C Trace Context allows is a trace context.
func TestParse(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for in, want := range map[string]string{
		good:                   good,
		"01" + good[2:]:        good,
		"01" + good[2:] + "-x": good,
		good[:53] + "00":       good[:53] + "00",
		"":                     "", good[:54]: "", good + "-x": "", "ff" + good[2:]: "", strings.ToUpper(good): "",
		"00-" + strings.Repeat("0", 32) + good[35:]: "", good[:36] + strings.Repeat("0", 16) + "-01": "",
		strings.Replace(good, "af", "xf", 1): "", strings.Replace(good, "-b7", "_b7", 1): "",
	} {
		c := parse([]byte(in), []byte("a=1,b=2"))
		got := ""
		if c.IsValid() {
			got = format(c)
		}
		if got != want {
			t.Errorf("parse(%q) = %q, want %q", in, got, want)
		}
	}
	if s := parse([]byte(good), []byte("a=1,b=2")).TraceState().String(); s != "a=1,b=2" {
		t.Errorf("the tracestate is %q", s)
	}
	if s := parse([]byte(good), []byte(strings.Repeat("a=1,", 200))).TraceState().String(); s != "" {
		t.Errorf("a long tracestate is taken over: %q", s)
	}
}

// OP-65: a request of a client, and the one that it causes at a server, are spans of the
// client's trace; the metrics of yaya go to the same collector.
func TestRequests(t *testing.T) {
	c := telemetrytest.New(t)
	x := open(t, c, map[string]string{"OTEL_RESOURCE_ATTRIBUTES": ""})
	ctx, served := x.Served(t.Context(), Call{Method: methodCallTool, Session: "s1", Principal: "owner", Transport: TCP}, Context{Parent: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), State: []byte("v=1")})
	inner, sent := x.Sent(ctx, Call{Method: methodCallTool, Target: "echo", Server: "files", Transport: Pipe})
	parent, state := sent.Trace()
	sent.End(inner, ToolError)
	served.Named("files", "echo")
	served.End(ctx, ToolError)
	_, other := x.Sent(t.Context(), Call{Method: "tools/list"})
	other.End(t.Context(), "")
	x.Close(t.Context())
	spans := c.Spans()
	if len(spans) != 2 {
		t.Fatalf("got %d spans: %+v, want 2", len(spans), spans)
	}
	client, server := spans[0], spans[1]
	if server.Trace != "0af7651916cd43dd8448eb211c80319c" || server.Parent != "b7ad6b7169203331" || server.Kind != "SPAN_KIND_SERVER" || server.Name != "tools/call echo" || !server.Failed {
		t.Errorf("the request is %+v", server)
	}
	if client.Trace != server.Trace || client.Parent != server.ID || client.Kind != "SPAN_KIND_CLIENT" || client.Attributes[attrErrorType] != ToolError || client.Attributes[attrServer] != "files" {
		t.Errorf("the request to the server is %+v", client)
	}
	if want := "00-" + client.Trace + "-" + client.ID + "-01"; parent != want || state != "v=1" {
		t.Errorf("the server gets %q, %q, want %q and v=1", parent, state, want)
	}
	for _, name := range []string{meterServer, meterClient, "yaya_x"} {
		if !c.Has(name) {
			t.Errorf("the metric %s has not arrived", name)
		}
	}
	if r := c.Resource(); r["service.name"] != "yaya" || r["service.instance.id"] != "k" {
		t.Errorf("the resource is %v", r)
	}
}

// OP-68: a turn is a trace with its model and tool calls, and what a tool call causes at a
// server belongs to it, in whatever order telemetry hears of both.
func TestTurns(t *testing.T) {
	c := telemetrytest.New(t)
	x := open(t, c, nil)
	at := time.Unix(1000, 0)
	ctx, sent := x.Sent(x.InTurn(context.Background(), "turn1", "call1"), Call{Method: methodCallTool, Target: "echo", Server: "files"})
	sent.End(ctx, "")
	x.TurnStarted("s", "", "turn1", "coder", at)
	x.ModelAsked("s", "r1", "openai", "m", at)
	x.ModelAnswered("r1", "openai", "m", "", Usage{Input: 7, Output: 3}, time.Second, at.Add(time.Second))
	x.ToolAsked("turn1", "call1", "files__echo", at)
	x.TurnStarted("s::agent::1", "s", "turn2", "react", at)
	x.TurnEnded("s::agent::1", "turn2", "react", "", time.Second, at.Add(time.Second))
	x.ToolAnswered("turn1", "call1", "files__echo", "rejected", time.Second, at.Add(time.Second))
	x.TurnEnded("s", "turn1", "coder", "", time.Second, at.Add(2*time.Second))
	x.Close(t.Context())
	by := map[string]telemetrytest.Span{}
	for _, s := range c.Spans() {
		by[s.Name] = s
	}
	turn, model, tool, server, below := by["invoke_agent coder"], by["chat m"], by["execute_tool files__echo"], by["tools/call echo"], by["invoke_agent react"]
	for name, s := range map[string]telemetrytest.Span{"the model call": model, "the tool call": tool} {
		if s.Parent != turn.ID || s.Trace != turn.Trace || turn.ID == "" {
			t.Errorf("%s is %+v, want a child of the turn %+v", name, s, turn)
		}
	}
	if server.Parent != tool.ID || server.Trace != turn.Trace {
		t.Errorf("the request to the server is %+v, want a child of the tool call %+v", server, tool)
	}
	if below.Trace == turn.Trace || len(below.Links) != 1 || below.Links[0] != turn.ID {
		t.Errorf("the turn of the sub-agent is %+v, want a trace of its own that is linked to %s", below, turn.ID)
	}
	if model.Attributes[attrInputTokens] != "7" || tool.Attributes[attrErrorType] != "rejected" || turn.Attributes[attrConversation] != "s" {
		t.Errorf("attributes: %v, %v, %v", model.Attributes, tool.Attributes, turn.Attributes)
	}
	for _, name := range []string{meterModel, meterTokens, meterTool, meterAgent} {
		if !c.Has(name) {
			t.Errorf("the metric %s has not arrived", name)
		}
	}
}

// OP-64: names that others choose do not make the metrics grow without bound.
func TestSetsAreBounded(t *testing.T) {
	c := telemetrytest.New(t)
	x := open(t, c, map[string]string{"OTEL_TRACES_EXPORTER": "none"})
	for i := range 3 * maxSets {
		ctx, op := x.Sent(t.Context(), Call{Method: methodCallTool, Target: fmt.Sprint(i), Server: "s"})
		op.End(ctx, "")
	}
	if n := len(x.meters.client.sets); n > maxSets+maxMethods {
		t.Errorf("%d sets of attributes, want about %d at most", n, maxSets)
	}
	x.Close(t.Context())
}
