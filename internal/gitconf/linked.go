package gitconf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/gitread"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Linked is a folder's repository that Git stores elsewhere: that of a linked work
// tree (git worktree add), or of a module.
type Linked struct {
	// Common is the folder of the repository, without symbolic links.
	Common string
	// Work are the folders that Git changes for work in this folder: its own in
	// worktrees, and objects, refs and logs, which all work trees share.
	Work []string
	// Keep are the remaining paths there: configuration of Git, and the state of other
	// work trees.
	Keep []string
}

// shared are the folders of a repository that work in each work tree changes.
var shared = []string{"objects", "refs", "logs", "lfs", "rr-cache"}

// rewritten are files there that Git replaces, which it could not do with a mount.
var rewritten = []string{"packed-refs", "shallow", "gc.log"}

// kept are the files of a work tree's folder that no work in it changes.
var kept = append([]string{"gitdir", "locked", "hooks"}, files...)

// maxKeep bounds how much is kept of a repository's own folder.
const maxKeep = 256

// Elsewhere finds the repository of a folder whose .git is a file that names a folder
// outside. That file may have come with the folder, from whoever made it, and may name
// any repository of the user's. So the other end has to name this folder in turn, as
// git worktree add and git submodule write it, and has to be a repository of the
// user's outside the folder.
func Elsewhere(dir string) (Linked, bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Linked{}, false
	}
	info, err := os.Lstat(filepath.Join(dir, ".git"))
	if err != nil || !info.Mode().IsRegular() {
		return Linked{}, false
	}
	name, ok := strings.CutPrefix(strings.TrimRight(read(filepath.Join(dir, ".git")), "\r\n"), "gitdir: ")
	if !ok {
		return Linked{}, false
	}
	git, err := filepath.EvalSymlinks(from(dir, name))
	if err != nil {
		return Linked{}, false
	}
	l := Linked{Common: git}
	var back string
	if worktrees := filepath.Dir(git); filepath.Base(worktrees) == "worktrees" {
		l.Common = filepath.Dir(worktrees)
		if strings.TrimSpace(read(filepath.Join(git, "commondir"))) != "../.." {
			return Linked{}, false
		}
		file := from(git, strings.TrimSpace(read(filepath.Join(git, "gitdir"))))
		if filepath.Base(file) != ".git" {
			return Linked{}, false
		}
		back = filepath.Dir(file)
	} else if back = worktree(git); back == "" {
		return Linked{}, false
	}
	if !sameFolder(back, dir) || !repository(l.Common) || overlap(l.Common, dir) {
		return Linked{}, false
	}
	return l, l.divide(git)
}

// divide splits the repository into the paths that work in the folder changes, and
// the rest.
func (l *Linked) divide(git string) bool {
	all, whole, err := entries(l.Common, maxKeep)
	if err != nil || !whole {
		return false
	}
	for _, e := range all {
		path := filepath.Join(l.Common, e.Name())
		switch {
		case slices.Contains(shared, e.Name()) && e.IsDir():
			l.Work = append(l.Work, path)
		case slices.Contains(rewritten, e.Name()), strings.HasSuffix(e.Name(), ".lock"):
		case git != l.Common || e.Name() == "modules" || slices.Contains(kept, e.Name()):
			l.Keep = append(l.Keep, path)
		}
	}
	slices.Sort(l.Work)
	slices.Sort(l.Keep)
	if git == l.Common { // of a module: all is its own, but for what configures Git
		return true
	}
	l.Work = append(l.Work, git)
	for _, name := range kept {
		if path := filepath.Join(git, name); exists(path) {
			l.Keep = append(l.Keep, path)
		}
	}
	return true
}

// worktree is the folder that a repository's configuration names as its work tree.
func worktree(git string) (dir string) {
	for key, value := range gitread.Settings([]byte(read(filepath.Join(git, "config")))) {
		if key == "core.worktree" {
			dir = from(git, value)
		}
	}
	return dir
}

// repository reports whether a folder is a repository of this user's.
func repository(dir string) bool {
	for name, folder := range map[string]bool{".": true, "objects": true, "refs": true, "HEAD": false, "config": false} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.IsDir() != folder || !folder && !info.Mode().IsRegular() {
			return false
		}
		if owner, known := hostfile.Owner(info); !known || owner != os.Geteuid() {
			return false
		}
	}
	return true
}

// overlap reports whether one folder, without symbolic links, lies in the other.
func overlap(a, b string) bool {
	return (&State{root: a}).inside(b) || (&State{root: b}).inside(a)
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// from is a path as seen from a folder.
func from(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// Above returns the top of the repository that a folder lies in, "" if it lies in none or
// is the top itself.
func Above(dir string) string {
	if exists(filepath.Join(dir, ".git")) {
		return ""
	}
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		if exists(filepath.Join(up, ".git")) {
			return up
		}
	}
	return ""
}
