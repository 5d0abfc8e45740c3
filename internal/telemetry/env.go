package telemetry

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/userfile"
)

// Check reports why telemetry cannot be sent as the settings and the variables say. The SDK
// ignores a variable that it cannot read, and prints it, with what may be a credential in it:
// telemetry would go nowhere, or unsampled, without a word. The error names the variable, and
// quotes no header.
func (c Config) Check() error {
	traces, metrics := c.signals()
	if !traces && !metrics {
		return nil
	}
	if err := CheckEndpoint(c.Endpoint); err != nil {
		return fmt.Errorf("otel.endpoint: %w", err)
	}
	kinds := []string{""} // of variables: for both kinds of telemetry, for one of them
	if traces {
		kinds = append(kinds, "TRACES_")
	}
	if metrics {
		kinds = append(kinds, "METRICS_")
	}
	for _, kind := range kinds {
		if err := c.checkExporter("OTEL_EXPORTER_OTLP_" + kind); err != nil {
			return err
		}
		if kind != "" {
			name := "OTEL_" + kind + "EXPORTER"
			if v := c.value(name); v != "" && v != "otlp" {
				return fmt.Errorf("%s is %q: yaya knows otlp and none", name, v)
			}
		}
	}
	numbers := []string{"OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"}
	for _, name := range numbers {
		if err := c.checkNumber(name); err != nil {
			return err
		}
	}
	_, err := newSampler(c.Env("OTEL_TRACES_SAMPLER"), c.Env("OTEL_TRACES_SAMPLER_ARG"))
	return err
}

// value returns a variable as the exporters read it.
func (c Config) value(name string) string { return strings.TrimSpace(c.Env(name)) }

// checkExporter checks the variables with a prefix.
func (c Config) checkExporter(prefix string) error {
	if c.Endpoint == "" {
		if err := CheckEndpoint(c.value(prefix + "ENDPOINT")); err != nil {
			return fmt.Errorf("%sENDPOINT: %w", prefix, err)
		}
	}
	if p := c.value(prefix + "PROTOCOL"); p != "" && p != "http/protobuf" {
		return fmt.Errorf("%sPROTOCOL is %q: yaya speaks http/protobuf only, on port 4318 of most collectors", prefix, p)
	}
	if z := c.value(prefix + "COMPRESSION"); z != "" && z != "gzip" && z != "none" {
		return fmt.Errorf("%sCOMPRESSION is %q: it must be gzip or none", prefix, z)
	}
	if err := c.checkNumber(prefix + "TIMEOUT"); err != nil {
		return err
	}
	if err := checkHeaders(c.value(prefix + "HEADERS")); err != nil {
		return fmt.Errorf("%sHEADERS: %w", prefix, err)
	}
	return c.checkCertificates(prefix)
}

// checkNumber checks a number of milliseconds or of spans.
func (c Config) checkNumber(name string) error {
	v := c.value(name)
	if n, err := strconv.Atoi(v); v != "" && (err != nil || n <= 0) {
		what := "milliseconds"
		if strings.HasSuffix(name, "_SIZE") {
			what = "spans"
		}
		return fmt.Errorf("%s is %q: it must be a whole number of %s, such as 10000", name, v, what)
	}
	return nil
}

// tokenChars are those of the name of an HTTP header (RFC 9110, 5.6.2).
const tokenChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" //nolint:gosec // no credential

// checkHeaders checks k=v,k=v.
func checkHeaders(list string) error {
	if list == "" {
		return nil
	}
	for i, pair := range strings.Split(list, ",") {
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(value)
		switch {
		case !found:
			return fmt.Errorf("entry %d has no =: it must be name=value,name=value, with a comma in a value as %%2C", i+1)
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(tokenChars, r) }):
			return fmt.Errorf("entry %d has a name that is not one of an HTTP header", i+1)
		case err != nil:
			return fmt.Errorf("the value of entry %d has a %% without two hexadecimal digits behind it: write %% as %%25", i+1)
		case strings.ContainsFunc(strings.TrimSpace(value), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Errorf("the value of entry %d has a character that no HTTP header takes, such as a line break", i+1)
		}
	}
	return nil
}

// checkCertificates checks the files of certificates.
func (c Config) checkCertificates(prefix string) error {
	name := prefix + "CERTIFICATE"
	if file := c.value(name); file != "" {
		data, err := certificateFile(name, file)
		if err != nil {
			return err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(data) {
			return fmt.Errorf("%s: %s has no certificate in PEM", name, file)
		}
	}
	cert, key := prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"
	certFile, keyFile := c.value(cert), c.value(key)
	switch {
	case certFile == "" && keyFile == "":
		return nil
	case certFile == "" || keyFile == "":
		return fmt.Errorf("%s and %s belong together, and one of them is not set", cert, key)
	}
	certData, err := certificateFile(cert, certFile)
	if err != nil {
		return err
	}
	keyData, err := certificateFile(key, keyFile)
	if err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(certData, keyData); err != nil {
		return fmt.Errorf("%s and %s: %w", cert, key, err)
	}
	return nil
}

// certificateFile reads the file that a variable names.
func certificateFile(name, file string) ([]byte, error) {
	data, found, err := userfile.Read(file)
	if err == nil && !found {
		err = fmt.Errorf("%s does not exist", file)
	}
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		err = errors.New(file + " is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}
