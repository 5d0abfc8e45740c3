package downstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// parties is a server whose clients say in a header who they are.
func parties(t *testing.T, ended *[]string, tools ...tool.Tool) (*downstream.Server, *rig) {
	t.Helper()
	reg := new(tool.Registry)
	var ps []tool.Provided
	for _, x := range tools {
		ps = append(ps, tool.Provided{Tool: x})
	}
	if errs := reg.Replace("srv", ps); errs != nil {
		t.Fatal(errs)
	}
	srv := downstream.New(downstream.Config{
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg,
		Caller: func(r *http.Request) (tool.Caller, bool) {
			who := r.Header.Get("X-Test-Principal")
			if who == "" {
				who = tool.Owner
			}
			return tool.Caller{Principal: who, Has: func(string) bool { return true }}, true
		},
		SessionEnded: func(s string) {
			if ended != nil {
				*ended = append(*ended, s)
			}
		},
	})
	hs := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		hs.Close()
	})
	return srv, at(t, hs.URL)
}

// REL-5: sessions that their clients have left make room, those that are in use stay,
// and one principal has a share of them.
func TestSessionsMakeRoom(t *testing.T) {
	var ended []string
	srv, r := parties(t, &ended)
	srv.Bound(16, 16, 4, 4)
	open := func(who string) (string, int) {
		t.Helper()
		a := r.send("POST", initialize, map[string]string{"X-Test-Principal": who})
		return a.header.Get("Mcp-Session-Id"), a.status
	}
	use := func(who, id string) int {
		return r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"X-Test-Principal": who, "Mcp-Session-Id": id}).status
	}
	follow := func(who, id string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", id)
		req.Header.Set("X-Test-Principal", who)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v, want StatusCode %d", resp, err, http.StatusOK)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	owners, _ := open("")
	streamed, _ := open("ada")
	follow("ada", streamed)
	first, _ := open("ada")
	for range 40 { // without ever ending one
		if _, status := open("ada"); status != http.StatusOK {
			t.Fatalf("ada's session: got %d, want 200", status)
		}
	}
	if n := srv.Sessions(); n != 1+4 || len(ended) != 1+40-3 {
		t.Errorf("%d sessions, and %d have ended, want 5 and 38", n, len(ended))
	}
	for id, want := range map[string]int{streamed: 200, first: 404} {
		if got := use("ada", id); got != want {
			t.Errorf("a session of ada's: got %d, want %d", got, want)
		}
	}
	for n := range 40 {
		if _, status := open(fmt.Sprint("p", n%7)); status != http.StatusOK {
			t.Fatalf("another's session: got %d, want 200", status)
		}
	}
	if n := srv.Sessions(); n != 16 {
		t.Errorf("%d sessions, want 16", n)
	}
	if got := use("", owners); got != http.StatusOK {
		t.Errorf("the owner's only session: got %d, want 200: others have more", got)
	}
	// All in use: nobody is cut off.
	srv2, r2 := parties(t, nil)
	r = r2
	srv2.Bound(4, 16, 4, 4)
	for range 4 {
		id, _ := open("")
		follow("", id)
	}
	if a := r.send("POST", initialize, nil); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("with all sessions in use: got %d, want 503 with Retry-After", a.status)
	}
}

// REL-5, OP-52: a client that floods with initialize takes the places of its own sessions: those of
// another client of the same principal stay, even idle ones without a stream, and of the sessions
// of one client those stay that were used.
func TestFloodOfSessionsDisplacesItself(t *testing.T) {
	srv, r := parties(t, nil)
	srv.Bound(1024, 16, 4, 4)
	open := func(name string) string {
		t.Helper()
		a := r.send("POST", strings.Replace(initialize, `"clientInfo":{"name":"x"`, `"clientInfo":{"name":"`+name+`"`, 1), nil)
		if a.status != http.StatusOK {
			t.Fatalf("a session of %s: got %d %s, want 200", name, a.status, a.body)
		}
		return a.header.Get("Mcp-Session-Id")
	}
	use := func(id string) int {
		return r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": id}).status
	}
	quiet := open("quiet")
	used := open("flood")
	if got := use(used); got != http.StatusOK {
		t.Fatalf("a session of the flood's: got %d, want 200", got)
	}
	first := open("flood")
	for range 3000 {
		open("flood")
	}
	for _, tc := range []struct {
		what, id string
		want     int
	}{{"a quiet client's session", quiet, 200}, {"a session that was used", used, 200}, {"one that was not", first, 404}} {
		if got := use(tc.id); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.what, got, tc.want)
		}
	}
	if n := srv.Sessions(); n > 1024 || n < 1000 {
		t.Errorf("%d sessions, want about 1024", n)
	}
}

// One principal's parked calls do not keep others from being asked.
func TestParkedCallsHaveShares(t *testing.T) {
	srv, r := parties(t, nil, asks("srv__ask", 1))
	srv.Bound(16, 16, 8, 8)
	call := func(who string, n int) map[string]any {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"srv__ask","arguments":{"n":%d},%s}}`, n, n, asking)
		h := modern("tools/call", "srv__ask")
		h["X-Test-Principal"] = who
		var out map[string]any
		if a := r.send("POST", body, h); json.Unmarshal([]byte(a.body), &out) != nil {
			t.Fatalf("got %d %s, want JSON", a.status, a.body)
		}
		return out
	}
	isParked := func(m map[string]any) bool {
		res, _ := m["result"].(map[string]any)
		return res["resultType"] == "input_required"
	}
	for _, tt := range []struct {
		who  string
		want int
	}{{"ada", 2}, {"bob", 2}, {"", 4}} {
		got := 0
		for n := range 8 {
			if isParked(call(tt.who, n)) {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%q has %d parked calls, want %d", tt.who, got, tt.want)
		}
	}
}

// SEC-10: a parked call holds its request's memory until it ends, and no longer.
func TestParkedCallsHoldTheirBody(t *testing.T) {
	release := make(chan struct{})
	srv, r := parties(t, nil, relay("srv__wait", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ok(`{"content":[]}`)
	}))
	before := intake.Bodies().InUse()
	answered := make(chan answer)
	go func() {
		answered <- r.send("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__wait","arguments":{"x":"%s"},%s}}`, strings.Repeat("x", 200_000), modernMeta), modern("tools/call", "srv__wait"))
	}()
	for intake.Bodies().InUse() < before+150_000 {
		select {
		case a := <-answered:
			t.Fatalf("answered with %d, and %d bytes were never held", a.status, intake.Bodies().InUse()-before)
		default:
			runtime.Gosched()
		}
	}
	close(release)
	if a := <-answered; a.status != 200 {
		t.Errorf("got %d %s, want status 200", a.status, a.body)
	}
	srv.Close()                                                                                              // waits for the work
	for deadline := time.Now().Add(10 * time.Second); intake.Bodies().InUse() != before; runtime.Gosched() { // the handler returns behind its answer
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are still held", intake.Bodies().InUse()-before)
		}
	}
}

// SEC-9: one principal's streams for changes are a share of them, and leave others theirs.
func TestStreamsHaveShares(t *testing.T) {
	srv, r := parties(t, nil)
	srv.Bound(64, 8, 4, 4)
	follow := func(who string) int {
		t.Helper()
		id := r.send("POST", initialize, map[string]string{"X-Test-Principal": who}).header.Get("Mcp-Session-Id")
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", id)
		req.Header.Set("X-Test-Principal", who)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode
	}
	open, refused := 0, 0
	for range 12 {
		switch got := follow("ada"); got {
		case http.StatusOK:
			open++
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("ada's stream: got %d", got)
		}
	}
	if open == 0 || open >= 8 || refused != 12-open {
		t.Errorf("ada has %d streams, and %d were refused, want a share of 8", open, refused)
	}
	if got := follow("bob"); got != http.StatusOK {
		t.Errorf("bob's stream: got %d, want 200", got)
	}
}
