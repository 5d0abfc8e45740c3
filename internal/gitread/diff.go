package gitread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

const maxDiffed = 1 << 20 // bytes of a file whose lines are compared

// diff writes how tracked files differ from the commit.
func (r *Repo) diff(ctx context.Context, c *changes, limit int) (string, error) {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(c.files)) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		part, err := r.fileDiff(ctx, c, p)
		if err != nil {
			return "", err
		}
		if left := limit - b.Len(); len(part) > left {
			part = strings.ToValidUTF8(part[:max(left, 0)], "")
			return b.String() + part[:strings.LastIndexByte(part, '\n')+1] + "… (the diff is longer)\n", nil
		}
		b.WriteString(part)
	}
	return b.String(), nil
}

func (r *Repo) fileDiff(ctx context.Context, c *changes, p string) (string, error) {
	ch, e := c.files[p], c.ix.find(p)
	name := strings.TrimPrefix(p, r.prefix)
	old := ch.old
	if ch.x == ' ' && e != nil && !e.intended {
		old = treeEntry{mode: e.mode, id: e.id}
	}
	var before, after []byte
	var err error
	mode, exact := uint32(0), true
	if ch.y != 'D' && (ch.x != 'D' || e != nil) && (e != nil || ch.x != ' ' && ch.y != ' ') {
		mode, after, exact, err = r.current(ctx, c.ix, p, old.mode)
		if errors.Is(err, fs.ErrNotExist) {
			mode, err = 0, nil
		}
		if err != nil && !errors.Is(err, errTooLarge) {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	tooLarge := err != nil || len(after) > maxDiffed
	if old.mode != 0 && old.mode != modeModule && !tooLarge {
		if before, err = r.store.get(ctx, old.id, kindBlob); err != nil {
			if !errors.Is(err, errTooLarge) {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			tooLarge = true
		}
		tooLarge = tooLarge || len(before) > maxDiffed
	}
	if old.mode&modeType != mode&modeType && old.mode != 0 && mode != 0 { // one goes, another comes
		gone := show(name, old.mode, 0, before, nil, exact, tooLarge)
		return gone + show(name, 0, mode, nil, after, exact, tooLarge), nil
	}
	return show(name, old.mode, mode, before, after, exact, tooLarge), nil
}

// show writes the difference of one file. A mode of 0 says that it is not there.
func show(name string, oldMode, mode uint32, before, after []byte, exact, tooLarge bool) string {
	var b strings.Builder
	from, to := marked("a/", name), marked("b/", name)
	fmt.Fprintf(&b, "diff --git %s %s\n", from, to)
	switch {
	case oldMode == 0 && mode == 0:
		return ""
	case oldMode == 0:
		fmt.Fprintf(&b, "new file mode %06o\n", mode)
		from = "/dev/null"
	case mode == 0:
		fmt.Fprintf(&b, "deleted file mode %06o\n", canonical(oldMode))
		to = "/dev/null"
	case canonical(oldMode) != mode:
		fmt.Fprintf(&b, "old mode %06o\nnew mode %06o\n", canonical(oldMode), mode)
	}
	switch {
	case !exact:
		fmt.Fprintf(&b, "%s is stored through a filter, which is not run: its difference is not shown\n", quote(name))
	case tooLarge:
		fmt.Fprintf(&b, "%s has more than %d bytes: its difference is not shown\n", quote(name), maxDiffed)
	case bytes.IndexByte(before[:min(len(before), 8000)], 0) >= 0 || bytes.IndexByte(after[:min(len(after), 8000)], 0) >= 0:
		if !bytes.Equal(before, after) {
			fmt.Fprintf(&b, "Binary files %s and %s differ\n", from, to)
		}
	default:
		d := diff.Diff("x", before, "x", after)
		if at := bytes.Index(d, []byte("@@")); at >= 0 { // it has a head of its own
			fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
			b.Write(d[at:])
		}
	}
	text := b.String()
	if mode != 0 && canonical(oldMode) == mode && strings.Count(text, "\n") == 1 {
		return "" // the same again
	}
	return text
}

// marked is a name with the side that it stands for.
func marked(mark, name string) string {
	if q := quote(name); q != name && strings.HasPrefix(q, `"`) && strings.ContainsAny(q[1:len(q)-1], `\`) {
		return `"` + mark + q[1:]
	}
	return mark + name
}

// current reads a file of the work tree as git would store it. exact is false if that
// cannot be known.
func (r *Repo) current(ctx context.Context, ix *index, p string, oldMode uint32) (mode uint32, data []byte, exact bool, err error) {
	rel := strings.TrimPrefix(p, r.prefix)
	for at := path.Dir(rel); at != "."; at = path.Dir(at) { // a link above it is another file
		if info, err := r.work.Lstat(at); err != nil || !info.IsDir() {
			return 0, nil, true, fs.ErrNotExist
		}
	}
	info, err := r.work.Lstat(rel)
	switch {
	case err != nil:
		return 0, nil, true, err
	case info.IsDir():
		return 0, nil, true, fs.ErrNotExist
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := r.work.Readlink(rel)
		return modeLink, []byte(target), true, err
	case !info.Mode().IsRegular():
		return 0, nil, true, fs.ErrNotExist
	}
	mode = modeRegular | 0o644
	exec := info.Mode()&0o100 != 0
	if !r.cfg.is("core.filemode", true) {
		exec = oldMode == modeExec
	}
	if exec {
		mode = modeExec
	}
	if data, err = r.readWork(rel); err != nil {
		return mode, nil, true, err
	}
	conv := r.conversion(ctx, ix, p)
	if blob := blobID(data); ix.find(p) != nil && ix.find(p).id == blob {
		return mode, data, true, nil
	}
	stored, exact := conv.stored(data)
	return mode, stored, exact, nil
}

func (r *Repo) readWork(rel string) ([]byte, error) {
	dir, err := openFolder(r.work, path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Lstat(path.Base(rel)); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	return readFile(dir, path.Base(rel), maxObject)
}
