package agentfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/agentfile"
	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"whole", "---\nname: reviewer\ndescription: Reads\n  changes\ntools: [read_file, search, read_file]\nmodel: big\n---\nBe strict.\n", `reviewer "Reads changes" [read_file search] "Be strict." big`},
		{"a list in one text", "---\ndescription: a\ntools: read_file, search  repo_tree\n---\nx", `reviewer "a" [read_file search repo_tree] "x"`},
		{"no list", "---\ndescription: a\n---\nx", `reviewer "a" all "x"`},
		{"an empty list", "---\ndescription: a\ntools:\n---\nx", `reviewer "a" [] "x"`},
		{"a colon without quotes", "---\ndescription: use it: always\n---\nx", `reviewer "use it: always" all "x"`},
		{"another name", "---\nname: other\ndescription: a\n---\nx", `name is "other", and the name of the file "reviewer"`},
		{"no description", "---\nname: reviewer\n---\nx", "description is missing"},
		{"a long description", "---\ndescription: " + strings.Repeat("a", 1025) + "\n---\nx", "1024 at most"},
		{"no instructions", "---\ndescription: a\n---\n", "no instructions"},
		{"no front matter", "# Reviewer\n", "front matter"},
		{"a tool that is not a name", "---\ndescription: a\ntools: \"read_file, Bash(git:*)\"\n---\nx", `"Bash(git:*)", which is not the name of a tool`},
		{"too many tools", "---\ndescription: a\ntools: " + many(101) + "\n---\nx", "100 at most"},
		{"a mapping of tools", "---\ndescription: a\ntools: {a: b}\n---\nx", "neither a text nor a list"},
		{"a list in a list", "---\ndescription: a\ntools: [[a]]\n---\nx", "not a text"},
		{"an alias", "---\ndescription: &a a\nname: *a\n---\nx", "anchor or an alias"},
		{"a misspelt list", "---\ndescription: a\nTools: read_file\n---\nx", `unknown key "Tools" (did you mean "tools"?); the known ones are name, description, tools, model`},
		{"a similar key", "---\ndescription: a\ntool: read_file\n---\nx", `unknown key "tool" (did you mean "tools"?)`},
		{"another key", "---\ndescription: a\ncolor: red\n---\nx", `unknown key "color"; the known ones are`},
		{"a long model", "---\ndescription: a\nmodel: " + strings.Repeat("a", 201) + "\n---\nx", "200 at most"},
		{"not text", "---\ndescription: a\n---\n\xff", "not text in UTF-8"},
	} {
		f, err := agentfile.Parse([]byte(tt.text), "reviewer")
		list := "all"
		if f.Tools != nil {
			list = fmt.Sprint(f.Tools)
		}
		got := strings.TrimRight(fmt.Sprintf("%s %q %s %q %s", f.Name, f.Description, list, f.Prompt, f.Model), " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: Parse = %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, name := range []string{"", "A", "a b", "-a", "a--b", strings.Repeat("a", 65), "../a", "a\nb"} {
		if f, err := agentfile.Parse([]byte("---\ndescription: a\n---\nx"), name); err == nil {
			t.Errorf("Parse of the file %q = %+v, want an error", name, f)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "tool%d ", i)
	}
	return b.String()
}

// The files of a project count before the user's. Look leaves out other files, and reports broken ones.
func TestLook(t *testing.T) {
	hosttest.NeedPipes(t)
	dir, user := t.TempDir(), t.TempDir()
	project := filepath.Join(dir, ".yaya", "agents")
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	text := func(d string) string { return "---\ndescription: " + d + "\n---\nx" }
	write(filepath.Join(user, "both.md"), text("user's"))
	write(filepath.Join(user, "own.md"), text("user's"))
	write(filepath.Join(project, "both.md"), text("project's"))
	write(filepath.Join(project, "large.md"), text("a")+strings.Repeat("x", agentfile.MaxFile))
	write(filepath.Join(project, "most.md"), text("a")+strings.Repeat("x", agentfile.MaxFile-len(text("a"))))
	write(filepath.Join(project, "Upper.md"), text("a"))
	write(filepath.Join(project, ".hidden.md"), text("a"))
	write(filepath.Join(project, "note.txt"), text("a"))
	write(filepath.Join(project, "folder.md", "a.md"), text("a"))
	write(filepath.Join(dir, "secret.md"), text("a"))
	write(filepath.Join(project, "held.md"), text("a"))
	outside := filepath.Join(t.TempDir(), "out.md")
	write(outside, text("outside"))
	if err := errors.Join(os.Symlink(outside, filepath.Join(project, "leads.md")), hosttest.MakePipe(filepath.Join(project, "pipe.md"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	in := &agentskill.Folder{Root: root, Dir: dir, Check: func(f *os.File, _ fs.FileInfo) error {
		if strings.HasSuffix(f.Name(), "held.md") {
			return errors.New("it is yaya's own")
		}
		return nil
	}}
	set := agentfile.Look(in, user)
	var got []string
	for _, f := range set.Files {
		got = append(got, fmt.Sprintf("%s %s %t %d", f.Name, f.Description, f.Project, len(f.Digest)))
	}
	if want := "both project's true 64; most a true 64; own user's false 64"; strings.Join(got, "; ") != want {
		t.Errorf("Look = %s, want %s", strings.Join(got, "; "), want)
	}
	broken := map[string]string{}
	for _, b := range set.Broken {
		broken[b.Name] = b.Reason
	}
	for name, want := range map[string]string{"large": "more than 32768 bytes", "Upper": "not lowercase", "leads": "leads out of the folder", "pipe": "not a regular file", "held": "yaya's own"} {
		if !strings.Contains(broken[name], want) {
			t.Errorf("%s is reported as %q, want %q", name, broken[name], want)
		}
	}
	if len(broken) != 5 {
		t.Errorf("%d files are broken, want 5: %q", len(broken), broken)
	}
	for name, want := range map[string]string{"large": "cannot be used", "none": "there are both, most, own"} {
		if _, err := set.Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%s) = %v, want %q", name, err, want)
		}
	}
	if f, err := set.Find("both"); err != nil || !f.Project {
		t.Errorf("Find(both) = %+v, %v; want the project's", f, err)
	}
	if set := agentfile.Look(nil, filepath.Join(user, "none")); len(set.Files)+len(set.Broken) != 0 {
		t.Errorf("Look at a folder that is not there = %+v, want nothing", set)
	}
}

// Of a folder with too many files the first are read, and that is reported.
func TestTooManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range agentfile.MaxFiles + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a%03d.md", i)), []byte("---\ndescription: a\n---\nx"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := agentfile.Look(nil, dir)
	if len(set.Files) != agentfile.MaxFiles || len(set.Broken) != 1 || !strings.Contains(set.Broken[0].Reason, "51 files") {
		t.Errorf("Look = %d files, %+v; want %d, and that there are more", len(set.Files), set.Broken, agentfile.MaxFiles)
	}
}
