package gitread

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// change is how a file differs between commit, index and work tree.
type change struct {
	x, y byte // as git status shows them; ' ' if there is no difference
	from string
	// old is the file in the commit, with mode 0 if it is not there.
	old treeEntry
}

// changes of a repository, by path in the repository.
type changes struct {
	ix        *index
	files     map[string]*change
	untracked []string
	more      bool
}

func (c *changes) at(p string) *change {
	ch := c.files[p]
	if ch == nil {
		ch = &change{x: ' ', y: ' '}
		c.files[p] = ch
	}
	return ch
}

// changes compares commit, index and work tree below the workspace.
func (r *Repo) changes(ctx context.Context, h head, untracked bool) (*changes, error) {
	ix, err := r.index()
	if err != nil {
		return nil, err
	}
	c := &changes{ix: ix, files: map[string]*change{}}
	if err := r.staged(ctx, h, c, untracked); err != nil {
		return nil, err
	}
	if err := r.unstaged(ctx, c, untracked); err != nil {
		return nil, err
	}
	return c, nil
}

// lines writes the changes as git status does.
func (c *changes) lines(prefix string) (out []string, more bool) {
	for _, p := range slices.Sorted(maps.Keys(c.files)) {
		ch := c.files[p]
		name := quote(strings.TrimPrefix(p, prefix))
		if ch.from != "" {
			name = quote(strings.TrimPrefix(ch.from, prefix)) + " -> " + name
		}
		out = append(out, string([]byte{ch.x, ch.y})+" "+name)
	}
	slices.Sort(c.untracked)
	for _, p := range c.untracked {
		out = append(out, "?? "+quote(strings.TrimPrefix(p, prefix)))
	}
	if len(out) > maxChanges {
		return out[:maxChanges], true
	}
	return out, c.more
}

// treeEntry is a file or folder of a tree object.
type treeEntry struct {
	name string
	mode uint32
	id   id
}

// key orders entries as trees and the index do: a folder is its name and a slash.
func (e treeEntry) key() string {
	if e.mode == modeTree {
		return e.name + "/"
	}
	return e.name
}

func (r *Repo) tree(ctx context.Context, i id) ([]treeEntry, error) {
	data, err := r.store.get(ctx, i, kindTree)
	if err != nil {
		return nil, err
	}
	var out []treeEntry
	for s := string(data); s != ""; {
		head, rest, ok := strings.Cut(s, "\x00")
		octal, name, okay := strings.Cut(head, " ")
		if !ok || !okay || len(rest) < 20 || len(octal) > 6 || !sound(name) || strings.Contains(name, "/") {
			return nil, damaged("the tree %s", i)
		}
		e := treeEntry{name: name, id: id([]byte(rest[:20]))}
		for _, d := range []byte(octal) {
			e.mode = e.mode<<3 | uint32(d-'0')
		}
		if len(out) > 0 && out[len(out)-1].key() >= e.key() {
			return nil, damaged("the tree %s", i)
		}
		out = append(out, e)
		s = rest[20:]
	}
	return out, nil
}

// staged compares the commit with the index.
func (r *Repo) staged(ctx context.Context, h head, c *changes, renames bool) error {
	root, known, err := r.rootTree(ctx, h)
	if err != nil {
		return err
	}
	cache := c.ix.tree
	for part := range strings.SplitSeq(strings.TrimSuffix(r.prefix, "/"), "/") {
		if part == "" || !known {
			break
		}
		entries, err := r.tree(ctx, root)
		if err != nil {
			return err
		}
		known = false
		for _, e := range entries {
			if e.name == part && e.mode == modeTree {
				root, known = e.id, true
			}
		}
		cache = cache.child(part)
	}
	s := stager{r, c}
	if err := s.compare(ctx, r.prefix, root, known, below(c.ix.entries, r.prefix), cache, 0); err != nil {
		return err
	}
	if !renames {
		return nil
	}
	return r.renames(ctx, c)
}

// rootTree returns the tree of the commit; there is none before the first one.
func (r *Repo) rootTree(ctx context.Context, h head) (id, bool, error) {
	if !h.born {
		return id{}, false, nil
	}
	c, err := r.commit(ctx, h.commit)
	return c.tree, err == nil, err
}

type stager struct {
	r *Repo
	c *changes
}

// compare compares a folder of the commit, unless there is none, with the entries of
// the index below it.
func (s stager) compare(ctx context.Context, prefix string, tree id, there bool, entries []entry, cache *subtree, depth int) error {
	if there && cache != nil && cache.count == len(entries) && cache.id == tree && !slices.ContainsFunc(entries, func(e entry) bool { return e.stage > 0 || e.intended }) {
		return nil
	}
	if depth > maxDepth {
		return damaged("its folders are too deep")
	}
	var in []treeEntry
	if there {
		var err error
		if in, err = s.r.tree(ctx, tree); err != nil {
			return err
		}
	}
	for len(in) > 0 || len(entries) > 0 {
		var group []entry // of the index that are one file, or below one folder
		key := ""
		if len(entries) > 0 {
			key = entries[0].path[len(prefix):]
			n := 1
			if name, _, dir := strings.Cut(key, "/"); dir {
				key = name + "/"
				n = len(below(entries, prefix+key))
			} else {
				for n < len(entries) && entries[n].path == entries[0].path {
					n++
				}
			}
			group = entries[:n]
		}
		var old treeEntry
		switch {
		case len(in) == 0 || len(group) > 0 && key < in[0].key(): // added
		case len(group) == 0 || in[0].key() < key: // removed
			old, in, key, group = in[0], in[1:], in[0].key(), nil
		default:
			old, in = in[0], in[1:]
		}
		entries = entries[len(group):]
		var err error
		if name, dir := strings.CutSuffix(key, "/"); dir {
			err = s.compare(ctx, prefix+key, old.id, old.mode != 0, group, cache.child(name), depth+1)
		} else {
			err = s.file(prefix+key, old, group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file compares one file.
func (s stager) file(p string, old treeEntry, group []entry) error {
	if err := s.c.full(); err != nil {
		return err
	}
	if len(group) > 0 && group[0].stage > 0 {
		sides := 0
		for _, e := range group {
			sides |= 1 << (e.stage - 1)
		}
		ch := s.c.at(p)
		ch.old = old
		pair := []string{"", "DD", "AU", "UD", "UA", "DU", "AA", "UU"}[sides]
		ch.x, ch.y = pair[0], pair[1]
		return nil
	}
	var now treeEntry
	if len(group) > 0 && !group[0].intended {
		now = treeEntry{mode: group[0].mode, id: group[0].id}
	}
	x := byte(' ')
	switch {
	case old.mode == modeModule || now.mode == modeModule: // submodules are left out
	case old.mode == 0 && now.mode == 0:
	case old.mode == 0:
		x = 'A'
	case now.mode == 0:
		x = 'D'
	case old.mode&modeType != now.mode&modeType:
		x = 'T'
	case old.id != now.id || canonical(old.mode) != now.mode:
		x = 'M'
	}
	if x != ' ' {
		ch := s.c.at(p)
		ch.x, ch.old = x, old
	}
	return nil
}

// canonical returns the present form of a mode in an old tree.
func canonical(mode uint32) uint32 {
	if mode&modeType == modeRegular {
		return modeRegular | 0o644 | mode&0o100/0o100*0o111
	}
	return mode
}

func (c *changes) full() error {
	if len(c.files) > 20*maxChanges {
		return errTooLarge
	}
	return nil
}
