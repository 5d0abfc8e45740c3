package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// others leads to the node south, on which devices have tokens of their own.
type others struct {
	south *wiretest.World
	url   string // where south takes what other nodes pass on

	mu     sync.Mutex
	tokens map[string]string // by device
	asked  atomic.Int32
	// open, unless nil, is what Open does.
	open func(ctx context.Context) (*websocket.Conn, string, error)
}

func (o *others) Open(ctx context.Context, has, path string, who auth.Principal, token string) (*websocket.Conn, string, error) {
	o.asked.Add(1)
	if token == "" {
		return nil, "south", errors.New("a device has no token")
	}
	if o.open != nil {
		return o.open(ctx)
	}
	id := strings.TrimPrefix(has, wire.NodeAgents+"/")
	rec, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, has, nil)
	r.SetPathValue("id", id)
	if o.south.Agents.ForNodes(rec, r); rec.Code != http.StatusOK {
		return nil, "", nil
	}
	o.mu.Lock()
	theirs := o.tokens[who.ID]
	o.mu.Unlock()
	return dial(ctx, o.url+path, http.Header{"Token": {theirs}})
}

func dial(ctx context.Context, url string, header http.Header) (*websocket.Conn, string, error) {
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, "ws"+strings.TrimPrefix(url, "http"), header)
	if resp != nil && err != nil {
		_ = resp.Body.Close()
	}
	return ws, "south", err
}

// twoNodes returns the nodes north, whose clients join topics of south.
func twoNodes(t *testing.T) (north *wiretest.World, o *others) {
	t.Helper()
	o = &others{south: wiretest.New(t), tokens: map[string]string{}}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := o.south.Dev.VerifyToken(r.Header.Get("Token"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		o.south.Wire.PassedOn().ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), p)))
	}))
	t.Cleanup(hs.Close)
	o.url = hs.URL
	return wiretest.New(t, func(w *wiretest.World) { w.Nodes = o }), o
}

// enroll enrolls a device on both nodes.
func (o *others) enroll(north *wiretest.World, id string, scopes ...auth.Scope) *wiretest.Gadget {
	there := o.south.Enroll(id, scopes...)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens[id] = there.Token
	return north.Enroll(id, scopes...)
}

// W-20, W-25, W-59…W-66: a client joins an agent of another node, says something there, and gets
// everything that comes of it, as on that node.
func TestTopicOfAnotherNode(t *testing.T) {
	north, o := twoNodes(t)
	g := o.enroll(north, "phone")
	n := 0
	each(t, func(t *testing.T, msgpack, arrays bool) {
		n++
		id := fmt.Sprint("s", n)
		if _, err := o.south.Kernel.Sessions.Open(id, ""); err != nil {
			t.Fatal(err)
		}
		write(t, o.south, id, "before")
		c := north.Connect(g, msgpack, arrays)
		topic := "agent:" + id
		first := c.Join(topic, map[string]any{"session_id": c.Session})["cursor"].(map[string]any)
		status, res := c.Ask(topic, "message", map[string]any{"content": "hello there", "id": "m1"})
		if status != "ok" || res["id"] != "m1" || res["turn_id"] == "" {
			t.Fatalf("the answer to a message is %v, %v, want that of south", status, res)
		}
		var text strings.Builder
		var request string
		last := c.Until(func(m wiretest.Message) bool {
			if m.Topic != topic || m.Ref != nil {
				t.Errorf("got %+v, want an event of %s", m, topic)
			}
			if m.Event == "stream_chunk" {
				text.WriteString(m.Payload["chunk"].(string))
				request = m.Payload["request_id"].(string)
			}
			return m.Event == "turn.completed"
		})
		if got := text.String(); got != "echo: hello there" {
			t.Errorf("the text is %q, want echo: hello there", got)
		}
		if status, res = c.Ask(topic, "stream_retry", map[string]any{"request_id": request, "missing": []int{0}}); status != "ok" || res["resent"] != float64(2) {
			t.Errorf("stream_retry: %s %v, want the chunk and the end sent again", status, res)
		}
		if status, res = c.Ask(topic, "history", map[string]any{"before": first["seq"].(float64) + 1}); status != "ok" || len(res["events"].([]any)) == 0 {
			t.Errorf("history: %s %v, want what was before the join", status, res)
		}
		if status, res = c.Ask(topic, "interrupt", nil); status != "ok" || res["cancelled"] != false {
			t.Errorf("interrupt: %s %v, want that nothing runs", status, res)
		}
		if status, res = c.Ask(topic, "approval", map[string]any{"request_id": "x", "response": "approve"}); status != "error" {
			t.Errorf("approval of nothing: %s %v, want an error", status, res)
		}
		if status, res = c.Ask(topic, "dance", nil); status != "error" || res["reason"] != `no such event: "dance"` {
			t.Errorf("an unknown event: %s %v, want the error of south", status, res)
		}
		end := last.Payload["cursor"].(map[string]any)["seq"].(float64)
		// Joining again replaces the join before, and has what is behind the cursor.
		if res = c.Join(topic, map[string]any{"since": first["seq"], "epoch": first["epoch"]}); res["resync"] != nil {
			t.Errorf("got %v, want no resync", res)
		}
		if got := durable(t, c, end); got[0] != first["seq"].(float64)+1 || len(got) != int(end-first["seq"].(float64)) {
			t.Errorf("the events are %v, want those behind %v", got, first)
		}
		if res = c.Join(topic, map[string]any{"since": 1, "epoch": "another"}); res["resync"] != "epoch" {
			t.Errorf("a join with another epoch: %v, want a resync", res)
		}
		if here, _, _ := o.south.Wire.Stats(); here != 0 || len(o.south.Wire.Present()) != 0 {
			t.Errorf("south has %d connections of %v, want that the phone is on north alone", here, o.south.Wire.Present())
		}
		if status, _ = c.Ask(topic, "phx_leave", nil); status != "ok" {
			t.Errorf("a leave: %s, want ok", status)
		}
		if status, res = c.Ask(topic, "message", map[string]any{"content": "x"}); status != "error" || res["reason"] != "unmatched topic" {
			t.Errorf("a message after the leave: %s %v, want that it is not joined", status, res)
		}
		eventually.True(t, "south has let go of it", func() bool { return o.south.Wire.Passed() == 0 })
	})
}

// W-27: a client cannot tell why it may not join, and one without the right has no node asked.
func TestTopicOfAnotherNodeIsRefused(t *testing.T) {
	north, o := twoNodes(t)
	if _, err := o.south.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	g := o.enroll(north, "phone")
	c := north.Connect(g, false, true)
	refused := func(topic, want string) {
		t.Helper()
		if status, res := c.Ask(topic, "phx_join", map[string]any{}); status != "error" || !strings.Contains(fmt.Sprint(res["reason"]), want) {
			t.Errorf("a join of %.40s: %s %v, want the error %s", topic, status, res, want)
		}
	}
	refused("agent:nobody", "unmatched topic")
	for _, id := range []string{"kernel", "..", "a b", strings.Repeat("x", 200)} {
		before := o.asked.Load()
		if refused("agent:"+id, "unmatched topic"); o.asked.Load() != before {
			t.Errorf("another node is asked for %.40q, which cannot be", id)
		}
	}
	blind := north.Connect(o.enroll(north, "blind", auth.AgentsRead), false, true)
	before := o.asked.Load()
	for _, id := range []string{"s", "nobody"} {
		if status, res := blind.Ask("agent:"+id, "phx_join", map[string]any{}); status != "error" || res["reason"] != "forbidden" {
			t.Errorf("a join without the right: %s %v, want forbidden", status, res)
		}
	}
	if o.asked.Load() != before {
		t.Error("another node is asked for somebody without the right")
	}
	// South does not know the token.
	o.mu.Lock()
	good := o.tokens["phone"]
	o.tokens["phone"] = "x"
	o.mu.Unlock()
	refused("agent:s", "the node south cannot be reached")
	o.mu.Lock()
	o.tokens["phone"] = good
	o.mu.Unlock()
	// South takes the right, and north does not know it.
	if err := o.south.Dev.SetScopes(t.Context(), auth.LocalOwner, "phone", []auth.Scope{auth.AgentsRead}); err != nil {
		t.Fatal(err)
	}
	refused("agent:s", "forbidden")
	// A node to which a join was passed on asks nobody else.
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		north.Wire.PassedOn().ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), auth.LocalOwner)))
	}))
	defer hs.Close()
	before = o.asked.Load()
	ws, _, err := dial(t.Context(), hs.URL+"?vsn=2.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`["1","1","agent:s","phx_join",{}]`)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // auth_ok, and the answer
		if _, data, err := ws.ReadMessage(); err != nil || strings.Contains(string(data), "phx_reply") && !strings.Contains(string(data), "unmatched topic") {
			t.Errorf("a join that was passed on: %s, %v, want unmatched topic", data, err)
		}
	}
	if o.asked.Load() != before {
		t.Error("a node to which a join was passed on asks others")
	}
}

// R2, CL-09: a join of another node's topic ends when either node takes the right to it.
func TestRightsOnBothNodes(t *testing.T) {
	less := []auth.Scope{auth.AgentsRead}
	for what, c := range map[string]struct {
		end  func(north *wiretest.World, south *wiretest.World) error
		want string
	}{
		"scopes on south": {func(_, south *wiretest.World) error {
			return south.Dev.SetScopes(context.Background(), auth.LocalOwner, "phone", less)
		}, "the right to it was taken"},
		"scopes on north": {func(north, _ *wiretest.World) error {
			return north.Dev.SetScopes(context.Background(), auth.LocalOwner, "phone", less)
		}, "the right to it was taken"},
		"revoked on south": {func(_, south *wiretest.World) error {
			return south.Dev.Revoke(context.Background(), auth.LocalOwner, "phone", "")
		}, "the node south no longer admits you"},
		"revoked on north": {func(north, _ *wiretest.World) error {
			return north.Dev.Revoke(context.Background(), auth.LocalOwner, "phone", "")
		}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			north, o := twoNodes(t)
			if _, err := o.south.Kernel.Sessions.Open("s", ""); err != nil {
				t.Fatal(err)
			}
			cl := north.Connect(o.enroll(north, "phone"), false, true)
			cl.Join("agent:s", nil)
			if err := c.end(north, o.south); err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if code := cl.Closed(); code != wire.CloseUnauthed {
					t.Errorf("closed with %d, want %d", code, wire.CloseUnauthed)
				}
			} else if m := cl.Until(func(m wiretest.Message) bool { return m.Event == "phx_error" }); m.Topic != "agent:s" || !strings.Contains(fmt.Sprint(m.Payload["reason"]), c.want) {
				t.Errorf("got %+v, want that %s", m, c.want)
			}
			eventually.True(t, "south has let go of it", func() bool { return o.south.Wire.Passed() == 0 })
		})
	}
}

// W-60: when the other node goes, the client is told to join again, and misses nothing.
func TestOtherNodeGoes(t *testing.T) {
	north, o := twoNodes(t)
	if _, err := o.south.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := north.Connect(o.enroll(north, "phone"), true, true)
	at := c.Join("agent:s", nil)["cursor"].(map[string]any)
	write(t, o.south, "s", "one")
	seen := durable(t, c, at["seq"].(float64)+1)
	o.south.Stop()
	m := c.Until(func(m wiretest.Message) bool { return m.Event == "phx_error" })
	if m.Topic != "agent:s" || m.Payload["reason"] != "the node south has gone: join again" {
		t.Errorf("got %+v, want that south has gone", m)
	}
	o.south.Start("")
	if _, err := o.south.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	last := float64(write(t, o.south, "s", "two"))
	if res := c.Join("agent:s", map[string]any{"since": seen[len(seen)-1], "epoch": at["epoch"]}); res["resync"] != nil {
		t.Errorf("got %v, want no resync", res)
	}
	if got := durable(t, c, last); got[0] != seen[len(seen)-1]+1 {
		t.Errorf("the events are %v, want those behind %v", got, seen)
	}
}

// R12: clients see every event of another node's agent once and in order, however they come and go.
func TestNoGapOverNodes(t *testing.T) {
	north, o := twoNodes(t)
	noGap(t, north, o.south, o.enroll(north, "phone", auth.SessionsRead))
	eventually.True(t, "south has let go of all", func() bool { return o.south.Wire.Passed() == 0 })
}

// WS-12, LD-03: a client that does not read what another node sends is closed with 4408, and misses
// nothing when it comes back.
func TestSlowOnAnotherNode(t *testing.T) {
	t.Cleanup(wire.SetSlowGrace(eventually.Limit))
	t.Cleanup(wire.SetWriteTimeout(eventually.Limit)) // it writes more than anybody keeps before it reads
	north, o := twoNodes(t)
	if _, err := o.south.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	g := o.enroll(north, "phone", auth.SessionsRead)
	c := north.Connect(g, false, true)
	at := c.Join("agent:s", nil)["cursor"].(map[string]any)
	seen := at["seq"].(float64)
	text := strings.Repeat("x", 50_000)
	var last float64
	for n := 0; ; n++ {
		if _, slow, _ := o.south.Wire.Stats(); slow > 0 {
			break
		}
		if n == 2000 {
			t.Fatalf("%d events that nobody reads are not too many", n)
		}
		last = float64(write(t, o.south, "s", text))
	}
	for {
		m, err := c.Next()
		if err != nil {
			if !websocket.IsCloseError(err, wire.CloseSlow) {
				t.Errorf("closed with %v, want %d", err, wire.CloseSlow)
			}
			break
		}
		if cur, ok := m.Payload["cursor"].(map[string]any); ok {
			if cur["seq"] != seen+1 {
				t.Fatalf("%v comes after %v", cur["seq"], seen)
			}
			seen++
		}
	}
	c = north.Connect(g, false, true)
	c.Join("agent:s", map[string]any{"since": seen, "epoch": at["epoch"]})
	if got := durable(t, c, last); len(got) != int(last-seen) {
		t.Errorf("%d events were missing, and %d came", int(last-seen), len(got))
	}
}

// R12, LD-06: joins of other nodes are counted for their principal, on both nodes, and given back.
func TestManyTopicsOfOtherNodes(t *testing.T) {
	north, o := twoNodes(t)
	g := o.enroll(north, "phone")
	if _, err := o.south.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	give := wire.TakeRelays(north.Wire, "device:phone", wire.MaxRelaysOfOne)
	c := north.Connect(g, false, true)
	if status, res := c.Ask("agent:s", "phx_join", nil); status != "error" || !strings.Contains(fmt.Sprint(res["reason"]), "by one principal") {
		t.Errorf("one join too many on north: %s %v, want an error", status, res)
	}
	other := north.Connect(o.enroll(north, "other"), false, true)
	other.Join("agent:s", nil)
	give()
	give = wire.TakePassed(o.south.Wire, "device:phone", wire.MaxRelaysOfOne)
	if status, res := c.Ask("agent:s", "phx_join", nil); status != "error" || !strings.Contains(fmt.Sprint(res["reason"]), "the node south has too many") {
		t.Errorf("one join too many on south: %s %v, want an error", status, res)
	}
	give()
	c.Join("agent:s", nil)
}

// fakeNode has a node of the test's own behave as it wants after a join.
func fakeNode(t *testing.T, o *others, behave func(ws *websocket.Conn)) {
	t.Helper()
	var jobs sync.WaitGroup
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		jobs.Go(func() {
			defer func() { _ = ws.Close() }()
			if _, _, err := ws.ReadMessage(); err != nil {
				t.Error(err)
				return
			}
			behave(ws)
		})
	}))
	t.Cleanup(func() {
		hs.Close()
		jobs.Wait()
	})
	o.open = func(ctx context.Context) (*websocket.Conn, string, error) { return dial(ctx, hs.URL, nil) }
}

const fakeJoined = `[null,"join","agent:s","phx_reply",{"status":"ok","response":{}}]`

// A message to which no answer came before the node went gets one: it may have been taken.
func TestUnansweredByAnotherNode(t *testing.T) {
	north, o := twoNodes(t)
	fakeNode(t, o, func(ws *websocket.Conn) {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(fakeJoined)); err != nil {
			t.Error(err)
		}
		if _, _, err := ws.ReadMessage(); err != nil {
			t.Error(err)
		}
	})
	c := north.Connect(o.enroll(north, "phone"), false, true)
	c.Join("agent:s", nil)
	if status, res := c.Ask("agent:s", "message", map[string]any{"content": "x"}); status != "error" || !strings.Contains(fmt.Sprint(res["reason"]), "it may have done this") {
		t.Errorf("a message to a node that goes: %s %v, want that it may have been taken", status, res)
	}
	if m := c.Until(func(m wiretest.Message) bool { return m.Event == "phx_error" }); m.Topic != "agent:s" {
		t.Errorf("got %+v, want that the join has ended", m)
	}
}

// R9, R12: a node that takes no messages holds up nobody, and memory for them is bounded.
func TestAnotherNodeTakesNothing(t *testing.T) {
	north, o := twoNodes(t)
	stop := make(chan struct{})
	fakeNode(t, o, func(ws *websocket.Conn) {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(fakeJoined)); err != nil {
			t.Error(err)
		}
		<-stop
	})
	defer close(stop)
	c := north.Connect(o.enroll(north, "phone"), false, true)
	c.Join("agent:s", nil)
	text := strings.Repeat("x", 900_000)
	for range 30 { // more than the system keeps
		c.Post(nil, "x", "agent:s", "message", map[string]any{"content": text})
	}
	m := c.Until(func(m wiretest.Message) bool { return m.Event == "phx_reply" })
	if m.Payload["status"] != "error" || !strings.Contains(fmt.Sprint(m.Payload), "does not keep up") {
		t.Errorf("got %+v, want that the node does not keep up", m)
	}
	if status, _ := c.Ask("phoenix", "heartbeat", nil); status != "ok" {
		t.Error("the connection is held up")
	}
}

// R9, R14: what a node says is about the topic that was joined, and bounded.
func TestAnotherNodeMisbehaves(t *testing.T) {
	north, o := twoNodes(t)
	for what, c := range map[string]struct {
		say  []string
		want []string // events
	}{
		"another topic": {[]string{fakeJoined, `[null,null,"agent:lobby","kill_agent",{}]`, `[null,null,"agent:s","good",{}]`}, []string{"good", "phx_error"}},
		"no message":    {[]string{fakeJoined, `{"topic":"agent:s"}`, `[`, `[1,2,3,4,5]`, `[null,null,"agent:s","good",{}]`}, []string{"good", "phx_error"}},
		"the end":       {[]string{fakeJoined, `["x","x","agent:s","phx_close",{}]`}, []string{"phx_close"}},
		"an error":      {[]string{fakeJoined, `["x","x","agent:s","phx_error",{"reason":5}]`}, []string{"phx_error"}},
		"too much":      {[]string{fakeJoined, `[null,null,"agent:s","big",{"x":"` + strings.Repeat("x", 9<<20) + `"}]`}, []string{"phx_error"}},
	} {
		fakeNode(t, o, func(ws *websocket.Conn) {
			for _, text := range c.say {
				if ws.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
					return // it was too much
				}
			}
		})
		cl := north.Connect(o.enroll(north, strings.ReplaceAll(what, " ", "-")), false, true)
		cl.Join("agent:s", nil)
		var got []string
		for last := c.want[len(c.want)-1]; !slices.Contains(got, last); {
			got = append(got, cl.Read().Event)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the client gets %v, want %v", what, got, c.want)
		}
		_ = cl.WS.Close()
	}
}

// PassedOn is for those whom another node may pass on, and for nobody else.
func TestPassedOnIsForClients(t *testing.T) {
	w := wiretest.New(t)
	for _, p := range []auth.Principal{{}, {Kind: auth.External, ID: "x"}, {Kind: auth.Lasting, ID: "x"}, auth.ServerNamed("x")} {
		rec := httptest.NewRecorder()
		w.Wire.PassedOn().ServeHTTP(rec, httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), p), http.MethodGet, "/", nil))
		if rec.Code != http.StatusForbidden {
			t.Errorf("%v: got %d, want 403", p.Kind, rec.Code)
		}
	}
}
