package downstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/tool"
	peer "github.com/yaya-ai/yaya/mcpbridge/relay"
)

// asks is a tool that asks its client n times, and says what it heard.
func asks(name string, n int) *bridged {
	return relay(name, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		p := c.Native.Peer.(peer.Peer)
		var heard []string
		for i := range n {
			r, err := p.Ask(ctx, peer.Elicitation, fmt.Appendf(nil, `{"message":"question %d"}`, i))
			if err != nil {
				return tool.Result{}, err
			}
			if r.Err != nil {
				heard = append(heard, string(r.Err))
				continue
			}
			heard = append(heard, string(r.Result.Raw()))
		}
		out, err := json.Marshal(heard)
		if err != nil {
			return tool.Result{}, err
		}
		return ok(`{"content":[],"heard":` + string(out) + `}`)
	})
}

const asking = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// callModern calls a tool as a modern client that can be asked; more is added to
// params.
func (r *rig) callModern(name, args, more string) map[string]any {
	r.t.Helper()
	a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`,`+asking+more+`}}`, modern("tools/call", name))
	var m map[string]any
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		r.t.Fatalf("%s = %d %s, %v; want JSON", name, a.status, a.body, err)
	}
	return m
}

func parked(t *testing.T, m map[string]any) (key, state string) {
	t.Helper()
	res, _ := m["result"].(map[string]any)
	if res["resultType"] != "input_required" {
		t.Fatalf("got %v, want resultType input_required", m)
	}
	for k := range res["inputRequests"].(map[string]any) {
		key = k
	}
	return key, res["requestState"].(string)
}

// A modern client is asked by the answer input_required, as often as the server
// needs; the call is parked meanwhile, and its state works once, for the same
// client and call only (SEP-2322, R34).
func TestQuestionsToModernClients(t *testing.T) {
	r := newRig(t, asks("srv__ask", 2))
	key, state := parked(t, r.callModern("srv__ask", `{"a":1}`, ""))
	resume := func(args, state, responses string) map[string]any {
		return r.callModern("srv__ask", args, `,"requestState":"`+state+`","inputResponses":`+responses)
	}
	failed := func(what string, m map[string]any) {
		t.Helper()
		if e, _ := m["error"].(map[string]any); e["code"] != -32602.0 {
			t.Errorf("%s: got %v, want code %v", what, m, -32602.0)
		}
	}
	failed("other arguments", resume(`{"a":2}`, state, `{"`+key+`":{"action":"accept"}}`))
	failed("an invented state", resume(`{"a":1}`, "yaya.AAAA", `{}`))
	failed("no object", resume(`{"a":1}`, state, `{"`+key+`":5}`))
	failed("null", resume(`{"a":1}`, state, `null`))
	// Without the answer it is asked again, under a new state.
	key, again := parked(t, resume(`{"a":1}`, state, `{"other":{}}`))
	failed("a used state", resume(`{"a":1}`, state, `{"`+key+`":{"action":"accept"}}`))
	key, last := parked(t, resume(`{"a":1}`, again, `{"`+key+`":{"action":"accept","n":1}}`))
	m := resume(`{"a":1}`, last, `{"`+key+`":{"action":"decline"}}`)
	if got := fmt.Sprint(m["result"]); !strings.Contains(got, `heard:[{"action":"accept","n":1} {"action":"decline"}]`) || !strings.Contains(got, "resultType:complete") {
		t.Errorf("got %s; want both answers heard, and a complete result", got)
	}
	// A client that cannot be asked is not.
	plain := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__ask","arguments":{},`+modernMeta+`}}`, modern("tools/call", "srv__ask"))
	if !strings.Contains(plain.body, "cannot be asked") {
		t.Errorf(`got %s, want "cannot be asked" in it`, plain.body)
	}
}

// A parked call ends with the server, and with its client when that hangs up.
func TestParkedCallsEnd(t *testing.T) {
	ended := make(chan error, 2)
	started := make(chan struct{}, 2)
	r := newRig(t, relay("srv__ask", func(ctx context.Context, c tool.Call) (tool.Result, error) {
		started <- struct{}{}
		if c.Native.Params.Get("x") != nil {
			<-ctx.Done()
			ended <- ctx.Err()
			return tool.Result{}, ctx.Err()
		}
		_, err := c.Native.Peer.(peer.Peer).Ask(ctx, peer.Elicitation, []byte(`{}`))
		ended <- err
		return tool.Result{}, err
	}))
	parked(t, r.callModern("srv__ask", `{}`, ""))
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", r.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__ask","x":1,`+asking+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range modern("tools/call", "srv__ask") {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-started
	<-started
	cancel()
	<-gone
	select {
	case <-ended: // the one whose client hung up
	case <-time.After(eventually.Limit):
		t.Fatal("it goes on without its client")
	}
	r.srv.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the parked call was answered")
		}
	case <-time.After(eventually.Limit):
		t.Fatal("it goes on without the server")
	}
}

// A legacy client is asked on the stream of the request that made the server ask,
// and answers with a POST; what it cannot be asked, it is not.
func TestQuestionsToLegacyClients(t *testing.T) {
	r := newRig(t, asks("srv__ask", 1))
	s := r.sessionWith(`{"elicitation":{}}`)
	events, stop := r.stream("POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"srv__ask"}}`, s)
	defer stop()
	next(t, events) // primes resumption
	var q struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal([]byte(next(t, events)), &q); err != nil || q.Method != peer.Elicitation {
		t.Fatalf("asked %+v, %v", q, err)
	}
	if a := r.send("POST", `{"jsonrpc":"2.0","id":99,"result":{"action":"accept"}}`, s); a.status != 202 {
		t.Errorf("an answer to nothing: %d", a.status)
	}
	if a := r.send("POST", `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"error":{"code":-1,"message":"no"}}`, s); a.status != 202 {
		t.Errorf("the answer: %d", a.status)
	}
	if got := next(t, events); !strings.Contains(got, `"heard":["{\"code\":-1,\"message\":\"no\"}"]`) {
		t.Errorf("got %s, want the error -1 heard", got)
	}
	plain := r.sessionWith(`{}`)
	if a := r.send("POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"srv__ask"}}`, plain); !strings.Contains(a.body, "cannot be asked") || strings.Contains(a.body, `"method"`) {
		t.Errorf(`got %s; want "cannot be asked" in it, and no question`, a.body)
	}
}

// sessionWith initialises a session of the newest legacy version.
func (r *rig) sessionWith(caps string) map[string]string {
	r.t.Helper()
	a := r.send("POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+caps+`,"clientInfo":{"name":"x","version":"1"}}}`, nil)
	return map[string]string{"Mcp-Session-Id": a.header.Get("Mcp-Session-Id")}
}

// A legacy client that loses the stream of a call comes back for the rest, with
// the id of the last event that it has: nothing is lost and nothing comes twice.
// DN-02: nobody else's stream can be taken up.
func TestResumption(t *testing.T) {
	step := make(chan struct{})
	r := newRig(t, relay("srv__slow", func(ctx context.Context, c tool.Call) (tool.Result, error) {
		for i := range 4 {
			c.Progress(tool.Progress{Progress: float64(i)})
			select {
			case <-step:
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		}
		return ok(`{"content":[],"done":true}`)
	}))
	s := r.sessionWith(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	open := func(ctx context.Context, method, body string, header map[string]string) (*sse.Reader, func()) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, r.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return sse.NewReader(resp.Body, 1<<20), func() { resp.Body.Close() }
	}
	rd, closeFirst := open(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__slow","_meta":{"progressToken":"p"}}}`, s)
	prime, err := rd.Next()
	if err != nil || len(prime.Data) != 0 || prime.ID == "" {
		t.Fatalf("it is not primed: %+v %v", prime, err)
	}
	first, err := rd.Next()
	if err != nil || !strings.Contains(string(first.Data), `"progress":0`) {
		t.Fatalf("got %s %v, want Data with %q", first.Data, err, `"progress":0`)
	}
	cancel() // the connection is lost
	closeFirst()
	step <- struct{}{} // two more while nobody reads
	step <- struct{}{}

	other := r.sessionWith(`{}`)
	stranger := map[string]string{"Last-Event-ID": first.ID}
	for k, v := range other {
		stranger[k] = v
	}
	sctx, scancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	srd, sclose := open(sctx, "GET", "", stranger)
	if ev, err := srd.Next(); err == nil {
		t.Errorf("a stranger got %s", ev.Data)
	}
	sclose()
	scancel()

	back := map[string]string{"Last-Event-ID": first.ID}
	for k, v := range s {
		back[k] = v
	}
	rd, closeSecond := open(t.Context(), "GET", "", back)
	defer closeSecond()
	for i := 1; i < 3; i++ {
		ev, err := rd.Next()
		if err != nil || !strings.Contains(string(ev.Data), fmt.Sprintf(`"progress":%d`, i)) {
			t.Fatalf("%d: got %s %v, want Data with %v", i, ev.Data, err, fmt.Sprintf(`"progress":%d`, i))
		}
	}
	step <- struct{}{}
	if ev, err := rd.Next(); err != nil || !strings.Contains(string(ev.Data), `"progress":3`) {
		t.Fatalf("live: %s %v", ev.Data, err)
	}
	step <- struct{}{}
	last, err := rd.Next()
	if err != nil || !strings.Contains(string(last.Data), `"done":true`) {
		t.Fatalf("the answer: %s %v", last.Data, err)
	}
	if _, err := rd.Next(); err == nil {
		t.Error("the stream does not end with the answer")
	}
	// The client can ask again for delivered events, for a while.
	rd, closeThird := open(t.Context(), "GET", "", back)
	defer closeThird()
	n := 0
	for {
		if _, err := rd.Next(); err != nil {
			break
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d events again, want 4", n)
	}
}

// A legacy client whose call has said nothing yet has nothing to come back for:
// its call ends with its connection.
func TestLostBeforeTheStream(t *testing.T) {
	ended := make(chan struct{})
	started := make(chan struct{})
	r := newRig(t, relay("srv__hang", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	}))
	s := r.sessionWith(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		req, err := http.NewRequestWithContext(ctx, "POST", r.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__hang"}}`))
		if err != nil {
			t.Errorf("NewRequest = %v, want no error", err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Session-Id", s["Mcp-Session-Id"])
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-started
	cancel()
	<-gone
	select {
	case <-ended:
	case <-time.After(eventually.Limit):
		t.Fatal("the call goes on")
	}
}

// FID-8: a legacy client's progress on a question goes to whoever asked, and to nobody
// once the question is no longer open.
func TestProgressOnAQuestion(t *testing.T) {
	reports := make(chan string, 8)
	r := newRig(t, relay("srv__ask", func(ctx context.Context, c tool.Call) (tool.Result, error) {
		ctx = peer.WithProgress(ctx, func(params []byte) { reports <- string(params) })
		if _, err := c.Native.Peer.(peer.Peer).Ask(ctx, peer.Elicitation, []byte(`{"message":"m","_meta":{"v/x":1}}`)); err != nil {
			return tool.Result{}, err
		}
		return ok(`{"content":[]}`)
	}))
	in, send := io.Pipe()
	out, wrote := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- r.srv.ServeStdio(t.Context(), tool.LocalOwner, in, wrote, "") }()
	lines := bufio.NewScanner(out)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("got the end of the stream, %v, want a line", lines.Err())
		}
		return lines.Text()
	}
	fmt.Fprintln(send, strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
	next()
	fmt.Fprintln(send, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__ask"}}`)
	if got, want := next(), `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","_meta":{"v/x":1,"progressToken":1}}}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	fmt.Fprintln(send, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":1}}`)
	fmt.Fprintln(send, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2,"big":12345678901234567890}}`)
	fmt.Fprintln(send, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)
	if got, want := next(), `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	fmt.Fprintln(send, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":3}}`)
	send.Close()
	if err := <-done; err != nil {
		t.Errorf("ServeStdio = %v, want no error", err)
	}
	close(reports)
	var got []string
	for p := range reports {
		got = append(got, p)
	}
	if want := []string{`{"progressToken":1,"progress":2,"big":12345678901234567890}`}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

// FID-2: a server may answer a request and ask on it at the same moment. The
// question comes too late, and neither reaches the connection of a response that
// has ended nor takes anything down.
func TestQuestionAfterTheAnswer(t *testing.T) {
	for name, stream := range map[string]bool{"a plain response": false, "a stream": true} {
		t.Run(name, func(t *testing.T) {
			answered, asked := make(chan struct{}), make(chan error, 1)
			r := newRig(t, relay("srv__late", func(ctx context.Context, c tool.Call) (tool.Result, error) {
				p := c.Native.Peer.(peer.Peer)
				if stream {
					p.Notify("notifications/message", []byte(`{"level":"error","data":"x"}`))
				}
				go func() {
					<-answered
					_, err := p.Ask(context.WithoutCancel(ctx), peer.Elicitation, []byte(`{"message":"late"}`))
					asked <- err
				}()
				return ok(`{"content":[]}`)
			}))
			a := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`, nil)
			h := map[string]string{"Mcp-Session-Id": a.header.Get("Mcp-Session-Id")}
			a = r.send("POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"srv__late","arguments":{}}}`, h)
			if !strings.Contains(a.body, `"content":[]`) {
				t.Errorf("got %d %s; want an empty content", a.status, a.body)
			}
			close(answered)
			if err := <-asked; err == nil || !strings.Contains(err.Error(), "has been answered") {
				t.Errorf("a question after the answer: %v, want that the request has been answered", err)
			}
		})
	}
}
