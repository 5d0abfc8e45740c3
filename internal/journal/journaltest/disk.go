package journaltest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
)

// Disk is a file system in memory that knows what has reached the disk, so that a test can
// see what a loss of power leaves. Directories last as soon as they are made.
type Disk struct {
	mu    sync.Mutex
	dirs  map[string]bool
	names map[string]*node // by path
	kept  map[string]*node // the names that have reached the disk
}

// node is a file. A node's own lock is the disk's.
type node struct {
	data   []byte
	kept   []byte // that has reached the disk
	locked bool
	mod    time.Time
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{dirs: map[string]bool{".": true}, names: map[string]*node{}, kept: map[string]*node{}}
}

// Killed returns what the next process finds after this one was killed: everything written.
func (d *Disk) Killed() *Disk {
	return d.copy(func(n *node) []byte { return n.data }, func() map[string]*node { return d.names })
}

// PowerLost returns what is on the disk after a loss of power: everything synced, and of
// appended data a part by chance.
func (d *Disk) PowerLost(r *rand.Rand) *Disk {
	return d.copy(func(n *node) []byte {
		if !bytes.HasPrefix(n.data, n.kept) {
			return n.kept
		}
		return n.data[:len(n.kept)+r.IntN(len(n.data)-len(n.kept)+1)]
	}, func() map[string]*node { return d.kept })
}

func (d *Disk) copy(content func(*node) []byte, names func() map[string]*node) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := NewDisk()
	out.dirs = maps.Clone(d.dirs)
	nodes := map[*node]*node{}
	for _, name := range slices.Sorted(maps.Keys(names())) {
		was := names()[name]
		n := nodes[was]
		if n == nil {
			data := bytes.Clone(content(was))
			n = &node{data: data, kept: data[:len(data):len(data)], mod: was.mod}
			nodes[was] = n
		}
		out.names[name], out.kept[name] = n, n
	}
	return out
}

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// MkdirAll implements [journal.FS].
func (d *Disk) MkdirAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; name != "."; name = path.Dir(name) {
		d.dirs[name] = true
	}
	return nil
}

// Open implements [journal.FS].
func (d *Disk) Open(name string, mode journal.Mode) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	switch {
	case mode == journal.Create && n != nil:
		return nil, fail("open", name, fs.ErrExist)
	case mode == journal.Create && !d.dirs[path.Dir(name)], mode != journal.Create && n == nil:
		return nil, fail("open", name, fs.ErrNotExist)
	case mode == journal.Create:
		n = &node{mod: time.Now()}
		d.names[name] = n
	}
	if mode == journal.ReadOnly {
		return &diskFile{d: d, n: n}, nil
	}
	if n.locked {
		return nil, fail("open", name, journal.ErrLocked)
	}
	n.locked = true
	return &diskFile{d: d, n: n, holds: true}, nil
}

// Link implements [journal.FS].
func (d *Disk) Link(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil || d.names[to] != nil {
		return fail("link", to, fs.ErrExist)
	}
	d.names[to] = d.names[from]
	return nil
}

// Rename implements [journal.FS].
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return fail("rename", from, fs.ErrNotExist)
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

// Remove implements [journal.FS].
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return fail("remove", name, fs.ErrNotExist)
	}
	delete(d.names, name)
	return nil
}

// SyncDir implements [journal.FS].
func (d *Disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.kept, func(name string, _ *node) bool { return path.Dir(name) == dir })
	for name, n := range d.names {
		if path.Dir(name) == dir {
			d.kept[name] = n
		}
	}
	return nil
}

// Free implements [journal.FS].
func (*Disk) Free() (journal.Space, error) { return journal.Space{Bytes: 1 << 40, Files: -1}, nil }

// ReadDir implements [journal.FS].
func (d *Disk) ReadDir(dir string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dirs[dir] {
		return nil, fail("readdir", dir, fs.ErrNotExist)
	}
	var out []fs.DirEntry
	for name, n := range d.names {
		if path.Dir(name) == dir {
			out = append(out, fs.FileInfoToDirEntry(diskInfo{path.Base(name), int64(len(n.data)), 0o600, n.mod}))
		}
	}
	for name := range d.dirs {
		if name != "." && path.Dir(name) == dir {
			out = append(out, fs.FileInfoToDirEntry(diskInfo{path.Base(name), 0, fs.ModeDir | 0o700, time.Time{}}))
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// Each implements [journal.FS].
func (d *Disk) Each(dir string, visit func(journal.Entry) error) error {
	entries, err := d.ReadDir(dir)
	for _, e := range entries {
		if err := visit(e); err != nil {
			return err
		}
	}
	return err
}

// Names returns the names of the files in a directory.
func (d *Disk) Names(dir string) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.names {
		if path.Dir(name) == dir {
			out = append(out, path.Base(name))
		}
	}
	return out
}

type diskFile struct {
	d     *Disk
	n     *node
	holds bool // the lock
}

func (f *diskFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.n.data, f.n.mod = append(f.n.data, p...), time.Now()
	return len(p), nil
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if len(p) == 0 {
		return 0, nil // as of a real file
	}
	return bytes.NewReader(f.n.data).ReadAt(p, off)
}

func (f *diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.n.kept = bytes.Clone(f.n.data)
	return nil
}

func (f *diskFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if size > int64(len(f.n.data)) {
		return io.ErrUnexpectedEOF
	}
	f.n.data = bytes.Clone(f.n.data[:size])
	return nil
}

func (f *diskFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *diskFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.holds {
		f.n.locked, f.holds = false, false
	}
	return nil
}

type diskInfo struct {
	name string
	size int64
	mode fs.FileMode
	mod  time.Time
}

func (i diskInfo) Name() string       { return i.name }
func (i diskInfo) Size() int64        { return i.size }
func (i diskInfo) Mode() fs.FileMode  { return i.mode }
func (i diskInfo) ModTime() time.Time { return i.mod }
func (i diskInfo) IsDir() bool        { return i.mode.IsDir() }
func (i diskInfo) Sys() any           { return nil }
