package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// client is a downstream client that answers what it is asked.
type client struct {
	name   string
	caps   string
	modern bool
	answer func(method string, params []byte) (relay.Reply, error)
	// reports are the client's progress reports, by question.
	reports []string

	mu    sync.Mutex
	asked []string
	notes []string
}

func (c *client) Client() string { return c.name }
func (c *client) Name() string   { return "" }

func (c *client) Caller() (tool.Caller, tool.Origin) {
	return tool.LocalOwner, tool.OriginMCP
}
func (c *client) Modern() bool { return c.modern }
func (c *client) Capabilities() jsonrpc.Object {
	o, err := jsonrpc.ParseObject([]byte(c.caps))
	if err != nil {
		return jsonrpc.Object{}
	}
	return o
}
func (c *client) LogLevel() string { return "" }
func (c *client) Ask(ctx context.Context, method string, params []byte) (relay.Reply, error) {
	if report := relay.ProgressOf(ctx); report != nil {
		for _, p := range c.reports {
			report([]byte(p))
		}
	}
	c.mu.Lock()
	c.asked = append(c.asked, method+" "+string(params))
	c.mu.Unlock()
	if c.answer != nil {
		return c.answer(method, params)
	}
	o, err := jsonrpc.ParseObject([]byte(`{"action":"accept","content":{"name":"` + c.name + `"}}`))
	return relay.Reply{Result: o}, err
}
func (c *client) Notify(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, method+" "+string(params))
}

func (r *rig) callFor(c *client, name, args string) tool.Result {
	r.t.Helper()
	return r.callDuring(r.t.Context(), c, name, args)
}

func (r *rig) callDuring(ctx context.Context, c *client, name, args string) tool.Result {
	r.t.Helper()
	obj, err := jsonrpc.ParseObject([]byte(`{"name":"` + name + `","arguments":` + args + `}`))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.disp.Call(ctx, r.reg.Snapshot(), tool.Call{
		Caller: tool.LocalOwner,
		ID:     "1", Name: name, Args: obj.Get("arguments"), SessionID: c.name, Origin: tool.OriginMCP,
		Native: &tool.NativeCall{Protocol: "mcp", Params: obj, Peer: c},
	})
}

// UP-31: a server's question goes to the client whose call made it ask, says whose
// question it is, and is bounded; a client that cannot be asked is not.
func TestQuestionsAreBounded(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "ask-often")
	r.ready("srv")
	c := &client{name: "c", caps: `{"elicitation":{}}`}
	if got := native(t, r.callFor(c, "srv__echo", `{}`)); !strings.Contains(got, "100 answers, 50 errors") {
		t.Errorf("got %s, want 100 answers and 50 errors", got)
	}
	if len(c.asked) != 100 || c.asked[0] != `elicitation/create {"message":"[srv] m","_meta":{"vendor/y":2,"io.github.yaya-ai/server":"srv"}}` {
		t.Errorf("asked %d times: %s", len(c.asked), c.asked[0])
	}
	deaf := &client{name: "d", caps: `{"sampling":{}}`}
	if got := native(t, r.callFor(deaf, "srv__echo", `{}`)); !strings.Contains(got, "0 answers, 150 errors") || len(deaf.asked) != 0 {
		t.Errorf("a client that cannot be asked: %s, %v", got, deaf.asked)
	}
}

// FID-8: progress that a client reports on a server's question reaches the server
// before the answer, under the server's own token and in order; of a flood, a part.
func TestProgressOnQuestions(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "ask-once")
	r.ready("srv")
	c := &client{name: "c", caps: `{"elicitation":{}}`, reports: []string{
		`{"progressToken":7,"progress":1,"extra":12345678901234567890}`, `{"progressToken":7,"progress":2,"_meta":{"io.modelcontextprotocol/x":1}}`,
	}}
	want := `"reported":[{"progressToken":"theirs","progress":1,"extra":12345678901234567890},{"progressToken":"theirs","progress":2}]`
	if got := native(t, r.callFor(c, "srv__echo", `{}`)); !strings.Contains(got, want) || !strings.Contains(got, "1 answers") {
		t.Errorf("got %s, want %s", got, want)
	}
	c.reports = slices.Repeat(c.reports[:1], 10_000)
	if got := native(t, r.callFor(c, "srv__echo", `{}`)); !strings.Contains(got, "1 answers") {
		t.Errorf("after a flood: %.300s", got)
	}
}

// UP-37: a connection that several clients share does not guess whom the server
// means; the remedy is named.
func TestSharedConnectionsDoNotGuess(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "ask-among")
	r.ready("srv")
	a, b := &client{name: "a", caps: `{"elicitation":{}}`}, &client{name: "b", caps: `{"elicitation":{}}`}
	var wg sync.WaitGroup
	for _, c := range []*client{a, b} {
		wg.Go(func() {
			if got := native(t, r.callFor(c, "srv__echo", `{}`)); !strings.Contains(got, "0 answers, 1 errors") || !strings.Contains(got, "per_client") {
				t.Errorf(`%s: got %s, want "0 answers, 1 errors" in it, "per_client" in it`, c.name, got)
			}
		})
	}
	wg.Wait()
	if len(a.asked)+len(b.asked) != 0 {
		t.Errorf("asked %v %v", a.asked, b.asked)
	}
}

// UP-11: a result beyond the limit is cut to it, says so, and is kept whole; what
// is within is untouched, to the byte.
func TestResultBounds(t *testing.T) {
	r := newRig(t)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	store := tool.NewStore(root)
	var cuts []upstream.Truncated
	add := func(name string, limit int, artifacts *tool.Store) {
		s := fakeServer(t, name, "huge")
		s.MaxResult = limit
		p := upstream.New(upstream.Config{Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Artifacts: artifacts,
			Cut: func(_ tool.Call, c upstream.Truncated) { cuts = append(cuts, c) }})
		if err := r.host.Install(t.Context(), feature.Contribution{Name: name, Providers: []feature.Provider{p}}); err != nil {
			t.Fatal(err)
		}
		r.ready(name)
	}
	add("one", 1<<20, store)
	add("free", 0, store)
	schema := fakeServer(t, "schema", "huge output-schema")
	schema.MaxResult = 64 << 10
	r.add(schema)
	r.ready("schema")
	add("small", 64<<10, store)
	add("nowhere", 64<<10, nil)
	c := &client{name: "c"}
	type res struct {
		Content []struct {
			Type, Text, URI string
			Size            int
		}
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Meta       map[string]json.RawMessage
	}
	call := func(tool, args string) (res, string) {
		raw := native(t, r.callFor(c, tool, args))
		var out res
		out.Meta = map[string]json.RawMessage{}
		var m struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if err := errors.Join(json.Unmarshal([]byte(raw), &out), json.Unmarshal([]byte(raw), &m)); err != nil {
			t.Fatal(err)
		}
		out.Meta = m.Meta
		return out, raw
	}
	// FID-3: a client must refuse a result that lacks what its tool's schema promises.
	if got, raw := call("schema__echo", `{"items":1,"size":100000,"structured":100000}`); len(got.Structured) < 100_000 || got.Meta[upstream.MetaTruncated] == nil {
		t.Errorf("cut to %d bytes with %d bytes of structured content, want that whole", len(raw), len(got.Structured))
	}
	for _, c := range []struct {
		tool, args   string
		limit, items int // 0 items: not cut
	}{
		{"free__echo", `{"items":1,"size":1100000}`, 1 << 20, 0},
		{"free__echo", `{"items":1001,"size":2}`, 1 << 20, 0},
		{"one__echo", `{"items":1,"size":1000}`, 1 << 20, 0},
		{"one__echo", `{"items":1,"size":1000000}`, 1 << 20, 0},
		{"one__echo", `{"items":1,"size":1100000}`, 1 << 20, 1},
		{"one__echo", `{"items":3,"size":2000000}`, 1 << 20, 1},
		{"one__echo", `{"items":999,"size":2}`, 1 << 20, 0},
		{"one__echo", `{"items":1000,"size":2}`, 1 << 20, 0},
		{"one__echo", `{"items":1001,"size":2}`, 1 << 20, 1000},
		{"small__echo", `{"items":20,"size":10000}`, 64 << 10, 4},
		{"nowhere__echo", `{"items":20,"size":10000}`, 64 << 10, 4},
	} {
		before := len(cuts)
		got, raw := call(c.tool, c.args)
		if !got.IsError || string(got.Meta["vendor/key"]) != "1" || string(got.Structured) != `{"n":12345678901234567890}` {
			t.Errorf("%s %s: members are lost: %s", c.tool, c.args, raw[max(0, len(raw)-300):])
		}
		mark, cut := got.Meta[upstream.MetaTruncated]
		if (c.items > 0) != cut || (c.items > 0) != (len(cuts) > before) {
			t.Errorf("%s %s: cut %v, told %d times", c.tool, c.args, cut, len(cuts)-before)
			continue
		}
		if !cut {
			continue
		}
		var tr upstream.Truncated
		if err := json.Unmarshal(mark, &tr); err != nil {
			t.Fatal(err)
		}
		if len(raw) > c.limit || !strings.Contains(raw, "max_result_bytes in the configuration of server") || tr.KeptItems != c.items {
			t.Errorf("%s %s: %d bytes, %+v", c.tool, c.args, len(raw), tr)
		}
		note := got.Content[tr.KeptItems]
		if c.tool == "nowhere__echo" {
			if !strings.Contains(note.Text, "could not be kept") || tr.URI != "" {
				t.Errorf(`got %+v %s, want Text with "could not be kept", no URI`, tr, note.Text)
			}
			continue
		}
		link := got.Content[len(got.Content)-1]
		id, ok := relay.Artifact(tr.URI)
		if !strings.Contains(note.Text, fmt.Sprint(tr.Bytes)) || link.Type != "resource_link" || link.URI != tr.URI || !ok {
			t.Errorf(`got %+v %s %+v, want Text with %v, Type "resource_link", URI %v, ok`, tr, note.Text, link, fmt.Sprint(tr.Bytes), tr.URI)
		}
		whole := make([]byte, tr.Bytes+1)
		if n, size, err := store.ReadAt("c", id, whole, 0); err != nil || n != tr.Bytes || size != int64(tr.Bytes) || !json.Valid(whole[:n]) {
			t.Errorf("kept %d of %d bytes: %v", n, tr.Bytes, err)
		}
	}
}

// UP-01: descriptions are bounded on their way to clients, too.
func TestLongDescription(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "long-description")
	r.ready("srv")
	e, ok := r.reg.Snapshot().Lookup("srv__t")
	if !ok {
		t.Fatal("the tool is gone")
	}
	var d struct{ Description string }
	if err := json.Unmarshal(e.Def.Native, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Description) > feature.MaxDescription || !strings.HasSuffix(d.Description, "ä… [cut]") {
		t.Errorf("%d bytes, %q", len(d.Description), d.Description[len(d.Description)-20:])
	}
}

// modernServer answers over HTTP in the modern era, and keeps what it was sent.
func modernServer(t *testing.T, answer func(method string, params map[string]any) string) (string, *[]*http.Request) {
	t.Helper()
	var mu sync.Mutex
	var seen []*http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params map[string]any
		}
		if json.Unmarshal(body, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		mu.Lock()
		seen = append(seen, r)
		mu.Unlock()
		res := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}}}`
		switch m.Method {
		case "server/discover":
		case "tools/list":
			res = `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
		default:
			res = answer(m.Method, m.Params)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, res)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, &seen
}

// A modern server's questions are put to a legacy client as requests, and the call
// is sent again with the answers and the server's own state; one that never stops
// asking is stopped. A modern client gets the question itself.
func TestInputRequired(t *testing.T) {
	rounds := 0
	forever := false
	url, _ := modernServer(t, func(_ string, params map[string]any) string {
		rounds++
		if rounds == 1 || forever {
			return `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s\u0000{\"a\":1}"}`
		}
		out, err := json.Marshal(map[string]any{"resultType": "complete", "content": []any{}, "state": params["requestState"], "answers": params["inputResponses"], "arguments": params["arguments"]})
		if err != nil {
			return `{}`
		}
		return string(out)
	})
	r := newRig(t)
	r.add(servers.Server{Name: "srv", Transport: servers.HTTP, URL: url, Era: servers.EraModern})
	r.ready("srv")
	c := &client{name: "ada", caps: `{"elicitation":{}}`}
	got := native(t, r.callFor(c, "srv__t", `{"n":1}`))
	if !strings.Contains(got, `"state":"s\u0000{\"a\":1}"`) || !strings.Contains(got, `"answers":{"k":{"action":"accept","content":{"name":"ada"}}}`) || !strings.Contains(got, `"arguments":{"n":1}`) || rounds != 2 {
		t.Errorf("%d rounds: %s", rounds, got)
	}
	rounds = 0
	if got := native(t, r.callFor(&client{name: "m", caps: `{"elicitation":{}}`, modern: true}, "srv__t", `{}`)); !strings.Contains(got, `"input_required"`) || rounds != 1 {
		t.Errorf("a modern client: %s", got)
	}
	rounds, forever = 0, true
	if res := r.callFor(c, "srv__t", `{}`); !strings.Contains(res.Text(), "asked for input 10 times") || rounds != 11 {
		t.Errorf("%d rounds: %s", rounds, res.Text())
	}
	rounds = 0
	if res := r.callFor(&client{name: "x"}, "srv__t", `{}`); !strings.Contains(res.Text(), "does not support elicitation/create") {
		t.Errorf("a client that cannot be asked: %s", res.Text())
	}
	// The server has answered all of them: such a client keeps nobody from it.
	for range 5 {
		r.callFor(&client{name: "x"}, "srv__t", `{}`)
	}
	rounds, forever = 0, false
	if got := native(t, r.callFor(c, "srv__t", `{}`)); rounds != 2 {
		t.Errorf("after such clients: %d rounds, want 2: %s", rounds, got)
	}
}

// UP-40: names from a client go into headers encoded, and cannot add a header.
func TestNamesInHeaders(t *testing.T) {
	url, seen := modernServer(t, func(string, map[string]any) string { return `{"resultType":"complete","contents":[]}` })
	r := newRig(t)
	p := r.add(servers.Server{Name: "srv", Transport: servers.HTTP, URL: url, Era: servers.EraModern})
	r.ready("srv")
	for _, uri := range []string{"a://b\r\nX-Evil: 1", "a://ä", " a", "=?base64?eA==?=", "a://b?c#d/../e"} {
		params, err := jsonrpc.ParseObject(append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}'))
		if err != nil {
			t.Fatal(err)
		}
		*seen = nil
		if _, err := p.Relay(t.Context(), &client{name: "c"}, "resources/read", params); err != nil {
			t.Fatal(err)
		}
		for _, req := range *seen {
			if req.Header.Get("X-Evil") != "" || req.URL.Path != "/" || req.URL.RawQuery != "" {
				t.Errorf(`%q: got %v %v, want no X-Evil, Path "/", no RawQuery`, uri, req.URL, req.Header)
			}
			if v := req.Header.Get("Mcp-Name"); strings.ContainsAny(v, "\r\n") || (v == "" && !strings.ContainsAny(uri, "\r\n")) {
				t.Errorf("%q: got the header Mcp-Name %q, want one without line breaks, or none", uri, v)
			}
		}
	}
}

// Lists are asked for once, until they change or their time is over; what is asked
// of a client's list while the server is away is an error, and no empty list.
func TestListsAreKept(t *testing.T) {
	asked := 0
	url, _ := modernServer(t, func(string, map[string]any) string {
		asked++
		return `{"resultType":"complete","resources":[{"uri":"u://1","name":"x"},5,{"uri":"u://2","size":12345678901234567890}]}`
	})
	r := newRig(t)
	p := r.add(servers.Server{Name: "srv", Transport: servers.HTTP, URL: url, Era: servers.EraModern})
	r.ready("srv")
	for range 3 {
		list, err := p.List(t.Context(), relay.Resources)
		if err != nil || len(list) != 2 || !strings.Contains(string(list[1].Raw()), "12345678901234567890") {
			t.Fatalf(`got %v %v, want len(list) 2, Raw with "12345678901234567890"`, list, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if !p.Has("resources") || p.Has("resources.subscribe") || p.Has("logging") {
		t.Error("what it has")
	}
	r.host.Remove("srv")
	if _, err := p.List(t.Context(), relay.Resources); err == nil || p.Has("resources") {
		t.Error("a server that is gone has a list")
	}
}
