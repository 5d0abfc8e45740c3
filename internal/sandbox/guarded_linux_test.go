package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A server that the user configured works as before beside yaya's folders: it lists the
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

// A guarded program cannot put another program in yaya's place, nor poison the caches of
// sandboxes, in whichever folder of the user they lie; everything beside works.
func TestGuardedLeavesProgramAndCaches(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			home := t.TempDir()
			for _, name := range []string{".local/bin/yaya", ".local/bin/other", ".cache/yaya/sandbox/server-x/npm/a", ".cache/uv/a", ".config/yaya/mcp.json", "file"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, name), []byte("old"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			boxes := &Sandboxes{Home: home, Cache: filepath.Join(home, ".cache/yaya/sandbox")}
			p, err := boxes.Policy("guarded", "")
			if err != nil {
				t.Fatal(err)
			}
			b.Own, b.Program = []string{filepath.Join(home, ".config/yaya")}, filepath.Join(home, ".local/bin/yaya")
			for name, script := range map[string]string{
				"write it":                 "echo new >.local/bin/yaya",
				"remove it":                "rm -f .local/bin/yaya",
				"rename another over it":   "mv -f .local/bin/other .local/bin/yaya",
				"link another over it":     "ln -f .local/bin/other .local/bin/yaya",
				"change its mode":          "chmod 0 .local/bin/yaya",
				"move its folder away":     "mv .local/bin .local/away",
				"move the folder above":    "mv .local away",
				"read a cache":             "cat .cache/yaya/sandbox/server-x/npm/a",
				"write a cache":            "echo new >.cache/yaya/sandbox/server-x/npm/a",
				"make a cache":             "mkdir .cache/yaya/sandbox/server-y",
				"move the caches away":     "mv .cache/yaya/sandbox .cache/yaya/away",
				"move the folder of those": "mv .cache/yaya .cache/away",
				"move all caches away":     "mv .cache away",
			} {
				t.Run(name, func(t *testing.T) {
					if got, err := b.start(t, p, home, nil, "sh", "-c", "("+script+") 2>&1 || echo refused"); err != nil || !strings.Contains(got.out, "refused") {
						t.Errorf("%s: got %q, %v; want it refused", script, got.out, err)
					}
				})
			}
			for name, script := range map[string]string{
				"run it":                 "test -x .local/bin/yaya && test -r .local/bin/yaya",
				"write beside it":        "echo new >.local/bin/mine && mv .local/bin/mine .local/bin/other",
				"write the user's cache": "echo new >.cache/uv/a && mkdir .cache/pip && mv .cache/uv/a .cache/pip/a",
			} {
				t.Run(name, func(t *testing.T) {
					if got, err := b.start(t, p, home, nil, "sh", "-ec", script+"; echo works"); err != nil || !strings.Contains(got.out, "works") {
						t.Errorf("%s: got %q, %v; want that it works", script, got.out, err)
					}
				})
			}
			for _, name := range []string{".local/bin/yaya", ".cache/yaya/sandbox/server-x/npm/a"} {
				if data, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(data) != "old" {
					t.Errorf("%s is %q, %v; want it as it was", name, data, err)
				}
			}
		})
	}
}

// rename(2) works within a folder above yaya's own and everything below it that holds
// nothing of yaya's. From one such folder to another it fails with EXDEV, as between file
// systems: a folder that cannot be renamed is a mount. mv copies.
func TestGuardedRenames(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	for _, backend := range []string{Namespaces, Bwrap} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			home := t.TempDir()
			for _, name := range []string{".config/yaya/key", ".config/app/a", "work/a", "work/deep/a"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, name), []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			b.Own = []string{filepath.Join(home, ".config/yaya")}
			p := profile(t, "guarded")
			p.Home = home
			for _, c := range []struct{ from, to, want string }{
				{"work/a", "work/b", "renamed"},
				{"work/deep/a", "a", "renamed"},
				{"work/deep", "deep", "renamed"},
				{".config/app/a", ".config/b", "renamed"},
				{".config/app", ".config/other", "renamed"},
				{"a", ".config/c", "EXDEV"},
				{".config/b", "c", "EXDEV"},
			} {
				script := "import errno, os, sys\ntry:\n  os.rename(sys.argv[1], sys.argv[2]); print('renamed')\nexcept OSError as e: print(errno.errorcode[e.errno])"
				if got, err := b.start(t, p, home, nil, "python3", "-c", script, c.from, c.to); err != nil || strings.TrimSpace(got.out) != c.want {
					t.Errorf("rename(%s, %s): got %q, %v; want %s", c.from, c.to, got.out, err, c.want)
				}
			}
			if got, err := b.start(t, p, home, nil, "sh", "-c", "mv a .config/c && cat .config/c"); err != nil || got.out != "old" {
				t.Errorf("mv: got %q, %v; want that it copies", got.out, err)
			}
		})
	}
}
