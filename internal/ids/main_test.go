package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository writes files below a new folder. In the document of each stands every
// requirement, one a line from line 1 on, and then extra.
func repository(t *testing.T, extra string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	var doc strings.Builder
	for _, s := range implemented {
		for n := s.first; n <= s.last; n++ {
			fmt.Fprintf(&doc, "- **%s-%d** It is kept.\n", s.prefix, n)
		}
	}
	files[document] = doc.String() + extra
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// problems are the lines that the command prints for a repository.
func problems(t *testing.T, dir string) []string {
	t.Helper()
	ps, err := check(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range ps {
		out = append(out, p.String())
	}
	return out
}

// An implemented requirement that no test quotes is named, and no other.
func TestUntested(t *testing.T) {
	dir := repository(t, "", map[string]string{
		"a_test.go":                "package a\n\nimport \"testing\"\n\n// Y-1, Y-3…Y-5 and Y-10…Y-90: shown.\nfunc TestA(t *testing.T) { t.Log(\"Y-9\") }\n",
		"b_test.go":                "package a\n\n// Y-6: a file without tests shows nothing.\nvar x int\n",
		"c.go":                     "package a\n\n// Y-7: nor does code.\n",
		"d.txtar":                  "# Y-8\n",
		"internal/ids/ids_test.go": "package ids\n\n// Y-11: nor do made-up ids.\nfunc TestA() {}\n",
	})
	got := problems(t, dir)
	if want := 216 - 4 + 27 - 1 + 57 + 77 - 7; len(got) != want {
		t.Errorf("%d problems, want %d: the ids without a test", len(got), want)
	}
	for n, want := range map[int]bool{1: false, 2: true, 3: false, 4: false, 5: false, 6: true, 7: true, 8: false, 9: false, 10: false, 11: true, 50: true, 101: false} {
		line := fmt.Sprintf("%s:%d: Y-%d is quoted by no test", document, n, n)
		if slices.Contains(got, line) != want {
			t.Errorf("%q is reported: %v, want %v", line, !want, want)
		}
	}
}

// COD-6: the document describes each id that is used, once.
func TestDescribed(t *testing.T) {
	const last = 216 + 27 + 59 + 77
	for name, c := range map[string]struct {
		extra string
		files map[string]string
		want  string // "" for nothing but ids without a test
	}{
		"a comment of code":        {"", map[string]string{"a/a.go": "package a\n\n/* One\n\ntwo (UP-21). */\n"}, "a/a.go:5: UP-21 is not described: say in docs/REQUIREMENTS.md what it promises"},
		"a string":                 {"", map[string]string{"a.go": "package a\n\nconst x = `\n\nHT-03`\n"}, "a.go:5: HT-03 is not described"},
		"an expression":            {"", map[string]string{"a.go": "package a\n\nvar x = HT-3 + R1\n"}, ""},
		"a rule":                   {"", map[string]string{"a.go": "package a // R36\n"}, "a.go:1: R36 is not described"},
		"limits":                   {"", map[string]string{"a.go": "package a // Bounds (C.2).\n"}, "a.go:1: C.2 is not described"},
		"the middle of a range":    {"- **HT-01** It is kept.\n- **HT-03** It is kept.\n", map[string]string{"a.go": "package a // HT-01…HT-03\n"}, "a.go:1: HT-02 is not described"},
		"a whole range":            {"- **HT-01** It is kept.\n- **HT-02** It is kept.\n", map[string]string{"a.go": "package a // HT-01…HT-02\n"}, ""},
		"a range of two families":  {"- **HT-01** It is kept.\n", map[string]string{"a.go": "package a // HT-01…WS-02\n"}, ""},
		"another number of digits": {"- **HT-3** It is kept.\n", map[string]string{"a.go": "package a // HT-03\n"}, "a.go:1: HT-03 is not described"},
		"JavaScript":               {"", map[string]string{"p/a.js": "f()\n// UI-05\n"}, "p/a.js:2: UI-05 is not described"},
		"a module":                 {"", map[string]string{"p/a.mjs": "// UI-05\n"}, "p/a.mjs:1: UI-05 is not described"},
		"Markdown":                 {"", map[string]string{"docs/a.md": "# A\n\nSee SEC-3.\n"}, "docs/a.md:3: SEC-3 is not described"},
		"a sentence of it":         {"- **SEC-3** As SEC-4.\n", map[string]string{}, fmt.Sprintf("docs/REQUIREMENTS.md:%d: SEC-4 is not described", last+1)},
		"other people's files":     {"", map[string]string{"node_modules/a.js": "// UI-05\n", "a/vendor/a.js": "// UI-05\n", "a/bundle/a.js": "x=UI-05", ".x/a.md": "UI-05", "a.json": "UI-05"}, ""},
		"names of others":          {"", map[string]string{"a.go": "package a // P-256, SHA-256, TLS-ALPN-01, SEP-990, CVE-2026-1, RFC 9068\n"}, ""},
		"described twice":          {"\n- **Y-1** It is kept, too.\n", map[string]string{}, fmt.Sprintf("docs/REQUIREMENTS.md:%d: Y-1 is described twice, first in line 1", last+2)},
		"no sentence":              {"- **SEC-3**\n", map[string]string{}, fmt.Sprintf("docs/REQUIREMENTS.md:%d: the entry is not an id and a sentence", last+1)},
		"two ids":                  {"- **SEC-3, SEC-4** They are kept.\n", map[string]string{}, fmt.Sprintf("docs/REQUIREMENTS.md:%d: the entry is not an id and a sentence", last+1)},
		"a requirement more":       {"- **Y-217** It is kept.\n", map[string]string{}, fmt.Sprintf("docs/REQUIREMENTS.md:%d: Y-217 is quoted by no test", last+1)},
		"not implemented":          {"- **Y-217** *Not implemented.* It would be.\n", map[string]string{}, fmt.Sprintf("docs/REQUIREMENTS.md:%d: Y-217 is not implemented, and internal/ids does not know why", last+1)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range problems(t, repository(t, c.extra, c.files)) {
				if !strings.HasPrefix(p, document) || !strings.HasSuffix(p, "is quoted by no test") || strings.Contains(p, "Y-217") {
					got = append(got, p)
				}
			}
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("problems are %q, want none", got)
			case c.want != "" && !slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, c.want) }):
				t.Errorf("problems are %q, want %q among them", got, c.want)
			}
		})
	}
}

// A requirement that is taken out of the document is missed.
func TestMissingRequirement(t *testing.T) {
	dir := repository(t, "", map[string]string{})
	if err := os.WriteFile(filepath.Join(dir, document), []byte("- **Y-1** It is kept.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := problems(t, dir)
	if want := "docs/REQUIREMENTS.md:1: Y-2 is not described: say what it promises"; !slices.Contains(got, want) {
		t.Errorf("problems are %.300q, want %q among them", got, want)
	}
	if err := os.Remove(filepath.Join(dir, document)); err != nil {
		t.Fatal(err)
	}
	if _, err := check(dir); err == nil {
		t.Error("check without the document = nil, want an error")
	}
}
