package undo

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// By how much the times of files are coarser than ours at most, and those of file systems that have no
// fractions of seconds.
const (
	tick   = 20 * time.Millisecond
	coarse = 2100 * time.Millisecond
)

// settled reports whether a file that changes from now on gets another time than it has.
func settled(at, now time.Time) bool {
	if at.Nanosecond() == 0 {
		return at.Add(coarse).Before(now)
	}
	return at.Add(tick).Before(now)
}

// picture is a workspace at one moment.
type picture struct {
	files map[string]*content
	at    map[string]seen // of the files
	dirs  map[string]fs.FileMode
	large map[string]seen // files that are not kept: too large, with a secret, or with a name that is not text
	left  map[string]bool // files and folders of which nothing is known, "." for some of them
	part  bool            // one of left is a file that could not be looked at

	unread map[string]seen // files of left that cannot be read, or have several names

	ids  map[hostfile.ID]string // the paths of the files and folders, where the system tells
	rest map[hostfile.ID]string // of the other files that were seen
}

func newPicture() picture {
	return picture{
		files: map[string]*content{}, at: map[string]seen{}, dirs: map[string]fs.FileMode{}, large: map[string]seen{}, left: map[string]bool{},
		ids: map[hostfile.ID]string{}, rest: map[hostfile.ID]string{}, unread: map[string]seen{},
	}
}

// there reports whether a path that the picture does not have may have been a file.
func (p picture) there(at string) bool {
	for ; ; at = path.Dir(at) {
		if p.left[at] {
			return true
		}
		if at == "." {
			return false
		}
	}
}

// look notes the state of a workspace and keeps the content of files that it has not seen as they
// are.
func (k *kept) look(ctx context.Context, w *workspace.Workspace) (picture, error) {
	was, began := k.seen(), time.Now()
	now, total := map[string]known{}, int64(0)
	out := newPicture()
	leave := func(p string) { out.left[p] = true }
	err := w.WalkAll(ctx, ".", func(e workspace.Entry) error {
		switch {
		case workspace.IsTemp(e.Path) && e.Dir:
			return fs.SkipDir
		case workspace.IsTemp(e.Path): // an edit that overlaps removes its temporary file itself
			return nil
		}
		info, err := w.Root().Lstat(e.Path)
		if e.Dir {
			if err == nil && info.IsDir() {
				out.dirs[e.Path] = info.Mode() & modeBits
				note(out.ids, e.Path, info)
			}
			return nil
		}
		if err != nil || !info.Mode().IsRegular() {
			leave(e.Path) // it has just changed
			out.part = true
			return nil //nolint:nilerr // and a change of it is not this call's
		}
		at := identify(info)
		if total += info.Size(); info.Size() > maxFile || len(now) == maxFiles || total > maxBytes || !utf8.ValidString(e.Path) {
			total -= info.Size()
			out.large[e.Path] = at
			note(out.rest, e.Path, info)
			return nil
		}
		before, ok := was[e.Path]
		if !ok || before.seen != at {
			c, data, err := read(w, e.Path)
			if err != nil || c == nil {
				leave(e.Path) // it cannot be read, has several names, or is gone
				out.part, out.unread[e.Path] = true, at
				note(out.rest, e.Path, info)
				return nil //nolint:nilerr // and is not covered
			}
			if c, err = k.put(c, data); err != nil {
				return err
			}
			if c.SHA == "" {
				out.large[e.Path] = at
				note(out.rest, e.Path, info)
				return nil
			}
			before = known{at, c.SHA}
		}
		if !settled(time.Unix(0, at.CTime), began) || !settled(time.Unix(0, at.Time), began) {
			before.seen = seen{} // it may change again without another time
		}
		now[e.Path], out.at[e.Path] = before, at
		note(out.ids, e.Path, info)
		out.files[e.Path] = &content{SHA: before.SHA, Mode: at.Mode}
		return nil
	}, leave)
	if err != nil {
		return picture{}, err
	}
	out.part = out.part || out.left["."]
	return out, k.store(seenFile, now)
}

// note notes which file or folder is at a path.
func note(paths map[hostfile.ID]string, at string, info fs.FileInfo) {
	if id, ok := hostfile.Described(info); ok {
		paths[id] = at
	}
}

// spelled returns the path of a file or folder of the picture, which may have it under another one than
// asked for: some file systems ignore case, or how a character is composed. It is "" for one that the
// picture does not have.
func (p picture) spelled(at string, info fs.FileInfo) string {
	if id, ok := hostfile.Described(info); ok {
		return p.ids[id]
	}
	for other := range p.files {
		if strings.EqualFold(other, at) {
			return other
		}
	}
	for other := range p.dirs {
		if strings.EqualFold(other, at) {
			return other
		}
	}
	return ""
}

func identify(info fs.FileInfo) seen {
	return seen{Size: info.Size(), Time: info.ModTime().UnixNano(), Mode: info.Mode().Perm(), Inode: hostfile.Inode(info), CTime: changed(info)}
}
