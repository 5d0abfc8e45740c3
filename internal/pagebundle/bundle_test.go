package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The page that is served was made of the page that people write, as it is now.
func TestBundleIsCurrent(t *testing.T) {
	want, err := bundle("../../gateway/dashboard/page")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read("../../gateway/dashboard/bundle")
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 30 || !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("gateway/dashboard/bundle is not what the page makes: run make page (%d files of %d)", len(got), len(want))
	}
	for name, data := range want {
		if filepath.Ext(name) != ".json" && (bytes.Contains(data, []byte("@ts-check")) || bytes.Contains(data, []byte("sourceMappingURL"))) {
			t.Errorf("%s has comments", name)
		}
	}
}

// page makes a page in a folder, of which a test changes files.
func page(t *testing.T, changes map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{
		"index.html": `<script type="module" async src="/ui/begin.js"></script>`,
		"begin.js":   "import './words.js';\nimport('./app.js');\n", "words.js": "export const word = 'a word';\nconsole.log('words');\n",
		"app.js":  "import { word } from './words.js';\nimport { shared } from './shared.js';\nconsole.log(word, shared);\nimport('./view.js');\nimport('./other.js');\n",
		"view.js": "import { shared } from './shared.js';\nexport default shared;\n", "other.js": "export default 'other';\n", "shared.js": "export const shared = 'of two views';\n",
		"app.css": "@import './tokens.css';\nb { color: var(--c); }\n", "tokens.css": ":root { --c: red; }\n", "icon.svg": "<svg/>", "vendor/a.txt": "licence", "types.d.ts": "",
	}
	maps.Copy(files, changes)
	for name, text := range files {
		at := filepath.Join(dir, "page", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The first script, what it needs with app, app and a file for each view: no more. A file that is left of an
// earlier bundle goes.
func TestRun(t *testing.T) {
	dir := page(t, nil)
	for range 2 {
		old := filepath.Join(dir, "bundle", "vendor", "old.txt")
		if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(dir); err != nil {
			t.Fatal(err)
		}
		files, err := read(filepath.Join(dir, "bundle"))
		if err != nil {
			t.Fatal(err)
		}
		kinds := []string{}
		for name := range files {
			kind, _, _ := strings.Cut(name, "-")
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		if want := []string{"app", "app.css", "begin", "chunk", "chunk", "icon.svg", "index.html", "other", "vendor/a.txt", "view"}; !slices.Equal(kinds, want) {
			t.Errorf("the files are %v, want %v", slices.Sorted(maps.Keys(files)), want)
		}
		if got := string(files["app.css"]); got != ":root{--c: red}b{color:var(--c)}\n" {
			t.Errorf("app.css is %q", got)
		}
		index := string(files["index.html"])
		for name := range files {
			first := strings.HasPrefix(name, "begin-") || strings.HasPrefix(name, "app-") || strings.HasPrefix(name, "chunk-")
			if strings.Contains(index, `"/ui/`+name+`"`) != first {
				t.Errorf("index.html names %s: %v, want %v:\n%s", name, !first, first, index)
			}
		}
	}
}

func TestBundleRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"a module that cannot be read":       {"view.js", "\nexport default (;", `view.js:2: Unexpected ";"`},
		"a module that is not there":         {"shared.js", "export { x as shared } from './gone.js';", `shared.js:1: Could not resolve "./gone.js"`},
		"a name that a module does not have": {"shared.js", "export const other = 1;", `No matching export in "shared.js" for import "shared"`},
		"no first script":                    {"index.html", "<script></script>", "0 times, want it once"},
		"a style sheet that cannot be read":  {"app.css", "b { color: red", `app.css:1: Expected "}"`},
		"a page without app":                 {"begin.js", "import './words.js';", "nothing was made of app.js"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := page(t, map[string]string{c.file: c.text})
			if err := run(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run() = %v, want %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "bundle")); err == nil {
				t.Error("a page that cannot be bundled left a bundle")
			}
		})
	}
}
