package sessions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tools is a plugin with a tool that writes, one that reads, and one that takes its
// time.
type tools struct {
	mu    sync.Mutex
	wrote []string
}

func (*tools) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "test-tools", Version: "1.0.0", Category: plugin.Tool}
}
func (*tools) Subscriptions() []string                                    { return nil }
func (*tools) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }
func (*tools) OnUnload(context.Context, plugin.Context) error             { return nil }
func (p *tools) OnLoad(_ context.Context, c plugin.Context) error {
	type args struct {
		Text string `json:"text"`
	}
	write, err := tool.New(tool.Definition{Name: "write", Description: "Writes", Kind: tool.KindWrite}, func(_ context.Context, _ tool.Call, a args) (tool.Result, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wrote = append(p.wrote, a.Text)
		return tool.OK("written", tool.Text("wrote "+a.Text)), nil
	})
	if err != nil {
		return err
	}
	read, err := tool.New(tool.Definition{Name: "read", Description: "Reads", Kind: tool.KindRead}, func(_ context.Context, call tool.Call, a args) (tool.Result, error) {
		if call.Progress != nil {
			call.Progress(tool.Progress{Progress: 1, Message: "half-way"})
		}
		return tool.OK("read", tool.Text("read "+a.Text)), nil
	})
	if err != nil {
		return err
	}
	wait, err := tool.New(tool.Definition{Name: "wait", Description: "Waits", Kind: tool.KindRead}, func(ctx context.Context, _ tool.Call, _ args) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	return errors.Join(err, c.RegisterTool(write), c.RegisterTool(read), c.RegisterTool(wait))
}

// world is the API on a kernel of its own.
type world struct {
	t     testing.TB
	dir   string
	ws    string
	k     *kernel.Kernel
	s     *sessions.Service
	tools *tools
	http  *httptest.Server
	who   auth.Principal
	edits []func(*sessions.Config)
	stop  func()

	lenient bool            // a tape may be damaged
	begins  func(id string) // is called before turns of sessions without a strategy; optional
	owner   session.Owner
}

func newWorld(t testing.TB, script string, edits ...func(*sessions.Config)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), ws: t.TempDir(), who: auth.LocalOwner, edits: edits}
	w.start(script)
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start(script string) {
	t := w.t
	t.Helper()
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	w.k, err = kernel.Open(kernel.Config{Data: root, Settings: settings, Workspace: w.ws, Owner: w.owner, Version: "test", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	w.tools = new(tools)
	if script != "" {
		if err := settings.Set("plugin.llm_echo.script", json.RawMessage(script)); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := root.OpenRoot("sessions")
	if err != nil {
		t.Fatal(err)
	}
	cfg := sessions.Config{
		Root: folder, Bus: w.k.Bus, Sessions: w.k.Sessions, Loop: w.k.Loop, Approvals: w.k.Approvals, Artifacts: w.k.Artifacts,
		Price: func(_ string, u event.Usage) float64 { return float64(u.Total) }, HasStrategy: w.k.Plugins.HasStrategy, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.DebugLevel),
	}
	for _, edit := range w.edits {
		edit(&cfg)
	}
	svc, err := sessions.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.s = svc
	w.k.SetApprovalTimeout(svc.ApprovalTimeout)
	w.k.OnUndriven(func(id string) {
		if w.begins != nil {
			w.begins(id)
		}
		svc.Prepare(id)
	})
	if err := w.k.Start(context.Background(), strategy_react.New(), llm_echo.New(), w.tools); err != nil {
		t.Fatal(err)
	}
	if err := w.k.Resume(context.Background()); err != nil && !w.lenient {
		t.Fatalf("Resume = %v, want no error", err)
	}
	w.http = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		svc.ServeHTTP(rw, r.WithContext(auth.WithPrincipal(r.Context(), w.who)))
	}))
	w.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		svc.Close()
		w.http.CloseClientConnections()
		w.http.Close()
		if err := errors.Join(w.k.Stop(ctx, "test"), folder.Close(), root.Close()); err != nil {
			t.Errorf("Stop of the kernel and Close of its folders = %v, want no error", err)
		}
	})
}

// do sends a request, and decodes a JSON answer.
func (w *world) do(method, path, body string, header ...string) (int, map[string]any) {
	w.t.Helper()
	status, raw, _ := w.raw(method, path, body, header...)
	var out map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			w.t.Fatalf("%s %s = %d %s, %v; want JSON", method, path, status, raw, err)
		}
	}
	if status >= 400 { // every error has the one form
		e, ok := out["error"].(map[string]any)
		if !ok || e["code"] == "" || e["message"] == "" || !strings.HasPrefix(fmt.Sprint(e["request_id"]), "req_") || len(out) != 1 {
			w.t.Errorf("%s %s = %d %s, want an error with a code, a message and a request_id alone", method, path, status, raw)
		}
	}
	return status, out
}

func (w *world) raw(method, path, body string, header ...string) (int, []byte, http.Header) {
	w.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, in)
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body) //nolint:forbidigo // test
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, raw, resp.Header
}

func (w *world) must(method, path, body string, status int) map[string]any {
	w.t.Helper()
	got, out := w.do(method, path, body)
	if got != status {
		w.t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, got, out, status)
	}
	return out
}

// refused wants an error with that code.
func (w *world) refused(method, path, body string, status int, code string) {
	w.t.Helper()
	got, out := w.do(method, path, body)
	e, _ := out["error"].(map[string]any)
	if got != status || e["code"] != code {
		w.t.Errorf("%s %s %.200s: %d %v, want %d %s", method, path, body, got, out, status, code)
	}
}

func (w *world) create(more ...string) string {
	w.t.Helper()
	body := fmt.Sprintf(`{"workspace_path":%q%s}`, w.ws, strings.Join(more, ""))
	return w.must("POST", "/v1/sessions", body, 201)["session_id"].(string)
}

func (w *world) say(id, text string, more ...string) map[string]any {
	w.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.must("POST", "/v1/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%s}]%s}`, quoted, strings.Join(more, "")), 202)
}

// seen is an event as a client gets it.
type seen struct {
	id        string
	TS        string         `json:"ts"`
	SessionID string         `json:"session_id"`
	TurnID    string         `json:"turn_id"`
	Type      string         `json:"type"`
	Data      map[string]any `json:"data"`
	Seq       int64          `json:"seq"`
	Entry     int64          `json:"entry_id"`
}

// follower follows a session's events.
type follower struct {
	t      testing.TB
	cancel context.CancelFunc
	resp   *http.Response
	r      *sse.Reader
}

func (w *world) follow(id string, after string) *follower {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("GET of the events of %s = %s, %v; want status 200 and text/event-stream", id, resp.Status, resp.Header)
	}
	f := &follower{w.t, cancel, resp, sse.NewReader(resp.Body, 8<<20)}
	w.t.Cleanup(f.close)
	return f
}

func (f *follower) close() {
	f.cancel()
	_ = f.resp.Body.Close()
}

func (f *follower) try() (seen, error) {
	for {
		ev, err := f.r.Next()
		if err != nil {
			return seen{}, err
		}
		if len(ev.Data) == 0 {
			continue
		}
		var s seen
		if err := json.Unmarshal(ev.Data, &s); err != nil {
			return seen{}, err
		}
		s.id = ev.ID
		if s.Type != ev.Name {
			return seen{}, fmt.Errorf("%s in an event %s", s.Type, ev.Name)
		}
		return s, nil
	}
}

func (f *follower) next() seen {
	f.t.Helper()
	timer := time.AfterFunc(20*time.Second, f.cancel)
	defer timer.Stop()
	s, err := f.try()
	if err != nil {
		f.t.Fatal("the stream: ", err)
	}
	return s
}

// until reads up to an event of that type.
func (f *follower) until(typ string) []seen {
	f.t.Helper()
	var out []seen
	for {
		s := f.next()
		out = append(out, s)
		if s.Type == typ {
			return out
		}
		if len(out) > 10_000 {
			f.t.Fatal("no ", typ)
		}
	}
}

func types(events []seen) string {
	var out []string
	for _, e := range events {
		if len(out) == 0 || out[len(out)-1] != e.Type || e.Type != "model_output_delta" {
			out = append(out, e.Type)
		}
	}
	return strings.Join(out, " ")
}

// lines reads events.ndjson.
func (w *world) lines(id string) []seen {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, "sessions", id, "events.ndjson"))
	if err != nil {
		w.t.Fatal(err)
	}
	var out []seen
	for line := range bytes.Lines(raw) {
		var s seen
		if err := json.Unmarshal(line, &s); err != nil {
			w.t.Fatalf("a line of events.ndjson = %s, %v; want JSON", line, err)
		}
		out = append(out, s)
	}
	return out
}

// S-1…S-3, S-8, S-9, S-12, S-13, S-16, S-21…S-28, S-31, S-34, S-37, S-39: a session is made, something is
// said, a turn runs, and everything that happens is streamed and written down.
func TestConversation(t *testing.T) {
	w := newWorld(t, "")
	id := w.create(`,"system_prompt":"be brief"`)
	if !strings.HasPrefix(id, "sess_") {
		t.Errorf(`got %v, want id beginning with "sess_"`, id)
	}
	for _, f := range []string{"session.json", "events.ndjson"} {
		if info, err := os.Stat(filepath.Join(w.dir, "sessions", id, f)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v %v, want Perm 0o600", f, info, err)
		}
	}
	f := w.follow(id, "")
	if ev := f.next(); ev.Type != "session_created" || ev.Data["workspace_path"] != w.ws || ev.SessionID != id {
		t.Errorf(`got %+v, want Type "session_created", workspace_path %v, SessionID %v`, ev, w.ws, id)
	}
	res := w.say(id, "hello there", `,"id":"m1"`)
	if res["message_id"] != "m1" || !strings.HasPrefix(fmt.Sprint(res["turn_id"]), "turn_") {
		t.Errorf(`got %v, want message_id "m1", turn_id beginning with "turn_"`, res)
	}
	events := f.until("turn_completed")
	if got := types(events); got != "message_added turn_started model_output_delta model_output_completed message_added turn_completed" {
		t.Errorf(`got %q, want "message_added turn_started model_output_delta model_output_completed message_added turn_completed"`, got)
	}
	text, offset := "", 0
	for _, e := range events {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", e.TS); err != nil || e.SessionID != id || e.TurnID != res["turn_id"] {
			t.Errorf("got %+v, want SessionID %v, TurnID %v", e, id, res["turn_id"])
		}
		if (e.Entry > 0) != (e.id != "" && strings.HasSuffix(e.id, fmt.Sprintf(":%d", e.Seq))) && e.Type != "model_output_delta" {
			t.Errorf("%+v has the id %q", e, e.id)
		}
		if e.Type == "model_output_delta" {
			if e.Data["offset"] != float64(offset) {
				t.Errorf("got %+v, want the offset %d", e, offset)
			}
			text += e.Data["text"].(string)
			offset = len(text)
		}
	}
	if text != "echo: hello there" {
		t.Errorf("the deltas say %q", text)
	}
	msg := events[0].Data["message"].(map[string]any)
	if msg["id"] != "m1" || msg["role"] != "user" || fmt.Sprint(msg["parts"]) != "[map[text:hello there type:text]]" || msg["created_at"] == "" {
		t.Errorf(`got %v, want id "m1", role "user", parts "[map[text:hello there type:text]]", a created_at`, msg)
	}
	st := w.must("GET", "/v1/sessions/"+id, "", 200)
	if st["status"] != "active" || st["state"] != "idle" || st["last_turn_id"] != res["turn_id"] || st["workspace_path"] != w.ws || st["system_prompt"] != "be brief" || st["title"] != "hello there" {
		t.Errorf(`got %v, want status "active", state "idle", last_turn_id %v, workspace_path %v, system_prompt "be brief", title "hello there"`, st, res["turn_id"], w.ws)
	}
	// USE-10: the list says what a session does, too: active is not running.
	if row := w.must("GET", "/v1/sessions", "", 200)["sessions"].([]any)[0].(map[string]any); row["id"] != id || row["status"] != "active" || row["state"] != "idle" {
		t.Errorf("the list says %v, want %s active and idle", row, id)
	}
	usage := st["usage"].(map[string]any)
	if usage["turns"] != 1.0 || usage["steps"] != 1.0 || usage["total"].(float64) <= 0 || usage["cost_usd"] != usage["total"] {
		t.Errorf("got %v, want turns 1.0, steps 1.0, total more than 0, cost_usd %v", usage, usage["total"])
	}
	eventually.True(t, "session.json has the turn", func() bool {
		var kept sessions.Session
		raw, err := os.ReadFile(filepath.Join(w.dir, "sessions", id, "session.json"))
		return err == nil && json.Unmarshal(raw, &kept) == nil && kept.ID == id && kept.Status == "active" && kept.LastTurnID == res["turn_id"] && kept.Usage.Turns == 1 && !kept.CreatedAt.IsZero() && !kept.UpdatedAt.Before(kept.CreatedAt)
	})
	// S-22: every event that was sent is in the file, in order.
	lines := w.lines(id)
	if got := types(lines); got != "session_created "+types(events) {
		t.Errorf("events.ndjson has %s", got)
	}
	// History first, then live: a reader that comes later gets the same.
	again := w.follow(id, "")
	later := again.until("turn_completed")
	if got := types(later); got != "session_created message_added turn_started model_output_completed message_added turn_completed" {
		t.Errorf("history: %s", got)
	}
	w.say(id, "and again")
	if got := types(again.until("turn_completed")); got != types(events) {
		t.Errorf("live: %s", got)
	}
}

// S-5, S-7, S-10, S-11 and the errors of HT-03, HT-14, HT-15.
func TestRequestsAreChecked(t *testing.T) {
	w := newWorld(t, "")
	for name, tt := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no workspace":       {`{}`, 400, "bad_request"},
		"empty workspace":    {`{"workspace_path":""}`, 400, "bad_request"},
		"relative":           {`{"workspace_path":"x/y"}`, 400, "bad_workspace"},
		"not there":          {`{"workspace_path":"/nonexistent/x"}`, 400, "bad_workspace"},
		"a file":             {`{"workspace_path":"/etc/hostname"}`, 400, "bad_workspace"},
		"not JSON":           {`{`, 400, "bad_request"},
		"a list":             {`[]`, 400, "bad_request"},
		"twice":              {`{"workspace_path":"/tmp","workspace_path":"/"}`, 400, "bad_request"},
		"another case":       {`{"Workspace_Path":"/tmp"}`, 400, "bad_request"},
		"unknown member":     {`{"workspace_path":"/tmp","x":1}`, 400, "bad_request"},
		"wrong type":         {`{"workspace_path":7}`, 400, "bad_request"},
		"unknown strategy":   {`{"workspace_path":"/tmp","strategy":"nope"}`, 400, "bad_strategy"},
		"deep":               {strings.Repeat("[", 1000), 400, "bad_request"},
		"trailing":           {`{"workspace_path":"/tmp"} 1`, 400, "bad_request"},
		"too large":          {`{"workspace_path":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "too_large"},
		"far too long a one": {`{"workspace_path":"/` + strings.Repeat("x", 5000) + `"}`, 400, "bad_request"},
	} {
		t.Run(name, func(t *testing.T) { w.refused("POST", "/v1/sessions", tt.body, tt.status, tt.code) })
	}
	if status, out := w.do("POST", "/v1/sessions", `{"workspace_path":"/tmp"}`, "Content-Type", "text/plain"); status != 415 {
		t.Errorf("got %v, %v, want status 415", status, out)
	}
	if status, out := w.do("POST", "/v1/sessions", "x", "Content-Encoding", "gzip"); status != 415 {
		t.Errorf("got %v, %v, want status 415", status, out)
	}
	w.refused("DELETE", "/v1/sessions", "", 405, "method_not_allowed")
	w.refused("GET", "/v1/nothing", "", 404, "not_found")
	w.refused("GET", "/v1/sessions?limit=0", "", 400, "bad_request")
	w.refused("GET", "/v1/sessions?cursor=x", "", 400, "bad_cursor")
	w.refused("GET", "/v1/sessions?x=1", "", 400, "bad_request")
	id := w.create()
	for name, tt := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no role":          {`{"parts":[{"type":"text","text":"x"}]}`, 400, "bad_request"},
		"another role":     {`{"role":"boss","parts":[{"type":"text","text":"x"}]}`, 400, "bad_request"},
		"no parts":         {`{"role":"user"}`, 400, "bad_request"},
		"none":             {`{"role":"user","parts":[]}`, 400, "bad_request"},
		"empty":            {`{"role":"user","parts":[{"type":"text","text":" "}]}`, 400, "bad_part"},
		"another part":     {`{"role":"user","parts":[{"type":"video","text":"x"}]}`, 400, "bad_request"},
		"no attachment":    {`{"role":"user","parts":[{"type":"image","ref":"attachments/none.png"}]}`, 400, "bad_part"},
		"traversal":        {`{"role":"user","parts":[{"type":"image","ref":"attachments/../session.json"}]}`, 400, "bad_part"},
		"absolute":         {`{"role":"user","parts":[{"type":"file","ref":"/etc/passwd"}]}`, 400, "bad_part"},
		"text with a ref":  {`{"role":"user","parts":[{"type":"text","text":"x","ref":"attachments/x"}]}`, 400, "bad_part"},
		"long":             {`{"role":"user","parts":[{"type":"text","text":"` + strings.Repeat("x", 300<<10) + `"}]}`, 413, "too_large"},
		"bad id":           {`{"role":"user","id":"../x","parts":[{"type":"text","text":"x"}]}`, 400, "bad_request"},
		"bad delivery":     {`{"role":"user","delivery":"x","parts":[{"type":"text","text":"x"}]}`, 400, "bad_request"},
		"guards nothing":   {`{"role":"user","expected_turn_id":"turn_x","parts":[{"type":"text","text":"x"}]}`, 400, "bad_request"},
		"a turn of system": {`{"role":"system","auto_run":true,"parts":[{"type":"text","text":"x"}]}`, 400, "bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			w.refused("POST", "/v1/sessions/"+id+"/messages", tt.body, tt.status, tt.code)
		})
	}
	if n := len(w.must("GET", "/v1/sessions/"+id+"/messages", "", 200)["messages"].([]any)); n != 0 {
		t.Errorf("%d messages were taken", n)
	}
}

// HT-09, S-8: an id that cannot be one, and one of nobody, are the same on every
// resource; nothing outside is reached.
func TestUnknownSessions(t *testing.T) {
	w := newWorld(t, "")
	ids := []string{"sess_none", "..%2f..%2fetc", "%2e%2e", "kernel", "_bridge:x", strings.Repeat("x", 8<<10), "a%00b", "a%0ab", "%F0%9F%92%A9"}
	for _, id := range ids {
		for _, r := range []string{
			"GET ", "GET /snapshot", "GET /messages", "GET /turns", "GET /events", "GET /queue", "GET /approvals", "GET /export", "GET /attachments/x.png", "GET /artifacts/art_AAAAAAAAAAAAAAAAAAAAAAAAAA",
			"POST /cancel", "POST /turns/turn_x/retry", "POST /fork", "POST /reset", "POST /archive", "POST /close",
		} {
			method, sub, _ := strings.Cut(r, " ")
			status, out := w.do(method, "/v1/sessions/"+id+sub, "")
			e, _ := out["error"].(map[string]any)
			message, _ := e["message"].(string)
			if status != 404 || e["code"] != "not_found" || !strings.HasPrefix(message, `session "`) || !strings.HasSuffix(message, `" not found`) || len(message) > 500 {
				t.Errorf("%s %s of %.40s: %d %v", method, sub, id, status, out)
			}
		}
		for sub, body := range map[string]string{"/messages": `{"role":"user","parts":[{"type":"text","text":"x"}]}`, "/approve": `{"tool_call_id":"x","action":"approve"}`} {
			w.refused("POST", "/v1/sessions/"+id+sub, body, 404, "not_found")
		}
	}
}
