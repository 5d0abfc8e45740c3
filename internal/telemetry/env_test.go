package telemetry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// OP-66: a variable that is wrong is named, with the remedy, and no header is quoted.
func TestWrongVariables(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	const otlp, secret = "OTEL_EXPORTER_OTLP_", "hunter2"
	for _, c := range []struct{ name, value, want string }{
		{otlp + "ENDPOINT", "127.0.0.1:4318", "it is not a URL"},
		{otlp + "ENDPOINT", "localhost:4318", "it must begin with http://"},
		{otlp + "TRACES_ENDPOINT", "grpc://localhost", "it must begin with http://"},
		{otlp + "METRICS_ENDPOINT", "http://u:" + secret + "@h", "it must not contain a user"},
		{otlp + "PROTOCOL", "grpc", "http/protobuf only"},
		{otlp + "TRACES_COMPRESSION", "zstd", "gzip or none"},
		{otlp + "TIMEOUT", "10s", "whole number of milliseconds"},
		{otlp + "METRICS_TIMEOUT", "-1", "whole number of milliseconds"},
		{otlp + "HEADERS", "authorization " + secret, "entry 1 has no ="},
		{otlp + "HEADERS", "a=b,c d=" + secret, "entry 2 has a name"},
		{otlp + "TRACES_HEADERS", "a=" + secret + "%zz", "write % as %25"},
		{otlp + "METRICS_HEADERS", "a=" + secret + "%0ax", "line break"},
		{otlp + "CERTIFICATE", "/nonexistent/ca.pem", "/nonexistent/ca.pem does not exist"},
		{otlp + "TRACES_CERTIFICATE", empty, "has no certificate in PEM"},
		{otlp + "CLIENT_CERTIFICATE", empty, "belong together"},
		{"OTEL_TRACES_SAMPLER", "sometimes", "must be always_on"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "otlp and none"},
		{"OTEL_METRIC_EXPORT_INTERVAL", "1m", "whole number of milliseconds"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "many", "whole number of spans"},
	} {
		env := map[string]string{otlp + "ENDPOINT": "http://127.0.0.1:4318", c.name: c.value}
		x, err := Open(t.Context(), Config{Env: func(name string) string { return env[name] }})
		if x != nil {
			x.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s=%s: %v, want an error that names the variable and says %q", c.name, c.value, err, c.want)
		}
	}
	env := map[string]string{otlp + "HEADERS": "authorization=Bearer%20x, other = y", otlp + "TIMEOUT": " 5000 ", "OTEL_TRACES_EXPORTER": "otlp", otlp + "METRICS_COMPRESSION": "gzip", otlp + "METRICS_TIMEOUT": ""}
	cfg := Config{Endpoint: "http://127.0.0.1:4318", Env: func(name string) string { return env[name] }}
	if err := cfg.Check(); err != nil {
		t.Errorf("good variables: %v, want no error", err)
	}
	cfg.Endpoint, env[otlp+"TIMEOUT"] = "", "x"
	if err := cfg.Check(); err != nil {
		t.Errorf("without an endpoint: %v, want no error", err)
	}
}
