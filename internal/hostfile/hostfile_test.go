package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

func file(t *testing.T, dir, name, text string) *os.File {
	t.Helper()
	f, err := OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|Append, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := WriteEnd(f, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return f
}

// A lock belongs to one open file, keeps nobody from reading, and ends with its file.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	a, b := file(t, dir, "x", "text"), file(t, dir, "x", "")
	if err := TryLock(a); err != nil {
		t.Fatal(err)
	}
	if err := TryLock(b); !errors.Is(err, ErrLocked) {
		t.Errorf("TryLock() of a locked file = %v, want ErrLocked", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(data) != "text" {
		t.Errorf("the locked file has %q, %v; want its text", data, err)
	}
	if err := Unlock(a); err != nil {
		t.Fatal(err)
	}
	if err := Lock(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := TryLock(a); err != nil {
		t.Errorf("TryLock() after the other file was closed = %v, want nil", err)
	}
}

// A file that is appended to can be cut, and is appended to from there.
func TestAppendAndCut(t *testing.T) {
	dir := t.TempDir()
	f := file(t, dir, "x", "one two")
	if err := f.Truncate(4); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 2), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteEnd(f, []byte("three")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(data) != "one three" {
		t.Errorf("the file has %q, %v; want %q", data, err, "one three")
	}
}

// A file is the same under each of its names, and another one is another.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	f := file(t, dir, "x", "1")
	file(t, dir, "other", "1")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Link("x", "y"); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	id, links, err := Identify(f, info)
	if err != nil || links != 2 {
		t.Errorf("Identify() = %v, %d names, %v; want 2 names", id, links, err)
	}
	if at, _, err := At(root, "y"); err != nil || at != id {
		t.Errorf("At(y) = %v, %v; want %v", at, err, id)
	}
	if at, _, err := Named(filepath.Join(dir, "other")); err != nil || at == id {
		t.Errorf("Named(other) = %v, %v; want another than %v", at, err, id)
	}
	if _, _, err := At(root, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("At(none) = %v, want that it does not exist", err)
	}
}

// The folders above a folder come in their order.
func TestParents(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(below)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	up, err := Parents(f)
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{below, filepath.Join(dir, "a"), dir} {
		id, _, err := Named(name)
		if err != nil || len(up) <= n || up[n] != id {
			t.Errorf("Parents() = %v; want %v of %s at %d (%v)", up, id, name, n, err)
		}
	}
	if id, _, err := Named(filepath.VolumeName(dir) + string(filepath.Separator)); err != nil || up[len(up)-1] != id || slices.Index(up, id) != len(up)-1 {
		t.Errorf("Parents() ends with %v, want the top %v, once (%v)", up[len(up)-1], id, err)
	}
}

// A change of the content is another version, and reading makes no new one.
func TestVersion(t *testing.T) {
	f := file(t, t.TempDir(), "x", "one")
	one, err := VersionOf(f)
	if err != nil || one.Changed().IsZero() {
		t.Fatalf("VersionOf() = %v, %v; want a time", one, err)
	}
	if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
		t.Fatal(err)
	}
	if again, err := VersionOf(f); err != nil || again != one {
		t.Errorf("the version after reading is %v, %v; want %v", again, err, one)
	}
	if _, err := WriteEnd(f, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if two, err := VersionOf(f); err != nil || two == one {
		t.Errorf("the version after writing is %v, %v; want another", two, err)
	}
}

// A file replaces another one, and a link is not followed.
func TestRenameAndNoFollow(t *testing.T) {
	dir := t.TempDir()
	f := file(t, dir, "from", "new")
	_ = f.Close()
	old := file(t, dir, "to", "old")
	_ = old.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Rename(root, "from", "to"); err != nil {
		t.Fatal(err)
	}
	if data, err := root.ReadFile("to"); err != nil || string(data) != "new" {
		t.Errorf("the file has %q, %v; want the new content", data, err)
	}
	if err := root.Symlink("to", "link"); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	if l, err := OpenFile(filepath.Join(dir, "link"), os.O_RDONLY|NoFollow, 0); err == nil {
		defer l.Close()
		if st, err := l.Stat(); err != nil || st.Mode().IsRegular() {
			t.Errorf("a link was followed to %v, %v", st.Mode(), err)
		}
	}
}

// Free space, rights, and what is exposed on this system.
func TestFreeAndRights(t *testing.T) {
	dir := t.TempDir()
	f := file(t, dir, "x", "1")
	if n, _, err := Free(f); err != nil || n <= 0 {
		t.Errorf("Free() = %d, %v; want some bytes", n, err)
	}
	if err := errors.Join(CheckRead(filepath.Join(dir, "x")), CheckMake(dir)); err != nil {
		t.Error(err)
	}
	for _, err := range []error{CheckRead(filepath.Join(dir, "none")), CheckMake(filepath.Join(dir, "none"))} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the check of what is not there = %v, want that it does not exist", err)
		}
	}
	if runtime.GOOS == "windows" {
		return // access lists have a test of their own
	}
	if how, fix, err := Exposed(f); how != "" || fix != "" || err != nil {
		t.Errorf("Exposed() of mode 600 = %q, %q, %v; want nothing", how, fix, err)
	}
	if err := f.Chmod(0o640); err != nil {
		t.Fatal(err)
	}
	if how, fix, err := Exposed(f); how != "mode -rw-r-----" || fix != "chmod 600 "+f.Name() || err != nil {
		t.Errorf("Exposed() of mode 640 = %q, %q, %v; want its mode and chmod 600", how, fix, err)
	}
}

// A root follows links within its folder, whatever the flags are; OpenNoLink does not.
func TestOpenNoLink(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600), os.Symlink("file", filepath.Join(dir, "link"))); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	f, err := OpenNoLink(root, "file")
	if err != nil {
		t.Fatalf("OpenNoLink(file) = %v, want nil", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenNoLink(root, "link"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("OpenNoLink(link) = %v, %v; want %v", f, err, syscall.ELOOP)
	}
	if _, err := OpenNoLink(root, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenNoLink(none) = %v, want %v", err, fs.ErrNotExist)
	}
}
