package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// program builds yaya.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short does without the programs")
	}
	bin := filepath.Join(t.TempDir(), "yaya")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-ldflags", "-w", "-o", bin, "github.com/yaya-ai/yaya/cmd/yaya").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// The scripted model solves each task with the agent's tools, and each check finds out a wrong
// solution.
func TestTasks(t *testing.T) {
	if peers, err := filepath.Abs("../peers/npm/node_modules/.bin"); err == nil { // with a Node that reads TypeScript
		t.Setenv("PATH", peers+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	r := runner{bin: program(t), model: model{plugin: scripted}}
	all, err := tasksIn("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("all", func(t *testing.T) {
		for _, task := range all {
			for name, calls := range map[string][]call{"solve": task.Solve, "wrong": task.Wrong} {
				t.Run(task.Name+"/"+name, func(t *testing.T) {
					t.Parallel()
					got, err := r.run(t.Context(), task, calls)
					if err != nil {
						t.Fatal(err)
					}
					if got.Skipped != "" {
						if os.Getenv("YAYA_PEERS_REQUIRED") != "" {
							t.Errorf("skipped: %s", got.Skipped)
						}
						t.Skip(got.Skipped)
					}
					if solved := name == "solve"; got.Passed != solved || got.Steps != len(calls)+1 {
						t.Errorf("passed is %v after %d steps, want %v after %d: %s", got.Passed, got.Steps, solved, len(calls)+1, got.Why)
					}
				})
			}
		}
	})
}

// Another model than the scripted one has its key and address from the environment; what its calls
// cost counts for a turn that fails, too.
func TestOtherModel(t *testing.T) {
	r := runner{bin: program(t), model: model{plugin: "llm-openai", name: "gpt-4.1-mini"}}
	all, err := tasksIn("testdata")
	if err != nil {
		t.Fatal(err)
	}
	task := all[slices.IndexFunc(all, func(t task) bool { return t.Name == "go-bug-window" })]
	right := fakellm.Step{ToolCalls: []fakellm.Call{{Name: "edit", Args: `{"path":"window.go","old_text":"at < i;","new_text":"at <= i;"}`}}}
	for name, tc := range map[string]struct {
		steps []fakellm.Step
		want  result
		why   string
	}{
		"solved": {[]fakellm.Step{right, {Text: "done"}}, result{Passed: true, Steps: 2, Input: 200, Cached: 80, Output: 14}, ""},
		"failed": {[]fakellm.Step{{ToolCalls: []fakellm.Call{{Name: "repo_tree", Args: `{}`}}}, {Status: 401, Text: "no such key"}}, result{Steps: 1, Input: 100, Cached: 40, Output: 7}, "no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.New(tc.steps...)
			defer s.Close()
			t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
			t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
			got, err := r.run(t.Context(), task, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Passed != tc.want.Passed || got.Steps != tc.want.Steps || got.Input != tc.want.Input || got.Cached != tc.want.Cached || got.Output != tc.want.Output || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %+v, want %+v because of %q", got, tc.want, tc.why)
			}
			if key := s.Requests()[0].Authorization; key != "Bearer sk-of-the-environment" {
				t.Errorf("sent the key %q, want that of the environment", key)
			}
		})
	}
}

// There are thirty tasks, some of each kind, and the folder stays small.
func TestFolder(t *testing.T) {
	all, err := tasksIn("testdata")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, task := range all {
		count[task.Kind]++
	}
	if len(all) < 30 {
		t.Errorf("there are %d tasks, want 30", len(all))
	}
	for _, k := range kinds {
		if count[k] == 0 {
			t.Errorf("no task has the kind %q", k)
		}
	}
	var bytes int64
	if err := filepath.WalkDir("testdata", func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err == nil {
			bytes += i.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if bytes > 256<<10 {
		t.Errorf("the tasks have %d bytes, want 256 KiB at most", bytes)
	}
}

// A task says what it lacks, or what it has too much.
func TestTaskIsChecked(t *testing.T) {
	whole := `"prompt":"p","check":["true"],"solve":[{"tool":"a","args":{}}],"wrong":[{"tool":"a","args":{}}]`
	for text, want := range map[string]string{
		`{"kind":"bug",` + whole + `}`:                                       "",
		`{"kind":"poem",` + whole + `}`:                                      `not "poem"`,
		`{"kind":"bug",` + whole + `,"hint":"x"}`:                            `unknown field "hint"`,
		`{"kind":"bug",` + strings.Replace(whole, `["true"]`, `[]`, 1) + `}`: "needs prompt, check",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "one"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "one", "task.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tasksIn(dir)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("tasksIn of %s = %v, want %q", text, err, want)
		}
	}
}

// The table sums up what ran, and shows why a task has not passed.
func TestTable(t *testing.T) {
	var b bytes.Buffer
	ok, err := table(&b, []result{
		{Task: "a", Kind: "bug", Passed: true, Steps: 3, Input: 1000, Cached: 900, Output: 50, CostUSD: 0.01, Seconds: 2},
		{Task: "b", Kind: "build", Why: "exit status 1: boom", Steps: 2, Input: 1000, Output: 50, Seconds: 1},
		{Task: "c", Kind: "bug", Skipped: "node is missing"},
	})
	want := `task  kind   passed                    steps  input  cached  output  US$     seconds
a     bug    yes                       3      1000   90 %    50      0.0100  2.0
b     build  no                        2      1000   0 %     50      0.0000  1.0
c     bug    skipped: node is missing  0      0      -       0       0.0000  0.0
all   -      1 of 2                    5      2000   45 %    100     0.0100  3.0

b: exit status 1: boom
`
	if err != nil || ok || b.String() != want {
		t.Errorf("table = %v, %v\n%s\nwant false, no error\n%s", ok, err, b.String(), want)
	}
	if ok, err := table(&b, []result{{Task: "a", Passed: true}, {Task: "c", Skipped: "x"}}); !ok || err != nil {
		t.Errorf("table of what has passed = %v, %v; want true", ok, err)
	}
	if ok, err := table(&b, nil); ok || err != nil {
		t.Errorf("table of nothing = %v, %v; want false", ok, err)
	}
	raw, err := json.Marshal(result{Task: "a", Passed: true})
	if err != nil || !strings.Contains(string(raw), `"cost_usd":0`) || strings.Contains(string(raw), "skipped") {
		t.Errorf("got %s, %v, want a cost and nothing about a skip", raw, err)
	}
}

// A real model is named, with its plugin.
func TestModelIsNamed(t *testing.T) {
	if _, err := eval(t.Context(), new(bytes.Buffer), "yaya", "testdata", "", "", model{plugin: "llm-openai"}); err == nil || !strings.Contains(err.Error(), "-model") {
		t.Errorf("got %v, want that -model is needed", err)
	}
}
