package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// Files of a session's folder.
const (
	stepsFile = "steps.json"
	seenFile  = "seen.json"
	maxJSON   = 64 << 20
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
}

func (s *Store) folder(session string) (*kept, error) {
	if err := s.root.MkdirAll(key(session)+"/blobs", 0o700); err != nil {
		return nil, err
	}
	root, err := s.root.OpenRoot(key(session))
	if err != nil {
		return nil, err
	}
	return &kept{root, s.secret}, nil
}

func (k *kept) close() { _ = k.root.Close() } // its files are closed

// picture is a workspace at one moment.
type picture struct {
	files map[string]*content
	large map[string]seen      // files that are not kept: too large, or with a secret
	newer map[string]time.Time // when files have changed last, with their attributes
}

// look notes the state of a workspace and keeps the content of files that it has not seen as they
// are.
func (k *kept) look(ctx context.Context, w *workspace.Workspace) (picture, error) {
	was := map[string]known{}
	if err := k.load(seenFile, &was); err != nil {
		return picture{}, err
	}
	now, out, total := map[string]known{}, picture{files: map[string]*content{}, large: map[string]seen{}, newer: map[string]time.Time{}}, int64(0)
	err := w.Walk(ctx, ".", func(e workspace.Entry) error {
		if e.Dir {
			return nil
		}
		info, err := w.Root().Lstat(e.Path)
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // it is gone, and a change of it is not this call's
		}
		at := identify(info)
		if total += info.Size(); info.Size() > maxFile || len(now) == maxFiles || total > maxBytes {
			total -= info.Size()
			if len(out.large) < maxFiles {
				out.large[e.Path] = at
			}
			return nil
		}
		before, ok := was[e.Path]
		if !ok || before.seen != at {
			c, err := k.keep(w, e.Path)
			if err == nil && c != nil && c.SHA == "" {
				out.large[e.Path] = at
				return nil
			}
			if err != nil || c == nil {
				return nil //nolint:nilerr // it cannot be read, or has just changed
			}
			before = known{at, c.SHA}
		}
		now[e.Path], out.newer[e.Path] = before, time.Unix(0, max(at.CTime, at.Time))
		out.files[e.Path] = &content{before.SHA, at.Mode}
		return nil
	})
	if err != nil {
		return picture{}, err
	}
	return out, k.store(seenFile, now)
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
	if k.secret(data) {
		return &content{Mode: c.Mode}, nil
	}
	if _, err := k.root.Lstat(blobName(c.SHA)); err == nil {
		return c, nil
	}
	// Without a sync, which takes long for thousands of files: whoever reads it compares the sum.
	tmp := blobName("new")
	if err := k.root.WriteFile(tmp, data, 0o600); err != nil {
		return nil, err
	}
	return c, k.root.Rename(tmp, blobName(c.SHA))
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

// add adds a step. The oldest ones give way, and so does content that no step needs.
func (k *kept) add(st step) error {
	all, err := k.steps()
	if err != nil {
		return err
	}
	all = append(all, st)
	if n := len(all) - maxSteps; n > 0 {
		all = all[n:]
	}
	return k.write(all)
}

// write replaces the steps, and removes content that nothing needs.
func (k *kept) write(all []step) error {
	if err := k.store(stepsFile, all); err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, st := range all {
		for _, f := range st.Files {
			if f.Before != nil {
				needed[f.Before.SHA] = true
			}
		}
	}
	was := map[string]known{}
	if err := k.load(seenFile, &was); err != nil {
		return err
	}
	for _, f := range was {
		needed[f.SHA] = true
	}
	dir, err := k.root.Open("blobs")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if !needed[name] {
			err = errors.Join(err, k.root.Remove(blobName(name)))
		}
	}
	return err
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
