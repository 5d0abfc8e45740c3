package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the user has configured works as it did beside yaya's folders: it lists the
// folder that holds them, and works in the folders beside. Only new names in the folder
// itself need mounts.
func TestGuardedBesideYaya(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			home := t.TempDir()
			for name, text := range map[string]string{".local/state/yaya/key": "secret", ".local/share/notes/a": "old", "file": "old"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b.Own = []string{filepath.Join(home, ".local/state/yaya")}
			p := profile(t, "guarded")
			p.Home = home
			for name, c := range map[string]struct {
				script, want string
				mounts       bool
			}{
				"list the home folder":    {script: "ls -a", want: "file"},
				"list a folder above":     {script: "ls -a .local/state .local", want: "share"},
				"change a file":           {script: "echo new >file && cat file", want: "new"},
				"make a file beside":      {script: "echo made >.local/share/notes/b && cat .local/share/notes/b", want: "made"},
				"rename beside":           {script: "mv .local/share/notes/a .local/share/c && cat .local/share/c", want: "old"},
				"read yaya's key":         {script: "cat .local/state/yaya/key 2>&1 || echo refused", want: "refused"},
				"remove yaya's key":       {script: "rm -f .local/state/yaya/key 2>&1 || echo refused", want: ""},
				"make a file of yaya's":   {script: "(echo x >.local/state/yaya/new) 2>&1 || echo refused", want: "refused"},
				"make a file in the home": {script: "echo made >new && cat new", want: "made", mounts: true},
			} {
				t.Run(name, func(t *testing.T) {
					if c.mounts && backend == Landlock {
						t.Skip("Landlock cannot; the report says so")
					}
					got, err := b.start(t, p, home, nil, "sh", "-c", c.script)
					if err != nil || !strings.Contains(got.out, c.want) {
						t.Errorf("got %q, %v; want %q in it", got.out, err, c.want)
					}
				})
			}
			if data, err := os.ReadFile(filepath.Join(home, ".local/state/yaya/key")); err != nil || string(data) != "secret" {
				t.Errorf("yaya's key is %q, %v; want it as it was", data, err)
			}
			if _, err := os.Lstat(filepath.Join(home, ".local/state/yaya/new")); err == nil {
				t.Error("a file was made in yaya's folder")
			}
		})
	}
}
