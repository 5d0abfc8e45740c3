package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// folder is a folder whose permissions a step has changed, or that it has made or removed.
type folder struct {
	Path   string      `json:"path"`
	Before fs.FileMode `json:"before"`
	After  fs.FileMode `json:"after,omitempty"`
	Gone   bool        `json:"gone,omitempty"`
	New    bool        `json:"new,omitempty"`
	Unseen bool        `json:"unseen,omitempty"` // after the step, which has closed one above it
}

// modeBits are the permissions of a file or folder, with what else its mode decides.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// folderMode returns the permissions of a folder; ok is false if there is none at the path: something
// above it may be a link or a file. An error means that one above it is closed.
func folderMode(w *workspace.Workspace, p string) (mode fs.FileMode, ok bool, err error) {
	info, err := w.Root().Lstat(p)
	switch {
	case err == nil:
		return info.Mode() & modeBits, info.IsDir(), nil
	case errors.Is(err, fs.ErrPermission):
		return 0, false, err
	}
	return 0, false, nil
}

// compareFolders adds to a step the folders that are new or gone, or have other permissions, even if one
// is left out now, by a .gitignore that is new.
func (g *group) compareFolders(w *workspace.Workspace, now picture, st *step) {
	respelled := map[string]bool{} // as in compare
	for _, p := range slices.Sorted(maps.Keys(g.first.dirs)) {
		before := g.first.dirs[p]
		after, seen := now.dirs[p]
		if !seen {
			after, there, err := folderMode(w, p)
			at, _ := obstacle(w, p)
			switch info, ierr := w.Root().Lstat(p); {
			case !there:
				if err == nil && obstacleAbove(w, p) != "" {
					g.replaced(w, p+"/.", now, st)
				}
				st.Folders = append(st.Folders, folder{Path: p, Before: before, Gone: err == nil, Unseen: err != nil})
			case at == p && ierr == nil: // and it is not found through a link
				respelled[now.spelled(p, info)] = true
				if after != before {
					st.Folders = append(st.Folders, folder{Path: p, Before: before, After: after})
				}
			}
		} else if after != before {
			st.Folders = append(st.Folders, folder{Path: p, Before: before, After: after})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(now.dirs)) {
		_, known := g.first.dirs[p]
		switch {
		case known || g.first.there(p):
		case respelled[p]:
			st.Without = append(st.Without, p+"/")
		default:
			st.Folders = append(st.Folders, folder{Path: p, New: true, After: now.dirs[p]})
		}
	}
}

// missFolders notes which folders above a path are not there before a call that names it.
func (g *group) missFolders(w *workspace.Workspace, p string) {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		_, err := w.Root().Lstat(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return
		}
		if _, was := g.first.dirs[dir]; !was {
			g.missed[dir] = true
		}
	}
}

// addMissed adds to a step the folders that calls have made above the paths that they named.
func (g *group) addMissed(w *workspace.Workspace, st *step) {
	for _, f := range st.Folders {
		delete(g.missed, f.Path)
	}
	for p := range g.missed {
		if mode, there, err := folderMode(w, p); there && err == nil {
			st.Folders = append(st.Folders, folder{Path: p, New: true, After: mode})
		}
	}
	slices.SortFunc(st.Folders, func(a, b folder) int { return strings.Compare(a.Path, b.Path) })
}

// opened are folders that their owner may use for the time of an undo.
type opened struct {
	w   *workspace.Workspace
	was map[string]fs.FileMode // of those whose permissions have been changed
}

// open gives the owner all rights to a folder with these permissions. Somebody else's stays as it is.
func (o *opened) open(p string, mode fs.FileMode) {
	if mode&0o700 != 0o700 {
		o.was[p] = mode
		_ = o.w.SetMode(p, mode|0o700) // an error shows when the files in it are needed
	}
}

// close gives the folders that are still there their permissions back, children first. It returns why not by
// path.
func (o *opened) close() map[string]error {
	failed := map[string]error{}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(o.was))) {
		if now, there, err := folderMode(o.w, p); err == nil && there && now == o.was[p] { // perhaps somebody else's
			continue
		}
		if err := o.w.SetMode(p, o.was[p]); err != nil && !errors.Is(err, fs.ErrNotExist) && !notRegular(err) {
			failed[p] = err
		}
	}
	return failed
}

// back is close as one error.
func (o *opened) back() error {
	var errs []error
	for p, err := range o.close() {
		errs = append(errs, fmt.Errorf("%s: %w", p, err))
	}
	return errors.Join(errs...)
}

// openFolders opens every folder above the changes of a step: without that its files may be out of reach, or
// not to be replaced. It calls begins before it opens any. It refuses a step of whose folders one has neither
// the permissions that the step left nor those from before.
func openFolders(o *opened, st step, begins func() error) error {
	ways := map[string]bool{".": true}
	way := func(p string) {
		for ; !ways[p]; p = path.Dir(p) {
			ways[p] = true
		}
	}
	for _, f := range st.Files {
		way(path.Dir(f.Path))
	}
	for _, f := range st.Folders {
		way(f.Path)
	}
	for _, other := range st.Others {
		way(other.Path)
	}
	modes := map[string]fs.FileMode{}
	for { // what is in a closed folder shows when that is open
		var closed []string
		var hidden error
		for _, p := range slices.Sorted(maps.Keys(ways)) {
			mode, there, err := folderMode(o.w, p)
			if err != nil {
				hidden = fmt.Errorf("%s: %w", p, err)
			}
			if _, known := modes[p]; !there || known {
				continue
			}
			if modes[p] = mode; mode&0o700 != 0o700 {
				closed, o.was[p] = append(closed, p), mode
			}
		}
		if len(closed) == 0 && hidden != nil {
			return hidden
		}
		if len(closed) == 0 {
			break
		}
		if err := begins(); err != nil {
			return err
		}
		for _, p := range closed {
			o.open(p, modes[p])
		}
	}
	var changed []string
	for i, f := range st.Folders {
		now, there := modes[f.Path]
		if f.Unseen {
			st.Folders[i].Gone = !there
			f.Gone, f.After = !there, now
		}
		if !f.Gone && !f.New && (!there || now != f.Before && now != f.After) {
			changed = append(changed, f.Path+"/")
		}
	}
	if len(changed) > 0 {
		n := min(len(changed), maxNamed)
		return fmt.Errorf("%w: %q", ErrChanged, changed[:n])
	}
	return nil
}

// Remaining is a file or a folder, with a slash, that an undo has not put back.
type Remaining struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// bringBack makes the folders that a step has removed, those that its files did not need, too, removes those
// that it has made if they are empty, and gives folders the permissions from before. It returns which of the
// step's are as before, and the others.
func bringBack(o *opened, st step) (back []string, rest []Remaining) {
	failed := map[string]error{}
	for _, f := range st.Folders {
		if f.Gone {
			if err := o.w.Mkdir(f.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				failed[f.Path] = err
			}
		}
		if !f.New {
			o.was[f.Path] = f.Before
		}
	}
	for _, f := range slices.Backward(st.Folders) {
		if _, there, err := folderMode(o.w, f.Path); !f.New || !there && err == nil { // a file from before may be there
			continue
		}
		err := o.w.Rmdir(f.Path)
		if errors.Is(err, fs.ErrExist) {
			err = inIt(o.w, f.Path)
		}
		if err != nil {
			failed[f.Path] = err
		}
	}
	maps.Copy(failed, o.close())
	for _, f := range st.Folders {
		_, there, err := folderMode(o.w, f.Path)
		switch {
		case failed[f.Path] != nil:
			rest = append(rest, Remaining{f.Path + "/", failed[f.Path].Error()})
			delete(failed, f.Path)
		case !f.New && !there && err == nil:
			rest = append(rest, Remaining{f.Path + "/", "something else is in its place"})
		default:
			back = append(back, f.Path+"/")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(failed)) {
		rest = append(rest, Remaining{p + "/", failed[p].Error()})
	}
	return back, rest
}

// maxInIt is how many names of a folder an error has.
const maxInIt = 5

// inIt is the reason why a folder that a step has made stays.
func inIt(w *workspace.Workspace, p string) error {
	dir, err := w.Root().OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(maxInIt + 1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for i, n := range names {
		names[i] = workspace.Shown(n)
	}
	if len(names) > maxInIt {
		names[maxInIt] = "…"
	}
	return fmt.Errorf("it has what the change does not cover: %s", strings.Join(names, ", "))
}
