package downstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// shelf is a server behind profiles, with tools of two servers.
func shelf(t *testing.T, profiles string, caller func(*http.Request) (tool.Caller, bool), callers approval.Callers) (string, *tool.Store) {
	t.Helper()
	reg := new(tool.Registry)
	echo := func(name, description, annotations string, schema ...string) tool.Provided {
		b := relay(name, func(_ context.Context, c tool.Call) (tool.Result, error) {
			return ok(`{"content":[],"called":"` + c.Name + `","params":` + string(c.Native.Params.Raw()) + `}`)
		})
		b.def.Description = description
		b.def.Identity.Tool = strings.SplitN(name, "__", 2)[1]
		if annotations != "" {
			b.def.Annotations = json.RawMessage(annotations)
		}
		for _, s := range schema {
			b.def.InputSchema = json.RawMessage(s)
		}
		return tool.Provided{Tool: b}
	}
	reg.Replace("fs", []tool.Provided{
		echo("fs__read_file", "Reads a file from disk", `{"readOnlyHint":true}`), echo("fs__write_file", "Writes a file to disk", `{"destructiveHint":false}`),
		echo("fs__delete_files", "Deletes files from disk permanently", ``), echo("fs__odd", "Has odd annotations", `{"readOnlyHint":"yes"}`),
	})
	reg.Replace("web", []tool.Provided{echo("web__fetchPage", "Loads a page of the World Wide Web", `{"readOnlyHint":true}`,
		`{"type":"object","properties":{"rendered":true,"location":{"type":"string","description":"The URI"}}}`)})
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := tool.NewStore(root)
	srv := downstream.New(downstream.Config{
		Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Version: "test", Artifacts: store, Caller: caller,
		Profiles: func() (map[string]downstream.Profile, error) {
			return downstream.ParseProfiles(json.RawMessage(profiles), callers)
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	mux.Handle("/mcp/{profile}", srv)
	hs := httptest.NewServer(mux)
	t.Cleanup(func() {
		srv.Close()
		hs.Close()
		root.Close()
	})
	return hs.URL + "/mcp", store
}

func at(t *testing.T, url string) *rig { return &rig{t: t, url: url} }

func listed(t *testing.T, r *rig) []string {
	t.Helper()
	a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modern("tools/list", ""))
	var m struct {
		Result struct {
			Tools []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		t.Fatalf("tools/list = %d %s, %v; want a list of tools in JSON", a.status, a.body, err)
	}
	var out []string
	for _, x := range m.Result.Tools {
		out = append(out, x.Name)
	}
	return out
}

func (r *rig) tool(name, args string) string {
	r.t.Helper()
	return r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`,`+modernMeta+`}}`, modern("tools/call", name)).body
}

// A profile shows a part of everything, and what it does not show cannot be called
// by any name (DN-06).
func TestProfiles(t *testing.T) {
	url, _ := shelf(t, `{"files":{"servers":["f*"]},"reading":{"tools":["*read*","web__*","!fs__odd"]},"notdelete":{"tools":["!*delete*"]},"none":{"servers":["nothing"]}}`, owner, approval.Callers{})
	for profile, want := range map[string]string{
		"":           "[fs__read_file fs__write_file fs__delete_files fs__odd web__fetchPage]",
		"/all":       "[fs__read_file fs__write_file fs__delete_files fs__odd web__fetchPage]",
		"/files":     "[fs__read_file fs__write_file fs__delete_files fs__odd]",
		"/reading":   "[fs__read_file web__fetchPage]",
		"/notdelete": "[fs__read_file fs__write_file fs__odd web__fetchPage]",
		"/none":      "[]",
	} {
		r := at(t, url+profile)
		got := listed(t, r)
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want got %v", profile, got, want)
		}
		for _, name := range []string{"fs__delete_files", "fs__read_file", "web__fetchPage"} {
			body := r.tool(name, `{}`)
			if seen := slices.Contains(got, name); seen != strings.Contains(body, `"called":"`+name+`"`) || seen == strings.Contains(body, "-32602") {
				t.Errorf("%s: calling %s: got %s, want that it is called: %v", profile, name, body, seen)
			}
		}
	}
	if a := at(t, url+"/unknown").send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modern("tools/list", "")); a.status != 404 || !strings.Contains(a.body, "no profile") {
		t.Errorf("unknown: %d %s", a.status, a.body)
	}
	// A session belongs to the profile that it was opened with.
	s := at(t, url+"/reading").session()
	if a := at(t, url).send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, s); a.status != 404 {
		t.Errorf("another profile's session: %d", a.status)
	}
	for _, bad := range []string{`[]`, `{"all":{}}`, `{"a/b":{}}`, `{"x":{"tool":[]}}`, `{"x":{"tools":["["]}}`} {
		if _, err := downstream.ParseProfiles(json.RawMessage(bad), approval.Callers{}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// LD-06: an answer is cached under everything that it depends on: clients that ask
// for the same at once, and may see different things, each get their own.
func TestAnswersAreNotCrossed(t *testing.T) {
	url, _ := shelf(t, `{"files":{"servers":["f*"]},"reading":{"tools":["*read*","web__*","!fs__odd"]}}`, owner, approval.Callers{})
	var clients sync.WaitGroup
	begin := make(chan struct{})
	for path, want := range map[string]string{
		"":         "[fs__read_file fs__write_file fs__delete_files fs__odd web__fetchPage]",
		"/files":   "[fs__read_file fs__write_file fs__delete_files fs__odd]",
		"/reading": "[fs__read_file web__fetchPage]",
	} {
		for range 4 {
			clients.Go(func() {
				<-begin
				for range 25 {
					if got := fmt.Sprint(listed(t, at(t, url+path))); got != want {
						t.Errorf("%s gets %s", path, got)
					}
				}
			})
		}
	}
	close(begin)
	clients.Wait()
}

// A profile with search has five tools, whatever there is: it ranks by names,
// descriptions and parameters, describes, and calls with the tool that fits what
// the tool called does.
func TestSearch(t *testing.T) {
	url, _ := shelf(t, `{"some":{"search":true,"servers":["fs"]}}`, owner, approval.Callers{})
	r := at(t, url+"/search")
	if got := fmt.Sprint(listed(t, r)); got != "[search_tools describe_tool call_read_tool call_write_tool call_destructive_tool]" {
		t.Errorf("listed %s", got)
	}
	found := func(r *rig, query string) string {
		var m struct {
			Result struct {
				StructuredContent struct {
					Tools []struct {
						Name     string `json:"name"`
						CallWith string `json:"call_with"`
					} `json:"tools"`
				} `json:"structuredContent"`
			} `json:"result"`
		}
		body := r.tool("search_tools", `{"query":"`+query+`"}`)
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatalf("search_tools for %q = %s, %v; want JSON", query, body, err)
		}
		var out []string
		for _, x := range m.Result.StructuredContent.Tools {
			out = append(out, x.Name+":"+x.CallWith)
		}
		return strings.Join(out, " ")
	}
	for query, first := range map[string]string{
		"read a file": "fs__read_file:call_read_tool", "delete file": "fs__delete_files:call_destructive_tool",
		"fetch page": "web__fetchPage:call_read_tool", "write": "fs__write_file:call_write_tool", "odd": "fs__odd:call_destructive_tool",
		"erasing a file": "fs__delete_files:call_destructive_tool", "rendered": "web__fetchPage:call_read_tool", "uri": "web__fetchPage:call_read_tool", "web": "web__fetchPage:call_read_tool",
	} {
		if got := found(r, query); !strings.HasPrefix(got, first) {
			t.Errorf("%s: got %s, want %v at its start", query, got, first)
		}
	}
	if got := found(r, "quantum"); got != "" {
		t.Errorf("nothing fits: %s", got)
	}
	if got := found(at(t, url+"/some"), "page"); got != "" {
		t.Errorf("what the profile does not show is found: %s", got)
	}
	if body := r.tool("describe_tool", `{"name":"fs__read_file"}`); !strings.Contains(body, `"call_with":"call_read_tool"`) || !strings.Contains(body, `12345678901234567890`) {
		t.Errorf("describe: %s", body)
	}
	body := r.tool("call_read_tool", `{"name":"fs__read_file","arguments":{"n":12345678901234567890}}`)
	if !strings.Contains(body, `"called":"fs__read_file"`) || !strings.Contains(body, `"arguments":{"n":12345678901234567890}`) {
		t.Errorf("call: %s", body)
	}
	for _, c := range [][3]string{
		{"call_read_tool", `{"name":"fs__delete_files"}`, "call fs__delete_files with call_destructive_tool"}, {"call_write_tool", `{"name":"fs__read_file"}`, "call fs__read_file with call_read_tool"},
		{"call_read_tool", `{"name":"nothing"}`, "there is no tool"}, {"call_read_tool", `{"name":"fs__read_file","arguments":[]}`, "must be an object"},
		{"call_read_tool", `{"name":5}`, "malformed"}, {"search_tools", `{}`, "needs a query"}, {"describe_tool", `{"name":"web__fetchPag"}`, "there is no tool"},
		{"fs__read_file", `{}`, "unknown tool"},
	} {
		if body := r.tool(c[0], c[1]); !strings.Contains(body, c[2]) || strings.Contains(body, `"called"`) {
			t.Errorf("got %s %s: %s, want %v in it, nothing of %q", c[0], c[1], body, c[2], `"called"`)
		}
	}
	if body := at(t, url+"/some").tool("call_read_tool", `{"name":"web__fetchPage"}`); !strings.Contains(body, "there is no tool") {
		t.Errorf("what the profile does not show is called: %s", body)
	}
}

// Content that was too large for a result is a resource, read in pages, that only its
// caller sees.
func TestArtifactPages(t *testing.T) {
	url, store := shelf(t, ``, owner, approval.Callers{})
	text := strings.Repeat("häßlich ", 80_000) // characters of several bytes at the edges of pages
	a, err := store.Put(tool.Call{SessionID: "mcp_else"}, "text/plain", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r := at(t, url)
	read := func(uri string) (string, string) {
		body := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`",`+modernMeta+`}}`, modern("resources/read", uri)).body
		var m struct {
			Result struct {
				Contents []struct{ Text string }
				Meta     struct {
					Page struct {
						Next string
						Size int
					} `json:"io.github.yaya-ai/page"`
				} `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil || len(m.Result.Contents) == 0 {
			return "", body
		}
		if m.Result.Meta.Page.Size != len(text) {
			t.Errorf("size %d", m.Result.Meta.Page.Size)
		}
		return m.Result.Contents[0].Text, m.Result.Meta.Page.Next
	}
	if got, body := read("yaya:artifacts/" + a.ID); got != "" || !strings.Contains(body, "not found") {
		t.Errorf("another session's: %s", body[:min(len(body), 200)])
	}
	// The session of a modern client follows from what it says of itself.
	own := ownSession(t, r, store)
	b, err := store.Put(tool.Call{SessionID: own}, "text/plain", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	n := 0
	for uri := "yaya:artifacts/" + b.ID; uri != ""; n++ {
		var page string
		if page, uri = read(uri); page == "" || n > 10 {
			t.Fatalf("page %d: %s", n, uri)
		}
		all.WriteString(page)
	}
	if all.String() != text || n < 3 {
		t.Errorf("%d pages, %d bytes of %d", n, all.Len(), len(text))
	}
	for _, uri := range []string{"yaya:artifacts/" + b.ID + "?offset=-1", "yaya:artifacts/" + b.ID + "?offset=x", "yaya:artifacts/" + b.ID + "?o=1", "yaya:artifacts/../../x", "yaya:artifacts/", "yaya:artifacts/" + b.ID + "?offset=99999999"} {
		if got, body := read(uri); got != "" || !strings.Contains(body, "-32602") {
			t.Errorf(`%s: got %s, want no got, "-32602" in it`, uri, body)
		}
	}
}

// ownSession finds out the kernel session of the client that the tests are.
func ownSession(t *testing.T, r *rig, _ *tool.Store) string {
	t.Helper()
	reg := new(tool.Registry)
	seen := make(chan string, 1)
	reg.Replace("x", []tool.Provided{{Tool: relay("x__who", func(_ context.Context, c tool.Call) (tool.Result, error) {
		seen <- c.SessionID
		return ok(`{}`)
	})}})
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg, Caller: owner})
	hs := httptest.NewServer(srv)
	defer hs.Close()
	defer srv.Close()
	at(t, hs.URL).tool("x__who", `{}`)
	return <-seen
}

// DN-12: subscriptions are bounded in number, and one whose reader does not read
// costs nobody else anything.
func TestManySubscriptions(t *testing.T) {
	r := newRig(t, relay("srv__a", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{}`) }))
	body := `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	good, stop := r.stream("POST", body, modern("subscriptions/listen", ""))
	stops = append(stops, stop)
	next(t, good)
	for range 200 { // most of them never read
		_, stop := r.stream("POST", body, modern("subscriptions/listen", ""))
		stops = append(stops, stop)
	}
	r.changed()
	if got := next(t, good); !strings.Contains(got, "list_changed") {
		t.Errorf("got %s, want list_changed in it", got)
	}
}

// USE-8: a caller that is kept to some servers sees those and calls those, in every
// profile and by every way; a session of it is nobody's with other servers.
func TestCallerKeptToServers(t *testing.T) {
	who := tool.Caller{Principal: "token:ci", Has: func(string) bool { return true }}
	caller := func(r *http.Request) (tool.Caller, bool) {
		c := who
		if s := r.Header.Get("Test-Servers"); s != "" {
			c.Servers = strings.Split(s, ",")
		}
		return c, true
	}
	url, _ := shelf(t, `{"files":{"servers":["f*"]},"desk":{"servers":["web"]}}`, caller, approval.Callers{})
	to := func(servers, path, body string, header map[string]string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Test-Servers", servers)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Mcp-Session-Id"), " ", string(raw))
	}
	list := func(servers, path string) string {
		return to(servers, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modern("tools/list", ""))
	}
	call := func(servers, path, name, args string) string {
		return to(servers, path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`,`+modernMeta+`}}`, modern("tools/call", name))
	}
	for _, c := range []struct{ servers, path, has, lacks string }{
		{"", "", "web__fetchPage", "\x00"},
		{"fs", "", "fs__read_file", "web__"},
		{"fs", "/all", "fs__read_file", "web__"},
		{"web", "", "web__fetchPage", "fs__"},
		{"web,fs", "", "web__fetchPage", "\x00"},
		{"web", "/files", `"tools":[]`, "__"},
		{"web", "/desk", "web__fetchPage", "fs__"},
		{"gone", "", `"tools":[]`, "__"},
		{"f*", "", `"tools":[]`, "__"},
	} {
		if got := list(c.servers, c.path); !strings.Contains(got, c.has) || strings.Contains(got, c.lacks) {
			t.Errorf("%q in %q: got %s, want %s and not %q", c.servers, c.path, got, c.has, c.lacks)
		}
	}
	for _, path := range []string{"", "/all", "/files"} {
		if got := call("web", path, "fs__read_file", `{}`); strings.Contains(got, `"called"`) {
			t.Errorf("a tool of another server, in %q: got %s", path, got)
		}
	}
	if got := call("fs", "", "fs__read_file", `{}`); !strings.Contains(got, `"called"`) {
		t.Errorf("its own tool: got %s", got)
	}
	for tool, args := range map[string]string{"call_read_tool": `{"name":"fs__read_file"}`, "describe_tool": `{"name":"fs__read_file"}`, "search_tools": `{"query":"read file"}`} {
		if got := call("web", "/search", tool, args); strings.Contains(got, `"called"`) || strings.Contains(got, "Reads a file") {
			t.Errorf("%s of another server's: got %s", tool, got)
		}
	}
	opened := to("fs", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	session := strings.Fields(opened)[1]
	for servers, want := range map[string]string{"fs": "200", "web": "404", "": "404"} {
		got := to(servers, "", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": session})
		if !strings.HasPrefix(got, want) {
			t.Errorf("a session for fs, used for %q: got %s, want %s", servers, got, want)
		}
	}
}
