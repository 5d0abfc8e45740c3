// Package gitconf lists the files that configure Git in a folder, and so can make Git
// run a program there: .git/config, hooks, commondir, those of modules and work trees,
// files that a configuration includes, and the folder that it names for hooks. It starts
// no process and writes nothing; its reads are bounded.
//
// [Own] returns the files that a sandbox protects. Files that do not exist, or that
// belong to the program's own work, such as a repository below the folder, cannot be
// protected: [Look] records all of them, and [State.Since] reports new and changed
// ones.
package gitconf

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/gitread"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// files configure Git in a repository's own folder, in addition to hooks; commondir
// names another folder whose configuration counts.
var files = []string{"config", "config.worktree", "commondir"}

// holders are the folders of a repository's own folder that have others in them.
var holders = [...]string{"modules", "worktrees"}

// Bounds of a look.
const (
	maxRepositories = 1000
	maxHooks        = 256       // of a folder
	maxOwn          = 512       // paths of Own that stand for themselves
	maxModules      = 4096      // folders below .git/modules
	maxConfig       = 256 << 10 // bytes of a file
	maxIncludes     = 5         // files that include each other
	maxDepth        = 8         // folders in the name of a module
)

// identity distinguishes a file from every other file, and from itself before a write:
// the time of its last change cannot be set back. For a folder only the first two
// fields are set.
type identity struct {
	dev, ino uint64
	size     int64
	changed  int64
	to       *identity // what a symbolic link leads to
}

func (i identity) same(j identity) bool {
	a, b := i.to, j.to
	i.to, j.to = nil, nil
	return i == j && (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// Own returns the existing files that configure the repository of a folder, which a
// program that works in the folder must not write. If there are too many to list, the
// folders of modules and work trees stand for everything in them.
func Own(dir string) []string {
	s := newState(dir)
	s.repository(filepath.Join(dir, ".git"), dir)
	if exists(filepath.Join(dir, "HEAD")) && exists(filepath.Join(dir, "objects")) && exists(filepath.Join(dir, "refs")) {
		s.folder(dir, filepath.Dir(dir)) // a repository's own folder
	}
	slices.Sort(s.own)
	if s.part || len(s.own) > maxOwn {
		return s.whole()
	}
	return s.own
}

// whole returns what is protected, with folders of modules and work trees instead of what
// is in them.
func (s *State) whole() (own []string) {
	slices.Sort(s.holders)
	for _, path := range slices.Compact(slices.Concat(s.holders, s.own)) {
		if !slices.ContainsFunc(own, func(dir string) bool { return strings.HasPrefix(path, dir+"/") }) {
			own = append(own, path)
		}
	}
	return own
}

// inside reports whether a path is in the examined folder.
func (s *State) inside(path string) bool {
	return path == s.root || strings.HasPrefix(path, strings.TrimSuffix(s.root, "/")+"/")
}

// see records a path, and reports whether it is a folder.
func (s *State) see(path string) (there, folder bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, false
	}
	id := identify(info)
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Stat(path)
		if err == nil {
			i := identify(to)
			if to.IsDir() {
				i.size, i.changed = 0, 0
			}
			id.to, info = &i, to
		}
	} else if info.IsDir() {
		id.size, id.changed = 0, 0
	}
	s.files[path] = id
	return true, info.IsDir()
}

// hooks records a folder of hooks.
func (s *State) hooks(dir string) {
	if _, folder := s.see(dir); !folder {
		return
	}
	names, all, err := entries(dir, maxHooks)
	if err != nil {
		s.shut[dir] = true
	}
	for _, e := range names {
		s.see(filepath.Join(dir, e.Name()))
	}
	if !all {
		s.cut = true
	}
}

// repository records a .git, which is a folder or a file that names one.
func (s *State) repository(git, tree string) {
	there, folder := s.see(git)
	if !there {
		return
	}
	info, err := os.Lstat(git)
	if err != nil {
		return
	}
	if info.IsDir() {
		s.folder(git, tree)
		return
	}
	to := ""
	if folder { // by a link, which is a part of every path below it
		if to, err = filepath.EvalSymlinks(git); err == nil && s.inside(to) {
			s.folder(git, tree)
			return
		}
	}
	s.protect(git)
	if folder {
		return
	}
	if rest, ok := strings.CutPrefix(read(git), "gitdir:"); ok {
		if to = strings.TrimSpace(rest); !filepath.IsAbs(to) {
			to = filepath.Join(tree, to)
		}
	}
	if err == nil && to != "" && s.inside(filepath.Clean(to)) {
		s.folder(filepath.Clean(to), tree)
	}
}

// folder records a repository's own folder, with those of its modules and work trees.
func (s *State) folder(git, tree string) {
	if s.repositories[git] {
		return
	}
	if len(s.repositories) >= maxRepositories {
		s.cut, s.part = true, true
		return
	}
	s.repositories[git] = true
	for _, name := range holders {
		dir := filepath.Join(git, name)
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			s.holders = append(s.holders, dir)
		}
	}
	for _, name := range files {
		path := filepath.Join(git, name)
		there, folder := s.see(path)
		if !there {
			continue
		}
		s.protect(path)
		switch {
		case folder:
		case name == "commondir":
			to := strings.TrimSpace(read(path))
			if !filepath.IsAbs(to) {
				to = filepath.Join(git, to)
			}
			if to = filepath.Clean(to); s.inside(to) {
				s.folder(to, tree)
			}
		default:
			s.settings(path, tree, 0)
		}
	}
	if todo := filepath.Join(git, "rebase-merge", "git-rebase-todo"); executes(read(todo)) {
		s.see(todo)
	}
	s.hooks(filepath.Join(git, "hooks"))
	s.protect(filepath.Join(git, "hooks"))
	s.below(filepath.Join(git, holders[0]), tree, 0)
	s.below(filepath.Join(git, holders[1]), tree, maxDepth)
}

// executes reports whether git rebase --continue runs a program of a list.
func executes(todo string) bool {
	for line := range strings.Lines(todo) {
		if words := strings.Fields(line); len(words) > 0 && (words[0] == "exec" || words[0] == "x") {
			return true
		}
	}
	return false
}

// protect adds to what is protected, as far as it is there: a link that leads nowhere is
// not.
func (s *State) protect(path string) {
	if _, err := os.Stat(path); err == nil {
		s.own = append(s.own, path)
	}
}

// below records the repositories in a folder, up to a depth. Names of modules can
// contain slashes.
func (s *State) below(dir, tree string, depth int) {
	if depth > maxDepth {
		return
	}
	if s.modules >= maxModules {
		s.cut, s.part = true, true
		return
	}
	s.modules++
	all, whole, err := entries(dir, maxModules)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.refused(dir)
		s.part = true
	}
	if !whole {
		s.cut, s.part = true, true
	}
	for _, e := range all {
		if !e.IsDir() {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		if isRepository(sub) {
			s.folder(sub, tree)
		} else {
			s.below(sub, tree, depth+1)
		}
	}
}

// isRepository reports whether Git would treat a folder as a repository.
func isRepository(dir string) bool {
	return slices.ContainsFunc(append([]string{"HEAD", "hooks"}, files...), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// settings records the paths in the folder that a configuration names: included files,
// and the folder of hooks.
func (s *State) settings(path, tree string, depth int) {
	if depth >= maxIncludes {
		return
	}
	data := []byte(read(path))
	for key, value := range gitread.Settings(data) {
		if key == "core.worktree" && depth == 0 { // of a module
			if tree = value; !filepath.IsAbs(tree) {
				tree = filepath.Join(filepath.Dir(path), tree)
			}
		}
	}
	for key, value := range gitread.Settings(data) {
		hooks := key == "core.hookspath"
		includes := key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
		if value == "" || !hooks && !includes {
			continue
		}
		to := value
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				continue
			}
			to = filepath.Join(home, rest)
		} else if !filepath.IsAbs(value) && hooks {
			to = filepath.Join(tree, value)
		} else if !filepath.IsAbs(value) {
			to = filepath.Join(filepath.Dir(path), value)
		}
		if real, err := filepath.EvalSymlinks(to); err == nil {
			to = real
		}
		if to = filepath.Clean(to); !s.inside(to) || s.named[to] {
			continue
		}
		if len(s.named) >= maxRepositories {
			s.cut = true
			return
		}
		s.named[to] = true
		switch {
		case includes:
			if there, folder := s.see(to); there && !folder {
				s.settings(to, tree, depth+1)
			}
		case filepath.Base(to) == "_": // of husky: it runs what lies beside it
			s.hooks(filepath.Dir(to))
			s.hooks(to)
		default:
			s.hooks(to)
		}
	}
}

// read returns the text of a regular file, "" when there is none, or one that is too
// large to be what it is for.
func read(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // bounded; what it says is only looked for
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig)) //nolint:forbidigo // bounded
	if err != nil {
		return ""
	}
	return string(data)
}

// entries returns up to n entries of a folder, and whether these are all.
func entries(dir string, n int) (all []fs.DirEntry, whole bool, err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|hostfile.Directory, 0) //nolint:forbidigo,gosec // names only, bounded
	if err != nil {
		return nil, true, err
	}
	defer func() { _ = f.Close() }()
	all, err = f.ReadDir(n + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(all) > n {
		return all[:n], false, err
	}
	return all, true, err
}

// refused records a folder that cannot be listed: Git may still open files in it by
// name.
func (s *State) refused(dir string) {
	s.shut[dir] = true
	s.files[dir] = identity{}
}

func newState(dir string) *State {
	return &State{root: filepath.Clean(dir), files: map[string]identity{}, folders: map[string]folder{}, bare: map[string]bool{}, shut: map[string]bool{}, repositories: map[string]bool{}, named: map[string]bool{}, at: time.Now()}
}
