package scaffold

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every template has a short program, named after the plugin, and brings the SDK.
func TestFiles(t *testing.T) {
	t.Parallel()
	made := 0
	for lang, l := range languages {
		for _, category := range Categories(lang) {
			files, err := Files("weather-report", lang, category)
			if err != nil {
				t.Errorf("Files(%s, %s) = %v, want no error", lang, category, err)
				continue
			}
			made++
			most := 30
			if lang == "go" && (category == "memory" || category == "adapter") { // several events and errors, by hand
				most = 45
			}
			if n := bytes.Count(files[l.program], []byte("\n")); n > most {
				t.Errorf("%s of a %s in %s has %d lines, want at most %d", l.program, category, lang, n, most)
			}
			for name, text := range files {
				if bytes.Contains(text, []byte("my-plugin")) || bytes.Contains(text, []byte("my_plugin")) {
					t.Errorf("%s of a %s in %s has the name of the template in it", name, category, lang)
				}
				if strings.Contains(name, "_test") {
					t.Errorf("the SDK for %s brings its test %s", lang, name)
				}
			}
			for _, want := range map[string][]string{"go": {"yaya/serve.go"}, "python": {"yaya_plugin/__init__.py"}, "typescript": {"yaya/index.js", "yaya/index.d.ts"}}[lang] {
				if files[want] == nil {
					t.Errorf("a plugin in %s lacks %s", lang, want)
				}
			}
		}
		if !slices.Contains(Categories(lang), "tool") {
			t.Errorf("Categories(%s) = %v, want a tool among them", lang, Categories(lang))
		}
	}
	if made != 18 {
		t.Errorf("made %d plugins, want one of each template", made)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, name, lang, category, want string }{
		{"an unknown language", "hello", "cobol", "tool", "go, python, typescript"},
		{"no language", "hello", "", "tool", "go, python, typescript"},
		{"an unknown category", "hello", "python", "poem", "adapter, llm-provider, memory, skill, strategy, tool"},
		{"a name with a capital letter", "Hello", "python", "tool", "does not match"},
		{"a path", "../hello", "python", "tool", "does not match"},
		{"a path as the category", "hello", "python", "../python/tool", "there is no category"},
		{"a name that would be a table of plugin.toml", "a\"\n[permissions]\n", "python", "tool", "toml"},
		{"a name with a comment of plugin.toml", "x\" #", "python", "tool", "is not the name of a plugin"},
		{"a name with a member of plugin.toml", "x\"\nrequires = [\"web\"] #", "python", "tool", "is not the name of a plugin"},
		{"the folder of the SDK in Go", "yaya", "go", "tool", "the SDK is in the folder yaya"},
		{"the folder of the SDK in TypeScript", "yaya", "typescript", "tool", "the SDK is in the folder yaya"},
		{"a plugin of yaya's", "tool-shell", "python", "tool", "a part of yaya"},
	} {
		if _, err := Files(c.name, c.lang, c.category); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Files() = %v, want %q", c.why, err, c.want)
		}
	}
}

// Nothing that exists is changed, whatever it is.
func TestWriteIsNew(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(at string) error{
		"an empty folder": func(at string) error { return os.Mkdir(at, 0o700) },
		"a file":          func(at string) error { return os.WriteFile(at, []byte("mine"), 0o600) },
		"a link":          func(at string) error { return os.Symlink(t.TempDir(), at) },
	} {
		at := filepath.Join(t.TempDir(), "hello")
		if err := make(at); err != nil {
			t.Fatal(err)
		}
		if err := Write(at, map[string][]byte{"main.py": nil}); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("%s: Write() = %v, want that it exists", name, err)
		}
		if _, err := os.Stat(filepath.Join(at, "main.py")); err == nil {
			t.Errorf("%s: Write() has written into it", name)
		}
	}
	at := filepath.Join(t.TempDir(), "hello")
	if err := Write(at, map[string][]byte{"a/b": nil, "../outside": nil}); err == nil {
		t.Error("Write() of a name that leads outside = nil, want an error")
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("a failed Write() left the folder behind")
	}
}
