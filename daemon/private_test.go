//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A data directory that others can reach is taken away from them, with what lies in it.
func TestKeepPrivate(t *testing.T) {
	me := os.Geteuid()
	for name, c := range map[string]struct {
		mode  fs.FileMode
		notes []string
	}{
		"private":  {0o700, nil},
		"readable": {0o755, []string{"had mode 0755: yaya has taken the rights of others away, and it has 0700 now"}},
		"writable": {0o777, []string{"had mode 0777", "others could write in the data directory"}},
		"of group": {0o770, []string{"had mode 0770", "others could write in the data directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			want := map[string]fs.FileMode{".": 0o700 | fs.ModeDir, "control": 0o700 | fs.ModeDir, "config.json": 0o600, "private": 0o600}
			for _, x := range []struct {
				name string
				mode fs.FileMode
			}{{".", 0o700}, {"control", 0o755}, {"config.json", 0o644}, {"private", 0o600}} {
				path := filepath.Join(dir, x.name)
				var err error
				if want[x.name].IsDir() {
					err = os.MkdirAll(path, 0o700)
				} else {
					err = os.WriteFile(path, nil, 0o600)
				}
				if err == nil {
					err = os.Chmod(path, x.mode) // whatever the umask
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			outside := filepath.Join(filepath.Dir(dir), "outside")
			if err := os.WriteFile(outside, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(outside, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, c.mode); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			notes, err := keepPrivate(root, me)
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(notes, "\n")
			for _, n := range append(c.notes, "d/control had mode 0755", "d/config.json had mode 0644") {
				if !strings.Contains(said, n) {
					t.Errorf("notes %q, want %q among them", notes, n)
				}
			}
			if len(notes) != len(c.notes)+2 {
				t.Errorf("%d notes, want %d: %q", len(notes), len(c.notes)+2, notes)
			}
			for name, mode := range want {
				if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode() != mode {
					t.Errorf("%s has mode %v, %v, want %v", name, st.Mode(), err, mode)
				}
			}
			if st, err := os.Stat(outside); err != nil || st.Mode().Perm() != 0o644 {
				t.Errorf("what a link leads to has mode %v, %v, want it unchanged", st.Mode(), err)
			}
			if notes, err := keepPrivate(root, me); err != nil || len(notes) != 0 {
				t.Errorf("a second time: %q, %v, want nothing", notes, err)
			}
		})
	}
}

// A directory of another user is refused, for root too; one of root, as in containers, is used.
func TestDataOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	st, err := root.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	notes, err := keepPrivate(root, ownerOf(st)+1)
	if ownerOf(st) == 0 {
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "belongs to root and has mode 0777") {
			t.Errorf("a directory of root: %q, %v, want one note", notes, err)
		}
		if err := os.Chown(dir, 4242, -1); err != nil {
			t.Skipf("the owner of a folder cannot be changed here: %v", err)
		}
		if _, err := keepPrivate(root, 0); err == nil || !strings.Contains(err.Error(), "sudo -u '#4242' yaya") || !strings.Contains(err.Error(), "chown -R root "+dir) {
			t.Errorf("a directory of another user, for root: %v, want it refused with what to do", err)
		}
		notes, err = keepPrivate(root, 4243)
	}
	if err == nil || !strings.Contains(err.Error(), "belongs to another user") || !strings.Contains(err.Error(), "--data-dir") || len(notes) != 0 {
		t.Errorf("a directory of another user: %q, %v, want it refused", notes, err)
	}
}
