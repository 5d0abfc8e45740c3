package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// GA-1: within what it may write, a program cannot move a folder away that holds
// something hidden, read-only or granted by itself: it would find it under another name
// at the next start, which no rule covers.
func TestMovedParents(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			home := t.TempDir()
			in := func(name string) string { return filepath.Join(home, name) }
			for _, name := range []string{".config/gh/hosts.yml", "w/ro/deep/file", "w/x/granted/file", "w/free/file"} {
				if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(in(name), []byte("secret"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []struct {
				name, profile string
				read, write   []string
				script, want  string
				twice         string
				mounts        bool // what Landlock alone does not enforce
			}{
				{name: "above credentials", profile: "server", write: []string{home}, script: "mv .config c 2>&1 || echo kept", want: "kept", twice: "cat c/gh/hosts.yml"},
				{name: "above credentials, by a command", profile: "command", write: []string{home}, script: "mv .config c 2>&1 || echo kept", want: "kept", twice: "cat c/gh/hosts.yml"},
				{name: "above what is read-only", profile: "server", read: []string{in("w/ro/deep")}, write: []string{in("w")}, script: "cd w; mv ro r2 2>&1 || echo kept", want: "kept", twice: "echo x > w/r2/deep/file && echo written", mounts: true},
				{name: "above what is granted", profile: "server", write: []string{in("w"), in("w/x/granted")}, script: "cd w; mv x y 2>&1 || echo kept", want: "kept", mounts: true},
				{name: "what is granted", profile: "server", write: []string{in("w"), in("w/x/granted")}, script: "cd w/x; rm -r granted 2>&1; mv granted g 2>&1 || echo kept", want: "kept", mounts: true},
				{name: "others", profile: "server", write: []string{in("w"), in("w/x/granted")}, script: "cd w; mv free f && cat f/file && mv f free", want: "secret"},
			} {
				t.Run(c.name, func(t *testing.T) {
					if c.mounts && backend == Landlock {
						t.Skip("Landlock cannot; the report says so")
					}
					run := func(script string) string {
						p := profile(t, c.profile)
						p.Home, p.Read, p.Write = home, open(t, c.read...), open(t, c.write...)
						got, err := b.start(t, p, home, nil, "sh", "-c", "cd "+home+"; "+script)
						if err != nil {
							t.Fatal(err)
						}
						return got.out
					}
					if got := run(c.script); !strings.Contains(got, c.want) {
						t.Errorf("got %q, want %q in it", got, c.want)
					}
					if c.twice == "" {
						return
					}
					if got := run(c.twice); strings.Contains(got, "secret") || strings.Contains(got, "written") {
						t.Errorf("at the next start: got %q, want nothing gained", got)
					}
				})
			}
		})
	}
}
