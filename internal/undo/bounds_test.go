package undo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// A session keeps a bounded number of bytes: the oldest steps give way to new ones, with their content.
func TestKeptBytesAreBounded(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	s := New(root, func([]byte) bool { return false })
	s.most = 10_000
	dir := t.TempDir()
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	write := func(n int) {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(strings.Repeat(fmt.Sprint(n), 4000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	for n := 1; n < 8; n++ {
		c, err := s.Begin(t.Context(), "s", "tool", w)
		if err != nil {
			t.Fatal(err)
		}
		write(n)
		if _, err := c.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	at, err := s.folder("s")
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	sizes, err := at.blobs()
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, n := range sizes {
		total += n
	}
	if total > 3*4000+4000 { // the content of a step that has just gone goes with the next one
		t.Errorf("%d bytes are kept, want at most those of two steps, of the present and of one that has gone", total)
	}
	for want := 6; want > 4; want-- {
		if _, err := s.Undo(t.Context(), "s", (*workspace.Guard)(nil).Open); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || !strings.HasPrefix(string(got), fmt.Sprint(want)) {
			t.Errorf("the file begins with %.1s, %v; want %d", got, err, want)
		}
	}
	if got, err := s.Undo(t.Context(), "s", (*workspace.Guard)(nil).Open); !errors.Is(err, ErrNothing) {
		t.Errorf("Undo = %+v, %v; want that the older steps are gone", got, err)
	}
}

// AGT-4: undo says that it does not undo a step that could not be kept, before it undoes an earlier one, and
// later steps are kept.
func TestStepThatIsNotKept(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	s := New(root, func([]byte) bool { return false })
	s.most = 10_000
	dir := t.TempDir()
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range []bool{false, true} {
		c, err := s.Begin(t.Context(), "s", "tool", w)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(fmt.Sprint(n)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Done(t.Context()); (err == nil) != want {
			t.Errorf("the change %d is kept: %v, want %v", n, err, want)
		}
	}
	for _, want := range []int{0, 1, -1} { // that are not as before
		got, err := s.Undo(t.Context(), "s", (*workspace.Guard)(nil).Open)
		if want < 0 && !errors.Is(err, ErrNothing) || want >= 0 && (err != nil || len(got.Remaining) != want) {
			t.Errorf("Undo = %+v, %v; want %d that are not as before", got, err, want)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "0" {
		t.Errorf("the file is %q, %v; want it as the lost change left it", got, err)
	}
}

// A list of seen files that cannot be read costs reading the files again, and nothing else.
func TestSeenFilesAreACache(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	s := New(root, func([]byte) bool { return false })
	dir := t.TempDir()
	w, err := (*workspace.Guard)(nil).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for _, text := range []string{"one", "two"} {
		at, err := s.folder("s")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(at.root.WriteFile(seenFile, []byte(`{"a":{"size":`), 0o600), os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		at.close()
		c, err := s.Begin(t.Context(), "s", "tool", w)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Undo(t.Context(), "s", (*workspace.Guard)(nil).Open); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != text {
			t.Errorf("the file is %q, %v; want %q", got, err, text)
		}
	}
}

// AGT-4: a step that an earlier yaya has kept does not say which folder it is: its path has to lead there
// without links.
func TestStepWithoutPlace(t *testing.T) {
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(real, "link")
	if err := os.Symlink(".", link); err != nil {
		t.Skip(err)
	}
	for at, want := range map[string]error{real: nil, link: ErrOtherFolder} {
		w, err := (*workspace.Guard)(nil).Open(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&step{Dir: at}).in(w); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
