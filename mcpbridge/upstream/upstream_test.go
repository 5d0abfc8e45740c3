package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// rig is a host with providers under test.
type rig struct {
	t     *testing.T
	reg   *tool.Registry
	disp  *tool.Dispatcher
	host  *feature.Host
	procs *proc.Manager
	http  upstream.Transport
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, reg: new(tool.Registry), procs: new(proc.Manager), http: upstream.NewTransport()}
	r.disp = tool.NewDispatcher(tool.DispatcherConfig{Registry: r.reg})
	r.host = feature.NewHost(feature.Config{Registry: r.reg, Dispatcher: r.disp, StartGrace: 15 * time.Second})
	t.Cleanup(func() {
		if err := r.host.Close(context.Background()); err != nil {
			t.Errorf("Close of the host = %v, want no error", err)
		}
		r.procs.Close(context.Background())
		r.http.CloseIdleConnections()
	})
	return r
}

// secrets are those of a server.
func secrets(s servers.Server) *masked.Secrets {
	out := new(masked.Secrets)
	out.Learn(s.Secrets()...)
	return out
}

func (r *rig) add(s servers.Server) *upstream.Provider {
	r.t.Helper()
	p := upstream.New(upstream.Config{Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Version: "test",
		Mask:   secrets(s).String,
		Limits: func() upstream.Limits { return upstream.Limits{Message: 8 << 20} }})
	if err := r.host.Install(r.t.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// stdio adds the test binary as a server with faults.
func (r *rig) stdio(name, modes string) *upstream.Provider {
	r.t.Helper()
	return r.add(fakeServer(r.t, name, modes))
}

func fakeServer(t *testing.T, name, modes string) servers.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return servers.Server{Name: name, Transport: servers.Stdio, Command: self, Env: map[string]string{modeEnv: modes}}
}

func (r *rig) call(name, args string) tool.Result {
	r.t.Helper()
	return r.callAs("c1", name, `{"name":"`+name+`","arguments":`+args+`}`, nil)
}

// callAs calls as a downstream MCP client does.
func (r *rig) callAs(client, name, params string, progress func(tool.Progress)) tool.Result {
	r.t.Helper()
	obj, err := jsonrpc.ParseObject([]byte(params))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.disp.Call(r.t.Context(), r.reg.Snapshot(), tool.Call{
		Caller: tool.LocalOwner,
		ID:     "1", Name: name, Args: obj.Get("arguments"), SessionID: client, Origin: tool.OriginMCP,
		Native: &tool.NativeCall{Protocol: "mcp", Params: obj}, Progress: progress,
	})
}

func native(t *testing.T, res tool.Result) string {
	t.Helper()
	if res.Native == nil {
		t.Fatalf("no native result: %s %s", res.ErrorKind, res.Text())
	}
	if res.Native.Error != nil {
		return string(res.Native.Error)
	}
	return string(res.Native.Result.Raw())
}

func (r *rig) ready(name string) feature.Status {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), eventually.Limit)
	defer cancel()
	if err := r.host.WaitReady(ctx, name); err != nil {
		r.t.Fatal(err)
	}
	return r.status(name)
}

func (r *rig) status(name string) feature.Status {
	for _, s := range r.host.Status() {
		if s.ID == name {
			return s
		}
	}
	r.t.Fatalf("no provider %s", name)
	return feature.Status{}
}

// A value nested in a client's message never becomes a message of its own, however the
// client breaks its lines: it would bypass policy, approval and allow-lists.
func TestNoMessageIsSmuggled(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "plain")
	r.ready("srv")
	const inner = `{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"hidden","arguments":{}}}`
	for i, br := range []string{"\n", "\r\n", "\r"} {
		params := strings.ReplaceAll(`{"name":"srv__echo",|"arguments":{"a":|`+inner+`|},|"future":[1,|2]|}`, "|", br)
		got := native(t, r.callAs("c", "srv__echo", params, nil))
		if !strings.Contains(got, fmt.Sprintf(`"call":%d,`, i+1)) || !strings.Contains(got, `"name":"echo"`) || !strings.Contains(got, inner) {
			t.Errorf("%q: got %s, want %v in it, %q in it, %v in it", br, got, fmt.Sprintf(`"call":%d,`, i+1), `"name":"echo"`, inner)
		}
	}
}

// Raw JSON passes through unharmed: unknown fields, unknown content types, big
// integers, schemas.
func TestRawRelay(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "plain")
	r.ready("srv")
	got := native(t, r.callAs("c", "srv__echo", `{"name":"srv__echo","arguments":{"big":12345678901234567890,"f":1.10},"_meta":{"progressToken":"theirs","io.modelcontextprotocol/clientInfo":{"name":"x"},"vendor/key":[1]},"future":{"a":1}}`, nil))
	for _, want := range []string{
		`{"type":"future","n":12345678901234567890}`, // an unknown content type
		`"name":"echo"`, `"arguments":{"big":12345678901234567890,"f":1.10}`, `"future":{"a":1}`, `"vendor/key":[1]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	for _, not := range []string{"theirs", "clientInfo"} { // what belongs to the other hop
		if strings.Contains(got, not) {
			t.Errorf("%s was passed on: %s", not, got)
		}
	}
	e, _ := r.reg.Snapshot().Lookup("srv__echo")
	if want := `{"name":"echo","description":"d","inputSchema":{"type":"object","$defs":{"x":{}},"allOf":[{}],"x-unknown":1},"futureField":{"n":12345678901234567890}}`; string(e.Def.Native) != want {
		t.Errorf("definition:\n%s\nwant\n%s", e.Def.Native, want)
	}
	r.stdio("err", "error")
	r.ready("err")
	if got, want := native(t, r.call("err__echo", `{}`)), `{"code":-32099,"message":"m","data":{"n":9007199254740993},"extra":1}`; got != want {
		t.Errorf("error object: %s", got)
	}
}

// FID-1: on a pipe that clients share, a server is met in the legacy era if it speaks
// that, however it refuses the other one.
func TestNegotiation(t *testing.T) {
	r := newRig(t)
	for modes, want := range map[string]string{
		"plain": "legacy", "modern": "legacy", "exit-on-unknown": "legacy", "silent-on-unknown": "legacy", "empty-discover": "legacy", "old-initialize": "legacy",
		"modern refuse-initialize": "modern", "modern unknown-initialize": "modern", "modern invalid-initialize": "modern", "modern exit-on-initialize": "modern",
	} {
		name := strings.ReplaceAll(modes, " ", "_")
		r.stdio(name, modes)
		st := r.ready(name)
		if got := st.Detail.(upstream.Detail).Peer.Era; string(got) != want || st.Restarts != 0 {
			t.Errorf("%s: era %s and %d restarts, want %s and none", modes, got, st.Restarts, want)
		}
		got := native(t, r.call(feature.QualifiedName(name, "echo"), `{"x":1}`))
		if modern := strings.Contains(got, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`); modern != (want == "modern") {
			t.Errorf("%s: the call carries the version: %v: %s", modes, modern, got)
		}
	}
	s := fakeServer(t, "forced", "plain")
	s.Era = servers.EraModern
	r.add(s)
	r.stdio("ancient", "bad-version")
	r.host.Boundary(t.Context())
	if st := r.status("forced"); st.State != feature.Failed || !strings.Contains(st.Reason, "configured modern era") {
		t.Errorf("forced: %+v", st)
	}
	if st := r.status("ancient"); st.State != feature.Failed || !strings.Contains(st.Reason, `"1999-01-01"`) {
		t.Errorf("ancient: %+v", st)
	}
}

// UP-14, UP-15: each fault is one server's, is explained, and leaves the others
// alone.
func TestFaultyServersExplainThemselves(t *testing.T) {
	r := newRig(t)
	r.stdio("good", "plain")
	r.stdio("exits", "exit-at-once")
	r.stdio("dies", "die-on-call")
	r.stdio("garbage", "garbage")
	r.stdio("prints", "keep-printing")
	r.stdio("line", "endless-line")
	r.stdio("ids", "wrong-ids")
	r.stdio("noobj", "not-an-object")
	r.stdio("dup", "duplicate-members")
	r.stdio("twice", "twice")
	r.stdio("twoids", "two-ids")
	r.stdio("nested", "nested")
	r.stdio("textid", "text-id")
	r.stdio("badbatch", "bad-batch speaks-2025-03-26")
	r.stdio("unasked", "unasked-batch")
	r.stdio("flood", "flood-stderr")
	r.stdio("asks", "ask-back")
	slow := fakeServer(t, "hangs", "hang-call")
	slow.CallTimeout = 300 * time.Millisecond
	r.add(slow)
	late := fakeServer(t, "late", "late")
	late.CallTimeout = 200 * time.Millisecond
	r.add(late)
	r.add(servers.Server{Name: "missing", Transport: servers.Stdio, Command: "no-such-command"})
	hang := fakeServer(t, "hanginit", "hang-initialize")
	hang.StartTimeout = 1500 * time.Millisecond
	r.add(hang)
	greets := fakeServer(t, "greets", "greets")
	greets.Env["FAKE_TOKEN"] = "sesame-open"
	greets.StartTimeout = 4 * time.Second // in which it has said what it says
	r.add(greets)
	hangList := fakeServer(t, "hanglist", "hang-list")
	hangList.StartTimeout = 1500 * time.Millisecond
	r.add(hangList)
	r.host.Boundary(t.Context())

	for name, want := range map[string]string{
		"exits":    `the server process exited with status 3; it said: cannot start: no licence`,
		"missing":  `command "no-such-command" was not found in PATH`,
		"hanginit": "not ready within 1.5s",
		"hanglist": "not ready within 1.5s",
		"greets":   `its standard output is not MCP and begins with "Server starting on port 8080\u{7} with ****"; if it is`,
	} {
		if st := r.status(name); !strings.Contains(st.LastError, want) {
			t.Errorf("%s: %q, want %q", name, st.LastError, want)
		}
	}
	for name, want := range map[string]string{
		"dies":   `server "dies": the server process exited with status 7; it last said: panic: out of cheese; the call may or may not have taken effect`,
		"hangs":  `server "hangs" did not answer within 300ms`,
		"late":   `server "late" did not answer within 200ms`,
		"prints": "not JSON-RPC (does it print to standard output?)",
		"line":   "its answer is larger than 8 MiB; raise the setting servers.max_message_bytes",
		"ids":    "malformed answer",
		"noobj":  "sent a result that is not an object",
		"dup":    "malformed answer",

		"twoids":   "malformed answer",
		"nested":   "malformed answer",
		"textid":   "malformed answer: its id is not the number of the request",
		"badbatch": "malformed answer",
		"unasked":  "malformed answer: invalid JSON-RPC message: batches are not supported",
	} {
		res := r.call(name+"__echo", `{}`)
		if res.OK || res.Native != nil || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %+v, want %q", name, res, want)
		}
		if got := native(t, r.call("good__echo", `{}`)); !strings.Contains(got, `"type":"text"`) {
			t.Errorf("the good server after %s: %s", name, got)
		}
	}
	for _, name := range []string{"garbage", "twice", "flood", "asks"} {
		if got := native(t, r.call(name+"__echo", `{}`)); !strings.Contains(got, "content") || strings.Contains(got, "second") {
			t.Errorf(`%s: got %s, want "content" in it, nothing of "second"`, name, got)
		}
	}
	if got := native(t, r.call("twice__echo", `{}`)); !strings.Contains(got, "first") { // UP-16
		t.Errorf("a late duplicate was taken for an answer: %s", got)
	}
	eventually.True(t, "the late answer is counted", func() bool { return r.status("late").Detail.(upstream.Detail).Dropped > 0 })
	eventually.True(t, "the server learns of the cancellation", func() bool { // UP-15
		return strings.Contains(r.status("hangs").Detail.(upstream.Detail).Stderr, "cancelled")
	})
}

// UP-09.
func TestListsThatNeverEnd(t *testing.T) {
	r := newRig(t)
	r.stdio("many", "many-tools")
	r.stdio("pages", "endless-pages")
	r.stdio("same", "same-cursor")
	plain := fakeServer(t, "plain", "plain modern")
	plain.Era = servers.EraModern // however slowly it starts
	r.add(plain)
	for _, name := range []string{"many", "pages", "same", "plain"} {
		r.ready(name)
	}
	for name, want := range map[string]struct {
		tools  int
		reason string
	}{
		"many":  {500, "5000 tools"},
		"pages": {64, "more than 64 pages"},
		"same":  {1, "never ends"},
		"plain": {2, "invalid x-mcp-header"}, // UP-30: that tool is left out, the others stay
	} {
		if st := r.status(name); st.State != feature.Degraded || st.Tools != want.tools || !strings.Contains(strings.Join(st.Diagnostics, "\n"), want.reason) {
			t.Errorf("%s: %s with %d tools: %v", name, st.State, st.Tools, st.Diagnostics)
		}
	}
}

func TestProgressReachesItsCall(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "progress")
	r.ready("srv")
	var got []string
	res := r.callAs("c", "srv__echo", `{"name":"srv__echo","_meta":{"progressToken":"theirs"}}`, func(p tool.Progress) {
		got = append(got, fmt.Sprint(p.Progress, *p.Total)+" "+p.Message)
		if !strings.Contains(string(p.Native), `"extra":9007199254740993`) {
			t.Errorf("the notification was rebuilt: %s", p.Native)
		}
	})
	if strings.Join(got, ",") != "1 5 m0,2 5 m1,3 5 m2,4 5 m3,5 5 m4" || !strings.Contains(native(t, res), "done") {
		t.Errorf("progress %v, result %+v", got, res)
	}
}

// UP-37: many calls at a time, each gets its own answer.
func TestConcurrentCalls(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "sleep")
	r.ready("srv")
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			arg := fmt.Sprintf(`{"i":%d}`, i)
			if got := native(t, r.callAs(fmt.Sprint("c", i%7), "srv__echo", `{"name":"srv__echo","arguments":`+arg+`}`, nil)); !strings.Contains(got, strconv.Quote(arg)) {
				t.Errorf("call %d got %s", i, got)
			}
		})
	}
	wg.Wait()
}

func pid(t *testing.T, res tool.Result) int {
	t.Helper()
	var v struct{ PID int }
	if err := json.Unmarshal([]byte(native(t, res)), &v); err != nil || v.PID == 0 {
		t.Fatalf("no pid in %s (%v)", native(t, res), err)
	}
	return v.PID
}

// The client's next call succeeds after its server was killed.
func TestCallAfterKill(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "plain")
	r.ready("srv")
	for range 3 {
		id := pid(t, r.call("srv__echo", `{}`))
		hosttest.Kill(t, id)
		// The kernel has closed the pipes when the process can no longer be found.
		for hosttest.Alive(id) {
			time.Sleep(time.Millisecond)
		}
		if again := pid(t, r.call("srv__echo", `{}`)); again == id {
			t.Error("the killed process answered")
		}
	}
	if st := r.status("srv"); st.Restarts != 3 || !strings.Contains(st.LastError, "ended with SIGKILL") {
		t.Errorf("status: %+v", st)
	}
}

// Session policies: who shares a process.
func TestSessionPolicies(t *testing.T) {
	r := newRig(t)
	add := func(name, policy string, idle time.Duration) *upstream.Provider {
		s := fakeServer(t, name, "plain")
		s.Session = policy
		s.IdleTimeout = idle
		p := r.add(s)
		r.ready(name)
		return p
	}
	add("shared", "", time.Hour)
	per := add("perclient", "per_client", time.Hour)
	add("brief", "per_client", 300*time.Millisecond)
	add("percall", "per_call", time.Hour)
	add("pool", "pool:3", time.Hour)
	as := func(client, name string) int {
		return pid(t, r.callAs(client, name+"__echo", `{"name":"x"}`, nil))
	}
	if as("a", "shared") != as("b", "shared") {
		t.Error("shared: two processes")
	}
	a, b := as("a", "perclient"), as("b", "perclient")
	if a == b || as("a", "perclient") != a || as("b", "perclient") != b {
		t.Error("per_client: clients share a process, or change theirs")
	}
	first := as("a", "percall")
	if first == as("a", "percall") {
		t.Error("per_call: two calls shared a process")
	}
	seen := map[int]bool{}
	for range 12 {
		seen[as("a", "pool")] = true
	}
	if len(seen) != 3 {
		t.Errorf("pool:3 used %d processes", len(seen))
	}
	per.Release("a")
	eventually.True(t, "the process of a released client ends", func() bool { return !hosttest.Alive(a) })
	idle := as("b", "brief")
	eventually.True(t, "the process of an idle client ends", func() bool { return !hosttest.Alive(idle) })
	for name, want := range map[string]int{"perclient": 2, "brief": 1} { // the main one, and the other client's
		eventually.True(t, fmt.Sprintf("%s has %d sessions", name, want), func() bool {
			return r.status(name).Detail.(upstream.Detail).Sessions == want
		})
	}
	if got := as("b", "brief"); got == idle {
		t.Error("a recycled process answered")
	}
}

// UP-39: stopping while calls run ends them with an error, and leaves no process.
func TestStopDuringCalls(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "hang-call ignore-term")
	st := r.ready("srv")
	id := st.Detail.(upstream.Detail).PID
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if res := r.call("srv__echo", `{}`); res.OK {
				t.Errorf("a call of a stopped server succeeded: %+v", res)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	start := time.Now()
	if !r.host.Remove("srv") {
		t.Fatal("remove")
	}
	wg.Wait()
	if d := time.Since(start); d > eventually.Limit { // UP-17
		t.Errorf("the stop took %v", d)
	}
	if hosttest.Alive(id) {
		t.Error("the process is still there")
	}
}

// UP-19.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("YAYA_SECRET_CANARY", "leak")
	t.Setenv("PASSED", "on")
	r := newRig(t)
	s := fakeServer(t, "srv", "env")
	s.PassEnv = []string{"PASSED"}
	r.add(s)
	r.ready("srv")
	got := native(t, r.call("srv__echo", `{}`))
	if strings.Contains(got, "CANARY") || !strings.Contains(got, "PASSED=on") || !strings.Contains(got, "PATH=") {
		t.Errorf("environment: %s", got)
	}
}

// UP-10: a storm of list changes costs one look.
func TestListChangeStorm(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "change-list")
	r.ready("srv")
	told := make(chan struct{}, 10_000)
	defer r.host.Watch(func([]string) { told <- struct{}{} })()
	time.Sleep(50 * time.Millisecond)
	r.call("srv__echo", `{}`)
	eventually.True(t, "a watcher is told", func() bool { return len(told) > 0 })
	if n := len(told); n > 2 {
		t.Errorf("told %d times", n)
	}
}

func TestAllowLists(t *testing.T) {
	r := newRig(t)
	s := fakeServer(t, "srv", "plain")
	s.ExcludeTools = []string{"hidden"}
	r.add(s)
	r.ready("srv")
	if _, ok := r.reg.Snapshot().Lookup("srv__hidden"); ok {
		t.Error("an excluded tool is offered")
	}
	if res := r.call("srv__hidden", `{}`); res.ErrorKind != tool.ErrNotFound {
		t.Errorf("an excluded tool was called: %+v", res)
	}
}

// The agent loop's view: text, artifacts for binary, links named, the unknown
// shown as JSON (F-17, F-19, UP-32).
func TestModelResults(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	store := tool.NewStore(root)
	raw := `{"content":[{"type":"text","text":"hello"},{"type":"image","mimeType":"image/png","data":"aGk="},{"type":"audio","data":"%%%"},
		{"type":"resource_link","name":"n","uri":"file:///etc/passwd"},{"type":"resource","resource":{"uri":"u","text":"inner"}},
		{"type":"resource","resource":{"uri":"u","blob":"aGk="}},{"type":"future","x":12345678901234567890}],"structuredContent":{"n":12345678901234567890},"isError":true}`
	res, err := upstream.Normalise(store, tool.Call{ID: "1", SessionID: "s"}, json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	text := res.Text()
	for _, want := range []string{"hello", "image/png, 2 bytes, kept as artifact art_", "not valid base64", "file:///etc/passwd", "inner", `{"type":"future","x":12345678901234567890}`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if res.OK || res.ErrorKind != tool.ErrTool || len(res.Artifacts) != 2 || string(res.Structured) != `{"n":12345678901234567890}` || res.Brief != "hello" {
		t.Errorf(`got %+v; want a tool error with 2 artifacts, the integer as it was and the brief "hello"`, res)
	}
	many := `{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x"},`, 10_000), ",") + `]}`
	if res, err := upstream.Normalise(nil, tool.Call{}, json.RawMessage(many)); err != nil || len(res.Display) != 201 || !strings.Contains(res.Text(), "[truncated: 9800 more items]") {
		t.Errorf("%d items, %v", len(res.Display), err)
	}
}

func TestErrorsOfTheContextAreTheCallers(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "hang-call")
	r.ready("srv")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	obj, _ := jsonrpc.ParseObject([]byte(`{"name":"x"}`))
	res := r.disp.Call(ctx, r.reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, Name: "srv__echo", Origin: tool.OriginMCP, Native: &tool.NativeCall{Params: obj}})
	if res.ErrorKind != tool.ErrTimeout || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("got %+v, want the error kind %s", res, tool.ErrTimeout)
	}
}
