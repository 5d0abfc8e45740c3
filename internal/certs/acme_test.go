package certs_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/certs"
	"github.com/yaya-ai/yaya/internal/certs/certstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = "https://ca.example"

// direct asks an authority without a network, so that time can be a test's.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		d.ServeHTTP(w, r)
	}()
	<-answered
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// world is an authority, and a yaya that asks it.
type world struct {
	t   *testing.T
	ca  *certstest.CA
	dir *os.Root
	log bytes.Buffer
	*certs.ACME
	stop func()
}

// pass lets time pass, and runs everything that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func folder(t *testing.T) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: folder(t), stop: func() {}}
	ca, err := certstest.New(base, func(kind, name, token, keyAuth string) error {
		if kind != "tls-alpn-01" {
			return errors.New("port 80 is closed")
		}
		pair, err := w.Certificate(&tls.ClientHelloInfo{ServerName: name, SupportedProtos: []string{certs.ALPN}})
		if err != nil {
			return err
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			return err
		}
		return certstest.Shown(leaf, name, keyAuth)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.ca = ca
	return w
}

// start opens the folder as a daemon does when it starts, and runs until end.
func (w *world) start(names ...string) {
	w.t.Helper()
	a, err := certs.OpenACME(certs.ACMEConfig{Names: names, Directory: w.ca.Directory(), Email: "admin@yaya.example", Dir: w.dir, Log: zerolog.New(&w.log), Transport: direct{w.ca}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.ACME = a
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-done
		_ = a.Close()
	}
}

func (w *world) leaf(name string) *x509.Certificate {
	w.t.Helper()
	pair, err := w.Certificate(&tls.ClientHelloInfo{ServerName: name, SupportedProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return pair.Leaf
}

func (w *world) orders() int {
	n, _ := w.ca.Orders()
	return n
}

// The whole life: issued for each name, kept over a restart, renewed in time with another
// key, and kept from strangers' handshakes.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("Yaya.example", "www.yaya.example:8443")
		pass(time.Minute)
		first := w.leaf("yaya.example")
		if _, err := first.Verify(x509.VerifyOptions{DNSName: "yaya.example", Roots: w.ca.Roots()}); err != nil {
			t.Errorf("Verify of the certificate = %v, want nil", err)
		}
		w.leaf("WWW.yaya.example.") // as some clients write it
		if n := w.orders(); n != 2 {
			t.Errorf("got %d orders, want one for each name", n)
		}
		if n, contacts := w.ca.Accounts(); n != 1 || fmt.Sprint(contacts) != "[mailto:admin@yaya.example]" {
			t.Errorf("got %d accounts with %v", n, contacts)
		}
		// A flood of handshakes for other names, and for none, asks the authority nothing.
		_, before := w.ca.Orders()
		for _, name := range []string{"", "other.example", "yaya.example.other.example", "*.example", strings.Repeat("x", 300), "../account.key", "127.0.0.1"} {
			for _, protos := range [][]string{nil, {certs.ALPN}} {
				for range 100 {
					if pair, err := w.Certificate(&tls.ClientHelloInfo{ServerName: name, SupportedProtos: protos}); err == nil {
						t.Fatalf("%q got %v, want no certificate", name, pair.Leaf.DNSNames)
					}
				}
			}
		}
		if _, err := w.Certificate(&tls.ClientHelloInfo{ServerName: "yaya.example", SupportedProtos: []string{certs.ALPN}}); err == nil {
			t.Error("the answer to a challenge is there after the challenge")
		}
		pass(24 * time.Hour)
		if _, after := w.ca.Orders(); after != before {
			t.Errorf("%d requests were made for strangers", after-before)
		}
		w.stop()

		w.start("yaya.example", "www.yaya.example:8443")
		if got := w.leaf("yaya.example"); !got.Equal(first) {
			t.Error("after a restart it is another certificate")
		}
		pass(50 * 24 * time.Hour)
		if n := w.orders(); n != 2 {
			t.Errorf("got %d orders before two thirds of the time are over, want 2", n)
		}
		pass(11 * 24 * time.Hour)
		second := w.leaf("yaya.example")
		if second.Equal(first) || second.PublicKey.(*ecdsa.PublicKey).Equal(first.PublicKey) {
			t.Error("it was not renewed with another key")
		}
		if n := w.orders(); n != 4 {
			t.Errorf("got %d orders, want 4", n)
		}
		w.stop()
		// Four years without anybody: expired certificates are not shown.
		pass(4 * 365 * 24 * time.Hour)
		w.ca.Tamper(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		if a, err := certs.OpenACME(certs.ACMEConfig{Names: []string{"yaya.example"}, Directory: w.ca.Directory(), Dir: w.dir}); err != nil {
			t.Errorf("OpenACME with expired certificates = %v, want no error", err)
		} else {
			if _, err := a.Certificate(&tls.ClientHelloInfo{ServerName: "yaya.example"}); err == nil || !strings.Contains(err.Error(), "no certificate for yaya.example yet") {
				t.Errorf("got %v for one that is over", err)
			}
			_ = a.Close()
		}
		for _, want := range []string{base + "/terms", "with --acme you agree", `"until":`} {
			if !strings.Contains(w.log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, w.log.String())
			}
		}
		if strings.Contains(w.log.String(), "PRIVATE") {
			t.Error("a key is in the log")
		}
	})
}

// A failed order is reported with its remedy, and retried with growing pauses until it
// succeeds.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(w http.ResponseWriter, r *http.Request) bool
		day    int    // orders and requests for the directory in a day, at most
		want   string // in the error
	}{
		"the name": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/order" {
				certstest.Refuse(w, 403, "rejectedIdentifier", "policy\x1b[31m forbids\nit")
				return true
			}
			return false
		}, 8, "ca.example refused a certificate for yaya.example: tls-alpn-01: 403 urn:ietf:params:acme:error:rejectedIdentifier: policy[31m forbids it (yaya.example has to lead to this machine in the DNS, and its port 443 to this listener)"},
		"too many": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/order" {
				w.Header().Set("Retry-After", "36000")
				certstest.Refuse(w, 429, "rateLimited", "too many")
				return true
			}
			return false
		}, 3, "nothing is to be done but wait"},
		"down": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(503)
			return true
		}, 30, "the certification authority ca.example could not be asked"},
		"not an authority": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "<html>")
			return true
		}, 30, "could not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				tries := 0
				w.ca.Tamper(func(rw http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/order" || r.URL.Path == "/dir" {
						tries++
					}
					return c.tamper(rw, r)
				})
				w.start("yaya.example")
				defer w.stop()
				pass(5 * time.Minute)
				s := w.Status()[0]
				if s.Err == nil || !strings.Contains(s.Err.Error(), c.want) {
					t.Errorf("got %v, want %q", s.Err, c.want)
				}
				pass(24 * time.Hour)
				// Each try asks for the directory once, and four times when it gets none.
				if tries > c.day*4 {
					t.Errorf("got %d requests in a day, want at most %d tries", tries, c.day)
				}
				w.ca.Tamper(nil)
				pass(13 * time.Hour)
				w.leaf("yaya.example")
				if s := w.Status()[0]; s.Err != nil || s.Expires.IsZero() {
					t.Errorf("got %+v after it was issued", s)
				}
			})
		})
	}
}

// A name that does not lead here: the check fails, and at most two a try.
func TestWrongDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		checks := 0
		w.ca.Check = func(string, string, string, string) error {
			checks++
			return errors.New("NXDOMAIN looking up A for yaya.example")
		}
		w.start("yaya.example")
		defer w.stop()
		pass(time.Hour)
		if err := w.Status()[0].Err; err == nil || !strings.Contains(err.Error(), "NXDOMAIN") || !strings.Contains(err.Error(), "has to lead to this machine") {
			t.Errorf("got %v; want NXDOMAIN, and the advice that the name has to lead to this machine", err)
		}
		if checks == 0 || checks > 5 {
			t.Errorf("got %d failed checks in an hour, want 1 to 5", checks)
		}
	})
}

// A certificate that is there is shown while its renewal fails, and the state says so.
func TestRenewalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start("yaya.example")
		defer w.stop()
		pass(time.Minute)
		first := w.leaf("yaya.example")
		w.ca.Tamper(func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(502); return true })
		pass(65 * 24 * time.Hour)
		if s := w.Status()[0]; s.Err == nil || !s.Expires.Equal(first.NotAfter) {
			t.Errorf("got %+v, want the error and the old end", s)
		}
		if !w.leaf("yaya.example").Equal(first) {
			t.Error("the old certificate is gone")
		}
		if !strings.Contains(w.log.String(), `"level":"warn"`) {
			t.Errorf("got %s, want a warning in the log", w.log.String())
		}
	})
}

// An authority that wants to hurt: it cannot make yaya read, wait, follow or ask without
// end, and no certificate is taken that is not for that key and name.
func TestHostileAuthority(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(path, text string) func(*world, http.ResponseWriter, *http.Request) bool {
		return func(_ *world, w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, path) {
				return false
			}
			w.Header().Set("Location", base+"/order/0")
			if path == "/order" {
				w.WriteHeader(http.StatusCreated)
			}
			_, _ = io.WriteString(w, text)
			return true
		}
	}
	for name, c := range map[string]struct {
		tamper func(*world, http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"an answer without end": {answer("/dir", strings.Repeat(" ", 3<<20)), "larger than"},
		"an error without end": {func(_ *world, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/account" {
				w.WriteHeader(400)
				_, _ = io.WriteString(w, strings.Repeat("A", 3<<20))
			}
			return r.URL.Path == "/account"
		}, "AAAA"},
		"a redirect": {func(_ *world, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, base+"/dir", http.StatusFound)
			return true
		}, "redirects are not followed"},
		"addresses of this machine":    {answer("/dir", `{"newNonce":"http://127.0.0.1/n","newAccount":"http://127.0.0.1/a","newOrder":"http://127.0.0.1/o"}`), "of another host"},
		"an order's address elsewhere": {answer("/order", `{"status":"pending","authorizations":["https://169.254.169.254/latest"]}`), "of another host"},
		"silence": {func(_ *world, _ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, "deadline exceeded"},
		"polling without a pause": {func(_ *world, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "-5")
			return answer("/authz", `{"status":"pending","identifier":{"type":"dns","value":"yaya.example"},"challenges":[{"type":"tls-alpn-01","url":"`+base+`/chal/0/tls-alpn-01","token":"x"}]}`)(nil, w, r)
		}, ""},
		"a pause of years": {func(_ *world, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "999999999")
			return answer("/authz", `{"status":"pending","identifier":{"type":"dns","value":"yaya.example"},"challenges":[{"type":"tls-alpn-01","url":"`+base+`/chal/0/tls-alpn-01","token":"x"}]}`)(nil, w, r)
		}, ""},
		"another name to check":     {answer("/authz", `{"status":"pending","identifier":{"type":"dns","value":"bank.example"},"challenges":[]}`), "bank.example"},
		"no challenge":              {answer("/authz", `{"status":"pending","identifier":{"type":"dns","value":"yaya.example"},"challenges":[]}`), "does not offer"},
		"a token without end":       {answer("/authz", `{"status":"pending","identifier":{"type":"dns","value":"yaya.example"},"challenges":[{"type":"tls-alpn-01","url":"`+base+`/chal/0/tls-alpn-01","token":"`+strings.Repeat("x", 1000)+`"}]}`), "a token of 1000"},
		"a thousand authorizations": {answer("/order", `{"status":"pending","authorizations":[`+strings.Repeat(`"`+base+`/authz/0",`, 999)+`"`+base+`/authz/0"]}`), "1000 authorizations"},
		"another's certificate": {func(w *world, rw http.ResponseWriter, r *http.Request) bool {
			raw, _ := w.ca.Sign("yaya.example", other.Public())
			return answer("/cert", string(raw))(w, rw, r)
		}, "for another key"},
		"no certificate":              {answer("/cert", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "cannot be used"},
		"a key instead":               {answer("/cert", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))), "invalid PEM"},
		"a certificate that was over": {func(w *world, _ http.ResponseWriter, _ *http.Request) bool { w.ca.Life = -time.Second; return false }, "was good until"},
		"nonces that are never fresh": {func(_ *world, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Replay-Nonce", "x")
			return false
		}, "badNonce"},
		"an account that is not known": {answer("/account", `{}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.ca.Tamper(func(rw http.ResponseWriter, r *http.Request) bool { return c.tamper(w, rw, r) })
				w.start("yaya.example")
				defer w.stop()
				pass(6 * time.Minute)
				s := w.Status()[0]
				if s.Err == nil || !strings.Contains(s.Err.Error(), c.want) || len(s.Err.Error()) > 2000 {
					t.Errorf("got %.3000v, want %q", s.Err, c.want)
				}
				if _, n := w.ca.Orders(); n > 1200 {
					t.Errorf("got %d requests in six minutes", n)
				}
				if pair, err := w.Certificate(&tls.ClientHelloInfo{ServerName: "yaya.example"}); err == nil {
					t.Errorf("it is taken: %v", pair.Leaf.Subject)
				}
			})
		})
	}
}

// Files that others can read or have put there are refused with their name, and those
// that yaya makes are its own.
func TestFiles(t *testing.T) {
	var cached, account string
	issue := func(t *testing.T) *world {
		w := newWorld(t)
		synctest.Test(t, func(t *testing.T) {
			w.t = t
			w.start("yaya.example")
			pass(time.Minute)
			w.stop()
		})
		all, err := filepath.Glob(w.dir.Name() + "/*/*")
		if err != nil || len(all) != 2 {
			t.Fatalf("got %v, %v, want len(all) 2", all, err)
		}
		account, cached = all[0], all[1]
		return w
	}
	issue(t)
	for _, path := range []string{account, cached} {
		if st, err := os.Lstat(path); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s: got %v, %v, want 0600", path, st.Mode(), err)
		}
	}
	if st, err := os.Stat(filepath.Dir(cached)); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v, want 0700", st.Mode(), err)
	}
	for name, c := range map[string]struct {
		spoil func() error
		want  string
	}{
		"readable for others": {func() error { return os.Chmod(cached, 0o644) }, "others can get at the key"},
		"a link":              {func() error { return errors.Join(os.Rename(cached, cached+".x"), os.Symlink(cached+".x", cached)) }, "not a regular file"},
		"a second name":       {func() error { return os.Link(cached, cached+".x") }, "has 2 names"},
		"a folder":            {func() error { return errors.Join(os.Remove(cached), os.Mkdir(cached, 0o700)) }, "not a regular file"},
		"cut":                 {func() error { return os.Truncate(cached, 300) }, "damaged"},
		"too large":           {func() error { return os.Truncate(cached, 1<<30) }, "larger than"},
		"an open folder":      {func() error { return os.Chmod(filepath.Dir(cached), 0o755) }, "chmod 700"},
		"a folder's link": {func() error {
			d := filepath.Dir(cached)
			return errors.Join(os.Rename(d, d+".x"), os.Symlink(d+".x", d))
		}, "a folder of their own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := issue(t)
			if err := c.spoil(); err != nil {
				t.Fatal(err)
			}
			_, err := certs.OpenACME(certs.ACMEConfig{Names: []string{"yaya.example"}, Directory: w.ca.Directory(), Dir: w.dir})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(filepath.Dir(cached))) {
				t.Errorf("got %v, want %q and the path", err, c.want)
			}
		})
	}
	t.Run("the account's key", func(t *testing.T) {
		w := issue(t)
		if err := errors.Join(os.Chmod(account, 0o640), os.Remove(cached)); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			w.t = t
			w.start("yaya.example")
			defer w.stop()
			pass(time.Minute)
			if err := w.Status()[0].Err; err == nil || !strings.Contains(err.Error(), "account.key") {
				t.Errorf(`got %v, want "account.key" in it`, err)
			}
		})
	})
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"yaya.example.com": "", "a.b.c.d.example.org": "", "xn--grn-ioa.de": "",
		"": "empty", "192.0.2.1": "is an address", "::1": "is an address", "[::1]": "is an address", "*.yaya.dev": "wildcard",
		"localhost": "no TLS", "x.localhost": "no TLS", "nas": "no domain", "nas.local": "private networks", "nas.home.arpa": "private networks",
		"yaya.example": "reserved for documentation", "yaya.test": "reserved for tests", "yaya.invalid": "reserved for", "yaya-example.com": "",
		"a..b": "not the name", "-a.dev": "not the name", "a_b.dev": "not the name", "grün.de": "xn--", "a/b.dev": "not the name", "a b.dev": "not the name",
		strings.Repeat("a", 64) + ".dev": "not the name", strings.Repeat("a.", 127) + "dev": "not the name",
	} {
		if err := certs.CheckName(name, true); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%.80q: got %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"nas", "nas.local"} {
		if err := certs.CheckName(name, false); err != nil {
			t.Errorf("an authority of one's own: %v", err)
		}
	}
	for name, cfg := range map[string]certs.ACMEConfig{
		"no name":              {},
		"a directory in http":  {Names: []string{"yaya.dev"}, Directory: "http://ca.example/dir"},
		"a directory in words": {Names: []string{"yaya.dev"}, Directory: "letsencrypt"},
		"an e-mail in words":   {Names: []string{"yaya.dev"}, Email: "me"},
	} {
		cfg.Dir = folder(t)
		if _, err := certs.OpenACME(cfg); err == nil || !strings.Contains(err.Error(), "--") {
			t.Errorf("%s: got %v, want an error that names a flag", name, err)
		}
	}
}
