package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/client"
)

// hostileFolders makes folders that run a command when git looks at them.
var hostileFolders = map[string]func(t *testing.T, dir, command string) (workspace string){
	"a filter": func(t *testing.T, dir, command string) string {
		repository(t, dir)
		gitConfig(t, dir, "filter.e.clean", command)
		return dir
	},
	"a bare repository in a folder": func(t *testing.T, dir, command string) string {
		repository(t, dir)
		gitConfig(t, dir, "filter.e.clean", command)
		gitConfig(t, dir, "core.worktree", ".")
		sub := filepath.Join(dir, "sub")
		if err := os.Rename(filepath.Join(dir, ".git"), sub); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a.txt", ".gitattributes"} {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(sub, name)); err != nil {
				t.Fatal(err)
			}
		}
		return sub
	},
	"a monitor and hooks": func(t *testing.T, dir, command string) string {
		repository(t, dir)
		gitConfig(t, dir, "core.fsmonitor", command)
		gitConfig(t, dir, "filter.e.process", command)
		hook := filepath.Join(dir, ".git", "hooks", "post-index-change")
		writeProgram(t, hook, "#!/bin/sh\n"+command+"\n")
		return dir
	},
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func gitConfig(t *testing.T, dir, key, value string) {
	t.Helper()
	runGit(t, dir, "config", key, value)
}

// repository makes one with a change that git looks at through the filter e.
func repository(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q", "-b", "main")
	put("a.txt", "one\n")
	put(".gitattributes", "* filter=e\n")
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "commit", "-qm", "first")
	put("a.txt", "two\n")
}

// SEC-2: a conversation in a hostile folder runs nothing, neither when it begins nor
// when the agent asks for the status and the difference.
func TestHostileFolderRunsNothing(t *testing.T) {
	for name, hostile := range hostileFolders {
		for _, strategy := range []string{"react", "coder"} {
			for _, by := range []string{"run", "v1"} {
				t.Run(name+"/"+strategy+"/"+by, func(t *testing.T) {
					t.Parallel()
					b := newBox(t)
					canary := filepath.Join(b.dir, "ran")
					ws := hostile(t, filepath.Join(b.dir, "ws"), "sh -c 'touch "+canary+"; cat'")
					b.must("trust", "--yes", ws) // trusting a folder does not make git run
					b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"tool_calls":[{"name":"git_status","args":{"diff":true}}]},{"text":"done"}]}`)
					if by == "run" {
						b.must("run", "--workspace", ws, "--strategy", strategy, "hello")
					} else {
						b.serve()
						b.say(fmt.Sprintf(`{"workspace_path":%q,"strategy":%q}`, ws, strategy), "hello")
					}
					if _, err := os.Stat(canary); err == nil {
						t.Error("the folder's command has run")
					}
				})
			}
		}
	}
}

// say begins a session, says something in it, and returns all that became of it.
func (b *box) say(session, text string) string {
	b.t.Helper()
	status, out := b.v1("POST", "/sessions", session)
	id, _ := out["session_id"].(string)
	if status != 201 || id == "" {
		b.t.Fatalf("POST /sessions: got %d, %v; want status 201 and an id", status, out)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","id":"m","parts":[{"type":"text","text":%q}]}`, text)); status != 202 {
		b.t.Fatalf("a message to %s: got %d, %v; want status 202", id, status, out)
	}
	events, _ := b.until(id, "", "turn_completed")
	var all strings.Builder
	for _, ev := range events {
		all.Write(ev.Data)
	}
	return all.String()
}

// SEC-4: no tool reads or lists yaya's own folders, whoever names them as a workspace
// and however.
func TestOwnFoldersAreOutOfReach(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	data, config := filepath.Join(b.dir, "d"), filepath.Join(b.dir, "c")
	b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"tool_calls":[{"name":"repo_tree","args":{"depth":5}},{"name":"search","args":{"pattern":"PRIVATE KEY"}},{"name":"git_status","args":{}},{"name":"read_file","args":{"path":"server.key"}},{"name":"read_file","args":{"path":"keys/server.key"}},{"name":"read_file","args":{"path":"d/keys/server.key"}}]},{"text":"done"}]}`)
	b.serve()
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(b.dir, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	const mark = "PRIVATE KEY of nobody"
	if err := os.MkdirAll(filepath.Join(data, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(data, "keys"), config} {
		if err := os.WriteFile(filepath.Join(dir, "server.key"), []byte(mark), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	phone, err := client.New("http://"+b.addr, "phone", "a phone")
	if err != nil {
		t.Fatal(err)
	}
	if err := phone.Enroll(t.Context(), nil, b.invite("default", "sessions:write")); err != nil {
		t.Fatal(err)
	}
	for name, ws := range map[string]string{
		"the data folder": data, "the keys": filepath.Join(data, "keys"), "the folder above": b.dir, "a link": link,
		"below a link": filepath.Join(link, "keys"), "the configuration folder": config, "everything": "/",
	} {
		t.Run(name, func(t *testing.T) {
			for _, token := range []string{"", phone.Token} {
				for _, strategy := range []string{"react", "coder"} {
					ob := *b
					ob.t, ob.token = t, token
					status, out := ob.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
					if status == http.StatusBadRequest || status == http.StatusForbidden && token != "" {
						continue // refused at once
					}
					if status != http.StatusCreated {
						t.Fatalf("got %v, %v, want status %d", status, out, http.StatusCreated)
					}
					got := ob.say(fmt.Sprintf(`{"workspace_path":%q,"strategy":%q}`, ws, strategy), "hello")
					if strings.Contains(got, mark) || strings.Contains(got, "tapes") || !strings.Contains(got, "yaya keeps its tools out of its own folders") {
						t.Errorf("%s, device %t: got %.3000s", strategy, token != "", got)
					}
				}
			}
		})
	}
}

// SEC-4: yaya run says at once what is wrong with a workspace that was named; in a
// folder that cannot be one, a conversation goes on without it.
func TestRunOutsideOwnFolders(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"tool_calls":[{"name":"repo_tree","args":{}}]},{"text":"good day"}]}`)
	for name, ws := range map[string]string{"itself": filepath.Join(b.dir, "d"), "above": b.dir} {
		out, err := b.run("run", "--workspace", ws, "hello")
		if err == nil || !strings.Contains(out, "yaya keeps its tools out of its own folders: workspace "+ws) {
			t.Errorf("%s: got %v and %s", name, err, out)
		}
	}
	for _, strategy := range []string{"react", "coder"} {
		cmd := exec.CommandContext(t.Context(), b.bin, b.args("run", "--strategy", strategy, "hello")...)
		cmd.Dir, cmd.Env = b.dir, b.environ()
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "good day") || strings.Contains(string(out), "tapes") {
			t.Errorf("%s, in a folder above: got %v and %s", strategy, err, out)
		}
	}
}
