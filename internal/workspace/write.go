package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Edit is a change of one file: its new content, or its end.
type Edit struct {
	Path   string // as from [Workspace.Clean]
	Data   []byte
	Delete bool
	Mode   fs.FileMode // of a new file; one that is there keeps its own, unless
	// Exactly gives the mode to one that is there, too.
	Exactly bool
}

// ErrLink is returned by [Workspace.Writable] for a path through a link or a file.
var ErrLink = errors.New("the path leads through a link or a file")

// ErrShared is returned by [Workspace.Writable] for a file with several hard links:
// writing would change each of them.
var ErrShared = errors.New("the file has more than one name (a hard link)")

// Apply makes all edits or none: each new content is written beside its file and
// synced first, and when a file cannot be replaced, those that were are put back. A
// file is whole at every moment. (A crash between two files leaves the first ones
// changed.)
func (w *Workspace) Apply(edits []Edit) (err error) {
	var done []undo
	var temps []string
	defer func() {
		for _, t := range temps {
			_ = w.root.Remove(t) // it has been renamed, or is not needed
		}
		if err == nil {
			return
		}
		for i := len(done) - 1; i >= 0; i-- {
			if uerr := done[i](); uerr != nil {
				err = errors.Join(err, fmt.Errorf("and it could not be put back: %w", uerr))
			}
		}
	}()
	staged := make([]string, len(edits))
	for i, e := range edits {
		if err := w.Writable(e.Path); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		if e.Delete {
			continue
		}
		mkdir, err := w.folders(path.Dir(e.Path))
		if err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		done = append(done, mkdir...)
		if staged[i], err = w.stage(e); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		temps = append(temps, staged[i])
	}
	for i, e := range edits {
		back, err := w.replace(e, staged[i])
		if err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		done = append(done, back)
	}
	return nil
}

type undo func() error

// Writable returns an error unless a file can be written at exactly this path: there is a
// regular file with one name or nothing, and no folder above it is a link.
func (w *Workspace) Writable(p string) error {
	for at := path.Dir(p); at != "."; at = path.Dir(at) {
		if info, err := w.root.Lstat(at); err == nil && !info.IsDir() {
			return fmt.Errorf("%s: %w", at, ErrLink)
		}
	}
	info, err := w.root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return ErrIrregular
	}
	if _, links, err := hostfile.At(w.root, p); err == nil && links > 1 {
		return ErrShared
	}
	return nil
}

// folders makes the folders above a file, and returns how to take them away again.
func (w *Workspace) folders(dir string) ([]undo, error) {
	var made []undo
	if dir == "." {
		return nil, nil
	}
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		err := w.root.Mkdir(at, 0o755)
		if err == nil {
			gone := at
			made = append(made, func() error { return w.root.Remove(gone) })
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			return made, err
		}
	}
	return made, nil
}

// stage writes the new content beside the file.
func (w *Workspace) stage(e Edit) (string, error) {
	mode := e.Mode
	if e.Exactly {
		mode = e.Mode
	} else if info, err := w.root.Lstat(e.Path); err == nil {
		mode = info.Mode().Perm()
	} else if mode == 0 {
		mode = 0o644
	}
	tmp := path.Join(path.Dir(e.Path), fmt.Sprintf(".%s.%d.yaya-tmp", path.Base(e.Path), os.Getpid()))
	f, err := w.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(e.Data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, w.root.Remove(tmp))
	}
	return tmp, nil
}

// replace puts the new content in the file's place, and returns how to put the old
// one back.
func (w *Workspace) replace(e Edit, staged string) (undo, error) {
	kept := path.Join(path.Dir(e.Path), fmt.Sprintf(".%s.%d.yaya-old", path.Base(e.Path), os.Getpid()))
	old, info, err := w.Read(e.Path)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if e.Delete {
		err = w.root.Remove(e.Path)
	} else {
		err = w.root.Rename(staged, e.Path)
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		if !exists {
			return w.root.Remove(e.Path)
		}
		if err := w.root.WriteFile(kept, old, info.Mode().Perm()); err != nil {
			return err
		}
		return w.root.Rename(kept, e.Path)
	}, nil
}
