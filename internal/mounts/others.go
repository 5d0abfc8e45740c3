package mounts

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Depth says how much of a folder counts for its other paths.
type Depth int

// Depths.
const (
	// Itself is the folder: paths that lead to parts of it are not asked for.
	Itself Depth = iota
	// Content is all that is in it: paths that lead to a part of it, and those of what is
	// mounted in it, count.
	Content
)

// Others returns the other paths that lead to a file or folder, which is named by an
// absolute path without symbolic links, in order. They exist, and this user can come to
// them. Where the user has shut a folder on the way, and so could open it again, it is
// among the paths instead.
func (t *Table) Others(name string, depth Depth) []string {
	return t.others(name, depth, true)
}

// Same returns the other paths of a file or folder itself that this user can come to, and no
// folders that stand for others.
func (t *Table) Same(name string) []string { return t.others(name, Itself, false) }

func (t *Table) others(name string, depth Depth, shut bool) []string {
	if t == nil || t.top == nil || !strings.HasPrefix(name, "/") {
		return nil
	}
	name = path.Clean(name)
	s := &search{t: t, name: name, depth: depth, shut: shut, found: map[string]bool{}}
	s.file, _ = os.Lstat(name) //nolint:gosec // it is looked at, no more
	s.of(name, true)
	if depth == Content {
		for _, m := range t.mountedIn(name) {
			s.same(place{m.fs, m.root}, false)
		}
	}
	all := make([]string, 0, len(s.found))
	for at := range s.found {
		all = append(all, at)
	}
	slices.Sort(all)
	return all
}

// search collects the other paths of one file.
type search struct {
	t     *Table
	name  string
	file  fs.FileInfo // nil if it does not exist
	depth Depth
	shut  bool // a folder that is shut stands for what is behind it
	found map[string]bool
}

// of looks for the paths of a file by one of its paths, through overlays once.
func (s *search) of(name string, layered bool) {
	m := s.t.holds(name)
	s.same(m.inner(name), layered)
	if !layered {
		return
	}
	for _, layer := range m.layers {
		if below := path.Join(layer, m.inner(name).path); s.add(below, false) {
			s.of(below, false)
		}
	}
	for _, o := range s.t.over {
		for _, layer := range o.layers {
			switch {
			case !covers(layer, name) && (s.depth != Content || !covers(name, layer)):
			case !exists(layer): // it is a path of another root
			case covers(layer, name):
				s.at(o, place{o.fs, path.Join("/", strings.TrimPrefix(name, layer))}, false)
			case !covers(o.at, s.name):
				s.at(o, place{o.fs, o.root}, false)
			}
		}
	}
}

// same looks for mounts that show a place of a file system, or a part of it. exact says
// that the place is the file itself.
func (s *search) same(p place, exact bool) {
	for top := p.path; ; top = path.Dir(top) {
		for _, m := range s.t.roots[place{p.fs, top}] {
			s.at(m, p, exact)
		}
		if top == "/" || top == "." {
			break
		}
	}
	if s.depth != Content {
		return
	}
	prefix := strings.TrimSuffix(p.path, "/") + "/"
	from := sort.Search(len(s.t.inner), func(i int) bool { return compare(s.t.inner[i], place{p.fs, prefix}) >= 0 })
	for _, m := range s.t.inner[from:] {
		if m.fs != p.fs || !strings.HasPrefix(m.root, prefix) {
			break
		}
		if !covers(m.at, s.name) && s.t.holds(m.at) == m {
			s.add(m.at, false)
		}
	}
}

// at adds the path of a place at a mount that shows it.
func (s *search) at(m *mount, p place, exact bool) {
	name := path.Join(m.at, "/", strings.TrimPrefix(p.path, m.root))
	if !exact && covers(name, s.name) {
		return // all that is around the file: a part of it shows a folder above it
	}
	if s.t.holds(name) == m { // else another is mounted over it
		s.add(name, exact && !strings.HasPrefix(p.fs, "network "))
	}
}

// add adds a path, and reports whether it is there. Another file at the path is not the
// one, where exact says that it has to be the same.
func (s *search) add(name string, exact bool) bool {
	if name == s.name || covers(s.name, name) && s.depth == Content || s.found[name] {
		return false
	}
	info, err := os.Lstat(name) //nolint:gosec // it is looked at, no more
	switch {
	case err == nil && exact && s.file != nil && !os.SameFile(info, s.file):
		return false
	case err != nil:
		// The user can open the folder again: it stands for the path behind it.
		dir := shut(name, err)
		if dir == "" || covers(dir, s.name) || !s.shut {
			return false
		}
		name = dir
	}
	s.found[name] = true
	return true
}

func exists(name string) bool {
	_, err := os.Lstat(name) //nolint:gosec // it is looked at, no more
	return err == nil
}

// shut returns the folder because of which a path cannot be looked at, if this user owns
// it, and so can open it; "" otherwise.
func shut(name string, err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		info, err := os.Lstat(dir) //nolint:gosec // it is looked at, no more
		if err != nil {
			continue
		}
		if owner, known := hostfile.Owner(info); known && owner != os.Geteuid() {
			return ""
		}
		return dir
	}
	return ""
}

// holds returns the mount that a path leads into.
func (t *Table) holds(name string) *mount {
	m := t.top
	for i := 1; i <= len(name) && name != "/"; i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		there := t.at[name[:i]]
		for range there { // the one on top: each can lie on one other
			over := slices.IndexFunc(there, func(c *mount) bool { return c.parent == m.id && c != m })
			if over < 0 {
				break
			}
			m = there[over]
		}
	}
	return m
}

// mountedIn are the mounts that paths below a folder lead to.
func (t *Table) mountedIn(name string) (all []*mount) {
	prefix := strings.TrimSuffix(name, "/") + "/"
	from := sort.Search(len(t.below), func(i int) bool { return t.below[i].at >= prefix })
	for _, m := range t.below[from:] {
		if !strings.HasPrefix(m.at, prefix) {
			break
		}
		if t.holds(m.at) == m {
			all = append(all, m)
		}
	}
	return all
}

// inner returns the place of a path that leads into the mount.
func (m *mount) inner(name string) place {
	return place{m.fs, path.Join(m.root, "/", strings.TrimPrefix(name, m.at))}
}

// covers reports whether a path is another one, or below it.
func covers(top, name string) bool {
	return top == name || top == "/" || strings.HasPrefix(name, top+"/")
}
