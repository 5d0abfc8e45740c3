package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// A path that exists, that a program's command names and that its sandbox hides is reported
// before the program starts; no other path is.
func TestUnseen(t *testing.T) {
	dir := real(t.TempDir())
	home := filepath.Join(dir, "home")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"docs/a", "named/a", "written/a", "home/a"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "docs", "shown": "named", "dead": "nowhere"} {
		if err := os.Symlink(at(to), at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, profile, path string
		want                bool
	}{
		{"a hidden folder", "server", at("docs"), true},
		{"a hidden file", "server", at("docs/a"), true},
		{"by a link", "server", at("link"), true},
		{"the home folder, which it has of its own", "server", home, true},
		{"a file of the home folder", "server", at("home/a"), true},
		{"what it reads", "server", at("named"), false},
		{"a file that it reads", "server", at("named/a"), false},
		{"what it reads, by a link", "server", at("shown"), false},
		{"what it writes", "server", at("written/a"), false},
		{"nothing there", "server", at("docs/b"), false},
		{"a link to nothing", "server", at("dead"), false},
		{"of the system", "server", "/usr", false},
		{"a device, which it has of its own", "server", "/dev/null", false},
		{"its own processes", "server", "/proc/self", false},
		{"its own temporary folder", "server", "/tmp", false},
		{"everything", "server", "/", false},
		{"where the host can be read", "command", "/var", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := profile(t, c.profile)
			p.Home, p.Told = home, []string{c.path}
			for list, name := range map[*[]Path]string{&p.Read: "named", &p.Write: "written"} {
				opened, err := Open(at(name))
				if err != nil {
					t.Fatal(err)
				}
				*list = append(*list, opened)
			}
			t.Cleanup(func() { _ = closeAll(p) })
			var got []string
			p.Unseen = func(name string) { got = append(got, name) }
			plan := &inside.Plan{Path: "/bin/sh", Strict: p.Strict, Mounts: true}
			r := &Run{box: &Box{}, policy: p}
			if err := r.addRules(plan); err != nil {
				t.Fatal(err)
			}
			want := []string{c.path}
			if !c.want {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("told of %q that it is not seen, want %q", got, want)
			}
		})
	}
}
