package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	yaya "github.com/yaya-ai/yaya/sdk/go"
)

func guardTool(ctx context.Context, h *yaya.Host, c yaya.GuardedCall) (yaya.Verdict, error) {
	var in struct{ Do string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return yaya.Verdict{}, err
	}
	switch in.Do {
	case "ask":
		return yaya.Ask(fmt.Sprintf("%s %s %s %s %s", c.Name, c.Kind, c.Origin, c.Principal, c.SessionID)), nil
	case "deny":
		return yaya.Deny("not\nthat"), nil
	case "emit":
		return yaya.Allow(), h.Emit(ctx, "x.subject.heard", c.SessionID, json.RawMessage(c.Args))
	}
	return yaya.Allow(), nil
}

func guardPrompt(_ context.Context, _ *yaya.Host, p yaya.GuardedPrompt) (yaya.Verdict, error) {
	if strings.Contains(p.Text, "password") {
		return yaya.Deny("no passwords"), nil
	}
	return yaya.Allow(), nil
}

// guards asks for the permission to guard calls.
const guards = "[permissions]\nguards = [\"pre_tool\"]\nenv = [\"GUARDS\"]"

// guardsAs answers initialize as a skill that guards, and every guard with a result.
func guardsAs(answer func(r *rogue, id json.RawMessage)) func(*rogue) {
	return func(r *rogue) {
		m := r.next()
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"abi":1,"name":"subject","version":"1.0.0","category":"skill","guards":["pre_tool"]}}`+"\n", m.ID)
		for {
			m := r.next()
			switch {
			case m.ID == nil:
			case m.Method == MethodGuard:
				answer(r, m.ID)
			default:
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
			}
		}
	}
}

func result(text string) func(*rogue, json.RawMessage) {
	return func(_ *rogue, id json.RawMessage) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, text) }
}

// badGuards are guards that do not follow the protocol.
var badGuards = map[string]func(*rogue){
	"guard-crash":    guardsAs(func(*rogue, json.RawMessage) { fmt.Fprintln(os.Stderr, "so long"); os.Exit(3) }),
	"guard-hang":     guardsAs(func(*rogue, json.RawMessage) {}),
	"guard-error":    guardsAs(result(`"error":{"code":-32000,"message":"no disk"}`)),
	"guard-list":     guardsAs(result(`"result":["allow"]`)),
	"guard-null":     guardsAs(result(`"result":null`)),
	"guard-nothing":  guardsAs(result(`"result":{}`)),
	"guard-other":    guardsAs(result(`"result":{"decision":"approve"}`)),
	"guard-capital":  guardsAs(result(`"result":{"decision":"Allow"}`)),
	"guard-true":     guardsAs(result(`"result":{"decision":true}`)),
	"guard-noise":    guardsAs(func(*rogue, json.RawMessage) { fmt.Print(strings.Repeat("allow\n", 2*MaxStrays)) }),
	"guard-both":     guardsAs(result(`"result":{"decision":"allow"},"error":{"code":1,"message":"x"}`)),
	"guard-long":     guardsAs(func(*rogue, json.RawMessage) { fmt.Print(strings.Repeat("x", MaxLine+(1<<20))) }),
	"guard-other-id": guardsAs(func(*rogue, json.RawMessage) { fmt.Println(`{"jsonrpc":"2.0","id":777,"result":{"decision":"allow"}}`) }),
	"guard-slow": guardsAs(func(r *rogue, id json.RawMessage) {
		time.Sleep(500 * time.Millisecond)
		result(`"result":{"decision":"allow"}`)(r, id)
	}),
	"guard-silently": func(r *rogue) { r.greets() }, // does not say that it guards
}

// bell is a tool that any call may ring.
type bell struct {
	mu   sync.Mutex
	rung int
}

func (*bell) Definition() tool.Definition {
	return tool.Definition{Name: "bell", Description: "Rings.", InputSchema: json.RawMessage(`{"type":"object"}`), Kind: tool.KindRead}
}

func (b *bell) Invoke(context.Context, tool.Call) (tool.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rung++
	return tool.Result{OK: true, Display: []tool.Block{tool.Text("rung")}}, nil
}

func (w *world) bell() {
	w.t.Helper()
	if err := w.tools.Register(new(bell)); err != nil {
		w.t.Fatal(err)
	}
}

// PL-03: a plugin guards the calls of a kernel, and messages to it.
func TestGuard(t *testing.T) {
	t.Setenv("GUARDS", "yes")
	w := newWorld(t)
	w.bell()
	w.load("skill", "skill", strings.Replace(guards, `"pre_tool"`, `"prompt", "pre_tool"`, 1))
	if s := w.status(); s.Status != plugin.Loaded || !slices.Equal(s.Guards, plugin.GuardPoints()) {
		t.Fatalf("got %+v, want it %s with two guards; the log:\n%s", s, plugin.Loaded, w.logged())
	}
	for args, want := range map[string]string{
		`{}`:            "rung",
		`{"do":"deny"}`: "denied: plugin subject: not that",
		`{"do":"ask"}`:  "denied: bell needs approval and there is nobody to ask",
		`{"do":"emit"}`: "rung",
	} {
		if res := w.call(t.Context(), "bell", args, nil); !strings.Contains(res.Text(), want) || res.OK != (want == "rung") {
			t.Errorf("bell %s = %+v, want %q; the log:\n%s", args, res, want, w.logged())
		}
	}
	w.sees("x.subject.heard", "emit")
	v, err := w.PreToolCall(t.Context(), tool.Call{SessionID: "s1", Origin: tool.OriginMCP, Caller: tool.Caller{Principal: "token:x"}, Args: json.RawMessage(`{"do":"ask"}`)}, tool.Definition{Name: "bell", Kind: tool.KindRead})
	if err != nil || v.Decision != tool.Ask || v.Reason != "plugin subject: bell read mcp token:x s1" {
		t.Errorf("the verdict = %+v, %v, want a question about everything that the guard was told", v, err)
	}
	for text, denied := range map[string]bool{"hello": false, "the password is x": true} {
		if err := w.Admit(t.Context(), "s1", text); errors.Is(err, plugin.ErrDenied) != denied {
			t.Errorf("Admit(%q) = %v, want a denial: %v", text, err, denied)
		}
	}
	if s := w.status(); s.Status != plugin.Loaded {
		t.Errorf("got %+v, want no failure of it", s)
	}
}

// PL-03, R26: whatever a guard does instead of answering, the call does not run, the reason
// names the plugin, and three failures unload it, which lets no call through either.
func TestRogueGuards(t *testing.T) {
	for mode, want := range map[string]string{
		"guard-crash": "it last said: so long", "guard-hang": "it has not answered in time: 1s", "guard-error": "it answered: no disk",
		"guard-list": "its answer: ", "guard-null": "is none of", "guard-nothing": `its decision "" is none of`, "guard-other": `its decision "approve" is none of`,
		"guard-capital": `"Allow" is none of`, "guard-true": "its answer: ", "guard-noise": "standard output is for the protocol", "guard-both": "it has not answered in time: 1s",
		"guard-long": "a line of more than 8 MiB", "guard-other-id": "it has not answered in time: 1s",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			limit := `"60s"` // more than a guard needs that fails in another way, on a busy machine, too
			if strings.HasPrefix(want, "it has not answered in time") {
				limit = `"1s"`
			}
			if err := w.cfg.Set("plugins.guard_timeout", json.RawMessage(limit)); err != nil {
				t.Fatal(err)
			}
			w.bell()
			w.load("skill", mode, guards)
			if s := w.status(); s.Status != plugin.Loaded {
				t.Fatalf("got %+v, want it %s", s, plugin.Loaded)
			}
			denied := func(want string) {
				t.Helper()
				res := w.call(t.Context(), "bell", `{}`, nil)
				if res.OK || !res.NotRun || res.ErrorKind != tool.ErrRejected || !strings.Contains(res.Text(), "denied: plugin subject guards calls of tools, and ") || !strings.Contains(res.Text(), want) {
					t.Errorf("bell = %+v, want it denied because of %q; the log:\n%s", res, want, w.logged())
				}
			}
			for n := 0; n < 10 && w.status().Status == plugin.Loaded; n++ {
				if n == 0 {
					denied(want)
				} else {
					denied("")
				}
			}
			w.waitLoaded(plugin.Failed)
			denied("yaya plugin reload subject starts it again")
		})
	}
}

// A plugin that does not say that it guards, though its permissions do, is not loaded, and guards.
func TestGuardThatIsNone(t *testing.T) {
	w := newWorld(t)
	w.bell()
	w.load("tool", "guard-silently", guards)
	if s := w.status(); s.Status != plugin.Failed || !strings.Contains(s.Error, "it guards []") {
		t.Errorf("got %+v, want %s, because it guards nothing", s, plugin.Failed)
	}
	if res := w.call(t.Context(), "bell", `{}`, nil); res.OK || !strings.Contains(res.Text(), "plugin subject") {
		t.Errorf("bell = %+v, want it denied", res)
	}
	t.Setenv("GUARDS", "yes")
	w = newWorld(t)
	w.load("skill", "skill", "[permissions]\nenv = [\"GUARDS\"]")
	if s := w.status(); s.Status != plugin.Failed || !strings.Contains(s.Error, "permissions.guards") {
		t.Errorf("got %+v, want %s, because nobody has permitted it to guard", s, plugin.Failed)
	}
}

// A guard that has exited is started again by the next call, which waits for its answer.
func TestGuardStartsAgain(t *testing.T) {
	t.Setenv("GUARDS", "yes")
	w := newWorld(t)
	w.bell()
	p := w.load("skill", "skill", strings.Replace(guards, `"pre_tool"`, `"prompt", "pre_tool"`, 1))
	pid := p.PID()
	if ps, err := os.FindProcess(pid); err != nil || ps.Kill() != nil {
		t.Fatal(err)
	}
	eventually.True(t, "its process has ended", func() bool { return p.PID() == 0 })
	if res := w.call(t.Context(), "bell", `{"do":"deny"}`, nil); !strings.Contains(res.Text(), "plugin subject: not that") {
		t.Errorf("bell = %+v, want the answer of the new process", res)
	}
	if p.PID() == pid || p.PID() == 0 {
		t.Errorf("it runs as process %d, want another one than %d", p.PID(), pid)
	}
}

func TestPermissionToGuard(t *testing.T) {
	for list, want := range map[string]string{`["pre_tool", "prompt"]`: "", `["post_tool"]`: "none of", `["prompt", "prompt"]`: "twice"} {
		d, err := ParseDescription(fmt.Appendf(nil, "name = \"x\"\nversion = \"1.0.0\"\ncategory = \"skill\"\nrun = [\"./x\"]\n[permissions]\nguards = %s\n", list))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("guards = %s: %v, want %q", list, err, want)
		}
		if lines := strings.Join(d.Permissions.Lines(), "\n"); err == nil && (!strings.Contains(lines, "guards calls of tools") || !strings.Contains(lines, "guards your messages")) {
			t.Errorf("a person is shown %q, want both guards", lines)
		}
	}
}

// R26: more questions than a guard answers in time are denied and do not count as its failures:
// nobody can unload it by asking a lot.
func TestGuardWithTooManyQuestions(t *testing.T) {
	w := newWorld(t)
	w.bell()
	if err := w.cfg.Set("plugins.guard_timeout", json.RawMessage(`"3s"`)); err != nil {
		t.Fatal(err)
	}
	w.load("skill", "guard-slow", guards)
	var denied atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if res := w.call(t.Context(), "bell", `{}`, nil); !res.OK && strings.Contains(res.Text(), "it has not answered in time") {
				denied.Add(1)
			}
		})
	}
	wg.Wait()
	if n := denied.Load(); n < 3 || n == 20 {
		t.Errorf("%d of 20 questions were denied for want of time, want most of them, and not all; the log:\n%s", n, w.logged())
	}
	if s := w.status(); s.Status != plugin.Loaded {
		t.Errorf("got %+v, want it loaded", s)
	}
}
