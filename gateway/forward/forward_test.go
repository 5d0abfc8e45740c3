package forward_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/control/tunnel"
	"github.com/yaya-ai/yaya/gateway/forward"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// members are the nodes north, south and west.
type members struct {
	name     string
	identity ed25519.PrivateKey
}

func (m members) Name() string { return m.name }

func (members) Others() []string { return []string{"south", "west"} }

func (members) Has(node string) bool { return node == "north" || node == "south" || node == "west" }

func (m members) TLS() (*tls.Config, error) {
	return nodes.TLS(m.identity, m.name, time.Now, func(node string) error {
		if !m.Has(node) {
			return errors.New("no member")
		}
		return nil
	})
}

// verifier knows one token, and that its holder loses its rights.
type verifier struct {
	mu  sync.Mutex
	end []func(error)
}

func (v *verifier) VerifyToken(token string) (auth.Principal, error) {
	if token != "good" {
		return auth.Principal{}, auth.ErrToken
	}
	return auth.Principal{Kind: auth.Device, ID: "phone"}, nil
}

func (v *verifier) VerifyLasting(token string) (auth.Principal, error) { return v.VerifyToken(token) }

func (v *verifier) Hold(_ auth.Principal, ended func(error)) func() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end = append(v.end, ended)
	return func() {}
}

func (v *verifier) revoke() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, end := range v.end {
		end(errors.New("revoked"))
	}
}

// rig is the node north, which passes on to south.
type rig struct {
	t        testing.TB
	nats     *server.Server
	identity ed25519.PrivateKey
	verifier verifier
	north    *forward.Forwarder
	way      *tunnel.Tunnel
	url      string
	as       auth.Principal // who the client is
	dialled  atomic.Int32   // attempts to connect to a node
}

// counting counts attempts to connect.
type counting struct {
	forward.Dialer
	n *atomic.Int32
}

func (c *counting) Dial(ctx context.Context, node string) (*tunnel.Conn, error) {
	c.n.Add(1)
	return c.Dialer.Dial(ctx, node)
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, as: auth.LocalOwner, nats: natstest.Start(t)}
	var err error
	if _, r.identity, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	r.north, r.way, _ = r.node("north", r.identity)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		next := r.north.To(strings.Split(req.URL.Path, "/")[1])
		if next == nil {
			http.Error(w, "no node", http.StatusTeapot)
			return
		}
		next.ServeHTTP(w, req.WithContext(auth.WithPrincipal(req.Context(), r.as)))
	}))
	t.Cleanup(hs.Close)
	r.url = hs.URL
	return r
}

// node returns what a node passes requests on with.
func (r *rig) node(name string, identity ed25519.PrivateKey) (*forward.Forwarder, *tunnel.Tunnel, *nats.Conn) {
	r.t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(r.nats))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(conn.Close)
	way, err := tunnel.New(conn, "yaya_tunnel", name)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = way.Close() })
	f, err := forward.New(members{name, identity}, &counting{way, &r.dialled}, zerolog.New(zerolog.NewTestWriter(r.t)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(f.Close)
	return f, way, conn
}

// serve has the node south serve, until the returned function is called.
func (r *rig) serve(identity ed25519.PrivateKey, h http.HandlerFunc) (stop func()) {
	r.t.Helper()
	f, way, conn := r.node("south", identity)
	l := way.Listen()
	if err := conn.Flush(); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l, &r.verifier, h) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Serve() = %v, want no error", err)
		}
		_ = way.Close()
	})
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) get(path string, header ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader("body"))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(resp.Body) //nolint:forbidigo // test
	return resp, string(raw)
}

// CL-13: the other node knows who a request is from by what this node says, and by nothing that a
// client can send.
func TestCaller(t *testing.T) {
	r := newRig(t)
	r.serve(r.identity, func(w http.ResponseWriter, req *http.Request) {
		p := auth.FromContext(req.Context())
		body, _ := io.ReadAll(req.Body) //nolint:forbidigo // test
		fmt.Fprintf(w, "%s %s %s says=%q authorization=%q", p.Name(), req.URL, body, req.Header.Get("Yaya-Caller"), req.Header.Get("Authorization"))
	})
	external := auth.Principal{Kind: auth.External, ID: "https://issuer.example|ada lovelace\n"}
	for what, c := range map[string]struct {
		as     auth.Principal
		header []string
		status int
		want   string
	}{
		"the owner":              {auth.LocalOwner, nil, 200, `owner /south/x?y=1 body says="" authorization=""`},
		"the owner with a token": {auth.LocalOwner, []string{"Authorization", "Bearer other"}, 200, `authorization=""`},
		"a device":               {auth.Principal{Kind: auth.Device, ID: "phone"}, []string{"Authorization", "Bearer good"}, 200, `device:phone /south/x`},
		"a device that says that it is the owner": {auth.Principal{Kind: auth.Device, ID: "phone"}, []string{"Authorization", "Bearer good", "Yaya-Caller", "owner"}, 200, `device:phone `},
		"a token that this node does not know":    {auth.Principal{Kind: auth.Device, ID: "phone"}, []string{"Authorization", "Bearer bad"}, 403, "not established"},
		"an external one":                         {external, []string{"Authorization", "Bearer theirs"}, 200, external.Name() + " /south/x"},
		"nobody that says that it is the owner":   {auth.Principal{}, []string{"Yaya-Caller", "owner"}, 403, "does not say who"},
		"a server that says that it is the owner": {auth.ServerNamed("s"), []string{"Yaya-Caller", "owner"}, 403, "does not say who"},
	} {
		r.as = c.as
		if resp, got := r.get("/south/x?y=1", c.header...); resp.StatusCode != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s, want %d and %s", what, resp.StatusCode, got, c.status, c.want)
		}
	}
	for _, node := range []string{"north", "east", ""} {
		if resp, _ := r.get("/" + node + "/"); resp.StatusCode != http.StatusTeapot {
			t.Errorf("To(%q) serves, want nil", node)
		}
	}
}

// A request about something on a node that has ended gets 404. A node that comes within a moment is
// waited for, and a process of that name without the identity key learns nothing.
func TestUnreachable(t *testing.T) {
	r := newRig(t)
	if resp, got := r.get("/west/x"); resp.StatusCode != http.StatusNotFound || !strings.Contains(got, "west, which is not running") {
		t.Errorf("a node that is not there: %d %s, want 404", resp.StatusCode, got)
	}
	first := r.dialled.Swap(0)
	if resp, _ := r.get("/west/x"); resp.StatusCode != http.StatusNotFound || r.dialled.Load() != 1 || first < 2 {
		t.Errorf("the same node again: %d after %d attempts, want 404 after one; the first time there were %d", resp.StatusCode, r.dialled.Load(), first)
	}

	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	reached := false
	stop := r.serve(other, func(http.ResponseWriter, *http.Request) { reached = true })
	if resp, got := r.get("/south/x"); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || reached {
		t.Errorf("somebody without the identity: %d %s, want 503", resp.StatusCode, got)
	}
	stop()

	late := make(chan func(), 1)
	go func() {
		time.Sleep(300 * time.Millisecond) // it starts
		late <- r.serve(r.identity, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	}()
	if resp, got := r.get("/south/x"); resp.StatusCode != http.StatusOK || got != "here" {
		t.Errorf("a node that starts: %d %s, want its answer", resp.StatusCode, got)
	}
	(<-late)()
}

// A stream is passed on as it comes, ends for the server when its client goes or loses its rights,
// and for its client when the node goes: it never looks whole then.
func TestStreams(t *testing.T) {
	r := newRig(t)
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	stop := r.serve(r.identity, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		<-req.Context().Done()
		ended <- struct{}{}
		if req.URL.Query().Has("abort") {
			panic(http.ErrAbortHandler)
		}
	})
	r.as = auth.Principal{Kind: auth.Device, ID: "phone"}
	r.stream("the client goes", began, ended, func(leave func()) { leave() })
	r.stream("a right is lost", began, ended, func(func()) { r.verifier.revoke() })
	r.stream("the node goes", began, ended, func(func()) { stop() })
}

func (r *rig) stream(what string, began, ended chan struct{}, end func(leave func())) {
	r.t.Helper()
	ctx, leave := context.WithCancel(r.t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/south/x?abort", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	rd := bufio.NewReader(resp.Body)
	if line, err := rd.ReadString('\n'); err != nil || line != "first\n" {
		r.t.Fatalf("%s: the stream begins with %q, %v", what, line, err)
	}
	<-began
	go end(leave)
	select {
	case <-ended:
	case <-time.After(eventually.Limit):
		r.t.Fatalf("%s: the server has not noticed", what)
	}
	if rest, err := io.ReadAll(rd); err == nil { //nolint:forbidigo // test
		r.t.Errorf("%s: the stream ends with %q and without an error, want one", what, rest)
	}
}

// A node asks all others at once, and knows those that have not answered; it finds the one that has
// something, and no longer when that is somewhere else.
func TestAsk(t *testing.T) {
	r := newRig(t)
	has := "/thing"
	stop := r.serve(r.identity, forward.ForNodes(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != has {
			http.NotFound(w, req)
			return
		}
		fmt.Fprint(w, "here")
	}).ServeHTTP)
	var got []string
	missing := r.north.Ask(t.Context(), has, func(node string, answer io.Reader) error {
		raw, err := io.ReadAll(answer) //nolint:forbidigo // test
		got = append(got, node+" "+string(raw))
		return err
	})
	if !slices.Equal(got, []string{"south here"}) || !slices.Equal(missing, []string{"west"}) {
		t.Errorf("Ask() = %v without %v, want the answer of south without west", got, missing)
	}
	for range 2 { // the second time it knows where
		if node := r.north.Locate(t.Context(), has); node != "south" {
			t.Errorf("Locate() = %q, want south", node)
		}
	}
	failed := func(w http.ResponseWriter, _ *http.Request, node string) { http.Error(w, node, http.StatusTeapot) }
	next := r.north.Find(t.Context(), has, failed)
	if next == nil {
		t.Fatal("Find() = nil, want what leads to south")
	}
	for _, path := range []string{"/else", has} {
		has = "/moved"
		if node, next := r.north.Locate(t.Context(), path), r.north.Find(t.Context(), path, nil); node != "" || next != nil {
			t.Errorf("Locate(%s) = %q, want nobody", path, node)
		}
	}
	r.as = auth.Principal{Kind: auth.External, ID: "i|s"}
	if resp, _ := r.get("/south/x"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("somebody who asks what nodes ask each other gets %d, want 403", resp.StatusCode)
	}
	stop()
	w := httptest.NewRecorder()
	next.ServeHTTP(w, httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.LocalOwner), http.MethodGet, "/x", nil))
	if w.Code != http.StatusTeapot || w.Body.String() != "south\n" {
		t.Errorf("a request that does not reach the node it was found on: %d %s, want what answers for it", w.Code, w.Body)
	}
}

// This node's own requests reach another one as those of the node. Without that node nothing is sent,
// and the error says why.
func TestOwnRequests(t *testing.T) {
	r := newRig(t)
	r.serve(r.identity, forward.ForNodes(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprint(w, req.Method, req.URL.Path, req.Header.Get("X"), req.Header.Get("Authorization"))
	}).ServeHTTP)
	for node, want := range map[string]string{"south": "POST/node/xy", "west": "west is not running", "nobody": "nobody is not a node", "": "is not a node"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://somewhere/node/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X", "y")
		req.Header.Set("Authorization", "Bearer other")
		got := ""
		resp, err := r.north.Transport(node).RoundTrip(req)
		if err == nil {
			raw, _ := io.ReadAll(resp.Body) //nolint:forbidigo // test
			got = string(raw)
			_ = resp.Body.Close()
		} else if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			t.Errorf("%q: got %v, want an error of a connection that was not made", node, err)
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "Bearer") {
			t.Errorf("%q: got %s, want %s", node, got, want)
		}
	}
}
