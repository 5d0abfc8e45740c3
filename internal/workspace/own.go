package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// maxLinks is how many links a path may lead over, as Linux counts them.
const maxLinks = 40

// isGit reports whether a name is that of a repository's own folder, even on file
// systems that ignore case, or drop dots and blanks at the end.
func isGit(name string) bool { return strings.EqualFold(strings.TrimRight(name, ". "), ".git") }

// isRepository reports whether a folder's content makes it a repository's own folder,
// such as that of a bare repository, or one that a file .git names.
func (w *Workspace) isRepository(dir string) bool {
	head, err := w.root.Lstat(path.Join(dir, "HEAD"))
	if err != nil || head.IsDir() {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := w.root.Lstat(path.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// Check returns why a file of the folder may not be read: it is another name for a file of
// yaya's own, or of the repository's configuration.
func (w *Workspace) Check(f *os.File, info fs.FileInfo) error {
	switch {
	case w.isOwn(f, info):
		return fmt.Errorf("%w: the file is another name for one of them", ErrOwn)
	case w.isGitConfig(f, info):
		return ErrGit
	}
	return nil
}

// isOwn reports whether an open file is one of yaya's own under another name: a hard link.
func (w *Workspace) isOwn(f *os.File, info fs.FileInfo) bool {
	id, links, err := hostfile.Identify(f, info)
	return err != nil || links > 1 && w.ownFiles()[id]
}

// isGitConfig reports whether an open file is the repository's configuration under another
// name: a hard link.
func (w *Workspace) isGitConfig(f *os.File, info fs.FileInfo) bool {
	if _, links, err := hostfile.Identify(f, info); err == nil && links < 2 {
		return false
	}
	config, err := w.root.Stat(".git/config")
	return err == nil && os.SameFile(info, config)
}

// real returns a clean path without the links in it, and refuses one that leads into a
// repository's own folder.
func (w *Workspace) real(p string) (string, error) {
	at, rest, links := ".", p, 0
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && at == ".":
			return "", ErrOutside
		case name == "..":
			at = path.Dir(at)
			continue
		case isGit(name):
			return "", ErrGit
		}
		next := path.Join(at, name)
		info, err := w.root.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := w.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if links++; links > maxLinks {
				return "", fmt.Errorf("%s: too many links", p)
			}
			if path.IsAbs(target) {
				return "", ErrOutside
			}
			rest = target + "/" + rest
			continue
		}
		if at = next; info.IsDir() && w.isRepository(at) {
			return "", ErrGit
		}
	}
	return at, nil
}
