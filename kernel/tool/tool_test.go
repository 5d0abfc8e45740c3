package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to echo"`
	N    int    `json:"n,omitempty"`
}

// echo returns a tool that counts its runs.
func echo(t *testing.T, def tool.Definition, runs *atomic.Int32) tool.Tool {
	t.Helper()
	if def.Name == "" {
		def.Name = "echo"
	}
	def.Description = "Echoes."
	if def.Kind == "" {
		def.Kind = tool.KindRead
	}
	e, err := tool.New(def, func(_ context.Context, _ tool.Call, a echoArgs) (tool.Result, error) {
		if runs != nil {
			runs.Add(1)
		}
		return tool.OK("echo: "+a.Text, tool.Text(a.Text)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

type raw struct {
	def tool.Definition
	run func(context.Context, tool.Call) (tool.Result, error)
}

func (r *raw) Definition() tool.Definition { return r.def }
func (r *raw) Invoke(ctx context.Context, c tool.Call) (tool.Result, error) {
	return r.run(ctx, c)
}

func rawTool(name string, run func(context.Context, tool.Call) (tool.Result, error)) *raw {
	return &raw{tool.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Kind: tool.KindRead}, run}
}

func setup(t *testing.T, cfg tool.DispatcherConfig, tools ...tool.Tool) (*tool.Dispatcher, *tool.Registry) {
	t.Helper()
	reg := new(tool.Registry)
	if err := reg.Register(tools...); err != nil {
		t.Fatal(err)
	}
	cfg.Registry = reg
	d := tool.NewDispatcher(cfg)
	d.SetWitness(func(tool.Change) (func() error, error) { return func() error { return nil }, nil })
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("Close of the dispatcher = %v, want no error", err)
		}
	})
	return d, reg
}

func call(d *tool.Dispatcher, reg *tool.Registry, name, args string) tool.Result {
	return d.Call(context.Background(), reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, ID: "c1", Name: name, Args: json.RawMessage(args), SessionID: "s", Origin: tool.OriginLoop})
}

type approver struct {
	answer error
	briefs []string
}

func (a *approver) Approve(_ context.Context, _ tool.Call, _ tool.Definition, brief string) error {
	a.briefs = append(a.briefs, brief)
	return a.answer
}

// Y-118, Y-119, S-41, S-42, S-45, S-46: declaration, registration and the
// function spec.
func TestTypedToolAndFunctionSpec(t *testing.T) {
	_, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{RequiresApproval: true}, nil))
	defs := reg.Snapshot().Definitions()
	if len(defs) != 1 || defs[0].Name != "echo" || !defs[0].RequiresApproval || defs[0].Kind != tool.KindRead {
		t.Fatalf("definitions: %+v", defs)
	}
	spec, err := json.Marshal(reg.Snapshot().FunctionSpecs()[0])
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name, Description string
		Parameters        struct {
			Type       string
			Required   []string
			Properties map[string]struct{ Type, Description string }
		}
	}
	if err := json.Unmarshal(spec, &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "echo" || got.Description != "Echoes." || got.Parameters.Type != "object" ||
		len(got.Parameters.Required) != 1 || got.Parameters.Properties["text"].Description != "what to echo" {
		t.Errorf("function spec: %s", spec)
	}
	if err := reg.Register(echo(t, tool.Definition{}, nil)); err == nil {
		t.Error("a second tool of the same name was registered")
	}
}

// Y-120, Y-122: briefs are one short line, blocks say what they are.
func TestBriefAndBlocks(t *testing.T) {
	long := strings.Repeat("é ", 100)
	for _, r := range []tool.Result{tool.OK(long), tool.Fail(tool.ErrInternal, "a\nb %s", long)} {
		if n := len([]rune(r.Brief)); n > 80 || strings.ContainsAny(r.Brief, "\n") {
			t.Errorf("brief has %d characters: %q", n, r.Brief)
		}
	}
	data, err := json.Marshal([]tool.Block{tool.Text("a"), tool.Markdown("b"), tool.JSON(json.RawMessage(`{"c":1}`))})
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"kind":"text","text":"a"},{"kind":"markdown","markdown":"b"},{"kind":"json","data":{"c":1}}]`; string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
}

// Y-121: nothing in a block acts as markup.
func TestHTMLIsEscaped(t *testing.T) {
	for _, b := range []tool.Block{
		tool.Text(`<script>alert(1)</script>`), tool.Markdown(`<img src=x onerror=alert(1)>`),
		tool.JSON(json.RawMessage(`"</pre><script>"`)), {Kind: `"><script>`, Text: "x"},
	} {
		if got := b.HTML(); strings.Count(got, "<") != 2 || strings.Contains(got, "<script") || strings.Contains(got, "<img") {
			t.Errorf("%+v renders as %s", b, got)
		}
	}
}

// Y-125, Y-126, Y-127, Y-128 and what must not run.
func TestDispatcherStages(t *testing.T) {
	var runs atomic.Int32
	ap := &approver{answer: &tool.RejectedError{Feedback: "not now"}}
	d, reg := setup(t, tool.DispatcherConfig{Approver: ap},
		echo(t, tool.Definition{}, &runs),
		echo(t, tool.Definition{Name: "guarded", RequiresApproval: true}, &runs),
		echo(t, tool.Definition{Name: "writer", Kind: tool.KindWrite}, &runs),
		echo(t, tool.Definition{Name: "strange", Kind: "teleport"}, &runs),
		rawTool("panics", func(context.Context, tool.Call) (tool.Result, error) { panic("secret internals") }),
		rawTool("errs", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("disk on fire")
		}),
	)
	for _, tc := range []struct {
		name, tool, args string
		want             tool.ErrorKind
		runs             int32
	}{
		{"fine", "echo", `{"text":"hi"}`, "", 1},
		{"unknown name (Y-125)", "nope", `{}`, tool.ErrNotFound, 0},
		{"missing member (Y-126)", "echo", `{}`, tool.ErrValidation, 0},
		{"no arguments at all (Y-126)", "echo", ``, tool.ErrValidation, 0},
		{"wrong type (Y-126)", "echo", `{"text":1}`, tool.ErrValidation, 0},
		{"unknown member (Y-126)", "echo", `{"text":"x","y":1}`, tool.ErrValidation, 0},
		{"member twice (R13)", "echo", `{"text":"x","text":"y"}`, tool.ErrValidation, 0},
		{"no object (Y-126)", "echo", `[1]`, tool.ErrValidation, 0},
		{"no JSON (Y-126)", "echo", `{"text":`, tool.ErrValidation, 0},
		{"refused approval (Y-127)", "guarded", `{"text":"x"}`, tool.ErrRejected, 0},
		{"writes ask by default", "writer", `{"text":"x"}`, tool.ErrRejected, 0},
		{"unknown kind counts as exec", "strange", `{"text":"x"}`, tool.ErrRejected, 0},
		{"panic (Y-128)", "panics", `{}`, tool.ErrCrashed, 0},
		{"error", "errs", `{}`, tool.ErrInternal, 0},
	} {
		runs.Store(0)
		res := call(d, reg, tc.tool, tc.args)
		if res.OK != (tc.want == "") || res.ErrorKind != tc.want || runs.Load() != tc.runs {
			t.Errorf("%s: got ok=%v kind=%q runs=%d (%s), want kind=%q runs=%d", tc.name, res.OK, res.ErrorKind, runs.Load(), res.Brief, tc.want, tc.runs)
		}
	}
	if res := call(d, reg, "guarded", `{"text":"x"}`); !strings.Contains(res.Text(), "not now") {
		t.Errorf("the feedback is lost: %q", res.Text())
	}
	if res := call(d, reg, "panics", `{}`); strings.Contains(res.Text(), "secret") {
		t.Errorf("a panic's value reaches the model: %q", res.Text())
	}
	var detail struct {
		Errors []tool.Violation `json:"errors"`
	}
	if err := json.Unmarshal(call(d, reg, "echo", `{"text":1,"n":"x"}`).Detail, &detail); err != nil || len(detail.Errors) != 2 { // Y-126
		t.Errorf("detail.errors: %+v, %v", detail, err)
	}
	ap.answer = nil
	runs.Store(0)
	if res := call(d, reg, "guarded", `{"text":"x"}`); !res.OK || runs.Load() != 1 {
		t.Errorf("an approved call did not run: %+v", res)
	}
}

type briefer struct{ *raw }

func (briefer) ApprovalBrief(tool.Call) string { return strings.Repeat("delete everything ", 20) }

// Y-131.
func TestApprovalBriefCanBeWorded(t *testing.T) {
	ap := &approver{}
	b := briefer{rawTool("rm", func(context.Context, tool.Call) (tool.Result, error) { return tool.OK("done"), nil })}
	b.def.RequiresApproval = true
	d, reg := setup(t, tool.DispatcherConfig{Approver: ap}, b)
	call(d, reg, "rm", `{}`)
	if len(ap.briefs) != 1 || !strings.HasPrefix(ap.briefs[0], "delete everything") || len([]rune(ap.briefs[0])) > 80 {
		t.Errorf("briefs: %q", ap.briefs)
	}
}

// Nobody to ask means deny.
func TestNoApproverDenies(t *testing.T) {
	var runs atomic.Int32
	d, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{RequiresApproval: true}, &runs))
	if res := call(d, reg, "echo", `{"text":"x"}`); res.ErrorKind != tool.ErrRejected || runs.Load() != 0 {
		t.Errorf("got %+v after %d runs", res, runs.Load())
	}
}

type hook func(tool.Call) (tool.Verdict, error)

func (h hook) PreToolCall(_ context.Context, c tool.Call, _ tool.Definition) (tool.Verdict, error) {
	return h(c)
}

// R11: the strictest verdict wins and a failing hook denies.
func TestHooks(t *testing.T) {
	say := func(dec tool.Decision) hook {
		return func(tool.Call) (tool.Verdict, error) { return tool.Verdict{Decision: dec, Reason: "because"}, nil }
	}
	for _, tc := range []struct {
		name  string
		hooks []hook
		runs  int32
	}{
		{"no opinion leaves it to the policy", []hook{say(tool.Abstain)}, 1},
		{"deny beats allow", []hook{say(tool.Allow), say(tool.Deny)}, 0},
		{"allow after deny does not help", []hook{say(tool.Deny), say(tool.Allow)}, 0},
		{"ask with nobody to ask denies", []hook{say(tool.Allow), say(tool.Ask)}, 0},
		{"an error denies", []hook{func(tool.Call) (tool.Verdict, error) { return tool.Verdict{Decision: tool.Allow}, errors.New("x") }}, 0},
		{"a panic denies", []hook{func(tool.Call) (tool.Verdict, error) { panic("x") }}, 0},
	} {
		var runs atomic.Int32
		d, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{}, &runs))
		for _, h := range tc.hooks {
			d.AddHook(h)
		}
		res := call(d, reg, "echo", `{"text":"x"}`)
		if runs.Load() != tc.runs || (tc.runs == 0 && res.ErrorKind != tool.ErrRejected) {
			t.Errorf("%s: %d runs, %+v", tc.name, runs.Load(), res)
		}
	}
}

func TestTimeoutAndCancelAreTwoThings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stubborn := rawTool("stubborn", func(context.Context, tool.Call) (tool.Result, error) { <-release; return tool.OK("late"), nil })
		stubborn.def.Timeout = 5 * time.Second
		d, reg := setup(t, tool.DispatcherConfig{}, stubborn)
		start := time.Now()
		if res := call(d, reg, "stubborn", `{}`); res.ErrorKind != tool.ErrTimeout || time.Since(start) != 5*time.Second {
			t.Errorf("got %+v after %v", res, time.Since(start))
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, nil)
		time.AfterFunc(time.Second, cancel)
		if res := d.Call(ctx, reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, Name: "stubborn", Origin: tool.OriginLoop}); res.ErrorKind != tool.ErrCancelled {
			t.Errorf("got %+v, want the error kind %s", res, tool.ErrCancelled)
		}
		close(release)
	})
}

// F-13: a pinned view does not move; a generation tells changes apart.
func TestSnapshotsAreImmutableAndPinned(t *testing.T) {
	_, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{}, nil))
	seen := []uint64{}
	stop := reg.Watch(func(g uint64) { seen = append(seen, g) })
	snap, release := reg.Pin("s")
	again, release2 := reg.Pin("s")
	if errs := reg.Replace("p", []tool.Provided{{Tool: echo(t, tool.Definition{Name: "p__x"}, nil)}}); errs != nil {
		t.Fatal(errs)
	}
	if snap.Len() != 1 || again != snap || reg.For("s") != snap {
		t.Error("a pinned view has changed")
	}
	if reg.For("other").Len() != 2 || reg.Snapshot().Generation() != snap.Generation()+1 {
		t.Errorf("the new view: %d tools, generation %d", reg.For("other").Len(), reg.Snapshot().Generation())
	}
	release()
	release()
	if reg.For("s") != snap {
		t.Error("the inner release ended the outer pin")
	}
	release2()
	if reg.For("s").Len() != 2 {
		t.Error("the next turn does not see the change")
	}
	stop()
	reg.Replace("p", nil)
	if len(seen) != 1 || seen[0] != snap.Generation()+1 {
		t.Errorf("watched generations: %v", seen)
	}
	if e := reg.Replace("p", nil); e != nil || reg.Snapshot().Generation() != snap.Generation()+2 {
		t.Error("an unchanged replacement made a new generation")
	}
}

// UP-07: nobody shadows a built-in or another provider's tool; the rest of the
// provider's tools stay usable.
func TestShadowingIsRefused(t *testing.T) {
	_, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{}, nil))
	good := echo(t, tool.Definition{Name: "good"}, nil)
	errs := reg.Replace("evil", []tool.Provided{{Tool: echo(t, tool.Definition{}, nil)}, {Tool: good}, {Tool: rawTool("bad name\n", nil)}})
	if len(errs) != 2 {
		t.Errorf("errors: %v", errs)
	}
	e, _ := reg.Snapshot().Lookup("echo")
	if e.Def.Identity.Provider != "" {
		t.Error("a built-in tool was shadowed")
	}
	if e, ok := reg.Snapshot().Lookup("good"); !ok || e.Def.Identity.String() != "evil/good" {
		t.Error("the fit tool was not registered")
	}
	if errs := reg.Replace("other", []tool.Provided{{Tool: good}}); len(errs) != 1 || !strings.Contains(errs[0].Error(), "evil/good") {
		t.Errorf("stealing another provider's name: %v", errs)
	}
}

// UP-08.
func TestSchemaBombsAreRefused(t *testing.T) {
	expo := `{"$defs":{"a0":{"type":"string"}`
	for i := 1; i < 30; i++ {
		expo += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1)
	}
	expo += `},"$ref":"#/$defs/a29"}`
	for _, tc := range []struct {
		name, schema string
		ok           bool
	}{
		{"plain", `{"type":"object"}`, true},
		{"recursive", `{"type":"object","properties":{"child":{"$ref":"#"}}}`, true},
		{"mutually recursive", `{"$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"properties":{"a":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`, true},
		{"remote reference", `{"$ref":"http://127.0.0.1:1/x.json"}`, false},
		{"file reference", `{"properties":{"x":{"$ref":"file:///etc/passwd"}}}`, false},
		{"dynamic remote reference", `{"$dynamicRef":"other.json#x"}`, false},
		{"deep", strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40), false},
		{"exponential", expo, false},
		{"wide", `{"enum":[` + strings.Repeat(`{},`, 1000) + `{}]}`, false},
		{"large", `{"description":"` + strings.Repeat("x", tool.MaxSchemaBytes) + `"}`, false},
		{"boolean", `true`, false},
		{"no JSON", `{`, false},
	} {
		start := time.Now()
		if err := tool.CheckSchema(json.RawMessage(tc.schema)); (err == nil) != tc.ok {
			t.Errorf("%s: got %v; want no error: %v", tc.name, err, tc.ok)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s took %v", tc.name, d)
		}
	}
	// A schema that is refused on compile fails its calls and nothing else.
	bad := rawTool("bad", func(context.Context, tool.Call) (tool.Result, error) { return tool.OK("ran"), nil })
	bad.def.InputSchema = json.RawMessage(`{"type":"no-such-type"}`)
	d, reg := setup(t, tool.DispatcherConfig{}, bad)
	if res := call(d, reg, "bad", `{}`); res.ErrorKind != tool.ErrInternal {
		t.Errorf("got %+v, want the error kind %s", res, tool.ErrInternal)
	}
}

// F-17, F-18: bounded to the model, never lost.
func TestLongResultsAreBoundedAndKept(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	store := tool.NewStore(root)
	text := strings.Repeat("0123456789ä", 20_000)
	big := rawTool("big", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{OK: true, Display: []tool.Block{tool.Text(text)}, Structured: json.RawMessage(`"` + text + `"`)}, nil
	})
	reader, err := tool.NewReadArtifact(store)
	if err != nil {
		t.Fatal(err)
	}
	d, reg := setup(t, tool.DispatcherConfig{Artifacts: store}, big, reader)
	res := call(d, reg, "big", `{}`)
	if n := len(res.Text()) + len(res.Structured); n > tool.MaxModelText+1024 {
		t.Errorf("%d bytes reach the model", n)
	}
	if !strings.HasPrefix(res.Text(), "0123456789ä") || !strings.Contains(res.Text(), fmt.Sprintf("[truncated: %d bytes in all", 2*len(text)+3)) {
		t.Errorf("head or mark is missing: %.100q", res.Text())
	}
	if !strings.Contains(res.Text()[60_000:], "456789ä\"") {
		t.Error("the tail is missing")
	}
	if len(res.Artifacts) != 1 {
		t.Fatalf("artifacts: %+v", res.Artifacts)
	}
	var all strings.Builder
	for off := 0; off < len(text); {
		page := call(d, reg, "read_artifact", fmt.Sprintf(`{"id":%q,"offset":%d}`, res.Artifacts[0].ID, off)).Text()
		page, _, _ = strings.Cut(page, "\n\n[bytes")
		off += len(page)
		all.WriteString(page)
	}
	if !strings.HasPrefix(all.String(), text) {
		t.Error("the pages do not add up to the text")
	}
	for _, args := range []string{`{"id":"../../x"}`, `{"id":"art_AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, fmt.Sprintf(`{"id":%q,"offset":-1}`, res.Artifacts[0].ID)} {
		if res := call(d, reg, "read_artifact", args); res.OK {
			t.Errorf("%s was read", args)
		}
	}
	if res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, Name: "read_artifact", SessionID: "other", Args: json.RawMessage(fmt.Sprintf(`{"id":%q}`, res.Artifacts[0].ID)), Origin: tool.OriginLoop}); res.OK {
		t.Error("another session read the artifact")
	}
	exact := rawTool("exact", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.OK("", tool.Text(strings.Repeat("x", tool.MaxModelText))), nil
	})
	if err := reg.Register(exact); err != nil {
		t.Fatal(err)
	}
	if res := call(d, reg, "exact", `{}`); len(res.Artifacts) != 0 {
		t.Error("a result of exactly the limit was cut")
	}
}

func TestStoreBounds(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := tool.NewStore(root)
	huge := make([]byte, tool.MaxArtifact+1)
	n := 0
	for ; n < 100; n++ {
		a, err := s.Put(tool.Call{SessionID: "_bridge:x", ID: "c"}, "text/plain", huge)
		if err != nil {
			break
		}
		if a.Size != tool.MaxArtifact || a.Full != tool.MaxArtifact+1 {
			t.Fatalf("stored %d of %d", a.Size, a.Full)
		}
	}
	if n != tool.MaxSessionStore/tool.MaxArtifact {
		t.Errorf("the session took %d artifacts of 16 MiB, want %d", n, tool.MaxSessionStore/tool.MaxArtifact)
	}
	if _, err := tool.NewStore(root).Put(tool.Call{SessionID: "_bridge:x", ID: "c"}, "text/plain", huge); err == nil {
		t.Error("a new store forgot what is used")
	}
}

// Native calls get the provider's bytes, and neither validation nor bounds of
// the model's path touch them.
func TestNativeCallsPassThrough(t *testing.T) {
	body, err := jsonrpc.ParseObject([]byte(`{"content":[{"type":"future","x":123456789012345678901}]}`))
	if err != nil {
		t.Fatal(err)
	}
	n := rawTool("p__n", func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{OK: true, Native: &tool.NativeResult{Result: body}}, nil
	})
	n.def.InputSchema = json.RawMessage(`{"type":"object","required":["x"]}`)
	reg := new(tool.Registry)
	reg.Replace("p", []tool.Provided{{Tool: n}})
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})
	res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, Name: "p__n", Origin: tool.OriginMCP, Native: &tool.NativeCall{Protocol: "mcp"}})
	if res.Native == nil || !bytes.Equal(res.Native.Result.Raw(), body.Raw()) {
		t.Errorf("got %+v, want the native result %s", res, body.Raw())
	}
	if res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, Name: "p__n", Origin: tool.OriginLoop}); res.ErrorKind != tool.ErrValidation {
		t.Errorf("a call of the loop was not validated: %+v", res)
	}
	n.def.Validate = true
	n2 := *n
	reg.Replace("p", []tool.Provided{{Tool: &n2}})
	if res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, Name: "p__n", Origin: tool.OriginMCP, Native: &tool.NativeCall{}}); res.ErrorKind != tool.ErrValidation {
		t.Errorf("validate = true did not validate: %+v", res)
	}
}

// terminals collects the terminal events of tool calls.
type terminals struct {
	mu  sync.Mutex
	evs []event.Event
}

func serve(t *testing.T, d *tool.Dispatcher) (*bus.Bus, *terminals) {
	t.Helper()
	b := bus.New(bus.Config{})
	got := new(terminals)
	if _, err := b.Subscribe(bus.SubscribeOptions{Name: "t"}, []string{"tool.call.result", "tool.error"}, func(_ context.Context, ev event.Event) error {
		got.mu.Lock()
		defer got.mu.Unlock()
		got.evs = append(got.evs, ev)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	stop, err := d.Serve(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close of the bus = %v, want no error", err)
		}
	})
	return b, got
}

// Y-124…Y-130, S-43, S-44: on the bus, each v1 request ends in exactly one
// terminal event that answers it by request_id.
func TestServeOnTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := setup(t, tool.DispatcherConfig{Agent: agent}, echo(t, tool.Definition{}, nil), echo(t, tool.Definition{Name: "guarded", RequiresApproval: true}, nil),
			rawTool("panics", func(context.Context, tool.Call) (tool.Result, error) { panic("x") }))
		b, got := serve(t, d)
		ask := func(name, args, version string) event.Event {
			t.Helper()
			got.mu.Lock()
			got.evs = nil
			got.mu.Unlock()
			req, err := bus.Publish(b.Kernel(), event.ToolCallRequest, "s", event.ToolRequest{ID: "c", Name: name, Args: json.RawMessage(args), SchemaVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got.mu.Lock()
			defer got.mu.Unlock()
			if version != "v1" {
				if len(got.evs) != 0 { // Y-124, Y-130
					t.Errorf("a request with schema version %q was answered: %v", version, got.evs)
				}
				return event.Event{}
			}
			if len(got.evs) != 1 {
				t.Fatalf("%s: %d terminal events, want 1", name, len(got.evs))
			}
			if ref := got.evs[0].Payload.(event.Responder).RequestRef(); ref != req.ID { // Y-129
				t.Errorf("%s: request_id %q, want %q", name, ref, req.ID)
			}
			return got.evs[0]
		}
		ask("echo", `{"text":"x"}`, "")
		ask("echo", `{"text":"x"}`, "v2")
		res := ask("echo", `{"text":"hi"}`, "v1").Payload.(event.ToolResult)
		if want := `{"ok":true,"brief":"echo: hi","display":[{"kind":"text","text":"hi"}]}`; !res.OK || string(res.Envelope) != want { // Y-129
			t.Errorf("envelope: %s", res.Envelope)
		}
		for name, want := range map[string]event.ToolErrorKind{"nope": event.ToolNotFound, "echo": event.ToolValidation, "guarded": event.ToolRejected} { // Y-125, Y-126, Y-127
			args := `{"text":"x"}`
			if name == "echo" {
				args = `{}`
			}
			te, ok := ask(name, args, "v1").Payload.(event.ToolError)
			if !ok || te.Kind != want || te.ID != "c" || te.Brief == "" {
				t.Errorf("%s: got %+v; want the kind %s of the call c, with a brief", name, te, want)
			}
			if name == "echo" && !strings.Contains(string(te.Detail), `"errors":[{`) {
				t.Errorf("detail: %s", te.Detail)
			}
		}
		if res := ask("panics", `{}`, "v1").Payload.(event.ToolResult); res.OK || !strings.Contains(string(res.Envelope), `"kind":"crashed"`) { // Y-123, Y-128
			t.Errorf("got %s, want it failed as crashed", res.Envelope)
		}
	})
}

// A call that outlives the bus's handler deadline is not a handler failure (Y-166
// concerns on_event only).
func TestLongCallsDoNotBlockTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := rawTool("slow", func(ctx context.Context, c tool.Call) (tool.Result, error) {
			c.Progress(tool.Progress{Progress: 1, Message: "half"})
			select {
			case <-time.After(100 * time.Second):
			case <-ctx.Done():
			}
			return tool.OK("done"), ctx.Err()
		})
		d, _ := setup(t, tool.DispatcherConfig{Agent: agent}, slow, echo(t, tool.Definition{}, nil))
		b, got := serve(t, d)
		for _, name := range []string{"slow", "echo"} {
			if _, err := bus.Publish(b.Kernel(), event.ToolCallRequest, "s", event.ToolRequest{ID: name, Name: name, Args: json.RawMessage(`{"text":"x"}`), SchemaVersion: "v1"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Second)
		got.mu.Lock()
		if len(got.evs) != 1 || got.evs[0].Payload.(event.ToolResult).ID != "echo" {
			t.Errorf("after 50 s: %v", got.evs)
		}
		got.mu.Unlock()
		time.Sleep(60 * time.Second)
		got.mu.Lock()
		defer got.mu.Unlock()
		if len(got.evs) != 2 || !got.evs[1].Payload.(event.ToolResult).OK {
			t.Errorf("after 110 s: %v", got.evs)
		}
	})
}

// Y-130, Y-132: a name claimed twice is warned about, whoever comes first.
func TestLegacyNamesAreWarnedAbout(t *testing.T) {
	for _, legacyFirst := range []bool{true, false} {
		var log bytes.Buffer
		reg := &tool.Registry{Log: zerolog.New(&log)}
		if legacyFirst {
			reg.DeclareLegacy("tool-bash", "echo")
		}
		if err := reg.Register(echo(t, tool.Definition{}, nil)); err != nil {
			t.Fatal(err)
		}
		if !legacyFirst {
			reg.DeclareLegacy("tool-bash", "echo")
		}
		reg.DeclareLegacy("tool-bash", "unrelated")
		if got := log.String(); strings.Count(got, `"level":"warn"`) != 1 || !strings.Contains(got, "tool-bash") {
			t.Errorf("legacy first=%v: log %q", legacyFirst, got)
		}
	}
}

// native returns what makes a call of a tool that answers in its own protocol.
func native(tb testing.TB) func() tool.Result {
	tb.Helper()
	reg := new(tool.Registry)
	body, err := jsonrpc.ParseObject([]byte(`{"content":[]}`))
	if err != nil {
		tb.Fatal(err)
	}
	reg.Replace("p", []tool.Provided{{Tool: &obedient{rawTool("p__n", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{OK: true, Native: &tool.NativeResult{Result: body}}, nil
	})}}})
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})
	snap := reg.Snapshot()
	native := &tool.NativeCall{Protocol: "mcp"}
	return func() tool.Result {
		return d.Call(context.Background(), snap, tool.Call{Caller: tool.LocalOwner, Name: "p__n", Origin: tool.OriginMCP, Native: native})
	}
}

// A call of a tool that obeys its context is not moved to the heap: what is allocated is
// mostly its deadline.
func TestNativeCallsStayOffTheHeap(t *testing.T) {
	call := native(t)
	if res := call(); !res.OK {
		t.Fatalf("got %+v, want OK", res)
	}
	if got := testing.AllocsPerRun(100, func() { call() }); got > 6 {
		t.Errorf("a call allocates %v times, want at most 6", got)
	}
}

func BenchmarkCallNative(b *testing.B) {
	call := native(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

type obedient struct{ *raw }

func (obedient) ObeysContext() {}

func agent(string) tool.Caller { return tool.Caller{Principal: "agent:test"} }
