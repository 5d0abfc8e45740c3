package patch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/yaya-ai/yaya/internal/patch"
)

const poem = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"

func apply(t *testing.T, old, text string) (string, error) {
	t.Helper()
	files, err := patch.Parse(text)
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	return files[0].Apply(old)
}

func TestApply(t *testing.T) {
	for name, tt := range map[string]struct{ old, patch, want string }{
		"as diff writes it":    {poem, "--- a/p\n+++ b/p\n@@ -1,4 +1,4 @@\n one\n-two\n+zwei\n three\n four\n", strings.Replace(poem, "two", "zwei", 1)},
		"wrong numbers":        {poem, "--- a/p\n+++ b/p\n@@ -90,3 +99,3 @@\n five\n-six\n+sechs\n seven\n", strings.Replace(poem, "six", "sechs", 1)},
		"no numbers":           {poem, "--- a/p\n+++ b/p\n@@\n five\n-six\n+sechs\n", strings.Replace(poem, "six", "sechs", 1)},
		"trailing blanks":      {"a  \nb\nc\n", "--- a/p\n+++ b/p\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a  \nB\nc\n"},
		"other indentation":    {"if x {\n\treturn 1\n}\n", "--- a/p\n+++ b/p\n@@ -1,3 +1,3 @@\n if x {\n-    return 1\n+\treturn 2\n }\n", "if x {\n\treturn 2\n}\n"},
		"two hunks":            {poem, "--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@\n-one\n+eins\n two\n@@ -7,2 +7,2 @@\n seven\n-eight\n+acht\n", "eins\ntwo\nthree\nfour\nfive\nsix\nseven\nacht\n"},
		"the nearest":          {"x\na\nx\nb\nx\n", "--- a/p\n+++ b/p\n@@ -3,1 +3,1 @@\n-x\n+y\n", "x\na\ny\nb\nx\n"},
		"CRLF stays":           {"a\r\nb\r\n", "--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\r\nB\r\n"},
		"no newline at end":    {"a\nb", "--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n", "a\nB\n"},
		"still none":           {"a\nb", "--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", "A\nb"},
		"empty context":        {"a\n\nb\n", "--- a/p\n+++ b/p\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", "a\n\nB\n"},
		"insertion":            {poem, "--- a/p\n+++ b/p\n@@ -2,0 +3,1 @@\n+new\n", strings.Replace(poem, "two\n", "two\nnew\n", 1)},
		"envelope":             {poem, "*** Begin Patch\n*** Update File: p\n@@\n five\n-six\n+sechs\n*** End Patch\n", strings.Replace(poem, "six", "sechs", 1)},
		"envelope, after":      {"func a() {\n\tx\n}\nfunc b() {\n\tx\n}\n", "*** Begin Patch\n*** Update File: p\n@@ func b() {\n-\tx\n+\ty\n*** End Patch", "func a() {\n\tx\n}\nfunc b() {\n\ty\n}\n"},
		"envelope, end":        {"x\ny\nx\n", "*** Begin Patch\n*** Update File: p\n@@\n-x\n+z\n*** End of File\n*** End Patch", "x\ny\nz\n"},
		"to nothing":           {"a\n", "--- a/p\n+++ b/p\n@@ -1,1 +0,0 @@\n-a\n", ""},
		"from nothing":         {"", "--- a/p\n+++ b/p\n@@ -0,0 +1,1 @@\n+a\n", "a\n"},
		"looks like a header":  {"-- x\n", "--- a/p\n+++ b/p\n@@ -1,1 +1,1 @@\n--- x\n+++ y\n", "++ y\n"},
		"words around a patch": {poem, "Here it is:\n```diff\n--- a/p\n+++ b/p\n@@ -1,1 +1,1 @@\n-one\n+eins\n", strings.Replace(poem, "one", "eins", 1)},
	} {
		got, err := apply(t, tt.old, tt.patch)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

// A patch that does not fit says where, and changes nothing.
func TestDoesNotFit(t *testing.T) {
	for name, tt := range map[string]struct{ old, patch, why string }{
		"gone":            {poem, "--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@\n one\n-drei\n+three\n", "hunk 1: its lines are not in the present file"},
		"the second":      {poem, "--- a/p\n+++ b/p\n@@ -1,1 +1,1 @@\n-one\n+1\n@@ -9,1 +9,1 @@\n-nine\n+9\n", "hunk 2"},
		"out of order":    {poem, "--- a/p\n+++ b/p\n@@ -7,1 +7,1 @@\n-seven\n+7\n@@ -1,1 +1,1 @@\n-one\n+1\n", "hunk 2"},
		"doubtful":        {"x\na\nx\n", "--- a/p\n+++ b/p\n@@\n-x\n+y\n", "2 times"},
		"doubtful blanks": {" x\n a\n  x\n", "--- a/p\n+++ b/p\n@@ -1 +1 @@\n-x\n+y\n", "2 times"},
		"no patch":        {poem, "please change two to zwei", "names no file"},
		"no file":         {poem, "@@ -1,1 +1,1 @@\n-one\n+1\n", "without a file"},
		"binary":          {poem, "diff --git a/p b/p\nBinary files a/p and b/p differ\n", "binary"},
		"no hunk":         {poem, "--- a/p\n+++ b/p\n", "nothing changes"},
		"twice":           {poem, "*** Begin Patch\n*** Delete File: p\n*** Delete File: p\n*** End Patch", "twice"},
		"no end":          {poem, "*** Begin Patch\n*** Delete File: p\n", "End Patch is missing"},
		"odd line":        {poem, "*** Begin Patch\n*** Update File: p\n@@\nfive\n*** End Patch", "begin with a blank"},
	} {
		if got, err := apply(t, tt.old, tt.patch); err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: got %q, %v, want an error, err with %v", name, got, err, tt.why)
		}
	}
}

func TestParseFiles(t *testing.T) {
	files, err := patch.Parse("diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\ndiff --git a/old b/old\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/h b/i\nrename from h\nrename to i\n--- a/h\n+++ b/i\n@@ -1 +1 @@\n-x\n+y\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintf("%s %s %s %d", f.Op, f.Path, f.To, len(f.Hunks)))
	}
	if want := "[create new  1 delete old  1 change f g 0 change h i 1]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// The output of the real diff for two texts turns one into the other, wherever the
// hunks end up when lines are added before them.
func TestAgainstDiff(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", "c", "", " d", "\te", "--- x", "+++ y", "@@ z", "-f", "+g", "\\ h"})
		text := func(name string) string {
			s := strings.Join(rapid.SliceOfN(line, 0, 12).Draw(rt, name), "\n")
			if s != "" && rapid.Bool().Draw(rt, name+" ends") {
				s += "\n"
			}
			return s
		}
		old, want := text("old"), text("new")
		for name, s := range map[string]string{"old": old, "new": want} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		context := rapid.SampledFrom([]string{"-U3", "-U1", "-U0"}).Draw(rt, "context")
		cmd := exec.Command("git", "diff", "--no-index", "--no-color", context, "old", "new") //nolint:forbidigo,noctx // test
		cmd.Dir = dir
		out, _ := cmd.Output() // 1 is that they differ
		if len(out) == 0 {
			return
		}
		files, err := patch.Parse(string(out))
		if err != nil || len(files) != 1 {
			rt.Fatalf("%v of\n%s", err, out)
		}
		got, err := files[0].Apply(old)
		if err != nil || got != want {
			rt.Fatalf("%q, %v\nwant %q\nof %q by\n%s", got, err, want, old, out)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("--- a/p\n+++ b/p\n@@ -1,4 +1,4 @@\n one\n-two\n+zwei\n three\n four\n", poem)
	f.Add("*** Begin Patch\n*** Update File: p\n@@ x\n five\n-six\n+sechs\n*** End of File\n*** End Patch\n", poem)
	f.Fuzz(func(t *testing.T, text, old string) {
		files, err := patch.Parse(text)
		if err != nil {
			return
		}
		for _, file := range files {
			if out, err := file.Apply(old); err == nil && len(out) > len(old)+len(text)+2*strings.Count(old+text, "\n")+2 {
				t.Errorf("%d bytes become %d", len(old), len(out))
			}
		}
	})
}
