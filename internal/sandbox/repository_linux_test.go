package sandbox

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/racing"
)

// The tests of this repository pass in the sandboxes that agents have for them.
func TestThisRepository(t *testing.T) {
	if testing.Short() || racing.Enabled {
		t.Skip("it compiles the standard library")
	}
	b := needs(t, Namespaces)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	cache := newPlace(t).dir + "/cache"
	for _, name := range []string{"check", "command"} {
		pol := profile(t, name)
		pol.Home, pol.Cache = home, cache
		if pol.Write, pol.Protect, err = Workspace(root); err != nil {
			t.Fatal(err)
		}
		got, err := b.start(t, pol, root, []string{"GOFLAGS=-count=1"}, "go", "test", "./kernel/event/", "./internal/masked/")
		if err != nil || got.code != 0 || strings.Count(got.out, "ok  ") != 2 {
			t.Errorf("%s: code %d, output %q, error %v; want two packages that pass", name, got.code, got.out, err)
		}
	}
}

// Servers and browsers that package managers start answer in their profiles, in whichever folder their
// interpreter lies.
func TestServersOfPackageManagers(t *testing.T) {
	b := needs(t, Namespaces)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	venv, err := filepath.Abs("../peers/py/.venv/bin")
	if err != nil {
		t.Fatal(err)
	}
	npm, err := filepath.Abs("../peers/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	npm = Real(npm) // a work tree may have a link there
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		chromium = ""
	}
	alone := []string{"--executable-path", chromium, "--headless", "--isolated"}
	if os.Geteuid() == 0 {
		alone = append(alone, "--no-sandbox")
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, c := range []struct {
		name, profile, path string
		args                []string
		read                []string
		call, want          string
	}{
		{"time", "server", venv + "/mcp-server-time", nil, nil, `"name":"get_current_time","arguments":{"timezone":"UTC"}`, "UTC"},
		{"git", "server", venv + "/mcp-server-git", nil, nil, `"name":"git_status","arguments":{"repo_path":"WS"}`, "nothing to commit"},
		{"fetch", "server", venv + "/mcp-server-fetch", nil, nil, `"name":"fetch","arguments":{"url":"https://example.invalid/"}`, "isError"},
		{"playwright", "browser", npm + "/@playwright/mcp/cli.js", alone, []string{npm}, `"name":"browser_navigate","arguments":{"url":"data:text/html,<title>it works</title>"}`, "it works"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.path); err != nil {
				t.Skip(err)
			}
			if c.profile == "browser" && chromium == "" {
				t.Skip("there is no Chromium")
			}
			p := newPlace(t)
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", `rm -rf "$1/.git" "$1/fifo" "$1/s" "$1/s-program" && git init -q "$1" && git -C "$1" -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x`, "sh", p.ws).CombinedOutput(); err != nil {
				t.Fatalf("git init and commit = %v, want no error: %s", err, out)
			}
			pol := p.policy(t, c.profile)
			pol.Home, pol.Cache = home, p.dir+"/cache"
			pol.Read = open(t, c.read...)
			run, err := b.Enter(pol)
			if err != nil {
				t.Fatal(err)
			}
			m := &proc.Manager{}
			defer m.Close(t.Context())
			child, err := m.Start(proc.Spec{Path: c.path, Args: c.args, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, Dir: p.ws, Sandbox: run})
			if err != nil {
				t.Fatal(err)
			}
			defer child.Kill()
			lines := bufio.NewReader(child.Stdout)
			answer := func(to string) []byte {
				if _, err := io.WriteString(child.Stdin, to); err != nil {
					t.Fatalf("%v; it said %s", err, child.Stderr())
				}
				for {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						t.Fatalf("%v; it said %s", err, child.Stderr())
					}
					if bytes.Contains(line, []byte(`"id"`)) {
						return line
					}
				}
			}
			answer(hello)
			got := answer(ready + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + strings.ReplaceAll(c.call, "WS", p.ws) + "}}\n")
			if !bytes.Contains(got, []byte(c.want)) {
				t.Errorf("answered %s, want %q; it said %s", got, c.want, child.Stderr())
			}
		})
	}
}
