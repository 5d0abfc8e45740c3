// Package telemetrytest is an OpenTelemetry collector for tests: it takes traces and metrics over
// OTLP with HTTP and protobuf, and keeps them.
package telemetrytest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that has arrived.
type Span struct {
	Name, Kind        string
	Trace, ID, Parent string // in hexadecimal
	Links             []string
	Attributes        map[string]string
	Failed            bool
}

// Collector keeps what it gets.
type Collector struct {
	URL string

	mu       sync.Mutex
	spans    []Span
	metrics  map[string]bool
	resource map[string]string
	requests int
}

// New starts a collector, until the test ends.
func New(t testing.TB) *Collector {
	c := &Collector{metrics: map[string]bool{}, resource: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var req traces.ExportTraceServiceRequest
		if c.read(t, r, &req) {
			c.takeTraces(&req)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var req metrics.ExportMetricsServiceRequest
		if c.read(t, r, &req) {
			c.takeMetrics(&req)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// read decodes the body of a request.
func (c *Collector) read(t testing.TB, r *http.Request, into proto.Message) bool {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Errorf("collector: %v", err)
			return false
		}
		body = z
	}
	data, err := io.ReadAll(io.LimitReader(body, 16<<20)) //nolint:forbidigo // it is bounded
	if err == nil {
		err = proto.Unmarshal(data, into)
	}
	if err != nil {
		t.Errorf("collector: %v", err)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	return true
}

func values(attrs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attrs {
		out[a.GetKey()] = a.GetValue().GetStringValue()
		if v, ok := a.GetValue().GetValue().(*common.AnyValue_IntValue); ok {
			out[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		}
	}
	return out
}

func (c *Collector) takeTraces(req *traces.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		c.resource = values(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				out := Span{
					Name: s.GetName(), Kind: s.GetKind().String(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
					Parent: hex.EncodeToString(s.GetParentSpanId()), Attributes: values(s.GetAttributes()), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
				}
				for _, l := range s.GetLinks() {
					out.Links = append(out.Links, hex.EncodeToString(l.GetSpanId()))
				}
				c.spans = append(c.spans, out)
			}
		}
	}
}

func (c *Collector) takeMetrics(req *metrics.ExportMetricsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rm := range req.GetResourceMetrics() {
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				c.metrics[m.GetName()] = true
			}
		}
	}
}

// Spans returns the spans that have arrived, in the order in which they ended.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Has reports whether a metric with that name has arrived.
func (c *Collector) Has(metric string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[metric]
}

// Resource returns the attributes of whoever sent the last traces.
func (c *Collector) Resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Requests counts the requests that were made.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}
