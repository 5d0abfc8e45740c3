//go:build unix

package tool_shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// outsideGit runs a script as the user does, outside every sandbox.
func outsideGit(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("script %q = %v, want no error: %s", script, err, out)
	}
	return string(out)
}

// settled are the author and what else Git asks for in tests.
func settled(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
}

const linkedRepository = `git init -q -b main main; cd main; git config user.name x; git config user.email x@example.com; echo one >f; git add f; git commit -q -m one
	git worktree add -q ../wt -b topic; git worktree add -q ../other -b other; git pack-refs --all`

// Git works in a linked work tree without a setting: its commits are there for the
// repository. The configuration of Git and the state of other work trees stay unchanged.
func TestLinkedWorkTree(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, backend := range works(t) {
		t.Run(backend, func(t *testing.T) {
			settled(t)
			besideTmp(t)
			w := boxed(t, backend)
			dir := t.TempDir()
			outsideGit(t, dir, linkedRepository)
			w.dir = dir + "/wt"
			git := dir + "/main/.git"
			protects := backend != sandbox.Landlock
			for _, tt := range []struct {
				command string
				works   bool
				want    string
			}{
				{"git status --short && git log --format=%s && git diff", true, "one"},
				{"echo two >f && git commit -qam two && git log --format=%s", true, "two"},
				{"git checkout -q -b more && echo three >f && git commit -qam three && git checkout -q topic && git merge -q more && git tag v1 && git log -1 --format=%s", true, "three"},
				{"echo four >f && git stash -q && git stash pop -q && cat f && git checkout -q f", true, "four"},
				{"git branch -q -d more && git branch", protects, "topic"}, // it locks a file beside config
				{"git rebase -q HEAD~1 && git reset -q --soft HEAD~1 && git commit -qm again && git gc -q 2>&1; git log -1 --format=%s", true, "again"},
				{"git config core.fsmonitor ./evil", false, ""},
				{"echo evil >>" + git + "/config", false, ""},
				{"echo evil >" + git + "/hooks/pre-commit", false, ""},
				{"echo ref: refs/heads/other >" + git + "/HEAD", false, ""},
				{"rm " + git + "/index", false, ""},
				{"echo x >" + git + "/worktrees/other/HEAD", false, ""},
				{"mkdir " + git + "/worktrees/evil", false, ""},
				{"mv " + git + "/worktrees " + git + "/w2", false, ""},
				{"echo x >" + dir + "/main/f", false, ""},
				{"echo x >" + dir + "/other/f", false, ""},
			} {
				res := w.shell(tt.command)
				if res.OK != tt.works || tt.works && !strings.Contains(res.Text(), tt.want) {
					t.Errorf("%s: got %q, want one that works: %v, with %q", tt.command, res.Text(), tt.works, tt.want)
				}
			}
			if protects {
				for _, command := range []string{"echo ../../../../evil >" + git + "/worktrees/wt/commondir", "mv " + git + "/worktrees/wt/gitdir x", "mv " + git + "/config x"} {
					if res := w.shell(command); res.OK {
						t.Errorf("%s: got %q, want a refusal", command, res.Text())
					}
				}
				text := w.shell("mkdir -p " + git + "/rebase-merge && echo exec ./evil >" + git + "/rebase-merge/git-rebase-todo").Text()
				if !strings.Contains(text, "main/.git/rebase-merge/git-rebase-todo was not there") {
					t.Errorf("got %q, want a report of what it planted", text)
				}
				outsideGit(t, dir, "rm -r main/.git/rebase-merge")
			}
			outsideGit(t, dir, "cd main; git fsck; test -z \"$(git status --short)\"; test \"$(git branch --show-current)\" = main; git -C ../other status")
			if got := outsideGit(t, dir, "git -C main log topic --format=%s"); !strings.Contains(got, "two") {
				t.Errorf("the repository has %q of the branch, want what was committed", got)
			}
			w.c.config["verify"] = `["git status --short && git commit -q --allow-empty -m checked"]`
			w.agree()
			if res, err := w.call(t.Context(), "verify", nil, nil); err != nil || !res.OK {
				t.Errorf("as a check: got %q, %v", res.Text(), err)
			}
		})
	}
}

// An ask says that commits are written to a repository outside the workspace.
func TestAskNamesTheRepository(t *testing.T) {
	settled(t)
	w := boxed(t, works(t)[0])
	dir := t.TempDir()
	outsideGit(t, dir, linkedRepository)
	w.dir = dir + "/wt"
	p := &person{}
	w.dispatcher(p)("s", "shell", map[string]any{"command": "true"})
	real, err := filepath.EvalSymlinks(dir)
	must(t, err)
	if want := `"repository":"` + real + `/main/.git"`; len(p.asked) != 1 || !strings.Contains(p.asked[0], want) {
		t.Errorf("asked %q, want %s", p.asked, want)
	}
}

// A folder that was brought gets no way into a repository by a file .git of its own.
func TestForeignRepositoryIsNotWritten(t *testing.T) {
	for _, backend := range works(t) {
		settled(t)
		besideTmp(t)
		w := boxed(t, backend)
		dir := t.TempDir()
		outsideGit(t, dir, linkedRepository)
		for _, to := range []string{"/main/.git", "/main/.git/worktrees/wt"} {
			must(t, os.WriteFile(filepath.Join(w.dir, ".git"), []byte("gitdir: "+dir+to+"\n"), 0o600))
			for _, command := range []string{"git commit -q --allow-empty -m evil", "echo x >" + dir + "/main/.git/objects/x", "echo x >" + dir + to + "/HEAD"} {
				if res := w.shell(command); res.OK {
					t.Errorf("%s, with .git that names %s: %s: got %q, want a refusal", backend, to, command, res.Text())
				}
			}
		}
	}
}

// In a folder below the top of a repository, commands read the repository; what would
// change it says which setting lets it, and that setting leaves its configuration alone.
func TestFolderOfARepository(t *testing.T) {
	for _, backend := range works(t) {
		t.Run(backend, func(t *testing.T) {
			settled(t)
			besideTmp(t)
			w := boxed(t, backend)
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			outsideGit(t, dir, linkedRepository+"; mkdir sub; echo one >sub/f; git add sub; git commit -q -m sub")
			w.dir = dir + "/main/sub"
			if res := w.shell("echo two >f && git status --short && git diff && git log --format=%s"); !res.OK || !strings.Contains(res.Text(), "M f\n") || !strings.Contains(res.Text(), "+two") || !strings.Contains(res.Text(), "one") {
				t.Errorf("reading: got %q", res.Text())
			}
			res := w.shell("git commit -qam two")
			if want := "yaya config set sandbox.command.write '[\"" + dir + "/main/.git\"]'"; res.OK || !strings.Contains(res.Text(), want) || strings.Contains(res.Text(), "may have been kept") {
				t.Errorf("a commit: got %q, want %q", res.Text(), want)
			}
			w.writes = []string{dir + "/main/.git"}
			if res := w.shell("git commit -qam two && git log -1 --format=%s"); !res.OK || !strings.Contains(res.Text(), "two") {
				t.Errorf("a commit with the setting: got %q", res.Text())
			}
			if res := w.shell("echo evil >>../.git/config"); res.OK && backend != sandbox.Landlock {
				t.Errorf("with the setting, a command that configures Git: got %q", res.Text())
			}
		})
	}
}
