package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// File and limits of the record of folders with unreviewed changes.
const (
	marksFolder = "folders"
	marksFile   = "unreviewed.json"
	marksLock   = "unreviewed.lock"
	maxMarks    = 4 << 20 // bytes
	maxFolders  = 512
	maxFiles    = 64 // of a folder; above, any may have changed
	maxTools    = 32
	maxFileName = 512
)

// marks records the folders with changes that no person has approved, across sessions,
// processes and restarts. A folder is identified by its path.
type marks struct {
	data *os.Root
	mu   sync.Mutex // of this process; the lock file is for others
	// open counts the calls that may be changing a folder now, and those whose changes could
	// not be recorded. A person's approval does not cover them.
	open map[source]int
}

// source is the origin of changes: a tool, in a folder.
type source struct{ dir, tool string }

// record is the file.
type record struct {
	Seq     uint64             `json:"seq"` // of the last change
	Folders map[string]*folder `json:"folders"`
}

// folder records the changes in a folder, with the number of the last change.
type folder struct {
	Files map[string]uint64 `json:"files,omitempty"` // by paths relative to it
	Tools map[string]uint64 `json:"tools,omitempty"` // that may have changed any
}

// unseen is a snapshot of the changes in a folder, and in those above and below it.
type unseen struct {
	seq     uint64
	folders map[string]*folder
	open    []string // tools that may be changing them
}

// files returns the paths of changed files, relative to dir if they are in it.
func (u *unseen) files(dir string) (out []string) {
	dir = canonical(dir)
	for at, f := range u.folders {
		for name := range f.Files {
			file := path.Join(at, name)
			if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(dir, "/")+"/"); ok {
				file = rest
			}
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// last names the last change in a folder that nobody has approved, "" if there is none. If that cannot be
// known, it is another one each time.
func (m *marks) last(dir string) string {
	u, err := m.of(dir)
	if err != nil || len(u.open) > 0 {
		return rand.Text()
	}
	var last uint64
	for _, f := range u.folders {
		for _, seq := range []map[string]uint64{f.Files, f.Tools} {
			for _, n := range seq {
				last = max(last, n)
			}
		}
	}
	if last == 0 {
		return ""
	}
	return strconv.FormatUint(last, 10)
}

// tools returns the names of the tools that may have changed any file, or still may.
func (u *unseen) tools() []string {
	out := slices.Clone(u.open)
	for _, f := range u.folders {
		out = slices.AppendSeq(out, maps.Keys(f.Tools))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unreviewed records a change that no person has approved, before it begins and again when it
// is over: until a person approves it, verify needs approval in that folder, in any session.
// While the change is in progress, verify always needs approval.
func (p *Plugin) Unreviewed(c tool.Change) (ended func() error, err error) {
	dir, err := p.cfg.Folder(c.SessionID)
	if err != nil {
		return func() error { return nil }, nil //nolint:nilerr // a session without a workspace changes none
	}
	dir = canonical(dir)
	from := source{dir, c.Tool}
	p.marks.count(from, 1)
	if err := p.marks.note(dir, c); err != nil {
		p.marks.count(from, -1)
		return nil, err
	}
	return func() error {
		if err := p.marks.note(dir, c); err != nil {
			return fmt.Errorf("verify needs approval in %s until yaya restarts: %w", dir, err)
		}
		p.marks.count(from, -1)
		return nil
	}, nil
}

func (m *marks) count(from source, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == nil {
		m.open = map[source]int{}
	}
	if m.open[from] += n; m.open[from] == 0 {
		delete(m.open, from)
	}
}

// canonical returns a folder's path without links.
func canonical(dir string) string {
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dir = at
	}
	return filepath.ToSlash(filepath.Clean(dir))
}

func (m *marks) note(dir string, c tool.Change) error {
	return m.update(func(r *record) error {
		f := r.Folders[dir]
		if f == nil {
			if len(r.Folders) >= maxFolders {
				maps.DeleteFunc(r.Folders, func(dir string, _ *folder) bool {
					_, err := os.Stat(filepath.FromSlash(dir))
					return errors.Is(err, fs.ErrNotExist)
				})
			}
			if len(r.Folders) >= maxFolders {
				return fmt.Errorf("%d folders have changes that nobody has approved: run verify in some of them, and approve it", maxFolders)
			}
			f = new(folder)
			r.Folders[dir] = f
		}
		r.Seq++
		anything := c.Any
		for _, p := range c.Paths {
			if p = path.Clean(p); len(p) > maxFileName || (len(f.Files) >= maxFiles && f.Files[p] == 0) {
				anything = true
				continue
			}
			if f.Files == nil {
				f.Files = map[string]uint64{}
			}
			f.Files[p] = r.Seq
		}
		if anything {
			name := c.Tool
			if len(f.Tools) >= maxTools && f.Tools[name] == 0 {
				name = "others"
			}
			if f.Tools == nil {
				f.Tools = map[string]uint64{}
			}
			f.Tools[name] = r.Seq
		}
		return nil
	})
}

// of returns the changes in a folder, above it and below it.
func (m *marks) of(dir string) (*unseen, error) {
	dir = canonical(dir)
	u := &unseen{folders: map[string]*folder{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.read()
	if err != nil {
		return nil, err
	}
	u.seq = r.Seq
	for at, f := range r.Folders {
		if within(at, dir) || within(dir, at) {
			u.folders[at] = f
		}
	}
	for from := range m.open {
		if within(from.dir, dir) || within(dir, from.dir) {
			u.open = append(u.open, from.tool)
		}
	}
	return u, nil
}

// within reports whether a folder is another one, or lies in it.
func within(dir, in string) bool {
	return dir == in || strings.HasPrefix(dir, strings.TrimSuffix(in, "/")+"/")
}

// clear forgets the changes in a snapshot, but not later ones.
func (m *marks) clear(u *unseen) error {
	if len(u.folders) == 0 {
		return nil
	}
	old := func(_ string, seq uint64) bool { return seq <= u.seq }
	return m.update(func(r *record) error {
		for at := range u.folders {
			f := r.Folders[at]
			if f == nil {
				continue
			}
			maps.DeleteFunc(f.Files, old)
			maps.DeleteFunc(f.Tools, old)
			if len(f.Files)+len(f.Tools) == 0 {
				delete(r.Folders, at)
			}
		}
		return nil
	})
}

// update changes the file under a lock.
func (m *marks) update(edit func(*record) error) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.data.MkdirAll(marksFolder, 0o700); err != nil {
		return err
	}
	lock, err := m.data.OpenFile(path.Join(marksFolder, marksLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := hostfile.Lock(lock); err != nil {
		return fmt.Errorf("lock %s: %w", marksLock, err)
	}
	r, err := m.read()
	if err != nil {
		return err
	}
	if err := edit(r); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if len(raw) > maxMarks {
		return fmt.Errorf("%s/%s would exceed %d bytes: run verify in the folders that it names, and approve it", marksFolder, marksFile, maxMarks)
	}
	dir, err := m.data.OpenRoot(marksFolder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	_, err = atomicfile.Write(dir, marksFile, raw)
	return err
}

// read reads the file; a missing file is empty. The file is replaced atomically, so readers
// need no lock.
func (m *marks) read() (*record, error) {
	r := &record{Folders: map[string]*folder{}}
	name := path.Join(marksFolder, marksFile)
	f, err := m.data.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxMarks+1)) //nolint:forbidigo // bounded
	if err == nil && len(raw) > maxMarks {
		err = fmt.Errorf("it has more than %d bytes", maxMarks)
	}
	if err == nil {
		err = json.Unmarshal(raw, r)
	}
	if err == nil && (r.Folders == nil || slices.Contains(slices.Collect(maps.Values(r.Folders)), nil)) {
		err = errors.New("it has no folders")
	}
	if err != nil {
		return nil, fmt.Errorf("%s in the data directory, which records unapproved changes, cannot be read: %w (review the changes, then remove the file)", name, err)
	}
	return r, nil
}
