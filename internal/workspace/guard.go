package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// ErrOwn means that a workspace, or a file in one, is yaya's own.
var ErrOwn = errors.New("yaya keeps its tools out of its own folders")

// Own is a folder of yaya's own.
type Own struct {
	Name string // for messages: "data folder"
	Path string // it need not be there yet
	Move string // the flag that moves it: "--data-dir"
}

// Guard opens workspaces, and refuses those that are a folder of yaya's own, lie in
// one, or contain one. Folders are compared by device and inode, on the opened
// directories, so that links, mounts and spellings make no difference. A nil Guard
// protects nothing. It is safe for concurrent use.
type Guard struct {
	own []Own
	// ids has the identities of the folders when the guard was created, in case they
	// are moved.
	ids map[hostfile.ID]Own
}

// NewGuard returns a guard of folders.
func NewGuard(own ...Own) (*Guard, error) {
	g := &Guard{own: own, ids: map[hostfile.ID]Own{}}
	for _, o := range own {
		up, there, err := ancestry(o.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		if there {
			g.ids[up[0]] = o
		}
	}
	return g, nil
}

// Open opens the folder as a workspace; the caller closes it.
func (g *Guard) Open(dir string) (*Workspace, error) {
	if dir == "" {
		return nil, errors.New("workspace: no folder is named")
	}
	root, err := os.OpenRoot(dir + "/.") // a pipe is not waited for
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	if err := g.check(root, dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Workspace{root: root, dir: dir, ownFiles: sync.OnceValue(g.files), closing: root.Close}, nil
}

// Check returns an error if a folder cannot be a workspace.
func (g *Guard) Check(dir string) error {
	w, err := g.Open(dir)
	if err != nil {
		return err
	}
	return w.Close()
}

func (g *Guard) check(root *os.Root, dir string) error {
	if g == nil {
		return nil
	}
	folder, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("workspace %s: %w", dir, err)
	}
	defer func() { _ = folder.Close() }()
	up, err := hostfile.Parents(folder)
	if err != nil {
		return fmt.Errorf("workspace %s: %w", dir, err)
	}
	if err := g.compare(up, dir); err != nil {
		return err
	}
	mounts, err := mountsBelow(folder)
	if err != nil {
		return fmt.Errorf("workspace %s: the mounts in it are not known: %w", dir, err)
	}
	for _, mount := range mounts { // a bind mount can bring anything into it
		up, err := hostfile.ParentsOf(mount)
		if opening := (*fs.PathError)(nil); errors.As(err, &opening) && !isShort(err) {
			continue // it is a file, or tools cannot enter it either
		}
		if err == nil {
			err = g.compare(up, mount)
		}
		if err != nil {
			return fmt.Errorf("workspace %s has a mount in it: %w", dir, err)
		}
	}
	return nil
}

// isShort reports whether the process or the machine has too little of something: that says nothing
// about a folder.
func isShort(err error) bool {
	return errors.Is(err, errnos.TooManyFiles) || errors.Is(err, errnos.SystemFiles) || errors.Is(err, errnos.NoMemory)
}

// compare refuses a folder because of the folders above it, which come after it in up, or those
// below it.
func (g *Guard) compare(up []hostfile.ID, dir string) error {
	for _, o := range g.own {
		ways, there, err := ancestry(o.Path)
		if err != nil {
			return fmt.Errorf("workspace %s: yaya's own %s: %w", dir, o.Name, err)
		}
		for n, id := range ways {
			if id == up[0] && (n > 0 || !there) {
				return fmt.Errorf("%w: workspace %s contains its %s: choose a folder below, or move that with %s", ErrOwn, dir, o.Name, o.Move)
			}
		}
		if there && within(up, ways[0]) {
			return g.inside(dir, up[0] == ways[0], o)
		}
	}
	for id, o := range g.ids {
		if within(up, id) {
			return g.inside(dir, up[0] == id, o)
		}
	}
	return nil
}

// maxOwnFiles bounds how many of yaya's own files are checked for hard links.
const maxOwnFiles = 100_000

// files returns the identities of the files in yaya's own folders: a hard link in a
// workspace could be one of them under another name.
func (g *Guard) files() map[hostfile.ID]bool {
	out := map[hostfile.ID]bool{}
	if g == nil {
		return out
	}
	for _, o := range g.own {
		_ = filepath.WalkDir(o.Path, func(path string, d fs.DirEntry, err error) error { // what cannot be walked has no links that can be read
			if err != nil || len(out) >= maxOwnFiles {
				return nil //nolint:nilerr // the others count
			}
			info, err := d.Info()
			if err != nil || !info.Mode().IsRegular() {
				return nil //nolint:nilerr // it is gone
			}
			if id, links, err := hostfile.Named(path); err == nil && links > 1 {
				out[id] = true
			}
			return nil
		})
	}
	return out
}

func (g *Guard) inside(dir string, same bool, o Own) error {
	if same {
		return fmt.Errorf("%w: workspace %s is its %s: choose another folder", ErrOwn, dir, o.Name)
	}
	return fmt.Errorf("%w: workspace %s lies in its %s: choose another folder", ErrOwn, dir, o.Name)
}

func within(up []hostfile.ID, id hostfile.ID) bool {
	for _, u := range up {
		if u == id {
			return true
		}
	}
	return false
}

// ancestry returns a folder, or its nearest existing parent, and all folders above it.
func ancestry(dir string) (up []hostfile.ID, there bool, err error) {
	there = true
	for at := dir; ; at = filepath.Dir(at) {
		up, err := hostfile.ParentsOf(at)
		if opening := (*fs.PathError)(nil); errors.As(err, &opening) && errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			there = false
			continue
		}
		return up, there, err
	}
}
