package sandbox

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// webTest answers requests of a [Web] at addresses of this machine, which stand for the internet.
type webTest struct {
	Web
	asked []string
}

func newWebTest(names map[string]string, allow ...string) *webTest {
	w := &webTest{}
	w.Net = Net{Allow: allow, Ask: func(_ context.Context, host string, port int) bool {
		w.asked = append(w.asked, net.JoinHostPort(host, strconv.Itoa(port)))
		return !strings.HasPrefix(host, "no.")
	}}
	w.Public = func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }
	w.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		a, ok := names[host]
		if !ok {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return w
}

// get returns the content of a page.
func (w *webTest) get(t *testing.T, raw string) (string, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.Get(t.Context(), u, http.Header{}, time.Minute)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// R21: requests for agents reach what a sandbox reaches: hosts that are listed or allowed by an
// answer, at public addresses, and nothing of yaya's.
func TestWebKeepsTheRulesOfTheProxy(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+" "+r.RequestURI) })
	plain, secure := httptest.NewServer(page), httptest.NewTLSServer(page)
	defer plain.Close()
	defer secure.Close()
	port, tlsPort := portOf(t, plain.URL), portOf(t, secure.URL)
	names := map[string]string{"a.example": "127.0.0.1", "example.com": "127.0.0.1", "no.example": "127.0.0.1", "inside.example": "10.0.0.7", "local.example": "127.0.0.2", "six.example": "::1", "mapped.example": "::ffff:127.0.0.2", "listed.example": "127.0.0.1"}
	w := newWebTest(names, "listed.example:"+port)
	w.Roots = x509.NewCertPool()
	w.Roots.AddCert(secure.Certificate())
	for _, c := range []struct{ url, want, fails, asked string }{
		{url: "http://a.example:" + port + "/x?y=1#z", want: "a.example:" + port + " /x?y=1", asked: "a.example:" + port},
		{url: "http://A.EXAMPLE.:" + port + "/x%2Fy", want: "a.example:" + port + " /x%2Fy", asked: "a.example:" + port},
		{url: "https://example.com:" + tlsPort, want: "example.com:" + tlsPort + " /", asked: "example.com:" + tlsPort},
		{url: "http://listed.example:" + port, want: "listed.example:" + port + " /"},
		{url: "https://a.example:" + tlsPort, fails: "certificate", asked: "a.example:" + tlsPort},
		{url: "http://no.example:" + port, fails: "it is not among the allowed hosts", asked: "no.example:" + port},
		{url: "http://inside.example:" + port, fails: "inside.example leads into a private network: 10.0.0.7 is not an address of the public internet", asked: "inside.example:" + port},
		{url: "http://local.example:" + port, fails: "local.example leads to this machine", asked: "local.example:" + port},
		{url: "http://six.example:" + port, fails: "six.example leads to this machine", asked: "six.example:" + port},
		{url: "http://mapped.example:" + port, fails: "mapped.example leads to this machine", asked: "mapped.example:" + port},
		{url: "http://gone.example", fails: "gone.example could not be resolved", asked: "gone.example:80"},
		{url: "http://2130706434:" + port, fails: "does not name a host"},
		{url: "http://0x7f.1/", fails: "does not name a host"},
		{url: "http://a.example:443/", fails: "not TLS", asked: "a.example:443"},
		{url: "http://u:p@a.example:" + port, fails: "without a password"},
		{url: "ftp://a.example/", fails: "http:// or https://"},
		{url: "file:///etc/passwd", fails: "http:// or https://"},
		{url: "http:///etc/passwd", fails: "does not name a host"},
	} {
		w.asked = nil
		got, err := w.get(t, c.url)
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("Get(%q) = %q, %v, want %q, an error about %q", c.url, got, err, c.want, c.fails)
		}
		if strings.Join(w.asked, " ") != c.asked {
			t.Errorf("Get(%q) asked about %q, want %q", c.url, w.asked, c.asked)
		}
	}
	_, err := w.get(t, "http://inside.example:"+port)
	if d, ok := Refused(err); !ok || d.Host != "inside.example" || d.Allow != "10.0.0.7:"+port {
		t.Errorf("Refused(%v) = %+v, %v, want inside.example, which the address allows", err, d, ok)
	}
	w.Listens = func() []string { return []string{"127.0.0.1:" + port} }
	if _, err := w.get(t, "http://a.example:"+port); err == nil || !strings.Contains(err.Error(), "yaya itself listens at") {
		t.Errorf("a name that leads to yaya: %v, want a refusal", err)
	}
	if _, err := (Web{}).Get(t.Context(), &url.URL{Scheme: "http", Host: "a.example"}, http.Header{}, time.Minute); err == nil {
		t.Error("the zero Web reached a host, want a refusal")
	}
}

// A name is looked up once for a connection, and what was checked is dialed: a name whose second
// answer is a private address does not lead there.
func TestWebDialsWhatItHasChecked(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "public") }))
	defer s.Close()
	answers := []string{"127.0.0.1", "127.0.0.2", "127.0.0.2"}
	w := newWebTest(nil)
	w.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		a := answers[0]
		answers = answers[1:]
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	at := "http://turns.example:" + portOf(t, s.URL)
	if got, err := w.get(t, at); got != "public" || err != nil {
		t.Errorf("first request = %q, %v, want the page", got, err)
	}
	if got, err := w.get(t, at); got != "" || err == nil || !strings.Contains(err.Error(), "leads to this machine") {
		t.Errorf("second request = %q, %v, want a refusal of the private address", got, err)
	}
}

// The time of a request begins after the answer about its host, and covers the body.
func TestWebIsBoundedInTime(t *testing.T) {
	stuck := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begins")
			_ = http.NewResponseController(w).Flush()
		}
		<-stuck
	}))
	defer s.Close()
	defer close(stuck)
	for _, path := range []string{"/head", "/body"} {
		w := newWebTest(map[string]string{"a.example": "127.0.0.1"})
		u := &url.URL{Scheme: "http", Host: "a.example:" + portOf(t, s.URL), Path: path}
		res, err := w.Get(t.Context(), u, http.Header{}, 50*time.Millisecond)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		if err == nil || err.Error() != "it took longer than 50ms" {
			t.Errorf("%s: %v, want that it took too long", path, err)
		}
	}
}

// The head of an answer is bounded.
func TestWebBoundsHeads(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2*maxWebHead))
	}))
	defer s.Close()
	w := newWebTest(map[string]string{"a.example": "127.0.0.1"})
	if _, err := w.get(t, "http://a.example:"+portOf(t, s.URL)); err == nil || !strings.Contains(err.Error(), "exceeded") {
		t.Errorf("an answer with a long head: %v, want an error", err)
	}
	if !slices.Equal(w.asked, []string{"a.example:" + portOf(t, s.URL)}) {
		t.Errorf("asked about %q, want the host", w.asked)
	}
}
