package kernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/agent_tool"
)

// R25: a file that a sub-agent cannot use starts none, and nobody is asked about it. The error and the
// doctor name the file and the mistake.
func TestBrokenFileOfASubAgent(t *testing.T) {
	for name, tt := range map[string]struct{ front, want string }{
		"a misspelt key":       {"Tools: work", `unknown key \"Tools\" (did you mean \"tools\"?)`},
		"a misspelt tool":      {"tools: worc", `tools has \"worc\", and no tool has this name (did you mean \"work\"?)`},
		"another agent's tool": {"tools: work, Bash", `tools has \"Bash\", and no tool has this name`},
		"a model":              {"model: big", "the setting model.agent names no others"},
		"a server's tool":      {"tools: work, fs__read", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"look","agent":"reviewer"}}]},{"text":"delegated"}]},{"match":"","steps":[{"text":"fine"}]}]}`, answer: approveAll}, func(t *testing.T, w *world) {
				file := filepath.Join(w.dir, "agents", "reviewer.md")
				if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("---\ndescription: Reads\n"+tt.front+"\n---\nBe strict.\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
				w.run("s1", "delegate it")
				synctest.Wait()
				var told string
				for _, ev := range w.events() {
					told += fmt.Sprintf("%s\n", ev.Payload)
				}
				told = strings.ReplaceAll(told+strings.Join(w.history("s1"), "\n"), `\`, "")
				want := strings.ReplaceAll(tt.want, `\`, "")
				started, asked := len(w.web.all("x.agent.subagent.started")), len(w.web.all("approval.request"))
				if tt.want == "" && (started != 1 || asked != 1) || tt.want != "" && (started != 0 || asked != 0 || !strings.Contains(told, want) || !strings.Contains(told, "reviewer.md")) {
					t.Errorf("started %d, asked %d, told %s; want %q", started, asked, told, want)
				}
				for _, d := range w.Plugins.Doctor(t.Context(), plugin.DefaultCheckTimeout) {
					if d.Plugin != "agent-tool" {
						continue
					}
					if tt.want == "" && d.Status != plugin.Healthy || tt.want != "" && (d.Status != plugin.Degraded || len(d.Details) != 1 || !strings.Contains(d.Details[0].Name, "reviewer.md") || !strings.Contains(d.Details[0].Message, want)) {
						t.Errorf("the doctor says %+v, want %q of the file", d, want)
					}
				}
			})
		})
	}
}

// A call that cannot start a sub-agent, with a file or without one, asks nobody.
func TestSubAgentsThatCannotStart(t *testing.T) {
	for args, want := range map[string]string{
		`{"goal":" "}`:                                "the goal must have between 1 and",
		`{"goal":" ","agent":"reviewer"}`:             "the goal must have between 1 and",
		`{"goal":"x","model":"big"}`:                  "the setting model.agent names no others",
		`{"goal":"x","agent":"reviewer","model":"b"}`: "the setting model.agent names no others",
	} {
		script := `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":` + args + `}]},{"text":"delegated"}]}]}`
		inBubble(t, setup{script: script, answer: approveAll}, func(t *testing.T, w *world) {
			file := filepath.Join(w.dir, "agents", "reviewer.md")
			if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("---\ndescription: Reads\n---\nBe strict.\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			w.run("s1", "delegate it")
			synctest.Wait()
			asked, told := len(w.web.all("approval.request")), strings.Join(w.history("s1"), "\n")
			if asked != 0 || !strings.Contains(told, want) {
				t.Errorf("%s: asked %d times, told %s; want %q without a question", args, asked, told, want)
			}
		})
	}
}

// A file that cannot be used is not offered: the note leaves it out, and so does the error about a name
// that no file has.
func TestBrokenFileIsNotOffered(t *testing.T) {
	script := `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"look","agent":"nobody"}}]},{"text":"delegated"}]},{"match":"","steps":[{"text":"fine"}]}]}`
	inBubble(t, setup{script: script, answer: approveAll}, func(t *testing.T, w *world) {
		dir := filepath.Join(w.dir, "agents")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, front := range map[string]string{"claude": "tools: Read, Bash", "big": "model: big", "reviewer": "tools: work"} {
			if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte("---\ndescription: For "+name+"\n"+front+"\n---\nBe strict.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.run("s1", "delegate it")
		synctest.Wait()
		note, told := strings.Join(w.requests()[0], "\n"), strings.Join(w.history("s1"), "\n")
		if !strings.Contains(note, `- reviewer: "For reviewer"`) || strings.Contains(note, "For claude") || strings.Contains(note, "For big") {
			t.Errorf("the first request is %s, want a note on the reviewer alone", note)
		}
		if !strings.Contains(told, "there are reviewer") || strings.Contains(told, "claude") {
			t.Errorf("the session has %s, want that there is the reviewer alone", told)
		}
		for _, d := range w.Plugins.Doctor(t.Context(), plugin.DefaultCheckTimeout) {
			if d.Plugin == "agent-tool" && (d.Summary != "files of sub-agents: 1; broken: 2" || len(d.Details) != 2) {
				t.Errorf("the doctor says %+v, want both files", d)
			}
		}
		if before, err := w.agents.Note("s1").Text, w.agents.OnUnload(t.Context(), nil); before == "" || err != nil || w.agents.Note("s1").Text != "" {
			t.Errorf("the note is %q, and %q after OnUnload (%v), want it empty then", before, w.agents.Note("s1").Text, err)
		}
	})
}

// A sub-agent has the model of its file, unless the call names another one; the question says which.
func TestModelOfAFile(t *testing.T) {
	for args, want := range map[string]string{
		`{"goal":"look","agent":"reviewer"}`:                      "start the sub-agent reviewer with llm-echo/a: look",
		`{"goal":"look","agent":"reviewer","model":"llm-echo/b"}`: "start the sub-agent reviewer with llm-echo/b: look",
	} {
		s := setup{script: `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":` + args + `}]},{"text":"delegated"}]},{"match":"","steps":[{"text":"fine"}]}]}`, answer: approveAll, settings: map[string]string{"model.agent": `["llm-echo/a","llm-echo/b"]`}}
		inBubble(t, s, func(t *testing.T, w *world) {
			file := filepath.Join(w.dir, "agents", "reviewer.md")
			if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("---\ndescription: Reads\nmodel: llm-echo/a\n---\nBe strict.\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			w.run("s1", "delegate it")
			synctest.Wait()
			started := w.web.all("x.agent.subagent.started")
			if len(started) != 1 {
				t.Fatalf("%s starts %d sub-agents, want 1; the session has %q", args, len(started), w.history("s1"))
			}
			if got := w.web.all("approval.request")[0].Payload.(event.ApprovalRequest).Brief; got != want {
				t.Errorf("%s asks %q, want %q", args, got, want)
			}
			var child agent_tool.Started
			if err := json.Unmarshal(started[0].Payload.(json.RawMessage), &child); err != nil {
				t.Fatal(err)
			}
			sess, err := w.Sessions.Find(child.ChildID, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := sess.Model(); err != nil || !strings.Contains(want, got) || got == "" {
				t.Errorf("%s: the model of the sub-agent is %q, %v; want that of the question, %q", args, got, err, want)
			}
		})
	}
}
