package gateway

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Metrics counts tool calls. It implements [tool.Observer] and serves what it
// has counted as Prometheus text (W-49).
type Metrics struct {
	reg   *prometheus.Registry
	calls *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// NewMetrics returns metrics with the process's own beside them.
func NewMetrics() *Metrics {
	m := &Metrics{
		reg: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "yaya_tool_calls_total", Help: "Tool calls by provider, origin and outcome.",
		}, []string{"provider", "origin", "outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "yaya_tool_call_seconds", Help: "Time of tool calls by provider.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"provider"}),
	}
	m.reg.MustRegister(m.calls, m.took, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gauge adds a value that is read when the metrics are.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Counters adds values that only grow and are read when the metrics are, by the value
// of one label.
func (m *Metrics) Counters(name, help, label string, values func() map[string]float64) {
	m.reg.MustRegister(&labelled{prometheus.NewDesc(name, help, []string{label}, nil), prometheus.CounterValue, values})
}

// Gauges adds values that are read when the metrics are, by the value of one label. One
// that is no longer among the values is no longer among the metrics.
func (m *Metrics) Gauges(name, help, label string, values func() map[string]float64) {
	m.reg.MustRegister(&labelled{prometheus.NewDesc(name, help, []string{label}, nil), prometheus.GaugeValue, values})
}

// labelled are values that somebody else keeps.
type labelled struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func() map[string]float64
}

func (l *labelled) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

func (l *labelled) Collect(out chan<- prometheus.Metric) {
	for label, v := range l.values() {
		out <- prometheus.MustNewConstMetric(l.desc, l.kind, v, label)
	}
}

// ToolCalled implements [tool.Observer].
func (m *Metrics) ToolCalled(call tool.Call, def tool.Definition, res tool.Result, took time.Duration) {
	outcome := "ok"
	if !res.OK {
		outcome = string(res.ErrorKind)
		if res.Native != nil {
			outcome = "error"
		}
	}
	provider := def.Identity.Provider
	if provider == "" {
		provider = "builtin"
	}
	m.calls.WithLabelValues(provider, string(call.Origin), outcome).Inc()
	m.took.WithLabelValues(provider).Observe(took.Seconds())
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{})
}
