package tool_workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/tool_workspace"
)

// fakeContext is the context that the plugin is loaded with.
type fakeContext struct {
	plugin.Context
	tools  map[string]tool.Tool
	config map[string]string
}

func (c *fakeContext) RegisterTool(t tool.Tool) error {
	c.tools[t.Definition().Name] = t
	return nil
}

func (c *fakeContext) Config(field string) json.RawMessage {
	if v, ok := c.config[field]; ok {
		return json.RawMessage(v)
	}
	return nil
}
func (*fakeContext) Log() *zerolog.Logger        { l := zerolog.Nop(); return &l }
func (*fakeContext) Providers() config.Providers { return config.Providers{} }

type world struct {
	t       *testing.T
	dir     string
	outside string
	c       *fakeContext
	p       *tool_workspace.Plugin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{t: t, dir: filepath.Join(base, "ws"), outside: filepath.Join(base, "ws2"), c: &fakeContext{tools: map[string]tool.Tool{}, config: map[string]string{}}}
	for _, d := range []string{w.dir, w.outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	w.p = tool_workspace.New(func(string) (string, error) { return w.dir, nil }, nil, tool.NewStore(root))
	if err := w.p.OnLoad(t.Context(), w.c); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file(name string) string {
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(data)
}

func (w *world) call(name string, args map[string]any) tool.Result {
	w.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.c.tools[name].Invoke(w.t.Context(), tool.Call{ID: "c", Name: name, Args: raw, SessionID: "s"})
	if err != nil {
		w.t.Fatalf("Invoke(%s) = %v, want no error", name, err)
	}
	return res
}

func (w *world) patch(text string) tool.Result {
	w.t.Helper()
	return w.call("apply_patch", map[string]any{"patch": text})
}

// S-47: the tools that look.
func TestLooking(t *testing.T) {
	w := newWorld(t)
	w.write(".gitignore", "*.log\n/build/\n!keep.log\n")
	w.write("main.go", "package main\n\n// T is a type.\ntype T struct{}\n\nfunc (t *T) Do() {}\n\nfunc main() {}\n")
	w.write("sub/tool.py", "class A:\n    def b(self):\n        return 'needle'\n")
	w.write("sub/.gitignore", "secret.txt\n")
	w.write("sub/secret.txt", "needle")
	w.write("x.log", "needle")
	w.write("keep.log", "needle in the log")
	w.write("build/out.txt", "needle")
	w.write(".git/config", "needle")
	w.write("bin.dat", "needle\x00")
	for name, want := range map[string]string{
		"repo_tree": ".gitignore\nkeep.log\nmain.go\nsub/\n  .gitignore\n  tool.py\n",
		"repo_map":  "main.go\n  4: type T\n  6: method T.Do\n  8: func main\nsub/tool.py\n  1: class A\n  2: func b\n",
	} {
		got := w.call(name, nil).Text()
		if name == "repo_tree" {
			got = strings.Replace(got, "bin.dat\n", "", 1)
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := w.call("search", map[string]any{"pattern": "needle"}).Text(); got != "keep.log:1: needle in the log\nsub/tool.py:3:         return 'needle'\n" {
		t.Errorf("got %q, want %q", got, "keep.log:1: needle in the log\nsub/tool.py:3:         return 'needle'\n")
	}
	if got := w.call("search", map[string]any{"pattern": "NEEDLE", "ignore_case": true, "glob": "*.py"}).Text(); got != "sub/tool.py:3:         return 'needle'\n" {
		t.Errorf("got %q, want %q", got, "sub/tool.py:3:         return 'needle'\n")
	}
	if got := w.call("search", map[string]any{"pattern": "(self)", "literal": true, "path": "sub/tool.py"}).Text(); got != "sub/tool.py:2:     def b(self):\n" {
		t.Errorf("got %q, want %q", got, "sub/tool.py:2:     def b(self):\n")
	}
	if res := w.call("search", map[string]any{"pattern": "("}); res.OK || res.ErrorKind != tool.ErrValidation {
		t.Errorf("got %v, want no OK, ErrorKind %v", res, tool.ErrValidation)
	}
	if got := w.call("read_file", map[string]any{"path": "main.go", "offset": 3, "limit": 2}).Text(); got != "     3\t// T is a type.\n     4\ttype T struct{}\n… the file has 8 lines: continue with offset 5\n" {
		t.Errorf("got %q, want %q", got, "     3\t// T is a type.\n     4\ttype T struct{}\n… the file has 8 lines: continue with offset 5\n")
	}
	if res := w.call("read_file", map[string]any{"path": "bin.dat"}); res.OK || !strings.Contains(res.Text(), "not text") {
		t.Errorf(`got %v, want no OK, "not text" in it`, res)
	}
	w.write("long.txt", strings.Repeat("0123456789\n", 20_000))
	if got := w.call("read_file", map[string]any{"path": "long.txt"}).Text(); len(got) > 64<<10 || !strings.Contains(got, "continue with offset 1001") {
		t.Errorf(`got %v, %v, want len(got) at most %v, "continue with offset 1001" in it`, len(got), got[len(got)-100:], 64<<10)
	}
	if res := w.call("git_status", nil); res.OK { // no repository
		t.Errorf("got %v, want no OK", res)
	}
}

// TW-17: git is asked about, and what a repository's own configuration would run is not.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	w := newWorld(t)
	canary := filepath.Join(w.outside, "ran")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	w.write("a.txt", "one\n")
	git("init", "-q", "-b", "trunk")
	git("add", ".")
	git("commit", "-qm", "first")
	for _, key := range []string{"core.fsmonitor", "diff.external", "core.pager", "pager.status"} {
		git("config", key, "sh -c 'touch "+canary+"; cat'")
	}
	w.write("a.txt", "two\n")
	w.write("b.txt", "new\n")
	got := w.call("git_status", map[string]any{"diff": true}).Text()
	if !strings.Contains(got, "branch trunk") || !strings.Contains(got, " M a.txt") || !strings.Contains(got, "?? b.txt") || !strings.Contains(got, "-one\n+two") {
		t.Errorf(`got %v, want "branch trunk" in it, " M a.txt" in it, "?? b.txt" in it, %q in it`, got, "-one\n+two")
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the repository's configuration was run")
	}
}

// S-50, S-56: patches change files, whole or not at all.
func TestPatches(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "one\ntwo\nthree\n")
	w.write("b.txt", "b\n")
	if err := os.Chmod(filepath.Join(w.dir, "a.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	res := w.patch("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n--- /dev/null\n+++ b/new/deep/c.txt\n@@ -0,0 +1 @@\n+c\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n")
	if !res.OK || w.file("a.txt") != "one\nzwei\nthree\n" || w.file("new/deep/c.txt") != "c\n" || !strings.HasPrefix(w.file("b.txt"), "(") {
		t.Fatalf(`got %+v, want OK, file %q, file %q, file beginning with "("`, res, "one\nzwei\nthree\n", "c\n")
	}
	if info, err := os.Stat(filepath.Join(w.dir, "a.txt")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is %v", info.Mode())
	}
	if len(res.Artifacts) != 1 || res.Artifacts[0].MimeType != "text/x-diff" {
		t.Errorf(`got %+v, want len(Artifacts) 1, Artifacts[0].MimeType "text/x-diff"`, res.Artifacts)
	}
	if res := w.patch("*** Begin Patch\n*** Update File: a.txt\n*** Move to: moved.txt\n@@\n-one\n+eins\n*** End Patch\n"); !res.OK || w.file("moved.txt") != "eins\nzwei\nthree\n" || !strings.HasPrefix(w.file("a.txt"), "(") {
		t.Errorf(`got %+v, want OK, file %q, file beginning with "("`, res, "eins\nzwei\nthree\n")
	}
	if err := os.Mkdir(filepath.Join(w.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", filepath.Join(w.dir, "linked")); err != nil {
		t.Fatal(err)
	}
	before := w.call("repo_tree", nil).Text()
	for name, p := range map[string]string{
		"over a link":   "--- /dev/null\n+++ b/linked/config\n@@ -0,0 +1 @@\n+x\n",
		"second hunk":   "--- a/moved.txt\n+++ b/moved.txt\n@@ -1 +1 @@\n-eins\n+1\n@@ -9 +9 @@\n-nine\n+9\n",
		"second file":   "--- a/moved.txt\n+++ b/moved.txt\n@@ -1 +1 @@\n-eins\n+1\n--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +1 @@\n-x\n+y\n",
		"is there":      "--- a/moved.txt\n+++ b/moved.txt\n@@ -1 +1 @@\n-eins\n+1\n--- /dev/null\n+++ b/new/deep/c.txt\n@@ -0,0 +1 @@\n+c\n",
		"git's":         "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n",
		"git's, hidden": "--- /dev/null\n+++ b/sub/../.GIT/config\n@@ -0,0 +1 @@\n+x\n",
		"half deleted":  "--- a/moved.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-eins\n",
		"no patch":      "make it better",
		"a folder":      "--- a/new\n+++ b/new\n@@ -1 +1 @@\n-x\n+y\n",
	} {
		if res := w.patch(p); res.OK || w.file("moved.txt") != "eins\nzwei\nthree\n" || !strings.HasPrefix(w.file(".git/config"), "(") {
			t.Errorf(`%s: got %+v, want no OK, file %q, file beginning with "("`, name, res, "eins\nzwei\nthree\n")
		}
	}
	if after := w.call("repo_tree", nil).Text(); after != before {
		t.Errorf("what is left of refused patches:\n%s", after)
	}
	brief := w.c.tools["apply_patch"].(tool.ApprovalBriefer).ApprovalBrief(tool.Call{Args: json.RawMessage(`{"patch":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+c\n"}`)})
	if brief != "change x, create y" {
		t.Errorf(`got %q, want "change x, create y"`, brief)
	}
}

// A patch that cannot be made whole is not made: a folder that cannot be written
// leaves the other files as they were (TW-05).
func TestPatchesAreUndone(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root writes everywhere: the second file is made a folder in between instead")
	}
	w := newWorld(t)
	w.write("a.txt", "one\n")
	w.write("sub/b.txt", "two\n")
	if err := os.Link(filepath.Join(w.dir, "sub/b.txt"), filepath.Join(w.dir, "sub/other")); err != nil {
		t.Fatal(err)
	}
	res := w.patch("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/sub/b.txt\n+++ b/sub/b.txt\n@@ -1 +1 @@\n-two\n+2\n")
	if res.OK || w.file("a.txt") != "one\n" || w.file("sub/other") != "two\n" {
		t.Errorf("got %+v; %q %q, want no OK, file %q, file %q", res, w.file("a.txt"), w.file("sub/other"), "one\n", "two\n")
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TW-01, TW-02: no path and no link leads out, for reading or for writing.
func TestNothingOutside(t *testing.T) {
	w := newWorld(t)
	canary := filepath.Join(w.outside, "canary.txt")
	if err := os.WriteFile(canary, []byte("canary-secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": w.outside, "file": canary, "chain": "out", "self": "self", "up": "..", "dangling": filepath.Join(w.outside, "new.txt"), "proc": "/proc/self/root"} {
		if err := os.Symlink(to, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.Pipe(t, filepath.Join(w.dir, "fifo"))
	paths := []string{
		"../ws2/canary.txt", canary, "out/canary.txt", "file", "chain/canary.txt", "up/ws2/canary.txt", "self", "fifo", "proc" + canary, "/proc/self/root" + canary, "~/x", "a\x00b",
		strings.Repeat("x/", 5000), strings.Repeat("../", 100) + "etc/passwd", w.dir + "2/canary.txt", "./../ws2/canary.txt", "..", "%2e%2e/ws2/canary.txt", "dangling",
	}
	for _, p := range paths {
		for name, args := range map[string]map[string]any{
			"read_file": {"path": p}, "repo_tree": {"path": p}, "repo_map": {"path": p}, "search": {"path": p, "pattern": "canary"},
		} {
			if got := w.call(name, args).Text(); strings.Contains(got, "canary-secret") || strings.Contains(got, "root:") {
				t.Errorf("%s of %.60q: %s", name, p, got)
			}
		}
		if strings.ContainsAny(p, "\x00\n") || len(p) > 1000 {
			continue
		}
		for _, patch := range []string{
			fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-canary-secret\n+pwned\n", p),
			fmt.Sprintf("--- /dev/null\n+++ b/%s.new\n@@ -0,0 +1 @@\n+pwned\n", p),
			fmt.Sprintf("*** Begin Patch\n*** Delete File: %s\n*** End Patch\n", p),
		} {
			w.patch(patch)
		}
	}
	if got := w.call("search", map[string]any{"pattern": "canary-secret"}).Text(); strings.Contains(got, ":1:") {
		t.Errorf(`got %v, want nothing of ":1:"`, got)
	}
	data, err := os.ReadFile(canary)
	if err != nil || string(data) != "canary-secret\n" {
		t.Errorf("the canary: %q %v", data, err)
	}
	entries, err := os.ReadDir(w.outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v", entries)
	}
}

// TW-03: while a folder is swapped for a link and back, nothing outside is read or
// changed.
func TestSwappedForALink(t *testing.T) {
	w := newWorld(t)
	canary := filepath.Join(w.outside, "f.txt")
	if err := os.WriteFile(canary, []byte("canary-secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.write("d/f.txt", "inside\n")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		d, kept := filepath.Join(w.dir, "d"), filepath.Join(w.dir, "kept")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d, kept)
			_ = os.Symlink(w.outside, d)
			_ = os.Remove(d)
			_ = os.Rename(kept, d)
		}
	})
	for n := range 1500 {
		if got := w.call("read_file", map[string]any{"path": "d/f.txt"}).Text(); strings.Contains(got, "canary") {
			t.Fatalf(`got %v, want nothing of "canary"`, got)
		}
		if n%5 == 0 {
			w.patch("--- a/d/f.txt\n+++ b/d/f.txt\n@@ -1 +1 @@\n-canary-secret\n+pwned\n")
			w.patch("*** Begin Patch\n*** Delete File: d/f.txt\n*** End Patch\n")
			w.patch("--- /dev/null\n+++ b/d/f.txt\n@@ -0,0 +1 @@\n+inside\n")
		}
	}
	close(stop)
	swapping.Wait()
	if data, err := os.ReadFile(canary); err != nil || string(data) != "canary-secret\n" {
		t.Errorf("the canary: %q %v", data, err)
	}
	if entries, err := os.ReadDir(w.outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v %v", entries, err)
	}
}

// S-50: with patch_review auto, a patch of a repository is not asked about, unless it
// changes what configures tools and agents; with request every one is. In a session that edits freely
// its agent is not asked about patches of any folder, with the same exceptions.
func TestReview(t *testing.T) {
	w := newWorld(t)
	w.p.EditsFreely(func(id string) bool { return id == "free" })
	w.write("a.txt", "one\n")
	pre := w.c.tools["apply_patch"].(tool.PreApproved)
	call := func(name string) tool.Call {
		raw, err := json.Marshal(map[string]string{"patch": fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-one\n+1\n", name)})
		if err != nil {
			t.Fatal(err)
		}
		return tool.Call{Name: "apply_patch", Args: raw, SessionID: "s"}
	}
	for mode, want := range map[string]bool{`"off"`: false, `"request"`: false, `"auto"`: false} {
		w.c.config["patch_review"] = mode
		if got := pre.PreApproved(call("a.txt")); got != want {
			t.Errorf("without a repository, %s: %v", mode, got)
		}
	}
	w.c.config["patch_review"] = `"off"`
	for name, want := range map[string]bool{"a.txt": true, "AGENTS.md": false, "Makefile": false, "../ws2/x": false} {
		c := call(name)
		for origin, want := range map[tool.Origin]bool{tool.OriginLoop: want, tool.OriginAPI: false} {
			if c.Origin, c.SessionID = origin, "free"; pre.PreApproved(c) != want {
				t.Errorf("%s from %v in a session that edits freely: pre-approved %v, want %v", name, origin, !want, want)
			}
		}
		if c.Origin, c.SessionID = tool.OriginLoop, "s"; pre.PreApproved(c) {
			t.Errorf("%s in another session is pre-approved", name)
		}
	}
	// Files that instructions import, and those to which links of such names lead, are asked about, too.
	w.write("CLAUDE.md", "see @docs/style.md, @docs/later.md, @guide.md, and all of @docs\n")
	w.write("CLAUDE.local.md", "@docs/mine.md\n")
	w.write("scripts/guide.txt", "one\n")
	w.write("AGENTS.md", "for other agents\n")
	w.write("docs/style.md", "one, and @more.md\n")
	w.write("scripts/check.sh", "one\n")
	w.write("scripts/build.txt", "one\n")
	w.write(".git/hooks/readme", "one\n")
	w.write(".claude/settings.json", "{}\n")
	w.write("skills/x/SKILL.md", "one\n")
	w.write("editor/readme", "one\n")
	for link, to := range map[string]string{".claude/skills": "../skills", ".vscode": "editor", ".git/hooks/pre-commit": "../../scripts/check.sh", "Makefile": filepath.Join(w.dir, "scripts", "build.txt"), "plain": "a.txt", "guide.md": "scripts/guide.txt"} {
		if err := os.Symlink(to, filepath.Join(w.dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"docs/style.md": false, "docs/Later.md": false, "docs/more.md": false, "docs/mine.md": false, "scripts/guide.txt": false, "docs/other.md": true, filepath.Join(w.dir, "a.txt"): true, filepath.Join(w.dir, "Makefile"): false, "skills/x/SKILL.md": false, "editor/tasks.json": false, "scripts/check.sh": false, "scripts/build.txt": false, "a.txt": true} {
		c := call(name)
		if c.Origin, c.SessionID = tool.OriginLoop, "free"; pre.PreApproved(c) != want {
			t.Errorf("%s in a session that edits freely: pre-approved %v, want %v", name, !want, want)
		}
	}
	w.write(".git/HEAD", "ref: refs/heads/trunk\n")
	w.c.config["patch_review"] = `"auto"`
	for name, want := range map[string]bool{"a.txt": true, "AGENTS.md": false, ".mcp.json": false, "sub/.vscode/x": false, "Makefile": false, "mcp.json": false, "src/new.go": true} {
		if got := pre.PreApproved(call(name)); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for mode, want := range map[string]tool.Decision{`"off"`: tool.Abstain, `"request"`: tool.Ask, `"auto"`: tool.Abstain} {
		w.c.config["patch_review"] = mode
		if v, err := w.p.Hook().PreToolCall(context.Background(), call("a.txt"), tool.Definition{}); err != nil || v.Decision != want {
			t.Errorf("%s: got %v %v, want Decision %v", mode, v, err, want)
		}
	}
}
