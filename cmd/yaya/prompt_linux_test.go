package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// An interrupted question leaves a clean line, and the command says that nothing was changed.
func TestInterruptedQuestions(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers":{"x":{"command":"cat"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, keys, want string
		command          []string
	}{
		{"Ctrl-C at trust", "\x03", "\r\x1b[KTrust it? [y/N] \r\nyaya: cancelled: the folder " + dir + " was not trusted\r\n", []string{"trust", dir}},
		{"Ctrl-D at trust", "\x04", "Trust it? [y/N] \r\nyaya: the folder " + dir + " was not trusted\r\n", []string{"trust", dir}},
		{"no at trust", "n\r", "Trust it? [y/N] n\r\nyaya: the folder " + dir + " was not trusted\r\n", []string{"trust", dir}},
		{"Ctrl-C at import", "\x03", "[y/N] \r\nyaya: cancelled: nothing was changed\r\n", []string{"mcp", "import", filepath.Join(dir, ".mcp.json")}},
		{"Ctrl-C at run", "\x03", "\r\x1b[KTrust it? [y/N] \r\nyaya: cancelled: the task was not started\r\n", []string{"run", "--workspace", dir, "hello"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := b.pty(tc.command...)
			p.wait("[y/N]")
			p.keys(tc.keys)
			select {
			case err := <-p.ended:
				want := exitError
				if tc.command[0] == "run" {
					want = 130 // as its help says
				}
				if exitCode(err) != want {
					t.Errorf("got %v, want exit code %d", err, want)
				}
			case <-time.After(eventually.Limit):
				t.Fatal("the question does not end")
			}
			var got, screen string
			eventually.True(t, "the command says "+tc.want, func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				got, screen = p.out.String(), p.screen.String()
				return strings.HasSuffix(got, tc.want)
			})
			if strings.Contains(screen, "^") {
				t.Errorf("got the screen %q, want none with a caret", screen)
			}
		})
	}
}
