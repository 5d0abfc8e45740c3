package texts

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var within = flag.String("below", "", "report all that is found below this folder of the repository, and check nothing else")

// exceptions are phrases that stay, by file, each with its reason.
var exceptions = []struct{ file, phrase, reason string }{
	{"daemon/control.go", "there is no such", "older versions of the daemon answer with these words, and the client compares them"},
	{"cmd/yaya/beside_test.go", "there is no such", "a daemon of an older version answers with these words"},
}

// foreign are folders with texts of others, or that nobody reads as text.
var foreign = []string{".git", ".cache", "bin", "node_modules", "testdata", "vendor", "bundle", "internal/texts"}

// read are the kinds of files with texts, by ending; and by name.
var (
	endings = []string{".go", ".md", ".js", ".mjs", ".ts", ".css", ".html"}
	names   = []string{"Makefile", ".golangci.yml", "go.mod", ".editorconfig", ".gitignore"}
)

// found is a phrase in a file.
type found struct {
	file   string
	line   int
	phrase string
	rule   string
	advice string
}

func (f found) String() string {
	return fmt.Sprintf("%s:%d: %q (%s): write %s", f.file, f.line, f.phrase, f.rule, f.advice)
}

// search reads every file of the repository.
func search(t *testing.T) (all []found, files int) {
	t.Helper()
	var searched []compiled
	for _, r := range rules {
		searched = append(searched, compile(r))
	}
	repo := os.DirFS(root)
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.Contains(name, "/.") // such as folders of tests that run at the same time
			if hidden || slices.Contains(foreign, name) || slices.Contains(foreign, path.Base(name)) || strings.HasPrefix(path.Base(name), ".venv") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(endings, path.Ext(name)) && !slices.Contains(names, path.Base(name)) {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		files++
		texts, err := extract(name, data)
		if err != nil {
			return err
		}
		for _, x := range texts {
			for _, c := range searched {
				at, phrases := c.find(x.words)
				for i := range at {
					all = append(all, found{name, x.line(at[i]), phrases[i], c.name, c.instead})
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, files
}

// below reports whether a file is the place, or lies in it.
func below(file, place string) bool {
	return file == place || strings.HasPrefix(file, strings.TrimSuffix(place, "/")+"/")
}

// COD-7: texts are plain technical English, as far as a program can tell.
func TestTexts(t *testing.T) {
	all, files := search(t)
	if files < 700 {
		t.Errorf("%d files were read, want all", files)
	}
	if *within != "" {
		for _, f := range all {
			if *within == "." || below(f.file, *within) {
				t.Error(f)
			}
		}
		return
	}
	used := map[int]bool{}
	for _, f := range all {
		i := -1
		for j, e := range exceptions {
			if e.file == f.file && strings.Contains(f.phrase, e.phrase) {
				i = j
			}
		}
		if i < 0 {
			t.Errorf("got %v, want i at least 0", f)
		}
		used[i] = true
	}
	for i, e := range exceptions {
		if !used[i] || e.reason == "" {
			t.Errorf("the exception %q in %s has no use or no reason, want it removed", e.phrase, e.file)
		}
	}
}
