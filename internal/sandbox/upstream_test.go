package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// company is a proxy as networks of companies have them: names are looked up by it
// alone, it wants a password, and it opens no tunnels to port 80.
type company struct {
	names map[string]string // address of each host and port
	mu    sync.Mutex
	asked []string
}

func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, r.Method+" "+r.Host)
	c.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != "Basic dTpwdw==" { // u:pw
		http.Error(w, "who are you", http.StatusProxyAuthRequired)
		return
	}
	to, ok := c.names[r.Host]
	if !ok || r.Method == http.MethodConnect && strings.HasSuffix(r.Host, ":80") {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodConnect {
		_, _ = io.WriteString(w, "plain by the company's proxy")
		return
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = up.Close()
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n")
	relay(conn, buf.Reader, up, idleTunnel)
	_, _ = conn.Close(), up.Close()
}

func (c *company) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// Where yaya reaches the internet by a proxy, its sandboxes do: the list of hosts is
// the sandbox's, the look-up of names the proxy's, the password neither program's.
func TestUpstreamProxy(t *testing.T) {
	greeter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer greeter.Close()
	var greeted sync.WaitGroup
	greeted.Go(func() {
		for {
			conn, err := greeter.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello\n") // before anything is sent to it
			_ = conn.Close()
		}
	})
	defer greeted.Wait()
	defer greeter.Close()
	c := &company{names: map[string]string{"a.example:22": greeter.Addr().String(), "a.example": "", "a.example:80": ""}}
	upstream := httptest.NewServer(c)
	defer upstream.Close()
	u, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("u", "pw")

	pt := &proxyTest{}
	p := newProxy(Net{Mode: Hosts, Allow: []string{"a.example", "a.example:22", "b.example", "direct.example"}, Denied: pt.denied})
	p.resolve = func(_ context.Context, host string) ([]netip.Addr, error) { return nil, fmt.Errorf("%s: no DNS", host) }
	p.environ = func(r *http.Request) (*url.URL, error) {
		if r.URL.Hostname() == "direct.example" {
			return nil, nil // as NO_PROXY says
		}
		return u, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(l, p)
	defer s.close()
	pt.addr = l.Addr().String()
	conn, status := pt.tunnel(t, "a.example:22")
	if status != http.StatusOK {
		t.Fatalf("CONNECT a.example:22 = %d, want 200", status)
	}
	fmt.Fprintln(conn, "x")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("read %q, %v by the tunnel, want what the server said", line, err)
	}
	if got, want := c.take(), []string{"CONNECT a.example:22"}; !slices.Equal(got, want) {
		t.Errorf("the upstream proxy was asked for %q, want %q", got, want)
	}
	for _, r := range []struct {
		name, host string
		want       int
		asked      []string
	}{
		{"a host that is not allowed", "c.example:443", http.StatusForbidden, nil},
		{"a host that the upstream proxy refuses", "b.example:443", http.StatusBadGateway, []string{"CONNECT b.example:443"}},
		{"a private address", "10.1.2.3:443", http.StatusForbidden, nil},
		{"a host without the upstream proxy", "direct.example:443", http.StatusBadGateway, nil},
	} {
		if _, got := pt.tunnel(t, r.host); got != r.want {
			t.Errorf("%s: CONNECT = %d, want %d", r.name, got, r.want)
		}
		if got := c.take(); !slices.Equal(got, r.asked) {
			t.Errorf("%s: the upstream proxy was asked for %q, want %q", r.name, got, r.asked)
		}
	}
	// Plain HTTP, by the request line and in a tunnel.
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: pt.addr}), DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Get("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if _ = res.Body.Close(); string(body) != "plain by the company's proxy" {
		t.Errorf("GET http://a.example/ = %q, %v", body, err)
	}
	conn, status = pt.tunnel(t, "a.example:80")
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
	if answer, err := io.ReadAll(conn); status != http.StatusOK || !strings.Contains(string(answer), "plain by the company's proxy") {
		t.Errorf("a request in a tunnel to port 80: %d, %q, %v", status, answer, err)
	}
	for _, got := range c.take() {
		if strings.HasPrefix(got, "CONNECT") {
			t.Errorf("the upstream proxy was asked for %q, want requests alone", got)
		}
	}
	u.User = nil
	if _, err := through(t.Context(), u, "a.example:22"); err == nil || !strings.Contains(err.Error(), "407") {
		t.Errorf("without a password: %v, want the answer 407", err)
	}
	u.Scheme = "socks5"
	if _, err := p.tunnel(t.Context(), "a.example", 443); err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY") {
		t.Errorf("by a proxy of another kind: %v, want an error that says what to set", err)
	}
}

// The password for an upstream proxy is sent to that proxy and nobody else.
func TestUpstreamProxyBehindTLS(t *testing.T) {
	c := &company{}
	upstream := httptest.NewTLSServer(c)
	defer upstream.Close()
	_, err := through(t.Context(), &url.URL{Scheme: "https", User: url.UserPassword("u", "pw"), Host: upstream.Listener.Addr().String()}, "a.example:22")
	if err == nil || !strings.Contains(err.Error(), "certificate") || len(c.take()) > 0 {
		t.Errorf("a proxy with an unknown certificate: %v, want a refusal", err)
	}
}

// The password for the upstream proxy is in no answer that a program gets: not by TRACE,
// which shows the request, and not in what yaya says of a strange answer.
func TestUpstreamProxyEchoes(t *testing.T) {
	const secret = "dTpwdw==" // u:pw
	for name, answer := range map[string]string{
		"the request":   "HTTP/1.1 200 OK\r\nContent-Type: message/http\r\nContent-Length: 8\r\n\r\n" + secret,
		"a status line": "HTTP/1.1 407 you said " + secret + "\r\nContent-Length: 0\r\n\r\n",
		"not a status":  "HTTP/1.1 " + secret + "\r\n\r\n",
		"not HTTP":      secret + "\r\n\r\n",
		"a header line": "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n",
		"a length":      "HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n",
		"a coding":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			served.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = http.ReadRequest(bufio.NewReader(conn))
					_, _ = io.WriteString(conn, answer)
					_ = conn.Close()
				}
			})
			defer served.Wait()
			defer l.Close()
			var mu sync.Mutex
			var told []string
			p := newProxy(Net{Mode: Hosts, Allow: []string{"a.example"}, Unreached: func(_ string, _ int, why string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, why)
			}})
			p.resolve = func(_ context.Context, host string) ([]netip.Addr, error) { return nil, fmt.Errorf("%s: no DNS", host) }
			p.environ = func(*http.Request) (*url.URL, error) {
				return &url.URL{Scheme: "http", User: url.UserPassword("u", "pw"), Host: l.Addr().String()}, nil
			}
			at := serveAt(t, p)
			send := func(text string) string {
				conn, err := net.Dial("tcp", at)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprint(conn, text)
				got, err := io.ReadAll(conn)
				if err != nil {
					t.Fatal(err)
				}
				return string(got)
			}
			for _, method := range []string{"TRACE", "trace", "TRACK"} {
				plain := send(method + " http://a.example/ HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n")
				tunneled := send("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n" + method + " / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
				if !strings.HasPrefix(plain, "HTTP/1.1 405 ") || !strings.Contains(tunneled, "\r\n\r\nHTTP/1.1 405 ") {
					t.Errorf("%s: got %q, in a tunnel %q; want 405 twice", method, plain, tunneled)
				}
			}
			if name == "the request" {
				return
			}
			said := send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
			said += send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nConnection: close\r\n\r\n")
			mu.Lock()
			defer mu.Unlock()
			if said += strings.Join(told, ";"); strings.Contains(said, secret) || !strings.Contains(said, "the proxy") {
				t.Errorf("got %q; want no text of the upstream proxy", said)
			}
		})
	}
}

// An upstream proxy that says too much, or nothing whole, opens no tunnel.
func TestUpstreamProxyIsHostile(t *testing.T) {
	for name, answer := range map[string]string{
		"too long": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", maxProxyHead), "cut short": "HTTP/1.1 200 OK\r\n", "not HTTP": "hello\r\n\r\n", "a refusal": "HTTP/1.1 502 Bad\r\n\r\n",
	} {
		ours, theirs := net.Pipe()
		var done sync.WaitGroup
		done.Go(func() {
			_, _ = io.CopyN(io.Discard, theirs, int64(len("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")))
			_, _ = io.WriteString(theirs, answer)
			_ = theirs.Close()
		})
		if err := connectBy(ours, &url.URL{Scheme: "http", Host: "p"}, "a:1"); err == nil {
			t.Errorf("%s: opened a tunnel", name)
		}
		_ = ours.Close()
		done.Wait()
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		if conn, err := silent.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1))
			cancel()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	if _, err := through(ctx, &url.URL{Scheme: "http", Host: silent.Addr().String()}, "a:1"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent proxy, cancelled: %v, want an error at once", err)
	}
}

// A connection to a service may idle forever, and one through the proxy may not.
func TestRelayIdles(t *testing.T) {
	for _, c := range []struct {
		name string
		idle time.Duration
		ends bool
	}{{"a tunnel", idleTunnel, true}, {"a service", 0, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, in := net.Pipe()
				up, service := net.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					relay(in, in, up, c.idle)
				}()
				time.Sleep(100 * time.Hour)
				synctest.Wait()
				select {
				case <-ended:
					if !c.ends {
						t.Error("the connection ended, want that it idles")
					}
				default:
					if c.ends {
						t.Error("the connection idles, want that it ended")
					}
				}
				for _, conn := range []net.Conn{client, in, up, service} {
					if err := conn.Close(); err != nil {
						t.Errorf("Close of a connection = %v, want no error", err)
					}
				}
				<-ended
			})
		})
	}
}
