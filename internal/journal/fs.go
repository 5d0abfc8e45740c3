package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/unread"
)

// ErrLocked reports that another journal, perhaps of another process, has the file
// open.
var ErrLocked = errors.New("the file is in use by another process")

// File is an open file, with the methods that a journal needs. Write appends.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
}

// FS is the file system of journals. It is an interface so that tests can fail and
// kill at every step.
type FS interface {
	Dirs
	// Open opens a file for appending and locks it, creating it when create is
	// set; or for reading, without a lock.
	Open(name string, mode Mode) (File, error)
	Link(from, to string) error
	Rename(from, to string) error
	Remove(name string) error
	// Free returns how much this user can still write.
	Free() (Space, error)
}

// Space tells how much of a file system is free.
type Space struct {
	Bytes int64
	Files int64 // inodes; -1 if the file system has no fixed number of them, or does not say it
}

// Dirs are the directories of an [FS].
type Dirs interface {
	MkdirAll(name string) error
	ReadDir(name string) ([]fs.DirEntry, error)
	// Each visits the entries of a directory in no order, and in pieces, so that a large
	// one needs little memory, and its names alone cost little time. It may miss names
	// that come or go meanwhile.
	Each(name string, visit func(Entry) error) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// Mode selects how a file is opened.
type Mode int

// The modes.
const (
	ReadOnly Mode = iota
	Append        // an existing file, locked
	Create        // a new file, locked
)

// Root is an [FS] below an open directory. Files are 0600, directories 0700.
func Root(root *os.Root) FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

type osFile struct{ *os.File }

func (f osFile) Write(b []byte) (int, error) { return hostfile.WriteEnd(f.File, b) }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (r rootFS) Open(name string, mode Mode) (File, error) {
	flag := os.O_RDONLY
	switch mode {
	case ReadOnly:
	case Append:
		flag = os.O_RDWR | hostfile.Append
	case Create:
		flag = os.O_RDWR | hostfile.Append | os.O_CREATE | os.O_EXCL
	}
	// A link or a pipe that somebody put here must neither be followed nor waited
	// for.
	if st, err := r.root.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return nil, unread.Error(fmt.Errorf("open %s: not a regular file", name))
	}
	f, err := r.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, unread.Error(errors.Join(fmt.Errorf("open %s: not a regular file", name), err, f.Close()))
	}
	if mode == ReadOnly {
		return osFile{f}, nil
	}
	err = hostfile.TryLock(f)
	if errors.Is(err, hostfile.ErrLocked) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), f.Close())
	}
	return osFile{f}, nil
}

func (r rootFS) Link(from, to string) error   { return r.root.Link(from, to) }
func (r rootFS) Rename(from, to string) error { return hostfile.Rename(r.root, from, to) }
func (r rootFS) Remove(name string) error     { return r.root.Remove(name) }
func (r rootFS) MkdirAll(name string) error   { return r.root.MkdirAll(name, 0o700) }

func (r rootFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(r.root.FS(), name)
}

// Entry is a name in a directory. Info is looked up when it is asked for.
type Entry interface {
	Name() string
	Info() (fs.FileInfo, error)
}

// rootEntry is an entry of a directory that is open.
type rootEntry struct {
	dir  *os.Root
	name string
}

func (e rootEntry) Name() string               { return e.name }
func (e rootEntry) Info() (fs.FileInfo, error) { return e.dir.Lstat(e.name) }

func (r rootFS) Each(name string, visit func(Entry) error) (err error) {
	const piece = 256
	dir, err := r.root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for {
		names, err := d.Readdirnames(piece)
		for _, n := range names {
			if err := visit(rootEntry{dir, n}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r rootFS) Free() (Space, error) {
	d, err := r.root.Open(".")
	if err != nil {
		return Space{}, err
	}
	bytes, files, err := hostfile.Free(d)
	return Space{bytes, files}, errors.Join(err, d.Close())
}

func (r rootFS) SyncDir(name string) error {
	d, err := r.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(hostfile.SyncDir(d), d.Close())
}
