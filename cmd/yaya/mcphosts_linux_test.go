package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host is permitted in one spelling, whatever it was typed in, and each of the others takes
// it back: of a server of the user's own and of a folder's, and where a file has another.
func TestPermittedHostsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	b.make("c/", "d/")
	own, theirs := filepath.Join(b.dir, "c", "mcp.json"), filepath.Join(b.dir, "d", "permits.json")
	if err := errors.Join(
		os.Chmod(filepath.Join(b.dir, "c"), 0o700), os.Chmod(filepath.Join(b.dir, "d"), 0o700), os.MkdirAll(ws, 0o700),
		os.WriteFile(own, []byte(`{"mcpServers":{"own":{"command":"cat","sandbox":{"hosts":["Old.Example.","OLD.example"]}}}}`), 0o600),
		os.WriteFile(filepath.Join(ws, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"cat"}}}`), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	allow := func(args ...string) {
		t.Helper()
		if out, said, code := b.in(ws, append([]string{"mcp", "allow"}, args...)...); code != 0 {
			t.Errorf("yaya mcp allow %q: %s%s, exit code %d", args, out, said, code)
		}
	}
	stored := func(file, host string) int {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(host)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), string(quoted))
	}
	for server, file := range map[string]string{"own": own, "theirs": theirs} {
		allow(server, "--host", "EXAMPLE.com.", "--host", "example.COM", "--host", "Other.example:8443")
		if typed, once := stored(file, "EXAMPLE.com."), stored(file, "example.com"); typed != 0 || once != 1 || stored(file, "other.example:8443") != 1 {
			t.Errorf("%s: stored %d times as typed and %d times in lower case, want 0 and 1", server, typed, once)
		}
		allow(server, "--host", "example.com.")
		if n := stored(file, "example.com"); n != 1 {
			t.Errorf("%s: another spelling again: stored %d times, want once", server, n)
		}
		allow(server, "--remove", "--host", "Example.Com", "--host", "OTHER.example.:8443")
		if n := stored(file, "example.com") + stored(file, "other.example:8443"); n != 0 {
			t.Errorf("%s: stored %d times after it was removed in another spelling, want not at all", server, n)
		}
	}
	allow("own", "--host", "old.example")
	if n := stored(own, "old.example"); n != 0 {
		t.Errorf("a host that the file has in other spellings is there %d times more, want no more", n)
	}
	allow("own", "--remove", "--host", "old.example")
	if n := stored(own, "Old.Example.") + stored(own, "OLD.example"); n != 0 {
		t.Errorf("a host that the file had in other spellings is there %d times after it was removed, want not at all", n)
	}
	// An earlier version has stored a host as it was typed.
	allow("theirs", "--host", "a.example")
	data, err := os.ReadFile(theirs)
	if err == nil {
		err = os.WriteFile(theirs, []byte(strings.ReplaceAll(string(data), `"a.example"`, `"A.example."`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	allow("theirs", "--remove", "--host", "a.example")
	if data, err := os.ReadFile(theirs); err != nil || strings.Contains(strings.ToLower(string(data)), "a.example") {
		t.Errorf("permits are %s, %v; want a.example removed", data, err)
	}
}
