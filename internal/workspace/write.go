package workspace

import (
	"crypto/rand"
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
	// Check, if set, has the edit replace nothing that others write meanwhile. It gets the path to which the
	// file was moved, "" if there is none, and returns why it has to stay. It is called twice.
	Check func(at string) error
}

// ErrLink is returned by [Workspace.Writable] for a path through a link or a file.
var ErrLink = errors.New("the path leads through a link or a file")

// ErrShared is returned by [Workspace.Writable] for a file with several hard links:
// writing would change each of them.
var ErrShared = errors.New("the file has more than one name (a hard link)")

// ErrLeft is returned by [Workspace.ApplyOver] when the edits are made, and a file that was in their place
// cannot be removed.
var ErrLeft = errors.New("the files are changed, but one that was in their place cannot be removed")

// Away is something in the way of edits, whatever its kind: a file, a link, a folder with all in it.
type Away struct {
	Path string // as from [Workspace.Clean]
	// Check gets the path to which it was moved. It returns everything there, parents first, or why it has
	// to stay.
	Check func(at string) (all []string, err error)
}

// Apply makes all edits or none: each new content is written beside its file and
// synced first, and when a file cannot be replaced, those that were are put back. A
// file is whole at every moment, one with a check except for the moment of its exchange. (A crash between
// two files leaves the first ones changed.)
func (w *Workspace) Apply(edits []Edit) error { return w.ApplyOver(nil, edits) }

// ApplyOver is Apply, and removes first what is in the way: it renames it to a temporary name, where
// nobody else looks for it, and calls its check. If that fails, it goes back, and no edit is made.
// ApplyOver removes only the paths that the check has returned, and follows no link: a file that somebody
// adds after the check stays, and is an error.
func (w *Workspace) ApplyOver(away []Away, edits []Edit) error {
	hidden, err := w.apply(away, edits)
	if err != nil {
		return err
	}
	for i := len(hidden) - 1; i >= 0; i-- {
		if err := w.remove(hidden[i]); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrLeft, hidden[i], err)
		}
	}
	return nil
}

// apply makes the edits of [Workspace.ApplyOver], and returns what is left to remove.
func (w *Workspace) apply(away []Away, edits []Edit) (hidden []string, err error) {
	var done []undo
	var temps []string
	defer func() {
		for _, t := range temps {
			_ = w.remove(t) // it has been renamed, or is not needed
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
	for _, a := range away {
		tmp, back, err := w.hide(a.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Path, err)
		}
		done = append(done, back)
		all, err := a.Check(tmp)
		if err != nil {
			return nil, err
		}
		hidden = append(hidden, all...)
	}
	staged := make([]string, len(edits))
	for i, e := range edits {
		if err := w.Writable(e.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		if e.Delete {
			continue
		}
		mkdir, err := w.folders(path.Dir(e.Path))
		done = append(done, mkdir...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		if staged[i], err = w.stage(e); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		temps = append(temps, staged[i])
	}
	olds := make([]string, len(edits))
	for i, e := range edits {
		var back undo
		if e.Check == nil {
			back, err = w.replace(e, staged[i])
		} else {
			olds[i], back, err = w.exchange(e, staged[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Path, err)
		}
		done = append(done, back)
	}
	for i, old := range olds { // somebody may have had it open
		if old == "" {
			continue
		}
		if err := edits[i].Check(old); err != nil {
			return nil, fmt.Errorf("%s: %w", edits[i].Path, err)
		}
		hidden = append(hidden, old)
	}
	return hidden, nil
}

// The names of temporary files are these around a text of [rand.Text].
const (
	tempPrefix = ".yaya-"
	tempSuffix = ".tmp"
	tempRandom = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	tempLength = 26
)

// tempBeside returns a path for a temporary file. Nobody can know it before.
func tempBeside(p string) string { return path.Join(path.Dir(p), tempPrefix+rand.Text()+tempSuffix) }

// IsTemp reports whether a path is that of a temporary file of [Workspace.Apply]: it is neither the
// user's nor an agent's, and gone when the edit is made.
func IsTemp(p string) bool {
	name, ok := strings.CutPrefix(path.Base(p), tempPrefix)
	name, end := strings.CutSuffix(name, tempSuffix)
	return ok && end && len(name) == tempLength && strings.Trim(name, tempRandom) == ""
}

type undo func() error

// Writable returns an error unless a file can be written at exactly this path: there is a
// regular file with one name or nothing, and no folder above it is a link.
func (w *Workspace) Writable(p string) error {
	if path.IsAbs(p) { // not as from Clean: it has no end at "."
		return ErrOutside
	}
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

// above opens the folder above a path, in which every name is a folder and none a link, and returns it
// with the path's own name.
func (w *Workspace) above(p string) (*os.Root, string, error) {
	dir, err := w.root.OpenRoot(".")
	if err != nil {
		return nil, "", err
	}
	for {
		name, rest, more := strings.Cut(p, "/")
		if !more {
			return dir, p, nil
		}
		next, err := enter(dir, name)
		if err = errors.Join(err, dir.Close()); err != nil {
			return nil, "", err
		}
		dir, p = next, rest
	}
}

// enter opens a folder in a folder. A link is an error, even one that takes the folder's place
// meanwhile.
func enter(dir *os.Root, name string) (*os.Root, error) {
	want, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !want.IsDir() {
		return nil, ErrLink
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	got, err := next.Stat(".")
	if err == nil && !os.SameFile(got, want) {
		err = ErrLink
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// within calls f with the folder above a path, and the path's own name.
func (w *Workspace) within(p string, f func(dir *os.Root, name string) error) error {
	dir, name, err := w.above(p)
	if err != nil {
		return err
	}
	return errors.Join(f(dir, name), dir.Close())
}

func (w *Workspace) remove(p string) error {
	return w.within(p, func(dir *os.Root, name string) error { return dir.Remove(name) })
}

// Mkdir makes a folder in one that is there. It follows no link.
func (w *Workspace) Mkdir(p string, mode fs.FileMode) error {
	return w.within(p, func(dir *os.Root, name string) error { return dir.Mkdir(name, mode) })
}

// Rmdir removes an empty folder. It follows no link. Of one that is not empty the error is [fs.ErrExist].
func (w *Workspace) Rmdir(p string) error {
	return w.within(p, func(dir *os.Root, name string) error {
		if info, err := dir.Lstat(name); err != nil || !info.IsDir() {
			return errors.Join(err, &fs.PathError{Op: "rmdir", Path: p, Err: errNotFolder})
		}
		return dir.Remove(name)
	})
}

// SetMode sets the permissions of a folder. It follows no link.
func (w *Workspace) SetMode(p string, mode fs.FileMode) error {
	return w.within(p, func(dir *os.Root, name string) error {
		info, err := dir.Lstat(name)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "chmod", Path: p, Err: errNotFolder}
		}
		if err != nil {
			return err
		}
		return dir.Chmod(name, mode)
	})
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
		err := w.within(at, func(dir *os.Root, name string) error { return dir.Mkdir(name, 0o755) })
		if err == nil {
			gone := at
			made = append(made, func() error { return w.remove(gone) })
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			return made, err
		}
	}
	return made, nil
}

// write writes a new file beside a file, and returns its path. Nobody can have left a file of that name.
func (w *Workspace) write(beside string, data []byte, mode fs.FileMode) (tmp string, err error) {
	tmp = tempBeside(beside)
	return tmp, w.within(tmp, func(dir *os.Root, name string) error {
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
			return errors.Join(err, dir.Remove(name))
		}
		return nil
	})
}

// rename puts a file that was written beside another one in its place.
func (w *Workspace) rename(tmp, p string) error {
	return w.within(p, func(dir *os.Root, name string) error { return hostfile.Rename(dir, path.Base(tmp), name) })
}

// stage writes the new content beside the file.
func (w *Workspace) stage(e Edit) (string, error) {
	mode := e.Mode
	if !e.Exactly {
		if info, err := w.root.Lstat(e.Path); err == nil {
			mode = info.Mode() & FileMode
		} else if mode == 0 {
			mode = 0o644
		}
	}
	return w.write(e.Path, e.Data, mode)
}

// replace puts the new content in the file's place, and returns how to put the old
// one back.
func (w *Workspace) replace(e Edit, staged string) (undo, error) {
	old, info, err := w.Read(e.Path)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if e.Delete {
		err = w.remove(e.Path)
	} else {
		err = w.rename(staged, e.Path)
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		if !exists {
			return w.remove(e.Path)
		}
		kept, err := w.write(e.Path, old, info.Mode()&FileMode)
		if err != nil {
			return err
		}
		return w.rename(kept, e.Path)
	}, nil
}
