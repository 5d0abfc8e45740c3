package atomicfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// USE-2: files of users are often links into a repository of dotfiles. They stay links,
// and their targets keep permissions and owner.
func TestReplace(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(t *testing.T, dir string)
		file  string      // that is written; "" is real/f
		perm  os.FileMode // of it; 0 is 0600
		fails string
	}{
		"a new file":                 {make: func(*testing.T, string) {}, file: "f"},
		"a new file in a new folder": {make: func(*testing.T, string) {}, file: "new/er/f"},
		"a file":                     {make: func(t *testing.T, dir string) { put(t, dir, "f", 0o640) }, file: "f", perm: 0o640},
		"a link":                     {make: func(t *testing.T, dir string) { put(t, dir, "real/f", 0o644); link(t, "real/f", dir, "f") }, perm: 0o644},
		"an absolute link":           {make: func(t *testing.T, dir string) { put(t, dir, "real/f", 0o644); link(t, dir+"/real/f", dir, "f") }, perm: 0o644},
		"a link to a link": {make: func(t *testing.T, dir string) {
			put(t, dir, "real/f", 0o644)
			link(t, "f", dir, "real/g")
			link(t, "real/g", dir, "f")
		}, perm: 0o644},
		"a link by a folder's link": {make: func(t *testing.T, dir string) { // a/.. is real, and not the folder of a
			put(t, dir, "real/f", 0o644)
			folder(t, dir, "real/b")
			link(t, "real/b", dir, "a")
			link(t, "a/../f", dir, "f")
		}, perm: 0o644},
		"a folder that is a link":     {make: func(t *testing.T, dir string) { put(t, dir, "real/f", 0o644); link(t, "real", dir, "l") }, file: "l/f", perm: 0o644},
		"a link to a missing file":    {make: func(t *testing.T, dir string) { folder(t, dir, "real"); link(t, "real/f", dir, "f") }},
		"a link to a missing folder":  {make: func(t *testing.T, dir string) { link(t, "real/f", dir, "f") }, fails: "/f is a link to "},
		"a folder, a link to nothing": {make: func(t *testing.T, dir string) { link(t, "real", dir, "l") }, file: "l/f", fails: "/l is a link to "},
		"a link to itself":            {make: func(t *testing.T, dir string) { link(t, "f", dir, "f") }, fails: "too many links"},
		"a folder":                    {make: func(t *testing.T, dir string) { folder(t, dir, "f") }, fails: "is not a regular file"},
		"a link to a device":          {make: func(t *testing.T, dir string) { link(t, os.DevNull, dir, "f") }, fails: "is not a regular file"},
		"a link others can replace": {make: func(t *testing.T, dir string) {
			put(t, dir, "real/f", 0o644)
			folder(t, dir, "open")
			link(t, "../real/f", dir, "open/f")
			if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil { //nolint:gosec // on purpose
				t.Fatal(err)
			}
		}, file: "open/f", fails: "other users can change the link"},
		"a link below a folder others can replace": {make: func(t *testing.T, dir string) {
			put(t, dir, "real/f", 0o644)
			folder(t, dir, "open/own")
			link(t, "../../real/f", dir, "open/own/f")
			mode(t, dir, "open", 0o777)
		}, file: "open/own/f", fails: "chmod o-w"},
		"a link that a group can replace": {make: func(t *testing.T, dir string) {
			put(t, dir, "real/f", 0o644)
			folder(t, dir, "open/own")
			link(t, "../../real/f", dir, "open/own/f")
			other(t, dir, "open")
			mode(t, dir, "open", 0o770)
		}, file: "open/own/f", fails: "chmod g-w"},
		"a link that its user's group can replace": {make: func(t *testing.T, dir string) {
			put(t, dir, "real/f", 0o644)
			link(t, "real/f", dir, "f")
			mode(t, dir, ".", 0o770)
		}, perm: 0o644},
		"a link in a folder that is sticky": {make: func(t *testing.T, dir string) {
			put(t, dir, "real/f", 0o644)
			link(t, "real/f", dir, "f")
			mode(t, dir, ".", 0o777|os.ModeSticky)
		}, perm: 0o644},
		"out of a missing folder": {make: func(t *testing.T, dir string) {
			folder(t, dir, "real")
			link(t, "real", dir, "l")
			link(t, "l/missing/../../f", dir, "f")
		}, fails: "write the path without"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			c.make(t, dir)
			at, real := c.file, c.file
			if at == "" {
				at, real = "f", "real/f"
			}
			before := tree(t, dir)
			err = atomicfile.Replace(filepath.Join(dir, at), []byte("new"))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want an error with %q", err, c.fails)
				}
				if after := tree(t, dir); after != before {
					t.Errorf("it is\n%s\nand was\n%s", after, before)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			st, err := os.Lstat(filepath.Join(dir, real))
			if perm := max(c.perm, 0o600); err != nil || st.Mode() != perm {
				t.Fatalf("%s: %v, %v, want a file with %v", real, st, err, perm)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, at)); string(data) != "new" {
				t.Errorf(`got %q, want "new"`, data)
			}
			if after := tree(t, dir); strings.Contains(after, ".tmp") {
				t.Errorf("left behind:\n%s", after)
			}
			if c.file == "" && !strings.Contains(tree(t, dir), "/f -> ") {
				t.Errorf("the link is gone:\n%s", tree(t, dir))
			}
		})
	}
}

func put(t *testing.T, dir, name string, perm os.FileMode) {
	t.Helper()
	folder(t, dir, filepath.Dir(name))
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("old and longer"), perm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, dir, name string, perm os.FileMode) {
	t.Helper()
	if err := os.Chmod(filepath.Join(dir, name), perm); err != nil {
		t.Fatal(err)
	}
}

// other makes a folder that of a group that is not the user's own.
func other(t *testing.T, dir, name string) {
	t.Helper()
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		groups = append(groups, 4242)
	}
	for _, g := range groups {
		if g != os.Getegid() && os.Chown(filepath.Join(dir, name), -1, g) == nil {
			return
		}
	}
	t.Skip("this user is in no other group than its own")
}

func folder(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, dir, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// tree describes what is in a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(st.Mode().String() + " " + path)
		switch {
		case st.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			b.WriteString(" -> " + to)
			if err != nil {
				return err
			}
		case st.Mode().IsRegular():
			data, err := os.ReadFile(path)
			b.WriteString(" " + string(data))
			if err != nil {
				return err
			}
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
