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
// has counted as Prometheus text.
type Metrics struct {
	reg    *prometheus.Registry
	calls  *prometheus.CounterVec
	took   *prometheus.HistogramVec
	synced *prometheus.HistogramVec
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
	m.synced = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "yaya_fsync_seconds", Help: "Time of fsyncs by what they make durable: tapes or the control log.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"file"})
	m.reg.MustRegister(m.calls, m.took, m.synced, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Synced returns what counts the fsyncs of a kind of file.
func (m *Metrics) Synced(file string) func(time.Duration) {
	times := m.synced.WithLabelValues(file)
	return func(took time.Duration) { times.Observe(took.Seconds()) }
}

// Gatherer returns the metrics for those who send them elsewhere.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.reg }

// Gauge adds a value that is read when the metrics are.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Counter adds a value that only grows and is read when the metrics are.
func (m *Metrics) Counter(name, help string, value func() float64) {
	m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
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

// Gauge describes a gauge.
type Gauge struct{ Name, Help string }

// GaugesOf adds gauges that are read together: values returns, by the value of one label, a
// number for each of them in their order.
func (m *Metrics) GaugesOf(label string, values func() map[string][]float64, gauges ...Gauge) {
	t := &table{values: values}
	for _, g := range gauges {
		t.descs = append(t.descs, prometheus.NewDesc(g.Name, g.Help, []string{label}, nil))
	}
	m.reg.MustRegister(t)
}

// table are gauges that somebody else keeps together.
type table struct {
	descs  []*prometheus.Desc
	values func() map[string][]float64
}

func (t *table) Describe(out chan<- *prometheus.Desc) {
	for _, d := range t.descs {
		out <- d
	}
}

func (t *table) Collect(out chan<- prometheus.Metric) {
	for label, row := range t.values() {
		for i, v := range row {
			out <- prometheus.MustNewConstMetric(t.descs[i], prometheus.GaugeValue, v, label)
		}
	}
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
	switch {
	case !res.OK && res.Native != nil:
		outcome = "error"
	case !res.OK:
		outcome = string(res.ErrorKind)
	case res.Native != nil && string(res.Native.Result.Get("isError")) == "true": // in the server's words
		outcome = string(tool.ErrTool)
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
