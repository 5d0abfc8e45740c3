package undo

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
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
	odd   map[string]fs.FileMode // folders with a name that is not text
	large map[string]seen        // files that are not kept: too large, with a secret, or with a name that is not text
	left  map[string]bool        // files and folders of which nothing is known
	end   string                 // the last path, if nothing is known of those after it
	part  bool                   // one of left is a file that could not be looked at

	unread map[string]seen // files of left that cannot be read, or have several names

	ids  map[hostfile.ID]string // the paths of the files and folders, where the system tells
	rest map[hostfile.ID]string // of the other files that were seen

	known map[string]known // the files, for the next look; nil without one
}

func newPicture() picture {
	return picture{
		files: map[string]*content{}, at: map[string]seen{}, dirs: map[string]fs.FileMode{}, odd: map[string]fs.FileMode{}, large: map[string]seen{}, left: map[string]bool{},
		ids: map[hostfile.ID]string{}, rest: map[hostfile.ID]string{}, unread: map[string]seen{},
	}
}

// there reports whether a path that the picture does not have may have been a file.
func (p picture) there(at string) bool {
	if p.end != "" && slices.Compare(strings.Split(at, "/"), strings.Split(p.end, "/")) > 0 { // as the walk goes
		return true
	}
	for ; at != "."; at = path.Dir(at) {
		if p.left[at] {
			return true
		}
	}
	return false
}

// look returns the state of a workspace and keeps the content of files that it has not seen as they
// are.
func (k *kept) look(ctx context.Context, w *workspace.Workspace) (picture, error) {
	was, began := k.seen(), time.Now()
	now, total := map[string]known{}, int64(0)
	out := newPicture()
	last := ""
	leave := func(p string) {
		if p == "." {
			out.end = last // there is more than the walk visits
			return
		}
		last, out.left[p] = p, true
	}
	err := w.WalkAll(ctx, ".", func(e workspace.Entry) error {
		last = e.Path
		switch {
		case workspace.IsTemp(e.Path) && e.Dir:
			return fs.SkipDir
		case workspace.IsTemp(e.Path): // an edit that overlaps removes its temporary file itself
			return nil
		}
		info, err := w.Root().Lstat(e.Path)
		if e.Dir {
			if err == nil && info.IsDir() {
				out.folder(e.Path, info)
				k.enter(e.Path, info.Mode()&modeBits)
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
		size, there := k.sizes[before.SHA]
		if !ok || before.seen != at || k.sizes != nil && (!there || size != at.Size) { // as after a power failure
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
			before.seen = seen{Inode: at.Inode, Mode: at.Mode} // it may change again without another time
		}
		now[e.Path], out.at[e.Path] = before, at
		note(out.ids, e.Path, info)
		out.files[e.Path] = &content{SHA: before.SHA, Mode: at.Mode}
		return nil
	}, leave)
	if err != nil {
		return picture{}, err
	}
	out.part = out.part || out.end != ""
	if info, err := w.Root().Lstat("."); err == nil {
		out.folder(".", info)
	}
	out.known = now
	return out, nil
}

// folder notes a folder.
func (p picture) folder(at string, info fs.FileInfo) {
	if !utf8.ValidString(at) {
		p.odd[at] = info.Mode() & modeBits
		return
	}
	p.dirs[at] = info.Mode() & modeBits
	note(p.ids, at, info)
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

// fileMode returns the permissions of a file. Those that give whoever runs it the rights of its owner count only
// if that is this user, who owns the files that undo writes.
func fileMode(info fs.FileInfo) fs.FileMode {
	if owner, known := hostfile.Owner(info); known && owner == os.Geteuid() {
		return info.Mode() & modeBits
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSticky)
}

func identify(info fs.FileInfo) seen {
	return seen{Size: info.Size(), Time: info.ModTime().UnixNano(), Mode: fileMode(info), Inode: hostfile.Inode(info), CTime: changed(info)}
}
