package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/certs"
	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// authority is a certification authority that the box's programs trust. All names lead to
// the address where the box serves TLS.
func (b *box) authority(tlsAddr, httpAddr string) *certstest.CA {
	b.t.Helper()
	s := httptest.NewUnstartedServer(nil)
	ca, err := certstest.New("https://"+s.Listener.Addr().String(), certstest.Hosts(func() string { return tlsAddr }, func() string { return httpAddr }))
	if err != nil {
		b.t.Fatal(err)
	}
	s.Config.Handler = ca
	s.StartTLS()
	b.t.Cleanup(s.Close)
	file := filepath.Join(b.dir, "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.env = append(b.env, "SSL_CERT_FILE="+file)
	return ca
}

// getTLS asks a host that is at an address.
func getTLS(ctx context.Context, addr, host string, cfg *tls.Config, header ...string) (int, string, error) {
	cfg = cfg.Clone()
	cfg.ServerName = host
	tr := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/health", nil)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Host = header[i+1]
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Proto + " " + string(body), err
}

// A certificate is asked for, checked over TLS-ALPN-01 on the listener itself, used, kept
// and shown; strangers cause no orders; this machine goes on without TLS.
func TestACME(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	addr := freeport.Addr(t)
	ca := b.authority(addr, "127.0.0.1:1")
	args := []string{"--listen", addr, "--local", b.addr, "--acme", "--host", "yaya.example", "--acme-http", "off", "--acme-directory", ca.Directory(), "--acme-email", "admin@yaya.example"}
	daemon := b.serve(args...)
	trust := &tls.Config{RootCAs: ca.Roots()}
	eventually.True(t, "https at yaya.example", func() bool {
		status, body, err := getTLS(t.Context(), addr, "yaya.example", trust)
		return err == nil && status == 200 && strings.HasPrefix(body, "HTTP/2.0 ")
	})
	if status, body, err := getTLS(t.Context(), addr, "yaya.example", trust, "Host", "evil.example"); err != nil || status != 403 || !strings.Contains(body, "unknown Host") {
		t.Errorf("another Host: got %d %q, %v, want 403", status, body, err)
	}
	if out := b.must("doctor"); !strings.Contains(out, "certificates") || !strings.Contains(out, "yaya.example: until 20") {
		t.Errorf("doctor says\n%s", out)
	}
	// The listener without TLS serves this machine's names alone: under a name that anybody
	// can point here in the DNS, a foreign page could reach it.
	for host, want := range map[string]int{b.addr: 200, "yaya.example": 403, "yaya.example" + b.addr[strings.Index(b.addr, ":"):]: 403} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.addr+"/metrics", nil)
		req.Host = host
		resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || (want == 200 && !strings.Contains(string(body), "yaya_certificate_expiry_timestamp_seconds 1.")) {
			t.Errorf("Host %s: got %d, want %d, and when it ends\n%.2000s", host, resp.StatusCode, want, body)
		}
	}
	for _, name := range []string{"evil.example", "", "127.0.0.1", "yaya.example.evil.example"} {
		for range 20 {
			for _, protos := range [][]string{nil, {certs.ALPN}} {
				c, err := tls.Dial("tcp", addr, &tls.Config{ServerName: name, NextProtos: protos, InsecureSkipVerify: true})
				if err == nil {
					c.Close()
					t.Fatalf("%q got a certificate", name)
				}
			}
		}
	}
	for _, path := range []string{"certs", "certs/*", "certs/*/*"} {
		all, _ := filepath.Glob(filepath.Join(b.dir, "d", path))
		if len(all) == 0 {
			t.Errorf("got no %s, want len(all) not 0", path)
		}
		for _, f := range all {
			if st, err := os.Stat(f); err != nil || st.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: got %v, %v, want nothing for others", f, st.Mode(), err)
			}
		}
	}
	_ = daemon.Process.Signal(syscall.SIGTERM)
	gone(t, daemon)
	b.serve(args...)
	if status, _, err := getTLS(t.Context(), addr, "yaya.example", trust); err != nil || status != 200 {
		t.Errorf("after a restart: got %d, %v", status, err)
	}
	if n, _ := ca.Orders(); n != 1 {
		t.Errorf("got %d orders, want 1", n)
	}
	if out := b.must("verify"); !strings.Contains(out, "0 findings") {
		t.Errorf("verify says\n%s", out)
	}
}

// A host whose port 443 does not lead here gets its certificate over plain HTTP, and
// browsers are sent from there to https.
func TestACMEOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	addr, plain := freeport.Addr(t), freeport.Addr(t)
	ca := b.authority("127.0.0.1:1", plain)
	b.serve("--listen", addr, "--local", b.addr, "--acme", "--host", "yaya.example", "--acme-http", plain, "--acme-directory", ca.Directory())
	eventually.True(t, "https at yaya.example", func() bool {
		status, _, err := getTLS(t.Context(), addr, "yaya.example", &tls.Config{RootCAs: ca.Roots()})
		return err == nil && status == 200
	})
	c, err := net.Dial("tcp", plain)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /x HTTP/1.1\r\nHost: yaya.example\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 307 || resp.Header.Get("Location") != "https://yaya.example/x" {
		t.Errorf("GET /x: got %+v, %v; want status 307 to https://yaya.example/x", resp, err)
	}
}

// Without its authority yaya serves this machine, and says what is missing.
func TestACMEWithoutAuthority(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve("--listen", freeport.Addr(t), "--local", b.addr, "--acme", "--host", "yaya.example", "--acme-http", "off", "--acme-directory", "https://127.0.0.1:1/dir")
	if out := b.must("mcp", "list"); out == "" {
		t.Error("no list")
	}
	var out string
	eventually.True(t, "doctor says what is missing", func() bool {
		out, _ = b.run("doctor")
		return strings.Contains(out, "certificates") && strings.Contains(out, "could not be asked") && strings.Contains(out, "127.0.0.1:1")
	})
	if _, err := b.run("doctor"); err == nil {
		t.Errorf("doctor finds nothing wrong:\n%s", out)
	}
}

// In a home network a device knows yaya by the fingerprint of its key: with the code, by
// the link, after a restart, and no other key.
func TestSelfSigned(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	addr := freeport.Addr(t)
	args := []string{"--listen", addr, "--local", b.addr, "--tls-self-signed"}
	daemon := b.serve(args...)
	invite := func() (inv admin.Invitation) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.must("device", "invite", "--json")), &inv); err != nil {
			t.Fatal(err)
		}
		return inv
	}
	phone := func(name string, args ...string) (string, error) {
		b := &box{t: t, bin: b.bin, dir: filepath.Join(b.dir, name)}
		return b.run(append([]string{"connect"}, args...)...)
	}
	inv, url := invite(), "https://"+addr
	if !strings.HasPrefix(inv.Fingerprint, "sha256:") || len(inv.Fingerprint) != 71 {
		t.Fatalf("got the fingerprint %q", inv.Fingerprint)
	}
	wrong := "sha256:" + strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"another key":     {[]string{url, "--code", inv.Code, "--fingerprint", wrong}, "it has " + inv.Fingerprint + ", and the code says " + wrong},
		"no fingerprint":  {[]string{url, "--code", inv.Code}, "yaya device invite"},
		"not one":         {[]string{url, "--code", inv.Code, "--fingerprint", "abc"}, "not the fingerprint of a key"},
		"without https":   {[]string{"http://" + b.addr, "--code", inv.Code, "--fingerprint", inv.Fingerprint}, "without https"},
		"a link of other": {[]string{url + "/#code=" + inv.Code + "&key=" + wrong}, "the code says " + wrong},
	} {
		if out, err := phone("p"+strings.ReplaceAll(name, " ", ""), c.args...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %v, %s, want %q", name, err, out, c.want)
		}
	}
	// SEC-7: nothing is kept of a fingerprint that the server did not have.
	if out, err := phone("panotherkey", url, "--code", inv.Code); err == nil || strings.Contains(out, wrong) {
		t.Errorf("without a fingerprint after a wrong one: got %v, %s; want no word of the wrong one", err, out)
	}
	if out, err := phone("panotherkey", url, "--code", inv.Code, "--fingerprint", inv.Fingerprint); err != nil {
		t.Errorf("with the right fingerprint after a wrong one: got %v, %s; want no error", err, out)
	}
	inv = invite()
	if out, err := phone("one", url, "--code", inv.Code, "--fingerprint", strings.ToUpper(inv.Fingerprint[7:]), "--device", "one"); err != nil {
		t.Fatalf("connect with the fingerprint: got %v, %s; want no error", err, out)
	}
	if out, err := phone("two", invite().Link(url), "--device", "two"); err != nil {
		t.Fatalf("connect with the link: got %v, %s; want no error", err, out)
	}
	if out := b.must("device", "invite", "--url", url); !strings.Contains(out, "--fingerprint "+inv.Fingerprint) {
		t.Errorf("yaya device invite says %s, want %q in it", out, "--fingerprint "+inv.Fingerprint)
	}
	if out := b.must("device", "invite"); !strings.Contains(out, "yaya connect "+url+" --code ") || !strings.Contains(out, " --fingerprint "+inv.Fingerprint+"\n") {
		t.Errorf("got %s, want the whole command", out)
	}
	if out := b.must("doctor"); !strings.Contains(out, "certificates") || !strings.Contains(out, "listens on "+addr+", and for this machine alone on "+b.addr) {
		t.Errorf("doctor says\n%s", out)
	}
	// The name of this machine reaches it, too.
	name, _ := os.Hostname()
	_, port, _ := net.SplitHostPort(addr)
	if status, body, err := getTLS(t.Context(), addr, strings.ToLower(name), &tls.Config{InsecureSkipVerify: true}, "Host", strings.ToLower(name)+":"+port); err != nil || status != 200 {
		t.Errorf("by the machine's name: got %d %s, %v", status, body, err)
	}
	_ = daemon.Process.Signal(syscall.SIGTERM)
	gone(t, daemon)
	again := b.daemon(append([]string{"serve"}, args...)...)
	eventually.True(t, "the fingerprint at the start", func() bool { return strings.Contains(again.said.String(), inv.Fingerprint) })
	if got := invite().Fingerprint; got != inv.Fingerprint {
		t.Errorf("after a restart: got %s, want %s", got, inv.Fingerprint)
	}
	// A known device keeps to the key without being told again.
	if out, err := phone("one", url, "--code", invite().Code); err != nil {
		t.Errorf("connect of a known device: got %v, %s; want no error", err, out)
	}
	if raw, err := os.ReadFile(filepath.Join(b.dir, "d", "keys", "self-signed.pem")); err != nil || !strings.Contains(string(raw), "PRIVATE KEY") {
		t.Errorf(`got %v, want raw with "PRIVATE KEY"`, err)
	}
}

// An upstream with a certificate of its own making is connected with by its key.
func TestSelfSignedUpstream(t *testing.T) {
	t.Parallel()
	gw, k := newBox(t), newBox(t)
	addr := freeport.Addr(t)
	gw.serve("--listen", addr, "--local", gw.addr, "--tls-self-signed")
	var inv admin.Invitation
	if err := json.Unmarshal([]byte(gw.must("device", "invite", "--json", "--scopes", "kernel:attach,agents:read")), &inv); err != nil {
		t.Fatal(err)
	}
	k.must("connect", inv.Link("https://"+addr), "--device", "k")
	k.serve("--upstream", "https://"+addr)
	eventually.True(t, "the kernel is attached", func() bool {
		resp, err := http.Get("http://" + k.addr + "/metrics") //nolint:forbidigo,noctx // test
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(body), "yaya_upstream_connected 1")
	})
}

// An invitation has the command with the URLs by which devices reach this yaya.
func TestInviteNamesWhereYayaIs(t *testing.T) {
	t.Parallel()
	free := freeport.Addr(t)
	_, port, err := net.SplitHostPort(free)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string // %s is the box's own address
		want []string
	}{
		{"this machine alone", nil, []string{"On this machine: yaya connect http://%s --code ", "Other machines can reach this yaya only over https"}},
		{"names", []string{"--listen", free, "--local", "%s", "--tls-self-signed", "--host", "nas.home.arpa", "--host", "yaya.home.arpa:9"}, []string{"On the other machine: yaya connect https://nas.home.arpa:" + port + " --code ", "also be reached at https://yaya.home.arpa:9 https://" + free + "\n"}},
		{"a proxy", []string{"--behind-proxy", "--host", "yaya.home.arpa", "--listen", "%s"}, []string{"On the other machine: yaya connect https://yaya.home.arpa --code "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			here := func(s string) string { return strings.ReplaceAll(s, "%s", b.addr) }
			args := make([]string, len(c.args))
			for i, a := range c.args {
				args[i] = here(a)
			}
			if out := b.must("device", "invite"); !strings.Contains(out, "yaya connect URL --code ") {
				t.Errorf("got %q without a daemon, want the word URL", out)
			}
			b.serve(args...)
			out := b.must("device", "invite")
			for _, want := range c.want {
				if !strings.Contains(out, here(want)) {
					t.Errorf("got %q, want %q", out, here(want))
				}
			}
		})
	}
}

// A gateway that has got another key is refused. A kernel that starts says so, with
// both fingerprints and the remedy, and so does doctor; when the device is connected again,
// the kernel that runs takes the new key over.
func TestUpstreamWithAnotherKey(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	gw, k := newBox(t), newBox(t)
	addr := freeport.Addr(t)
	url, args := "https://"+addr, []string{"--listen", addr, "--local", gw.addr, "--tls-self-signed"}
	invite := func() (inv admin.Invitation) {
		t.Helper()
		if err := json.Unmarshal([]byte(gw.must("device", "invite", "--json", "--scopes", "kernel:attach,agents:read")), &inv); err != nil {
			t.Fatal(err)
		}
		return inv
	}
	gateway := gw.serve(args...)
	old := invite()
	k.must("connect", old.Link(url), "--device", "k")
	_ = gateway.Process.Signal(syscall.SIGTERM)
	gone(t, gateway)
	if err := os.Remove(filepath.Join(gw.dir, "d", "keys", "self-signed.pem")); err != nil {
		t.Fatal(err)
	}
	gw.serve(args...)
	now := invite()
	if now.Fingerprint == old.Fingerprint {
		t.Fatal("the key is the old one")
	}
	kernel := k.daemon("serve", "--listen", k.addr, "--upstream", url)
	eventually.True(t, "the kernel listens", func() bool { _, err := k.run("mcp", "list"); return err == nil })
	for _, want := range []string{`"level":"warn"`, old.Fingerprint, now.Fingerprint, "yaya connect " + url} {
		eventually.True(t, "the log says "+want, func() bool { return strings.Contains(kernel.said.String(), want) })
	}
	out, err := k.run("doctor")
	for _, want := range []string{"upstream", "failed", old.Fingerprint, now.Fingerprint, "yaya connect " + url} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor: got %v\n%s\nwant %q", err, out, want)
		}
	}
	if err == nil {
		t.Error("doctor: got exit code 0, want 1")
	}
	k.must("connect", now.Link(url))
	eventually.True(t, "the kernel is attached", func() bool {
		out, err := k.run("doctor")
		return err == nil && strings.Contains(out, "attached to "+url+" since")
	})
}

// Flags that contradict each other, and names that nobody certifies, are refused at once.
func TestTLSFlags(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"two makers":          {[]string{"--acme", "--host", "yaya.dev", "--tls-self-signed"}, "--acme and --tls-self-signed exclude each other"},
		"acme and files":      {[]string{"--acme", "--host", "yaya.dev", "--tls-cert", "x", "--tls-key", "x"}, "--acme and --tls-cert exclude each other"},
		"made and files":      {[]string{"--tls-self-signed", "--tls-cert", "x", "--tls-key", "x"}, "--tls-self-signed and --tls-cert exclude each other"},
		"acme behind a proxy": {[]string{"--acme", "--host", "yaya.dev", "--behind-proxy"}, "--acme and --behind-proxy exclude each other"},
		"files and a proxy":   {[]string{"--tls-cert", "x", "--tls-key", "x", "--behind-proxy", "--host", "x"}, "--tls-cert and --behind-proxy exclude each other"},
		"no host":             {[]string{"--acme"}, "--acme needs --host"},
		"an address":          {[]string{"--acme", "--host", "192.0.2.1"}, "is an address"},
		"an address and port": {[]string{"--acme", "--host", "192.0.2.1:8443"}, "is an address"},
		"a wildcard":          {[]string{"--acme", "--host", "*.yaya.dev"}, "wildcard"},
		"localhost":           {[]string{"--acme", "--host", "localhost"}, "needs no TLS"},
		"a private name":      {[]string{"--acme", "--host", "nas.local"}, "--tls-self-signed"},
		"an e-mail alone":     {[]string{"--acme-email", "a@b.dev"}, "--acme-email needs --acme"},
		"local without TLS":   {[]string{"--local", "127.0.0.1:1"}, "--local is for a yaya that serves TLS"},
		"local for others":    {[]string{"--tls-self-signed", "--listen", freeport.Addr(t), "--local", "0.0.0.0:0"}, "--local 0.0.0.0:0 can be reached from other machines, and is served without TLS"},
		"plain http":          {[]string{"--acme", "--host", "yaya.dev", "--acme-directory", "http://ca.example", "--listen", freeport.Addr(t), "--local", "off", "--acme-http", "off"}, "not an https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := b.run(append([]string{"serve"}, c.args...)...); err == nil || !strings.Contains(out, c.want) {
				t.Errorf("got %v, %s, want %q", err, out, c.want)
			}
		})
	}
}
