package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// other is something else than a regular file that a step has put in the place of a file that is
// covered, of a folder of such files, or in a folder that it has put there.
type other struct {
	Path   string      `json:"path"`
	Kind   fs.FileMode `json:"kind"`             // without permissions
	Target string      `json:"target,omitempty"` // of a link; after a zero byte, as Go quotes it, if it is not text
	Inode  uint64      `json:"inode,omitempty"`  // of a pipe, a socket or a device
}

// look returns what is at a path, and when its content changed last.
func look(w *workspace.Workspace, p string) (o other, at time.Time, err error) {
	info, err := w.Root().Lstat(p)
	if err != nil {
		return other{}, time.Time{}, err
	}
	o = other{Path: p, Kind: info.Mode().Type()}
	switch {
	case o.Kind&fs.ModeSymlink != 0:
		if o.Target, err = w.Root().Readlink(p); !utf8.ValidString(o.Target) {
			o.Target = "\x00" + strconv.Quote(o.Target) // no target has a zero byte
		}
	case !info.IsDir():
		o.Inode = hostfile.Inode(info)
	}
	return o, info.ModTime(), err
}

// obstacle returns what keeps a file from being at a path: the first name above it that is there and not
// a folder, or what is at the path itself and not a regular file; "" if nothing does.
func obstacle(w *workspace.Workspace, p string) (at string, kind fs.FileMode) {
	return unless(w, p, 0)
}

// obstacleAbove returns the first name on the way to a folder, and its own, that is there and not a folder.
func obstacleAbove(w *workspace.Workspace, p string) string {
	at, _ := unless(w, p, fs.ModeDir)
	return at
}

// unless returns the first name on the way to a path, or the path, that is there and neither a folder above it
// nor of the kind that is wanted there, and its own kind.
func unless(w *workspace.Workspace, p string, want fs.FileMode) (at string, kind fs.FileMode) {
	for i := range p + "/" {
		if i < len(p) && p[i] != '/' {
			continue
		}
		info, err := w.Root().Lstat(p[:i])
		if err != nil {
			return "", 0
		}
		if kind := info.Mode().Type(); i < len(p) && kind != fs.ModeDir || i == len(p) && kind != want {
			return p[:i], kind
		}
	}
	return "", 0
}

// walk is [fs.WalkDir] for a path that may be a link, which is not followed.
func walk(w *workspace.Workspace, at string, visit fs.WalkDirFunc) error {
	info, err := w.Root().Lstat(at)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fs.WalkDir(w.FS(), at, visit)
	}
	return visit(at, fs.FileInfoToDirEntry(info), nil)
}

// replaced notes what is in the place of a file that was covered, and reports whether anything is.
// Undo removes only what is noted: what the step has moved there was somewhere else before, and stays.
func (g *group) replaced(w *workspace.Workspace, p string, now picture, st *step) bool {
	at, kind := obstacle(w, p)
	if at == "" || g.noted[at] || kind == 0 { // a regular file is one of the step's files, or not covered
		return at != ""
	}
	g.noted[at] = true
	_ = walk(w, at, func(p string, d fs.DirEntry, err error) error { // what cannot be seen is not noted
		switch {
		case err != nil || d.Type().IsRegular():
			return nil //nolint:nilerr // see above
		case d.IsDir() && now.left[p]: // Git's, or ignored
			return fs.SkipDir
		case len(st.Others) == maxFiles:
			return fs.SkipAll
		case !utf8.ValidString(p): // it cannot be written down
			return nil
		}
		o, changed, err := look(w, p)
		if err != nil || !d.IsDir() && g.movedOther(w, p, changed) {
			return nil //nolint:nilerr // it is older than the step, and was moved there
		}
		st.Others = append(st.Others, o)
		return nil
	})
	return true
}

// leftUnkept reports whether a file is as [group.unkept] has seen it, perhaps under another path.
func leftUnkept(w *workspace.Workspace, p string, c content) bool {
	info, err := w.Root().Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	now := identify(info)
	now.CTime = c.Seen.CTime // another path changes it
	return now == c.Seen
}

// reversal collects the edits that undo a step, and the reasons against it.
type reversal struct {
	w      *workspace.Workspace
	kept   *kept
	step   step
	files  map[string]file
	others map[string]other

	edits []workspace.Edit
	away  map[string]bool // paths of what is in the way of an edit

	changed   []string // files that are not as the step left them
	shared    []string // those that are in the way because of another name
	uncovered []string // obstacles that the step has not put there
}

func newReversal(w *workspace.Workspace, at *kept, st step) *reversal {
	r := &reversal{w: w, kept: at, step: st, files: map[string]file{}, others: map[string]other{}, away: map[string]bool{}}
	for _, f := range st.Files {
		r.files[f.Path] = f
	}
	for _, o := range st.Others {
		r.others[o.Path] = o
	}
	return r
}

// file adds what undoing the change of a file takes.
func (r *reversal) file(f file) error {
	now, err := state(r.w, f.Path)
	there := now // when obstacles are away
	switch {
	case f.After != nil && f.After.SHA == "" && !errors.Is(err, workspace.ErrShared) && leftUnkept(r.w, f.Path, *f.After):
		r.away[f.Path] = true
		there, now = nil, f.After
	case errors.Is(err, workspace.ErrShared):
		if !now.equal(f.Before) {
			r.shared = append(r.shared, f.Path)
		}
		return nil
	case notRegular(err):
		if !r.blocked(f) {
			return nil
		}
		there, now = nil, nil // as the step left it
	case err != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	switch {
	case now.equal(f.Before):
		return nil
	case f.After == nil && now != nil:
		r.uncovered = append(r.uncovered, f.Path)
		return nil
	case !now.equal(f.After):
		r.changed = append(r.changed, f.Path)
		return nil
	}
	e := workspace.Edit{Path: f.Path, Delete: f.Before == nil, Check: func(at string) error { return r.still(there, at) }}
	if f.Before != nil {
		e.Mode, e.Exactly = f.Before.Mode, true
		if e.Data, err = r.kept.blob(f.Before.SHA); err != nil {
			return err
		}
	}
	r.edits = append(r.edits, e)
	return nil
}

// still returns an error unless a file that undo has moved is as it was when it was compared.
func (r *reversal) still(was *content, at string) error {
	var now *content
	if at != "" {
		var err error
		if now, err = state(r.w, at); err != nil {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
	}
	if !now.equal(was) {
		return ErrChanged
	}
	return nil
}

// blocked looks at what keeps a file from being at its path, and reports whether undoing its change
// goes on: what is there is the step's own.
func (r *reversal) blocked(f file) bool {
	at, kind := obstacle(r.w, f.Path)
	_, noted := r.others[at]
	own, file := r.files[at]
	switch {
	case at == f.Path && kind == fs.ModeDir && f.Before == nil && r.above(at):
		return false // the step has replaced a folder by the file, and the folder is back
	case kind != 0 && noted, kind == 0 && file && (f.Before == nil || own.Before == nil):
		if f.Before != nil {
			r.away[at] = true
		}
		return true
	case f.After != nil:
		r.changed = append(r.changed, f.Path)
	default:
		r.uncovered = append(r.uncovered, at)
	}
	return false
}

// folders looks for obstacles in the place of folders that the step has removed. Those that it has put there
// go; files that it has made go in any case.
func (r *reversal) folders() {
	for _, f := range r.step.Folders {
		at := ""
		if f.Gone {
			at = obstacleAbove(r.w, f.Path)
		}
		own, file := r.files[at]
		_, noted := r.others[at]
		switch {
		case at == "", file && own.Before == nil:
		case noted:
			r.away[at] = true
		default:
			r.uncovered = append(r.uncovered, at)
		}
	}
}

// above reports whether a path was a folder before the step.
func (r *reversal) above(dir string) bool {
	return slices.ContainsFunc(r.step.Files, func(f file) bool { return f.Before != nil && strings.HasPrefix(f.Path, dir+"/") })
}

// check returns everything at a path, which the step has left as another one, and notes what of it is
// not as the step left it.
func (r *reversal) check(at, as string) (all []string, err error) {
	err = walk(r.w, at, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all = append(all, p)
		name := as + strings.TrimPrefix(p, at)
		if d.Type().IsRegular() {
			f, own := r.files[name]
			now, err := state(r.w, p)
			switch {
			case own && f.After != nil && f.After.SHA == "" && !errors.Is(err, workspace.ErrShared) && leftUnkept(r.w, p, *f.After):
			case !own || f.Before != nil || f.After == nil:
				r.uncovered = append(r.uncovered, name)
			case errors.Is(err, workspace.ErrShared):
				r.shared = append(r.shared, name)
			case err != nil || !now.equal(f.After):
				r.changed = append(r.changed, name)
			}
			return nil
		}
		was, own := r.others[name]
		now, _, err := look(r.w, p)
		now.Path = name
		switch {
		case !own:
			r.uncovered = append(r.uncovered, name)
			if d.IsDir() {
				return fs.SkipDir
			}
		case err != nil || now != was:
			r.changed = append(r.changed, name)
		}
		return nil
	})
	return all, err
}

// refusal returns why the step cannot be undone.
func (r *reversal) refusal() error {
	for _, why := range []struct {
		err   error
		paths []string
		what  string
	}{
		{ErrChanged, r.changed, ""},
		{ErrChanged, r.shared, ", which have other names (hard links); remove those"},
		{ErrInTheWay, r.uncovered, ""},
	} {
		if len(why.paths) == 0 {
			continue
		}
		slices.Sort(why.paths)
		named, more := slices.Compact(why.paths), ""
		if n := len(named) - maxNamed; n > 0 {
			named, more = named[:maxNamed], fmt.Sprintf(" and %d more", n)
		}
		return fmt.Errorf("%w: %q%s%s", why.err, named, more, why.what)
	}
	return nil
}

// apply undoes the changes, all of them or none.
func (r *reversal) apply() error {
	var away []workspace.Away
	for p := range r.away {
		if _, err := r.check(p, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		away = append(away, workspace.Away{Path: p, Check: func(at string) ([]string, error) {
			all, err := r.check(at, p)
			return all, errors.Join(err, r.refusal())
		}})
	}
	if err := r.refusal(); err != nil {
		return err
	}
	// Each obstacle goes as a whole, with the files in it.
	edits := slices.DeleteFunc(r.edits, func(e workspace.Edit) bool {
		for i := range e.Path + "/" {
			if (i == len(e.Path) || e.Path[i] == '/') && r.away[e.Path[:i]] {
				return e.Delete
			}
		}
		return false
	})
	err := r.w.ApplyOver(away, edits)
	if (errors.Is(err, fs.ErrExist) || notRegular(err)) && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrInTheWay) { // since the comparison
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}
