package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/certs"
)

// listenFlags say where and how to listen.
type listenFlags struct {
	addr    string
	local   string
	cert    string
	key     string
	proxies string
	hosts   []string

	acme       bool
	email      string
	directory  string
	plain      string // where HTTP-01 is answered
	selfSigned bool
	set        func(flag string) bool // it was given
}

// Addresses of a yaya that gets or makes its certificate by itself.
const (
	acmeListen = ":443" // where authorities look
	selfListen = ":8443"
	off        = "off"
)

func (l *listenFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.addr, "listen", gateway.DefaultListen, "address to listen on; beyond this machine only with TLS\n(default with --acme :443, with --tls-self-signed :8443)")
	f.StringVar(&l.local, "local", "", "address for this machine alone, without TLS, beside a listener with it; off for none\n(default with --acme and --tls-self-signed: "+gateway.DefaultListen+")")
	f.StringVar(&l.cert, "tls-cert", "", "file with a certificate and its chain (PEM); read again when it changes")
	f.StringVar(&l.key, "tls-key", "", "file with its private key (PEM)")
	f.BoolVar(&l.selfSigned, "tls-self-signed", false, "make a key and a certificate: for a home network, where devices compare its fingerprint")
	f.BoolVar(&l.acme, "acme", false, "get and renew certificates for each --host, and agree to the terms of their authority")
	f.StringVar(&l.email, "acme-email", "", "address where the authority reaches you")
	f.StringVar(&l.directory, "acme-directory", "", "`URL` of the authority, such as one of your own\n(default: Let's Encrypt)")
	f.StringVar(&l.plain, "acme-http", "", "address to answer the authority's plain HTTP, and to send browsers to https from; off for none\n(default: port 80, if it can be had)")
	f.StringVar(&l.proxies, "behind-proxy", "", "a proxy serves TLS: its networks (default: this machine)")
	f.Lookup("behind-proxy").NoOptDefVal = "127.0.0.0/8,::1/128"
	f.StringArrayVar(&l.hosts, "host", nil, "name by which clients reach yaya, as in https://NAME (repeatable)")
	l.set = f.Changed
}

// given reports whether a flag was.
func (l *listenFlags) given(flag string) bool { return l.set != nil && l.set(flag) }

// check refuses flags that do not go together, and fills in what depends on others.
func (l *listenFlags) check() error {
	modes := []struct {
		flag string
		on   bool
	}{{"--acme", l.acme}, {"--tls-self-signed", l.selfSigned}, {"--tls-cert", l.cert != ""}, {"--behind-proxy", l.proxies != ""}}
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
	case (l.cert == "") != (l.key == ""):
		return errors.New("--tls-cert and --tls-key belong together")
	case l.acme && len(l.hosts) == 0:
		return errors.New("--acme needs --host: the name by which clients reach yaya, and which the certificate is for")
	case l.proxies != "" && len(l.hosts) == 0:
		return errors.New("--behind-proxy needs --host: the name by which clients reach the proxy")
	case l.given("local") && l.local != off && (first == "" || l.proxies != ""):
		return errors.New("--local is for a yaya that serves TLS: without it, --listen is for this machine")
	}
	for _, flag := range []string{"acme-email", "acme-directory", "acme-http"} {
		if l.given(flag) && !l.acme {
			return fmt.Errorf("--%s needs --acme", flag)
		}
	}
	if l.acme {
		if _, err := certs.CheckDirectory(cmp.Or(l.directory, certs.LetsEncrypt)); err != nil {
			return err
		}
		if err := certs.CheckEmail(l.email); err != nil {
			return err
		}
	}
	for _, h := range l.hosts {
		if h == "" || strings.ContainsAny(h, "/ ") {
			return fmt.Errorf("--host %q: a name is wanted, such as yaya.example or yaya.example:8443", h)
		}
		name := h
		if host, _, err := net.SplitHostPort(h); err == nil {
			name = host
		}
		if l.acme {
			if err := certs.CheckName(name, l.directory == "" || l.directory == certs.LetsEncrypt); err != nil {
				return fmt.Errorf("--acme: --host %w", err)
			}
		}
	}
	if !l.given("listen") && l.acme {
		l.addr = acmeListen
	}
	if !l.given("listen") && l.selfSigned {
		l.addr = selfListen
	}
	host, port, err := net.SplitHostPort(l.addr)
	if err != nil {
		return fmt.Errorf("--listen: %w; it is HOST:PORT, such as %s", err, gateway.DefaultListen)
	}
	if !l.given("local") && (l.acme || l.selfSigned) && !strings.HasSuffix(gateway.DefaultListen, ":"+port) {
		l.local = gateway.DefaultListen
	}
	if l.local == off {
		l.local = ""
	}
	if l.acme && !l.given("acme-http") {
		l.plain = net.JoinHostPort(host, "80")
	}
	return nil
}

// apply writes the flags into cfg; source is where the certificate comes from.
func (l *listenFlags) apply(cfg *gateway.Config, source *certSource) error {
	cfg.Listen, cfg.Local, cfg.Hosts = l.addr, l.local, l.hosts
	cfg.TLS, cfg.ALPN = source.get, source.alpn
	cfg.Hosts = append(cfg.Hosts[:len(cfg.Hosts):len(cfg.Hosts)], source.hosts...)
	if l.proxies == "" {
		return nil
	}
	for s := range strings.SplitSeq(l.proxies, ",") {
		n, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			a, aerr := netip.ParseAddr(strings.TrimSpace(s))
			if aerr != nil {
				return fmt.Errorf("--behind-proxy: %q is no address and no network", s)
			}
			n = netip.PrefixFrom(a, a.BitLen())
		}
		cfg.Proxies = append(cfg.Proxies, n)
	}
	return nil
}

// remote reports whether other machines can reach yaya.
func (l *listenFlags) remote() bool {
	return l.cert != "" || l.proxies != "" || l.acme || l.selfSigned
}

// base is the URL by which clients reach yaya: the first name that it was given, or
// the address that it listens on.
func (l *listenFlags) base(addr string, source *certSource) string {
	scheme := "http://"
	if l.remote() {
		scheme = "https://"
	}
	if len(l.hosts) > 0 {
		host := l.hosts[0]
		// A port that is not the usual one is part of where yaya is; behind a proxy or a
		// router it is whatever --host says.
		if _, port, err := net.SplitHostPort(addr); err == nil && l.selfSigned && !strings.Contains(host, ":") && port != "443" {
			host = net.JoinHostPort(host, port)
		}
		return scheme + host
	}
	if host, port, err := net.SplitHostPort(addr); err == nil && source.address != "" {
		if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
			return scheme + net.JoinHostPort(source.address, port)
		}
	}
	return scheme + addr
}

// logOf is the log of the parts that get certificates.
func logOf(log zerolog.Logger) zerolog.Logger { return log.With().Str("part", "certificates").Logger() }
