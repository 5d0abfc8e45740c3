package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Root's files would shut out the yaya of the directory's owner: each command that writes
// refuses the directory before it writes anything, and says how to run it. Those that only
// read go on.
func TestRootWritesNowhereElse(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	asNobody := b.ofNobody()
	for _, args := range [][]string{{"secret", "set", "S"}, {"token", "create", "one"}, {"config", "set", "strategy", "react"}, {"mcp", "add", "one", "--", "/bin/true"}} {
		if said, err := asNobody(args...); err != nil {
			t.Fatalf("yaya %v as its own user: %v\n%s", args, err, said)
		}
	}
	backups := t.TempDir()
	if said, err := b.run("backup", backups); err != nil || !strings.Contains(said, backups) {
		t.Errorf("a backup by root: %v\n%s, want it made", err, said)
	}
	file := filepath.Join(backups, dirNames(t, backups)[0])
	before := listing(t, b.dir)
	for _, line := range []string{
		"repair", "repair --control", "repair --session s1", "restore " + file, "token create two", "token revoke one", "config set strategy react", "config unset strategy",
		"mcp add two -- /bin/true", "mcp remove one", "mcp disable one", "provider use echo", "secret set T --file /etc/passwd", "secret remove S", "secret rekey",
		"trust " + b.dir, "device invite", "device rotate-keys", "session delete s1", "session prune --older 1d", "connect http://127.0.0.1:1", "serve --no-open", "run hello",
	} {
		said, err := b.run(strings.Fields(line)...)
		if err == nil || !strings.Contains(said, "sudo -u nobody") || !strings.Contains(said, "chown -R root") {
			t.Errorf("yaya %s as root: %v\n%s, want it refused with what to do", line, err, said)
		}
		if after := listing(t, b.dir); !slices.Equal(after, before) {
			t.Fatalf("yaya %s as root changed the directory:\n%s\nwant\n%s", line, strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
	}
	for _, line := range []string{"verify", "audit"} {
		if said, err := b.run(strings.Fields(line)...); err != nil {
			t.Errorf("yaya %s as root: %v\n%s, want it to read", line, err, said)
		}
	}
	if err := os.Rename(b.file(), filepath.Join(b.dir, "old")); err != nil {
		t.Fatal(err)
	}
	said, err := b.run("restore", file)
	if _, serr := os.Stat(b.file()); err == nil || !errors.Is(serr, fs.ErrNotExist) || !strings.Contains(said, "sudo -u nobody") || !strings.Contains(said, "mkdir") {
		t.Errorf("a restore beside the directory as root: %v, %v\n%s, want it refused with what to do", err, serr, said)
	}
	if err := os.Mkdir(b.file(), 0o700); err != nil { // as in a container, where root is its user
		t.Fatal(err)
	}
	if said, err := b.run("restore", file); err != nil {
		t.Errorf("a restore into a directory of root's: %v\n%s", err, said)
	}
}

func dirNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s has %v, %v, want files", dir, entries, err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
