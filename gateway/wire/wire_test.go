package wire_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// each runs a test in all four formats (W-2).
func each(t *testing.T, f func(t *testing.T, msgpack, arrays bool)) {
	for _, msgpack := range []bool{false, true} {
		for _, arrays := range []bool{false, true} {
			t.Run(fmt.Sprintf("msgpack=%v,v2=%v", msgpack, arrays), func(t *testing.T) { f(t, msgpack, arrays) })
		}
	}
}

// W-1, W-2, W-11…W-13, W-20, W-25, W-26, W-59…W-63, W-66: a device authenticates,
// joins an agent, says something, and gets everything that comes of it: events with
// cursors, and the text as a stream.
func TestConversation(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone", auth.SessionsRead, auth.SessionsWrite)
	n := 0
	each(t, func(t *testing.T, msgpack, arrays bool) {
		n++
		id := fmt.Sprint("s", n)
		if _, err := w.Kernel.Sessions.Open(id, ""); err != nil {
			t.Fatal(err)
		}
		c := w.Connect(g, msgpack, arrays)
		if status, _ := c.Ask("agent:"+id, "message", map[string]any{"content": "too early"}); status != "error" {
			t.Error("a push before the join")
		}
		res := c.Join("agent:"+id, map[string]any{"session_id": c.Session})
		cursor := res["cursor"].(map[string]any)
		if cursor["epoch"] == "" || cursor["seq"] == nil {
			t.Fatalf("got %v, want a epoch, a seq", res)
		}
		status, res := c.Ask("agent:"+id, "message", map[string]any{"content": "hello there", "id": "m1"})
		if status != "ok" || res["id"] != "m1" || res["turn_id"] == "" {
			t.Fatalf(`got %v, %v, want status "ok", id "m1", a turn_id`, status, res)
		}
		var kinds []string
		var text strings.Builder
		seq, last, total := 0, cursor["seq"].(float64), -1.0
		request := ""
		for total < 0 || !strings.HasPrefix(kinds[len(kinds)-1], "turn.completed") {
			m := c.Read()
			kinds = append(kinds, m.Event)
			if m.Topic != "agent:"+id || m.Ref != nil || m.Payload["type"] != m.Event {
				t.Fatalf("got %+v, want Topic %q, no Ref, type %v", m, "agent:"+id, m.Event)
			}
			if _, err := time.Parse("2006-01-02T15:04:05.000Z", fmt.Sprint(m.Payload["ts"])); err != nil && m.Event != "stream_chunk" { // W-4
				t.Errorf("%s: got ts %v (%v), want a time in milliseconds", m.Event, m.Payload["ts"], err)
			}
			switch m.Event {
			case "stream_start":
				request = m.Payload["request_id"].(string)
			case "stream_chunk":
				if m.Payload["seq"] != float64(seq) || m.Payload["request_id"] != request {
					t.Errorf("got %+v, want seq %d of the request %s", m, seq, request)
				}
				seq++
				text.WriteString(m.Payload["chunk"].(string))
			case "stream_end":
				total = m.Payload["total_chunks"].(float64)
			default:
				if at, ok := m.Payload["cursor"].(map[string]any); ok {
					if at["seq"].(float64) <= last {
						t.Errorf("after %v: %+v", last, m)
					}
					last = at["seq"].(float64)
				}
			}
		}
		if text.String() != "echo: hello there" || total != float64(seq) || seq == 0 {
			t.Errorf("the stream says %q in %d of %v chunks", text.String(), seq, total)
		}
		all := strings.Join(kinds, " ")
		for _, kind := range []string{"user.message.received", "turn.started", "stream_start", "stream_end", "assistant.message.done", "turn.completed"} {
			if !strings.Contains(all, kind) {
				t.Errorf("%s did not come: %s", kind, all)
			}
		}
		// The same message again is the same message.
		if status, res := c.Ask("agent:"+id, "message", map[string]any{"content": "hello there", "id": "m1"}); status != "ok" || res["duplicate"] != true {
			t.Errorf(`got %v, %v, want status "ok", duplicate true`, status, res)
		}
		if status, _ := c.Ask("agent:"+id, "message", map[string]any{"content": "something else", "id": "m1"}); status != "error" {
			t.Error("another message with the same id")
		}
		if status, _ := c.Ask("agent:"+id, "nonsense", map[string]any{}); status != "error" {
			t.Error("an unknown event")
		}
		if status, _ := c.Ask("phoenix", "heartbeat", map[string]any{}); status != "ok" {
			t.Error("heartbeat")
		}
		if status, _ := c.Ask("agent:"+id, "phx_leave", map[string]any{}); status != "ok" {
			t.Error("leave")
		}
		if status, _ := c.Ask("agent:"+id, "message", map[string]any{"content": "too late"}); status != "error" {
			t.Error("a push after the leave")
		}
	})
}

// W-14…W-16, AU-22, WS-18: a client that does not prove its identity gets auth_fail, the same
// for all reasons, and is closed with 4401.
func TestFailedAuthentication(t *testing.T) {
	w := wiretest.New(t)
	g, other, gone := w.Enroll("phone"), w.Enroll("other"), w.Enroll("gone")
	if err := w.Dev.Revoke(t.Context(), auth.LocalOwner, "gone", ""); err != nil {
		t.Fatal(err)
	}
	earlier := w.Dial(false, true)
	sig := func(g *wiretest.Gadget, challenge []byte) string {
		return base64.StdEncoding.EncodeToString(ed25519.Sign(g.Key, challenge))
	}
	replies := map[string]bool{}
	for name, frame := range map[string]func(c *wiretest.Client) any{
		"another connection's challenge": func(*wiretest.Client) any {
			return map[string]any{"type": "auth", "device_token": g.Token, "challenge_sig": sig(g, earlier.Challenge)}
		},
		"another device's key": func(c *wiretest.Client) any {
			return map[string]any{"type": "auth", "device_token": g.Token, "challenge_sig": sig(other, c.Challenge)}
		},
		"revoked": func(c *wiretest.Client) any {
			return map[string]any{"type": "auth", "device_token": gone.Token, "challenge_sig": sig(gone, c.Challenge)}
		},
		"no token": func(c *wiretest.Client) any {
			return map[string]any{"type": "auth", "challenge_sig": sig(g, c.Challenge)}
		},
		"no signature": func(*wiretest.Client) any { return map[string]any{"type": "auth", "device_token": g.Token} },
		"not base64": func(*wiretest.Client) any {
			return map[string]any{"type": "auth", "device_token": g.Token, "challenge_sig": "%"}
		},
		"another type": func(c *wiretest.Client) any {
			return map[string]any{"type": "login", "device_token": g.Token, "challenge_sig": sig(g, c.Challenge)}
		},
		"more": func(c *wiretest.Client) any {
			return map[string]any{"type": "auth", "device_token": g.Token, "challenge_sig": sig(g, c.Challenge), "scopes": []string{"admin"}}
		},
		"a join": func(*wiretest.Client) any { return []any{"1", "1", "agent:s", "phx_join", map[string]any{}} },
	} {
		c := w.Dial(false, true)
		c.Send(frame(c))
		m, err := c.Next()
		if err != nil || m.Raw["type"] != "auth_fail" || m.Raw["reason"] == "" {
			t.Errorf(`%s: got %+v, %v, want type "auth_fail", a reason`, name, m, err)
			continue
		}
		replies[fmt.Sprint(m.Raw)] = true
		if code := c.Closed(); code != 4401 {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
	if len(replies) != 1 {
		t.Errorf("the reasons can be told apart: %v", replies)
	}
	if ok := earlier.Auth(g); ok.Raw["type"] != "auth_ok" {
		t.Errorf("the other connection: %v", ok)
	}
	earlier.Send(map[string]any{"type": "auth", "device_token": g.Token, "challenge_sig": ""})
	if code := earlier.Closed(); code != 4400 {
		t.Errorf("auth twice: closed with %d", code)
	}
}

// W-27, WS-19, WS-21, WS-23: topics that are not there, foreign session ids and missing
// scopes look the same to a client without the right to know.
func TestJoinIsRefused(t *testing.T) {
	w := wiretest.New(t)
	if _, err := w.Kernel.Sessions.Open("secret", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(w.Enroll("phone", auth.SessionsRead), false, true)
	for topic, payload := range map[string]any{
		"agent:nobody":       nil,
		"agent:*":            nil,
		"agent:":             nil,
		"agent:kernel":       nil,
		"agent:../../secret": nil,
		"session:secret":     nil,
		"*":                  nil,
		"admin":              nil,
		"agent:secret":       map[string]any{"session_id": "of another"},
	} {
		if status, res := c.Ask(topic, "phx_join", payload); status != "error" || res["reason"] == "" {
			t.Errorf(`%s: got %s %v, want status "error", a reason`, topic, status, res)
		}
	}
	blind := w.Connect(w.Enroll("blind", auth.AgentsRead), false, true)
	var answers []string
	for _, topic := range []string{"agent:secret", "agent:nobody"} {
		status, res := blind.Ask(topic, "phx_join", nil)
		answers = append(answers, fmt.Sprint(status, res))
	}
	if answers[0] != answers[1] || !strings.HasPrefix(answers[0], "error") {
		t.Errorf("existence can be seen: %v", answers)
	}
	// Joining twice closes the first join, and events come once.
	c.Join("agent:secret", nil)
	c.Join("agent:secret", nil)
	if m := c.Until(func(m wiretest.Message) bool { return m.Event == "phx_close" }); m.Topic != "agent:secret" || m.JoinRef == nil {
		t.Errorf(`got %+v, want Topic "agent:secret", a JoinRef`, m)
	}
	reader := w.Connect(w.Enroll("writer", auth.SessionsRead, auth.KernelAttach), false, true)
	reader.Join("agent:secret", nil)
	if status, res := reader.Ask("agent:secret", "message", map[string]any{"content": "x"}); status != "error" || res["reason"] != "forbidden" {
		t.Errorf("a push without the scope: %s %v", status, res)
	}
	for _, event := range []string{"interrupt", "approval"} {
		if status, res := reader.Ask("agent:secret", event, map[string]any{}); status != "error" || res["reason"] != "forbidden" {
			t.Errorf("%s without the scope: %s %v", event, status, res)
		}
	}
	if status, _ := reader.Ask("agent:secret", "phx_reply", map[string]any{}); status != "error" {
		t.Error("a client sends phx_reply")
	}
	// At most 256 topics.
	for n := range 300 {
		id := fmt.Sprint("t", n)
		if n < 260 {
			if _, err := w.Kernel.Sessions.Open(id, ""); err != nil {
				t.Fatal(err)
			}
		}
		status, _ := reader.Ask("agent:"+id, "phx_join", nil)
		if good := n < 255; (status == "ok") != good {
			t.Fatalf("join %d: %s", n, status)
		}
		if n > 260 {
			break
		}
	}
}

// W-2, WS-10, WS-14…WS-16, AU-20: whatever a client sends, it is closed with a
// code, and others do not notice.
func TestBrokenMessages(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	bystander := w.Connect(g, false, true)
	text := websocket.TextMessage
	bin := websocket.BinaryMessage
	for name, tt := range map[string]struct {
		kind int
		data string
		code int
	}{
		"not JSON":        {text, "x", 4400},
		"object":          {text, `{"topic":"phoenix","event":"heartbeat"}`, 4400},
		"short":           {text, `["1","1","phoenix","heartbeat"]`, 4400},
		"long":            {text, `["1","1","phoenix","heartbeat",{},{}]`, 4400},
		"number ref":      {text, `[1,2,"phoenix","heartbeat",{}]`, 4400},
		"long ref":        {text, `["1","` + strings.Repeat("x", 65) + `","phoenix","heartbeat",{}]`, 4400},
		"no topic":        {text, `["1","1","","heartbeat",{}]`, 4400},
		"long topic":      {text, `["1","1","` + strings.Repeat("x", 301) + `","heartbeat",{}]`, 4400},
		"null event":      {text, `["1","1","phoenix",null,{}]`, 4400},
		"twice":           {text, `["1","1","phoenix","heartbeat",{"a":1,"a":2}]`, 4400},
		"deep":            {text, strings.Repeat("[", 100_000), 4400},
		"trailing":        {text, `["1","1","phoenix","heartbeat",{}] 1`, 4400},
		"long number":     {text, `["1","1","phoenix","heartbeat",{"a":` + strings.Repeat("1", 1001) + `}]`, 4400},
		"not UTF-8":       {text, "[\"\xff\"]", 1007},
		"another kind":    {bin, "\x95", 1003},
		"too large":       {text, strings.Repeat(" ", 1<<20+1), 1009},
		"empty":           {text, "", 4400},
		"top-level value": {text, "7", 4400},
	} {
		c := w.Connect(g, false, true)
		if err := c.WS.WriteMessage(tt.kind, []byte(tt.data)); err != nil {
			t.Fatal(err)
		}
		if code := c.Closed(); code != tt.code {
			t.Errorf("%s: closed with %d, want %d", name, code, tt.code)
		}
	}
	for name, data := range map[string]string{
		"array32":  "\xdd\xff\xff\xff\xff",
		"map32":    "\xdf\xff\xff\xff\xff",
		"bin32":    "\xc6\xff\xff\xff\xff",
		"str32":    "\xdb\x7f\xff\xff\xff",
		"ext32":    "\xc9\xff\xff\xff\xff",
		"depth":    strings.Repeat("\x91", 900_000),
		"maps":     strings.Repeat("\x81\xa1a", 300_000),
		"NaN":      "\x95\xa11\xa11\xa7phoenix\xa9heartbeat\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
		"Inf":      "\x95\xa11\xa11\xa7phoenix\xa9heartbeat\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00",
		"ext -1":   "\x95\xa11\xa11\xa7phoenix\xa9heartbeat\xd7\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"int key":  "\x95\xa11\xa11\xa7phoenix\xa9heartbeat\x81\x01\x01",
		"fixext":   "\xd8\x01\x00",
		"unused":   "\xc1",
		"trailing": "\xc0\xc0",
		"empty":    "",
		"twice":    "\x95\xa11\xa11\xa7phoenix\xa9heartbeat\x82\xa1a\x01\xa1a\x02",
		"latin 1":  "\x95\xa11\xa1\xff\xa7phoenix\xa9heartbeat\x80",
	} {
		c := w.Connect(g, true, true)
		if err := c.WS.WriteMessage(bin, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if code := c.Closed(); code != 4400 {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
	if status, _ := bystander.Ask("phoenix", "heartbeat", nil); status != "ok" {
		t.Error("the bystander")
	}
}

// WS-11, LD-04: more than 50 messages a second end with 4429; so do pings, and
// pongs that nobody asked for.
func TestRate(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone", auth.SessionsRead)
	for name, send := range map[string]func(c *wiretest.Client) error{
		"messages": func(c *wiretest.Client) error {
			return c.WS.WriteMessage(websocket.TextMessage, []byte(`[null,null,"phoenix","heartbeat",{}]`))
		},
		"pings": func(c *wiretest.Client) error {
			return c.WS.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		},
		"pongs": func(c *wiretest.Client) error {
			return c.WS.WriteControl(websocket.PongMessage, nil, time.Now().Add(time.Second))
		},
	} {
		c := w.Connect(g, false, true)
		sent := 0
		for ; sent < 2000; sent++ {
			if send(c) != nil {
				break
			}
		}
		if code := c.Closed(); code != 4429 && sent == 2000 {
			t.Errorf("%s: %d were sent, closed with %d", name, sent, code)
		}
	}
	c := w.Connect(g, false, true)
	for range 190 { // the burst is allowed
		if err := c.WS.WriteMessage(websocket.TextMessage, []byte(`[null,null,"phoenix","heartbeat",{}]`)); err != nil {
			t.Fatal(err)
		}
	}
	if status, _ := c.Ask("phoenix", "heartbeat", nil); status != "ok" {
		t.Error("within the burst")
	}
}

// AU-16, AU-18, R2: a revoked device is disconnected at once, with an event before the close;
// a refreshed token is taken over in band.
func TestRevocationAndRefreshInBand(t *testing.T) {
	w := wiretest.New(t)
	g, other := w.Enroll("phone"), w.Enroll("other")
	c := w.Connect(g, false, true)
	next, err := w.Dev.Refresh(t.Context(), g.Token)
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range []string{other.Token, "x", ""} {
		if status, _ := c.Ask("phoenix", "auth", map[string]any{"device_token": tok}); status != "error" {
			t.Errorf("token %.10q is taken over", tok)
		}
	}
	if status, _ := c.Ask("phoenix", "auth", map[string]any{"device_token": next.Token}); status != "ok" {
		t.Error("a refreshed token is not taken over")
	}
	if err := w.Dev.Revoke(t.Context(), auth.LocalOwner, "phone", ""); err != nil {
		t.Fatal(err)
	}
	m := c.Read()
	if m.Topic != "phoenix" || m.Event != "disconnect" || m.Payload["code"] != float64(4401) {
		t.Errorf("got %+v, want a disconnect with the code 4401", m)
	}
	if code := c.Closed(); code != 4401 {
		t.Errorf("closed with %d, want 4401", code)
	}
}

// WS-04, WS-05, WS-29: connections that do not authenticate are few, and short.
func TestStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	w := wiretest.New(t)
	g := w.Enroll("phone")
	var open []*wiretest.Client
	for range 16 {
		open = append(open, w.Dial(false, true))
	}
	open = append(open, w.Dial(false, true)) // the 17th of one network takes the place of the first
	if code := open[0].Closed(); code != wire.CloseTooMany {
		t.Errorf("the first of 17: closed with %d, want %d", code, wire.CloseTooMany)
	}
	if ok := open[1].Auth(g); ok.Raw["type"] != "auth_ok" { // and no other's; it makes room
		t.Fatalf(`got %v, want type "auth_ok"`, ok)
	}
	open = open[1:]
	large := w.Dial(false, true)
	_ = large.WS.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("x", 64<<10))) // it may be closed before the end
	if code := large.Closed(); code != 1009 && code != -1 {
		t.Errorf("a large frame before auth: %d", code)
	}
	if resp, err := w.HTTP.Client().Get(w.HTTP.URL + "/ws?token=x"); err != nil || resp.StatusCode != 400 { // R8
		t.Errorf("got %v, %v, want StatusCode 400", resp, err)
	} else {
		resp.Body.Close()
	}
	for _, c := range open[1:] {
		_ = c.WS.SetReadDeadline(time.Now().Add(eventually.Limit))
		if _, _, err := c.WS.ReadMessage(); err == nil {
			t.Error("a stranger gets something")
		} else if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			t.Fatal("a stranger may stay")
		}
	}
}

// TW-14: a client that only watches does not count as able to answer; one with the right does,
// for as long as it is connected and has it.
func TestWhoIsThereToAnswer(t *testing.T) {
	w := wiretest.New(t)
	s, err := w.Kernel.Sessions.Open("s", "")
	if err != nil {
		t.Fatal(err)
	}
	watcher := w.Connect(w.Enroll("watcher", auth.SessionsRead), false, true)
	watcher.Join("agent:s", nil)
	if s.Answerable() {
		t.Error("a watcher counts")
	}
	g := w.Enroll("decider", auth.SessionsRead, auth.ApprovalsAnswer)
	decider := w.Connect(g, false, true)
	decider.Join("agent:s", nil)
	if !s.Answerable() {
		t.Error("who may answer does not count")
	}
	if err := w.Dev.SetScopes(t.Context(), auth.LocalOwner, "decider", []auth.Scope{auth.SessionsRead}); err != nil {
		t.Fatal(err)
	}
	if s.Answerable() {
		t.Error("who may answer no longer counts")
	}
	if err := w.Dev.SetScopes(t.Context(), auth.LocalOwner, "decider", []auth.Scope{auth.SessionsRead, auth.ApprovalsAnswer}); err != nil {
		t.Fatal(err)
	}
	if !s.Answerable() {
		t.Error("who may answer again does not count")
	}
	if status, _ := decider.Ask("agent:s", "phx_leave", map[string]any{}); status != "ok" {
		t.Errorf("phx_leave: %s, want ok", status)
	}
	eventually.True(t, "who has left no longer counts", func() bool { return !s.Answerable() })
}

// LD-11: a server that gets little processor time takes nobody for dead.
func TestNoFalseDeath(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	defer wire.SetTimes(time.Second, 4*time.Second)()
	w := wiretest.New(t)
	c := w.Connect(w.Enroll("phone"), false, true)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	stop := make(chan struct{})
	var burners sync.WaitGroup
	for range 2 {
		burners.Go(func() {
			for n := 0; ; n++ {
				if n&0xfffff == 0 {
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		})
	}
	pings := 0
	c.WS.SetPingHandler(func(data string) error {
		pings++
		return c.WS.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	})
	_ = c.WS.SetReadDeadline(time.Now().Add(8 * time.Second)) // twice as long as it may be silent
	_, _, err := c.WS.ReadMessage()
	close(stop)
	burners.Wait()
	if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() || pings < 3 {
		t.Errorf("after %d pings: %v", pings, err)
	}
}

// R6, AU-33: a client that has failed ten times in a minute may show only tokens that are known
// to be good.
func TestGuessingOverTheWire(t *testing.T) {
	w := wiretest.New(t)
	known, fresh := w.Enroll("known"), w.Enroll("fresh")
	_ = w.Connect(known, false, true).WS.Close()
	for range 10 {
		c := w.Dial(false, true)
		c.Send(map[string]any{"type": "auth", "device_token": "a.b.c", "challenge_sig": ""})
		if m, err := c.Next(); err != nil || m.Raw["type"] != "auth_fail" {
			t.Fatalf(`got %v, %v, want type "auth_fail"`, m, err)
		}
	}
	if m := w.Dial(false, true).Auth(fresh); m.Raw["type"] != "auth_fail" {
		t.Errorf("a good token that nobody has seen: %v", m)
	}
	if m := w.Dial(false, true).Auth(known); m.Raw["type"] != "auth_ok" {
		t.Errorf("a token that is known: %v", m)
	}
}
