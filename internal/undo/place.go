package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// place identifies the folder of a step. The number of its device is not in it: some file systems get
// another one when they are mounted again.
type place struct {
	Path  string `json:"path"` // without links
	Inode uint64 `json:"inode"`
}

// whereIs returns the place of an open folder, as its path is at present.
func whereIs(w *workspace.Workspace) (place, error) {
	dir, err := w.Root().Open(".")
	if err != nil {
		return place{}, err
	}
	info, err := dir.Stat()
	if err != nil {
		return place{}, errors.Join(err, dir.Close())
	}
	id, _, err := hostfile.Identify(dir, info)
	if err = errors.Join(err, dir.Close()); err != nil {
		return place{}, err
	}
	at, err := filepath.EvalSymlinks(w.Dir())
	return place{at, id.Ino}, err
}

// in returns an error unless an open folder is the one of the step. An agent that works in a folder
// above can put a link, or another folder, in its place. Of a step without a place the path must have no link.
func (st *step) in(w *workspace.Workspace) error {
	now, err := whereIs(w)
	if err != nil {
		return err
	}
	was := st.At
	if was == (place{}) {
		was = place{st.Dir, now.Inode}
	}
	if now != was {
		if now.Path == was.Path {
			return fmt.Errorf("%w: %s is not the one that was changed", ErrOtherFolder, st.Dir)
		}
		return fmt.Errorf("%w: %s leads to %s, and no longer to %s", ErrOtherFolder, st.Dir, now.Path, was.Path)
	}
	return nil
}

// orGone returns a function that opens folders, and says of one that is not there that it is gone.
func orGone(open func(dir string) (*workspace.Workspace, error)) func(dir string) (*workspace.Workspace, error) {
	return func(dir string) (*workspace.Workspace, error) {
		w, err := open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", ErrGone, dir)
		}
		return w, err
	}
}
