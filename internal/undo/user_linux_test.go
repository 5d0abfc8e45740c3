package undo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asUser is the folder of a test that runs again as a user who is not root.
const asUser = "YAYA_UNDO_AS_USER"

// AGT-4: undo reaches what a call has made read-only, or closed, for a user who is not root, and gives every
// folder that the call has left alone its permissions back.
func TestClosedFolders(t *testing.T) {
	if os.Geteuid() == 0 {
		again(t)
		return
	}
	chmod := func(w *world, mode os.FileMode, names ...string) {
		for _, n := range names {
			w.must(os.Chmod(w.path(n), mode))
		}
	}
	for name, tc := range map[string]struct{ before, change func(w *world) }{
		"new read-only folders": {
			change: func(w *world) { w.write("m/n/x", "x", 0o644); chmod(w, 0o555, "m/n", "m") },
		},
		"a new closed folder": {
			change: func(w *world) { w.write("m/x", "x", 0o644); chmod(w, 0, "m") },
		},
		"a folder is closed after a change in it": {
			before: func(w *world) { w.write("d/a", "one", 0o644) },
			change: func(w *world) { w.write("d/a", "two", 0o644); w.write("d/b", "new", 0o644); chmod(w, 0, "d") },
		},
		"a file becomes a folder with a read-only one": {
			change: func(w *world) {
				w.must(os.Remove(w.path("file")))
				w.write("file/sub/x", "x", 0o644)
				chmod(w, 0o555, "file/sub")
			},
		},
		"a change in a read-only folder": {
			before: func(w *world) { w.write("d/a", "one", 0o644); chmod(w, 0o555, "d") },
			change: func(w *world) { chmod(w, 0o755, "d"); w.write("d/a", "two", 0o644); chmod(w, 0o555, "d") },
		},
		"a read-only folder goes": {
			before: func(w *world) { w.write("d/e/a", "one", 0o644); chmod(w, 0o555, "d/e", "d") },
			change: func(w *world) { chmod(w, 0o755, "d", "d/e"); w.must(os.RemoveAll(w.path("d"))) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			defer func() { // whoever removes the folder has to get in
				_ = filepath.WalkDir(w.dir, func(p string, _ os.DirEntry, _ error) error { return os.Chmod(p, 0o700) }) // an undo may have removed it
			}()
			w.write("file", "one", 0o644)
			if tc.before != nil {
				tc.before(w)
			}
			want := modes(w)
			w.change(func() { tc.change(w) })
			got, err := w.undo()
			if d := differ(want, modes(w)); err != nil || d != "" || len(got.Remaining) > 0 {
				t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, d)
			}
		})
	}
}

// again runs a test once more, as a user for whom permissions count.
func again(t *testing.T) {
	t.Helper()
	if os.Getenv(asUser) != "" {
		t.Fatal("it still runs as root")
	}
	dir, err := os.MkdirTemp("/tmp", "undo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	const nobody = 65534
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	program := filepath.Join(dir, "test")
	if err := errors.Join(err, os.WriteFile(program, data, 0o755), os.Chmod(dir, 0o755), os.Mkdir(dir+"/tmp", 0o755), os.Chown(dir+"/tmp", nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir+"/tmp", asUser+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}
