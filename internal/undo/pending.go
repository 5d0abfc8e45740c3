package undo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// openFile has the group whose calls run, so that a crash does not lose their changes.
const openFile = "open.json"

// lost is the reason why the changes of a step stay.
const lost = "the changes of a call could not be recorded, and stay; undo again for the change before"

// pending is a group as it is kept while its calls run. The names in its maps are quoted: they may not be
// text.
type pending struct {
	ID     string                 `json:"id"`
	Dir    string                 `json:"dir"`
	At     place                  `json:"at"`
	Tools  []string               `json:"tools"`
	Since  time.Time              `json:"since"`
	Whole  bool                   `json:"whole"`
	Seen   string                 `json:"seen,omitempty"` // the sum of the list of seen files, if that has those of first
	Before map[string]*content    `json:"before,omitempty"`
	Files  map[string]seen        `json:"files,omitempty"` // of first
	Dirs   map[string]fs.FileMode `json:"dirs,omitempty"`
	Large  map[string]seen        `json:"large,omitempty"`
	Left   map[string]bool        `json:"left,omitempty"`
	End    string                 `json:"end,omitempty"`
	Odd    map[string]fs.FileMode `json:"odd,omitempty"`
	Unread map[string]seen        `json:"unread,omitempty"`
	IDs    []identity             `json:"ids,omitempty"` // of the folders; those of files are in the list of seen files
	Rest   []identity             `json:"rest,omitempty"`
	Missed map[string]bool        `json:"missed,omitempty"`
	Part   bool                   `json:"part,omitempty"`
	Lost   bool                   `json:"lost,omitempty"` // it was too long to keep
}

// maxPending bounds a group that is kept, in bytes of JSON: one that is longer is lost in a crash.
const maxPending = maxJSON / 2

// identity is a file or folder of a picture.
type identity struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Path string `json:"path"` // quoted
}

// identities lists the files and folders of which keep is true.
func identities(of map[hostfile.ID]string, keep func(path string) bool) (out []identity) {
	for id, p := range of {
		if keep(p) {
			out = append(out, identity{id.Dev, id.Ino, strconv.Quote(p)})
		}
	}
	return out
}

// identified adds identities to those of a picture.
func identified(to map[hostfile.ID]string, all []identity) error {
	var errs []error
	for _, i := range all {
		name, err := strconv.Unquote(i.Path)
		errs = append(errs, err)
		to[hostfile.ID{Dev: i.Dev, Ino: i.Ino}] = name
	}
	return errors.Join(errs...)
}

func quoted[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[strconv.Quote(k)] = v
	}
	return out
}

func unquoted[V any](m map[string]V) (map[string]V, error) {
	out := make(map[string]V, len(m))
	var errs []error
	for k, v := range m {
		name, err := strconv.Unquote(k)
		errs = append(errs, err)
		out[name] = v
	}
	return out, errors.Join(errs...)
}

// hold keeps a group. After its first look, the list of seen files has most of it.
func (k *kept) hold(g *group) error {
	p := pending{ID: g.id, Dir: g.dir, At: g.at, Tools: g.tools, Since: g.began, Whole: g.whole, Part: g.first.part,
		Dirs: quoted(g.first.dirs), Large: quoted(g.first.large), Left: quoted(g.first.left),
		End: strconv.Quote(g.first.end), Odd: quoted(g.first.odd), Unread: quoted(g.first.unread), Missed: quoted(g.missed),
		Rest: identities(g.first.rest, func(string) bool { return true }),
		IDs:  identities(g.first.ids, func(p string) bool { _, file := g.first.files[p]; return !file })}
	if g.looks == 1 {
		sum, err := k.seenSum()
		if err != nil {
			return err
		}
		p.Seen = sum
		named := map[string]*content{}
		for n := range g.named {
			named[n] = g.before[n]
		}
		p.Before = quoted(named)
	} else {
		p.Before, p.Files = quoted(g.before), quoted(g.first.at)
	}
	raw, err := json.Marshal(p)
	if err == nil && len(raw) > maxPending {
		raw, err = json.Marshal(pending{ID: p.ID, Dir: p.Dir, At: p.At, Tools: p.Tools, Since: p.Since, Lost: true})
	}
	if err == nil {
		_, err = atomicfile.Write(k.root, openFile, raw)
	}
	return err
}

// seenSum returns the sum of the list of seen files.
func (k *kept) seenSum() (string, error) {
	f, err := k.root.Open(seenFile)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxJSON)) //nolint:forbidigo // bounded
	return sum(data), errors.Join(err, f.Close())
}

// held returns the group that was kept, nil if none is, or if it cannot be known again. p tells which it is.
func (k *kept) held() (g *group, p pending, err error) {
	if err := k.load(openFile, &p); err != nil || p.Dir == "" || p.Lost {
		return nil, p, err
	}
	g = &group{id: p.ID, dir: p.Dir, at: p.At, tools: p.Tools, began: p.Since, whole: p.Whole, noted: map[string]bool{}}
	g.first = newPicture()
	g.first.part = p.Part
	var errs [11]error
	g.before, errs[0] = unquoted(p.Before)
	g.first.at, errs[1] = unquoted(p.Files)
	g.first.dirs, errs[2] = unquoted(p.Dirs)
	g.first.large, errs[3] = unquoted(p.Large)
	g.first.left, errs[4] = unquoted(p.Left)
	g.first.odd, errs[5] = unquoted(p.Odd)
	g.first.unread, errs[6] = unquoted(p.Unread)
	g.first.end, errs[7] = strconv.Unquote(p.End)
	errs[8], errs[9] = identified(g.first.ids, p.IDs), identified(g.first.rest, p.Rest)
	g.missed, errs[10] = unquoted(p.Missed)
	if errors.Join(errs[:]...) != nil {
		return nil, p, nil //nolint:nilerr // its changes are lost, and a step says so
	}
	if p.Seen == "" {
		g.first.identify()
		return g, p, nil
	}
	if is, err := k.seenSum(); err != nil || is != p.Seen {
		return nil, p, nil //nolint:nilerr // as above: the list is that of a later look
	}
	var seen map[string]known
	if k.load(seenFile, &seen) != nil {
		return nil, p, nil //nolint:nilerr // as above
	}
	for name, f := range seen {
		g.first.at[name] = f.seen
		if _, known := g.before[name]; !known {
			g.before[name] = &content{SHA: f.SHA, Mode: f.Mode}
		}
	}
	g.first.identify()
	return g, p, nil
}

// identify adds the identities of the files, as those of files beside the folder of the picture. A file of
// a mount in it has another one: it counts as not covered then, and stays.
func (p picture) identify() {
	for id, at := range p.ids {
		if at != "." {
			continue
		}
		for name, is := range p.at {
			if is.Inode != 0 {
				p.ids[hostfile.ID{Dev: id.Dev, Ino: is.Inode}] = name
			}
		}
		return
	}
}

// mounted gives the identities of a picture the number that the folder's device has at present: it may have
// been mounted again.
func (p picture) mounted(w *workspace.Workspace) {
	info, err := w.Root().Lstat(".")
	if err != nil {
		return
	}
	now, ok := hostfile.Described(info)
	var was hostfile.ID
	for id, at := range p.ids {
		if at == "." {
			was = id
		}
	}
	if !ok || was == (hostfile.ID{}) || was.Dev == now.Dev {
		return
	}
	for _, all := range []map[hostfile.ID]string{p.ids, p.rest} {
		for id, at := range maps.Clone(all) {
			if id.Dev == was.Dev {
				delete(all, id)
				all[hostfile.ID{Dev: now.Dev, Ino: id.Ino}] = at
			}
		}
	}
}

// recover makes a step of the group of a process that has ended, or could not keep the step: the difference
// to its files as they are at present. If that cannot be known, the step says that the changes are lost.
func (k *kept) recover(ctx context.Context, open func(dir string) (*workspace.Workspace, error)) error {
	g, p, err := k.held()
	if err != nil || p.Dir == "" {
		return err
	}
	done, err := k.recorded(p.ID)
	switch {
	case err != nil:
		return err
	case done:
		return k.end(ctx, p, nil)
	}
	if g != nil {
		w, err := open(p.Dir)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		if (&step{Dir: p.Dir, At: p.At}).in(w) == nil {
			g.first.mounted(w)
			_, err := g.finish(ctx, k, w)
			return k.end(ctx, p, err)
		}
	}
	return k.end(ctx, p, errLost)
}

// errLost is for a group whose difference cannot be known.
var errLost = errors.New("the state of the files before is lost")

// recorded reports whether there is a step of a group: yaya may have ended between that and the end of the group.
func (k *kept) recorded(id string) (bool, error) {
	steps, err := k.steps()
	return slices.ContainsFunc(steps, func(st step) bool { return st.ID == id && id != "" }), err
}

// end forgets the group that is kept, because its step is. With an error it is not, and a step that says so
// takes its place; if that fails, too, or if it was cancelled, the group stays for a later try.
func (k *kept) end(ctx context.Context, p pending, failed error) error {
	if failed != nil && ctx.Err() != nil {
		return failed
	}
	if failed != nil {
		done, err := k.recorded(p.ID)
		if err == nil && !done {
			err = k.add(step{ID: p.ID, Dir: p.Dir, At: p.At, Tools: p.Tools, Time: time.Now().UTC(), Lost: true}, nil)
		}
		if err != nil {
			return errors.Join(failed, err)
		}
	}
	if err := k.root.Remove(openFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if failed == nil && k.next != nil { // the group needs the earlier one no longer
		return k.store(seenFile, k.next)
	}
	return nil
}
