package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// S-32: a folder is instructed by AGENTS.md, or where it is missing by CLAUDE.md or GEMINI.md,
// with imports that stay within the workspace and their bounds.
func TestInstructions(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "ws")
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("../outside.md", "stolen")
	write("AGENTS.md", "root rules, see @docs/style.md, @../outside.md, @"+filepath.Join(base, "outside.md")+" @linked.md and @alice\n`@docs/code.md`\n```\n@docs/code.md\n```\n")
	write("CLAUDE.md", "not read: AGENTS.md is there")
	write("docs/style.md", "style @deep.md @../AGENTS.md")
	write("docs/deep.md", "deep")
	write("docs/code.md", "in code")
	write("b/CLAUDE.md", "claude of b")
	write("b/GEMINI.md", "not read")
	write("c/GEMINI.md", "gemini of c")
	write(".gitignore", "node_modules/\nlocal/AGENTS.md\n")
	write("node_modules/evil/AGENTS.md", "evil")
	write("local/AGENTS.md", "evil")
	write("local/CLAUDE.md", "evil")
	write("long/AGENTS.md", strings.Repeat("x", 500)+" @more.md")
	write("long/more.md", strings.Repeat("y", 1000))
	write("loop/AGENTS.md", "@1.md")
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		write("loop/"+n+".md", "part "+n+" @"+string(n[0]+1)+".md @1.md")
	}
	if err := os.Symlink(filepath.Join(base, "outside.md"), filepath.Join(dir, "linked.md")); err != nil {
		t.Fatal(err)
	}
	var guard *workspace.Guard
	w, err := guard.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for at, want := range map[string]struct {
		path string
		has  []string
		not  []string
		more bool
	}{
		".":                 {"AGENTS.md", []string{"root rules", "## docs/style.md\nstyle", "## docs/deep.md\ndeep", "@alice"}, []string{"stolen", "not read", "in code"}, false},
		"b":                 {"b/CLAUDE.md", []string{"claude of b"}, nil, false},
		"c":                 {"c/GEMINI.md", []string{"gemini of c"}, nil, false},
		"docs":              {},
		"node_modules/evil": {},
		"local":             {},
		"..":                {},
		"long":              {"long/AGENTS.md", []string{"xxx", "yyy"}, nil, true},
		"loop":              {"loop/AGENTS.md", []string{"part 1", "part 4"}, []string{"part 5 @"}, true},
	} {
		got, ok := w.Instructions(at, 1000)
		if ok != (want.path != "") || got.Path != want.path || got.More != want.more || len(got.Text) > 1100 {
			t.Errorf("Instructions(%s) = %+v, %v; want %+v", at, got, ok, want)
		}
		for _, s := range want.has {
			if !strings.Contains(got.Text, s) {
				t.Errorf("Instructions(%s) = %q, want %q in it", at, got.Text, s)
			}
		}
		for _, s := range want.not {
			if strings.Contains(got.Text, s) {
				t.Errorf("Instructions(%s) = %q, want no %q", at, got.Text, s)
			}
		}
		if n := strings.Count(got.Text, "## loop/1.md"); n > 1 {
			t.Errorf("loop/1.md was imported %d times", n)
		}
	}
}

// A file of instructions that names thousands of files has few of them looked at: each look reads one.
func TestImportsAreBounded(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for n := range 100 {
		fmt.Fprintf(&b, "@none%d ", n)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("AGENTS.md", b.String()+"@last.md")
	put("last.md", "last")
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if in, ok := w.Instructions(".", 32<<10); !ok || !in.More || strings.Contains(in.Text, "## last.md") {
		t.Errorf("more = %v, text ends with %q; want that not all imports are followed, and that it is said", in.More, in.Text[len(in.Text)-20:])
	}
	put("AGENTS.md", strings.Repeat("x ", 100)+"@last.md")
	if in, ok := w.Instructions(".", 100); !ok || !in.More || strings.Contains(in.Text, "last") {
		t.Errorf("more = %v, text = %q; want nothing of what was cut", in.More, in.Text)
	}
}
