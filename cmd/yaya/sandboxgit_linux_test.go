package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// yaya sandbox run tells what a command has left that configures Git, as agents are told.
// The exit code stays the command's.
func TestSandboxRunTellsOfPlantedGit(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	b := newBox(t)
	b.make("ws/f", "repo/.git/HEAD", "repo/.git/config", "repo/.git/objects/x", "repo/.git/refs/x")
	for _, c := range []struct{ name, dir, script, want string }{
		{"a repository with hooks", "ws", "mkdir -p .git/hooks .git/objects .git/refs; echo 'ref: refs/heads/main' >.git/HEAD; echo x >.git/hooks/pre-commit", ".git was not there"},
		{"a nested repository", "ws", "mkdir -p a/b/.git/objects a/b/.git/refs; echo 'ref: refs/heads/main' >a/b/.git/HEAD; echo '[core]' >a/b/.git/config", "a/b/.git"},
		{"hooks of a repository without any", "repo", "mkdir .git/hooks; echo x >.git/hooks/post-checkout", ".git/hooks"},
		{"a module", "repo", "mkdir -p .git/modules/m/objects .git/modules/m/refs; echo 'ref: refs/heads/main' >.git/modules/m/HEAD; echo '[core]' >.git/modules/m/config", ".git/modules/m/config"},
		{"a work tree", "repo", "mkdir -p .git/worktrees/w; echo ../.. >.git/worktrees/w/commondir; echo x >.git/worktrees/w/config.worktree", ".git/worktrees/w/"},
	} {
		_, errOut, code := b.in(filepath.Join(b.dir, c.dir), "sandbox", "run", "--", "sh", "-c", c.script+"; exit 7")
		if code != 7 || !strings.Contains(errOut, "yaya: "+c.want) || !strings.Contains(errOut, "check it before you run Git there outside the sandbox") {
			t.Errorf("%s: got %q, %d; want that it names %s, and 7", c.name, errOut, code, c.want)
		}
	}
	if _, errOut, code := b.in(filepath.Join(b.dir, "ws"), "sandbox", "run", "--", "sh", "-c", "echo x >f"); code != 0 || strings.Contains(errOut, "Git") {
		t.Errorf("a file of the work: got %q, %d; want nothing told of Git", errOut, code)
	}
}
