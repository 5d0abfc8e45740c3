package gitconf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder that has not changed is not read again, and one that has is, however often.
func TestLookReadsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a/b/f", "")
	put(t, dir, "c/f", "")
	l := limits{entries: 1000, time: time.Hour}
	first := look(dir, nil, l)
	was := first.folders[filepath.Join(dir, "c")]
	was.subs = []string{"remembered"}
	first.folders[filepath.Join(dir, "c")] = was
	put(t, dir, "a/b/.git/config", "[core]")
	second := look(dir, first, l)
	if f := second.folders[filepath.Join(dir, "c")]; len(f.subs) != 1 {
		t.Errorf("the folder c was read again: %+v", f)
	}
	if got := fmt.Sprint(second.Since(first)); got != "[{a/b/.git was not there before the command, and is now}]" {
		t.Errorf("Since = %s, want the repository", got)
	}
	l.settled = time.Hour // everything is fresh
	fresh := look(dir, nil, l)
	was.fresh = true
	fresh.folders[filepath.Join(dir, "c")] = was
	if f := look(dir, fresh, l).folders[filepath.Join(dir, "c")]; len(f.subs) != 0 {
		t.Errorf("a folder that had just changed is trusted: %+v", f)
	}
	if f := fresh.folders[filepath.Join(dir, "a")]; !f.fresh {
		t.Errorf("a folder that has just changed is not fresh: %+v", f)
	}
}

// A look ends at its bounds, says so, and does not call new what it had not seen.
func TestLookIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		put(t, dir, fmt.Sprintf("d%02d/sub/f", i), "")
	}
	put(t, dir, "d29/sub/.git/config", "[core]")
	put(t, dir, ".git/config", "[core]")
	few := limits{entries: 60, time: time.Hour}
	before := look(dir, nil, few)
	put(t, dir, ".git/commondir", "../evil")
	after := look(dir, before, limits{entries: 1000, time: time.Hour})
	if !before.Cut() || after.Cut() {
		t.Errorf("cut: %v and %v, want the first", before.Cut(), after.Cut())
	}
	want := "[{.git/commondir was not there before the command, and is now} {d29/sub/.git was not seen before the command, and is there now}]"
	if got := fmt.Sprint(after.Since(before)); got != want {
		t.Errorf("Since = %s, want %s", got, want)
	}
	if none := look(dir, nil, limits{entries: 1000}); !none.Cut() {
		t.Error("a look without time has seen all")
	}
}

// A look ends on any repository: circles, pipes, dangling links.
func TestHostileRepository(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ".git/config", "[include]\n path = config\n path = ../a\n[core]\n hooksPath = ../..\n worktree = /\n")
	put(t, dir, "a", "[include]\n path = .git/config\n")
	put(t, dir, ".git/commondir", ".")
	put(t, dir, "sub/.git", "gitdir: ../sub/.git")
	for link, to := range map[string]string{".git/hooks": "hooks", ".git/modules": ".", ".git/worktrees": "nowhere", "loop": "."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := Look(dir, nil)
	if s.Cut() || len(s.Since(Look(dir, s))) != 0 {
		t.Errorf("cut %v, changes %v; want neither", s.Cut(), s.Since(Look(dir, s)))
	}
	got := fmt.Sprint(Own(dir))
	if want := fmt.Sprintf("[%s/.git/commondir %[1]s/.git/config]", dir); got != want {
		t.Errorf("Own = %s, want %s", got, want)
	}
}

// More modules than can be listed are protected by the folder that they are in: none is
// pushed out of protection by names that a program has made.
func TestManyModulesAreProtected(t *testing.T) {
	for _, n := range []int{100, 400, maxRepositories + 10, maxModules + 10} {
		dir := t.TempDir()
		put(t, dir, ".git/config", "[core]")
		put(t, dir, ".git/worktrees/w/commondir", "../..")
		for i := range n {
			put(t, dir, fmt.Sprintf(".git/modules/m%d/config", i), "[core]")
			put(t, dir, fmt.Sprintf(".git/modules/m%d/hooks/pre-commit", i), "")
		}
		own := Own(dir)
		if len(own) > maxOwn {
			t.Errorf("%d modules: Own has %d paths, want %d at most", n, len(own), maxOwn)
		}
		names := []string{"config", "worktrees/w/commondir"}
		for i := range n {
			names = append(names, fmt.Sprintf("modules/m%d/config", i), fmt.Sprintf("modules/m%d/hooks", i))
		}
		for _, name := range names {
			path := filepath.Join(dir, ".git", name)
			if !slices.ContainsFunc(own, func(of string) bool { return path == of || strings.HasPrefix(path, of+"/") }) {
				t.Errorf("%d modules: %s is not protected", n, path)
				break
			}
		}
		if whole := slices.Contains(own, filepath.Join(dir, ".git/modules")); whole != (n > 100) {
			t.Errorf("%d modules: the folder is protected as a whole: %v", n, whole)
		}
	}
}

// A folder that cannot be read, though Git may find something in it, is reported.
func TestShutFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ".git/config", "[core]")
	before := Look(dir, nil)
	at, err := os.OpenRoot(dir)
	for range 20 { // a path that is too long for the system
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("d", 250)
		if err := at.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		up := at
		at, err = up.OpenRoot(name)
		if err := up.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(err, at.Close()); err != nil {
		t.Fatal(err)
	}
	after := Look(dir, before)
	if got := after.Since(before); len(got) != 1 || got[0].How != "cannot be looked into since the command" {
		t.Errorf("Since = %v, want the folder", got)
	}
	if got := Look(dir, after).Since(after); len(got) != 0 {
		t.Errorf("Since = %v, want nothing the next time", got)
	}
	if os.Geteuid() == 0 {
		return // who may read every folder
	}
	put(t, dir, "sub/.git/config", "[core]")
	before = Look(dir, nil)
	if err := os.Chmod(filepath.Join(dir, "sub"), 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Errorf("Chmod of the folder = %v, want no error", err)
		}
	})
	put(t, dir, "sub/.git/config", "[core] fsmonitor = evil")
	if got := fmt.Sprint(Look(dir, before).Since(before)); got != "[{sub cannot be looked into since the command}]" {
		t.Errorf("Since = %s, want the folder", got)
	}
}

func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		put(b, dir, fmt.Sprintf("d%d/d%d/f%d", i%10, i%1000, i), "")
	}
	l := bounds
	l.settled = 0
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			look(dir, nil, l)
		}
	})
	known := look(dir, nil, l)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			look(dir, known, l)
		}
	})
}
