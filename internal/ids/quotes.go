package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxRange is how many ids a range in a test may show: a longer one quotes nothing in
// particular but its first.
const maxRange = 8

// quoted finds ids and ranges of them.
var quoted = regexp.MustCompile(`\b(?:([A-Z]{1,4})-(\d{1,3})(?:…([A-Z]{1,4})-(\d{1,3}))?|(R\d{1,2}|C\.\d))\b`)

// foreign are prefixes of names that look like ids: standards, curves, licences,
// ids of other projects.
var foreign = []string{"ALPN", "BSD", "CRC", "GPL", "HTTP", "MPL", "NET", "P", "PROJ", "SEP", "SHA", "SSH", "UTF"}

// quote is a line that names ids.
type quote struct {
	file  string
	line  int
	test  bool     // it stands in a file with tests
	ids   []string // all that are named
	shown []string // those that a test with that line holds
}

// quotesIn collects the quotes of all Go, JavaScript and Markdown files and of all
// test scripts below root. Those of this command are made up.
func quotesIn(root string) ([]quote, error) {
	var out []quote
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (d.Name() == "node_modules" || d.Name() == "vendor" || d.Name() == "bundle" || strings.HasPrefix(d.Name(), ".") || rel == "internal/ids") {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".js", ".mjs", ".md", ".txtar"}, filepath.Ext(rel)) || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path) //nolint:forbidigo,gosec // a tool for this repository
		if err != nil {
			return err
		}
		out = append(out, quotesOf(rel, data)...)
		return nil
	})
	return out, err
}

// quotesOf returns the quotes of a file. In Go only comments and strings count,
// because an expression can look like an id.
func quotesOf(file string, data []byte) []quote {
	var out []quote
	add := func(line int, text string) {
		for _, l := range strings.Split(text, "\n") {
			if ids, shown := quotedIn(l); len(ids) > 0 {
				out = append(out, quote{file: file, line: line, ids: ids, shown: shown})
			}
			line++
		}
	}
	var test bool
	if filepath.Ext(file) == ".go" {
		test = scan(file, data, add) && strings.HasSuffix(file, "_test.go")
	} else {
		test = filepath.Ext(file) == ".txtar"
		add(1, string(data))
	}
	for i := range out {
		out[i].test = test
	}
	return out
}

// scan hands the comments and strings of a Go file to add, and reports whether it has
// tests: a file of helpers shows nothing. The compiler reports files that are not Go.
func scan(file string, data []byte, add func(line int, text string)) (tests bool) {
	var s scanner.Scanner
	f := token.NewFileSet().AddFile(file, -1, len(data))
	s.Init(f, data, func(token.Position, string) {}, scanner.ScanComments)
	for before := token.ILLEGAL; ; {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return tests
		}
		if tok == token.COMMENT || tok == token.STRING {
			add(f.Line(pos), lit)
		}
		tests = tests || before == token.FUNC && tok == token.IDENT && strings.HasPrefix(lit, "Test")
		before = tok
	}
}

// quotedIn returns the ids that a line names, and those of them that a test with that
// line holds.
func quotedIn(line string) (ids, shown []string) {
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		switch {
		case m[5] != "":
			ids, shown = append(ids, m[5]), append(shown, m[5])
		case !slices.Contains(foreign, m[1]):
			all := expand(m[1], m[2], m[3], m[4])
			ids = append(ids, all...)
			if len(all) > maxRange {
				all = all[:1]
			}
			shown = append(shown, all...)
		}
	}
	return ids, shown
}

// expand returns the ids from one to another of the same family, or the first alone.
func expand(family, first, family2, last string) []string {
	ids := []string{family + "-" + first}
	from, err := strconv.Atoi(first)
	if err != nil || family2 != family {
		return ids
	}
	to, err := strconv.Atoi(last)
	if err != nil {
		return ids
	}
	for n := from + 1; n <= to; n++ {
		ids = append(ids, fmt.Sprintf("%s-%0*d", family, len(first), n))
	}
	return ids
}
