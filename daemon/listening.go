package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/certs"
)

// Listen say where and how to listen.
type Listen struct {
	Addr    string
	Local   string
	Cert    string
	Key     string
	Proxies string
	Hosts   []string

	ACME       bool
	Email      string
	Directory  string
	Plain      string // where HTTP-01 is answered
	SelfSigned bool
	Set        func(flag string) bool // it was given
}

// Addresses of a yaya that gets or makes its certificate by itself.
const (
	acmeListen = ":443" // where authorities look
	selfListen = ":8443"
	off        = "off"
)

// given reports whether a flag was.
func (l *Listen) given(flag string) bool { return l.Set != nil && l.Set(flag) }

// Check refuses flags that do not go together, and fills in what depends on others.
func (l *Listen) Check() error {
	modes := []struct {
		flag string
		on   bool
	}{{"--acme", l.ACME}, {"--tls-self-signed", l.SelfSigned}, {"--tls-cert", l.Cert != ""}, {"--behind-proxy", l.Proxies != ""}}
	first := ""
	for _, m := range modes {
		switch {
		case m.on && first != "":
			return fmt.Errorf("%s and %s exclude each other: there is one certificate, or a proxy has it", first, m.flag)
		case m.on:
			first = m.flag
		}
	}
	switch {
	case (l.Cert == "") != (l.Key == ""):
		return errors.New("--tls-cert and --tls-key belong together")
	case l.ACME && len(l.Hosts) == 0:
		return errors.New("--acme needs --host: the name by which clients reach yaya, and which the certificate is for")
	case l.Proxies != "" && len(l.Hosts) == 0:
		return errors.New("--behind-proxy needs --host: the name by which clients reach the proxy")
	case l.given("local") && (first == "" || l.Proxies != ""):
		return errors.New("--local is for a yaya that serves TLS: without it, --listen is the one listener, for this machine")
	case l.Cert != "" && Missing(l.Cert):
		return fmt.Errorf("--tls-cert: there is no file %s", l.Cert)
	case l.Key != "" && Missing(l.Key):
		return fmt.Errorf("--tls-key: there is no file %s", l.Key)
	}
	for _, flag := range []string{"acme-email", "acme-directory", "acme-http"} {
		if l.given(flag) && !l.ACME {
			return fmt.Errorf("--%s needs --acme", flag)
		}
	}
	if l.ACME {
		if _, err := certs.CheckDirectory(cmp.Or(l.Directory, certs.LetsEncrypt)); err != nil {
			return err
		}
		if err := certs.CheckEmail(l.Email); err != nil {
			return err
		}
	}
	for _, h := range l.Hosts {
		if h == "" || strings.ContainsAny(h, "/ ") {
			return fmt.Errorf("--host %q: a name is wanted, such as yaya.example.com or yaya.example.com:8443", h)
		}
		name := h
		if host, _, err := net.SplitHostPort(h); err == nil {
			name = host
		}
		if l.ACME {
			if err := certs.CheckName(name, l.Directory == "" || l.Directory == certs.LetsEncrypt); err != nil {
				return fmt.Errorf("--acme: --host %w", err)
			}
		}
	}
	if !l.given("listen") && l.ACME {
		l.Addr = acmeListen
	}
	if !l.given("listen") && l.SelfSigned {
		l.Addr = selfListen
	}
	host, port, err := net.SplitHostPort(l.Addr)
	if err != nil {
		return fmt.Errorf("--listen: %w; it is HOST:PORT, such as %s", err, gateway.DefaultListen)
	}
	if !l.given("local") && (l.ACME || l.SelfSigned) && !strings.HasSuffix(gateway.DefaultListen, ":"+port) {
		l.Local = gateway.DefaultListen
	}
	if l.Local == off {
		l.Local = ""
	}
	for flag, addr := range map[string]string{"listen": l.Addr, "local": l.Local} {
		if err := checkAddress(addr); addr != "" && err != nil {
			return fmt.Errorf("--%s: %w; it is HOST:PORT, such as %s", flag, err, gateway.DefaultListen)
		}
	}
	if l.ACME && !l.given("acme-http") {
		l.Plain = net.JoinHostPort(host, "80")
	}
	return nil
}

// checkAddress reports why nothing can listen at an address.
func checkAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if _, err := net.LookupPort("tcp", port); err != nil { //nolint:noctx // it asks nobody
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}

// gateway returns the gateway's configuration from the flags; source provides the certificate.
func (l *Listen) gateway(source *certSource) (gateway.Config, error) {
	cfg := gateway.Config{Listen: l.Addr, Local: l.Local, TLS: source.get, ALPN: source.alpn, Hosts: slices.Concat(l.Hosts, source.hosts)}
	if l.Proxies == "" {
		return cfg, nil
	}
	for s := range strings.SplitSeq(l.Proxies, ",") {
		n, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			a, aerr := netip.ParseAddr(strings.TrimSpace(s))
			if aerr != nil {
				return cfg, fmt.Errorf("--behind-proxy: %q is neither an address nor a network", s)
			}
			n = netip.PrefixFrom(a, a.BitLen())
		}
		cfg.Proxies = append(cfg.Proxies, n)
	}
	return cfg, nil
}

// remote reports whether other machines can reach yaya.
func (l *Listen) remote() bool {
	return l.Cert != "" || l.Proxies != "" || l.ACME || l.SelfSigned
}

// bases are the URLs by which clients reach yaya, the best first: by the names that it was
// given, or at the address that it listens on.
func (l *Listen) bases(addr string, source *certSource) (all []string) {
	scheme := "http://"
	if l.remote() {
		scheme = "https://"
	}
	listens, port, err := net.SplitHostPort(addr)
	for _, host := range l.Hosts {
		// A port that is not the usual one is part of where yaya is; behind a proxy or a
		// router it is whatever --host says.
		if err == nil && l.SelfSigned && !strings.Contains(host, ":") && port != "443" {
			host = net.JoinHostPort(host, port)
		}
		all = append(all, scheme+host)
	}
	if len(all) > 0 && !l.SelfSigned { // whose certificate is for the address, too
		return all
	}
	if ip, perr := netip.ParseAddr(listens); err == nil && source.address != "" && perr == nil && ip.IsUnspecified() {
		addr = net.JoinHostPort(source.address, port)
	}
	return append(all, scheme+addr)
}

// logOf is the log of the parts that get certificates.
func logOf(log zerolog.Logger) zerolog.Logger { return log.With().Str("part", "certificates").Logger() }
