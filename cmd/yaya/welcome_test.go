package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
)

// USE-7: every command of yaya that a start prints can be pasted, although yaya is not on PATH.
func TestWelcomeNamesThePath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, servers := range []int{0, 1} {
		var out strings.Builder
		welcome(&out, new(daemon.Flags), daemon.Started{Base: "https://yaya.example", Local: "https://yaya.example", Remote: true, Configured: servers}, daemon.Paths{Home: t.TempDir()})
		for _, want := range []string{" token create NAME\n", " device invite\n", map[int]string{0: " mcp add fs ", 1: " mcp list\n"}[servers]} {
			if !strings.Contains(out.String(), daemon.Typed()+want) {
				t.Errorf("with %d servers: got %s, want %q", servers, out.String(), daemon.Typed()+want)
			}
		}
		if bare := regexp.MustCompile(`(?m) yaya (mcp|token|device) .*$`).FindString(out.String()); bare != "" {
			t.Errorf("with %d servers: got %q without a path", servers, bare)
		}
	}
}
