package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mcp.json that cannot be written is what the error says, with the remedy, and not
// that a log has the details.
func TestUnwritableServersFileIsNamed(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, file string) error
		want string
	}{
		{"a dangling link", func(_ *testing.T, file string) error {
			return os.Symlink(filepath.Join(filepath.Dir(file), "gone", "mcp.json"), file)
		}, "make its folder, or remove the link"},
		{"links in a circle", func(_ *testing.T, file string) error { return os.Symlink(file, file) }, "too many l"},
		{"a link of another user", func(t *testing.T, file string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a link away")
			}
			if err := os.Symlink(file+".real", file); err != nil {
				return err
			}
			return os.Lchown(file, 65534, 65534)
		}, "is a link of another user"},
		{"a folder", func(_ *testing.T, file string) error { return os.Mkdir(file, 0o700) }, "is not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBox(t)
			file := filepath.Join(b.dir, "c", "mcp.json")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tc.make(t, file); err != nil {
				t.Fatal(err)
			}
			out, err := b.run("mcp", "add", "x", "true")
			if err == nil || !strings.Contains(out, tc.want) || !strings.Contains(out, "mcp.json") || strings.Contains(out, "internal error") {
				t.Errorf("got %v, %s; want an error with %q", err, out, tc.want)
			}
		})
	}
}
