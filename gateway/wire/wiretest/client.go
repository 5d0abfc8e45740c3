package wiretest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tinylib/msgp/msgp"

	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// Client is a raw client in one of the four formats.
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
	Raw          map[string]any // a frame outside topics
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
	if err := c.WS.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
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
	m, err := c.Try()
	if err != nil {
		c.w.t.Fatal(err)
	}
	return m
}

// Try is Read for a client whose connection may end.
func (c *Client) Try() (Message, error) {
	if len(c.inbox) > 0 {
		m := c.inbox[0]
		c.inbox = c.inbox[1:]
		return m, nil
	}
	return c.Next()
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
// mistake. Numbers pass through JSON unchanged.
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
