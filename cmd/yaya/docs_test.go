package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// FID-2: the tables of docs/MCP.md name tests that there are, and every scenario that
// a test excepts.
func TestDocumentedTests(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	doc := read(filepath.Join("..", "..", "docs", "MCP.md"))
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range files {
		code.WriteString(read(f))
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w*)`").FindAllStringSubmatch(doc, -1)
	if len(named) < 10 {
		t.Errorf("docs/MCP.md names %d tests, want at least 10", len(named))
	}
	for _, m := range named {
		if !strings.Contains(code.String(), "\nfunc "+m[1]+"(t *testing.T)") {
			t.Errorf("docs/MCP.md names %s, which is not a test of cmd/yaya", m[1])
		}
	}
	for _, scenario := range slices.Concat(sharedTypeScript, sharedPython, perClientStarts) {
		if !strings.Contains(doc, "`"+scenario+"`") {
			t.Errorf("docs/MCP.md does not name %s, which a test excepts", scenario)
		}
	}
}
