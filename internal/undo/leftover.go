package undo

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// undoingFile is there while an undo changes files. It has the permissions of the folders that it has opened,
// by their quoted paths.
const undoingFile = "undoing.json"

// begins notes that an undo begins to change files.
func (k *kept) begins(o *opened) error { return k.store(undoingFile, quoted(o.was)) }

// ends notes that an undo has ended.
func (k *kept) ends() error {
	if err := k.root.Remove(undoingFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tidy removes the temporary files of an undo in which yaya crashed, in the folders of the step that it was to
// undo, puts files that it had moved away back if nothing is in their place, and closes folders again.
func (k *kept) tidy(w *workspace.Workspace) error {
	var was map[string]fs.FileMode
	if err := k.load(undoingFile, &was); err != nil || was == nil {
		return err
	}
	steps, err := k.steps()
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return k.ends()
	}
	st := steps[len(steps)-1]
	if st.Dir != w.Dir() || st.in(w) != nil {
		return nil //nolint:nilerr // another folder's
	}
	dirs := map[string]bool{}
	for _, f := range st.Files {
		dirs[path.Dir(f.Path)] = true
	}
	for _, o := range st.Others {
		dirs[path.Dir(o.Path)] = true
	}
	left := leftovers{newReversal(w, k, st), map[contentIn][]file{}}
	for _, f := range st.Files {
		if f.Before != nil {
			at := contentIn{path.Dir(f.Path), f.Before.SHA}
			left.before[at] = append(left.before[at], f)
		}
	}
	var errs []error
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if _, there, err := folderMode(w, dir); !there || err != nil || obstacleAbove(w, dir) != "" {
			continue
		}
		entries, err := fs.ReadDir(w.Root().FS(), dir)
		errs = append(errs, err)
		for _, e := range entries {
			if tmp := path.Join(dir, e.Name()); workspace.IsTemp(tmp) {
				errs = append(errs, left.tidy(tmp))
			}
		}
	}
	modes, err := unquoted(was)
	errs = append(errs, err, (&opened{w, modes}).back())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return k.ends()
}

// contentIn is content in a folder.
type contentIn struct{ dir, sha string }

// leftovers knows the content that an undo of a step can have left.
type leftovers struct {
	*reversal
	before map[contentIn][]file
}

// tidy removes a temporary file, or puts it back, if the undo of the step can have made it.
func (l leftovers) tidy(tmp string) error {
	is, data, err := read(l.w, tmp)
	if err != nil || is == nil {
		return l.tidyOther(tmp)
	}
	// A file that was moved away comes first: if the step has changed its mode alone, or swapped two files, it
	// has content from before, too.
	dir, undone := path.Dir(tmp), false
	for _, f := range l.step.Files {
		if f.After == nil || path.Dir(f.Path) != dir || !is.equal(f.After) && (f.After.SHA != "" || !leftUnkept(l.w, tmp, *f.After)) {
			continue
		}
		now, err := state(l.w, f.Path)
		if err == nil && now == nil && f.Before != nil { // several may have had the content
			return l.w.PutBack(tmp, f.Path)
		}
		undone = undone || err == nil && now.equal(f.Before)
	}
	switch {
	case undone, is.SHA != "" && len(l.before[contentIn{dir, is.SHA}]) > 0:
		return l.w.Discard(tmp)
	case is.SHA == "": // content that is not kept, and not the step's
		return nil
	}
	for at := range l.before { // it may not be whole
		if at.dir != dir {
			continue
		}
		if want, err := l.kept.blob(at.sha); err == nil && bytes.HasPrefix(want, data) {
			return l.w.Discard(tmp)
		}
	}
	return nil
}

// tidyOther is tidy for something else than a file.
func (l leftovers) tidyOther(tmp string) error {
	for _, o := range l.step.Others {
		if now, _, err := look(l.w, tmp); path.Dir(o.Path) != path.Dir(tmp) || err != nil || now.Kind != o.Kind {
			continue
		}
		r := newReversal(l.w, l.kept, l.step)
		all, err := r.check(tmp, o.Path)
		if err != nil || r.refusal() != nil { // it is not the step's
			continue
		}
		if _, err := r.w.Root().Lstat(o.Path); errors.Is(err, fs.ErrNotExist) {
			return r.w.PutBack(tmp, o.Path)
		}
		var errs []error
		for _, p := range slices.Backward(all) {
			errs = append(errs, r.w.Discard(p))
		}
		return errors.Join(errs...)
	}
	return nil
}
