package wire_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		panic(err)
	}
	return k
})

// world is a server with a kernel behind it.
type world struct {
	t      testing.TB
	dir    string
	dev    *auth.Authority
	log    *cluster.Local
	kernel *kernel.Kernel
	wire   *wire.Server
	agents *wire.Agents
	http   *httptest.Server
	stop   func()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.start("")
	t.Cleanup(func() { w.stop() })
	return w
}

// start starts everything on the data directory; listening where it did before.
func (w *world) start(addr string) {
	t := w.t
	t.Helper()
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.MkdirAll("keys", 0o700); err != nil {
		t.Fatal(err)
	}
	keys, err := root.OpenRoot("keys")
	if err != nil {
		t.Fatal(err)
	}
	if w.dev, err = auth.NewAuthority(auth.AuthorityConfig{Keys: keys, GenerateKey: func() (*rsa.PrivateKey, error) { return rsaKey(), nil }}); err != nil {
		t.Fatal(err)
	}
	if w.log, err = cluster.Open(journal.Root(root), cluster.Options{Projections: []control.Projection{w.dev}}); err != nil {
		t.Fatal(err)
	}
	if err := w.dev.Start(w.log); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.New(kernel.Config{Data: root, Settings: settings, Workspace: w.dir, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Start(t.Context(), strategy_react.New(), llm_echo.New(), memory_sqlite.New(filepath.Join(w.dir, "memory.db"))); err != nil {
		t.Fatal(err)
	}
	w.kernel = k
	w.wire = wire.New(wire.Config{
		Authority: w.dev, KernelID: "k1", Log: zerolog.Nop(), Attempts: auth.NewAttempts(time.Now),
		Audience: func(r *http.Request) string { return "ws://" + r.Host + r.URL.Path },
		Address:  func(r *http.Request) netip.Addr { return netip.MustParseAddrPort(r.RemoteAddr).Addr() },
	})
	w.agents = wire.NewAgents(wire.AgentsConfig{Server: w.wire, Sessions: k.Sessions, Loop: k.Loop, Approvals: k.Approvals})
	w.wire.Handle(wire.AgentPrefix, w.agents)
	w.http = httptest.NewUnstartedServer(w.wire)
	if addr != "" {
		_ = w.http.Listener.Close()
		for range 100 { // the address is free as soon as the kernel says so
			if w.http.Listener, err = (&netListen).Listen(context.Background(), "tcp", addr); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.http.Start()
	w.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		err := w.wire.Close(ctx)
		w.agents.Close()
		w.http.Close()
		if err := errors.Join(err, k.Stop(ctx, "test"), w.log.Close(), keys.Close(), root.Close()); err != nil {
			t.Error(err)
		}
	})
}

// gadget is a device with its key.
type gadget struct {
	id    string
	key   ed25519.PrivateKey
	token string
}

func (w *world) enrol(id string, scopes ...auth.Scope) *gadget {
	w.t.Helper()
	if scopes == nil {
		scopes = auth.AllScopes()
	}
	pub, key, _ := ed25519.GenerateKey(rand.Reader)
	inv, err := w.dev.Invite(context.Background(), auth.LocalOwner, "", scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.dev.Register(context.Background(), "p", auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: id, Code: inv.Code})
	if err != nil {
		w.t.Fatal(err)
	}
	return &gadget{id, key, got.Token.Token}
}

// client is a raw client in one of the four formats.
type client struct {
	w         *world
	ws        *websocket.Conn
	msgpack   bool
	arrays    bool
	challenge []byte
	session   string
	refs      int
	inbox     []msg
}

type msg struct {
	joinRef, ref any
	topic, event string
	payload      map[string]any
	raw          map[string]any // a frame outside of topics
}

func (w *world) url(query string) string {
	return "ws" + strings.TrimPrefix(w.http.URL, "http") + "/ws" + query
}

// dial connects and takes the challenge, and no more.
func (w *world) dial(msgpack, arrays bool) *client {
	w.t.Helper()
	c := &client{w: w, msgpack: msgpack, arrays: arrays}
	d := websocket.Dialer{}
	c.dial(&d)
	return c
}

func (c *client) dial(d *websocket.Dialer) {
	w := c.w
	w.t.Helper()
	query := ""
	if c.arrays {
		query = "?vsn=2.0.0"
	}
	if c.msgpack {
		d.Subprotocols = []string{wire.SubprotocolMsgpack}
	}
	ws, resp, err := d.Dial(w.url(query), nil)
	if err != nil {
		w.t.Fatal(err, resp)
	}
	_ = resp.Body.Close()
	w.t.Cleanup(func() { _ = ws.Close() })
	c.ws = ws
	first := c.read()
	if first.raw["type"] != "auth_challenge" || first.raw["challenge"] != resp.Header.Get(wire.ChallengeHeader) {
		w.t.Fatalf("%v, header %v", first, resp.Header)
	}
	c.challenge, err = base64.StdEncoding.DecodeString(first.raw["challenge"].(string))
	if err != nil {
		w.t.Fatal(err)
	}
}

func (c *client) auth(g *gadget) msg {
	c.w.t.Helper()
	sig := ed25519.Sign(g.key, c.challenge)
	c.send(map[string]any{"type": "auth", "device_token": g.token, "challenge_sig": base64.StdEncoding.EncodeToString(sig)})
	return c.read()
}

// connect is dial and auth.
func (w *world) connect(g *gadget, msgpack, arrays bool) *client {
	w.t.Helper()
	c := w.dial(msgpack, arrays)
	ok := c.auth(g)
	if ok.raw["type"] != "auth_ok" || ok.raw["kernel_id"] != "k1" {
		w.t.Fatal(ok)
	}
	c.session = ok.raw["session_id"].(string)
	return c
}

func (c *client) send(v any) {
	c.w.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		c.w.t.Fatal(err)
	}
	kind := websocket.TextMessage
	if c.msgpack {
		raw, kind = wire.ToMsgpack(raw), websocket.BinaryMessage
	}
	if err := c.ws.WriteMessage(kind, raw); err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *client) next() (msg, error) {
	if err := c.ws.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return msg{}, err
	}
	kind, raw, err := c.ws.ReadMessage()
	if err != nil {
		return msg{}, err
	}
	if want := map[bool]int{true: websocket.BinaryMessage, false: websocket.TextMessage}[c.msgpack]; kind != want {
		return msg{}, fmt.Errorf("a frame of type %d: %s", kind, raw)
	}
	if c.msgpack {
		if raw, err = wire.FromMsgpack(raw); err != nil {
			return msg{}, err
		}
	}
	var m msg
	if c.arrays && raw[0] == '[' {
		var l [5]any
		if err := json.Unmarshal(raw, &l); err != nil {
			return m, err
		}
		m.joinRef, m.ref, m.topic, m.event = l[0], l[1], l[2].(string), l[3].(string)
		m.payload, _ = l[4].(map[string]any)
		return m, nil
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return m, err
	}
	if o["topic"] == nil {
		return msg{raw: o}, nil
	}
	m.joinRef, m.ref, m.topic, m.event = o["join_ref"], o["ref"], o["topic"].(string), o["event"].(string)
	m.payload, _ = o["payload"].(map[string]any)
	return m, nil
}

func (c *client) read() msg {
	c.w.t.Helper()
	if len(c.inbox) > 0 {
		m := c.inbox[0]
		c.inbox = c.inbox[1:]
		return m
	}
	m, err := c.next()
	if err != nil {
		c.w.t.Fatal(err)
	}
	return m
}

// until reads up to a message that is wanted, which it returns.
func (c *client) until(want func(msg) bool) msg {
	c.w.t.Helper()
	for range 10_000 {
		if m := c.read(); want(m) {
			return m
		}
	}
	c.w.t.Fatal("it does not come")
	return msg{}
}

func (c *client) post(joinRef, ref any, topic, event string, payload any) {
	c.w.t.Helper()
	if c.arrays {
		c.send([]any{joinRef, ref, topic, event, payload})
		return
	}
	c.send(map[string]any{"topic": topic, "event": event, "payload": payload, "ref": ref})
}

// ask pushes and waits for the reply; what comes before it is read later.
func (c *client) ask(topic, event string, payload any) (status string, response map[string]any) {
	c.w.t.Helper()
	c.refs++
	ref := fmt.Sprint(c.refs)
	var joinRef any
	if c.arrays && event == "phx_join" {
		joinRef = ref
	}
	c.post(joinRef, ref, topic, event, payload)
	var before []msg
	defer func() { c.inbox = append(before, c.inbox...) }()
	for range 10_000 {
		m, err := c.next()
		if err != nil {
			c.w.t.Fatal(err)
		}
		if m.event == "phx_reply" && m.ref == ref {
			if m.topic != topic {
				c.w.t.Fatalf("%+v", m)
			}
			status, _ = m.payload["status"].(string)
			response, _ = m.payload["response"].(map[string]any)
			return status, response
		}
		before = append(before, m)
	}
	c.w.t.Fatal("no reply")
	return "", nil
}

func (c *client) join(topic string, payload any) map[string]any {
	c.w.t.Helper()
	status, res := c.ask(topic, "phx_join", payload)
	if status != "ok" {
		c.w.t.Fatalf("join %s: %s %v", topic, status, res)
	}
	return res
}

// closed reads to the end and returns the close code.
func (c *client) closed() int {
	c.w.t.Helper()
	for {
		_, err := c.next()
		if ce, ok := errors.AsType[*websocket.CloseError](err); ok {
			return ce.Code
		}
		if err != nil {
			return -1
		}
	}
}
