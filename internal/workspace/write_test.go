package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func opened(t *testing.T) (*Workspace, string) {
	t.Helper()
	dir := t.TempDir()
	w, err := (*Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, dir, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
		t.Errorf("%s is %.40q, %v; want %.40q", name, got, err, want)
	}
}

// A file can be written whatever an earlier process has left beside it when it was killed, and
// however long its name is; nothing is left beside it.
func TestApplyBesideLeftovers(t *testing.T) {
	w, dir := opened(t)
	long := strings.Repeat("n", 255)
	for _, name := range []string{"a", long} {
		put(t, dir, name, "old")
		edits := []Edit{{Path: name, Data: []byte("new")}}
		if name == "a" {
			put(t, dir, fmt.Sprintf(".a.%d.yaya-tmp", os.Getpid()), "half")
		}
		if err := w.Apply(edits); err != nil {
			t.Errorf("Apply = %v, want nil", err)
		}
		has(t, dir, name, "new")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v, %v; want both files and the earlier leftover", entries, err)
	}
}

// R17: what is put back when an edit fails reaches its file, and not the target of a link that
// waits beside it.
func TestPutBackFollowsNoLink(t *testing.T) {
	w, dir := opened(t)
	put(t, dir, "a", "old")
	put(t, dir, "victim", "victim")
	put(t, dir, "huge", "")
	if err := errors.Join(os.Truncate(filepath.Join(dir, "huge"), MaxFile+1), os.Symlink("victim", filepath.Join(dir, fmt.Sprintf(".a.%d.yaya-old", os.Getpid())))); err != nil {
		t.Fatal(err)
	}
	if err := w.Apply([]Edit{{Path: "a", Data: []byte("new")}, {Path: "huge", Data: []byte("new")}}); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("Apply = %v, want %v", err, ErrTooLarge)
	}
	has(t, dir, "a", "old")
	has(t, dir, "victim", "victim")
	if info, err := os.Lstat(filepath.Join(dir, "a")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("a is %v, %v; want a file", info, err)
	}
}

// R17: a folder that becomes a link after the look at it leads nowhere.
func TestSwappedFolder(t *testing.T) {
	w, dir := opened(t)
	put(t, dir, "other/x", "other")
	if err := os.Symlink("other", filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.stage(Edit{Path: "d/y", Data: []byte("new")}); !errors.Is(err, ErrLink) {
		t.Errorf("stage = %v, want %v", err, ErrLink)
	}
	if _, err := w.replace(Edit{Path: "d/x", Delete: true}, ""); !errors.Is(err, ErrLink) {
		t.Errorf("replace = %v, want %v", err, ErrLink)
	}
	if _, err := w.folders("d/new"); !errors.Is(err, ErrLink) {
		t.Errorf("folders = %v, want %v", err, ErrLink)
	}
	has(t, dir, "other/x", "other")
	if entries, err := os.ReadDir(filepath.Join(dir, "other")); err != nil || len(entries) != 1 {
		t.Errorf("the other folder has %v, %v; want nothing new", entries, err)
	}
}

// One path that is too deep hides nothing behind it.
func TestWalkGoesOnBehindDeepPaths(t *testing.T) {
	w, dir := opened(t)
	put(t, dir, strings.Repeat("a/", maxDepth+2)+"deep", "")
	put(t, dir, "b", "")
	var left, seen []string
	err := w.WalkAll(t.Context(), ".", func(e Entry) error { seen = append(seen, e.Path); return nil }, func(p string) { left = append(left, p) })
	if err != nil || seen[len(seen)-1] != "b" || len(left) != 1 {
		t.Errorf("the last of %d is %.20q, and %d are left out, %v; want b, and one", len(seen), seen[len(seen)-1], len(left), err)
	}
}

// The names that temporary files get are known as such, and no others.
func TestIsTemp(t *testing.T) {
	for name, want := range map[string]bool{
		tempBeside("a/b"):                          true,
		tempBeside("b"):                            true,
		".yaya-backup.tmp":                         false,
		".yaya-ABCDEFGHIJKLMNOPQRSTUVWXY1.tmp":     false,
		".yaya-ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp":     true,
		".yaya-ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp/a":   false,
		"a.yaya-ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp":    false,
		".yaya-ABCDEFGHIJKLMNOPQRSTUVWXYZ234.tmp":  false,
		".yaya-ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp.tmp": false,
	} {
		if got := IsTemp(name); got != want {
			t.Errorf("IsTemp(%q) = %t, want %t", name, got, want)
		}
	}
}

// A path that nobody has cleaned has an answer, too.
func TestWritableAbsolute(t *testing.T) {
	w, dir := opened(t)
	if err := w.Writable(filepath.ToSlash(filepath.Join(dir, "a.txt"))); !errors.Is(err, ErrOutside) {
		t.Errorf("an absolute path: %v, want %v", err, ErrOutside)
	}
}
