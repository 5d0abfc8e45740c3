package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
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
	"strings"
	"sync"
	"syscall"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Where it is kept which folders have changes that nobody has looked at, and how much.
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

// marks keeps which folders have changes that no person has agreed to, across sessions,
// processes and restarts. A folder is known by its path.
type marks struct {
	data *os.Root
	mu   sync.Mutex // of this process; the lock file is for others
	// open counts the calls that may be changing a folder now, and those of which it
	// could not be noted that they had. What a person agrees to does not cover them.
	open map[source]int
}

// source is where changes come from: a tool, in a folder.
type source struct{ dir, tool string }

// record is the file.
type record struct {
	Seq     uint64             `json:"seq"` // of the last change
	Folders map[string]*folder `json:"folders"`
}

// folder is what has changed in a folder, with the number of the change.
type folder struct {
	Files map[string]uint64 `json:"files,omitempty"` // by paths relative to it
	Tools map[string]uint64 `json:"tools,omitempty"` // that may have changed any
}

// unseen is what had changed in a folder, and those above and below it, at a moment.
type unseen struct {
	seq     uint64
	folders map[string]*folder
	open    []string // tools that may be changing them
}

// files returns the paths of changed files: relative to dir where they lie in it.
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

// tools returns the names of tools that may have changed any file, or still may.
func (u *unseen) tools() []string {
	out := slices.Clone(u.open)
	for _, f := range u.folders {
		out = slices.AppendSeq(out, maps.Keys(f.Tools))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unreviewed notes a change that no person has agreed to, before it is made and again
// when it is over: until a person has, verify is asked about in that folder, by whatever
// session. Between the two it is asked about whatever a person agrees to.
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
			return fmt.Errorf("verify is asked about in %s until yaya is started again: %w", dir, err)
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

// canonical is a folder's path without links.
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

// of returns what has changed in a folder, above it and below it.
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

// within tells whether a folder is another one, or lies in it.
func within(dir, in string) bool {
	return dir == in || strings.HasPrefix(dir, strings.TrimSuffix(in, "/")+"/")
}

// clear forgets what had changed, but not what has changed since.
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

// update changes the file while nobody else does.
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
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a descriptor fits
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
		return fmt.Errorf("%s/%s would have more than %d bytes: run verify in the folders that it names, and approve it", marksFolder, marksFile, maxMarks)
	}
	dir, err := m.data.OpenRoot(marksFolder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	_, err = atomicfile.Write(dir, marksFile, raw)
	return err
}

// read reads the file; what is not there is empty. It is replaced whole, so a reader
// needs no lock.
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
		return nil, fmt.Errorf("%s in the data directory cannot be read, which tells what nobody has approved: %w (look at what has changed, then remove it)", name, err)
	}
	return r, nil
}
