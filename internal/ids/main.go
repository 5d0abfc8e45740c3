// Command ids prints the requirement ids that no test quotes, and fails if there
// are any. A test quotes an id by naming it in a comment or a message: Y-14, or a
// short range, Y-14…Y-20.
//
// The ids are those of this project's requirements; the table says which are
// implemented, and which of them stand apart, with the reason.
package main

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// span is a part of the requirements that is implemented.
type span struct {
	prefix      string
	first, last int
}

var implemented = []span{{"Y", 1, 216}, {"F", 1, 27}, {"S", 1, 59}, {"W", 1, 77}}

// apart are ids that no test here can show.
var apart = map[string]string{
	"Y-101": "installed plugins", "Y-102": "installed plugins", "Y-103": "installed plugins", "Y-104": "installed plugins",
	"F-25": "shown by make test as a whole",
	"S-57": "a later phase: what there is of it is the kernel's, summaries (Y-160) and sub-agents (Y-193)",
	"S-58": "a later phase: remote tool runners, shared sessions",
	"S-59": "says what is not built",
}

// maxRange is how many ids a range may stand for: a longer one quotes nothing in
// particular.
const maxRange = 8

var quoted = regexp.MustCompile(`\b([A-Z])-(\d{1,3})(?:…([A-Z])-(\d{1,3}))?`)

func main() {
	root := flag.String("root", ".", "where the tests are")
	flag.Parse()
	missing, err := check(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ids:", err)
		os.Exit(2)
	}
	for _, id := range missing {
		fmt.Println(id)
	}
	if len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "ids: %d requirements are quoted by no test\n", len(missing))
		os.Exit(1)
	}
}

// check returns the implemented ids that no test below root quotes.
func check(root string) ([]string, error) {
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		switch {
		case strings.HasSuffix(path, "_test.go"):
			return quotes(path, seen)
		case strings.HasSuffix(path, ".txtar"):
			data, err := os.ReadFile(path) //nolint:forbidigo,gosec // a tool for this repository
			if err == nil {
				collect(string(data), seen)
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, s := range implemented {
		for n := s.first; n <= s.last; n++ {
			id := fmt.Sprintf("%s-%d", s.prefix, n)
			if !seen[id] && apart[id] == "" {
				missing = append(missing, id)
			}
		}
	}
	return missing, nil
}

// quotes collects the ids in the comments and the strings of a test file that
// holds tests: a file of helpers quotes nothing.
func quotes(path string, seen map[string]bool) error {
	data, err := os.ReadFile(path) //nolint:forbidigo,gosec // a tool for this repository
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, data, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		if strings.Contains(string(data[d.Pos()-1:d.End()-1]), "func Test") {
			collect(string(data), seen)
			return nil
		}
	}
	return nil
}

func collect(text string, seen map[string]bool) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		first, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		last := first
		if m[3] == m[1] && m[4] != "" {
			if n, err := strconv.Atoi(m[4]); err == nil && n-first < maxRange {
				last = n
			}
		}
		for n := first; n <= last; n++ {
			seen[fmt.Sprintf("%s-%d", m[1], n)] = true
		}
	}
}
