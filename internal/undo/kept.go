package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

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
	most   int64                              // bytes that steps need
	enter  func(dir string, mode fs.FileMode) // gets each folder before its files are looked at
	sizes  map[string]int64                   // of kept content, if a look is not to rely on what is written of it
	next   map[string]known                   // the files of a last look that has found no change, until it is written down
}

func (s *Store) folder(session string) (*kept, error) {
	if err := s.root.MkdirAll(key(session)+"/blobs", 0o700); err != nil {
		return nil, err
	}
	root, err := s.root.OpenRoot(key(session))
	if err != nil {
		return nil, err
	}
	return &kept{root: root, secret: s.secret, most: s.most, enter: func(string, fs.FileMode) {}}, nil
}

func (k *kept) close() { _ = k.root.Close() } // its files are closed

// seen returns the files of the last look. They only save reading them again.
func (k *kept) seen() map[string]known {
	was := map[string]known{}
	if k.load(seenFile, &was) != nil {
		return map[string]known{}
	}
	return was
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
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1)) //nolint:forbidigo // bounded
	if err == nil && !same(data, sha) {
		err = ErrContent
	}
	return data, err
}

func (k *kept) steps() (out []step, err error) {
	err = k.load(stepsFile, &out)
	return out, err
}

// add adds a step, and then replaces the files of the last look, unless that is nil: until the step is written
// down, a crash needs those of the look before.
func (k *kept) add(st step, seen map[string]known) error {
	all, err := k.steps()
	if err != nil {
		return err
	}
	return k.write(append(all, st), seen)
}

// write replaces the steps. The oldest ones give way until the others are within the bounds, and so
// does content that nothing needs.
func (k *kept) write(all []step, seen map[string]known) error {
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
	if seen == nil {
		seen = k.seen()
	} else if serr := k.store(seenFile, seen); serr != nil {
		return serr
	}
	for _, f := range seen {
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
