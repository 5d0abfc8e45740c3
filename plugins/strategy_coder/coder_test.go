package strategy_coder_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/strategy_coder"
)

type fakeContext struct {
	plugin.Context
	providers config.Providers
	config    map[string]string
	said      []event.DecideResponse
}

func (c *fakeContext) Config(field string) json.RawMessage {
	if v, ok := c.config[field]; ok {
		return json.RawMessage(v)
	}
	return nil
}
func (c *fakeContext) Providers() config.Providers { return c.providers }
func (*fakeContext) Log() *zerolog.Logger          { l := zerolog.Nop(); return &l }
func (c *fakeContext) Emit(_, _ string, payload any) error {
	if d, ok := payload.(event.DecideResponse); ok {
		c.said = append(c.said, d)
	}
	return nil
}

// commands are a session's verify commands.
type commands struct {
	list  []string
	asked int
	then  func()
}

func (c *commands) Commands(*workspace.Workspace) []string {
	c.asked++
	if c.then != nil {
		c.then()
	}
	return c.list
}

type world struct {
	t   *testing.T
	dir string
	c   *fakeContext
	v   *commands
	p   *strategy_coder.Plugin
	n   int

	restricted bool
	opened     int    // how often the folder was
	session    string // "s" if it is empty
}

func (w *world) open(string) (*workspace.Workspace, bool, error) {
	w.opened++
	in, err := (*workspace.Guard)(nil).Open(w.dir)
	return in, !w.restricted, err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range map[string]string{"providers.prov.plugin": `"llm-echo"`, "providers.prov.model": `"m"`, config.ActiveKey: `"prov"`} {
		if err := settings.Set(key, json.RawMessage(v)); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, c: &fakeContext{providers: settings.Providers(), config: map[string]string{}}, v: &commands{list: []string{"make test"}}}
	w.p = strategy_coder.New(strategy_coder.Config{Folder: func(string) (string, error) { return w.dir, nil }, Look: w.open, Verify: w.v})
	if err := w.p.OnLoad(t.Context(), w.c); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) event(payload any) {
	w.t.Helper()
	w.n++
	if err := w.p.OnEvent(w.t.Context(), event.Event{ID: fmt.Sprint("ev", w.n), SessionID: cmp.Or(w.session, "s"), Payload: payload}, w.c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) decide(st event.LoopState) event.DecideResponse {
	w.t.Helper()
	if st.TurnID == "" {
		st.TurnID = "turn_1"
	}
	w.event(event.DecideRequest{State: st})
	d := w.c.said[len(w.c.said)-1]
	if d.RequestID != fmt.Sprint("ev", w.n) {
		w.t.Errorf("it answers %s", d.RequestID)
	}
	return d
}

// ran tells the strategy of a tool call.
func (w *world) ran(id, name string, ok bool) {
	w.t.Helper()
	w.event(event.ToolCall{ID: id, Name: name})
	w.event(event.ToolResult{ID: id, OK: ok})
}

// MIS-5: a turn begins with what was said in this folder, if that is wanted, and what it was about is kept with the
// folder; what an agent was told to do is not.
func TestMemory(t *testing.T) {
	asked := []event.Message{{Role: "user", Content: "first"}, {Role: "assistant", Content: "yes"}, {Role: "user", Content: "second"}, {Role: "system", Note: "workspace", Content: "files"}}
	for mode, want := range map[string]struct{ reads, writes bool }{`"off"`: {}, `"recall"`: {true, false}, `"full"`: {true, true}, `"more"`: {}, "": {}} {
		w := newWorld(t)
		if mode != "" {
			w.c.config["memory"] = mode
		}
		d := w.decide(event.LoopState{Messages: asked})
		if reads := d.Next == event.NextMemory && d.Query == "second" && d.K > 0 && d.Folder == w.dir; reads != want.reads || !reads && d.Next != event.NextLLM {
			t.Errorf("%s: the turn begins with %+v, want that it asks the memory: %v", mode, d, want.reads)
		}
		for _, st := range []event.LoopState{{Messages: asked, Recalled: true}, {Messages: asked, Step: 1}, {}} {
			if d := w.decide(st); d.Next != event.NextLLM {
				t.Errorf("%s: %+v asks the memory", mode, st)
			}
		}
		d = w.decide(event.LoopState{Messages: asked, Answered: true, Answer: "done"})
		writes := strings.Contains(d.Remember, "second") && strings.Contains(d.Remember, "done") && d.Folder == w.dir
		if d.Next != event.NextDone || writes != want.writes || !writes && d.Remember != "" {
			t.Errorf("%s: the turn ends with %+v, want that it is kept: %v", mode, d, want.writes)
		}
		w.session = "s::agent::a1"
		if d := w.decide(event.LoopState{Messages: asked, Answered: true, Answer: "done"}); d.Next != event.NextDone || d.Remember != "" {
			t.Errorf("%s: the turn of an agent ends with %+v", mode, d)
		}
	}
}

// Of a turn that was steered, what began it is kept with what came last; nothing of a tool, and nothing where nothing
// was said. A folder has one name, and one that is not trusted has no memory.
func TestWhatIsRemembered(t *testing.T) {
	user := func(text string) event.Message { return event.Message{Role: "user", Content: text} }
	tool := event.Message{Role: "user", Content: "A tool has said: hello", Tool: true}
	for name, tt := range map[string]struct {
		begin, end []event.Message
		want       string
	}{
		"steered":       {[]event.Message{user("first")}, []event.Message{user("first"), {Role: "assistant", Content: "so far"}, user("second")}, "The user said: first second"},
		"a tool's text": {[]event.Message{user("first"), tool}, []event.Message{user("first"), tool}, "The user said: first\n"},
		"a file alone":  {[]event.Message{user("")}, []event.Message{user("")}, ""},
		"a tool alone":  {[]event.Message{tool}, []event.Message{tool}, ""},
	} {
		w := newWorld(t)
		w.c.config["memory"] = `"full"`
		w.decide(event.LoopState{Messages: tt.begin})
		d := w.decide(event.LoopState{Messages: tt.end, Answered: true, Answer: "done"})
		if !strings.HasPrefix(d.Remember, tt.want) || tt.want == "" && d.Remember != "" {
			t.Errorf("%s: %q is kept, want %q", name, d.Remember, tt.want)
		}
	}
	w := newWorld(t)
	w.c.config["memory"] = `"full"`
	asked := event.LoopState{Messages: []event.Message{user("first")}}
	real := w.dir
	w.dir = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, w.dir); err != nil {
		t.Fatal(err)
	}
	if d := w.decide(asked); d.Folder != real {
		t.Errorf("by a link, the memories are those of %q, want %q", d.Folder, real)
	}
	w.restricted = true
	if d := w.decide(asked); d.Next != event.NextLLM {
		t.Errorf("a restricted folder: %+v, want that no memory is asked", d)
	}
	asked.Answered = true
	if d := w.decide(asked); d.Remember != "" {
		t.Errorf("a restricted folder: %q is kept", d.Remember)
	}
}

// A sub-agent that does not have verify is done without: nobody could let it run.
func TestNoVerifyWithoutTheTool(t *testing.T) {
	for _, tt := range []struct {
		tools []string
		want  event.Next
	}{
		{[]string{"read_file", "verify"}, event.NextTool},
		{[]string{"read_file"}, event.NextDone},
	} {
		w := newWorld(t)
		w.decide(event.LoopState{ToolNames: tt.tools})
		w.ran("c1", "apply_patch", true)
		if d := w.decide(event.LoopState{Answered: true, Answer: "done", ToolNames: tt.tools}); d.Next != tt.want {
			t.Errorf("with the tools %q after a change: %q, want %q", tt.tools, d.Next, tt.want)
		}
	}
}

// S-38, S-48: changes are verified once the model has answered; failures are
// handed back, three times.
func TestVerifies(t *testing.T) {
	answered := event.LoopState{Answered: true, Answer: "done"}
	w := newWorld(t)
	w.decide(event.LoopState{})
	asked := w.v.asked
	if d := w.decide(answered); d.Next != event.NextDone || w.v.asked != asked {
		t.Errorf("nothing has changed: %+v, and the folder was asked for its checks %d times", d, w.v.asked-asked)
	}
	w.ran("c0", "read_file", true)
	w.ran("c1", "apply_patch", false)
	if d := w.decide(answered); d.Next != event.NextDone {
		t.Errorf("nothing has changed: %+v", d)
	}
	for n := range 4 {
		w.ran(fmt.Sprint("p", n), "apply_patch", true)
		d := w.decide(answered)
		if d.Next != event.NextTool || len(d.ToolCalls) != 1 || d.ToolCalls[0].Name != "verify" || string(d.ToolCalls[0].Args) != "{}" {
			t.Fatalf(`%d: got %+v, want Next %v, len(ToolCalls) 1, ToolCalls[0].Name "verify", ToolCalls[0].Args "{}"`, n, d, event.NextTool)
		}
		w.ran(d.ToolCalls[0].ID, "verify", false)
		want := event.NextLLM
		if n == 3 {
			want = event.NextDone // it has been handed back three times
		}
		if d := w.decide(answered); d.Next != want {
			t.Errorf("after failure %d: %+v", n+1, d.Next)
		}
	}
	// The next turn starts from the beginning; a command may have changed something
	// although it failed.
	next := answered
	next.TurnID = "turn_2"
	w.decide(event.LoopState{TurnID: "turn_2"})
	w.ran("sh", "shell", false)
	d := w.decide(next)
	if d.Next != event.NextTool {
		t.Fatalf("got %+v, want Next %v", d, event.NextTool)
	}
	w.ran(d.ToolCalls[0].ID, "verify", true)
	if d := w.decide(next); d.Next != event.NextDone {
		t.Errorf("got %+v, want Next %v", d, event.NextDone)
	}
	for name, edit := range map[string]func(){
		"switched off": func() { w.c.config["auto_verify"] = "false" },
		"no commands":  func() { w.v.list = nil },
	} {
		w.c.config, w.v.list = map[string]string{}, []string{"make test"}
		edit()
		w.ran("p9", "apply_patch", true)
		if d := w.decide(next); d.Next != event.NextDone {
			t.Errorf("%s: got %+v, want Next %v", name, d, event.NextDone)
		}
	}
}

// S-51: a command that was refused, or that nobody agreed to in time, has changed nothing:
// the checks are not run for it.
func TestARefusedCommandIsNoChange(t *testing.T) {
	answered := event.LoopState{Answered: true, Answer: "done"}
	for name, end := range map[string]struct {
		payload any
		want    event.Next
	}{
		"denied":             {event.ToolError{ID: "c", Kind: event.ToolRejected, Brief: "rejected"}, event.NextDone},
		"nobody answered":    {event.ToolError{ID: "c", Kind: event.ToolRejected, Brief: "no approval for shell: cancelled (timeout)"}, event.NextDone},
		"bad arguments":      {event.ToolError{ID: "c", Kind: event.ToolValidation}, event.NextDone},
		"no sandbox":         {event.ToolResult{ID: "c", Error: "no sandbox", Envelope: []byte(`{"ok":false,"kind":"unavailable","brief":"no sandbox","display":[],"not_run":true}`)}, event.NextDone},
		"it ran and crashed": {event.ToolResult{ID: "c", Error: "crashed", Envelope: []byte(`{"ok":false,"kind":"crashed","brief":"crashed","display":[]}`)}, event.NextTool},
		"it ran and failed":  {event.ToolResult{ID: "c", Error: "exit code 1"}, event.NextTool},
		"it ran into a wall": {event.ToolResult{ID: "c", Error: "the command was ended after 2m0s"}, event.NextTool},
		"and changed a file": {event.ToolResult{ID: "c", Envelope: []byte(`{"ok":false,"kind":"timeout","brief":"ended","display":[]}`)}, event.NextTool},
		"and changed none":   {event.ToolResult{ID: "c", Envelope: []byte(`{"ok":false,"kind":"timeout","brief":"ended","display":[],"structured":{"unchanged":true}}`)}, event.NextDone},
		"it only looked":     {event.ToolResult{ID: "c", OK: true, Envelope: []byte(`{"ok":true,"brief":"exit code 0","display":[],"structured":{"exit_code":0,"unchanged":true}}`)}, event.NextDone},
	} {
		w := newWorld(t)
		w.decide(event.LoopState{})
		w.event(event.ToolCall{ID: "c", Name: "shell"})
		w.event(end.payload)
		if d := w.decide(answered); d.Next != end.want {
			t.Errorf("%s: next is %v, want %v", name, d.Next, end.want)
		}
	}
}

// S-48: with require_clean a workspace with changes that are not committed is left
// alone, and one that was clean at the first patch is the session's to change.
func TestRequireClean(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	w := newWorld(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.dir, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdict := func() tool.Decision {
		t.Helper()
		v, err := w.p.Hook().PreToolCall(context.Background(), tool.Call{Name: "apply_patch", SessionID: "s", Origin: tool.OriginLoop}, tool.Definition{})
		if err != nil {
			t.Fatal(err)
		}
		return v.Decision
	}
	write("one")
	if got := verdict(); got != tool.Abstain {
		t.Errorf("it is not asked for: %v", got)
	}
	w.c.config["require_clean"] = "true"
	if got := verdict(); got != tool.Deny {
		t.Errorf("no repository: %v", got)
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	write("two")
	if got := verdict(); got != tool.Deny {
		t.Errorf("dirty: %v", got)
	}
	git("commit", "-qam", "second")
	if got := verdict(); got != tool.Abstain {
		t.Errorf("clean: %v", got)
	}
	write("three")
	if got := verdict(); got != tool.Abstain {
		t.Errorf("its own change: %v", got)
	}
}

// A decision opens the folder to describe it, and once more for its instructions: describing it may take
// long. One that needs nothing of the folder does not open it.
func TestLooks(t *testing.T) {
	w := newWorld(t)
	w.c.config["memory"] = `"full"`
	if err := os.WriteFile(filepath.Join(w.dir, "AGENTS.md"), []byte("Be brief."), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := []event.Message{{Role: "user", Content: "go on"}}
	for _, tc := range []struct {
		name string
		st   event.LoopState
		want int
	}{
		{"a turn begins", event.LoopState{TurnID: "t1", Messages: asked}, 2},
		{"it has the memories", event.LoopState{TurnID: "t1", Messages: asked, Recalled: true}, 1},
		{"the model is asked again", event.LoopState{TurnID: "t1", Messages: asked, Recalled: true, Step: 1}, 1},
		{"calls are open", event.LoopState{TurnID: "t1", Messages: asked, Pending: []event.ToolCall{{ID: "c"}}}, 0},
		{"it ends, and is remembered", event.LoopState{TurnID: "t1", Messages: asked, Answered: true, Answer: "Done.", Step: 1}, 1},
	} {
		w.opened = 0
		if w.decide(tc.st); w.opened != tc.want {
			t.Errorf("%s: the folder was opened %d times, want %d", tc.name, w.opened, tc.want)
		}
	}
	w.c.config["memory"] = `"off"`
	w.opened = 0
	if w.decide(event.LoopState{TurnID: "t1", Messages: asked, Answered: true, Answer: "Done."}); w.opened != 0 {
		t.Errorf("it ends: the folder was opened %d times, want none", w.opened)
	}
}

// SEC-3: a folder that a person revokes while it is described instructs nobody.
func TestRevokedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.write("AGENTS.md", "rules of all")
	if got := w.decide(event.LoopState{TurnID: "t0"}).Notes; !slices.ContainsFunc(got, func(n event.TurnNote) bool { return strings.Contains(n.Text, "rules of all") }) {
		t.Fatalf("the notes are %+v, want the rules of a trusted folder", got)
	}
	w.v.then = func() { w.restricted = true }
	for _, n := range w.decide(event.LoopState{TurnID: "t1"}).Notes {
		if strings.Contains(n.Text, "rules of all") {
			t.Errorf("a revoked folder instructs: %+v", n)
		}
	}
}

// The instructions of a folder that calls touch by an absolute path below a link are told.
func TestLinkedFolder(t *testing.T) {
	w := newWorld(t)
	w.write("a/AGENTS.md", "rules of a")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.dir, link); err != nil {
		t.Skip(err)
	}
	w.dir = link
	args, err := json.Marshal(map[string]string{"path": filepath.Join(link, "a", "x.go")})
	if err != nil {
		t.Fatal(err)
	}
	got := w.decide(event.LoopState{Messages: []event.Message{{Role: "user", Content: "go"}, {Role: "assistant", ToolCalls: []event.ToolCall{{ID: "c", Name: "read_file", Args: args}}}}}).Notes
	if !slices.ContainsFunc(got, func(n event.TurnNote) bool { return strings.Contains(n.Text, "rules of a") }) {
		t.Errorf("the notes are %+v, want the rules of a", got)
	}
}
