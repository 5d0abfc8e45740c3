// Package gitread reads untrusted Git repositories: branch, status and diff. It
// starts no process and writes nothing, so no program that a repository configures
// (filters, hooks, monitors, pagers, diff drivers) can run.
//
// Everything is read below two folders that are held open as an [os.Root]: the work
// tree, and the repository's own folder. Alternates, includes, core.worktree,
// replacements and grafts lead elsewhere or change the result; they are ignored.
// Indexes, objects, packs, depth and time are bounded: a repository that needs more,
// or is damaged, is an error. SHA-256 repositories, reftables, split and sparse
// indexes are refused by name.
package gitread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// Bounds of what is read.
const (
	maxTime    = 20 * time.Second
	maxIndex   = 64 << 20
	maxObject  = 32 << 20 // bytes of one object
	maxInflate = 512 << 20
	maxSmall   = 256 << 10 // HEAD, references, configuration, .gitignore
	maxPacked  = 64 << 20  // packed-refs
	maxVisited = 1_000_000 // files and folders of the work tree
	maxDepth   = 256       // folders inside each other
	maxChanges = 20_000    // lines of a status
)

var (
	// ErrNoRepository reports a folder that is not a Git repository.
	ErrNoRepository = errors.New("the workspace is not a Git repository")
	errDamaged      = errors.New("the Git repository is damaged")
	errTooLarge     = errors.New("the Git repository is too large to be read")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

// Repo is an open repository. It is for one goroutine.
type Repo struct {
	work   *os.Root // the workspace; its owner closes it
	prefix string   // of the workspace in the repository: "" or "services/api/"
	git    *os.Root // of this work tree: HEAD, index
	common *os.Root // of all work trees: objects, refs, config
	cfg    config
	store  store
	// visited counts files and folders of the work tree.
	visited int
	attrs   map[string][]attribute // of .gitattributes, by folder
}

// Close closes the repository's folders.
func (r *Repo) Close() error {
	err := r.store.close()
	if r.common != nil && r.common != r.git {
		err = errors.Join(err, r.common.Close())
	}
	return errors.Join(err, r.git.Close())
}

// Status is the content of git status.
type Status struct {
	// Branch is the line behind "## " of git status --porcelain=v1 --branch.
	Branch string
	// Changed has a line for each file that has changed or is untracked, as git status
	// --porcelain=v1 has it. Names are relative to the workspace, in UTF-8.
	Changed []string
	// More reports that the list is incomplete.
	More bool
}

// ReadStatus returns the status of the repository that the workspace is, or lies in.
// dir is the path of the workspace's folder. Files outside the workspace are neither
// examined nor reported.
func ReadStatus(ctx context.Context, work *os.Root, dir string) (st Status, err error) {
	err = with(ctx, work, dir, func(ctx context.Context, r *Repo) error {
		head, err := r.head()
		if err != nil {
			return err
		}
		c, err := r.changes(ctx, head, true)
		if err != nil {
			return err
		}
		st.Changed, st.More = c.lines(r.prefix)
		st.Branch, err = r.branchLine(ctx, head)
		return err
	})
	return st, err
}

// ReadDiff returns the changes of tracked files since the last commit, as a unified
// diff of at most limit bytes; a longer one ends with a note that it was cut.
func ReadDiff(ctx context.Context, work *os.Root, dir string, limit int) (text string, err error) {
	err = with(ctx, work, dir, func(ctx context.Context, r *Repo) error {
		head, err := r.head()
		if err != nil {
			return err
		}
		c, err := r.changes(ctx, head, false)
		if err != nil {
			return err
		}
		text, err = r.diff(ctx, c, limit)
		return err
	})
	return text, err
}

func with(ctx context.Context, work *os.Root, dir string, f func(context.Context, *Repo) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("reading the Git repository took longer than %s", maxTime))
	defer cancel()
	r, err := open(work, dir)
	if err != nil {
		return err
	}
	defer func() {
		if v := recover(); v != nil { // the parsers are bounded; this is the last resort
			err = damaged("%v", v)
		}
		err = errors.Join(err, r.Close())
	}()
	if err = f(ctx, r); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// openFile opens a regular file, and never blocks.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = damaged("%s is not a regular file", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// openFolder opens a folder below another. Without the dot a pipe of that name would
// be waited for.
func openFolder(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

// readFile reads a regular file of at most limit bytes.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, info, err := openFile(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > limit {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", errTooLarge, name, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) //nolint:forbidigo // bounded
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%w: %s has more than %d bytes", errTooLarge, name, limit)
	}
	return data, err
}

// quote writes a name as git status does with core.quotePath=false: in quotes when it
// has characters that would be taken for something else.
func quote(name string) string {
	special := strings.ContainsAny(name, ` "\`)
	for i := 0; i < len(name) && !special; i++ {
		special = name[i] < 0x20 || name[i] == 0x7f
	}
	if valid := strings.ToValidUTF8(name, "\uFFFD"); !special && valid == name {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, c := range name {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < 0x20 || c == 0x7f, c == '\uFFFD' && !strings.HasPrefix(name[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\%03o`, name[i])
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
