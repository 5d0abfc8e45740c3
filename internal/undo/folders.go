package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

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
			at, kind := obstacle(w, p)
			switch info, ierr := w.Root().Lstat(p); {
			case !there && at != "" && kind&^fs.ModeDir != 0 && !g.noted[at]: // it stays away while that is there
				st.Without = append(st.Without, p+"/")
			case !there:
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
			st.Folders = append(st.Folders, folder{Path: p, New: true})
		}
	}
}

// openFolders gives folders the permissions that they had before a step, parents first: without them its
// files may be out of reach. back takes that back.
func openFolders(w *workspace.Workspace, st step) (back func() error, err error) {
	var done []folder
	back = func() error {
		var errs []error
		for _, f := range slices.Backward(done) {
			errs = append(errs, w.SetMode(f.Path, f.After))
		}
		return errors.Join(errs...)
	}
	var changed []string
	for _, f := range st.Folders {
		if f.Gone || f.New {
			continue
		}
		now, there, err := folderMode(w, f.Path)
		if f.Unseen && err == nil {
			if !there {
				continue // it was removed as well
			}
			f.After = now
		}
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("%s: %w", f.Path, err), back())
		case !there || now != f.Before && now != f.After:
			changed = append(changed, f.Path+"/")
		case now == f.After:
			if err := w.SetMode(f.Path, f.Before); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", f.Path, err), back())
			}
			done = append(done, f)
		}
	}
	if len(changed) > 0 {
		n := min(len(changed), maxNamed)
		return nil, errors.Join(fmt.Errorf("%w: %q", ErrChanged, changed[:n]), back())
	}
	return back, nil
}

// bringBack makes the folders that a step has removed, those that its files did not need, too, and gives
// them their permissions, children first. One at whose path something else is stays away. Folders that
// the step has made go if they are empty.
func bringBack(w *workspace.Workspace, st step) error {
	var errs []error
	for _, f := range st.Folders {
		if _, _, err := folderMode(w, f.Path); f.Gone && err == nil {
			err = w.Mkdir(f.Path, 0o700)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				errs = append(errs, fmt.Errorf("%s: %w", f.Path, err))
			}
		}
	}
	for _, f := range slices.Backward(st.Folders) {
		_, there, err := folderMode(w, f.Path)
		switch {
		case !there || err != nil:
		case f.Gone:
			errs = append(errs, w.SetMode(f.Path, f.Before))
		case f.New:
			if err := w.Rmdir(f.Path); err != nil && !errors.Is(err, fs.ErrExist) { // it may not be empty
				errs = append(errs, fmt.Errorf("%s: %w", f.Path, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the files are as before, but not every folder: %w", err)
	}
	return nil
}
