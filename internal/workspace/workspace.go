// Package workspace reads a folder of source code for agents: its tree, its text,
// its symbols. It reaches nothing outside the folder, whatever links and names say:
// everything goes through an os.Root. It cannot reach yaya's own folders at all: see
// [Guard]. It leaves out files that .gitignore ignores, and never shows Git's own
// files, because its configuration and logs may contain credentials. Everything is
// bounded.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Bounds of a workspace.
const (
	maxEntries = 200_000 // files and folders that are visited
	maxDepth   = 64
	maxIgnore  = 256 << 10 // bytes of a .gitignore
	// MaxFile is the size of the largest file that is read.
	MaxFile = 16 << 20
)

var (
	// ErrOutside means that a path is invalid, or leads out of the workspace.
	ErrOutside = errors.New("the path leads out of the workspace")
	// ErrBinary is returned by [Workspace.Text] for a file that is not text.
	ErrBinary = errors.New("the file is not text")
	// ErrTooLarge is returned for a file of more than [MaxFile] bytes.
	ErrTooLarge = fmt.Errorf("the file has more than %d bytes", MaxFile)
	// ErrIrregular means that a path is not a regular file.
	ErrIrregular = errors.New("the path is not a regular file")
	// ErrGit means that a path leads into a repository's own folder.
	ErrGit = errors.New("the path belongs to git, and is not shown")

	errNotFolder = errors.New("the path is not a folder")
)

// Workspace is an open folder; a [Guard] opens it. It is safe for concurrent use.
type Workspace struct {
	root *os.Root
	dir  string
	// ownFiles are files of yaya's own that have more than one name.
	ownFiles func() map[hostfile.ID]bool
	closing  func() error
}

// Close closes the folder.
func (w *Workspace) Close() error { return w.closing() }

// Lent returns the same open folder under another path of it, for somebody whose Close calls f
// instead.
func (w *Workspace) Lent(dir string, f func() error) *Workspace {
	lent := *w
	lent.dir, lent.closing = dir, f
	return &lent
}

// Dir returns the folder's path.
func (w *Workspace) Dir() string { return w.dir }

// Root returns the folder.
func (w *Workspace) Root() *os.Root { return w.root }

// FS returns the folder for [fs.WalkDir] and [fs.ReadDir]. A pipe that takes a folder's place meanwhile is not
// waited for.
func (w *Workspace) FS() fs.FS { return tree{w.root.FS(), w.root} }

type tree struct {
	fs.FS
	root *os.Root
}

// Stat implements [fs.StatFS].
func (t tree) Stat(name string) (fs.FileInfo, error) { return t.root.Stat(name) }

// ReadDir implements [fs.ReadDirFS].
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, errors.Join(err, dir.Close())
}

// Clean makes a path one inside the workspace: relative, with slashes, "." for the
// folder itself. A path may be absolute if it is the workspace's.
func (w *Workspace) Clean(p string) (string, error) {
	if strings.ContainsRune(p, 0) || len(p) > 4096 {
		return "", ErrOutside
	}
	if filepath.IsAbs(p) { // with a drive, on Windows, where capital letters do not count
		rest, err := filepath.Rel(w.dir, p)
		if err != nil {
			return "", ErrOutside
		}
		p = rest
	} else if path.IsAbs(filepath.ToSlash(p)) {
		return "", ErrOutside
	}
	p = path.Clean("./" + filepath.ToSlash(p))
	if !filepath.IsLocal(filepath.FromSlash(p)) {
		return "", ErrOutside
	}
	return p, nil
}

// open opens a regular file for reading, and never blocks.
func (w *Workspace) open(p string) (*os.File, fs.FileInfo, error) {
	f, err := w.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = ErrIrregular
	case w.isOwn(f, info):
		err = fmt.Errorf("%w: the file is another name for one of them", ErrOwn)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Read reads a file of at most MaxFile bytes.
func (w *Workspace) Read(p string) ([]byte, fs.FileInfo, error) {
	p, err := w.Clean(p)
	if err != nil {
		return nil, nil, err
	}
	if p, err = w.real(p); err != nil {
		return nil, nil, err
	}
	return w.read(p)
}

// read is Read for a path that is clean, not Git's own and without links, as those
// from Walk are.
func (w *Workspace) read(p string) ([]byte, fs.FileInfo, error) {
	f, info, err := w.open(p)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if w.isGitConfig(f, info) {
		return nil, nil, ErrGit
	}
	if info.Size() > MaxFile {
		return nil, nil, ErrTooLarge
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1)) //nolint:forbidigo // bounded
	if err == nil && len(data) > MaxFile {
		err = ErrTooLarge
	}
	return data, info, err
}

// Text reads a file that is text.
func (w *Workspace) Text(p string) (string, error) {
	data, _, err := w.Read(p)
	return asText(data, err)
}

func asText(data []byte, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if IsBinary(data) {
		return "", ErrBinary
	}
	return string(data), nil
}

// IsBinary reports whether content is not text: it has a NUL, or its beginning is
// not UTF-8.
func IsBinary(data []byte) bool {
	head := data[:min(len(data), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for n := 0; n < utf8.UTFMax && len(head) > 0 && len(head) < len(data) && !utf8.Valid(head); n++ {
		head = head[:len(head)-1] // it may be cut in a character
	}
	return !utf8.Valid(head)
}

// Entry is a file or folder of the tree.
type Entry struct {
	Path     string
	Dir      bool
	Size     int64     // of a file
	Modified time.Time // a file
}

// Walk visits the files and folders below p in order, without those that .gitignore
// leaves out. visit may return [fs.SkipDir] or [fs.SkipAll].
func (w *Workspace) Walk(ctx context.Context, p string, visit func(e Entry) error) error {
	return w.WalkAll(ctx, p, visit, func(string) {})
}

// WalkAll is Walk, and tells left of what it leaves out: files and folders that .gitignore leaves
// out, links, devices, what cannot be read and what is too deep; and p, if there is more than it
// visits.
func (w *Workspace) WalkAll(ctx context.Context, p string, visit func(e Entry) error, left func(path string)) error {
	p, err := w.Clean(p)
	if err != nil {
		return err
	}
	if _, err := w.real(p); err != nil {
		return err
	}
	fsys := w.FS()
	var patterns []gitignore.Pattern
	for dir := "."; ; { // those of the folders above count, too
		patterns = append(patterns, w.ignored(dir)...)
		if dir == p {
			break
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
		next, _, _ := strings.Cut(rest, "/")
		if dir = path.Join(dir, next); next == "" {
			break
		}
	}
	n := 0
	scopes := map[string][]gitignore.Pattern{p: patterns}
	return fs.WalkDir(fsys, p, func(at string, d fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil {
			if at == p {
				return err
			}
			left(at)
			return nil // it cannot be read
		}
		if at == p {
			if !d.IsDir() {
				return errNotFolder
			}
			return nil
		}
		if n++; n > maxEntries {
			left(p)
			return fs.SkipAll
		}
		parts := strings.Split(at, "/")
		above := scopes[path.Dir(at)]
		if len(parts) > maxDepth+1 || isGit(d.Name()) || (d.IsDir() && w.isRepository(at)) || gitignore.NewMatcher(above).Match(parts, d.IsDir()) {
			left(at)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		e := Entry{Path: at, Dir: d.IsDir()}
		switch {
		case d.IsDir():
			own := w.ignored(at)
			scopes[at] = append(above[:len(above):len(above)], own...)
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil {
				e.Size, e.Modified = info.Size(), info.ModTime()
			}
		default:
			left(at)
			return nil // links and devices
		}
		return visit(e)
	})
}

// ignored reads the .gitignore of a folder.
func (w *Workspace) ignored(dir string) []gitignore.Pattern {
	f, info, err := w.open(path.Join(dir, ".gitignore"))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, min(info.Size(), maxIgnore))) //nolint:forbidigo // bounded
	if err != nil {
		return nil
	}
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	var out []gitignore.Pattern
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			out = append(out, gitignore.ParsePattern(line, domain))
		}
	}
	return out
}

// Tree lists the tree below p down to depth, with at most limit entries; more tells
// that there are others.
func (w *Workspace) Tree(ctx context.Context, p string, depth, limit int) (out []Entry, more bool, err error) {
	base, err := w.Clean(p)
	if err != nil {
		return nil, false, err
	}
	err = w.Walk(ctx, p, func(e Entry) error {
		if len(out) == limit {
			more = true
			return fs.SkipAll
		}
		out = append(out, e)
		rel := strings.TrimPrefix(strings.TrimPrefix(e.Path, base), "/")
		if e.Dir && strings.Count(rel, "/")+1 >= depth {
			return fs.SkipDir
		}
		return nil
	})
	return out, more, err
}

// Shown returns a name as texts for a model or a person have it: quoted if it has a line end, or
// another character that is not printed. The name of a file could be read as text of yaya's.
func Shown(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Format writes a tree as indented lines.
func Format(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(strings.Repeat("  ", strings.Count(e.Path, "/")))
		b.WriteString(Shown(path.Base(e.Path)))
		if e.Dir {
			b.WriteString("/")
		}
		b.WriteString("\n")
	}
	return b.String()
}
