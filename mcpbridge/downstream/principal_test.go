package downstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	peer "github.com/yaya-ai/yaya/mcpbridge/relay"
)

// named takes a request to be from the principal that it names; from nobody if it
// names none.
func named(r *http.Request) (tool.Caller, bool) {
	who := r.Header.Get("X-Test-Principal")
	scopes := r.Header.Values("X-Test-Scope")
	caller := tool.Caller{Principal: who, Has: func(s string) bool { return slices.Contains(scopes, s) }}
	if server, ok := strings.CutPrefix(who, tool.ServerPrefix); ok {
		caller.But = server
	}
	return caller, who != "-"
}

// COD-5: a request that nobody has established to be somebody's is nobody's, whichever
// way it is missing, and not the owner's.
func TestNobodyIsNotTheOwner(t *testing.T) {
	reg := new(tool.Registry)
	called := false
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) {
		called = true
		return ok(`{"content":[]}`)
	})}})
	for name, c := range map[string]struct {
		caller func(*http.Request) (tool.Caller, bool)
		who    string
	}{
		"nobody can say":         {nil, tool.Owner},
		"it is not established":  {named, "-"},
		"it is a caller unnamed": {named, ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: c.caller})
			defer srv.Close()
			hs := httptest.NewServer(srv)
			defer hs.Close()
			r := at(t, hs.URL)
			for method, body := range map[string]string{
				"POST":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__t",` + modernMeta + `}}`,
				"GET":    "",
				"DELETE": "",
			} {
				h := modern("tools/call", "srv__t")
				h["X-Test-Principal"] = c.who
				if a := r.send(method, body, h); a.status != http.StatusForbidden || !strings.Contains(a.body, "not established") {
					t.Errorf("%s: got %d %s, want 403", method, a.status, a.body)
				}
			}
			if called {
				t.Error("the tool ran")
			}
		})
	}
}

// COD-5: over standard streams, too, whoever serves says who the client is.
func TestNobodyOverStdio(t *testing.T) {
	r := newRig(t)
	var out bytes.Buffer
	err := r.srv.ServeStdio(t.Context(), tool.Caller{}, strings.NewReader(initialize+"\n"), &out, "")
	if !errors.Is(err, downstream.ErrNobody) || out.Len() > 0 {
		t.Errorf("ServeStdio of nobody = %v and wrote %q, want %v and nothing", err, &out, downstream.ErrNobody)
	}
}

// COD-5: nobody is asked about the calls that the owner types, so only the owner has that
// endpoint, whatever route leads to it.
func TestCommandLineIsTheOwners(t *testing.T) {
	reg := new(tool.Registry)
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[]}`) })}})
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named})
	defer srv.Close()
	hs := httptest.NewServer(srv.CommandLine())
	defer hs.Close()
	r := at(t, hs.URL)
	for who, want := range map[string]int{tool.Owner: http.StatusOK, "device:phone": http.StatusForbidden, "issuer:x": http.StatusForbidden, "token:ci": http.StatusForbidden, "server:files": http.StatusForbidden, "-": http.StatusForbidden, "": http.StatusForbidden} {
		t.Run(who, func(t *testing.T) {
			h := modern("tools/call", "srv__t")
			h["X-Test-Principal"] = who
			if a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__t",`+modernMeta+`}}`, h); a.status != want {
				t.Errorf("a call by %q: got %d %s, want %d", who, a.status, a.body, want)
			}
		})
	}
}

// DN-02: a session is its principal's: whoever else learns its id can neither use
// nor end it, and what is kept by client is kept apart by principal.
func TestSessionsBelongToPrincipals(t *testing.T) {
	reg := new(tool.Registry)
	var seen []string
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__who", func(_ context.Context, c tool.Call) (tool.Result, error) {
		seen = append(seen, c.SessionID)
		return ok(`{"content":[]}`)
	})}})
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	as := func(who string, h map[string]string) map[string]string {
		out := map[string]string{"X-Test-Principal": who}
		for k, v := range h {
			out[k] = v
		}
		return out
	}
	id := r.send("POST", initialize, as("device:ada", nil)).header.Get("Mcp-Session-Id")
	s := map[string]string{"Mcp-Session-Id": id}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__who"}}`
	for _, who := range []string{"device:bob", "issuer:ada", tool.Owner} {
		for _, method := range []string{"DELETE", "POST", "GET"} {
			body := ""
			if method == "POST" {
				body = call
			}
			h := as(who, s)
			h["Accept"] = "application/json, text/event-stream"
			if a := r.send(method, body, h); a.status != 404 {
				t.Errorf("got %q, %s: %d %s, want status 404", who, method, a.status, a.body)
			}
		}
	}
	if a := r.send("POST", call, as("device:ada", s)); a.status != 200 || len(seen) != 1 {
		t.Errorf("its own: %d %s", a.status, a.body)
	}
	for _, who := range []string{"device:ada", "device:bob", "device:ada"} {
		r.send("POST", strings.Replace(call, `"srv__who"`, `"srv__who",`+modernMeta, 1), as(who, modern("tools/call", "srv__who")))
	}
	if len(seen) != 4 || seen[1] == seen[2] || seen[1] != seen[3] {
		t.Errorf("clients of two principals are kept by %v", seen)
	}
}

// MIS-7: profiles say whose they are. A named principal has the profiles that name it,
// and sees and calls nothing beyond them. A principal that is not named keeps the
// profiles that name nobody. The owner has all profiles.
func TestProfilesOfPrincipals(t *testing.T) {
	const profiles = `{
		"a-phones": {"principal":["device:phone*"],"tools":["*read*"]},
		"b-phone": {"principal":["device:phone"],"tools":["*write*"]},
		"team": {"group":["team"],"servers":["web"]},
		"metered": {"scope":["metrics:read"],"search":true,"servers":["fs"]},
		"mine": {"principal":["owner"],"tools":["*delete*"]},
		"open": {"tools":["web__*"]}}`
	callers := approval.Callers{Groups: map[string][]string{"team": {"issuer:https://id.example/*", "device:desk"}}, Scopes: []string{"metrics:read"}}
	url, _ := shelf(t, profiles, named, callers)
	all := []string{"fs__delete_files", "fs__odd", "fs__read_file", "fs__write_file", "web__fetchPage"}
	read, write, page := all[2:3], all[3:4], all[4:]
	search := []string{"search_tools", "describe_tool", "call_read_tool", "call_write_tool", "call_destructive_tool"}
	for _, c := range []struct {
		name, who, scope, path string
		status                 int
		want                   []string
	}{
		{"the owner has all by default", tool.Owner, "", "", 200, all},
		{"and every profile", tool.Owner, "", "/b-phone", 200, write},
		{"the owner's own", tool.Owner, "", "/mine", 200, all[:1]},
		{"the first that names a device is its default", "device:phone", "", "", 200, read},
		{"another that names it", "device:phone", "", "/b-phone", 200, write},
		{"another device of a pattern", "device:phone2", "", "", 200, read},
		{"but not one of a name", "device:phone2", "", "/b-phone", 403, nil},
		{"who is named has no way round: all", "device:phone", "", "/all", 403, nil},
		{"who is named has no way round: search", "device:phone", "", "/search", 403, nil},
		{"who is named has no way round: nobody's", "device:phone", "", "/open", 403, nil},
		{"the owner's is the owner's", "device:phone", "", "/mine", 403, nil},
		{"a profile that is not there", "device:phone", "", "/none", 404, nil},
		{"a member of a group", "issuer:https://id.example/u/1", "", "", 200, page},
		{"a device of a group", "device:desk", "", "", 200, page},
		{"somebody like a member", "issuer:https://id.example.org/u/1", "", "/team", 403, nil},
		{"by scope", "device:meter", "metrics:read", "", 200, search},
		{"without the scope", "device:meter", "", "/metered", 403, nil},
		{"who is not named", "device:tablet", "", "", 200, all},
		{"who is not named: what is nobody's", "device:tablet", "", "/open", 200, page},
		{"who is not named: what is somebody's", "device:tablet", "", "/team", 403, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := at(t, url+c.path)
			as := func(method, name string) map[string]string {
				h := modern(method, name)
				h["X-Test-Principal"], h["X-Test-Scope"] = c.who, c.scope
				return h
			}
			a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, as("tools/list", ""))
			var got []string
			for _, n := range append(slices.Clone(all), search...) {
				if strings.Contains(a.body, `"name":"`+n+`"`) {
					got = append(got, n)
				}
			}
			if a.status != c.status || !slices.Equal(got, c.want) {
				t.Fatalf("tools/list: got %d %v, want %d %v: %s", a.status, got, c.status, c.want, a.body)
			}
			if c.status == 403 && !strings.Contains(a.body, c.who) {
				t.Errorf("the refusal does not say whom it is for: %s", a.body)
			}
			for _, n := range all {
				a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+n+`",`+modernMeta+`}}`, as("tools/call", n))
				if may := slices.Contains(c.want, n); may != strings.Contains(a.body, `"called":"`+n+`"`) {
					t.Errorf("tools/call %s: %d %s", n, a.status, a.body)
				}
			}
			// Search shows and calls what is in the profile, and nothing else.
			if !slices.Equal(c.want, search) {
				return
			}
			for n, want := range map[string]bool{"fs__read_file": true, "web__fetchPage": false} {
				a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_read_tool","arguments":{"name":"`+n+`"},`+modernMeta+`}}`, as("tools/call", "call_read_tool"))
				if strings.Contains(a.body, `"called":"`+n+`"`) != want {
					t.Errorf("call_read_tool %s: %s", n, a.body)
				}
			}
		})
	}
	for name, bad := range map[string]string{
		"an unknown kind":     `{"x":{"principal":["devices:phone"]}}`,
		"a malformed pattern": `{"x":{"principal":["device:["]}}`,
		"an unknown scope":    `{"x":{"scope":["tool:call"]}}`,
		"an unknown group":    `{"x":{"group":["others"]}}`,
	} {
		if _, err := downstream.ParseProfiles([]byte(bad), callers); err == nil {
			t.Errorf("%s is accepted: %s", name, bad)
		}
	}
}

// MIS-7: a profile that is narrowed holds for sessions that are open, and profiles that
// cannot be read admit only the owner.
func TestProfilesChange(t *testing.T) {
	reg := new(tool.Registry)
	echo := func(name string) tool.Provided {
		return tool.Provided{Tool: relay(name, func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[]}`) })}
	}
	reg.Replace("fs", []tool.Provided{echo("fs__read"), echo("fs__write")})
	profiles := map[string]downstream.Profile{"p": {Principal: []string{"device:phone"}}}
	var broken error
	srv := downstream.New(downstream.Config{
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named,
		Profiles: func() (map[string]downstream.Profile, error) { return profiles, broken },
	})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	phone := map[string]string{"X-Test-Principal": "device:phone"}
	phone["Mcp-Session-Id"] = r.send("POST", initialize, phone).header.Get("Mcp-Session-Id")
	call := func(name string) string {
		return r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`"}}`, phone).body
	}
	if got := call("fs__write"); !strings.Contains(got, `"result"`) {
		t.Fatalf("got %v, want %q in it", got, `"result"`)
	}
	profiles = map[string]downstream.Profile{"p": {Principal: []string{"device:phone"}, Tools: []string{"*read"}}}
	if got := call("fs__write"); !strings.Contains(got, "unknown tool") {
		t.Errorf("a session that is open keeps what its profile has lost: %s", got)
	}
	if got := call("fs__read"); !strings.Contains(got, `"result"`) {
		t.Errorf("what the profile still has: %s", got)
	}
	broken = errors.New("line 3 is odd")
	if a := r.send("POST", initialize, map[string]string{"X-Test-Principal": "device:phone"}); a.status != 503 || strings.Contains(a.body, "line 3") {
		t.Errorf("unreadable profiles, a device: got %d %s, want 503", a.status, a.body)
	}
	if a := r.send("POST", initialize, map[string]string{"X-Test-Principal": tool.Owner}); a.status != 200 {
		t.Errorf("unreadable profiles, the owner: got %d %s, want 200", a.status, a.body)
	}
}

// tasking is a server that has every task.
type tasking struct{ peer.Server }

func (tasking) Name() string    { return "srv" }
func (tasking) Has(string) bool { return true }
func (tasking) Relay(_ context.Context, _ peer.Peer, _ string, params jsonrpc.Object, edits ...jsonrpc.Edit) (peer.Reply, error) {
	o, err := jsonrpc.ParseObject([]byte(`{"resultType":"complete","status":"working","taskId":` + string(edits[0].Value) + `}`))
	return peer.Reply{Result: o}, err
}

// task sends a request of a client that knows tasks.
func (r *rig) task(who, method, params string) string {
	name := ""
	if method == "tools/call" {
		name = "srv__t"
	}
	h := modern(method, name)
	h["X-Test-Principal"] = who
	return r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, h).body
}

// The tasks of a server that a principal makes displace its own, and no other's; those
// that are forgotten are nobody's, also not the owner's.
func TestTasksAreForgottenByPrincipal(t *testing.T) {
	var made atomic.Int64
	reg := new(tool.Registry)
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) {
		return ok(fmt.Sprintf(`{"resultType":"task","status":"working","taskId":"%d"}`, made.Add(1)))
	})}})
	router := &peer.Router{Servers: func() []peer.Server { return []peer.Server{tasking{}} }}
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named, Router: router})
	srv.Remember(16, 4)
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	for _, c := range []struct {
		who   string
		until int64 // the last task of those that it makes
	}{{"device:a", 2}, {tool.Owner, 8}, {"device:b", 40}, {"device:c", 43}} {
		for made.Load() < c.until {
			r.task(c.who, "tools/call", `"name":"srv__t","arguments":{}`)
		}
	}
	for _, c := range []struct {
		who, id string
		may     bool
	}{
		{"device:a", "srv~1", true},
		{"device:a", "srv~2", true},
		{tool.Owner, "srv~1", false},
		{tool.Owner, "srv~3", true}, // it was forgotten, and is the owner's all the same
		{tool.Owner, "srv~8", true},
		{"device:b", "srv~3", false},
		{"device:b", "srv~40", true},
		{"device:b", "srv~37", true},
		{tool.Owner, "srv~40", false},
		{"device:b", "srv~9", false},
		{"device:a", "srv~9", false},
		{tool.Owner, "srv~9", false},
		{tool.Owner, "srv~36", false},
		{"device:c", "srv~41", true},
		{tool.Owner, "srv~before a restart", true},
	} {
		if got := r.task(c.who, "tasks/get", `"taskId":"`+c.id+`"`); strings.Contains(got, `"taskId":"`+c.id+`"`) != c.may || strings.Contains(got, "-32602") == c.may {
			t.Errorf("%s by %s: got %s; want it to be allowed: %v", c.id, c.who, got, c.may)
		}
	}
}

// R7, LD-06: the task of a server is the principal's whose call has become it; whoever
// else knows its id can neither see nor change nor end it.
func TestTasksBelongToPrincipals(t *testing.T) {
	reg := new(tool.Registry)
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) {
		return ok(`{"resultType":"task","status":"working","taskId":"1"}`)
	})}})
	router := &peer.Router{Servers: func() []peer.Server { return []peer.Server{tasking{}} }}
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: named, Router: router})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	// A server that gives an id again gives it to whoever asks then.
	r.task("device:b", "tools/call", `"name":"srv__t","arguments":{}`)
	if got := r.task("device:a", "tools/call", `"name":"srv__t","arguments":{}`); !strings.Contains(got, `"taskId":"srv~1"`) {
		t.Fatalf("got %v, want %q in it", got, `"taskId":"srv~1"`)
	}
	for _, c := range []struct {
		who, id string
		may     bool
	}{
		{"device:a", "srv~1", true},
		{"device:b", "srv~1", false},
		{tool.Owner, "srv~1", false},
		{tool.Owner, "srv~before a restart", true},
		{"device:a", "srv~before a restart", false},
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			if got := r.task(c.who, method, `"taskId":"`+c.id+`"`); strings.Contains(got, `"taskId":"`+c.id+`"`) != c.may || strings.Contains(got, "-32602") == c.may {
				t.Errorf("%s of %s by %s: got %s; want it to be allowed: %v", method, c.id, c.who, got, c.may)
			}
		}
	}
}
