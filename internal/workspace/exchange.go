package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// FileMode are the permissions of a file, with what running it gives.
const FileMode = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// hide renames something to a temporary name beside it, and returns how to put it back.
func (w *Workspace) hide(p string) (tmp string, back undo, err error) {
	tmp = tempBeside(p)
	err = w.within(p, func(dir *os.Root, name string) error { return hostfile.Rename(dir, name, path.Base(tmp)) })
	return tmp, func() error {
		err := w.show(tmp, p)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: something else is there; it is kept as %s", p, tmp)
		}
		return err
	}, err
}

// Discard removes a file, or an empty folder, with a temporary name or in a folder with one. It follows no link.
func (w *Workspace) Discard(tmp string) error {
	for at := tmp; !IsTemp(at); at = path.Dir(at) {
		if at == "." {
			return &fs.PathError{Op: "remove", Path: tmp, Err: fs.ErrInvalid}
		}
	}
	return w.remove(tmp)
}

// PutBack gives something with a temporary name the path from which an edit has moved it. If something is
// there, the error is [fs.ErrExist].
func (w *Workspace) PutBack(tmp, p string) error {
	if !IsTemp(tmp) || path.Dir(tmp) != path.Dir(p) {
		return &fs.PathError{Op: "rename", Path: tmp, Err: fs.ErrInvalid}
	}
	return w.show(tmp, p)
}

// show gives something that was written or renamed beside a path the path as its name. If something is
// there, the error is [fs.ErrExist].
func (w *Workspace) show(tmp, p string) error {
	return w.within(p, func(dir *os.Root, name string) error {
		err := dir.Link(path.Base(tmp), name)
		switch {
		case err == nil:
			return dir.Remove(path.Base(tmp))
		case errors.Is(err, fs.ErrExist):
			return err
		}
		// A folder, or a file system without hard links: what comes between the two calls is lost.
		if _, err := dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, &fs.PathError{Op: "rename", Path: p, Err: fs.ErrExist})
		}
		return hostfile.Rename(dir, path.Base(tmp), name)
	})
}

// exchange is replace for an edit with a check: it moves the old file away, has it checked, and puts the new
// one in the place, if nobody else has meanwhile. It returns where the old file is, "" without one.
func (w *Workspace) exchange(e Edit, staged string) (old string, back undo, err error) {
	old, show, err := w.hide(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		old, show, err = "", func() error { return nil }, nil
	}
	if err == nil {
		if err = e.Check(old); err == nil && !e.Delete {
			err = w.show(staged, e.Path)
		}
		if err != nil {
			err = errors.Join(err, show())
		}
	}
	if err != nil || e.Delete {
		return old, show, err
	}
	return old, func() error { return errors.Join(w.takeBack(e), show()) }, nil
}

// takeBack removes the file of an edit, unless somebody has changed it since.
func (w *Workspace) takeBack(e Edit) error {
	tmp, show, err := w.hide(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	data, _, err := w.Read(tmp)
	if err != nil || !bytes.Equal(data, e.Data) {
		return errors.Join(err, show())
	}
	return w.remove(tmp)
}
