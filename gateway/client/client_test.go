package client_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func credentials(t *testing.T, w *wiretest.World, id string, scopes ...auth.Scope) client.Credentials {
	t.Helper()
	c, err := client.New(w.HTTP.URL, id, "a "+id)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := w.Dev.Invite(t.Context(), auth.LocalOwner, "", scopes)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Enroll(t.Context(), nil, inv.Code); err != nil {
		t.Fatal(err)
	}
	return c
}

func quick(int) time.Duration { return 20 * time.Millisecond }

// W-6, W-17, W-18: a device gets in by a code, or by approval, refreshes its token,
// and gets another by its key when that is gone.
func TestEnroll(t *testing.T) {
	w := wiretest.New(t)
	c := credentials(t, w, "one", auth.AgentsRead)
	if c.ServerID != w.Dev.ServerID() || c.Token == "" || time.Until(c.Expires) < 23*time.Hour {
		t.Errorf("got %+v, want a token of the server %s for a day", c, w.Dev.ServerID())
	}
	old := c.Token
	if err := c.Refresh(t.Context(), nil); err != nil || c.Token == old {
		t.Errorf("got %v, want Token not %v", err, old)
	}
	c.Token = old // used twice: the family is revoked, and the key still good
	if err := c.Refresh(t.Context(), nil); err != nil {
		t.Errorf("Refresh of a token that was used before = %v, want no error", err)
	}
	if _, err := w.Dev.VerifyToken(c.Token); err != nil {
		t.Errorf("VerifyToken of the new token = %v, want no error", err)
	}
	if err := c.Enroll(t.Context(), nil, "AAAA-AAAA-AAAA"); !errors.Is(err, client.ErrRefused) {
		t.Errorf("a wrong code: %v", err)
	}
	p, err := client.New(w.HTTP.URL, "two", "")
	if err != nil {
		t.Fatal(err)
	}
	request, err := p.Ask(t.Context(), nil, "")
	if !errors.Is(err, client.ErrPending) || request == "" {
		t.Fatalf("got %v, %v, want error %v, a request", request, err, client.ErrPending)
	}
	if again, err := p.Ask(t.Context(), nil, request); !errors.Is(err, client.ErrPending) || again != request {
		t.Fatalf("got %v, %v, want error %v, again %v", again, err, client.ErrPending, request)
	}
	if _, err := w.Dev.Approve(t.Context(), auth.LocalOwner, request, auth.DefaultScopes()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ask(t.Context(), nil, request); err != nil || p.Token == "" {
		t.Errorf("got %v, want a Token", err)
	}
	if err := w.Dev.Revoke(t.Context(), auth.LocalOwner, "two", ""); err != nil {
		t.Fatal(err)
	}
	if err := p.Refresh(t.Context(), nil); !errors.Is(err, client.ErrRefused) {
		t.Errorf("revoked: %v", err)
	}
	p.ServerID = "another"
	if _, err := p.Ask(t.Context(), nil, ""); !errors.Is(err, auth.ErrOtherServer) {
		t.Errorf("another server: %v", err)
	}
	for _, bad := range []string{"http://yaya.example", "ftp://x", "https://", "https://u@x", "https://x/y", "https://x?y", "x"} {
		if _, err := client.New(bad, "d", ""); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// R3: a client signs nothing for a server that it does not know, nor for another
// name than the one that it has dialled.
func TestOtherServer(t *testing.T) {
	w := wiretest.New(t)
	c := credentials(t, w, "one", auth.AgentsRead)
	c.ServerID = strings.Repeat("0", 64)
	why := make(chan error, 10)
	cl := client.Start(client.Options{Credentials: c, Retry: quick, OnState: func(there bool, err error) {
		if !there {
			select {
			case why <- err:
			default:
			}
		}
	}})
	defer cl.Close()
	if err := <-why; !errors.Is(err, auth.ErrOtherServer) {
		t.Errorf("got %v, want error %v", err, auth.ErrOtherServer)
	}
}

// W-25, W-41, WS-12, WS-25: a client stays joined over restarts, misses nothing and
// sees nothing twice; what cannot be sent says so.
func TestReconnect(t *testing.T) {
	w := wiretest.New(t)
	cl := client.Start(client.Options{Credentials: credentials(t, w, "one", auth.AllScopes()...), Retry: quick})
	defer cl.Close()
	var mu sync.Mutex
	var seen []int64
	joins := 0
	lobby := cl.Join("agent:lobby", client.Join{
		OnEvent: func(e client.Event) {
			if e.Cursor != nil && e.Name != "update_agent" { // that is a state, and not a change
				mu.Lock()
				seen = append(seen, e.Cursor.Seq)
				mu.Unlock()
			}
		},
		OnJoined: func(json.RawMessage, bool) { mu.Lock(); joins++; mu.Unlock() },
	})
	if err := lobby.Joined(t.Context()); err != nil {
		t.Fatal(err)
	}
	kernel := cl.Join("kernel:k7", client.Join{})
	if err := kernel.Joined(t.Context()); err != nil {
		t.Fatal(err)
	}
	register := func(n int) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); {
			if err = kernel.Push(t.Context(), "register_agent", map[string]any{"id": fmt.Sprint("a", n)}, nil); err == nil {
				return
			}
			if !errors.Is(err, client.ErrUnavailable) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if _, refused := errors.AsType[*client.Refusal](err); !refused || !strings.Contains(err.Error(), "unmatched") {
			t.Fatalf(`got %v, want refused, err with "unmatched"`, err)
		}
		time.Sleep(20 * time.Millisecond)
		if err := kernel.Push(t.Context(), "register_agent", map[string]any{"id": fmt.Sprint("a", n)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	addr := w.HTTP.Listener.Addr().String()
	for n := range 30 {
		if n%10 == 9 {
			w.Stop()
			if err := kernel.Push(t.Context(), "register_agent", map[string]any{"id": "x"}, nil); !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("without a connection: %v", err)
			}
			w.Start(addr)
		}
		register(n)
	}
	deadline := time.Now().Add(eventually.Limit)
	for {
		mu.Lock()
		n := len(seen)
		mu.Unlock()
		if n >= 30 || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 30 || !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != 30 || joins != 4 {
		t.Errorf("%d joins, %v", joins, seen)
	}
	// W-41: a dead letter rejects the invocation and names the reason.
	if _, err := cl.Invoke(t.Context(), kernel, "nope", nil, time.Second); err == nil || !strings.Contains(err.Error(), "handler_unavailable") && !strings.Contains(err.Error(), "No handler") {
		t.Errorf("Invoke of an unknown skill = %v, want an error with the reason", err)
	}
	if err := lobby.Leave(t.Context()); err != nil {
		t.Errorf("Leave = %v, want no error", err)
	}
	gone := cl.Join("agent:nobody", client.Join{})
	if err := gone.Joined(t.Context()); err == nil || !strings.Contains(err.Error(), "unmatched") {
		t.Errorf(`got %v, want an error, err with "unmatched"`, err)
	}
}

// W-64, W-65: chunks in any order; what is missing for 5 s is asked for again.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var last client.Stream
		var mu sync.Mutex
		var all [][]int
		asked := func() string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(all)
		}
		x := &client.Streams{
			OnText: func(piece string, s client.Stream) { text.WriteString(piece); last = s },
			Retry:  func(_ string, missing []int) { mu.Lock(); all = append(all, missing); mu.Unlock() },
		}
		defer x.Close()
		ev := func(name string, v map[string]any) {
			v["type"], v["request_id"] = name, "r"
			raw, _ := json.Marshal(v)
			x.Event(client.Event{Name: name, Payload: raw})
		}
		chunk := func(seq int) { ev("stream_chunk", map[string]any{"seq": seq, "chunk": fmt.Sprint(seq, " ")}) }
		ev("stream_start", map[string]any{})
		for _, seq := range []int{1, 0, 0, 2, 5, 4} {
			chunk(seq)
		}
		if text.String() != "0 1 2 " {
			t.Errorf(`got %q, want "0 1 2 "`, text.String())
		}
		time.Sleep(4900 * time.Millisecond)
		synctest.Wait()
		if asked() != "[]" {
			t.Error("asked too early")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if asked() != "[[3]]" {
			t.Errorf(`got %q, want "[[3]]"`, asked())
		}
		ev("stream_end", map[string]any{"total_chunks": 8})
		chunk(3)
		if text.String() != "0 1 2 3 4 5 " || last.Done {
			t.Errorf(`got %q %+v, want text "0 1 2 3 4 5 ", no Done`, text.String(), last)
		}
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		if asked() != "[[3] [6 7]]" {
			t.Errorf(`got %q, want "[[3] [6 7]]"`, asked())
		}
		chunk(7)
		chunk(6)
		if text.String() != "0 1 2 3 4 5 6 7 " || !last.Done || last.Text != text.String() {
			t.Errorf(`got %q %+v, want text "0 1 2 3 4 5 6 7 ", Done, Text %v`, text.String(), last, text.String())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked() != "[[3] [6 7]]" {
			t.Errorf("a stream that is done is asked for: %v", asked())
		}
		raw := json.RawMessage(`{"request_id":"f","error":"boom"}`)
		x.Event(client.Event{Name: "stream_error", Payload: raw})
		if !last.Done || last.Err != "boom" {
			t.Errorf(`got %+v, want Done, Err "boom"`, last)
		}
	})
}

// W-67…W-74, W-77, W-46: a kernel whose gateway is gone goes on by itself, keeps
// what it would have written, up to 1,000 changes, and writes it in order when the
// gateway is back.
func TestUplink(t *testing.T) {
	w := wiretest.New(t)
	creds := credentials(t, w, "server2", auth.KernelAttach, auth.AgentsRead, auth.SessionsWrite)
	var mu sync.Mutex
	var bridge []string
	anchored := map[string]int64{}
	u := client.Attach(client.UplinkConfig{
		Options: client.Options{Credentials: creds, Retry: quick}, KernelID: "k2", Log: zerolog.Nop(),
		Heartbeat: func() agents.Heartbeat { return agents.Heartbeat{AgentCount: 7, Entropy: 0.5} },
		Skills:    func() []string { return []string{"far"} },
		Invoke: func(_ context.Context, actor, _ string, payload json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(fmt.Sprintf(`{"for":%q,"got":%s}`, actor, payload)), nil
		},
		OnBridge:   func(b agents.BridgeChange) { mu.Lock(); bridge = append(bridge, b.Type); mu.Unlock() },
		OnAnchored: func(id string, index int64) { mu.Lock(); anchored[id] = index; mu.Unlock() },
	})
	defer u.Close()
	eventually.True(t, "attached", u.Connected)
	u.Register("a0", "chat", map[string]any{"x": 1})
	u.Update("a0", agents.Running, map[string]any{"step": 1})
	eventually.True(t, "written", func() bool { return u.Stats().Flushed == 2 })
	eventually.True(t, "read", func() bool {
		all, fresh := u.Agents()
		return fresh && len(all) == 1 && all[0].Status == agents.Running
	})
	// The gateway uses its skills, and knows how it is.
	owner := w.Enroll("boss")
	var info string
	eventually.True(t, "known", func() bool {

		info = rpcText(t, w, owner, `{"jsonrpc":"2.0","id":1,"method":"kernel.list"}`)
		return strings.Contains(info, `"capabilities":["far"]`) && strings.Contains(info, `"agent_count":7`)
	})
	if got := rpcText(t, w, owner, `{"jsonrpc":"2.0","id":1,"method":"skill.invoke","params":{"skill":"far","payload":{"n":1}}}`); !strings.Contains(got, `"for":"boss"`) || !strings.Contains(got, `"handler_id":"k2"`) {
		t.Errorf("got %v, want %q in it, %q in it", got, `"for":"boss"`, `"handler_id":"k2"`)
	}
	var status map[string]any
	if err := u.Call(t.Context(), "cluster.status", map[string]any{}, &status); err != nil || status["quorum"] != true {
		t.Errorf("got %v, %v, want quorum true", status, err)
	}
	addr := w.HTTP.Listener.Addr().String()
	w.Stop()
	eventually.True(t, "local-only mode", func() bool { return !u.Connected() })
	for _, method := range []string{"agent.spawn", "agent.kill"} { // W-70
		err := u.Call(t.Context(), method, map[string]any{}, nil)
		r, ok := errors.AsType[*client.Refusal](err)
		if !ok || r.Code != -32001 || r.Reason != "bridge_unavailable" {
			t.Errorf(`%s: got %v, want ok, Code %v, Reason "bridge_unavailable"`, method, err, -32001)
		}
	}
	eventually.True(t, "no longer fresh", func() bool { _, fresh := u.Agents(); return !fresh })
	if all, _ := u.Agents(); len(all) != 1 { // W-68
		t.Errorf("got %v, want len(all) 1", all)
	}
	for n := 1; n <= 1010; n++ { // W-69
		u.Register(fmt.Sprintf("q%04d", n), "chat", nil)
	}
	if s := u.Stats(); s.Queued != 1000 || s.Evicted != 10 {
		t.Errorf("got %+v, want Queued 1000, Evicted 10", s)
	}
	w.Start(addr)
	eventually.True(t, "flushed", func() bool { return u.Stats().Queued == 0 && u.Stats().Flushed == 1002 })
	mu.Lock()
	defer mu.Unlock()
	if len(anchored) != 1001 || anchored["q0010"] != 0 || anchored["q0011"] == 0 {
		t.Errorf("%d anchored, %d, %d", len(anchored), anchored["q0010"], anchored["q0011"])
	}
	for n := 12; n <= 1010; n++ { // W-73
		if anchored[fmt.Sprintf("q%04d", n)] != anchored[fmt.Sprintf("q%04d", n-1)]+1 && anchored[fmt.Sprintf("q%04d", n)] <= anchored[fmt.Sprintf("q%04d", n-1)] {
			t.Fatalf("q%04d was not written in its turn", n)
		}
	}
	if !slices.Equal(bridge, []string{"bridge_connected", "bridge_disconnected", "bridge_connected"}) {
		t.Errorf("got the events %v, want bridge_connected, bridge_disconnected, bridge_connected", bridge)
	}
}

func rpcText(t *testing.T, w *wiretest.World, g *wiretest.Gadget, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.HTTP.URL+"/rpc", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+g.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// W-72: 10 s, doubled up to 60 s, with jitter.
func TestBackoff(t *testing.T) {
	retry := client.Backoff(10*time.Second, 60*time.Second)
	for n, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 4: 60 * time.Second, 5: 60 * time.Second, 100: 60 * time.Second} {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := retry(n)
			seen[d] = true
			if d > want || d < want/2 {
				t.Errorf("attempt %d after %v", n, d)
			}
		}
		if len(seen) < 50 {
			t.Errorf("attempt %d has no jitter", n)
		}
	}
}

// A kernel that the gateway refuses says why, asks again with the credentials that are
// now kept, and is attached when those are good.
func TestUplinkTakesNewCredentials(t *testing.T) {
	w := wiretest.New(t)
	good := credentials(t, w, "good", auth.KernelAttach, auth.AgentsRead, auth.SessionsWrite)
	bad := good
	bad.Token = "x"
	var err error
	if _, bad.Key, err = ed25519.GenerateKey(nil); err != nil {
		t.Fatal(err)
	}
	var kept atomic.Pointer[client.Credentials]
	kept.Store(&bad)
	var log lines
	u := client.Attach(client.UplinkConfig{
		Options:  client.Options{Credentials: bad, Retry: quick, Load: func() (client.Credentials, error) { return *kept.Load(), nil }},
		KernelID: "k2", Log: zerolog.New(&log), Heartbeat: func() agents.Heartbeat { return agents.Heartbeat{} }, Skills: func() []string { return nil },
	})
	defer u.Close()
	var s client.UplinkState
	eventually.True(t, "refused", func() bool { s = u.State(); return s.Reason != nil })
	if s.Connected || !s.Refused || !errors.Is(s.Reason, client.ErrRefused) || !strings.Contains(s.Remedy, "yaya connect "+bad.URL) || s.Since.IsZero() {
		t.Errorf("got %+v, want a refusal with its remedy", s)
	}
	if strings.Contains(s.Reason.Error(), "refused this device: refused") {
		t.Errorf("got %q, want the word once", s.Reason)
	}
	kept.Store(&good)
	eventually.True(t, "attached", u.Connected)
	if s := u.State(); !s.Connected || s.Reason != nil || s.Remedy != "" {
		t.Errorf("got %+v, want connected", s)
	}
	if n := strings.Count(log.String(), "local-only mode"); n == 0 || n > 5 {
		t.Errorf("got %d lines about a gateway that stays away, want one for each reason\n%s", n, log.String())
	}
}

// lines is a log that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
