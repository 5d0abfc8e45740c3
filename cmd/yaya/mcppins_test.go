package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// PIN-1: a tool that a server adds a moment after it was seen first waits for approval: it
// is neither listed nor called until its user has looked at it.
func TestToolsAddedSoonWait(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	script, err := filepath.Abs("testdata/grows.mjs")
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"s": map[string]any{"command": node, "args": []string{script}}}))
	b.firstStart([]string{"s"})
	if out := b.must("mcp", "call", "s__grow"); !strings.Contains(out, "grow ran") {
		t.Fatalf("got %q, want the first tool to work at first sight", out)
	}
	eventually.True(t, "the new tool waits", func() bool {
		out, err := b.run("mcp", "call", "s__late")
		if err == nil {
			t.Fatalf("the new tool was called without approval: %s", out)
		}
		return strings.Contains(out, "waits for approval: it is new")
	})
	b.must("mcp", "approve", "s", "--yes")
	eventually.True(t, "the approved tool works", func() bool {
		out, err := b.run("mcp", "call", "s__late")
		return err == nil && strings.Contains(out, "late ran")
	})
}
