package oauth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// folder is the folder in which earlier versions of yaya kept grants, one file each.
const folder = "oauth"

// maxFiles bounds how many files are moved.
const maxFiles = 4096

// files are the grants that are still in separate files.
type files struct {
	root *os.Root
	none atomic.Bool // there are no files, and none will appear
}

func newFiles(root *os.Root) *files {
	f := &files{root: root}
	if _, err := root.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		f.none.Store(true)
	}
	return f
}

func (f *files) name(id string) string { return folder + "/" + id + ".json" }

func (f *files) path(id string) string { return f.root.Name() + "/" + f.name(id) }

// read returns the content of a grant's file, and when it was written; nil if there is none.
func (f *files) read(id string) ([]byte, time.Time, error) {
	if f.none.Load() {
		return nil, time.Time{}, nil
	}
	bad := func(err error) ([]byte, time.Time, error) {
		return nil, time.Time{}, fmt.Errorf("the stored grant %s: %w", f.path(id), err)
	}
	file, err := f.root.OpenFile(f.name(id), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return bad(err)
	}
	defer func() { _ = file.Close() }()
	st, err := file.Stat()
	switch {
	case err != nil:
		return bad(err)
	case !st.Mode().IsRegular():
		return bad(errors.New("it is not a regular file"))
	}
	how, fix, err := hostfile.Exposed(file)
	if err != nil {
		return bad(err)
	}
	if how != "" {
		return nil, time.Time{}, fmt.Errorf("%s can be read by others (%s); make it private with %s, or delete it and sign in again", f.path(id), how, fix)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxGrant+1)) //nolint:forbidigo // bounded by the reader
	if err == nil && len(data) > maxGrant {
		err = errors.New("it is too large")
	}
	if err != nil {
		return bad(err)
	}
	return data, st.ModTime(), nil
}

// replace replaces the content of a grant's file, and reports whether the file exists.
func (f *files) replace(id string, data []byte) (bool, error) {
	if old, _, err := f.read(id); err != nil || old == nil {
		return false, err
	}
	dir, err := f.root.OpenRoot(folder)
	if err != nil {
		return true, err
	}
	_, err = atomicfile.Write(dir, id+".json", data)
	return true, errors.Join(err, dir.Close())
}

// remove deletes a grant's file, and reports whether it existed.
func (f *files) remove(id string) (bool, error) {
	if f.none.Load() {
		return false, nil
	}
	err := f.root.Remove(f.name(id))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	dir, err := f.root.Open(folder)
	if err != nil {
		return true, err
	}
	return true, errors.Join(dir.Sync(), dir.Close())
}

// Migrate moves the grants from files into the vault: it seals each grant, reads it back, and
// only then deletes its file. It can be interrupted at any point and called again. A file that
// cannot be moved stays valid, and is part of the error. Migrate returns the number of moved
// grants.
func (s *Store) Migrate() (moved int, err error) {
	f := s.files
	if f.none.Load() {
		return 0, nil
	}
	ids, err := f.list()
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, id := range ids {
		if err := s.move(id); err != nil {
			errs = append(errs, err)
			continue
		}
		moved++
	}
	if len(errs) > 0 {
		return moved, errors.Join(errs...)
	}
	// If the folder contains anything else, it stays.
	if err := f.root.Remove(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
		f.none.Store(true)
	}
	return moved, nil
}

// list returns the ids of the grants in files.
func (f *files) list() ([]string, error) {
	dir, err := f.root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && !strings.HasPrefix(id, ".") {
			out = append(out, id)
		}
	}
	return out, nil
}

// move moves one grant.
func (s *Store) move(id string) error {
	data, changed, err := s.files.read(id)
	if err != nil {
		return err
	}
	if data == nil { // another process was faster
		return nil
	}
	g, err := parseGrant(data)
	if err != nil {
		return fmt.Errorf("the stored grant %s: %w; delete it and sign in again", s.files.path(id), err)
	}
	s.learn(g)
	key := recordPrefix + id
	kept, at, err := s.vault.Record(key)
	if err != nil {
		return err
	}
	if kept == nil || changed.After(at) {
		if err := s.vault.PutRecord(key, data); err != nil {
			return err
		}
		if kept, _, err = s.vault.Record(key); err != nil {
			return err
		}
		if !bytes.Equal(kept, data) {
			return fmt.Errorf("the sealed grant of %s differs from its file; the file stays", s.files.path(id))
		}
	}
	_, err = s.files.remove(id)
	return err
}
