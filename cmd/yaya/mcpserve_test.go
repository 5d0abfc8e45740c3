package main

import (
	"strings"
	"testing"
)

// A profile that does not exist ends mcp serve at once, with the names of those that do,
// beside a daemon and alone.
func TestServeAnUnknownProfile(t *testing.T) {
	b := newBox(t)
	b.settings("[plugin.mcp_bridge.profiles.reading]\nservers = [\"fs\"]\n")
	check := func(where string) {
		t.Helper()
		out, err := b.run("mcp", "serve", "--profile", "nope")
		if exitCode(err) != 2 || !strings.Contains(out, `there is no profile "nope"; the profiles are all, search, reading`) {
			t.Errorf("%s: got %v, %s; want exit code 2 and the names", where, err, out)
		}
		if out, err := b.run("mcp", "serve", "--profile", "reading"); err != nil {
			t.Errorf("%s: a profile that exists: %v, %s", where, err, out)
		}
	}
	check("alone")
	b.serve()
	check("beside a daemon")
}
