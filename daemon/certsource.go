package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/certs"
	"github.com/yaya-ai/yaya/internal/systemd"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// certSource provides the listener's certificate.
type certSource struct {
	get    func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil without TLS
	status func() []certs.Status                                // nil without TLS
	alpn   []string
	// hosts are names of this machine that clients may use, besides --host; address is
	// where they find it without one.
	hosts   []string
	address string
	self    *certs.SelfSigned
	acme    *certs.ACME
	// listener serves plain; nil for none.
	listener net.Listener
	plain    string // the address where authorities ask over plain HTTP, "" for none
	close    []io.Closer
}

// Folders of certificates and keys in the data directory.
const (
	acmeFolder = "certs"
	keyFolder  = "keys"
)

// source opens where the certificate comes from. The caller closes it.
func (l *Listen) source(ctx context.Context, data *os.Root, passed *systemd.Passed, log zerolog.Logger) (_ *certSource, err error) {
	s := &certSource{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	log = logOf(log)
	switch {
	case l.Cert != "":
		c := &certificate{cert: l.Cert, key: l.Key}
		if _, err := c.get(nil); err != nil {
			return nil, err
		}
		s.get, s.status = c.get, c.status
	case l.SelfSigned:
		dir, err := certs.OpenFolder(data, keyFolder)
		if err != nil {
			return nil, err
		}
		s.close = append(s.close, dir)
		if s.self, err = certs.OpenSelfSigned(dir, l.Hosts, log); err != nil {
			return nil, err
		}
		s.get, s.status, s.hosts, s.address = s.self.Certificate, s.self.Status, s.self.Names(), s.self.Address()
	case l.ACME:
		dir, err := certs.OpenFolder(data, acmeFolder)
		if err != nil {
			return nil, err
		}
		s.close = append(s.close, dir)
		plain, err := l.listenPlain(ctx, passed, log)
		if err != nil {
			return nil, err
		}
		if plain != nil {
			s.close, s.listener, s.plain = append(s.close, plain), plain, plain.Addr().String()
		}
		if s.acme, err = certs.OpenACME(certs.ACMEConfig{Names: l.Hosts, Directory: l.Directory, Email: l.Email, Dir: dir, Plain: plain, Log: log}); err != nil {
			return nil, err
		}
		s.close = append(s.close, s.acme)
		s.get, s.status, s.alpn = s.acme.Certificate, s.acme.Status, []string{certs.ALPN}
	}
	return s, nil
}

// listenPlain listens where the authority asks over plain HTTP. Without that there is
// TLS-ALPN-01, so port 80 is not insisted on unless it was named.
func (l *Listen) listenPlain(ctx context.Context, passed *systemd.Passed, log zerolog.Logger) (net.Listener, error) {
	if l.Plain == off {
		return nil, nil //nolint:nilnil // none is wanted
	}
	if plain, err := passed.Take(acmeSocket, "tcp", l.Plain); plain != nil || err != nil {
		return plain, err
	}
	plain, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Plain)
	if err == nil {
		return plain, nil
	}
	if l.given("acme-http") {
		return nil, fmt.Errorf("--acme-http %s: %w", l.Plain, err)
	}
	log.Warn().Err(err).Msg("port 80 is not available: the authority has to reach port 443, and browsers are not sent from http to https (another address: --acme-http)")
	return nil, nil //nolint:nilnil // said
}

// Close lets go of it; run has ended.
func (s *certSource) Close() error {
	var err error
	for i := len(s.close) - 1; i >= 0; i-- {
		if e := s.close[i].Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	s.close = nil
	return err
}

// run gets and renews certificates until end is called.
func (s *certSource) run(ctx context.Context) (end func()) {
	if s.acme == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.acme.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// fingerprint is that of the key that devices compare, "" when an authority speaks for it.
func (s *certSource) fingerprint() string {
	if s.self == nil {
		return ""
	}
	return s.self.Fingerprint()
}

// welcome returns the message about the certificate at the start.
func (s *certSource) welcome() string {
	var b strings.Builder
	switch {
	case s.self != nil:
		fmt.Fprintf(&b, "  its key       %s\n  certificate   SHA-256 %s\n", s.self.Fingerprint(), s.self.CertificateFingerprint())
		fmt.Fprintf(&b, "                Nobody has signed it: compare what a browser shows before you trust it.\n")
	case s.acme != nil:
		for _, c := range s.acme.Status() {
			if c.Expires.IsZero() {
				fmt.Fprintf(&b, "  certificate   none for %s yet: %s is asked now, to whose terms --acme agrees\n", c.Name, s.acme.CA())
			} else {
				fmt.Fprintf(&b, "  certificate   for %s until %s\n", c.Name, c.Expires.Format(time.DateOnly))
			}
		}
	}
	return b.String()
}

// soon is when the end of a certificate is something to look at.
const soon = 7 * 24 * time.Hour

// certificateHealth is how the certificates are, for doctor.
func certificateHealth(all []certs.Status, now time.Time) plugin.HealthReport {
	r := plugin.HealthReport{Status: plugin.Healthy}
	for i, s := range all {
		check := plugin.HealthCheck{Name: s.Name, Status: plugin.Healthy, Message: "until " + s.Expires.Format(time.DateTime)}
		switch {
		case s.Expires.IsZero() && s.Err == nil:
			check.Status, check.Message = plugin.Degraded, "no certificate yet: the authority is being asked"
		case s.Expires.IsZero():
			check.Status, check.Message = plugin.Failing, "no certificate"
		case !now.Before(s.Expires):
			check.Status, check.Message = plugin.Failing, "it was good until "+s.Expires.Format(time.DateTime)
		case s.Err != nil, s.Next.IsZero() && s.Expires.Sub(now) < soon: // nobody here renews it
			check.Status = plugin.Degraded
		}
		if s.Err != nil {
			check.Message += ": " + s.Err.Error()
			if !s.Next.IsZero() {
				check.Message += "; the next try is at " + s.Next.Format(time.TimeOnly)
			}
		}
		if i == 0 || worse(check.Status, r.Status) {
			r.Status, r.Summary = check.Status, s.Name+": "+check.Message
		}
		r.Details = append(r.Details, check)
	}
	return r
}

// worse reports whether one state is worse than another.
func worse(a, b plugin.Health) bool {
	rank := map[plugin.Health]int{plugin.Healthy: 0, plugin.Degraded: 1, plugin.Failing: 2}
	return rank[a] > rank[b]
}

// certificateGauge is when the first certificate ends, in Unix time; 0 when a name has none.
func certificateGauge(all []certs.Status) float64 {
	var first time.Time
	for _, s := range all {
		if s.Expires.IsZero() {
			return 0
		}
		if first.IsZero() || s.Expires.Before(first) {
			first = s.Expires
		}
	}
	if first.IsZero() {
		return 0
	}
	return float64(first.Unix())
}
