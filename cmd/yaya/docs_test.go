package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
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

// The examples of the scripted model and of checks in AGENTS.md are what yaya reads.
func TestDocumentedFormats(t *testing.T) {
	doc := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	script := regexp.MustCompile("(?s)### The scripted model.*?```json\n(.*?)```").FindStringSubmatch(doc("CONFIG.md"))
	if script == nil {
		t.Fatal("docs/CONFIG.md has no script")
	}
	if s, err := llm_echo.ParseScript([]byte(script[1])); err != nil || len(s.Scenarios) != 3 {
		t.Errorf("the script of docs/CONFIG.md: got %d scenarios, %v; want 3", len(s.Scenarios), err)
	}
	agent := doc("AGENT.md")
	block := regexp.MustCompile("(?s)````markdown\n(.*?)````").FindStringSubmatch(agent)
	list := regexp.MustCompile("(?s)\n```markdown\n(.*?)```").FindStringSubmatch(agent)
	if block == nil || list == nil {
		t.Fatal("docs/AGENT.md has not both forms of checks")
	}
	for text, want := range map[string][2]string{block[1]: {"make lint  ", "go test ./...  "}, list[1]: {"make lint", "go test ./..."}} {
		if got := tool_shell.FromAgents(text); len(got) != 2 || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
			t.Errorf("FromAgents(%q) = %q, want %q", text, got, want)
		}
	}
}
