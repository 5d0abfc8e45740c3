//go:build linux || darwin

package undo_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/undo"
)

// scribe changes a workspace at random. Each text that it writes is another one, of another length.
type scribe struct {
	w     *world
	r     *rand.Rand
	texts int
}

var (
	places = []string{"a", "b", "A", "d", "d/x", "d/e", "d/e/y", "keep", "keep/p", "keep/q", "keep/in/r", "n", "n/m", ".gitignore"}
	marks  = regexp.MustCompile(`<user [0-9]+>`)
)

func (s *scribe) place() string { return s.w.path(places[s.r.IntN(len(places))]) }

func (s *scribe) write(who, p string) {
	if info, err := os.Lstat(p); err == nil && !info.Mode().IsRegular() {
		return // a pipe would wait, and a link may lead away
	}
	s.texts++
	text := fmt.Sprintf("<%s %d>%s\n", who, s.texts, strings.Repeat(".", s.texts))
	if filepath.Base(p) == ".gitignore" {
		text = []string{"keep/\n", "keep/\nd/e\n", "b\n"}[s.r.IntN(3)]
	} else if s.r.IntN(5) == 0 {
		text += "SECRET\n"
	}
	flags := os.O_WRONLY | os.O_CREATE | []int{os.O_TRUNC, os.O_TRUNC, os.O_APPEND}[s.r.IntN(3)]
	f, err := os.OpenFile(p, flags, 0o644)
	if err != nil {
		return
	}
	_, err = f.WriteString(text)
	s.w.must(err, f.Close())
}

// act does one thing. Many fail, because of earlier ones.
func (s *scribe) act(who string) {
	p, to := s.place(), s.place()
	if info, err := os.Stat(filepath.Dir(p)); err != nil || !info.IsDir() {
		return // os.RemoveAll would wait for a pipe
	}
	switch s.r.IntN(15) {
	case 14:
		_ = os.Mkdir(p, 0o755)
	case 0:
		_ = os.Remove(p)
	case 1:
		if who != "user" {
			_ = os.RemoveAll(p)
		}
	case 2, 3, 4:
		_ = os.Rename(p, to)
	case 5:
		_ = os.Link(p, to)
	case 6:
		_ = os.Symlink([]string{"a", "../keep/p", "keep"}[s.r.IntN(3)], p)
	case 7:
		_ = syscall.Mkfifo(p, 0o600)
	case 8:
		at := time.Now().AddDate(s.r.IntN(3)-1, 0, 0)
		_ = os.Chtimes(p, at, at)
	case 9:
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			_ = os.Truncate(p, max(info.Size(), []int64{5 << 20, 60}[s.r.IntN(2)]))
		}
	case 10:
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			_ = os.Truncate(p, min(info.Size(), 400)) // a large one gets small
			_ = os.Chmod(p, []fs.FileMode{0o600, 0o644, 0o755}[s.r.IntN(3)])
		}
	default:
		s.write(who, p)
	}
}

// found returns the marks of the user in all files.
func (s *scribe) found() map[string]bool {
	out := map[string]bool{}
	for _, is := range s.w.tree() {
		if strings.HasPrefix(is, "-") {
			for _, m := range marks.FindAllString(is, -1) {
				out[m] = true
			}
		}
	}
	return out
}

// AGT-4: whatever calls, and the user between them, do to files that are covered, ignored, large, secret, moved,
// linked or replaced, an undo loses no text of the user that is in the workspace, and one that refuses changes
// nothing.
func TestUndoLosesNothing(t *testing.T) {
	var undone atomic.Int64 // steps
	t.Cleanup(func() {
		if n := undone.Load(); n < 20 {
			t.Errorf("%d steps were undone, want at least 20: otherwise nothing is shown", n)
		}
	})
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &scribe{w: w, r: rand.New(rand.NewPCG(seed, 3))} //nolint:gosec // a history that can be repeated
			w.write(".gitignore", "keep/\n", 0o644)
			for _, p := range []string{"a", "b", "d/x", "d/e/y", "keep/p", "keep/q", "keep/in/r"} {
				w.must(os.MkdirAll(filepath.Dir(w.path(p)), 0o755))
				s.write("user", w.path(p))
			}
			for range 1 + s.r.IntN(4) {
				w.age()
				w.change(func() {
					for range 1 + s.r.IntN(6) {
						s.act("agent")
					}
				})
				for range s.r.IntN(3) {
					s.act("user")
				}
			}
			for range 12 {
				there, tree := s.found(), w.tree()
				got, err := w.undo()
				if errors.Is(err, undo.ErrNothing) {
					break
				}
				if d := differ(tree, w.tree()); err != nil && d != "" {
					t.Fatalf("Undo = %v, and %s; want nothing changed", err, d)
				}
				found := s.found()
				for m := range there {
					if !found[m] {
						t.Fatalf("Undo = %+v, %v, and %s is lost", got, err, m)
					}
				}
				if err == nil {
					undone.Add(1)
				} else { // somebody moves away the files in the way, and keeps them
					s.act("user")
				}
			}
		})
	}
}
