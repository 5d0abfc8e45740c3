package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/hooks"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// world is a user and a folder, with hooks that run without a sandbox.
type world struct {
	t         testing.TB
	home, dir string
	trusted   bool
	claude    bool
	audit     []hooks.Denial
	looks     atomic.Int64 // at the folder
	h         *hooks.Hooks
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir(), dir: t.TempDir()}
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start() {
	w.t.Helper()
	var guard *workspace.Guard
	w.h = hooks.Start(context.Background(), hooks.Config{
		User: w.home + "/hooks.toml", UserClaude: w.home + "/settings.json", Claude: func() bool { return w.claude }, Log: zerolog.Nop(),
		Open: func(string) (*workspace.Workspace, func()) {
			w.looks.Add(1)
			if !w.trusted {
				return nil, func() {}
			}
			ws, err := guard.Open(w.dir)
			if err != nil {
				w.t.Error(err)
				return nil, func() {}
			}
			return ws, func() { _ = ws.Close() }
		},
		Folder: func(string) (string, error) { return w.dir, nil },
		Run: func(ctx context.Context, p hooks.Program) (hooks.Ended, error) {
			ctx, cancel := context.WithTimeout(ctx, p.Limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", p.Command)
			cmd.WaitDelay = time.Second
			var out, failed bytes.Buffer
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = p.Folder, bytes.NewReader(p.Input), &out, &failed, append(os.Environ(), p.Env...)
			err := cmd.Run()
			if ctx.Err() != nil {
				return hooks.Ended{}, errors.New("it did not end in time")
			}
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return hooks.Ended{Output: out.String(), Stderr: failed.String(), Code: exit.ExitCode()}, nil
			}
			return hooks.Ended{Output: out.String(), Stderr: failed.String()}, err
		},
		Audit: func(d hooks.Denial) error { w.audit = append(w.audit, d); return nil },
	})
	w.t.Cleanup(w.h.Close)
}

func call(name, server, args string, origin tool.Origin) (tool.Call, tool.Definition) {
	return tool.Call{ID: "c", Name: name, SessionID: "s", Origin: origin, Args: json.RawMessage(args), Caller: tool.LocalOwner},
		tool.Definition{Name: name, Identity: tool.Identity{Provider: server, Tool: name}, Kind: tool.KindExec}
}

func (w *world) verdict(name, server, args string, origin tool.Origin) tool.Verdict {
	w.t.Helper()
	c, d := call(name, server, args, origin)
	v, err := w.h.PreToolCall(context.Background(), c, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// R26, PL-03: a guard decides, and one that crashes, hangs or answers garbage denies with its
// name; each denial is in the audit.
func TestPreTool(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    tool.Decision
		reason  string
	}{
		"silence":             {"true", tool.Abstain, ""},
		"allow":               {`echo '{"decision":"allow"}'`, tool.Abstain, ""},
		"ask":                 {`echo '{"decision":"ask","reason":"sure?"}'`, tool.Ask, `hook "g": sure?`},
		"deny":                {`echo '{"decision":"deny","reason":"no"}'`, tool.Deny, `hook "g": no`},
		"exit code 2":         {`echo never >&2; exit 2`, tool.Deny, `hook "g": never`},
		"it reads the call":   {`grep -q '"input":{"command":"rm -rf /"}' && exit 2`, tool.Deny, `hook "g"`},
		"it crashes":          {"echo oops >&2; exit 1", tool.Deny, `hook "g" failed: it ended with exit code 1: oops`},
		"it is killed":        {"kill -9 $$", tool.Deny, `hook "g" failed`},
		"it is not there":     {"./none", tool.Deny, `hook "g" failed: it ended with exit code 127`},
		"it hangs":            {"sleep 100", tool.Deny, `hook "g" failed: it did not end in time`},
		"garbage":             {"echo hello", tool.Deny, `hook "g" failed: its output is not the JSON`},
		"half of an answer":   {`echo '{"decision":'`, tool.Deny, `hook "g" failed`},
		"an unknown member":   {`echo '{"descision":"deny"}'`, tool.Deny, `hook "g" failed`},
		"an unknown decision": {`echo '{"decision":"maybe"}'`, tool.Deny, `unknown decision "maybe"`},
		"two answers":         {`echo '{"decision":"allow"}{}'`, tool.Deny, `hook "g" failed`},
		"a list":              {`echo '[]'`, tool.Deny, `hook "g" failed`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.home+"/hooks.toml", fmt.Sprintf("[[hooks]]\nname = \"g\"\nevent = \"pre_tool\"\ntool = \"sh*|none\"\ntimeout = \"1s\"\ncommand = %s\n", quote(c.command)))
			w.start()
			v := w.verdict("shell", "", `{"command":"rm -rf /"}`, tool.OriginLoop)
			if v.Decision != c.want || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("PreToolCall() = %v, %q, want %v, %q", v.Decision, v.Reason, c.want, c.reason)
			}
			if denied := len(w.audit) == 1 && w.audit[0].Hook == "g" && w.audit[0].Tool == "shell"; denied != (c.want == tool.Deny) {
				t.Errorf("the audit has %+v after %v", w.audit, v.Decision)
			}
			if v := w.verdict("read_file", "", `{}`, tool.OriginLoop); v.Decision != tool.Abstain {
				t.Errorf("another tool: %v, %q, want no decision", v.Decision, v.Reason)
			}
		})
	}
}

func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

type policy struct{ d tool.Decision }

func (p policy) Decide(context.Context, tool.Call, tool.Definition) (tool.Verdict, error) {
	return tool.Verdict{Decision: p.d, Reason: "the rule says so"}, nil
}

// A hook lifts neither a denial of the rules nor an ask.
func TestAllowLiftsNothing(t *testing.T) {
	w := newWorld(t)
	w.write(w.home+"/hooks.toml", "[[hooks]]\nevent = \"pre_tool\"\ncommand = '''echo '{\"decision\":\"allow\"}' '''\n")
	w.start()
	for _, d := range []tool.Decision{tool.Deny, tool.Ask} {
		reg := &tool.Registry{}
		x := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Policy: policy{d}})
		x.AddHook(w.h)
		ran := false
		it, err := tool.New(tool.Definition{Name: "it"}, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
			ran = true
			return tool.OK("x"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := call("it", "", "{}", tool.OriginLoop)
		if err := reg.Register(it); err != nil {
			t.Fatal(err)
		}
		if res := x.Call(t.Context(), reg.Snapshot(), c); res.OK || ran {
			t.Errorf("policy %v and a hook that allows: got OK = %v, ran = %v, want neither", d, res.OK, ran)
		}
	}
}

// Hooks of a folder exist once it is trusted. A call of an MCP client has those of the folder
// that yaya works in. A change of a file holds soon.
func TestProject(t *testing.T) {
	w := newWorld(t)
	w.write(w.dir+"/.yaya/hooks.toml", "[[hooks]]\nevent = \"pre_tool\"\ncommand = \"exit 2\"\n")
	w.start()
	for _, origin := range []tool.Origin{tool.OriginLoop, tool.OriginMCP} {
		if v := w.verdict("x", "s", "{}", origin); v.Decision != tool.Abstain {
			t.Errorf("%s in a restricted folder: %v, want no decision", origin, v.Decision)
		}
	}
	w.h.Close()
	w.trusted = true
	w.start()
	for _, origin := range []tool.Origin{tool.OriginLoop, tool.OriginMCP} {
		if v := w.verdict("x", "s", "{}", origin); v.Decision != tool.Deny {
			t.Errorf("%s in a trusted folder: %v, want a denial", origin, v.Decision)
		}
	}
	w.write(w.dir+"/.yaya/hooks.toml", "")
	if v := w.verdict("x", "s", "{}", tool.OriginLoop); v.Decision != tool.Abstain {
		t.Errorf("after the hook was removed: %v, want no decision", v.Decision)
	}
	eventually.True(t, "the change holds for MCP clients", func() bool { return w.verdict("x", "s", "{}", tool.OriginMCP).Decision == tool.Abstain })
}

// R11, R31: a file that cannot be read denies; one that becomes unreadable leaves what was good.
func TestBrokenFile(t *testing.T) {
	for name, text := range map[string]string{
		"not TOML": "[[hooks", "an unknown event": "[[hooks]]\nevent = \"x\"\ncommand = \"true\"\n", "an unknown member": "[[hooks]]\nevent = \"pre_tool\"\ncomand = \"true\"\n",
		"no command": "[[hooks]]\nevent = \"pre_tool\"\n", "a timeout": "[[hooks]]\nevent = \"pre_tool\"\ncommand = \"true\"\ntimeout = \"0s\"\n",
		"two of a name": "[[hooks]]\nname = \"a\"\nevent = \"prompt\"\ncommand = \"true\"\n[[hooks]]\nname = \"a\"\nevent = \"prompt\"\ncommand = \"true\"\n",
		"large":         strings.Repeat("#", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.home+"/hooks.toml", text)
			w.start()
			if v := w.verdict("x", "s", "{}", tool.OriginMCP); v.Decision != tool.Deny || !strings.Contains(v.Reason, "hooks.toml") {
				t.Errorf("PreToolCall() = %v, %q, want a denial that names the file", v.Decision, v.Reason)
			}
			if _, err := w.h.Admit(t.Context(), "s", "hello"); !errors.Is(err, hooks.ErrDenied) {
				t.Errorf("Admit() = %v, want ErrDenied", err)
			}
		})
	}
	w := newWorld(t)
	w.write(w.home+"/hooks.toml", "[[hooks]]\nevent = \"pre_tool\"\ntool = \"bad\"\ncommand = \"exit 2\"\n")
	w.start()
	w.write(w.home+"/hooks.toml", "[[hooks")
	eventually.True(t, "the broken file is seen", func() bool { return w.h.State().Err != nil })
	if good, bad := w.verdict("good", "", "{}", tool.OriginMCP).Decision, w.verdict("bad", "", "{}", tool.OriginMCP).Decision; good != tool.Abstain || bad != tool.Deny {
		t.Errorf("after the file broke: good = %v, bad = %v, want the hooks that were read earlier", good, bad)
	}
}

// Files are read when somebody asks, and not while nothing happens; what was read holds for a
// second.
func TestReadOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		time.Sleep(time.Hour)
		if n := w.looks.Load(); n != 1 {
			t.Errorf("the folder was looked at %d times in a quiet hour, want once, at the start", n)
		}
		w.write(w.home+"/hooks.toml", "[[hooks")
		if !w.h.Wants(tool.OriginMCP) {
			t.Error("Wants() = false for the first call after the file was written, want true")
		}
		w.write(w.home+"/hooks.toml", "")
		time.Sleep(time.Second - 1)
		if v := w.verdict("x", "s", "{}", tool.OriginMCP); v.Decision != tool.Deny {
			t.Errorf("within a second: %v, want the denial for what was read", v.Decision)
		}
		time.Sleep(time.Nanosecond)
		if v := w.verdict("x", "s", "{}", tool.OriginMCP); v.Decision != tool.Abstain {
			t.Errorf("after a second: %v, %q, want no decision", v.Decision, v.Reason)
		}
		if n := w.looks.Load(); n != 3 {
			t.Errorf("the folder was looked at %d times, want 3", n)
		}
	})
}

// Results are replaced, completed and withheld; a hook that fails leaves the result and says so.
func TestPostTool(t *testing.T) {
	for name, c := range map[string]struct {
		command, want string
		ok            bool
	}{
		"a changed result": {`echo '{"result":"clean"}'`, "clean", true},
		"context":          {`echo '{"context":"and more"}'`, "dirty\nand more", true},
		"withheld":         {`echo '{"decision":"deny","reason":"secret"}'`, `withheld: hook "g": secret`, false},
		"it fails":         {"exit 1", "dirty\n[hook \"g\" failed: it ended with exit code 1", true},
		"it reads it":      {`grep -q '"text":"dirty"' && echo '{"result":"seen"}'`, "seen", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.home+"/hooks.toml", "[[hooks]]\nname = \"g\"\nevent = \"post_tool\"\ncommand = "+quote(c.command)+"\n")
			w.start()
			reg := &tool.Registry{}
			x := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Policy: policy{tool.Allow}})
			x.SetAfter(w.h)
			x.SetWitness(func(tool.Change) (func() error, error) { return func() error { return nil }, nil })
			it, err := tool.New(tool.Definition{Name: "it", Kind: tool.KindRead}, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
				return tool.OK("x", tool.Text("dirty")), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			c1, _ := call("it", "", "{}", tool.OriginLoop)
			if err := reg.Register(it); err != nil {
				t.Fatal(err)
			}
			res := x.Call(t.Context(), reg.Snapshot(), c1)
			if res.OK != c.ok || !strings.Contains(res.Text(), c.want) {
				t.Errorf("the result is %v, %q, want %v, %q", res.OK, res.Text(), c.ok, c.want)
			}
		})
	}
}

// A prompt is denied, or gets context; the start of a session happens once.
func TestAdmit(t *testing.T) {
	w := newWorld(t)
	w.write(w.home+"/hooks.toml", `
[[hooks]]
event = "session_start"
command = "echo x >> starts; echo '{\"context\":\"Use tabs.\"}'"
[[hooks]]
name = "no-passwords"
event = "prompt"
command = "grep -q '\"prompt\":\"password' && exit 2; echo '{\"context\":\"It is Monday.\"}'"
`)
	w.start()
	for range 2 {
		if got, err := w.h.Admit(t.Context(), "s", "hello"); err != nil || got != "Use tabs.\nIt is Monday." {
			t.Errorf("Admit() = %q, %v, want both contexts", got, err)
		}
	}
	if got, err := os.ReadFile(w.dir + "/starts"); err != nil || string(got) != "x\n" {
		t.Errorf("session_start ran %q, %v, want once", got, err)
	}
	if _, err := w.h.Admit(t.Context(), "s", "password: x"); !errors.Is(err, hooks.ErrDenied) || !strings.Contains(err.Error(), "no-passwords") {
		t.Errorf("Admit() = %v, want a denial with the hook's name", err)
	}
	if len(w.audit) != 1 || w.audit[0].Event != "prompt" {
		t.Errorf("the audit has %+v, want the denial", w.audit)
	}
	if _, err := w.h.Admit(t.Context(), "s::agent::a", "password: x"); !errors.Is(err, hooks.ErrDenied) {
		t.Errorf("Admit() of a sub-agent = %v, want a denial", err)
	}
	if got, err := w.h.Admit(t.Context(), "s::agent::a", "hello"); err != nil || got != "It is Monday." {
		t.Errorf("Admit() of a sub-agent = %q, %v, want the prompt's context, and not the session's", got, err)
	}
}

// Hooks of Claude Code run with its protocol once the setting says so.
func TestClaude(t *testing.T) {
	for name, c := range map[string]struct {
		matcher, command string
		want             tool.Decision
		reason           string
	}{
		"exit code 2":     {"Bash", "echo no >&2; exit 2", tool.Deny, `hook "PreToolUse 1": no`},
		"a log line":      {"Bash", "echo looked", tool.Abstain, ""},
		"another tool":    {"Edit|Write", "exit 2", tool.Abstain, ""},
		"yaya's own name": {"shell", "exit 2", tool.Deny, ""},
		"deny":            {"*", `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'`, tool.Deny, "no"},
		"ask":             {"", `echo '{"hookSpecificOutput":{"permissionDecision":"ask"}}'`, tool.Ask, ""},
		"allow":           {"", `echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'`, tool.Abstain, ""},
		"defer":           {"", `echo '{"hookSpecificOutput":{"permissionDecision":"defer"}}'`, tool.Ask, ""},
		"block":           {"", `echo '{"decision":"block","reason":"old"}'`, tool.Deny, "old"},
		"stop":            {"", `echo '{"continue":false,"stopReason":"enough"}'`, tool.Deny, "enough"},
		"other arguments": {"", `echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls"}}}'`, tool.Deny, "wants to change the arguments"},
		"the input":       {"", `in=$(cat); case $in in *'"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}'*) exit 2;; esac`, tool.Deny, ""},
		"it crashes":      {"", "exit 1", tool.Deny, "exit code 1"},
		"half of JSON":    {"", "echo '{'", tool.Deny, "not the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.home+"/settings.json", fmt.Sprintf(`{"model":"x","hooks":{"PreToolUse":[{"matcher":%s,"hooks":[{"type":"command","command":%s,"timeout":5}]}],"Notification":[{"hooks":[{"type":"command","command":"true"}]}]}}`, quote(c.matcher), quote(c.command)))
			w.claude = true
			w.start()
			if v := w.verdict("shell", "", `{"command":"ls"}`, tool.OriginLoop); v.Decision != c.want || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("PreToolCall() = %v, %q, want %v, %q", v.Decision, v.Reason, c.want, c.reason)
			}
			if s := w.h.State(); len(s.Ignored) != 1 || s.Err != nil {
				t.Errorf("State() = %+v, want Notification ignored", s)
			}
		})
	}
	w := newWorld(t)
	w.write(w.home+"/settings.json", `{"hooks":{"PreToolUse":[{"matcher":"mcp__db__.*","hooks":[{"type":"command","command":"exit 2"}]}]}}`)
	w.start()
	if v := w.verdict("db__drop", "db", "{}", tool.OriginMCP); v.Decision != tool.Abstain {
		t.Errorf("without the setting: %v, want no decision", v.Decision)
	}
	w.h.Close()
	w.claude = true
	w.start()
	if v := w.verdict("db__drop", "db", "{}", tool.OriginMCP); v.Decision != tool.Deny {
		t.Errorf("with the setting, a server's tool: %v, want a denial", v.Decision)
	}
	w = newWorld(t)
	w.claude = true
	w.write(w.home+"/settings.json", `{"hooks":{"PreToolUse":[{"hooks":[{"type":"prompt","prompt":"is it safe?"}]}]}}`)
	w.start()
	if v := w.verdict("shell", "", "{}", tool.OriginLoop); v.Decision != tool.Deny || !strings.Contains(v.Reason, `the type "prompt"`) {
		t.Errorf("a guard that yaya does not run: %v, %q, want a denial", v.Decision, v.Reason)
	}
}

// Hooks observe the ends of turns and the states of servers.
func TestObserve(t *testing.T) {
	w := newWorld(t)
	w.write(w.home+"/hooks.toml", "[[hooks]]\nevent = \"turn_end\"\ncommand = \"cat > ended\"\n[[hooks]]\nevent = \"server_state\"\ncommand = \"cat > server\"\n[[hooks]]\nevent = \"approval\"\ntool = \"bad\"\ncommand = \"exit 2\"\n")
	w.start()
	b := bus.New(bus.Config{})
	stop, err := w.h.Follow(b)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := bus.Publish(b.Kernel(), event.TurnWasCompleted, "s", event.TurnCompleted{TurnID: "t1"}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the end of the turn is told", func() bool {
		got, err := os.ReadFile(w.dir + "/ended")
		return err == nil && strings.Contains(string(got), `"kind":"turn.completed"`) && strings.Contains(string(got), "t1")
	})
	for name, want := range map[string]bool{"good": true, "bad": false} {
		c, d := call(name, "", "{}", tool.OriginLoop)
		if err := w.h.Approving(t.Context(), c, d); (err == nil) != want {
			t.Errorf("Approving(%s) = %v, want no error: %v", name, err, want)
		}
	}
	if b.Wanted(event.ApprovalRequested.Name()) {
		t.Error("hooks count as somebody who can be asked")
	}
}

// BenchmarkRelay is a call of an MCP client through a dispatcher: without hooks it has to cost
// what it costs without this package.
func BenchmarkRelay(b *testing.B) {
	for name, toml := range map[string]string{"without the package": "-", "without hooks": "", "with a hook for another tool": "[[hooks]]\nevent = \"pre_tool\"\ntool = \"other\"\ncommand = \"true\"\n"} {
		b.Run(name, func(b *testing.B) {
			reg := &tool.Registry{}
			x := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg})
			if toml != "-" {
				w := newWorld(b)
				w.write(w.home+"/hooks.toml", toml)
				w.start()
				x.AddHook(w.h)
				x.SetAfter(w.h)
			}
			it, err := tool.New(tool.Definition{Name: "it", Kind: tool.KindRead}, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
				return tool.OK("x"), nil
			})
			if err == nil {
				err = reg.Register(obedient{it})
			}
			if err != nil {
				b.Fatal(err)
			}
			snap := reg.Snapshot()
			c, _ := call("it", "", "{}", tool.OriginMCP)
			c.Native = &tool.NativeCall{Protocol: "mcp"}
			b.ReportAllocs()
			for b.Loop() {
				if res := x.Call(context.Background(), snap, c); !res.OK {
					b.Fatal(res.Text())
				}
			}
		})
	}
}

type obedient struct{ tool.Tool }

func (obedient) ObeysContext() {}

// A change that comes while hooks are looked up is not lost.
func TestChangedWhileLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *hooks.Hooks
		looks := 0
		h = hooks.Start(t.Context(), hooks.Config{
			User: t.TempDir() + "/hooks.toml", Log: zerolog.Nop(),
			Open: func(string) (*workspace.Workspace, func()) { return nil, func() {} },
			More: func() hooks.Found {
				if looks++; looks == 2 {
					h.Changed()
				}
				return hooks.Found{}
			},
		})
		defer h.Close()
		h.Changed()
		for _, want := range []int{2, 3, 3} {
			if h.State(); looks != want {
				t.Errorf("%d looks, want %d", looks, want)
			}
		}
	})
}
