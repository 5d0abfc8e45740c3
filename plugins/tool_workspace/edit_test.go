package tool_workspace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

func (w *world) edit(args map[string]any) tool.Result {
	w.t.Helper()
	return w.call("edit", args)
}

// AGT-1: an edit replaces a text that is unique, and keeps line ends and the mode.
func TestEdit(t *testing.T) {
	w := newWorld(t)
	w.write("a.go", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	w.write("dos.txt", "one\r\ntwo\r\nthree\r\n")
	if err := os.Chmod(filepath.Join(w.dir, "a.go"), 0o750); err != nil {
		t.Fatal(err)
	}
	res := w.edit(map[string]any{"path": "a.go", "old_text": "func b() {\n\treturn 1\n", "new_text": "func b() {\n\treturn 2\n"})
	if want := "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 2\n}\n"; !res.OK || w.file("a.go") != want || len(res.Artifacts) != 1 || !strings.Contains(res.Text(), "(+1 −1)") {
		t.Errorf("got %+v, %q; want %q, and its diff", res, w.file("a.go"), want)
	}
	if info, err := os.Stat(filepath.Join(w.dir, "a.go")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %v, want 0750", info.Mode())
	}
	if res := w.edit(map[string]any{"path": "a.go", "old_text": "return", "new_text": "yield", "replace_all": true}); !res.OK || res.Brief != "2 places changed" || strings.Contains(w.file("a.go"), "return") {
		t.Errorf("got %+v, %q; want two places changed", res, w.file("a.go"))
	}
	if res := w.edit(map[string]any{"path": "dos.txt", "old_text": "one\ntwo\n", "new_text": "1\n2\n"}); !res.OK || w.file("dos.txt") != "1\r\n2\r\nthree\r\n" {
		t.Errorf("got %+v, %q; want the line ends of Windows", res, w.file("dos.txt"))
	}
	w.write("q.sql", "one\n-- two\nthree\n")
	if res := w.edit(map[string]any{"path": "q.sql", "old_text": "-- two\n", "new_text": "++ 2\n-- two, too\n"}); !res.OK || !strings.Contains(res.Text(), "changed q.sql (+2 −1)") {
		t.Errorf("got %+v, want two lines more and one less, whatever they begin with", res)
	}
	if res := w.edit(map[string]any{"path": filepath.Join(w.dir, "dos.txt"), "old_text": "three\r\n", "new_text": ""}); !res.OK || w.file("dos.txt") != "1\r\n2\r\n" {
		t.Errorf("got %+v, %q; want the last line gone", res, w.file("dos.txt"))
	}
}

// AGT-1: an edit that does not fit changes nothing, and says where to look.
func TestEditsThatDoNotFit(t *testing.T) {
	w := newWorld(t)
	text := "package a\n\nfunc one() int {\n\tx := compute(1, 2)\n\treturn x\n}\n\nfunc two() int {\n\treturn x\n}\n"
	w.write("a.go", text)
	w.write("bin.dat", "x\x00")
	w.write(".git/config", "x")
	if err := os.Symlink("a.go", filepath.Join(w.dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"not unique":        {map[string]any{"path": "a.go", "old_text": "\treturn x\n", "new_text": "y"}, "old_text is there 2 times, at lines 5, 9"},
		"other white space": {map[string]any{"path": "a.go", "old_text": "func one() int {\n    x := compute(1, 2)\n", "new_text": "y"}, "these lines differ from it in white space:\n     3\tfunc one() int {\n     4\t\tx := compute(1, 2)\n"},
		"something like it": {map[string]any{"path": "a.go", "old_text": "x := compute(1, 3)", "new_text": "y"}, "most like it are:\n     4\t\tx := compute(1, 2)\n"},
		"nothing like it":   {map[string]any{"path": "a.go", "old_text": "zebra", "new_text": "y"}, "nothing like it: read the file first"},
		"nothing to do":     {map[string]any{"path": "a.go", "old_text": "x", "new_text": "x"}, "are the same"},
		"no text":           {map[string]any{"path": "a.go", "old_text": "", "new_text": "x"}, "old_text is empty"},
		"no file":           {map[string]any{"path": "gone.go", "old_text": "a", "new_text": "x"}, "gone.go is not there: create files with apply_patch"},
		"not text":          {map[string]any{"path": "bin.dat", "old_text": "x", "new_text": "y"}, "not text"},
		"outside":           {map[string]any{"path": "../ws2/x", "old_text": "x", "new_text": "y"}, "leads out"},
		"git's":             {map[string]any{"path": "sub/../.GIT/config", "old_text": "x", "new_text": "y"}, "belongs to git"},
		"a link":            {map[string]any{"path": "link.go", "old_text": "package a", "new_text": "y"}, "not a regular file"},
	} {
		if res := w.edit(c.args); res.OK || !strings.Contains(res.Text(), c.want) || w.file("a.go") != text || w.file(".git/config") != "x" {
			t.Errorf("%s: got %q, want %q in it, and no change", name, res.Text(), c.want)
		}
	}
}

// AGT-1: calls of one answer run at once, and none of their changes is lost.
func TestEditsAtOnce(t *testing.T) {
	w := newWorld(t)
	var text, want strings.Builder
	for n := range 30 {
		fmt.Fprintf(&text, "line %02d: old\n", n)
		fmt.Fprintf(&want, "line %02d: new\n", n)
	}
	w.write("a.txt", text.String())
	var all sync.WaitGroup
	for n := range 30 {
		all.Go(func() {
			if n%2 == 0 {
				w.edit(map[string]any{"path": "a.txt", "old_text": fmt.Sprintf("line %02d: old", n), "new_text": fmt.Sprintf("line %02d: new", n)})
				return
			}
			w.patch(fmt.Sprintf("--- a/a.txt\n+++ b/a.txt\n@@ -%d +%d @@\n-line %02d: old\n+line %02d: new\n", n+1, n+1, n, n))
		})
	}
	all.Wait()
	if got := w.file("a.txt"); got != want.String() {
		t.Errorf("after 30 changes at once the file is\n%s", got)
	}
}

// AGT-1, S-50: edits are reviewed like patches.
func TestEditsAreReviewed(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "x")
	w.write(".git/HEAD", "ref: refs/heads/trunk\n")
	e := w.c.tools["edit"]
	call := func(name string) tool.Call {
		raw, err := json.Marshal(map[string]string{"path": name, "old_text": "x", "new_text": "y"})
		if err != nil {
			t.Fatal(err)
		}
		return tool.Call{Name: "edit", Args: raw, SessionID: "s"}
	}
	w.c.config["patch_review"] = `"auto"`
	for name, want := range map[string]bool{"a.txt": true, "AGENTS.md": false, "../x": false} {
		if got := e.(tool.PreApproved).PreApproved(call(name)); got != want {
			t.Errorf("%s: pre-approved %v, want %v", name, got, want)
		}
	}
	if got := e.(tool.Toucher).Touches(call("sub/../a.txt")); len(got) != 1 || got[0] != "a.txt" {
		t.Errorf("it touches %q, want a.txt", got)
	}
	if got := e.(tool.ApprovalBriefer).ApprovalBrief(call("a.txt")); got != "change a.txt" {
		t.Errorf("its brief is %q, want %q", got, "change a.txt")
	}
	w.c.config["patch_review"] = `"request"`
	if v, err := w.p.Hook().PreToolCall(t.Context(), call("a.txt"), tool.Definition{}); err != nil || v.Decision != tool.Ask {
		t.Errorf("got %v %v, want a question", v, err)
	}
}

// AGT-2: several files, or parts of them, are read at once, within bounds.
func TestMultiRead(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "one\ntwo\nthree\n")
	w.write("b.txt", "b\n")
	w.write("long.txt", strings.Repeat("0123456789\n", 20_000))
	got := w.call("multi_read", map[string]any{"files": []map[string]any{{"path": "a.txt", "offset": 2, "limit": 1}, {"path": "gone"}, {"path": "b.txt"}, {"path": "../ws2/x"}}})
	if text := got.Text(); !got.OK || got.Brief != "2 files read" || !strings.Contains(text, "## a.txt\n     2\ttwo\n… the file has 3 lines: continue with offset 3\n## gone\n(cannot be read: ") || !strings.Contains(text, "## b.txt\n     1\tb\n## ../ws2/x\n(cannot be read: ") {
		t.Errorf("got %q, %q", got.Brief, text)
	}
	var many []map[string]any
	for range 20 {
		many = append(many, map[string]any{"path": "long.txt"})
	}
	if got := w.call("multi_read", map[string]any{"files": many}).Text(); len(got) > 70<<10 || strings.Count(got, "continue with offset") != 20 {
		t.Errorf("20 long files are %d bytes and %d beginnings, want at most 64 KiB and 20", len(got), strings.Count(got, "continue with offset"))
	}
	if got := w.call("multi_read", map[string]any{"files": append(many, many[0])}); got.OK || got.ErrorKind != tool.ErrValidation {
		t.Errorf("21 files: got %+v, want a refusal", got)
	}
	if got := w.call("multi_read", map[string]any{"files": []map[string]any{{"path": "gone"}}}); got.OK {
		t.Errorf("no file can be read: got %+v, want a failure", got)
	}
}

// AGT-3: a plan has steps with states.
func TestTodo(t *testing.T) {
	w := newWorld(t)
	step := func(text, state string) map[string]any { return map[string]any{"text": text, "state": state} }
	if got := w.call("todo", map[string]any{"steps": []any{step("a", "done"), step("b", "doing"), step("c", "pending")}}); !got.OK || got.Brief != "2 open steps" {
		t.Errorf("got %+v, want two open steps", got)
	}
	for name, steps := range map[string][]any{"state": {step("a", "later")}, "text": {step(" ", "done")}, "many": make([]any, 51)} {
		for i := range steps {
			if steps[i] == nil {
				steps[i] = step("x", "done")
			}
		}
		if got := w.call("todo", map[string]any{"steps": steps}); got.OK || got.ErrorKind != tool.ErrValidation {
			t.Errorf("%s: got %+v, want a refusal", name, got)
		}
	}
}

// USE-6: an edit or a patch that cannot be made is known before anybody is asked about it, and the check
// changes nothing.
func TestChangesThatCannotBeMadeAreNotAskedAbout(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "one\ntwo\n")
	if err := os.Symlink(w.outside, filepath.Join(w.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		tool string
		args map[string]string
		want string
	}{
		"an edit":                  {"edit", map[string]string{"path": "a.txt", "old_text": "one", "new_text": "1"}, ""},
		"an edit of other text":    {"edit", map[string]string{"path": "a.txt", "old_text": "three", "new_text": "3"}, "nothing was changed: a.txt: old_text is not in the file"},
		"an edit of similar text":  {"edit", map[string]string{"path": "a.txt", "old_text": "one\n  two", "new_text": "3"}, "nothing was changed: a.txt: old_text is not in the file: read the file first"},
		"a patch":                  {"apply_patch", map[string]string{"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}, ""},
		"a patch of other lines":   {"apply_patch", map[string]string{"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-three\n+3\n"}, "nothing was changed: "},
		"a file below a file":      {"apply_patch", map[string]string{"patch": "--- /dev/null\n+++ b/a.txt/x\n@@ -0,0 +1 @@\n+x\n"}, "a.txt/x: not a directory"},
		"a file behind a link":     {"apply_patch", map[string]string{"patch": "--- /dev/null\n+++ b/out/x\n@@ -0,0 +1 @@\n+x\n"}, "nothing was changed: out/x: the path leads out of the workspace"},
		"a move behind a link":     {"apply_patch", map[string]string{"patch": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: out/x\n@@\n-one\n+1\n*** End Patch\n"}, "nothing was changed: out/x: the path leads out of the workspace"},
		"a patch of no file there": {"apply_patch", map[string]string{"patch": "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}, "b.txt: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			c, ok := w.c.tools[tt.tool].(tool.Checker)
			if !ok {
				t.Fatalf("%s checks nothing", tt.tool)
			}
			res, ok := c.Check(t.Context(), tool.Call{ID: "c", Name: tt.tool, Args: raw, SessionID: "s"})
			if ok != (tt.want == "") || !strings.Contains(res.Text(), tt.want) || strings.Contains(res.Text(), "two") {
				t.Errorf("got %v %q, want %q, and no line of the file", ok, res.Text(), tt.want)
			}
			if got := w.file("a.txt"); got != "one\ntwo\n" {
				t.Errorf("the file is now %q", got)
			}
		})
	}
}
