package oauth

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// rebinding is a name server whose owner answers with something else each time. It
// stands in for the machine's resolver.
type rebinding struct {
	mu      sync.Mutex
	answers map[string][]string // of a name, in turn; the last stays
}

// rebind lets names resolve to what the test says.
func rebind(t *testing.T, answers map[string][]string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rebinding{answers: answers}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(r.answer(b[:n]), from)
		}
	}()
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = old
		_ = conn.Close()
		<-done
	})
}

// answer answers a query for one name (RFC 1035); names have no IPv6 address.
func (r *rebinding) answer(q []byte) []byte {
	var labels []string
	at := 12
	for q[at] != 0 {
		labels = append(labels, string(q[at+1:at+1+int(q[at])]))
		at += 1 + int(q[at])
	}
	kind, end := binary.BigEndian.Uint16(q[at+1:]), at+5
	out := append([]byte{}, q[:2]...)
	out = append(out, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	out = append(out, q[12:end]...)
	if kind != 1 {
		return out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.ToLower(strings.Join(labels, "."))
	all := r.answers[name]
	if len(all) == 0 {
		return out
	}
	if len(all) > 1 {
		r.answers[name] = all[1:]
	}
	v4 := netip.MustParseAddr(all[0]).As4()
	out[7] = 1
	return append(append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), v4[:]...)
}

// far is a connection to a server that is somewhere else.
type far struct {
	net.Conn
	at net.Addr
}

func (f far) RemoteAddr() net.Addr { return f.at }

// next carries requests to an MCP server: its name is resolved, and whatever the
// address, the connection goes to the test's server.
func next(t *testing.T, to *httptest.Server) *http.Transport {
	t.Helper()
	rt := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, network, to.Listener.Addr().String())
		return far{c, net.TCPAddrFromAddrPort(netip.AddrPortFrom(all[0].Unmap(), 80))}, err
	}}
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

// inside is a service of a private network: an authorization server, for whom it may
// be one.
func inside(t *testing.T) (srv *httptest.Server, reached *atomic.Int64) {
	t.Helper()
	reached = new(atomic.Int64)
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		base := "http://" + r.Host
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/prm":
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": r.URL.Query().Get("r"), "authorization_servers": []string{base}})
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": base, "token_endpoint": base + "/token", "authorization_endpoint": base + "/a",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
		case r.URL.Path == "/token":
			_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "got", "token_type": "Bearer", "expires_in": 3600})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv, reached
}

// naming is an MCP server that names an authorization server.
func naming(t *testing.T, metadata string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer got" {
			return
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q`, metadata+"/prm?r="+url.QueryEscape("http://"+r.Host+"/mcp")))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// SEC-8, UP-24, R21: an address that a server names may be in a private network only if the very
// connection on which it named it went to that network, whatever its name resolves to
// before or after.
func TestRebinding(t *testing.T) {
	const public = "93.184.216.34"
	for name, c := range map[string]struct {
		server  string   // its host
		answers []string // of its name
		proxied bool
		config  func(as string) servers.OAuth
		want    bool // that the private authorization server is asked
	}{
		"public, then this machine":              {"evil.test", []string{public, public, "127.0.0.1"}, false, nil, false},
		"this machine, then public, then again":  {"evil.test", []string{"127.0.0.1", public, "127.0.0.1"}, false, nil, false},
		"in turn":                                {"evil.test", []string{public, public, "10.0.0.1", public, "127.0.0.1"}, false, nil, false},
		"another private network":                {"lan.test", []string{"10.0.0.7"}, false, nil, false},
		"link local":                             {"lan.test", []string{"169.254.1.1"}, false, nil, false},
		"this machine, by a name":                {"near.test", []string{"127.0.0.1"}, false, nil, true},
		"localhost in the configuration":         {"localhost", nil, false, nil, true},
		"through a proxy on this machine":        {"evil.test", []string{"127.0.0.1"}, true, nil, false},
		"an issuer that the configuration names": {"evil.test", []string{public}, false, func(as string) servers.OAuth { return servers.OAuth{Issuer: as} }, true},
		"another issuer that it names":           {"evil.test", []string{public}, false, func(string) servers.OAuth { return servers.OAuth{Issuer: "http://127.0.0.1:1"} }, false},
		"an issuer by a name that is not secured": {"evil.test", []string{public}, false, func(as string) servers.OAuth {
			return servers.OAuth{Issuer: strings.Replace(as, "127.0.0.1", "as.test", 1)}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rebind(t, map[string][]string{c.server: slices.Clone(c.answers), "as.test": {"127.0.0.1"}})
			as, reached := inside(t)
			at := as.URL
			mcp := naming(t, at)
			_, port, err := net.SplitHostPort(mcp.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			rt := next(t, mcp)
			if c.proxied {
				rt.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: mcp.Listener.Addr().String()})
			}
			cfg := servers.OAuth{}
			if c.config != nil {
				cfg = c.config(at)
			}
			cfg.Grant, cfg.ClientID, cfg.ClientSecret = servers.ClientCredentials, "c", "s"
			s, _ := store(t)
			u := "http://" + net.JoinHostPort(c.server, port) + "/mcp"
			if c.server != "localhost" && !c.proxied {
				u = "http://" + c.server + "/mcp"
			}
			tr := &Transport{Next: rt, Server: u, Name: "srv", Store: s, Config: Config{cfg}}
			code, err := post(t.Context(), tr, u, "x", nil)
			if got := reached.Load() > 0; got != c.want {
				t.Errorf("the private server was asked: %v, want %v (HTTP %d, %v)", got, c.want, code, err)
			}
			if c.want && (err != nil || code != http.StatusOK) {
				t.Errorf("got HTTP %d, %v, want 200", code, err)
			}
			if !c.want && (err == nil || (!errors.Is(err, ErrPrivate) && !strings.Contains(err.Error(), "credentials are for"))) {
				t.Errorf("got %v, want %v", err, ErrPrivate)
			}
		})
	}
}

// SEC-8: a login and a renewal go where the server could send them when it named the
// place, even in another process and whatever its name resolves to now.
func TestRenewalIsGuarded(t *testing.T) {
	for name, c := range map[string]struct {
		from string
		want bool
	}{
		"public":             {"93.184.216.34", false},
		"a private network":  {"10.0.0.1", false},
		"this machine":       {"127.0.0.1", true},
		"it was never known": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			rebind(t, map[string][]string{"evil.test": {"127.0.0.1"}})
			as, reached := inside(t)
			mcp := naming(t, as.URL)
			s, _ := store(t)
			g := Grant{Server: "http://evil.test/mcp", TokenURL: as.URL + "/token", ClientID: "c", AuthStyle: oauth2.AuthStyleInParams,
				Token: &oauth2.Token{AccessToken: "old", TokenType: "Bearer", RefreshToken: "r", Expiry: time.Now().Add(time.Second)}}
			if c.from != "" {
				g.From = netip.MustParseAddr(c.from)
			}
			if err := s.Save(g); err != nil {
				t.Fatal(err)
			}
			tr := &Transport{Next: next(t, mcp), Server: g.Server, Name: "srv", Store: s}
			code, err := post(t.Context(), tr, g.Server, "x", nil)
			if got := reached.Load() > 0; got != c.want {
				t.Errorf("the private server was asked: %v, want %v (HTTP %d, %v)", got, c.want, code, err)
			}
			if c.want == (err != nil || code != http.StatusOK) {
				t.Errorf("got HTTP %d, %v", code, err)
			}
		})
	}
	t.Run("login", func(t *testing.T) {
		rebind(t, map[string][]string{"evil.test": {"127.0.0.1"}})
		as, reached := inside(t)
		mcp := naming(t, as.URL)
		s, _ := store(t)
		challenge := &Challenge{http.StatusUnauthorized, []string{`Bearer resource_metadata="` + as.URL + `/prm?r=http://evil.test/mcp"`}, netip.MustParseAddr("93.184.216.34")}
		if err := s.Save(Grant{Server: "http://evil.test/mcp", Challenge: challenge}); err != nil {
			t.Fatal(err)
		}
		l := Login{Transport: &Transport{Next: next(t, mcp), Server: "http://evil.test/mcp", Name: "srv", Store: s}, Redirect: "http://127.0.0.1:1/callback",
			Ask: func(context.Context, string) (Answer, error) { return Answer{}, errors.New("nobody is asked") }}
		if _, err := l.Run(t.Context()); err == nil || reached.Load() > 0 {
			t.Errorf("got %v, and the private server was asked %d times", err, reached.Load())
		}
	})
}

// UP-24, R21: in whatever form a private address is written, it is not reached on
// behalf of a public server.
func TestPrivateAddresses(t *testing.T) {
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer canary.Close()
	client := newGuard("https://1.1.1.1/mcp", netip.MustParseAddr("127.0.0.1"), Config{}).client(nil)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(canary.URL, "127.0.0.1", host, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, ErrPrivate) {
			t.Errorf("%s: got %v, want %v", host, err, ErrPrivate)
		}
	}
	for _, a := range []string{"[::127.0.0.1]:80", "[fec0::1]:80", "[2001:db8::1]:80", "192.88.99.1:80", "[::ffff:0:127.0.0.1]:80"} { // UP-25
		if err := (guard{}).check(a); !errors.Is(err, ErrPrivate) {
			t.Errorf("check(%s) = %v, want %v", a, err, ErrPrivate)
		}
	}
}
