// Package telemetry sends traces and metrics to an OpenTelemetry collector, over OTLP with
// HTTP and protobuf.
//
// It is off unless an endpoint is configured: [Open] then returns nil, and every method of a
// nil [Telemetry] does nothing. While it is on, its cost depends on the share of requests that are
// sampled: the decision comes before anything of a span is built, so a request that is not
// sampled costs two histogram observations.
//
// Spans and metrics have the names of OpenTelemetry's semantic conventions for MCP and
// generative AI, which are not stable yet; names.go has them all.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	prombridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says where telemetry goes.
type Config struct {
	// Endpoint is the base URL of a collector, such as http://127.0.0.1:4318; "" leaves it
	// to the variables of the OpenTelemetry specification.
	Endpoint string
	// Env looks up a variable. The exporters read those of their own, such as
	// OTEL_EXPORTER_OTLP_HEADERS, from the environment of the process.
	Env func(string) string
	// Version is yaya's; Instance tells several yayas apart.
	Version, Instance string
	// Metrics are sent, too. Optional.
	Metrics prometheus.Gatherer
	// Failed is called when something could not be sent. It must not block. Optional.
	Failed func(error)
}

// Telemetry records and sends spans and metrics. Its methods are safe for concurrent use; those
// of nil do nothing.
type Telemetry struct {
	failed  func(error)
	sampler sampler
	tracer  trace.Tracer // nil if no traces are sent
	meters  *meters      // nil if no metrics are sent
	stops   []func(context.Context) error

	mu    sync.Mutex
	turns map[string]trace.Span // by key: turns, model calls and tool calls
	of    map[string]string     // the running turn of a session
}

// Variables of the specification that decide whether anything is sent.
const (
	envEndpoint        = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envMetricsEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
)

// signals says which of the two kinds of telemetry are sent.
func (c Config) signals() (traces, metrics bool) {
	if strings.EqualFold(c.Env("OTEL_SDK_DISABLED"), "true") {
		return false, false
	}
	all := c.Endpoint != "" || c.Env(envEndpoint) != ""
	on := func(endpoint, exporter string) bool {
		return c.Env(exporter) != "none" && (all || c.Env(endpoint) != "")
	}
	return on(envTracesEndpoint, "OTEL_TRACES_EXPORTER"), on(envMetricsEndpoint, "OTEL_METRICS_EXPORTER")
}

// CheckEndpoint reports why an endpoint cannot be used.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("it is not a URL; a collector is at http://127.0.0.1:4318, for example")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("it must begin with http:// or https://, such as http://127.0.0.1:4318")
	case u.User != nil:
		return errors.New("it must not contain a user or a password; put credentials into the variable OTEL_EXPORTER_OTLP_HEADERS")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("it must have neither a query nor a fragment")
	}
	return nil
}

// Open starts sending, or returns nil if no endpoint is configured. It does not wait for the
// collector.
func Open(ctx context.Context, cfg Config) (*Telemetry, error) {
	traces, metrics := cfg.signals()
	if !traces && !metrics {
		return nil, nil //nolint:nilnil // off is no error
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	t := &Telemetry{failed: cfg.Failed, turns: map[string]trace.Span{}, of: map[string]string{}}
	if t.failed == nil {
		t.failed = func(error) {}
	}
	var err error
	if t.sampler, err = newSampler(cfg.Env("OTEL_TRACES_SAMPLER"), cfg.Env("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.failed)) // the SDK has no other way to report errors of sending
	res, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "yaya"), attribute.String("service.version", cfg.Version), attribute.String("service.instance.id", cfg.Instance),
	), resource.WithFromEnv()) // what the environment says counts
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if traces {
		err = t.openTraces(ctx, cfg, res)
	}
	if err == nil && metrics {
		err = t.openMetrics(ctx, cfg, res)
	}
	if err != nil {
		t.Close(ctx)
		return nil, err
	}
	return t, nil
}

// below returns the address for one kind of telemetry.
func below(endpoint, kind string) string { return strings.TrimRight(endpoint, "/") + "/v1/" + kind }

func (t *Telemetry) openTraces(ctx context.Context, cfg Config, res *resource.Resource) error {
	var o []otlptracehttp.Option
	if cfg.Endpoint != "" {
		o = append(o, otlptracehttp.WithEndpointURL(below(cfg.Endpoint, "traces")))
	}
	exporter, err := otlptracehttp.New(ctx, o...)
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	// The sampler here has decided before a span is started.
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(generator{}))
	t.stops = append(t.stops, p.Shutdown)
	t.tracer = p.Tracer(scope)
	return nil
}

func (t *Telemetry) openMetrics(ctx context.Context, cfg Config, res *resource.Resource) error {
	var o []otlpmetrichttp.Option
	if cfg.Endpoint != "" {
		o = append(o, otlpmetrichttp.WithEndpointURL(below(cfg.Endpoint, "metrics")))
	}
	exporter, err := otlpmetrichttp.New(ctx, o...)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	var r []sdkmetric.PeriodicReaderOption
	if cfg.Metrics != nil {
		r = append(r, sdkmetric.WithProducer(prombridge.NewMetricProducer(prombridge.WithGatherer(cfg.Metrics))))
	}
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, r...)), sdkmetric.WithResource(res))
	t.stops = append(t.stops, p.Shutdown)
	t.meters, err = newMeters(p.Meter(scope))
	return err
}

// closeTimeout bounds the time in which the rest is sent: a collector that hangs does not
// keep yaya from stopping.
const closeTimeout = 2 * time.Second

// Close sends what is left, for at most two seconds.
func (t *Telemetry) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	t.mu.Lock()
	for key, span := range t.turns {
		span.End()
		delete(t.turns, key)
	}
	t.mu.Unlock()
	for _, stop := range t.stops {
		if err := stop(ctx); err != nil {
			t.failed(err)
		}
	}
}
