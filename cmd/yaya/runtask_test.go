package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// given holds the result of a task.
type given struct {
	Session string  `json:"session_id"`
	Text    string  `json:"text"`
	Steps   int     `json:"steps"`
	Cost    float64 `json:"cost_usd"`

	all string // the texts of the content
}

// tasker is a client on the official SDK that gives tasks.
type tasker struct {
	t     *testing.T
	s     *sdk.ClientSession
	lines chan string                                         // of progress
	asked chan string                                         // what it was asked
	says  func(*sdk.ElicitRequest) (*sdk.ElicitResult, error) // nil for one that cannot be asked
}

// tasker connects a client; version is the one of the protocol, "" for the newest.
func (b *box) tasker(url, version string, says func(*sdk.ElicitRequest) (*sdk.ElicitResult, error), over http.RoundTripper) *tasker {
	b.t.Helper()
	c := &tasker{t: b.t, lines: make(chan string, 256), asked: make(chan string, 64), says: says}
	o := &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		c.lines <- r.Params.Message
	}}
	if says != nil {
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			c.asked <- r.Params.Message
			return says(r)
		}
	}
	hc := &http.Client{Transport: http.DefaultTransport}
	if over != nil {
		hc.Transport = over
	}
	var err error
	c.s, err = sdk.NewClient(&sdk.Implementation{Name: "tasker", Version: "1"}, o).Connect(b.t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: hc, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.s.Close() })
	return c
}

// run gives a task and waits for its end.
func (c *tasker) run(ctx context.Context, args map[string]any) (given, error) {
	c.t.Helper()
	p := &sdk.CallToolParams{Name: "yaya_run", Arguments: args}
	p.SetProgressToken("p")
	r, err := c.s.CallTool(ctx, p)
	if err != nil {
		return given{}, err
	}
	var out given
	for _, part := range r.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			out.all += text.Text + "\n"
		}
	}
	if r.IsError {
		return out, errors.New(out.all)
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil || out.Session == "" {
		c.t.Fatalf("the structured result is %s, %v; want a session", raw, err)
	}
	return out, nil
}

func (c *tasker) must(args map[string]any) given {
	c.t.Helper()
	out, err := c.run(c.t.Context(), args)
	if err != nil {
		c.t.Fatalf("yaya_run(%v) = %v, want no error", args, err)
	}
	return out
}

// line waits for a line of progress.
func (c *tasker) line() string {
	c.t.Helper()
	select {
	case line := <-c.lines:
		return line
	case <-time.After(eventually.Limit):
		c.t.Fatal("no more progress came")
		return ""
	}
}

func (c *tasker) tools() []string {
	c.t.Helper()
	return strings.Fields(toolNames(c.t, c.s))
}

func approves(*sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
}

// withToken is a client with a lasting token.
type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(r)
}

// as is the box of a subtest.
func (b *box) as(t *testing.T) *box {
	its := *b
	its.t = t
	return &its
}

var taskEras = map[string]string{"legacy": "2025-11-25", "modern": ""}

// MIS-6: a client gives a task to an agent, follows what it does, gets its last message, and goes
// on in the same conversation, which everybody sees who sees sessions.
func TestRunTask(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.cwd = b.workspace()
	b.scenarios(
		callsFor("look", map[string]any{"name": "read_file", "args": map[string]any{"path": "a.txt"}}),
		callsFor("again", map[string]any{"name": "yaya_run", "args": map[string]any{"prompt": "look"}}),
	)
	b.serve()
	for era, version := range taskEras {
		t.Run(era, func(t *testing.T) {
			b := b.as(t)
			c := b.tasker(b.url(), version, nil, nil)
			if !slices.Contains(c.tools(), "yaya_run") {
				t.Fatalf("tools are %v, want yaya_run among them", c.tools())
			}
			got := c.must(map[string]any{"prompt": "look at a.txt"})
			if got.Text != "done" || got.Steps != 2 || !strings.Contains(got.all, "done") || !strings.Contains(got.all, got.Session) {
				t.Errorf("got %+v, want the agent's text after two steps, and the session", got)
			}
			if line := c.line(); !strings.HasPrefix(line, "read_file") || !strings.Contains(line, "a.txt") {
				t.Errorf("progress = %q, want the call of read_file", line)
			}
			if _, state := b.v1("GET", "/sessions/"+got.Session, ""); state["workspace_path"] != b.cwd {
				t.Errorf("the session is %v, want one in %s", state, b.cwd)
			}
			// An agent has no such tool: tasks do not lead to tasks here.
			more := c.must(map[string]any{"prompt": "again", "session": got.Session})
			if more.Session != got.Session {
				t.Errorf("it went on in %s, want %s", more.Session, got.Session)
			}
			if said := b.exported(got.Session); !strings.Contains(said, `unknown tool`) || !strings.Contains(said, "look at a.txt") || !strings.Contains(said, "one") {
				t.Errorf("the session is %s, want the first task, the file, and a refused yaya_run", said)
			}
		})
	}
}

// exported is a session's tape.
func (b *box) exported(id string) string {
	b.t.Helper()
	return b.must("session", "export", id)
}

// MIS-6: a client that can be asked and may answer is asked about the calls of its agent, beside
// the people who are asked otherwise; the answer counts for exactly that call.
func TestRunTaskAsks(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.cwd = b.workspace()
	file := filepath.Join(b.cwd, "a.txt")
	b.scenarios(callsFor("edit", map[string]any{"name": "edit", "args": map[string]any{"path": "a.txt", "old_text": "one", "new_text": "three"}}))
	b.serve()
	for era, version := range taskEras {
		t.Run(era, func(t *testing.T) {
			b := b.as(t)
			has := func(want string) {
				t.Helper()
				if raw, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(raw), want) {
					t.Errorf("the file is %q, %v; want it to begin with %q", raw, err, want)
				}
			}
			if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			mute := b.tasker(b.url(), version, nil, nil)
			got := mute.must(map[string]any{"prompt": "edit it"})
			if said := b.exported(got.Session); !strings.Contains(said, "nobody is there to ask") {
				t.Errorf("a client that cannot be asked: %s, want that nobody is there", said)
			}
			has("one")
			no := b.tasker(b.url(), version, func(*sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				return &sdk.ElicitResult{Action: "decline"}, nil
			}, nil)
			no.must(map[string]any{"prompt": "edit it"})
			has("one")
			yes := b.tasker(b.url(), version, approves, nil)
			yes.must(map[string]any{"prompt": "edit it"})
			has("three")
			if asked := <-yes.asked; !strings.Contains(asked, "agent") || !strings.Contains(asked, "edit") || !strings.Contains(asked, "three") {
				t.Errorf("it was asked %q, want the agent's call with all of its arguments", asked)
			}
			if version == "" { // what happens while a modern client has no request here, it does not learn
				return
			}
			lines := []string{yes.line(), yes.line()} // the SDK handles them side by side
			slices.Sort(lines)
			if !strings.HasPrefix(lines[0], `edit {"`) || lines[1] != "waits for approval: edit" {
				t.Errorf("progress = %q, want the call of edit, and that it waits", lines)
			}
		})
	}
}

// MIS-6, R25: an agent can do nothing that its client cannot: rules about the client and about its
// surface hold, and so does its profile, for whoever goes on with the session.
func TestRunTaskIsNoWayAround(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.cwd = b.workspace()
	echo := map[string]any{"name": "fx__echo", "args": map[string]any{"text": "canary"}}
	read := map[string]any{"name": "read_file", "args": map[string]any{"path": "a.txt"}}
	b.scenarios(callsFor("echo", echo), callsFor("read", read), callsFor("list", map[string]any{"name": "mcp_resources", "args": map[string]any{}}))
	b.must("config", "set", "plugin.mcp_bridge.profiles", `{"reading":{"tools":["read_*","yaya_run"]},"docs":{"servers":["docs"]},"shut":{"tools":["fx__*"]}}`)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy"}}))
	said := func(c *tasker, prompt string) string {
		t.Helper()
		return b.exported(c.must(map[string]any{"prompt": prompt}).Session)
	}
	all, reading, docs := b.tasker(b.url(), "", approves, nil), b.tasker(b.url()+"/reading", "", approves, nil), b.tasker(b.url()+"/docs", "", approves, nil)
	// The agent lacks the tools that its client's profile leaves out.
	const unknown = "unknown tool"
	if got := said(all, "echo"); !strings.Contains(got, `canary`) || strings.Contains(got, unknown) {
		t.Errorf("all: %s, want the echo", got)
	}
	if got := said(reading, "echo"); !strings.Contains(got, unknown) {
		t.Errorf("reading: %s, want that the tool is unknown", got)
	}
	if got := said(docs, "echo"); !strings.Contains(got, unknown) {
		t.Errorf("docs: %s, want that the tool is unknown", got)
	}
	// Nor does it learn of resources of other servers.
	const listed = "resource of fx"
	if got := said(all, "list"); !strings.Contains(got, listed) {
		t.Errorf("all: %s, want the resources of the server", got)
	}
	if got := said(docs, "list"); strings.Contains(got, listed) || !strings.Contains(got, "No connected server lists such resources") {
		t.Errorf("docs: %s, want that there are none", got)
	}
	mine := reading.must(map[string]any{"prompt": "read"})
	if got := b.exported(mine.Session); !strings.Contains(got, "two") {
		t.Errorf("reading: %s, want the file", got)
	}
	if got := b.tasker(b.url()+"/shut", "", nil, nil).tools(); slices.Contains(got, "yaya_run") {
		t.Errorf("a profile without yaya_run shows %v", got)
	}
	// A session keeps the limits of its client, whoever goes on with it.
	if status, out := b.v1("POST", "/sessions/"+mine.Session+"/messages", `{"role":"user","id":"m","parts":[{"type":"text","text":"echo"}]}`); status != 202 {
		t.Fatalf("POST messages = %d, %v; want 202", status, out)
	}
	eventually.True(t, "the call is refused", func() bool { return strings.Contains(b.exported(mine.Session), unknown) })
	// Sessions of others, and those of another profile, do not exist.
	_, made := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, b.cwd))
	for name, id := range map[string]any{"of a person": made["session_id"], "of another profile": mine.Session, "of nobody": "sess_0", "odd": "../x"} {
		if _, err := all.run(t.Context(), map[string]any{"prompt": "read", "session": id}); err == nil || !strings.Contains(err.Error(), "you have not begun it") {
			t.Errorf("a session %s: %v, want that the client has begun none such", name, err)
		}
	}
	// Rules about the client, and about its surface, hold for its agent.
	for name, rule := range map[string]string{
		"principal": `{"principal":"owner","tool":"fx__echo","decision":"deny","reason":"because"}`,
		"scope":     `{"scope":"sessions:write","tool":"fx__echo","decision":"deny","reason":"because"}`,
		"origin":    `{"origin":"mcp","tool":"fx__echo","decision":"deny","reason":"because"}`,
	} {
		b.must("config", "set", "approval.rules", "["+rule+"]")
		if got := said(all, "echo"); !strings.Contains(got, "denied: because") {
			t.Errorf("a rule by %s: %s, want that it denies", name, got)
		}
	}
	mute := b.tasker(b.url(), "", nil, nil)
	for name, rule := range map[string]string{
		"the client": `{"origin":"mcp","tool":"fx__echo","decision":"allow"}`,
		"agents":     `{"principal":"agent:*","tool":"fx__echo","decision":"allow"}`,
	} {
		b.must("config", "set", "approval.rules", "["+rule+"]")
		if got := said(mute, "echo"); !strings.Contains(got, "nobody is there to ask") {
			t.Errorf("what %s may do alone: %s, want that it is asked about", name, got)
		}
	}
	b.must("config", "set", "approval.rules", `[{"tool":"yaya_run","decision":"deny","reason":"not here"}]`)
	if _, err := all.run(t.Context(), map[string]any{"prompt": "read"}); err == nil || !strings.Contains(err.Error(), "not here") {
		t.Errorf("a rule about yaya_run: %v, want that it denies", err)
	}
}

// MIS-6: folders that nobody has opened stay closed, for the owner's clients as well; who may not
// converse does not see the tool; and a task ends with its client's rights.
func TestRunTaskWhereAndWho(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	b.cwd = filepath.Join(b.dir, "other")
	below := filepath.Join(ws, "below")
	for _, dir := range []string{b.cwd, below} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.scenarios(callsFor("read", map[string]any{"name": "read_file", "args": map[string]any{"path": "a.txt"}}), map[string]any{
		"match": "^wait", "steps": []any{map[string]any{"text": "late", "delay_ms": 3600_000, "chunks": 1}},
	})
	b.serve()
	c := b.tasker(b.url(), "", nil, nil)
	if got := b.exported(c.must(map[string]any{"prompt": "read"}).Session); !strings.Contains(got, "works in no folder") {
		t.Errorf("without a folder: %s, want that it has no files", got)
	}
	if got := b.exported(c.must(map[string]any{"prompt": "read", "folder": ws}).Session); !strings.Contains(got, "two") {
		t.Errorf("in a trusted folder: %s, want its file", got)
	}
	if _, err := c.run(t.Context(), map[string]any{"prompt": "hello", "folder": below}); err != nil {
		t.Errorf("below a trusted folder: %v, want no error", err)
	}
	for name, dir := range map[string]string{"not trusted": b.cwd, "of yaya": filepath.Join(b.dir, "d"), "not there": "/nowhere", "all": "/", "relative": "ws", "above": b.dir} {
		if out, err := c.run(t.Context(), map[string]any{"prompt": "hello", "folder": dir}); err == nil {
			t.Errorf("a folder that is %s: %+v, want an error", name, out)
		}
	}
	for name, args := range map[string]map[string]any{
		"empty": {"prompt": " "}, "huge": {"prompt": strings.Repeat("x", 256<<10+1)}, "both": {"prompt": "x", "session": "sess_1", "folder": ws}, "unknown": {"prompt": "x", "model": "y"},
	} {
		if out, err := c.run(t.Context(), args); err == nil {
			t.Errorf("arguments that are %s: %.200q, want an error", name, out.all)
		}
	}
	// By scope, and not for who is limited to servers.
	b.must("mcp", "add", "fx", "http://127.0.0.1:1/mcp")
	for name, token := range map[string]string{"a plain token": b.lasting("plain"), "a token for a server": b.lasting("one", "--server", "fx")} {
		c := b.tasker(b.url(), "", nil, withToken(token))
		if got := c.tools(); slices.Contains(got, "yaya_run") {
			t.Errorf("%s shows %s, want no yaya_run", name, got)
		}
		if out, err := c.run(t.Context(), map[string]any{"prompt": "hello"}); err == nil {
			t.Errorf("%s calls it: %+v, want an error", name, out)
		}
	}
	// A right that is taken ends the task.
	token := b.lasting("writer", "--scope", "tools:call,sessions:write")
	w := b.tasker(b.url(), "", nil, withToken(token))
	ended := make(chan error, 1)
	go func() {
		_, err := w.run(t.Context(), map[string]any{"prompt": "wait", "folder": ws})
		ended <- err
	}()
	id := b.running()
	b.must("token", "revoke", "writer")
	if err := <-ended; err == nil {
		t.Error("a task of a revoked token ended well")
	}
	b.settled(id, "canceled")
}

// running waits for a session with a turn that runs, and returns its id.
func (b *box) running() (id string) {
	b.t.Helper()
	eventually.True(b.t, "a task runs", func() bool {
		_, out := b.v1("GET", "/sessions", "")
		all, _ := out["sessions"].([]any)
		for _, x := range all {
			if s, ok := x.(map[string]any); ok && s["state"] == "running" {
				id, _ = s["id"].(string)
				return true
			}
		}
		return false
	})
	return id
}

// settled waits for a session's status.
func (b *box) settled(id, want string) {
	b.t.Helper()
	eventually.True(b.t, "session "+id+" is "+want, func() bool {
		_, out := b.v1("GET", "/sessions/"+id, "")
		return out["status"] == want && out["state"] == "idle"
	})
}

// MIS-6, R32: cancelling ends the turn; a client that takes all its places is refused the next one
// at once, and takes none from others.
func TestRunTaskBounds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.cwd = b.workspace()
	b.scenarios(map[string]any{"match": "^wait", "steps": []any{map[string]any{"text": "late", "delay_ms": 3600_000, "chunks": 1}}})
	b.serve()
	for era, version := range taskEras {
		t.Run(era, func(t *testing.T) {
			b := b.as(t)
			c := b.tasker(b.url(), version, nil, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 4)
			for range cap(ended) {
				go func() {
					_, err := c.run(ctx, map[string]any{"prompt": "wait"})
					ended <- err
				}()
			}
			eventually.True(t, "four tasks run", func() bool {
				_, out := b.v1("GET", "/sessions", "")
				return strings.Count(fmt.Sprint(out), "state:running") == cap(ended)
			})
			for range 50 {
				if _, err := c.run(t.Context(), map[string]any{"prompt": "hello"}); err == nil || !strings.Contains(err.Error(), "too many tasks") {
					t.Fatalf("one more of the same client: %v, want that there are too many", err)
				}
			}
			id := b.running()
			other := b.tasker(b.url(), version, nil, withToken(b.lasting(era, "--scope", "tools:call,sessions:write")))
			// It does not learn that the session works, and cannot take its place.
			if _, err := other.run(t.Context(), map[string]any{"prompt": "hello", "session": id}); err == nil || !strings.Contains(err.Error(), "you have not begun it") {
				t.Errorf("a session of another client that works: %v, want that the client has not begun it", err)
			}
			if got := other.must(map[string]any{"prompt": "hello"}); !strings.Contains(got.Text, "hello") {
				t.Errorf("another client: %+v, want its answer", got)
			}
			cancel()
			for range cap(ended) {
				if err := <-ended; err == nil {
					t.Error("a cancelled task ended well")
				}
			}
			b.settled(id, "canceled")
			c.must(map[string]any{"prompt": "hello"}) // the places are free again
		})
	}
	// New sessions of one principal are so many at once, and then come slowly.
	c := b.tasker(b.url(), "", nil, withToken(b.lasting("flood", "--scope", "tools:call,sessions:write")))
	first := c.must(map[string]any{"prompt": "hello"})
	var err error
	for n := 0; err == nil && n < 200; n++ {
		_, err = c.run(t.Context(), map[string]any{"prompt": "hello"})
	}
	if err == nil || !strings.Contains(err.Error(), "too many new sessions") {
		t.Errorf("200 tasks in new sessions: %v, want that there are too many", err)
	}
	c.must(map[string]any{"prompt": "hello", "session": first.Session})
}
