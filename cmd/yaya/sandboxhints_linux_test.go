package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// yaya tells a user who tries a command in a sandbox which paths the command names and
// does not see, and what to do about a repository that its folder lies in.
func TestSandboxRunHints(t *testing.T) {
	needNamespaces(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	b := newBox(t)
	top := filepath.Join(b.dir, "r")
	sub, docs := filepath.Join(top, "sub"), filepath.Join(b.dir, "docs")
	if err := errors.Join(os.MkdirAll(sub, 0o700), os.MkdirAll(docs, 0o700), os.WriteFile(filepath.Join(sub, "f"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", top).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	git, seen := "or allow commits: --write "+filepath.Join(top, ".git"), "the command names "+docs+", which the sandbox hides (to show it: --read "+docs
	for _, c := range []struct {
		name, want string // "" for neither hint
		dir        string
		args       []string
	}{
		{"git that fails below the top", git, sub, []string{"git", "add", "f"}},
		{"in a shell", git, sub, []string{"sh", "-c", "cd . && git add f"}},
		{"git at the top", "", top, []string{"git", "nothing"}},
		{"another command", "", sub, []string{"false"}},
		{"git that works", "", sub, []string{"git", "--version"}},
		{"a hidden folder", seen, sub, []string{"--profile", "server", "ls", docs}},
		{"of a flag", seen, sub, []string{"--profile", "server", "ls", "--ignore=" + docs, "/usr"}},
		{"a folder that is shown", "", sub, []string{"--profile", "server", "--read", docs, "ls", docs}},
		{"one that is not there", "", sub, []string{"--profile", "server", "ls", docs + "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, said, _ := b.in(c.dir, append([]string{"sandbox", "run"}, c.args...)...)
			for _, hint := range []string{git, seen} {
				if strings.Contains(said, hint) != (hint == c.want) {
					t.Errorf("yaya sandbox run %q says %q; want %q in it: %v", c.args, said, hint, hint == c.want)
				}
			}
		})
	}
}
