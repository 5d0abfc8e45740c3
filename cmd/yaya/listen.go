package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway"
)

// listenFlags say where and how to listen.
type listenFlags struct {
	addr    string
	cert    string
	key     string
	proxies string
	hosts   []string
}

func (l *listenFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.addr, "listen", gateway.DefaultListen, "address to listen on; beyond this machine only with TLS")
	f.StringVar(&l.cert, "tls-cert", "", "file with a certificate and its chain (PEM); read again when it changes")
	f.StringVar(&l.key, "tls-key", "", "file with its private key (PEM)")
	f.StringVar(&l.proxies, "behind-proxy", "", "a proxy serves TLS: its networks (default: this machine)")
	f.Lookup("behind-proxy").NoOptDefVal = "127.0.0.0/8,::1/128"
	f.StringArrayVar(&l.hosts, "host", nil, "name by which clients reach yaya, as in https://NAME (repeatable)")
}

// apply checks the flags and writes them into cfg.
func (l *listenFlags) apply(cfg *gateway.Config) error {
	cfg.Listen, cfg.Hosts = l.addr, l.hosts
	for _, h := range l.hosts {
		if h == "" || strings.ContainsAny(h, "/ ") {
			return fmt.Errorf("--host %q: a name is wanted, such as yaya.example or yaya.example:8443", h)
		}
	}
	if l.proxies != "" {
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
		if len(l.hosts) == 0 {
			return errors.New("--behind-proxy needs --host: the name by which clients reach the proxy")
		}
	}
	if (l.cert == "") != (l.key == "") {
		return errors.New("--tls-cert and --tls-key belong together")
	}
	if l.cert == "" {
		return nil
	}
	if cfg.Proxies != nil {
		return errors.New("--tls-cert and --behind-proxy exclude each other: one of the two serves TLS")
	}
	c := &certificate{cert: l.cert, key: l.key}
	if _, err := c.get(nil); err != nil {
		return err
	}
	cfg.TLS = c.get
	return nil
}

// remote reports whether other machines can reach yaya.
func (l *listenFlags) remote() bool { return l.cert != "" || l.proxies != "" }

// base is the URL by which clients reach yaya: the first name that it was given, or
// the address that it listens on.
func (l *listenFlags) base(addr string) string {
	scheme := "http://"
	if l.remote() {
		scheme = "https://"
	}
	if len(l.hosts) > 0 {
		return scheme + l.hosts[0]
	}
	return scheme + addr
}

// certificate is read again when its file changes: certificates are renewed while
// yaya runs.
type certificate struct {
	cert, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time
	looked  time.Time
}

// lookEvery is how often the file is looked at, at most.
const lookEvery = 10 * time.Second

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.looked) < lookEvery {
		return c.loaded, nil
	}
	c.looked = time.Now()
	st, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && st.ModTime().Equal(c.changed) {
		return c.loaded, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err != nil {
		if c.loaded != nil { // half-way through a renewal: the old one is better than none
			return c.loaded, nil
		}
		return nil, fmt.Errorf("TLS: %w", err)
	}
	c.loaded, c.changed = &pair, st.ModTime()
	return c.loaded, nil
}
