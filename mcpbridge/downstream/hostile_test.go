package downstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	peer "github.com/yaya-ai/yaya/mcpbridge/relay"
)

// full is a server with one of everything. All that it says holds SECRET and its name.
type full struct {
	name  string
	tools []string // that it lists, whoever may call them

	mu   sync.Mutex
	seen []string // what has reached it
}

func (f *full) saw(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, what)
}

// taken returns what has reached the server since the last time.
func (f *full) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.seen
	f.seen = nil
	return out
}

func (f *full) Name() string           { return f.name }
func (f *full) Prefix() (string, bool) { return f.name, false }
func (f *full) Has(string) bool        { return true }
func (f *full) Instructions() string   { return "SECRET of " + f.name }
func (f *full) HasTool(name string) bool {
	for _, t := range f.tools {
		if t == name {
			return true
		}
	}
	return false
}

func (f *full) Capabilities() jsonrpc.Object {
	o, _ := jsonrpc.ParseObject([]byte(`{"extensions":{"com.example/skills":{},"com.example/` + f.name + `":{"of":"SECRET of ` + f.name + `"}}}`))
	return o
}

func (f *full) List(_ context.Context, k peer.Kind) ([]jsonrpc.Object, error) {
	entry := map[string]string{
		peer.Prompts.Method: `{"name":"p","description":"SECRET of %[1]s"}`, peer.Resources.Method: `{"uri":"%[1]s://r","name":"SECRET of %[1]s"}`,
		peer.Templates.Method: `{"uriTemplate":"%[1]s://t/{id}","name":"SECRET of %[1]s"}`,
	}[k.Method]
	o, err := jsonrpc.ParseObject([]byte(strings.ReplaceAll(entry, "%[1]s", f.name)))
	return []jsonrpc.Object{o}, err
}

func (f *full) Relay(_ context.Context, _ peer.Peer, method string, params jsonrpc.Object, edits ...jsonrpc.Edit) (peer.Reply, error) {
	f.saw(method + " " + string(params.Append(nil, edits...)))
	o, err := jsonrpc.ParseObject([]byte(`{"of":"SECRET of ` + f.name + `","taskId":"1"}`))
	return peer.Reply{Result: o}, err
}

func (f *full) Notify(_, method string, params []byte) bool {
	f.saw(method + " " + string(params))
	return true
}
func (f *full) Subscribe(_ context.Context, uri string) error {
	f.saw("subscribe " + uri)
	return nil
}
func (f *full) Unsubscribe(_ context.Context, uri string) error {
	f.saw("unsubscribe " + uri)
	return nil
}

// world is a yaya with two servers: eve sees a part of one of them, ada everything.
type world struct {
	t         *testing.T
	url       string
	srv       *downstream.Server
	own, not  *full
	router    *peer.Router
	changed   func([]string)
	mu        sync.Mutex
	profiles  string
	artifacts *tool.Store
	release   chan struct{} // ends calls of not__slow
	log       *traffic.Log
	data      *os.Root
}

func (w *world) narrow(profiles string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.profiles = profiles
}

const eves = `{"eve":{"principal":["device:eve"],"servers":["own"],"tools":["own__*","!own__hidden","!own__skills/secret"]},"adas":{"principal":["device:ada"]},
	"one":{"principal":["device:two"],"servers":["own","not"]},"other":{"principal":["device:two"],"servers":["own"]}}`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, profiles: eves, release: make(chan struct{})}
	w.own = &full{name: "own", tools: []string{"open", "hidden", "ruled", "asked", "waits", "left"}}
	w.not = &full{name: "not", tools: []string{"t", "slow"}}
	reg := new(tool.Registry)
	provide := func(f *full, name, withheld string) tool.Provided {
		b := relay(f.name+"__"+name, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			f.saw("tools/call " + c.Name)
			if name == "slow" {
				select {
				case <-w.release:
				case <-ctx.Done():
					f.saw("cancelled")
				}
			}
			if name == "task" {
				return ok(`{"resultType":"task","status":"working","taskId":"1"}`)
			}
			return ok(`{"content":[{"type":"text","text":"SECRET of ` + f.name + `"}]}`)
		})
		b.def.Identity.Tool, b.def.Native = name, json.RawMessage(`{"name":"own","description":"SECRET of `+f.name+`","inputSchema":{"type":"object"}}`)
		return tool.Provided{Tool: b, Withheld: withheld}
	}
	reg.Replace("own", []tool.Provided{provide(w.own, "open", ""), provide(w.own, "hidden", ""), provide(w.own, "ruled", ""), provide(w.own, "asked", ""), provide(w.own, "waits", "it waits for approval")})
	reg.Replace("not", []tool.Provided{provide(w.not, "t", ""), provide(w.not, "slow", ""), provide(w.not, "task", "")})
	w.router = &peer.Router{Servers: func() []peer.Server { return []peer.Server{w.not, w.own} }}
	rules, err := approval.ParseRules([]byte(`[
		{"tool":"own__ruled","decision":"deny","reason":"no"}, {"tool":"own__asked","decision":"ask"},
		{"tool":"own__skills/denied","decision":"deny","reason":"no skills"}, {"tool":"own__notifications/skills/denied","decision":"deny"},
		{"provider":"own","principal":"device:mallory","decision":"deny"}]`), approval.Callers{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.artifacts = tool.NewStore(root)
	w.log, w.data = recorder(t)
	w.srv = downstream.New(downstream.Config{
		Traffic:    w.log,
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Policy: approval.Policy{Rules: func() ([]approval.Rule, error) { return rules, nil }}}),
		Registry:   reg, Router: w.router, Caller: named, Artifacts: w.artifacts, TaskAfter: 1,
		Watch: func(f func([]string)) func() { w.changed = f; return func() {} },
		Profiles: func() (map[string]downstream.Profile, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return downstream.ParseProfiles(json.RawMessage(w.profiles), approval.Callers{})
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", w.srv)
	mux.Handle("/mcp/{profile}", w.srv)
	hs := httptest.NewServer(mux)
	w.url = hs.URL + "/mcp"
	t.Cleanup(func() {
		w.srv.Close()
		hs.Close()
		root.Close()
	})
	return w
}

const ableCaps = `{"elicitation":{},"extensions":{"com.example/skills":{},"com.example/not":{},"com.example/own":{}}}`

// modern sends a request of a modern client, and legacy one of a session.
func (w *world) modern(who, path, method, params string) answer {
	w.t.Helper()
	var p struct{ Name, URI string }
	if err := json.Unmarshal([]byte(`{`+params+`}`), &p); err != nil {
		w.t.Fatalf("params %s: %v, want JSON", params, err)
	}
	h := modern(method, p.Name+p.URI)
	h["X-Test-Principal"] = who
	caps := ableCaps
	if p.Name == "not__slow" || strings.HasPrefix(method, "tasks/") { // which becomes a task at once
		caps = strings.Replace(caps, `{}}}`, `{},"io.modelcontextprotocol/tasks":{}}}`, 1)
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + caps
	switch before, after, own := strings.Cut(params, `"_meta":{`); {
	case own:
		params = before + meta + "," + after
	case params != "":
		params += "," + meta + "}"
	default:
		params = meta + "}"
	}
	return at(w.t, w.url+path).send("POST", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`, h)
}

func (w *world) session(who, path string) map[string]string {
	w.t.Helper()
	a := at(w.t, w.url+path).send("POST", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":`+ableCaps, 1), map[string]string{"X-Test-Principal": who})
	if a.status != 200 {
		w.t.Fatalf("initialize: %d %s", a.status, a.body)
	}
	return map[string]string{"X-Test-Principal": who, "Mcp-Session-Id": a.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-06-18"}
}

func (w *world) legacy(h map[string]string, path, method, params string) answer {
	w.t.Helper()
	return at(w.t, w.url+path).send("POST", `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+`}}`, h)
}

// R7, DN-02: somebody with a narrow profile who knows every name, URI and id of
// others reads, calls, cancels and causes nothing of theirs, by any method of the
// protocol in either era. The same requests work for a principal that may make them.
func TestEveryMethodForAHostileClient(t *testing.T) {
	w := newWorld(t)
	const ada, eve = "device:ada", "device:eve"
	her, his := w.session(ada, ""), w.session(eve, "")
	// Things of ada's that eve has learnt the ids of.
	task := taskID(t, w.modern(ada, "", "tools/call", `"name":"not__slow","arguments":{}`).body)
	made := taskID(t, w.modern(ada, "", "tools/call", `"name":"not__task","arguments":{}`).body)
	if made != "not~1" || !strings.HasPrefix(task, "~") {
		t.Fatalf("the tasks %q and %q", made, task)
	}
	type try struct {
		name, method, params string
		silent               bool // whoever may gets nothing that tells, either
	}
	tries := []try{
		{"a tool of another server", "tools/call", `"name":"not__t","arguments":{}`, false},
		{"a prompt", "prompts/get", `"name":"not__p"`, false},
		{"a resource", "resources/read", `"uri":"not://r"`, false},
		{"a resource of a template", "resources/read", `"uri":"not://t/1"`, false},
		{"a resource by its qualified name", "resources/read", `"uri":"yaya://not/not:%2F%2Fr"`, false},
		{"any resource by a qualified name", "resources/read", `"uri":"yaya://not/file:%2F%2F%2Fetc%2Fpasswd"`, false},
		{"a completion of a prompt", "completion/complete", `"ref":{"type":"ref/prompt","name":"not__p"},"argument":{"name":"a","value":""}`, false},
		{"a completion of a template", "completion/complete", `"ref":{"type":"ref/resource","uri":"not://t/{id}"},"argument":{"name":"a","value":""}`, false},
		{"a completion of a resource", "completion/complete", `"ref":{"type":"ref/resource","uri":"not://r"},"argument":{"name":"a","value":""}`, false},
		{"the list of tools", "tools/list", ``, false},
		{"the list of prompts", "prompts/list", ``, false},
		{"the list of resources", "resources/list", ``, false},
		{"the list of templates", "resources/templates/list", ``, false},
		{"an extension that is that server's alone", "not/run", ``, false},
		{"an extension that both have, by a tool", "skills/run", `"name":"not__t"`, false},
		{"a method of the protocol that there is not", "tools/run", `"name":"not__t"`, true},
	}
	modernTries := append([]try{
		{"discover", "server/discover", ``, false},
		{"a task of yaya's", "tasks/get", `"taskId":"` + task + `"`, false},
		{"answers for a task of yaya's", "tasks/update", `"taskId":"` + task + `","inputResponses":{}`, true},
		{"a task of a server's", "tasks/get", `"taskId":"` + made + `"`, false},
		{"answers for a task of a server's", "tasks/update", `"taskId":"` + made + `","inputResponses":{}`, false},
		{"the end of a task of a server's", "tasks/cancel", `"taskId":"` + made + `"`, false},
		{"the end of a task of yaya's", "tasks/cancel", `"taskId":"` + task + `"`, true},
		{"work that waits for ada", "tools/call", `"name":"not__slow","arguments":{},"requestState":"yaya.GUESSED","inputResponses":{}`, true},
		{"a message in the legacy way", "resources/subscribe", `"uri":"not://r"`, true},
	}, tries...)
	legacyTries := append([]try{
		{"a subscription", "resources/subscribe", `"uri":"not://r"`, false},
		{"a subscription by the qualified name", "resources/subscribe", `"uri":"yaya://not/not:%2F%2Fr"`, true},
		{"the end of ada's subscription", "resources/unsubscribe", `"uri":"not://r"`, true},
		{"the end of all subscriptions", "resources/unsubscribe", `"uri":""`, true},
		{"a log level that there is not", "logging/setLevel", `"level":"SECRET"`, true},
	}, tries...)
	tells := func(body string) bool {
		return strings.Contains(body, "SECRET of not") || strings.Contains(body, task) && strings.Contains(body, `"status"`)
	}
	// A slow call is answered with a task, maybe before it reaches the server.
	var arrived []string
	eventually.True(t, "ada's slow call reaches the server", func() bool {
		arrived = append(arrived, w.not.taken()...)
		return slices.Contains(arrived, "tools/call not__slow")
	})
	check := func(t *testing.T, c try, theirs, hers func() answer) {
		t.Helper()
		a := theirs()
		if tells(a.body) {
			t.Errorf("eve gets %d %s", a.status, a.body)
		}
		if reached := w.not.taken(); len(reached) > 0 {
			t.Errorf("eve reaches a server that she does not see: %q", reached)
		}
		a = hers()
		if reached := w.not.taken(); !c.silent && !tells(a.body) && len(reached) == 0 {
			t.Errorf("ada, who may, gets nothing either: %d %s", a.status, a.body)
		}
	}
	for _, c := range modernTries {
		t.Run("modern/"+c.name, func(t *testing.T) {
			check(t, c, func() answer { return w.modern(eve, "", c.method, c.params) }, func() answer {
				if c.method == "tasks/cancel" && strings.HasPrefix(c.params, `"taskId":"~`) {
					return answer{} // it goes on
				}
				return w.modern(ada, "", c.method, c.params)
			})
			for _, path := range []string{"/adas", "/all", "/search", "/nowhere"} {
				if a := w.modern(eve, path, c.method, c.params); a.status != 403 && a.status != 404 {
					t.Errorf("eve at %s: got %d %s, want 403 or 404", path, a.status, a.body)
				}
			}
			if reached := w.not.taken(); len(reached) > 0 {
				t.Errorf("eve reaches a server through the profiles of others: %q", reached)
			}
		})
	}
	for _, c := range legacyTries {
		t.Run("legacy/"+c.name, func(t *testing.T) {
			check(t, c, func() answer { return w.legacy(his, "", c.method, c.params) }, func() answer { return w.legacy(her, "", c.method, c.params) })
			stolen := map[string]string{"X-Test-Principal": eve, "Mcp-Session-Id": her["Mcp-Session-Id"], "Mcp-Protocol-Version": "2025-06-18"}
			if a := w.legacy(stolen, "", c.method, c.params); a.status != 404 {
				t.Errorf("in ada's session: got %d %s, want 404", a.status, a.body)
			}
			if reached := w.not.taken(); len(reached) > 0 {
				t.Errorf("eve reaches a server in ada's session: %q", reached)
			}
		})
	}
	// Notifications, responses, and HTTP methods that carry no message.
	stolen := map[string]string{"X-Test-Principal": eve, "Mcp-Session-Id": her["Mcp-Session-Id"], "Mcp-Protocol-Version": "2025-06-18"}
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/not/run","params":{"name":"t"}}`,
		`{"jsonrpc":"2.0","method":"notifications/skills/run","params":{"name":"t"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`,
	} {
		at(t, w.url).send("POST", body, his)
		if a := at(t, w.url).send("POST", body, stolen); a.status != 404 {
			t.Errorf("%s in ada's session: got %d, want 404", body, a.status)
		}
		if reached := w.not.taken(); len(reached) > 0 {
			t.Errorf("%s reaches %q", body, reached)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		for name, h := range map[string]map[string]string{"ada's session": stolen, "her own through another's profile": his} {
			path := map[string]string{"ada's session": "", "her own through another's profile": "/adas"}[name]
			for _, last := range []string{"", "g-0", "r1-0"} {
				h := withHeader(h, "Last-Event-ID", last)
				if a := at(t, w.url+path).send(method, "", h); a.status != 404 && a.status != 403 {
					t.Errorf("%s of %s, resumed at %q: got %d %s, want 404 or 403", method, name, last, a.status, a.body)
				}
			}
		}
	}
	// Ada's call goes on through all of that.
	if got := w.modern(ada, "", "tasks/get", `"taskId":"`+task+`"`).body; !strings.Contains(got, `"working"`) {
		t.Errorf("ada's task: %s", got)
	}
	close(w.release)
	eventually.True(t, "ada's task ends", func() bool {
		return strings.Contains(w.modern(ada, "", "tasks/get", `"taskId":"`+task+`"`).body, "SECRET of not")
	})
}

// Tasks and sessions of one profile of a principal do not exist in its other profiles.
func TestProfilesOfOnePrincipalAreApart(t *testing.T) {
	w := newWorld(t)
	const two = "device:two"
	h := w.session(two, "/one")
	task := `"taskId":"` + taskID(t, w.modern(two, "/one", "tools/call", `"name":"not__slow","arguments":{}`).body) + `"`
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if a := w.modern(two, "/other", method, task); !strings.Contains(a.body, "there is no task") {
			t.Errorf("%s through another profile: got %s", method, a.body)
		}
	}
	if a := w.modern(two, "/one", "tasks/get", task); !strings.Contains(a.body, `"working"`) {
		t.Errorf("through its own profile: got %s", a.body)
	}
	close(w.release)
	for _, path := range []string{"/other", ""} { // by default it has the one
		for _, method := range []string{"GET", "POST", "DELETE"} {
			body := map[string]string{"POST": `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}[method]
			if path == "" && method == "GET" {
				continue // it is open until it is closed
			}
			a := at(t, w.url+path).send(method, body, h)
			if (a.status == 404) != (path == "/other") {
				t.Errorf("%s of a session of the profile one at %q: got %d %s", method, path, a.status, a.body)
			}
		}
	}
}

func withHeader(h map[string]string, name, value string) map[string]string {
	out := map[string]string{}
	for k, v := range h {
		out[k] = v
	}
	if value != "" {
		out[name] = value
	}
	return out
}

func taskID(t *testing.T, body string) string {
	t.Helper()
	var m struct{ Result struct{ TaskID string } }
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Result.TaskID == "" {
		t.Fatalf("no task: %s", body)
	}
	return m.Result.TaskID
}

// A method of an extension reaches no tool that its client may not call, whatever it
// calls the tool and wherever the name stands; rules and profiles name methods as they
// name tools; and it is in the record of calls.
func TestMethodsOfExtensionsAreCalls(t *testing.T) {
	w := newWorld(t)
	const eve = "device:eve"
	his := w.session(eve, "")
	for _, c := range []struct {
		name, who, method, params, want string
		reaches                         bool
	}{
		{"nothing that is a tool", eve, "skills/run", `"name":"anything","n":[1e400,"x",{"hid":1}]`, "SECRET of own", true},
		{"_meta that names no tool", eve, "skills/run", `"_meta":{"com.example/a":"b"},"requestState":"s","inputResponses":{"a":{}}`, "SECRET of own", true},
		{"a tool that she sees", eve, "skills/run", `"name":"own__open"`, "SECRET of own", true},
		{"the same by its own name", eve, "skills/run", `"name":"open"`, "SECRET of own", true},
		{"a tool that the profile hides", eve, "skills/run", `"name":"hidden"`, "-32602", false},
		{"the same by the name of clients", eve, "skills/run", `"name":"own__hidden"`, "-32602", false},
		{"the same, escaped", eve, "skills/run", `"name":"hidd\u0065n"`, "-32602", false},
		{"the same, elsewhere", eve, "skills/run", `"name":"x","steps":[{"call":{"tool":"hidden"}}]`, "-32602", false},
		{"the same, after a number that no float holds", eve, "skills/run", `"n":1e400,"tool":"hidden"`, "-32602", false},
		{"the same as a key", eve, "skills/run", `"steps":{"hidden":{}}`, "-32602", false},
		{"the same as a key, escaped", eve, "skills/run", `"steps":[{"hidd\u0065n":{}}]`, "-32602", false},
		{"the same as a member of params", eve, "skills/run", `"hidden":1`, "-32602", false},
		{"the same as requestState", eve, "skills/run", `"requestState":"hidden"`, "-32602", false},
		{"the same in inputResponses", eve, "skills/run", `"inputResponses":{"a":{"tool":"hidden"}}`, "-32602", false},
		{"the same in _meta", eve, "skills/run", `"_meta":{"com.example/tool":"hidden"}`, "-32602", false},
		{"the same as a key of _meta", eve, "skills/run", `"_meta":{"hidden":1}`, "-32602", false},
		{"a tool that a rule denies", eve, "skills/run", `"name":"ruled"`, "denied: no", false},
		{"a tool that is asked about", eve, "skills/run", `"name":"asked"`, "may not call without approval", false},
		{"a tool that waits for approval", eve, "skills/run", `"name":"waits"`, "it waits for approval", false},
		{"a tool that the configuration leaves out", eve, "skills/run", `"name":"left"`, "-32602", false},
		{"a method that a rule denies", eve, "skills/denied", ``, "no skills", false},
		{"a method that the profile leaves out", eve, "skills/secret", ``, "own__skills/secret", false},
		{"a server that a rule denies", "device:mallory", "own/run", ``, "denied", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.modern(c.who, "", c.method, c.params)
			if got := w.own.taken(); !strings.Contains(a.body, c.want) || (len(got) > 0) != c.reaches {
				t.Errorf("%s %s: got %d %s, and the server %q; want %s, and that it is reached: %v", c.method, c.params, a.status, a.body, got, c.want, c.reaches)
			}
			if c.who != eve {
				return
			}
			if a := w.legacy(his, "", c.method, c.params); !strings.Contains(a.body, c.want) {
				t.Errorf("a legacy client: got %d %s, want %s", a.status, a.body, c.want)
			}
			w.own.taken()
			at(t, w.url).send("POST", `{"jsonrpc":"2.0","method":"notifications/`+c.method+`","params":{`+c.params+`}}`, his)
			if got := w.own.taken(); (len(got) > 0) != c.reaches && c.method != "skills/secret" {
				t.Errorf("as a notification: the server got %q, want that it is reached: %v", got, c.reaches)
			}
		})
	}
}

// Methods of extensions are in the record of calls with who called what of which server,
// those included that are refused.
func TestMethodsOfExtensionsAreRecorded(t *testing.T) {
	w := newWorld(t)
	const eve = "device:eve"
	w.modern(eve, "", "skills/run", `"name":"own__open"`)
	w.modern(eve, "", "skills/denied", ``)
	w.modern(eve, "", "skills/run", `"name":"hidden"`)
	w.modern(eve, "", "unheard/of", ``) // goes to the one server that shares an extension
	w.modern("device:bob", "", "skills/run", ``)
	w.modern(eve, "", "tools/unheard", ``) // nobody's
	want := []traffic.Record{
		{Principal: eve, Method: "skills/run", Server: "own", Tool: "skills/run", Name: "own__skills/run", Outcome: "ok", Arguments: `{"name":"own__open"}`},
		{Principal: eve, Method: "skills/denied", Server: "own", Tool: "skills/denied", Name: "own__skills/denied", Outcome: "rejected", Arguments: `{}`},
		{Principal: eve, Method: "skills/run", Server: "own", Tool: "skills/run", Name: "own__skills/run", Outcome: "not_found", Arguments: `{"name":"hidden"}`},
		{Principal: eve, Method: "unheard/of", Server: "own", Tool: "unheard/of", Name: "own__unheard/of", Outcome: "ok", Arguments: `{}`},
		{Principal: "device:bob", Method: "skills/run", Tool: "skills/run", Outcome: "not_found", Arguments: `{}`},
	}
	got := records(t, w.log, w.data, len(want))
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d: %+v", len(got), len(want), got)
	}
	for i, g := range got {
		if short := (traffic.Record{Principal: g.Principal, Method: g.Method, Server: g.Server, Tool: g.Tool, Name: g.Name, Outcome: g.Outcome, Arguments: g.Arguments}); short != want[i] {
			t.Errorf("got  %+v\nwant %+v", short, want[i])
		}
	}
}

// Streams carry list changes, log messages and updates only of the servers that their
// reader sees, even after the profile has become narrower.
func TestStreamsKeepToTheProfile(t *testing.T) {
	w := newWorld(t)
	const eve = "device:eve"
	his := w.session(eve, "")
	w.legacy(his, "", "logging/setLevel", `"level":"debug"`)
	if a := w.legacy(his, "", "resources/subscribe", `"uri":"own://r"`); strings.Contains(a.body, "error") {
		t.Fatalf(`got %v, want nothing of "error"`, a.body)
	}
	get, stop := at(t, w.url).stream("GET", "", his)
	defer stop()
	h := modern("subscriptions/listen", "")
	h["X-Test-Principal"] = eve
	sub, end := at(t, w.url).stream("POST", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["not://r","own://r"]},`+modernMeta+`}}`, h)
	defer end()
	if got := next(t, sub); !strings.Contains(got, `"resourceSubscriptions":["own://r"]`) {
		t.Errorf("what is granted: %s", got)
	}
	all := func(server string, n int) {
		w.changed([]string{server})
		w.router.Changed(server, peer.Prompts)
		w.router.Changed(server, peer.Resources)
		w.router.Message(server, "", "", "notifications/message", fmt.Appendf(nil, `{"level":"error","data":"%s %d"}`, server, n))
		w.router.Updated(server, server+"://r", fmt.Appendf(nil, `{"uri":"%s://r","n":%d}`, server, n))
	}
	expect := func(when string, n int) {
		t.Helper()
		for name, c := range map[string]struct {
			ch    <-chan string
			kinds int
		}{"the GET stream": {get, 5}, "the subscription": {sub, 4}} {
			var got []string
			for range c.kinds {
				got = append(got, next(t, c.ch))
			}
			if text := strings.Join(got, "\n"); strings.Contains(text, "not") && strings.Contains(text, "not ") || strings.Contains(text, "not://") || !strings.Contains(text, fmt.Sprintf(`"n":%d`, n)) {
				t.Errorf("%s, %s: got\n%s\nwant what is of own alone, of round %d", name, when, text, n)
			}
		}
	}
	marker := func(when string, n int) {
		t.Helper()
		w.router.Updated("own", "own://r", fmt.Appendf(nil, `{"uri":"own://r","n":%d}`, n))
		for name, ch := range map[string]<-chan string{"the GET stream": get, "the subscription": sub} {
			if got := next(t, ch); !strings.Contains(got, fmt.Sprintf(`"n":%d`, n)) {
				t.Errorf("%s, %s: got %s, want nothing before the update %d", name, when, got, n)
			}
		}
	}
	all("not", 1)
	marker("after news of another server", 1)
	all("own", 2)
	expect("at first", 2)
	if len(get)+len(sub) > 0 {
		t.Errorf("more has come: %d and %d", len(get), len(sub))
	}
	// The profile loses the server, and gets it back.
	w.narrow(`{"eve":{"principal":["device:eve"],"servers":["nothing"]}}`)
	all("own", 3)
	w.narrow(eves)
	marker("after a time without the server", 3)
	all("own", 4)
	expect("after the profile was narrow", 4)
}
