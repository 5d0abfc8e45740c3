package filewatch_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/filewatch"
)

// USE-2: a change is reported however it comes about, and an event that does not
// change the file is not.
func TestChangesAreTold(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		before, change func(t *testing.T, dir string)
	}{
		"written in place": {
			func(t *testing.T, dir string) { write(t, dir+"/c/f", "old") },
			func(t *testing.T, dir string) { write(t, dir+"/c/f", "new") },
		},
		"renamed over": {
			func(t *testing.T, dir string) { write(t, dir+"/c/f", "old") },
			func(t *testing.T, dir string) {
				write(t, dir+"/c/.f.tmp", "new")
				must(t, os.Rename(dir+"/c/.f.tmp", dir+"/c/f"))
			},
		},
		"removed": {
			func(t *testing.T, dir string) { write(t, dir+"/c/f", "old") },
			func(t *testing.T, dir string) { must(t, os.Remove(dir+"/c/f")) },
		},
		"comes later":                  {func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/c", 0o700)) }, func(t *testing.T, dir string) { write(t, dir+"/c/f", "new") }},
		"comes later, with its folder": {func(*testing.T, string) {}, func(t *testing.T, dir string) { write(t, dir+"/c/f", "new") }},
		"behind a link, written": {
			func(t *testing.T, dir string) {
				write(t, dir+"/dotfiles/f", "old")
				must(t, os.Mkdir(dir+"/c", 0o700))
				must(t, os.Symlink("../dotfiles/f", dir+"/c/f"))
			},
			func(t *testing.T, dir string) { write(t, dir+"/dotfiles/f", "new") },
		},
		"behind a link, which changes": {
			func(t *testing.T, dir string) {
				write(t, dir+"/c/..1/f", "old")
				write(t, dir+"/c/..2/f", "new")
				must(t, os.Symlink("..1", dir+"/c/..data"))
				must(t, os.Symlink("..data/f", dir+"/c/f"))
			},
			func(t *testing.T, dir string) {
				must(t, os.Symlink("..2", dir+"/c/..tmp"))
				must(t, os.Rename(dir+"/c/..tmp", dir+"/c/..data"))
			},
		},
		"its folder is swapped": {
			func(t *testing.T, dir string) { write(t, dir+"/c/f", "old") },
			func(t *testing.T, dir string) {
				write(t, dir+"/d/f", "new")
				must(t, os.Rename(dir+"/c", dir+"/e"))
				must(t, os.Rename(dir+"/d", dir+"/c"))
			},
		},
		"a circle of links is mended": {
			func(t *testing.T, dir string) {
				must(t, os.Mkdir(dir+"/c", 0o700))
				must(t, os.Symlink("g", dir+"/c/f"))
				must(t, os.Symlink("f", dir+"/c/g"))
			},
			func(t *testing.T, dir string) {
				must(t, os.Remove(dir+"/c/f"))
				write(t, dir+"/c/f", "new")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.before(t, dir)
			w, err := filewatch.Open(dir + "/c/f")
			must(t, err)
			told := run(t, w)
			write(t, dir+"/other", "nothing to do with it")
			before := told.Load()
			c.change(t, dir)
			eventually.True(t, "the change is reported", func() bool { return told.Load() > before })
			// And again, from how it is now.
			before = told.Load()
			write(t, dir+"/c/f2", "next")
			must(t, os.Rename(dir+"/c/f2", dir+"/c/f"))
			eventually.True(t, "the next change is reported", func() bool { return told.Load() > before })
		})
	}
}

// A burst of changes is reported a few times, not once for each.
func TestBurst(t *testing.T) {
	dir := t.TempDir()
	w, err := filewatch.Open(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	told := run(t, w)
	for range 2000 {
		if err := os.WriteFile(dir+"/f", []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "the burst is reported", func() bool { return told.Load() > 0 })
	if n := told.Load(); n > 1000 {
		t.Errorf("2000 writes were reported %d times", n)
	}
}

// run runs a watcher until the test ends.
func run(t *testing.T, w *filewatch.Watcher) *atomic.Int64 {
	told := new(atomic.Int64)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, func() { told.Add(1) }, func(err error) { t.Errorf("the watcher reports %v, want no error", err) })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return told
}
