package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// GA-1: a path is opened without following a link that somebody may have put there since
// it was agreed to; the refusal names the link and where it leads.
func TestOpenNamed(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(top, name) }
	for _, dir := range []string{"real/sub", "home"} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "real", "house": "home", "home/l": "../real", "gone": "nowhere", "loop": "loop"} {
		if err := os.Symlink(to, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(in("home/f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		want       string // the path that was opened
		link, to   string // of the refusal
	}{
		{"a folder", in("real/sub"), in("real/sub"), "", ""},
		{"not clean", in("real/./sub/../sub/"), in("real/sub"), "", ""},
		{"a link", in("link"), "", in("link"), in("real")},
		{"below a link", in("link/sub"), "", in("link"), in("real/sub")},
		{"what is not there, below a link", in("link/new/er"), "", in("link"), in("real/new/er")},
		{"a link to nothing", in("gone"), "", in("gone"), in("gone")},
		{"a link to itself", in("loop"), "", in("loop"), in("loop")},
		{"in the home folder, which is a link", in("house/f"), in("home/f"), "", ""},
		{"a link in the home folder", in("house/l/sub"), "", in("home/l"), in("real/sub")},
		{"the home folder", in("house"), in("home"), "", ""},
		{"the root", "/", "/", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			paths, err := OpenNamed(in("house"), c.path)
			if c.link != "" {
				e, ok := errors.AsType[*LinkError](err)
				if !ok || e.Link != c.link || e.To != c.to || !strings.Contains(err.Error(), "name that") {
					t.Fatalf("OpenNamed(%s) = %v, %v; want it refused for %s, which leads to %s", c.path, paths, err, c.link, c.to)
				}
				return
			}
			if err != nil || len(paths) != 1 || paths[0].String() != c.want {
				t.Fatalf("OpenNamed(%s) = %v, %v; want %s", c.path, paths, err, c.want)
			}
			if err := Close(paths); err != nil {
				t.Errorf("Close(%v) = %v, want nil", paths, err)
			}
		})
	}
	if to, err := os.Readlink("/bin"); err == nil { // of the system
		paths, err := OpenNamed("", "/bin/sh")
		if err == nil {
			err = Close(paths)
		} else if e, ok := errors.AsType[*LinkError](err); ok && e.Link == "/"+to+"/sh" {
			err = nil // sh is a link itself, which only its name leads to
		}
		if err != nil {
			t.Errorf("OpenNamed(/bin/sh): %v, want /bin followed", err)
		}
	}
}

// GA-2: a folder with credentials is recognized under every name.
func TestCredentials(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(home, name) }
	if err := errors.Join(os.MkdirAll(in("vault/gh"), 0o700), os.MkdirAll(in(".config"), 0o700), os.Symlink(in("vault/gh"), in(".config/gh"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		in(".ssh"): true, in(".ssh/id_ed25519"): true, in(".config/gh/hosts.yml"): true, in("vault/gh/hosts.yml"): true, in("vault/gh"): true,
		in(".sshd"): false, in("vault"): false, home: false, "/": false, in("notes"): false, "/etc/shadow": true, "/etc": false,
	} {
		if got := Credentials(home, name); got != want {
			t.Errorf("Credentials(%s) = %v, want %v", name, got, want)
		}
	}
}

// GA-5: a sandbox has devices and processes of its own; those of the host would take
// their place, and a device there cannot be opened.
func TestOwnMountsAreNotGiven(t *testing.T) {
	for name, want := range map[string]bool{"/dev": false, "/dev/": false, "/dev/null": false, "/proc/self": false, "/devices": true, "/dev/shm/work": true, "/dev/dri": false, "/": true, "/home": true} {
		if err := CheckPath(name); (err == nil) != want {
			t.Errorf("CheckPath(%s) = %v, want it taken: %v", name, err, want)
		}
	}
	paths, err := OpenNamed("", "/dev")
	if err != nil {
		t.Fatal(err)
	}
	if run, err := (&Box{}).Enter(Policy{Profile: "server", Strict: true, Read: paths}); err == nil || !strings.Contains(err.Error(), "/dev of its own") {
		t.Errorf("Enter with /dev = %v, %v; want it refused, with the reason", run, err)
	}
}

// An error about a path names it once.
func TestOpenNamesThePathOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "nowhere")
	for what, open := range map[string]func(string) (Path, error){"Open": Open, "OpenExact": OpenExact} {
		_, err := open(name)
		if !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), name) != 1 {
			t.Errorf("%s: %v, want that %s is not there, named once", what, err, name)
		}
	}
}
