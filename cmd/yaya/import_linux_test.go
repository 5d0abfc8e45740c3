package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// USE-5: on a terminal two different servers of one name are both shown, and one chosen;
// the servers of a project are asked about by themselves.
func TestImportAsks(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for file, data := range map[string]string{
		".claude.json":                      `{"mcpServers":{"fs":{"command":"first-fs"}},"projects":{"/p":{"mcpServers":{"alone":{"command":"x"}}}}}`,
		".codeium/windsurf/mcp_config.json": `{"mcpServers":{"fs":{"command":"second-fs"}}}`,
	} {
		path := filepath.Join(b.dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := b.pty("mcp", "import")
	p.wait("only for the folder /p: alone. Import them for every folder?")
	p.say("n")
	p.wait("Two servers are called fs:")
	p.wait("first-fs")
	p.wait("second-fs")
	p.wait("Rename the second to fs-windsurf, keep only the first, or replace the first? [rename]")
	p.say("replace")
	p.wait("Add 1 server to")
	p.say("y")
	p.wait("Imported 1 server")
	p.end()
	out := b.must("mcp", "import", "--yes", "windsurf")
	if !strings.Contains(out, "fs: skipped: it is configured already") {
		t.Errorf("the second server was not taken: %s", out)
	}
}
