package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// Files of a session's folder.
const (
	stepsFile = "steps.json"
	seenFile  = "seen.json"
	maxJSON   = 64 << 20
	maxText   = 32 << 20 // of the steps
)

// seen identifies the state of a file without reading it.
type seen struct {
	Size  int64       `json:"size"`
	Time  int64       `json:"time"`
	CTime int64       `json:"ctime"`
	Inode uint64      `json:"inode"`
	Mode  fs.FileMode `json:"mode"`
}

// known is a file that was read in an earlier look.
type known struct {
	seen
	SHA string `json:"sha256"`
}

// kept is the folder of a session.
type kept struct {
	root   *os.Root
	secret func(data []byte) bool
	most   int64 // bytes that steps need
}

func (s *Store) folder(session string) (*kept, error) {
	if err := s.root.MkdirAll(key(session)+"/blobs", 0o700); err != nil {
		return nil, err
	}
	root, err := s.root.OpenRoot(key(session))
	if err != nil {
		return nil, err
	}
	return &kept{root, s.secret, s.most}, nil
}

func (k *kept) close() { _ = k.root.Close() } // its files are closed

// tick is by how much the times of files are coarser than ours at most.
const tick = 20 * time.Millisecond

// picture is a workspace at one moment.
type picture struct {
	files map[string]*content
	at    map[string]seen // of the files
	dirs  map[string]fs.FileMode
	large map[string]seen // files that are not kept: too large, with a secret, or with a name that is not text
	left  map[string]bool // files and folders of which nothing is known, "." for some of them
	part  bool            // one of left is a file that could not be looked at
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
	was, recent := k.seen(), time.Now().Add(-tick).UnixNano()
	now, total := map[string]known{}, int64(0)
	out := picture{files: map[string]*content{}, at: map[string]seen{}, dirs: map[string]fs.FileMode{}, large: map[string]seen{}, left: map[string]bool{}}
	leave := func(p string) { out.left[p] = true }
	err := w.WalkAll(ctx, ".", func(e workspace.Entry) error {
		switch {
		case workspace.IsTemp(e.Path) && e.Dir:
			return fs.SkipDir
		case workspace.IsTemp(e.Path): // an edit that overlaps removes its temporary file itself
			return nil
		case e.Dir:
			if mode, ok, err := folderMode(w, e.Path); ok && err == nil {
				out.dirs[e.Path] = mode
			}
			return nil
		}
		info, err := w.Root().Lstat(e.Path)
		if err != nil || !info.Mode().IsRegular() {
			leave(e.Path) // it has just changed
			out.part = true
			return nil //nolint:nilerr // and a change of it is not this call's
		}
		at := identify(info)
		if total += info.Size(); info.Size() > maxFile || len(now) == maxFiles || total > maxBytes || !utf8.ValidString(e.Path) {
			total -= info.Size()
			out.large[e.Path] = at
			return nil
		}
		before, ok := was[e.Path]
		if !ok || before.seen != at {
			c, data, err := read(w, e.Path)
			if err != nil || c == nil {
				leave(e.Path) // it cannot be read, has several names, or is gone
				out.part = true
				return nil //nolint:nilerr // and is not covered
			}
			if c, err = k.put(c, data); err != nil {
				return err
			}
			if c.SHA == "" {
				out.large[e.Path] = at
				return nil
			}
			before = known{at, c.SHA}
		}
		if max(at.CTime, at.Time) > recent {
			before.seen = seen{} // it may change again without another time
		}
		now[e.Path], out.at[e.Path] = before, at
		out.files[e.Path] = &content{SHA: before.SHA, Mode: at.Mode}
		return nil
	}, leave)
	if err != nil {
		return picture{}, err
	}
	out.part = out.part || out.left["."]
	return out, k.store(seenFile, now)
}

// seen returns the files of the last look. They only save reading them again.
func (k *kept) seen() map[string]known {
	was := map[string]known{}
	if k.load(seenFile, &was) != nil {
		return map[string]known{}
	}
	return was
}

func identify(info fs.FileInfo) seen {
	return seen{Size: info.Size(), Time: info.ModTime().UnixNano(), Mode: info.Mode().Perm(), Inode: hostfile.Inode(info), CTime: changed(info)}
}

// keep notes the state of a file and keeps its content.
func (k *kept) keep(w *workspace.Workspace, p string) (*content, error) {
	c, data, err := read(w, p)
	if err != nil || c == nil || c.SHA == "" {
		return c, err
	}
	return k.put(c, data)
}

// put keeps the content of a file, unless it is too large or has a secret.
func (k *kept) put(c *content, data []byte) (*content, error) {
	if c.SHA == "" || k.secret(data) {
		return &content{Mode: c.Mode}, nil
	}
	if info, err := k.root.Lstat(blobName(c.SHA)); err == nil && info.Size() == int64(len(data)) {
		return c, nil
	}
	// Without a sync, which takes long for thousands of files: whoever reads it compares the sum.
	tmp := blobName("new")
	if err := k.root.WriteFile(tmp, data, 0o600); err != nil {
		return nil, err
	}
	return c, hostfile.Rename(k.root, tmp, blobName(c.SHA))
}

// blob returns kept content.
func (k *kept) blob(sha string) ([]byte, error) {
	f, err := k.root.Open(blobName(sha))
	if err != nil {
		return nil, fmt.Errorf("the content to go back to is lost: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1)) //nolint:forbidigo // bounded
	if err == nil && !same(data, sha) {
		err = errors.New("the content to go back to is damaged")
	}
	return data, err
}

func (k *kept) steps() (out []step, err error) {
	err = k.load(stepsFile, &out)
	return out, err
}

// add adds a step.
func (k *kept) add(st step) error {
	all, err := k.steps()
	if err != nil {
		return err
	}
	return k.write(append(all, st))
}

// write replaces the steps. The oldest ones give way until the others are within the bounds, and so
// does content that nothing needs.
func (k *kept) write(all []step) error {
	sizes, err := k.blobs()
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	bytes, text, from := int64(0), 0, len(all)
	for from > 0 && len(all)-from < maxSteps {
		raw, err := json.Marshal(all[from-1])
		if err != nil {
			return err
		}
		for _, f := range all[from-1].Files {
			if f.Before != nil && !needed[f.Before.SHA] {
				needed[f.Before.SHA] = true
				bytes += sizes[f.Before.SHA]
			}
		}
		if text += len(raw); text > maxText || bytes > k.most {
			break // contents that only it needs stay until the next write
		}
		from--
	}
	if len(all) > 0 && from == len(all) {
		err = errors.New("it changes too much")
	}
	if serr := k.store(stepsFile, all[from:]); serr != nil {
		return serr
	}
	for _, f := range k.seen() {
		needed[f.SHA] = true
	}
	for name := range sizes {
		if !needed[name] {
			err = errors.Join(err, k.root.Remove(blobName(name)))
		}
	}
	return err
}

// blobs returns the sizes of all kept content.
func (k *kept) blobs() (map[string]int64, error) {
	dir, err := k.root.Open("blobs")
	if err != nil {
		return nil, err
	}
	infos, err := dir.Readdir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, i := range infos {
		out[i.Name()] = i.Size()
	}
	return out, nil
}

// load reads a file; a missing one is empty.
func (k *kept) load(name string, into any) error {
	f, err := k.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := json.NewDecoder(io.LimitReader(f, maxJSON)).Decode(into); err != nil {
		return fmt.Errorf("%s in %s is damaged, remove that folder to begin again: %w", name, k.root.Name(), err)
	}
	return nil
}

func (k *kept) store(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(k.root, name, raw)
	return err
}
