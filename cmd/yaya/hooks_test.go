package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A hook denies calls of agents and of MCP clients, whatever the rules allow, and the audit
// names it; a prompt that a hook denies ends the turn. Hooks see results, asks and the ends of
// turns.
func TestHooks(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	const hooks = `
[[hooks]]
name = "no-reading"
event = "pre_tool"
tool = "read_file|*__now"
command = "echo not here >&2; exit 2"
[[hooks]]
name = "no-leaks"
event = "prompt"
command = "if grep -q password; then exit 2; fi"
[[hooks]]
name = "asks"
event = "pre_tool"
tool = "repo_tree"
command = """echo '{"decision":"ask"}'"""
[[hooks]]
name = "nobody-asks"
event = "approval"
command = "exit 2"
[[hooks]]
name = "adds"
event = "post_tool"
tool = "search"
command = """echo '{"context":"and more"}'"""
[[hooks]]
name = "ended"
event = "turn_end"
command = "cat > ended.json"
`
	for path, text := range map[string]string{
		filepath.Join(ws, "a.txt"):                "one\n",
		filepath.Join(b.dir, "c", "hooks.toml"):   hooks,
		filepath.Join(b.dir, "c", "config.toml"):  "approval.rules = [{decision = \"allow\"}]\n",
		filepath.Join(b.dir, ".ssh", "id_rsa"):    "x",
		filepath.Join(b.dir, "files", "note.txt"): "x",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"tool_calls":[{"name":"read_file","args":{"path":"a.txt"}},{"name":"search","args":{"pattern":"one"}},{"name":"repo_tree","args":{}}]},{"text":"done"}]}`)
	b.cwd = ws
	b.serve()
	all := b.say(`{"workspace_path":"`+ws+`"}`, "hello")
	if !strings.Contains(all, `denied: hook \"no-reading\": not here`) || !strings.Contains(all, "a.txt:1") {
		t.Errorf("the turn has %s, want read_file denied by the hook, and search", all)
	}
	if !strings.Contains(all, `nobody-asks`) || !strings.Contains(all, "and more") {
		t.Errorf("the turn has %s, want an ask that a hook denies, and a result that one completes", all)
	}
	eventually.True(t, "the end of the turn is told", func() bool {
		got, err := os.ReadFile(filepath.Join(ws, "ended.json"))
		return err == nil && strings.Contains(string(got), `"kind":"turn.completed"`)
	})
	_, out := b.v1("POST", "/sessions", `{"workspace_path":"`+ws+`"}`)
	id, _ := out["session_id"].(string)
	status, sent := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","id":"m","parts":[{"type":"text","text":"the password is x"}]}`)
	if status != 202 {
		t.Fatalf("got %v, %v, want status 202", status, sent)
	}
	events, last := b.until(id, "", "session_failed")
	if said := string(events[len(events)-1].Data); !strings.Contains(said, "no-leaks") {
		t.Errorf("the turn ends with %s, want the hook's name", said)
	}
	// A retry does not lead around the hook.
	turn, _ := sent["turn_id"].(string)
	if status, out := b.v1("POST", "/sessions/"+id+"/turns/"+turn+"/retry", ""); status != 202 {
		t.Fatalf("retry: got %v, %v, want status 202", status, out)
	}
	b.until(id, last, "session_failed")
	if out := b.must("audit", "--json"); strings.Count(out, "hook_denied") != 4 || !strings.Contains(out, "no-reading") || !strings.Contains(out, "no-leaks") {
		t.Errorf("yaya audit = %s, want all denials with the names of the hooks", out)
	}
}

// The hooks of the examples do what their comments say.
func TestExampleHooks(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "hooks", "hooks.toml"))
	if err == nil {
		err = os.MkdirAll(filepath.Join(b.dir, "c"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "c", "hooks.toml"), text, 0o600)
	}
	ws := filepath.Join(b.dir, "ws")
	if err == nil {
		err = os.Mkdir(ws, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"no-push", "--tool", "shell", "--input", `{"command":"git push"}`}, "deny\nreason: push by hand, after a review\n", 1},
		{[]string{"no-push", "--tool", "shell", "--input", `{"command":"ls"}`}, "allow\n", 0},
		{[]string{"ask-before-deletion", "--tool", "db__drop_table"}, "ask\nreason: it deletes something\n", 0},
		{[]string{"house-rules"}, "allow\ncontext: Write commit messages in the imperative. Indent with tabs.\n", 0},
		{[]string{"journal"}, "allow\n", 0},
	} {
		if out, errOut, code := b.in(ws, append([]string{"hook", "test"}, c.args...)...); out != c.want || code != c.code {
			t.Errorf("yaya hook test %q = %q, %d (%s), want %q, %d", c.args, out, code, errOut, c.want, c.code)
		}
	}
	if log, err := os.ReadFile(filepath.Join(ws, ".turns.log")); err != nil || !strings.Contains(string(log), "a turn has ended") {
		t.Errorf("the journal is %q, %v, want a line", log, err)
	}
}
