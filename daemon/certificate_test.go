package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/certs/certstest"
)

// A certificate that is renewed is served from then on; one that is half-written is
// not.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := certstest.SelfSigned(t, dir, 1)
	apply := func(l Listen) error {
		l.Addr = gateway.DefaultListen
		if err := l.Check(); err != nil {
			return err
		}
		source, err := l.source(t.Context(), nil, nil, zerolog.Nop())
		if err != nil {
			return err
		}
		_, err = l.gateway(source)
		return err
	}
	if err := apply(Listen{Cert: cert, Key: key}); err != nil {
		t.Fatal(err)
	}
	c := &certificate{cert: cert, key: key}
	serial := func() int64 {
		t.Helper()
		c.looked = time.Time{} // as if it had not been looked at for a while
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("serial %d", got)
	}
	later := func(n int) {
		at := time.Now().Add(time.Duration(n) * time.Minute)
		if err := os.Chtimes(cert, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(cert, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	later(1)
	if got := serial(); got != 1 {
		t.Errorf("half-written: serial %d", got)
	}
	certstest.SelfSigned(t, dir, 2)
	later(2)
	if got := serial(); got != 2 {
		t.Errorf("renewed: serial %d", got)
	}
	for want, bad := range map[string]Listen{
		"belong together":    {Cert: cert},
		"exclude each other": {Cert: cert, Key: key, Proxies: "127.0.0.1", Hosts: []string{"h"}},
		"needs --host":       {Proxies: "127.0.0.1"},
		"neither an address": {Proxies: "nonsense", Hosts: []string{"h"}},
		"a name is wanted":   {Hosts: []string{"https://h/"}},
		"there is no file":   {Cert: filepath.Join(dir, "none"), Key: key},
	} {
		if err := apply(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error, err with %v", want, err, want)
		}
	}
}
