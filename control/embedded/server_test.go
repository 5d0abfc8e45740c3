package embedded

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

func identityOf(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func configOf(t *testing.T, identity ed25519.PrivateKey, node string) Config {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return Config{Data: root, Node: node, Identity: identity, Route: freeport.Addr(t), Log: zerolog.Nop()}
}

func started(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// says connects to the port of the routes, says something, and returns the first line of the answer.
func says(t *testing.T, route string, secure *tls.Config, text string) (string, error) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", route, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

// CL-06: a server answers only those on its routes that have a certificate of its cluster, over TLS 1.3. Everybody
// else learns nothing, and changes nothing.
func TestRogueRoutes(t *testing.T) {
	identity := identityOf(t)
	cfg := configOf(t, identity, "north")
	cfg.Removed = func(node string) bool { return node == "west" }
	s := started(t, cfg)
	secure := func(identity ed25519.PrivateKey, node string) *tls.Config {
		c, err := routeTLS(Config{Identity: identity, Node: node})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	with := func(change func(*tls.Config)) *tls.Config {
		c := secure(identity, "south")
		change(c)
		return c
	}
	connect := `CONNECT {"verbose":false,"name":"south","cluster":"` + clusterName(identity) + `"}` + "\r\nPING\r\n"
	if line, err := says(t, cfg.Route, secure(identity, "south"), connect); err != nil || !strings.HasPrefix(line, `INFO {"server_id":`) {
		t.Fatalf("a node of the cluster gets %q, %v, want INFO", line, err)
	}
	stranger := secure(identityOf(t), "south")
	for name, c := range map[string]struct {
		secure *tls.Config
		text   string
	}{
		"plaintext":                        {nil, connect},
		"garbage":                          {nil, strings.Repeat("\x16\x03\x01\xff\xff\x01garbage", 4000)},
		"HTTP":                             {nil, "GET /varz HTTP/1.1\r\nHost: x\r\n\r\n"},
		"no certificate":                   {with(func(c *tls.Config) { c.GetClientCertificate = nil }), connect},
		"a certificate of another cluster": {with(func(c *tls.Config) { c.GetClientCertificate = stranger.GetClientCertificate }), connect},
		"a node that was removed":          {secure(identity, "west"), connect},
		"TLS 1.2": {with(func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		}), connect},
	} {
		line, err := says(t, cfg.Route, c.secure, c.text)
		if err == nil || strings.Contains(line, "INFO") {
			t.Errorf("%s: got %q, %v, want that it is refused", name, line, err)
		}
	}
	if line, err := says(t, cfg.Route, stranger, connect); err == nil {
		t.Errorf("a node of another cluster takes this one for its own: %q", line)
	}
	if n := s.s.NumRoutes(); n != 0 {
		t.Errorf("the server has %d routes, want none", n)
	}
	if s := started(t, configOf(t, identity, "south")); s.s.NumRoutes() != 0 {
		t.Error("another server has a route")
	}
}

// CL-06: the listener for clients is on the loopback interface, and refuses everybody without
// the passwords of this process.
func TestStrangeClients(t *testing.T) {
	s := started(t, configOf(t, identityOf(t), "north"))
	at, ok := s.s.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		t.Fatalf("clients are listened for on %v, want the loopback interface", s.s.Addr())
	}
	for name, o := range map[string][]nats.Option{
		"no password":                 nil,
		"a wrong one":                 {nats.UserInfo(logUser, "secret")},
		"a wrong one, for the system": {nats.UserInfo(systemUser, "")},
	} {
		conn, err := nats.Connect("nats://"+at.String(), append(o, nats.NoReconnect())...)
		if err == nil {
			conn.Close()
			t.Errorf("%s: a client was connected, want an error", name)
		}
	}
	conn, err := nats.Connect("", s.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Request("$SYS.REQ.SERVER.PING", nil, time.Second); err == nil {
		t.Error("the user of the log reaches the system, want an error")
	}
	if st, err := os.Stat(s.s.StoreDir()); err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("the folder of the server is %v, %v, want one for its user alone", st, err)
	}
}

// A server that joins has no say, whomever it meets, until a leader has told it who votes.
func TestJoinersElectNobody(t *testing.T) {
	identity := identityOf(t)
	south, west := configOf(t, identity, "south"), configOf(t, identity, "west")
	west.Routes = []string{south.Route}
	both := []*Server{started(t, south), started(t, west)}
	for _, s := range both {
		eventually.True(t, "the two have met", func() bool { return s.s.NumRoutes() > 0 })
		z, err := s.s.Jsz(nil)
		if err != nil || z.Meta == nil || z.Meta.QuorumNeeded <= len(both) {
			t.Errorf("the state of %s is %+v, %v, want that two servers elect nobody", s.node, z.Meta, err)
		}
		if s.s.NodeName() != peerID(s.node) {
			t.Errorf("%s votes as %s, want %s", s.node, s.s.NodeName(), peerID(s.node))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := both[0].Drop(ctx, "west"); err == nil {
		t.Error("a server was removed without a leader, want an error")
	}
}

// A server whose address cannot be listened on is an error that says so, and leaves nothing behind.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	cfg := configOf(t, identityOf(t), "north")
	cfg.Route = l.Addr().String()
	if s, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Start = %v, %v, want that the address is in use", s, err)
	}
	for _, route := range []string{"", ":6222", "0.0.0.0:6222", "[::]:6222", "host", "host:0", "host:x", "ho st:1", "nats://host:1"} {
		cfg.Route = route
		if s, err := Start(t.Context(), cfg); err == nil {
			t.Errorf("Start at %q = %v, want an error", route, s)
		}
	}
}

// A server that hangs is waited for no longer than a time.
func TestWithin(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{})
	if err := within(time.Millisecond, func() { <-release; close(ended) }); err == nil {
		t.Error("a stop that hangs: no error")
	}
	close(release)
	<-ended
	if err := within(time.Minute, func() {}); err != nil {
		t.Errorf("a stop that ends: %v", err)
	}
}

func TestCopies(t *testing.T) {
	for servers, want := range []int{1, 1, 2, 3, 3, 5, 5, 5} {
		if got := Copies(servers); got != want {
			t.Errorf("Copies(%d) = %d, want %d", servers, got, want)
		}
	}
}
