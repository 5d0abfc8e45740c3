package gitread

import (
	"context"
	"crypto/sha1" //nolint:gosec // it names git's objects
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// walker compares the index with the work tree, folder by folder.
type walker struct {
	r         *Repo
	c         *changes
	untracked bool // look for files that are not in the index
	filemode  bool
}

func (r *Repo) unstaged(ctx context.Context, c *changes, untracked bool) error {
	w := walker{r, c, untracked, r.cfg.is("core.filemode", true)}
	var g *ignores
	if untracked {
		if data, err := readFile(r.common, "info/exclude", maxSmall); err == nil { // else it says nothing
			g = g.with("", data)
		}
		base := ""
		for part := range strings.SplitSeq(strings.TrimSuffix(r.prefix, "/"), "/") {
			if part == "" {
				break
			}
			if e := c.ix.find(base + ".gitignore"); e != nil && e.mode&modeType == modeRegular { // outside the workspace
				data, err := r.store.get(ctx, e.id, kindBlob)
				if err != nil {
					return err
				}
				g = g.with(base, data)
			}
			base += part + "/"
			if g.match(strings.TrimSuffix(base, "/"), true) && len(below(c.ix.entries, base)) == 0 {
				return nil // the workspace itself is ignored
			}
		}
	}
	return w.dir(ctx, r.work, r.prefix, below(c.ix.entries, r.prefix), g, false, 0)
}

// list reads the names and types in an open folder.
func (w walker) list(ctx context.Context, dir *os.Root) (map[string]fs.FileMode, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out := map[string]fs.FileMode{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			out[e.Name()] = e.Type()
		}
		if w.r.visited += len(entries); w.r.visited > maxVisited {
			return nil, fmt.Errorf("%w: the workspace has more than %d files", errTooLarge, maxVisited)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// dir compares the entries of the index below a folder. hidden tells that the folder
// is ignored: nothing in it is untracked.
func (w walker) dir(ctx context.Context, dir *os.Root, prefix string, entries []entry, g *ignores, hidden bool, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: its folders are too deep", errTooLarge)
	}
	names, err := w.list(ctx, dir)
	if err != nil {
		return err
	}
	if w.untracked && !hidden {
		if _, ok := names[".gitignore"]; ok {
			g = ignored(g, dir, prefix)
		}
	}
	for len(entries) > 0 {
		if err := errors.Join(ctx.Err(), w.c.full()); err != nil {
			return err
		}
		name, _, sub := strings.Cut(entries[0].path[len(prefix):], "/")
		typ, there := names[name]
		if !sub {
			n := 1
			for n < len(entries) && entries[n].path == entries[0].path {
				n++
			}
			if entries[0].stage == 0 {
				if err := w.file(ctx, dir, name, &entries[0], there, typ); err != nil {
					return err
				}
			}
			delete(names, name) // a folder in the file's place is not told, as by git
			entries = entries[n:]
			continue
		}
		group := below(entries, prefix+name+"/")
		entries = entries[len(group):]
		if !there || !typ.IsDir() {
			for n := range group {
				if e := &group[n]; e.stage == 0 {
					if err := w.file(ctx, dir, name, e, false, 0); err != nil {
						return err
					}
				}
			}
			continue
		}
		delete(names, name)
		child, err := openFolder(dir, name)
		if err != nil {
			return err
		}
		err = w.dir(ctx, child, prefix+name+"/", group, g, hidden || w.untracked && g.match(prefix+name, true), depth+1)
		if err = errors.Join(err, child.Close()); err != nil {
			return err
		}
	}
	if !w.untracked || hidden {
		return nil
	}
	for name, typ := range names {
		found, err := w.stranger(ctx, dir, prefix, name, typ, g, depth)
		if err != nil {
			return err
		}
		if found {
			if len(w.c.untracked) >= maxChanges {
				w.c.more = true
				return nil
			}
			if typ.IsDir() {
				name += "/"
			}
			w.c.untracked = append(w.c.untracked, prefix+name)
		}
	}
	return nil
}

// stranger reports whether a path that is not in the index is untracked: a file that
// is not ignored, or a folder with such a file.
func (w walker) stranger(ctx context.Context, dir *os.Root, prefix, name string, typ fs.FileMode, g *ignores, depth int) (bool, error) {
	if name == ".git" || !typ.IsDir() && !typ.IsRegular() && typ&fs.ModeSymlink == 0 || g.match(prefix+name, typ.IsDir()) {
		return false, nil
	}
	if !typ.IsDir() {
		return true, nil
	}
	if depth > maxDepth {
		return false, fmt.Errorf("%w: its folders are too deep", errTooLarge)
	}
	child, err := openFolder(dir, name)
	if err != nil {
		return false, nil //nolint:nilerr // as git does with a folder that cannot be read
	}
	defer func() { _ = child.Close() }()
	names, err := w.list(ctx, child)
	if err != nil {
		return false, err
	}
	if _, nested := names[".git"]; nested {
		if _, err := child.Lstat(".git/HEAD"); err == nil {
			return true, nil // another repository
		}
	}
	if _, ok := names[".gitignore"]; ok {
		g = ignored(g, child, prefix+name+"/")
	}
	for sub, typ := range names {
		if found, err := w.stranger(ctx, child, prefix+name+"/", sub, typ, g, depth+1); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// file compares one file with its entry.
func (w walker) file(ctx context.Context, dir *os.Root, name string, e *entry, there bool, typ fs.FileMode) error {
	if e.assumed || e.mode == modeModule || e.skipped && !there {
		return nil
	}
	var y byte
	switch {
	case !there || typ.IsDir():
		y = 'D'
	case e.intended:
		y = 'A'
	default:
		var err error
		if y, err = w.r.differs(ctx, w.c.ix, dir, name, e, w.filemode); err != nil {
			return err
		}
	}
	if y != ' ' {
		w.c.at(e.path).y = y
	}
	return nil
}

// differs compares a file with its entry, as git does: its metadata first, its
// content only if that has changed, or if the file is as new as the index.
func (r *Repo) differs(ctx context.Context, ix *index, dir *os.Root, name string, e *entry, filemode bool) (byte, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 'D', nil
	}
	if err != nil {
		return 0, err
	}
	link := info.Mode()&fs.ModeSymlink != 0
	if !link && !info.Mode().IsRegular() || link != (e.mode&modeType == modeLink) {
		return 'T', nil
	}
	if !link && filemode && (info.Mode()&0o100 != 0) != (e.mode == modeExec) {
		return 'M', nil
	}
	if e.sameStat(info) && info.ModTime().Before(ix.written) {
		return ' ', nil
	}
	i, err := r.hashLike(ctx, ix, dir, name, e, info, link)
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, err
	case err != nil || i != e.id: // an unreadable file counts as changed
		return 'M', nil //nolint:nilerr // see above
	}
	return ' ', nil
}

// hashLike names the object that a file would be stored as: as it is, or converted if
// only that can make it what the index has.
func (r *Repo) hashLike(ctx context.Context, ix *index, dir *os.Root, name string, e *entry, info fs.FileInfo, link bool) (id, error) {
	if link {
		target, err := dir.Readlink(name)
		return blobID([]byte(target)), err
	}
	if e.size != uint32(info.Size()) && e.size != 0 { //nolint:gosec // as git cuts it
		return id{}, nil // it is not what was checked out
	}
	i, err := r.hashFile(ctx, dir, name)
	if err != nil || i == e.id {
		return i, err
	}
	conv := r.conversion(ctx, ix, e.path)
	if !conv.lines && conv.filter == "" {
		return i, nil
	}
	data, err := readFile(dir, name, maxObject)
	if err != nil {
		return id{}, err
	}
	stored, ok := conv.stored(data)
	if !ok {
		return id{}, nil
	}
	return blobID(stored), nil
}

func blobHeader(size int64) hash.Hash {
	h := sha1.New() //nolint:gosec // it names git's objects
	_, _ = fmt.Fprintf(h, "blob %d\x00", size)
	return h
}

func blobID(data []byte) id {
	h := blobHeader(int64(len(data)))
	_, _ = h.Write(data)
	return id(h.Sum(nil))
}

func (r *Repo) hashFile(ctx context.Context, dir *os.Root, name string) (id, error) {
	f, info, err := openFile(dir, name)
	if err != nil {
		return id{}, err
	}
	defer func() { _ = f.Close() }()
	h := blobHeader(info.Size())
	for n := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return id{}, err
		}
		m, err := io.CopyN(h, f, min(1<<20, info.Size()-n+1))
		if n += m; errors.Is(err, io.EOF) {
			return id(h.Sum(nil)), nil
		}
		if err != nil {
			return id{}, err
		}
		if n > info.Size() {
			return id{}, fmt.Errorf("%s is being written", path.Base(name))
		}
	}
}
