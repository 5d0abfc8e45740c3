package undo

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// tidy ends the undos of steps in a folder that have not ended, because yaya crashed in them.
func (k *kept) tidy(w *workspace.Workspace, steps []step) error {
	ended := false
	for i := range steps {
		st := &steps[i]
		if !st.Undoing || st.Dir != w.Dir() || st.in(w) != nil {
			continue
		}
		if err := k.tidyStep(w, *st); err != nil {
			return err
		}
		st.Undoing, st.Opened, ended = false, nil, true
	}
	if !ended {
		return nil
	}
	return k.store(stepsFile, steps)
}

// tidyStep removes the temporary files of an undo in the folders of its step, puts files that it had moved away
// back if nothing is in their place, and closes folders again.
func (k *kept) tidyStep(w *workspace.Workspace, st step) error {
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
		entries, err := fs.ReadDir(w.FS(), dir)
		errs = append(errs, err)
		var temps []string
		for _, e := range entries {
			switch tmp := path.Join(dir, e.Name()); {
			case !workspace.IsTemp(tmp):
			case left.named(tmp):
				errs = append(errs, w.Discard(tmp))
			default:
				temps = append(temps, tmp)
			}
		}
		for _, tmp := range temps { // now that the other files have one name again
			errs = append(errs, left.tidy(tmp))
		}
	}
	return errors.Join(append(errs, (&opened{w, st.Opened}).back())...)
}

// contentIn is content in a folder.
type contentIn struct{ dir, sha string }

// leftovers knows the content that an undo of a step can have left.
type leftovers struct {
	*reversal
	before map[contentIn][]file
}

// named reports whether a temporary name is the second one of something that has its own name already.
func (l leftovers) named(tmp string) bool {
	is, err := l.w.Root().Lstat(tmp)
	if err != nil {
		return false
	}
	same := func(p string) bool {
		info, err := l.w.Root().Lstat(p)
		return path.Dir(p) == path.Dir(tmp) && err == nil && os.SameFile(info, is)
	}
	return slices.ContainsFunc(l.step.Files, func(f file) bool { return same(f.Path) }) ||
		slices.ContainsFunc(l.step.Others, func(o other) bool { return same(o.Path) })
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
		undone = undone || err == nil && now.equal(f.Before) || errors.Is(err, workspace.ErrIrregular) && f.Before == nil && l.above(f.Path)
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
