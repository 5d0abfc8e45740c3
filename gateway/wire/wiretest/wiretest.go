// Package wiretest runs a server of the wire protocol with a kernel behind it, and
// speaks to it as a client of any format would, with a foreign MessagePack.
package wiretest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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
	"github.com/tinylib/msgp/msgp"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/gateway/registry"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		panic(err)
	}
	return k
})

// World is a server with a kernel behind it.
type World struct {
	t      testing.TB
	Dir    string
	Dev    *auth.Authority
	Log    *cluster.Local
	FS     *journaltest.Faults // what the control log is on
	Kernel *kernel.Kernel
	Plane  *rpc.Plane
	Wire   *wire.Server
	Agents *wire.Agents
	HTTP   *httptest.Server // / is the WebSocket, /rpc and /agents ask for a token
	Stop   func()

	// Exports and Invoke are the skills of this kernel; set before others use it.
	Exports []string
	Invoke  func(ctx context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error)
}

// New starts a world, which ends with the test.

func New(t testing.TB) *World {
	t.Helper()
	w := &World{t: t, Dir: t.TempDir()}
	w.Start("")
	t.Cleanup(func() { w.Stop() })
	return w
}

// Start starts everything on the data directory; listening where it did before.
func (w *World) Start(addr string) {
	t := w.t
	t.Helper()
	root, err := os.OpenRoot(w.Dir)
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
	if w.Dev, err = auth.NewAuthority(auth.AuthorityConfig{Keys: keys, GenerateKey: func() (*rsa.PrivateKey, error) { return rsaKey(), nil }}); err != nil {
		t.Fatal(err)
	}
	w.FS = &journaltest.Faults{FS: journal.Root(root)}
	w.Plane = rpc.New(rpc.Config{KernelID: "k1", Epoch: w.Dev.ServerID(), Log: zerolog.Nop()})
	if w.Log, err = cluster.Open(w.FS, cluster.Options{Projections: []control.Projection{w.Dev, w.Plane}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Dev.Start(w.Log); err != nil {
		t.Fatal(err)
	}
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.New(kernel.Config{Data: root, Settings: settings, Workspace: w.Dir, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	memory := memory_sqlite.New(filepath.Join(w.Dir, "memory.db"))
	if err := k.Start(context.Background(), strategy_react.New(), llm_echo.New(), memory); err != nil {
		t.Fatal(err)
	}
	w.Kernel = k
	w.Wire = wire.New(wire.Config{
		Authority: w.Dev, KernelID: "k1", Log: zerolog.Nop(), Attempts: auth.NewAttempts(time.Now),
		Audience: func(r *http.Request) string { return "ws://" + r.Host + r.URL.Path },
		Address:  func(r *http.Request) netip.Addr { return netip.MustParseAddrPort(r.RemoteAddr).Addr() }, OnPresence: w.Plane.Presence,
	})
	w.Agents = wire.NewAgents(wire.AgentsConfig{Server: w.Wire, Sessions: k.Sessions, Loop: k.Loop, Approvals: k.Approvals})
	w.Wire.Handle("agent:lobby", w.Plane.Lobby())
	w.Wire.Handle(wire.AgentPrefix, w.Agents)
	err = w.Plane.Start(context.Background(), rpc.Running{
		Log: w.Log, Server: w.Wire, Bus: k.Bus, Sessions: k.Sessions, Loop: k.Loop, Mix: new(registry.Mix), Memories: memory.Count,
		Exports: func() []string { return w.Exports },
		Invoke: func(ctx context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error) {
			return w.Invoke(ctx, actor, skill, payload)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.HTTP = httptest.NewUnstartedServer(w.mux())
	if addr != "" {
		_ = w.HTTP.Listener.Close()
		for range 100 { // the address is free as soon as the kernel says so
			if w.HTTP.Listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.HTTP.Start()
	w.Stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		err := w.Wire.Close(ctx)
		w.Plane.Close()
		w.Agents.Close()
		w.HTTP.Close()
		if err := errors.Join(err, k.Stop(ctx, "test"), w.Log.Close(), keys.Close(), root.Close()); err != nil {
			t.Error(err)
		}
	})
}

// mux lets devices reach /rpc and /agents by their tokens.
func (w *World) mux() http.Handler {
	identified := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			p, err := w.Dev.VerifyToken(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			if err != nil {
				http.Error(rw, "a token is needed", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(rw, r.WithContext(auth.WithPrincipal(r.Context(), p)))
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/", w.Wire)
	mux.HandleFunc("POST /auth/register", func(rw http.ResponseWriter, r *http.Request) {
		var body auth.Registration
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		got, err := w.Dev.Register(r.Context(), "p", body)
		w.token(rw, got.Token, got.RequestID, err)
	})
	mux.HandleFunc("POST /auth/refresh", func(rw http.ResponseWriter, r *http.Request) {
		t, err := w.Dev.Refresh(r.Context(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.token(rw, t, "", err)
	})
	mux.Handle("POST /rpc", identified(w.Plane.Handler()))
	mux.Handle("GET /agents", identified(w.Plane.AgentsHandler()))
	mux.Handle("GET /agents/{id}", identified(w.Plane.AgentsHandler()))
	return mux
}

// token answers as the gateway does.
func (w *World) token(rw http.ResponseWriter, t auth.Token, request string, err error) {
	status, body := http.StatusOK, map[string]any{"server_id": w.Dev.ServerID()}
	switch {
	case err != nil:
		status, body["detail"] = http.StatusUnauthorized, err.Error()
	case request != "":
		status, body["request_id"] = http.StatusAccepted, request
	default:
		body["device_token"], body["expires_at"] = t.Token, t.ExpiresAt
	}
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(body)
}

// Gadget is a device with its key.
type Gadget struct {
	ID    string
	Key   ed25519.PrivateKey
	Token string
}

func (w *World) Enrol(id string, scopes ...auth.Scope) *Gadget {
	w.t.Helper()
	if scopes == nil {
		scopes = auth.AllScopes()
	}
	pub, key, _ := ed25519.GenerateKey(rand.Reader)
	inv, err := w.Dev.Invite(context.Background(), auth.LocalOwner, "", scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.Dev.Register(context.Background(), "p", auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: id, Code: inv.Code})
	if err != nil {
		w.t.Fatal(err)
	}
	return &Gadget{id, key, got.Token.Token}
}

// client is a raw client in one of the four formats.
type Client struct {
	w         *World
	WS        *websocket.Conn
	msgpack   bool
	arrays    bool
	Challenge []byte
	Session   string // of the connection
	refs      int
	inbox     []Message
}

type Message struct {
	JoinRef, Ref any
	Topic, Event string
	Payload      map[string]any
	Raw          map[string]any // a frame outside of topics
}

func (w *World) Url(query string) string {
	return "ws" + strings.TrimPrefix(w.HTTP.URL, "http") + "/ws" + query
}

// Dial connects and takes the challenge, and no more.
func (w *World) Dial(msgpack, arrays bool) *Client {
	w.t.Helper()
	c := &Client{w: w, msgpack: msgpack, arrays: arrays}
	d := websocket.Dialer{}
	c.Dial(&d)
	return c
}

func (c *Client) Dial(d *websocket.Dialer) {
	w := c.w
	w.t.Helper()
	query := ""
	if c.arrays {
		query = "?vsn=2.0.0"
	}
	if c.msgpack {
		d.Subprotocols = []string{wire.SubprotocolMsgpack}
	}
	ws, resp, err := d.Dial(w.Url(query), nil)
	if err != nil {
		w.t.Fatal(err, resp)
	}
	_ = resp.Body.Close()
	w.t.Cleanup(func() { _ = ws.Close() })
	c.WS = ws
	first := c.Read()
	if first.Raw["type"] != "auth_challenge" || first.Raw["challenge"] != resp.Header.Get(wire.ChallengeHeader) {
		w.t.Fatalf("%v, header %v", first, resp.Header)
	}
	c.Challenge, err = base64.StdEncoding.DecodeString(first.Raw["challenge"].(string))
	if err != nil {
		w.t.Fatal(err)
	}
}

func (c *Client) Auth(g *Gadget) Message {
	c.w.t.Helper()
	sig := ed25519.Sign(g.Key, c.Challenge)
	c.Send(map[string]any{"type": "auth", "device_token": g.Token, "challenge_sig": base64.StdEncoding.EncodeToString(sig)})
	return c.Read()
}

// Connect is dial and auth.
func (w *World) Connect(g *Gadget, msgpack, arrays bool) *Client {
	w.t.Helper()
	c := w.Dial(msgpack, arrays)
	ok := c.Auth(g)
	if ok.Raw["type"] != "auth_ok" || ok.Raw["kernel_id"] != "k1" {
		w.t.Fatal(ok)
	}
	c.Session = ok.Raw["session_id"].(string)
	return c
}

func (c *Client) Send(v any) {
	c.w.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		c.w.t.Fatal(err)
	}
	kind := websocket.TextMessage
	if c.msgpack {
		raw, kind = toMsgpack(v), websocket.BinaryMessage
	}
	if err := c.WS.WriteMessage(kind, raw); err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *Client) Next() (Message, error) {
	if err := c.WS.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return Message{}, err
	}
	kind, raw, err := c.WS.ReadMessage()
	if err != nil {
		return Message{}, err
	}
	if want := map[bool]int{true: websocket.BinaryMessage, false: websocket.TextMessage}[c.msgpack]; kind != want {
		return Message{}, fmt.Errorf("a frame of type %d: %s", kind, raw)
	}
	if c.msgpack {
		var out bytes.Buffer
		if _, err := msgp.UnmarshalAsJSON(&out, raw); err != nil {
			return Message{}, err
		}
		raw = out.Bytes()
	}
	var m Message
	if c.arrays && raw[0] == '[' {
		var l [5]any
		if err := json.Unmarshal(raw, &l); err != nil {
			return m, err
		}
		m.JoinRef, m.Ref, m.Topic, m.Event = l[0], l[1], l[2].(string), l[3].(string)
		m.Payload, _ = l[4].(map[string]any)
		return m, nil
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return m, err
	}
	if o["topic"] == nil {
		return Message{Raw: o}, nil
	}
	m.JoinRef, m.Ref, m.Topic, m.Event = o["join_ref"], o["ref"], o["topic"].(string), o["event"].(string)
	m.Payload, _ = o["payload"].(map[string]any)
	return m, nil
}

func (c *Client) Read() Message {
	c.w.t.Helper()
	if len(c.inbox) > 0 {
		m := c.inbox[0]
		c.inbox = c.inbox[1:]
		return m
	}
	m, err := c.Next()
	if err != nil {
		c.w.t.Fatal(err)
	}
	return m
}

// Until reads up to a message that is wanted, which it returns.
func (c *Client) Until(want func(Message) bool) Message {
	c.w.t.Helper()
	for range 10_000 {
		if m := c.Read(); want(m) {
			return m
		}
	}
	c.w.t.Fatal("it does not come")
	return Message{}
}

func (c *Client) Post(joinRef, ref any, topic, event string, payload any) {
	c.w.t.Helper()
	if c.arrays {
		c.Send([]any{joinRef, ref, topic, event, payload})
		return
	}
	c.Send(map[string]any{"topic": topic, "event": event, "payload": payload, "ref": ref})
}

// Ask pushes and waits for the reply; what comes before it is read later.
func (c *Client) Ask(topic, event string, payload any) (status string, response map[string]any) {
	c.w.t.Helper()
	c.refs++
	ref := fmt.Sprint(c.refs)
	var joinRef any
	if c.arrays && event == "phx_join" {
		joinRef = ref
	}
	c.Post(joinRef, ref, topic, event, payload)
	var before []Message
	defer func() { c.inbox = append(before, c.inbox...) }()
	for range 10_000 {
		m, err := c.Next()
		if err != nil {
			c.w.t.Fatal(err)
		}
		if m.Event == "phx_reply" && m.Ref == ref {
			if m.Topic != topic {
				c.w.t.Fatalf("%+v", m)
			}
			status, _ = m.Payload["status"].(string)
			response, _ = m.Payload["response"].(map[string]any)
			return status, response
		}
		before = append(before, m)
	}
	c.w.t.Fatal("no reply")
	return "", nil
}

func (c *Client) Join(topic string, payload any) map[string]any {
	c.w.t.Helper()
	status, res := c.Ask(topic, "phx_join", payload)
	if status != "ok" {
		c.w.t.Fatalf("join %s: %s %v", topic, status, res)
	}
	return res
}

// Closed reads to the end and returns the close code.
func (c *Client) Closed() int {
	c.w.t.Helper()
	for {
		_, err := c.Next()
		if ce, ok := errors.AsType[*websocket.CloseError](err); ok {
			return ce.Code
		}
		if err != nil {
			return -1
		}
	}
}

// toMsgpack encodes with the library alone, so that both ends do not share a
// mistake. What has been through JSON has numbers as they were.
func toMsgpack(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		panic(err)
	}
	out, err := msgp.AppendIntf(nil, numbers(plain))
	if err != nil {
		panic(err)
	}
	return out
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
