package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/gitconf"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Path is a file or folder that was opened: a policy grants this one, and a sandbox
// does not start when another has taken its place.
type Path struct {
	name     string // absolute, without symbolic links
	dev, ino uint64
	file     *os.File // keeps the number of the inode from being used again
	// links are the symbolic links that lead from the given name to this one.
	links [][2]string
}

// maxLinks is how many links lead to a file at most, as in Linux.
const maxLinks = 40

// linksOf returns the symbolic links in an absolute path, name and target, in the order
// in which they are followed.
func linksOf(name string) (links [][2]string) {
	done, rest := "/", strings.Split(strings.Trim(filepath.Clean(name), "/"), "/")
	for len(rest) > 0 && len(links) < maxLinks {
		at := filepath.Join(done, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(at)
		if err != nil {
			done = at
			continue
		}
		links = append(links, [2]string{at, to})
		if filepath.IsAbs(to) {
			done = "/"
		}
		rest = append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), rest...)
	}
	return links
}

// Open opens a path, following symbolic links. It is for paths that no program in a
// sandbox can have put a link in; others are for [OpenExact] and [OpenNamed].
func Open(name string) (Path, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return Path{}, err
	}
	links := linksOf(abs)
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return Path{}, fmt.Errorf("open %s for a sandbox: %w", name, nameless(abs, err))
	}
	abs = real
	p, err := OpenExact(abs)
	p.links = links
	return p, err
}

// OpenExact opens an absolute path in which no part is a symbolic link. One that has a
// link is refused with a [LinkError]: it may have been put there since the path was
// agreed to.
func OpenExact(name string) (Path, error) {
	abs := filepath.Clean(name)
	f, err := openPath(abs)
	if err != nil {
		if link := firstLink(abs); link != "" {
			err = &LinkError{Name: name, Link: link, To: Real(abs)}
		}
		return Path{}, fmt.Errorf("open %s for a sandbox: %w", name, nameless(abs, err))
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return Path{}, fmt.Errorf("open %s for a sandbox: %w", name, err)
	}
	id, _, err := hostfile.Identify(f, info)
	if err != nil {
		_ = f.Close()
		return Path{}, fmt.Errorf("open %s for a sandbox: %w", name, err)
	}
	return Path{abs, id.Dev, id.Ino, f, nil}, nil
}

// nameless is an error about a path without its name, which stands beside it.
func nameless(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == name {
		return e.Err
	}
	return err
}

// Close closes paths that no sandbox will use.
func Close(paths []Path) error {
	var all error
	for _, p := range paths {
		if p.file != nil {
			all = errors.Join(all, p.file.Close())
		}
	}
	return all
}

func (p Path) String() string { return p.name }

// Is reports whether a path is the given file.
func (p Path) Is(file fs.FileInfo) bool {
	info, err := p.file.Stat()
	return err == nil && os.SameFile(info, file)
}

// Workspace returns the policy's paths for a folder that a program works in: the folder
// can be written, but not what configures programs that others run in it. In a Git
// repository that is what [gitconf.Own] lists. Files that do not exist are not
// protected: a caller that runs a program there compares [gitconf.Look] before and after
// it.
//
// The folder is absolute, and no part of it is a symbolic link.
func Workspace(dir string) (write, protect []Path, err error) {
	top, err := OpenExact(dir)
	if err != nil {
		return nil, nil, err
	}
	write = []Path{top}
	if protect, err = Protected(write); err != nil {
		return nil, nil, errors.Join(err, Close(write))
	}
	return write, protect, nil
}

// Protected opens what configures Git in folders that a program may write, for
// [Policy.Protect].
func Protected(folders []Path) (protect []Path, err error) {
	for _, folder := range folders {
		its, err := openThere(Open, gitconf.Own(folder.name))
		if err != nil {
			return nil, errors.Join(err, Close(protect))
		}
		protect = append(protect, its...)
	}
	return protect, nil
}

// openThere opens all existing paths among the given ones, or none.
func openThere(open func(string) (Path, error), names []string) (paths []Path, err error) {
	for _, name := range names {
		p, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, Close(paths))
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// Work lets the program work in a folder, as [Workspace] says, and in the repository of a
// linked work tree, which Git keeps elsewhere: what a commit writes there, but neither
// what configures Git nor the state of other work trees. It returns the folder of that
// repository, "" without one.
func (p *Policy) Work(dir string) (repository string, err error) {
	write, protect, err := Workspace(dir)
	if err != nil {
		return "", err
	}
	linked, found := gitconf.Elsewhere(write[0].name)
	if !found {
		p.Write, p.Protect = append(p.Write, write...), append(p.Protect, protect...)
		return "", nil
	}
	var partly, work, keep []Path
	common, err := OpenExact(linked.Common)
	if err == nil {
		partly = []Path{common}
		work, err = openThere(OpenExact, linked.Work) // a link may lead anywhere
	}
	if err == nil {
		keep, err = openThere(Open, linked.Keep)
	}
	if err != nil {
		return "", errors.Join(err, Close(slices.Concat(write, protect, partly, work, keep)))
	}
	p.Write, p.Protect, p.Partly = slices.Concat(p.Write, write, work), slices.Concat(p.Protect, protect, keep), append(p.Partly, partly...)
	return linked.Common, nil
}
