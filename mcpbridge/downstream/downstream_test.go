package downstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// The relay's promise: results, unknown members, error objects and definitions
// come out as they went in, in both eras.
func TestNothingIsLost(t *testing.T) {
	const raw = `{"content":[{"type":"future","n":12345678901234567890,"u":"\u00e9"}],"x":{"y":1.10}}`
	var got string
	r := newRig(t,
		relay("srv__echo", func(_ context.Context, c tool.Call) (tool.Result, error) {
			got = string(c.Native.Params.Raw())
			return ok(raw)
		}),
		relay("srv__err", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Native: &tool.NativeResult{Error: json.RawMessage(`{"code":-32099,"message":"m","data":{"n":9007199254740993},"extra":1}`)}}, nil
		}))
	h := r.session()
	params := `{"name":"srv__echo","arguments":{"big":12345678901234567890},"future":[1]}`
	a := r.send("POST", `{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":`+params+`}`, h)
	if want := `{"jsonrpc":"2.0","id":"seven","result":` + raw + `}`; a.body != want {
		t.Errorf("got  %s\nwant %s", a.body, want)
	}
	if got != params {
		t.Errorf("params: %s", got)
	}
	a = r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__echo",`+modernMeta+`}}`, modern("tools/call", "srv__echo"))
	if want := strings.TrimSuffix(raw, "}") + `,"resultType":"complete"}`; !strings.Contains(a.body, want) {
		t.Errorf("modern: %s", a.body)
	}
	for _, h := range []map[string]string{h, modern("tools/call", "srv__err")} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__err"}}`
		if h["Mcp-Method"] != "" {
			body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__err",` + modernMeta + `}}`
		}
		a = r.send("POST", body, h)
		if !strings.Contains(a.body, `"error":{"code":-32099,"message":"m","data":{"n":9007199254740993},"extra":1}`) || a.status != 200 {
			t.Errorf("error: %d %s", a.status, a.body)
		}
	}
	list := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, h).body
	if want := `{"name":"srv__echo","inputSchema":{"type":"object","$schema":"x"},"future":12345678901234567890}`; !strings.Contains(list, want) {
		t.Errorf("definition: %s", list)
	}
	list = r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modern("tools/list", "")).body
	for _, want := range []string{`"resultType":"complete"`, `"ttlMs":5000`, `"cacheScope":"private"`, `"io.modelcontextprotocol/serverInfo":{"name":"yaya","version":"test"}`} {
		if !strings.Contains(list, want) {
			t.Errorf("modern list lacks %s: %s", want, list)
		}
	}
	disc := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+modernMeta+`}}`, modern("server/discover", "")).body
	if !strings.Contains(disc, `"supportedVersions":["2026-07-28","2025-11-25"`) || !strings.Contains(disc, `"tools":{"listChanged":true}`) {
		t.Errorf("discover: %s", disc)
	}
}

// A server's own error decides the status in the modern era, however long it is, and only there.
func TestStatusOfAServersError(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	r := newRig(t, relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Native: &tool.NativeResult{Error: json.RawMessage(`{"code":-32602,"message":"` + long + `"}`)}}, nil
	}))
	for _, c := range []struct {
		header map[string]string
		params string
		want   int
	}{
		{modern("tools/call", "srv__t"), `{"name":"srv__t",` + modernMeta + `}`, http.StatusBadRequest},
		{r.session(), `{"name":"srv__t"}`, http.StatusOK},
	} {
		a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+c.params+`}`, c.header)
		if a.status != c.want || !strings.Contains(a.body, `"code":-32602`) || !strings.Contains(a.body, long) {
			t.Errorf("%s: %d %.100s, want %d", c.params, a.status, a.body, c.want)
		}
	}
}

// HT-01…HT-03, DN-02…DN-06, DN-10, DN-13: each wrong request gets its own right
// answer.
func TestWrongRequests(t *testing.T) {
	r := newRig(t, relay("srv__t", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[]}`) }))
	s := r.session()
	with := func(h map[string]string, kv ...string) map[string]string {
		out := map[string]string{}
		for k, v := range h {
			out[k] = v
		}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = kv[i+1]
		}
		return out
	}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	mcall := call(`{"name":"srv__t",` + modernMeta + `}`)
	for _, tc := range []struct {
		name   string
		body   string
		header map[string]string
		status int
		want   string
	}{
		{"fine", call(`{"name":"srv__t"}`), s, 200, `"result"`},
		{"not JSON", `{"jsonrpc":`, s, 400, `-32700`},
		{"batch (DN-13)", `[]`, s, 400, `-32600`},
		{"no message", `{"jsonrpc":"2.0"}`, s, 400, `-32600`},
		{"text/plain (HT-03)", call(`{"name":"srv__t"}`), with(s, "Content-Type", "text/plain"), 415, `-32600`},
		{"compressed (HT-02)", "x", with(s, "Content-Encoding", "gzip"), 415, `-32600`},
		{"too large (HT-01)", call(`{"name":"` + strings.Repeat("x", downstream.MaxBody) + `"}`), s, 413, `larger than 64 MiB; raise the setting servers.max_message_bytes`},
		{"no session (DN-02)", call(`{"name":"srv__t"}`), nil, 400, "no session"},
		{"guessed session (DN-02)", call(`{"name":"srv__t"}`), with(s, "Mcp-Session-Id", "guess"), 404, "unknown session"},
		{"unknown version", call(`{"name":"srv__t"}`), with(s, "Mcp-Protocol-Version", "1999-01-01"), 400, "1999-01-01"},
		{"unknown method (DN-10)", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, s, 200, `-32601`},
		{"array params (DN-10)", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, s, 400, `-32600`},
		{"null id (DN-10)", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, s, 400, `-32600`},
		{"no name", call(`{}`), s, 200, `-32602`},
		{"name no string", call(`{"name":1}`), s, 200, `-32602`},
		{"arguments no object", call(`{"name":"srv__t","arguments":[1]}`), s, 200, `-32602`},
		{"two spellings of name (DN-05)", call(`{"name":"srv__t","Name":"other"}`), s, 200, `-32602`},
		{"name twice (DN-05)", call(`{"name":"srv__t","name":"other"}`), s, 400, `-32700`},
		{"not UTF-8, the id is named", call("{\"name\":\"srv__t\",\"x\":\"\xff\"}"), s, 400, `"id":1,"error":{"code":-32700`},
		{"nested too deeply, the id is named", call(`{"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`), s, 400, `"id":1,"error":{"code":-32700`},
		{"an answer that cannot be read has an id of ours", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\"}}", s, 400, `"id":null,"error":{"code":-32700`},
		{"unknown tool (DN-06, FID-8)", call(`{"name":"nope"}`), s, 200, `"text":"unknown tool \"nope\""}],"isError":true`},
		{"raw name of a bridged tool (DN-06)", call(`{"name":"t"}`), s, 200, `"isError":true`},
		{"modern, unknown tool (FID-8)", call(`{"name":"nope",` + modernMeta + `}`), modern("tools/call", "nope"), 400, `"code":-32602,"message":"unknown tool \"nope\""`},
		{"unknown resource (FID-8)", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://y"}}`, s, 200, `"code":-32602,"message":"resource not found: x://y","data":{"uri":"x://y"}`},
		{"unknown prompt (FID-8)", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"nope"}}`, s, 200, `"code":-32602,"message":"unknown prompt`},
		{"cursor out of nowhere", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, s, 200, `-32602`},
		{"initialize without version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil, 200, `-32602`},
		{"modern, fine", mcall, modern("tools/call", "srv__t"), 200, `"complete"`},
		{"modern, encoded name", mcall, modern("tools/call", "=?base64?c3J2X190?="), 200, `"complete"`},
		{"modern, no version header (DN-03)", mcall, nil, 400, `-32020`},
		{"modern, no method header (DN-03)", mcall, map[string]string{"Mcp-Protocol-Version": "2026-07-28"}, 400, `-32020`},
		{"modern, other method (DN-03)", mcall, modern("tools/list", "srv__t"), 400, `-32020`},
		{"modern, other name (DN-03)", mcall, modern("tools/call", "other"), 400, `-32020`},
		{"modern, bad base64 (DN-03)", mcall, modern("tools/call", "=?base64?%%%?="), 400, `-32020`},
		{"modern, version only in the header (DN-04)", call(`{"name":"srv__t"}`), modern("tools/call", "srv__t"), 400, `-32602`},
		{"modern, no capabilities (DN-04)", call(`{"name":"srv__t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`), modern("tools/call", "srv__t"), 400, `-32602`},
		{"modern, unknown version (DN-04)", strings.ReplaceAll(mcall, "2026-07-28", "2030-01-01"), with(modern("tools/call", "srv__t"), "Mcp-Protocol-Version", "2030-01-01"), 400, `"code":-32022`},
		{"modern, resumption", mcall, with(modern("tools/call", "srv__t"), "Last-Event-ID", "1"), 400, `-32020`},
		{"modern, unknown method (DN-10)", `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{` + modernMeta + `}}`, modern("no/such", ""), 404, `-32601`},
		{"modern, ping is gone", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + modernMeta + `}}`, modern("ping", ""), 404, `-32601`},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, s, 202, ""},
		{"response of the client (DN-10)", `{"jsonrpc":"2.0","id":9,"result":{}}`, s, 202, ""},
	} {
		a := r.send("POST", tc.body, tc.header)
		if a.status != tc.status || !strings.Contains(a.body, tc.want) {
			t.Errorf("%s: got %d %.300s, want %d %s", tc.name, a.status, a.body, tc.status, tc.want)
		}
	}
	if a := r.send("POST", strings.ReplaceAll(mcall, "2026-07-28", "2030-01-01"), with(modern("tools/call", "srv__t"), "Mcp-Protocol-Version", "2030-01-01")); !strings.Contains(a.body, `"supported":["2026-07-28"`) {
		t.Errorf("the supported versions are not named: %s", a.body)
	}
	// GET and DELETE (DN-01, DN-02).
	for _, tc := range []struct {
		method string
		header map[string]string
		status int
	}{
		{"GET", modern("", ""), 405},
		{"DELETE", modern("", ""), 405},
		{"GET", nil, 400},
		{"GET", map[string]string{"Mcp-Session-Id": "guess"}, 404},
		{"GET", map[string]string{"Accept": "text/html"}, 406},
		{"DELETE", nil, 400},
		{"DELETE", map[string]string{"Mcp-Session-Id": "guess"}, 404},
		{"PUT", nil, 405},
		{"DELETE", s, 204},
		{"DELETE", s, 404},
	} {
		if a := r.send(tc.method, "", tc.header); a.status != tc.status {
			t.Errorf("%s %v: got %d, want %d", tc.method, tc.header, a.status, tc.status)
		}
	}
	if a := r.send("POST", call(`{"name":"srv__t"}`), s); a.status != 404 {
		t.Errorf("an ended session lives: %d", a.status)
	}
	if len(r.ended) != 2 { // one by DELETE, one whose initialize had no version
		t.Errorf("ended sessions told: %v", r.ended)
	}
	if n := r.srv.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// Progress goes to the stream of its own request, whatever runs beside it.
func TestProgressGoesToItsOwnStream(t *testing.T) {
	r := newRig(t, relay("srv__p", func(_ context.Context, c tool.Call) (tool.Result, error) {
		var a struct{ N int }
		if err := json.Unmarshal(c.Args, &a); err != nil {
			return tool.Result{}, err
		}
		for i := range 5 {
			c.Progress(tool.Progress{Native: json.RawMessage(fmt.Sprintf(`{"progressToken":%d,"progress":%d,"message":"m%d","extra":9007199254740993}`, 1000+a.N, i, a.N))})
			time.Sleep(time.Millisecond)
		}
		return ok(fmt.Sprintf(`{"content":[],"n":%d}`, a.N))
	}))
	s := r.session()
	var wg sync.WaitGroup
	for n := range 40 {
		wg.Go(func() {
			a := r.send("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"srv__p","arguments":{"n":%d},"_meta":{"progressToken":"tok-%d"}}}`, n+1, n, n), s)
			if ct := a.header.Get("Content-Type"); ct != "text/event-stream" {
				t.Errorf("content type %s", ct)
				return
			}
			rd := sse.NewReader(strings.NewReader(a.body), 1<<20)
			for i := range 6 {
				ev, err := rd.Next()
				if err != nil {
					t.Errorf("call %d: message %d: %v", n, i, err)
					return
				}
				want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok-%d","progress":%d,"message":"m%d","extra":9007199254740993}}`, n, i, n)
				if i == 5 {
					want = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[],"n":%d}}`, n+1, n)
				}
				if string(ev.Data) != want {
					t.Errorf("call %d: got %s, want %s", n, ev.Data, want)
				}
			}
		})
	}
	wg.Wait()
}

// DN-08: a cancelled call's context ends, by notification and by disconnect.
func TestCancellation(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	r := newRig(t, relay("srv__hang", func(ctx context.Context, c tool.Call) (tool.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return tool.Result{}, ctx.Err()
	}))
	s := r.session()
	wait := func(what string) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(eventually.Limit):
			t.Fatalf("%s: the call goes on", what)
		}
	}
	done := make(chan answer, 1)
	go func() { //nolint:staticcheck // a failure to send shows in the wait below
		done <- r.send("POST", `{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"srv__hang"}}`, s)
	}()
	<-started
	if a := r.send("POST", `{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"srv__hang"}}`, s); a.status != 400 || !strings.Contains(a.body, "is running") {
		t.Errorf("the same id again: %+v", a)
	}
	other := r.session()
	r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c1"}}`, other) // not theirs
	select {
	case <-ended:
		t.Fatal("another session cancelled the call")
	case <-time.After(50 * time.Millisecond):
	}
	r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c1"}}`, s)
	wait("notification")
	<-done

	for name, h := range map[string]map[string]string{"legacy": s, "modern": modern("tools/call", "srv__hang")} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", r.url, strings.NewReader(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"srv__hang",`+map[bool]string{true: modernMeta, false: `"x":1`}[name == "modern"]+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for k, v := range h {
			req.Header.Set(k, v)
		}
		go func() {
			resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // test
			if err == nil {
				_ = resp.Body.Close()
			}
		}()
		<-started
		cancel()
		wait(name + " disconnect")
	}
	last := make(chan struct{})
	go func() {
		defer close(last)
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.url, strings.NewReader(`{"jsonrpc":"2.0","id":"c2","method":"tools/call","params":{"name":"srv__hang"}}`))
		if err != nil {
			t.Errorf("NewRequest = %v, want no error", err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		for k, v := range s {
			req.Header.Set(k, v)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-started
	r.send("DELETE", "", s)
	wait("end of the session")
	<-last
}

// list_changed reaches legacy clients on their GET stream and modern ones on
// subscriptions/listen, and nobody who did not ask.
func TestListChanged(t *testing.T) {
	r := newRig(t, relay("srv__a", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{}`) }))
	s := r.session()
	get, stopGet := r.stream("GET", "", s)
	listen, stopListen := r.stream("POST", `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},`+modernMeta+`}}`, modern("subscriptions/listen", ""))
	if got := next(t, listen); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}` {
		t.Errorf("acknowledged: %s", got)
	}
	nothing := r.send("POST", `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{},`+modernMeta+`}}`, modern("subscriptions/listen", ""))
	if !strings.Contains(nothing.body, `"notifications":{}`) || !strings.Contains(nothing.body, `"resultType":"complete"`) {
		t.Errorf("an empty subscription: %s", nothing.body)
	}
	for range 100 {
		r.changed()
	}
	if got := next(t, get); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("GET stream: %s", got)
	}
	if got := next(t, listen); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}` {
		t.Errorf("listen: %s", got)
	}
	if n := len(get) + len(listen); n > 100 { // on two streams; how many depends on how long the changes take
		t.Errorf("%d more notes for 100 changes that follow each other", n)
	}
	again, stopAgain := r.stream("GET", "", s) // the newest stream counts
	if !ends(get) {
		t.Error("the old stream is still open")
	}
	r.changed()
	next(t, again)
	r.srv.Close()
	for name, ch := range map[string]<-chan string{"GET": again, "listen": listen} {
		last := ""
		for m := range ch {
			last = m
		}
		if name == "listen" && !strings.Contains(last, `"id":"sub","result":{"resultType":"complete"`) {
			t.Errorf("listen ended with %q", last)
		}
	}
	stopGet()
	stopListen()
	stopAgain()
}

// A tool that is not bridged, and failures of yaya's own, are rendered as tool
// results.
func TestHostResultsAreRendered(t *testing.T) {
	r := newRig(t, relay("srv__gone", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Fail(tool.ErrUnavailable, `provider "srv" is failed: out of order`), nil
	}), relay("srv__panic", func(context.Context, tool.Call) (tool.Result, error) { panic("secret") }))
	s := r.session()
	a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__gone"}}`, s)
	if want := `"result":{"content":[{"type":"text","text":"provider \"srv\" is failed: out of order"}],"isError":true}`; !strings.Contains(a.body, want) {
		t.Errorf("got %s, want %s in it", a.body, want)
	}
	a = r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__panic"}}`, s)
	if strings.Contains(a.body, "secret") || !strings.Contains(a.body, "crashed") {
		t.Errorf(`got %s; want "crashed" in it, and no "secret"`, a.body)
	}
}

// FID-8: tools come in their server's order, and a new order alone does not count
// as a change.
func TestToolsInTheirServersOrder(t *testing.T) {
	var tools []tool.Tool
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("srv__%02d", i*7%50))
		tools = append(tools, relay(want[i], func(context.Context, tool.Call) (tool.Result, error) { return ok(`{}`) }))
	}
	r := newRig(t, tools...)
	s := r.session()
	for range 2 {
		var res struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, s).body), &res); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range res.Result.Tools {
			names = append(names, x.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("names = %v, want %v", names, want)
		}
		before := r.reg.Snapshot().Generation()
		slices.Reverse(tools)
		var ps []tool.Provided
		for _, x := range tools {
			ps = append(ps, tool.Provided{Tool: x})
		}
		if errs := r.reg.Replace("srv", ps); errs != nil || r.reg.Snapshot().Generation() != before {
			t.Errorf("another order is a change: %v", errs)
		}
	}
}

// FID-6: a call of a tool that waits for approval says so, in every profile that would
// show the tool. It does not fail as a call of an unknown tool.
func TestCallsOfToolsThatWait(t *testing.T) {
	r := newRig(t)
	r.reg.Replace("srv", []tool.Provided{{Tool: relay("srv__w", nil), Withheld: "it waits: yaya mcp approve srv w"}})
	s := r.session()
	if list := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, s).body; strings.Contains(list, "srv__w") {
		t.Errorf("it is listed: %s", list)
	}
	want := `"content":[{"type":"text","text":"it waits: yaya mcp approve srv w"}],"isError":true`
	for _, h := range []map[string]string{s, modern("tools/call", "srv__w")} {
		params := `{"name":"srv__w"}`
		if h["Mcp-Method"] != "" {
			params = `{"name":"srv__w",` + modernMeta + `}`
		}
		if a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`, h); a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("got %d %s, want %s", a.status, a.body, want)
		}
	}
	// It takes nobody's name.
	if errs := r.reg.Replace("other", []tool.Provided{{Tool: relay("srv__w", func(context.Context, tool.Call) (tool.Result, error) { return ok(`{"content":[],"mine":1}`) })}}); errs != nil {
		t.Fatal(errs)
	}
	if a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__w"}}`, s); !strings.Contains(a.body, `"mine":1`) {
		t.Errorf(`got %s, want "mine":1 in it`, a.body)
	}
}
