// Package filewatch reports when files may have changed.
//
// It watches the folders of the files, and of every symbolic link on the way to them,
// because editors write another file and rename it, and links can swap whole folders.
// Files, and folders on the way, may be missing and appear later. It reports changes in
// quick succession once, when they have settled. It polls folders that cannot be watched
// every two seconds.
package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How changes are gathered.
const (
	quiet    = 200 * time.Millisecond // without another change
	longest  = 2 * time.Second        // that changes may go on without a report
	pollEach = 2 * time.Second
	maxLinks = 40 // on the way to one file, as Linux follows
)

// Watcher watches files.
type Watcher struct {
	files  []string
	notify *fsnotify.Watcher   // nil if the system has none left
	names  map[string][]string // in each watched folder, which entries matter
	seen   string              // of the files when they were polled last
	poll   bool
}

// Open starts watching: [Watcher.Run] reports changes from then on. An error says why
// some folders are only polled; the watcher still works. Close it, or run it.
func Open(files ...string) (*Watcher, error) {
	w := &Watcher{names: map[string][]string{}}
	for _, f := range files {
		abs, err := filepath.Abs(f)
		if err != nil {
			return w, err
		}
		w.files = append(w.files, abs)
	}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.poll = true
		err = fmt.Errorf("files cannot be watched: %w", err)
	}
	w.seen = w.stamps()
	return w, errors.Join(err, w.rearm())
}

// Close ends a watcher that is not run.
func (w *Watcher) Close() error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Close()
}

// Run calls changed whenever one of the files may have changed, until ctx ends. failed
// gets errors meanwhile. Both are called on Run's own goroutine.
func (w *Watcher) Run(ctx context.Context, changed func(), failed func(error)) {
	defer func() {
		if err := w.Close(); err != nil {
			failed(err)
		}
	}()
	var events chan fsnotify.Event
	var broken chan error
	if w.notify != nil {
		events, broken = w.notify.Events, w.notify.Errors
	}
	tick := time.NewTicker(pollEach)
	defer tick.Stop()
	rest := time.NewTimer(time.Hour)
	rest.Stop()
	defer rest.Stop()
	var since time.Time // of the first change that was not told
	dirty := func() {
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		rest.Reset(min(quiet, max(longest-now.Sub(since), 0)))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				events = nil
			} else if w.matters(e) {
				dirty()
			}
		case err, ok := <-broken:
			switch {
			case !ok:
				broken = nil
			case errors.Is(err, fsnotify.ErrEventOverflow): // something was missed
				dirty()
			default:
				failed(err)
			}
		case <-tick.C:
			if !w.poll {
				continue
			}
			if now := w.stamps(); now != w.seen {
				w.seen = now
				dirty()
			}
		case <-rest.C:
			since = time.Time{}
			if err := w.rearm(); err != nil {
				failed(err)
			}
			changed()
		}
	}
}

// matters reports whether an event is about one of the files or the way to it.
func (w *Watcher) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod && !slices.Contains(w.files, e.Name) {
		return false // a mode that lets a file be read is a change
	}
	if _, itself := w.names[e.Name]; itself { // a watched folder has gone or was moved
		return true
	}
	return slices.Contains(w.names[filepath.Dir(e.Name)], filepath.Base(e.Name))
}

// rearm watches exactly the folders that are now on the way to the files.
func (w *Watcher) rearm() error {
	if w.notify == nil {
		return nil
	}
	want := map[string][]string{}
	for _, f := range w.files {
		way(f, want)
	}
	var errs []error
	// A folder of the same name may be another one, so each is added again; that
	// costs nothing for one that is watched.
	for dir := range want {
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("the folder %s is looked at every %v: it cannot be watched: %w", dir, pollEach, err))
			delete(want, dir)
		}
	}
	for dir := range w.names {
		if _, still := want[dir]; !still {
			_ = w.notify.Remove(dir) // it may be gone already
		}
	}
	w.names = want
	if now := len(errs) > 0; now != w.poll {
		w.poll, w.seen = now, w.stamps()
		return errors.Join(errs...)
	}
	return nil
}

// way adds to names the entries that lead to a file, by the folders that they are in:
// the file itself, every link, and what is missing first.
func way(file string, names map[string][]string) {
	add := func(path string) {
		dir, base := filepath.Split(path)
		dir = filepath.Clean(dir)
		if !slices.Contains(names[dir], base) {
			names[dir] = append(names[dir], base)
		}
	}
	at, rest := "/", strings.Split(strings.TrimPrefix(filepath.Clean(file), "/"), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		st, err := os.Lstat(next)
		if err != nil || len(rest) == 1 && st.Mode()&fs.ModeSymlink == 0 {
			add(next)
			return
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			at, rest = next, rest[1:]
			continue
		}
		add(next)
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		rest = append(strings.Split(strings.TrimPrefix(filepath.Clean(to), "/"), "/"), rest[1:]...)
		at = "/"
	}
}

// stamps describes the files as far as it can be seen from outside.
func (w *Watcher) stamps() string {
	var b strings.Builder
	for _, f := range w.files {
		if st, err := os.Stat(f); err == nil {
			fmt.Fprintf(&b, "%d %d %v\n", st.Size(), st.ModTime().UnixNano(), st.Mode())
		} else {
			fmt.Fprintln(&b, "none")
		}
	}
	return b.String()
}
