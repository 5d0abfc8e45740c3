package agentskill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

func skill(name, more string) string {
	return "---\nname: " + name + "\ndescription: Does a thing.\n" + more + "---\nBody.\n"
}

// The rules of the specification, one below, at and above each limit.
func TestParse(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		folder, text string
		err, warning string
	}{
		"minimal":               {"pdf", skill("pdf", ""), "", ""},
		"all fields":            {"pdf", skill("pdf", "license: MIT\ncompatibility: git\nmetadata:\n  a: 1\n  b: \"2\"\nallowed-tools: Bash(git:*) Read\n"), "", ""},
		"CRLF and a mark":       {"pdf", "\ufeff" + strings.ReplaceAll(skill("pdf", ""), "\n", "\r\n"), "", ""},
		"letters of others":     {"größe-3", skill("größe-3", ""), "", ""},
		"a name in another NF":  {"ﬁle", skill("file", ""), "", ""},
		"a long name":           {long, skill(long, ""), "", ""},
		"too long a name":       {long + "x", skill(long+"x", ""), "name has 65 characters, 64 at most", ""},
		"no name":               {"pdf", "---\ndescription: x\n---\n", "name is missing", ""},
		"uppercase":             {"Pdf", skill("Pdf", ""), "is not lowercase", ""},
		"a hyphen first":        {"-pdf", skill("-pdf", ""), "starts or ends with a hyphen", ""},
		"two hyphens":           {"p--f", skill("p--f", ""), "two in a row", ""},
		"an underscore":         {"p_f", skill("p_f", ""), "other than lowercase letters", ""},
		"another folder":        {"other", skill("pdf", ""), `name "pdf" is not the name of its folder, "other"`, ""},
		"control characters":    {"x", skill(`"a\e[31m"`, ""), `\x1b[31m`, ""},
		"no description":        {"pdf", "---\nname: pdf\n---\n", "description is missing or empty", ""},
		"a blank description":   {"pdf", "---\nname: pdf\ndescription: \" \"\n---\n", "description is missing or empty", ""},
		"a long description":    {"pdf", "---\nname: pdf\ndescription: " + strings.Repeat("ö", 1024) + "\n---\n", "", ""},
		"too long":              {"pdf", "---\nname: pdf\ndescription: " + strings.Repeat("ö", 1025) + "\n---\n", "description has 1025 characters", ""},
		"compatibility":         {"pdf", skill("pdf", "compatibility: "+strings.Repeat("x", 500)+"\n"), "", ""},
		"too much of it":        {"pdf", skill("pdf", "compatibility: "+strings.Repeat("x", 501)+"\n"), "compatibility has 501 characters", ""},
		"empty compatibility":   {"pdf", skill("pdf", "compatibility: \"\"\n"), "compatibility is empty", ""},
		"a list for a text":     {"pdf", skill("pdf", "license: [a]\n"), "license is not a text", ""},
		"a list of tools":       {"pdf", skill("pdf", "allowed-tools: [Read, Grep]\n"), "", "allowed-tools is a list"},
		"metadata is a text":    {"pdf", skill("pdf", "metadata: x\n"), "metadata is not a mapping", ""},
		"another field":         {"pdf", skill("pdf", "model: opus\n"), "", `no field "model"`},
		"a field twice":         {"pdf", skill("pdf", "name: pdf\n"), "twice", ""},
		"a colon in a value":    {"pdf", "---\nname: pdf\ndescription: Use when: it's asked\n---\n", "", "has no quotes"},
		"not YAML":              {"pdf", "---\nname: [\n---\n", "front matter is not YAML", ""},
		"a list":                {"pdf", "---\n- a\n---\n", "is not a mapping", ""},
		"no front matter":       {"pdf", "# PDF\n", "no front matter", ""},
		"front matter goes on":  {"pdf", "---\nname: pdf\n", "no line --- ends", ""},
		"too much front matter": {"pdf", "---\nname: pdf\nx: " + strings.Repeat("y", 33<<10) + "\n---\n", "no line --- ends", ""},
		"binary":                {"pdf", "---\nname: \x00\n---\n", "not text", ""},
		"not UTF-8":             {"pdf", skill("pdf", "license: \xff\n"), "not text", ""},
		"aliases":               {"pdf", skill("pdf", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"), "an anchor or an alias", ""},
		"deep":                  {"pdf", skill("pdf", "a: "+strings.Repeat("[", 15_000)+"\n"), "front matter is not YAML", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, body, err := agentskill.Parse([]byte(c.text), c.folder)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("Parse() = %v, want %q", err, c.err)
			}
			if err != nil {
				return
			}
			if w := strings.Join(s.Warnings, "; "); (w == "") != (c.warning == "") || !strings.Contains(w, c.warning) {
				t.Errorf("warnings = %q, want %q", w, c.warning)
			}
			if s.Description == "" || strings.Contains(body, "---") || strings.Contains(c.text, "Body") != (body == "Body.") {
				t.Errorf("Parse() = %+v, %q", s, body)
			}
		})
	}
	s, _, err := agentskill.Parse([]byte(skill("pdf", "metadata:\n  version: 1.0\n  no: yes\ndisable-model-invocation: true\n")), "pdf")
	if err != nil || s.Metadata["version"] != "1.0" || s.Metadata["no"] != "yes" || !s.Manual {
		t.Errorf("Parse() = %+v, %v, want metadata as it is written, and a manual skill", s, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, dir string) *agentskill.Folder {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &agentskill.Folder{Root: root, Dir: dir}
}

// A project's skill counts instead of the user's; the first folder counts most; a change on
// the disk is seen by the next look.
func TestLook(t *testing.T) {
	project, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	for at, text := range map[string]string{
		project + "/.claude/skills/both/SKILL.md": skill("both", ""),
		project + "/.agents/skills/both/SKILL.md": skill("both", ""),
		project + "/.yaya/skills/own/SKILL.md":    skill("own", ""),
		first + "/both/SKILL.md":                  skill("both", ""),
		first + "/mine/SKILL.md":                  skill("mine", ""),
		first + "/README.md":                      "not a skill",
		first + "/.git/SKILL.md":                  skill("git", ""),
		first + "/empty/other.md":                 "not a skill either",
		second + "/mine/SKILL.md":                 skill("mine", ""),
		second + "/wrong/SKILL.md":                skill("right", ""),
	} {
		write(t, at, text)
	}
	l := agentskill.NewLibrary(first, second, filepath.Join(second, "none"))
	set := l.Look(folder(t, project))
	var got []string
	for _, f := range set.Skills {
		got = append(got, fmt.Sprint(f.Dir, " ", f.Project, " ", f.ShadowedBy))
	}
	want := []string{
		project + "/.agents/skills/both true ",
		project + "/.claude/skills/both true " + project + "/.agents/skills/both",
		first + "/both false " + project + "/.agents/skills/both",
		first + "/mine false ",
		second + "/mine false " + first + "/mine",
		project + "/.yaya/skills/own true ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("Look() =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(set.Broken) != 1 || set.Broken[0].Dir != second+"/wrong" || !strings.Contains(set.Broken[0].Reason, "is not the name of its folder") {
		t.Errorf("broken = %+v, want %s/wrong with the reason", set.Broken, second)
	}
	if n := len(l.Look(nil).Counting()); n != 2 {
		t.Errorf("without a folder %d skills count, want the user's 2", n)
	}
	write(t, first+"/mine/SKILL.md", strings.ReplaceAll(skill("mine", ""), "a thing", "another"))
	if f, ok := l.Look(nil).Find("mine"); !ok || f.Description != "Does another." {
		t.Errorf("Find(mine) after a change = %q, %v, want the new description", f.Description, ok)
	}
	past := time.Now().Add(-time.Hour)
	for _, what := range []string{"a thing", "nothing"} { // neither the size nor the time tells them apart
		write(t, first+"/mine/SKILL.md", strings.ReplaceAll(skill("mine", ""), "a thing", what))
		if err := os.Chtimes(first+"/mine/SKILL.md", past, past); err != nil {
			t.Fatal(err)
		}
		if f, ok := l.Look(nil).Find("mine"); !ok || f.Description != "Does "+what+"." {
			t.Errorf("Find(mine) after a change that keeps size and time = %q, %v, want %q", f.Description, ok, what)
		}
	}
}

// Hostile skills are named with the reason, and leave the others as they are.
func TestHostile(t *testing.T) {
	hosttest.NeedPipes(t)
	project, outside := t.TempDir(), t.TempDir()
	at := project + "/.agents/skills"
	write(t, at+"/good/SKILL.md", skill("good", ""))
	write(t, at+"/good/references/a.md", "text")
	write(t, at+"/good/binary", "\x00\x01")
	write(t, outside+"/SKILL.md", skill("linked", ""))
	write(t, outside+"/secret", "secret")
	write(t, at+"/bin/SKILL.md", "\x7fELF\x00")
	write(t, at+"/\x1b[31mred/SKILL.md", skill("red", ""))
	for _, name := range []string{"fifo", "huge", "file-link", "folder"} {
		if err := os.MkdirAll(at+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	huge, err := os.Create(at + "/huge/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		huge.Truncate(1 << 40), huge.Close(), hosttest.MakePipe(at + "/fifo/SKILL.md"), hosttest.MakePipe(at + "/good/pipe"), hosttest.MakePipe(at + "/a-pipe"),
		os.Mkdir(at+"/folder/SKILL.md", 0o755),
		os.Symlink(outside+"/SKILL.md", at+"/file-link/SKILL.md"), os.Symlink(outside, at+"/linked"), os.Symlink(at+"/a-pipe", at+"/to-a-pipe"),
		os.Symlink(outside+"/secret", at+"/good/link"), os.Symlink("../bin", at+"/good/up"), os.Symlink("nowhere", at+"/gone"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	set := agentskill.NewLibrary().Look(folder(t, project))
	why := map[string]string{}
	for _, b := range set.Broken {
		why[filepath.Base(b.Dir)] = b.Reason
	}
	for name, want := range map[string]string{
		"bin": "not text", "\x1b[31mred": `"\x1b[31mred"`, "fifo": "not a regular file", "huge": "more than 1048576 bytes", "file-link": "leads out", "linked": "leads out", "folder": "not a regular file",
	} {
		if !strings.Contains(why[name], want) {
			t.Errorf("%q is broken because of %q, want %q", name, why[name], want)
		}
		if strings.Contains(why[name], "\x1b") {
			t.Errorf("the reason of %q has control characters", name)
		}
	}
	good, ok := set.Find("good")
	if !ok || len(set.Skills) != 1 {
		t.Fatalf("skills = %+v, want good alone", set.Skills)
	}
	if body, err := good.Body(); body != "Body." || err != nil {
		t.Errorf("Body() = %q, %v", body, err)
	}
	for name, want := range map[string]string{
		"references/a.md": "", "./references/../references/a.md": "", "../bin/SKILL.md": "not a path inside", "/etc/passwd": "not a path inside", "link": "leads out", "up/SKILL.md": "leads out",
		"pipe": "not a regular file", "references": "not a regular file", "binary": "not text", "none": "no such file", "a\x00b": "not a path",
	} {
		_, err := good.Text(name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Text(%q) = %v, want %q", name, err, want)
		}
	}
	files, more, err := good.Files()
	if fmt.Sprint(files) != "[binary references/a.md]" || more || err != nil {
		t.Errorf("Files() = %q, %v, %v, want the two regular files", files, more, err)
	}
	if err := good.CopyTo(filepath.Join(t.TempDir(), "good")); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("CopyTo() of a skill with links = %v, want an error", err)
	}
}

// A folder with very many skills is read up to the bound, and named.
func TestMany(t *testing.T) {
	dir := t.TempDir()
	for i := range 10_000 {
		if err := os.Mkdir(fmt.Sprintf("%s/s%05d", dir, i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range agentskill.MaxSkills + 1 {
		name := fmt.Sprintf("s%05d", i)
		write(t, dir+"/"+name+"/SKILL.md", skill(name, ""))
	}
	set := agentskill.NewLibrary(dir).Look(nil)
	if len(set.Skills) != agentskill.MaxSkills || len(set.Broken) != 1 || !strings.Contains(set.Broken[0].Reason, "10000 folders") {
		t.Errorf("%d skills and broken %+v, want %d and the folder with its number", len(set.Skills), set.Broken, agentskill.MaxSkills)
	}
}

func TestCopyAndTemplate(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "skills", "mine")
	write(t, from+"/mine/SKILL.md", agentskill.Template("mine", `Says "hello": often.`))
	write(t, from+"/mine/scripts/run.sh", "#!/bin/sh\n")
	if err := os.Chmod(from+"/mine/scripts/run.sh", 0o755); err != nil {
		t.Fatal(err)
	}
	l := agentskill.NewLibrary()
	set, err := l.LookAt(from + "/mine")
	if err != nil || len(set.Skills) != 1 || set.Skills[0].Description != `Says "hello": often.` {
		t.Fatalf("LookAt() = %+v, %v", set, err)
	}
	if err := set.Skills[0].CopyTo(to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to + "/scripts/run.sh"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the copied script: got %v, %v, want mode 755", info, err)
	}
	if err := set.Skills[0].CopyTo(to); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("CopyTo() again = %v, want an error", err)
	}
	if names, err := filepath.Glob(filepath.Dir(to) + "/.*"); err != nil || len(names) != 0 {
		t.Errorf("beside the copy: got %q, %v, want nothing", names, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(skill("pdf", "metadata: {a: b}\n"))
	f.Add("---\nname: a: b: c\n---")
	f.Fuzz(func(t *testing.T, text string) {
		s, _, err := agentskill.Parse([]byte(text), "pdf")
		if err == nil && (s.Name != "pdf" || s.Description == "") {
			t.Errorf("Parse(%q) = %+v without an error", text, s)
		}
	})
}

// BenchmarkLook reads a folder of 40 skills that have not changed.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 40 {
		name := fmt.Sprintf("s%02d", i)
		if err := os.Mkdir(dir+"/"+name, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name+"/SKILL.md", []byte(skill(name, "")), 0o644); err != nil {
			b.Fatal(err)
		}
		if err := os.Chtimes(dir+"/"+name+"/SKILL.md", time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			b.Fatal(err)
		}
	}
	l := agentskill.NewLibrary(dir)
	for b.Loop() {
		if n := len(l.Look(nil).Skills); n != 40 {
			b.Fatalf("%d skills, want 40", n)
		}
	}
}
