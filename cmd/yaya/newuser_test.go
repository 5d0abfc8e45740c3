package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// A rule that cannot be read ends a command that works with agents at its start, with the whole
// reason, as a key that does not exist does.
func TestBrokenRuleEndsTheStart(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.edit("config.toml", "[approval]\nrules = [{tool=\"shell\",decision=\"ask\"},{tool=\"x\",decision=\"alow\"}]\n")
	out, err := b.run("run", "/tool repo_tree {}")
	for _, want := range []string{`approval.rules: rule 2 cannot be read: decision "alow" is none of allow, ask and deny`, "correct it in ", "yaya config set approval.rules"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("yaya run: got %v, %s; want an error with %q", err, out, want)
		}
	}
	if strings.Contains(out, "→") {
		t.Errorf("yaya run has begun: %s", out)
	}
}

// A setting that names a strategy or a provider that is not there is saved, and the command says so.
func TestSettingsThatNameNothing(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("provider", "add", "work", "--base-url", "https://llm.example.com/v1", "--model", "m")
	for _, c := range []struct{ key, value, want string }{
		{"strategy", "codr", `yaya has no strategy "codr" (did you mean "coder"?)`},
		{"provider", "wrk", `there is no provider "wrk" (did you mean "work"?)`},
		{"model.fallbacks", `["work/x","typo/xx"]`, `there is no provider "typo"`},
		{"model.summary", "typo/xx", `there is no provider "typo"`},
		{"strategy", "coder", ""},
		{"provider", "work", ""},
		{"model.fallbacks", `["work/x"]`, ""},
	} {
		out, errOut, code := b.in(b.dir, "config", "set", c.key, c.value)
		if code != 0 || !strings.Contains(errOut, c.want) || (c.want == "" && errOut != "") {
			t.Errorf("yaya config set %s %s: got %d, %s%s; want %q", c.key, c.value, code, out, errOut, c.want)
		}
	}
	b.must("config", "set", "strategy", "codr")
	if out, err := b.run("doctor"); err != nil || !strings.Contains(out, `setting strategy: there is no strategy "codr" (did you mean "coder"?)`) {
		t.Errorf("yaya doctor: got %v, %s; want the strategy, degraded", err, out)
	}
	if out, err := b.run("config", "set", "budget.sesion_cents", "5"); err == nil || !strings.Contains(out, "did you mean budget.session_cents?") {
		t.Errorf("a misspelt key: got %v, %s; want the one that was meant", err, out)
	}
}

// A provider without a key is added with a warning, unless it has one or needs none.
func TestProviderWithoutKey(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for args, warned := range map[string]bool{
		"openai --model gpt-5-mini --use": true, "second --plugin llm-anthropic": true, "ollama --model m": false,
		"custom --base-url https://llm.example.com/v1": false,
	} {
		_, errOut, code := b.in(b.dir, append([]string{"provider", "add"}, strings.Fields(args)...)...)
		id, _, _ := strings.Cut(args, " ")
		if code != 0 || strings.Contains(errOut, id+" has no key: give it one with yaya config set providers."+id+".api_key -") != warned {
			t.Errorf("yaya provider add %s: got %d, %s; want a warning: %v", args, code, errOut, warned)
		}
	}
}

// The hint for who has no model names the service whose key is in the environment.
func TestAddCommand(t *testing.T) {
	for _, v := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY"} {
		t.Setenv(v, "")
	}
	if got, want := addCommand(), "yaya provider add anthropic --model claude-sonnet-4-5 --api-key-stdin --use"; got != want {
		t.Errorf("without a key: addCommand() = %q, want %q", got, want)
	}
	t.Setenv("GROQ_API_KEY", "k")
	if got, want := addCommand(), "yaya provider add groq --model MODEL --use"; got != want {
		t.Errorf("addCommand() = %q, want %q", got, want)
	}
	t.Setenv("OPENAI_API_KEY", "k")
	if got, want := addCommand(), "yaya provider add openai --model gpt-5-mini --use"; got != want {
		t.Errorf("addCommand() = %q, want %q", got, want)
	}
}

// The conversation that is shown has what the model said before its calls, what tools answered, and
// why a call was refused. A session that a run names and that does not exist is said to be new.
func TestSessionShowIsWhole(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte(strings.Repeat("a line\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	model := fakellm.New(
		fakellm.Step{Text: "I look first.", ToolCalls: []fakellm.Call{{Name: "repo_tree", Args: `{}`}}},
		fakellm.Step{ToolCalls: []fakellm.Call{{Name: "read_file", Args: `{"path":"a.txt"}`}}},
		fakellm.Step{ToolCalls: []fakellm.Call{{Name: "shell", Args: `{"command":"ls"}`}}},
		fakellm.Step{Text: "done"}, fakellm.Step{Text: "again"},
	)
	t.Cleanup(model.Close)
	b.provider(model)
	_, errOut, code := b.in(ws, "run", "--session", "look", "go")
	if code != 0 || !strings.Contains(errOut, "the session look is new") {
		t.Errorf("yaya run --session look: got %d, %s; want that it is new", code, errOut)
	}
	if !strings.Contains(errOut, "can trust it with: yaya trust") {
		t.Errorf("yaya run: got %s, want the whole refusal", errOut)
	}
	if _, errOut, code := b.in(ws, "run", "--session", "look", "go on"); code != 0 || strings.Contains(errOut, "is new") || strings.Contains(errOut, "works in") {
		t.Errorf("yaya run of the same session: got %d, %s; want no word about a new one", code, errOut)
	}
	if _, errOut, code := b.in(b.dir, "run", "--session", "look", "go on"); code != 0 || !strings.Contains(errOut, "the session look works in "+ws) {
		t.Errorf("yaya run of the same session elsewhere: got %d, %s; want where it works", code, errOut)
	}
	out := b.must("session", "show", "look")
	for _, want := range []string{"assistant: I look first.\n", "│ a.txt\n", "a line\n", "└ cut; yaya session export has all", "✗ rejected: the folder ", "can trust it with: yaya trust"} {
		if !strings.Contains(out, want) {
			t.Errorf("yaya session show: got %s, want %q in it", out, want)
		}
	}
	if strings.Contains(out, "tool.error") || strings.Count(out, "a line") > 30 {
		t.Errorf("yaya session show: got %s, want no JSON of a refusal, and a bounded output", out)
	}
}
