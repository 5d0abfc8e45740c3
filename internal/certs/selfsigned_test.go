package certs

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/keypin"
)

func testFolder(t *testing.T) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// The key and its fingerprint stay over restarts, other addresses and renewals; the
// certificate covers the names of this machine, and is reissued in time.
func TestSelfSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := testFolder(t)
		addrs := []netip.Addr{netip.MustParseAddr("192.168.1.7")}
		var asked error
		open := func() *SelfSigned {
			t.Helper()
			s, err := newSelfSigned(dir, []string{"Yaya.home:8443", "10.9.8.7"}, zerolog.Nop(), func() ([]netip.Addr, error) { return addrs, asked })
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		show := func(s *SelfSigned) *tls.Certificate {
			t.Helper()
			pair, err := s.Certificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			return pair
		}
		s := open()
		fingerprint, first := s.Fingerprint(), show(s)
		for _, name := range []string{"yaya.home", "localhost", "192.168.1.7", "10.9.8.7", "127.0.0.1", "::1"} {
			if err := first.Leaf.VerifyHostname(name); err != nil {
				t.Errorf("VerifyHostname(%s) = %v, want nil", name, err)
			}
		}
		if st, err := dir.Stat(selfFile); err != nil || st.Mode() != 0o600 {
			t.Errorf("got %v, %v, want 0600", st.Mode(), err)
		}
		if again := open(); show(again).Leaf.Equal(first.Leaf) == false || again.Fingerprint() != fingerprint {
			t.Error("after a restart it is another certificate")
		}
		addrs = append(addrs, netip.MustParseAddr("192.168.2.9"))
		if !show(s).Leaf.Equal(first.Leaf) {
			t.Error("each handshake looks at the addresses")
		}
		time.Sleep(time.Minute)
		second := show(s)
		if err := second.Leaf.VerifyHostname("192.168.2.9"); err != nil || s.Fingerprint() != fingerprint {
			t.Errorf("got %v and %s, want %s", err, s.Fingerprint(), fingerprint)
		}
		addrs, asked = nil, errors.New("no interfaces")
		time.Sleep(time.Minute)
		if !show(s).Leaf.Equal(second.Leaf) {
			t.Error("an address that goes makes another certificate")
		}
		time.Sleep(selfLife - selfRenewal)
		third := show(s)
		if third.Leaf.Equal(second.Leaf) || s.Fingerprint() != fingerprint || time.Until(third.Leaf.NotAfter) < selfLife-2*time.Hour {
			t.Errorf("it was not renewed with its key: until %v", third.Leaf.NotAfter)
		}
		if got := s.CertificateFingerprint(); len(got) != 95 || strings.Count(got, ":") != 31 {
			t.Errorf("got %s, want 32 bytes in hex with colons between them", got)
		}
		if open().Fingerprint() != fingerprint {
			t.Error("after the renewal and a restart it is another key")
		}
	})
}

// A key that others may know is refused, and not replaced silently.
func TestSelfSignedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"readable for others": {func(p string) error { return os.Chmod(p, 0o644) }, "others can get at the key"},
		"a link":              {func(p string) error { return errors.Join(os.Rename(p, p+".x"), os.Symlink(p+".x", p)) }, "not a regular file"},
		"damaged":             {func(p string) error { return os.Truncate(p, 100) }, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testFolder(t)
			if _, err := OpenSelfSigned(dir, nil, zerolog.Nop()); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(dir.Name() + "/" + selfFile); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenSelfSigned(dir, nil, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), selfFile) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := OpenSelfSigned(testFolder(t), []string{"a b"}, zerolog.Nop()); err == nil {
		t.Error("a name with a space is taken")
	}
}

// A client knows the server by its key's fingerprint: whatever name it dials, after a
// renewal too, and no other key.
func TestPin(t *testing.T) {
	s, err := OpenSelfSigned(testFolder(t), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	other, err := OpenSelfSigned(testFolder(t), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener = tls.NewListener(server.Listener, &tls.Config{GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	for name, c := range map[string]struct{ pin, want string }{
		"its own":         {s.Fingerprint(), ""},
		"as people copy":  {" " + strings.ToUpper(strings.TrimPrefix(s.Fingerprint(), "sha256:")), ""},
		"another's":       {other.Fingerprint(), other.Fingerprint()},
		"nothing":         {"sha256:", "64 hexadecimal"},
		"cut":             {s.Fingerprint()[:70], "64 hexadecimal"},
		"not hexadecimal": {strings.Repeat("x", 64), "64 hexadecimal"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := keypin.Config(c.pin)
			if err == nil {
				tr := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+server.Listener.Addr().String(), nil)
				var resp *http.Response
				if resp, err = tr.RoundTrip(req); err == nil {
					_ = resp.Body.Close()
				}
			}
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.pin == other.Fingerprint() && (!errors.Is(err, keypin.ErrOther) || !strings.Contains(err.Error(), s.Fingerprint())) {
				t.Errorf("got %v, want both fingerprints", err)
			}
		})
	}
}
