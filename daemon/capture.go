package daemon

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
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/control/embedded"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/backup"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
)

// capture adds the files of a yaya to a backup, while a daemon may be changing them.
//
// The order makes the files fit together. Files that are replaced as a whole are
// taken as they are when they are opened, and files that only grow up to the last whole
// line; the one that is emptied in between is read when it is opened. The head files of the
// audit are opened before the log that they vouch for, records of sessions are taken before
// tapes, and those of later sessions not at all: a record counts entries, and the tape must
// have them. Attachments are taken after the tapes that name them, and archived tapes after
// the others: one that is archived meanwhile is taken at least once.
type capture struct {
	p         Paths
	data      *os.Root
	to        *backup.Writer
	encrypted bool
	damaged   map[string]bool // files that are taken whole, whatever is at their end
	taken     map[string]bool // records of sessions, and marks of queues
	notes     []string
}

// Folders and files of a data directory with an order of their own.
const (
	keysFolder     = "keys"
	controlFolder  = "control"
	tapesFolder    = "tapes"
	archiveFolder  = "tapes/.archive"
	indexFolder    = "tapes/.index"  // made again from the tapes
	queuedFolder   = "tapes/.queued" // a mark too many does no harm
	sessionsFolder = "sessions"
	trafficFolder  = "traffic"
	memoryFile     = "memory.db"
	sessionRecord  = "session.json"
)

// all adds everything.
func (c *capture) all(ctx context.Context, g *Flags) error {
	for _, step := range c.steps(ctx, g) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// steps are those of all.
func (c *capture) steps(ctx context.Context, g *Flags) []func() error {
	c.taken = map[string]bool{}
	record := func(name string) bool { return path.Base(name) == sessionRecord }
	return []func() error{
		func() error { return c.config(g) },
		func() error { return c.together(ctx, keysFolder, controlFolder) },
		func() error {
			return c.folder(ctx, ".", func(name string) bool {
				switch name {
				case keysFolder, controlFolder, tapesFolder, sessionsFolder, trafficFolder:
					return false
				case embedded.Folder: // a server that votes as it did long ago could lose what others have
					return false
				}
				return true
			})
		},
		func() error { return c.records(ctx, sessionsFolder, record) },
		func() error { return c.records(ctx, queuedFolder, func(string) bool { return true }) },
		func() error {
			return c.folder(ctx, tapesFolder, func(name string) bool {
				return name != archiveFolder && name != indexFolder && name != queuedFolder
			})
		},
		func() error { return c.folder(ctx, archiveFolder, nil) },
		func() error {
			return c.folder(ctx, queuedFolder, func(name string) bool { return !c.taken[name] })
		},
		func() error {
			return c.folder(ctx, sessionsFolder, func(name string) bool { return !c.taken[name] && !record(name) })
		},
		func() error { return c.memory(ctx) },
		func() error { return c.folder(ctx, trafficFolder, nil) },
	}
}

// records adds files of a folder whose rest is added later.
func (c *capture) records(ctx context.Context, dir string, record func(string) bool) error {
	return c.walk(ctx, dir, nil, func(name string) error {
		if !record(name) {
			return nil
		}
		c.taken[name] = true
		return c.file(name)
	})
}

// folder adds the files of a folder, as far as want has them or their folder.
func (c *capture) folder(ctx context.Context, dir string, want func(name string) bool) error {
	return c.walk(ctx, dir, want, c.file)
}

// walk visits the files below a folder, without temporary files, locks, and files that are
// gone meanwhile.
func (c *capture) walk(ctx context.Context, dir string, want func(name string) bool, visit func(name string) error) error {
	entries, err := fs.ReadDir(c.data.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, e.Name())
		switch {
		case want != nil && !want(name), c.left(name):
		case e.IsDir():
			err = c.walk(ctx, name, want, visit)
		case e.Type().IsRegular():
			err = visit(name)
		case e.Type() != fs.ModeSocket:
			c.notes = append(c.notes, fmt.Sprintf("%s is not in the backup: it is neither a file nor a folder", name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left reports whether a file is temporary, or must not be in this backup.
func (c *capture) left(name string) bool {
	base := path.Base(name)
	switch {
	case strings.HasSuffix(base, ".lock"), name == trafficFolder+"/lock", name == restoringFile, name == probeFile,
		strings.HasPrefix(base, ".") && (strings.HasSuffix(base, ".tmp") || strings.HasPrefix(base, ".att_")), strings.HasSuffix(base, ".jsonl.new"),
		name == memoryFile, strings.HasPrefix(name, memoryFile+"-"):
		return true
	case !c.encrypted && strings.HasPrefix(base, "secrets") && strings.HasSuffix(base, ".key"):
		return filepath.Dir(filepath.Join(c.data.Name(), filepath.FromSlash(name))) == c.p.Config
	}
	return false
}

// captured is a file that is open, and the part of it that belongs to a backup.
type captured struct {
	f    *os.File
	from io.ReaderAt // f, or what it had when it was opened
	name string
	size int64
	stat fs.FileInfo
}

// open opens a file; without one, and for what is not a file, there is nothing captured.
func (c *capture) open(name string) (*captured, error) {
	f, err := hostfile.OpenNoLink(c.data, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return nil, nil //nolint:nilnil // it is gone, or was replaced by a link
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close())
	}
	k := &captured{f, f, name, st.Size(), st}
	switch {
	case growing(name) && !c.damaged[name]:
		k.size, err = wholeLines(f, k.size)
	case name == keysFolder+"/"+local.LastFile && k.size <= local.MaxLast:
		var content []byte
		content, err = atOneMoment(f, k.size)
		k.from, k.size = bytes.NewReader(content), int64(len(content))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return k, nil
}

// atOneMoment returns the first bytes, at most size, of a file that others append to and empty.
func atOneMoment(f io.ReaderAt, size int64) ([]byte, error) {
	read := func(most int64) ([]byte, error) {
		content := make([]byte, most)
		n, err := f.ReadAt(content, 0)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return content[:n], err
	}
	for range tries {
		content, err := read(size)
		if err != nil {
			return nil, err
		}
		// A file that was emptied between two pages is not the same again.
		again, err := read(int64(len(content)))
		if err != nil {
			return nil, err
		}
		if bytes.Equal(content, again) {
			return content, nil
		}
	}
	return nil, errors.New("the file keeps changing: run the backup again")
}

// growing reports whether a file consists of lines that are appended.
func growing(name string) bool {
	return strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson")
}

// wholeLines returns how many of the first bytes of a file are whole lines.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 4<<10)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// file adds a file.
func (c *capture) file(name string) error {
	k, err := c.open(name)
	if err != nil || k == nil {
		return err
	}
	return errors.Join(c.add(k), k.f.Close())
}

func (c *capture) add(k *captured) error {
	m := backup.Member{Name: "data/" + k.name, Size: k.size, Executable: k.stat.Mode()&0o100 != 0, Modified: k.stat.ModTime()}
	err := c.to.Add(m, io.NewSectionReader(k.from, 0, k.size))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: the file was cut meanwhile; run the backup again", err)
	}
	return err
}

// tries is how often files are opened or read until they are the same before and after.
const tries = 20

// together adds the files of folders as they were at one moment: those of the first folder
// are opened first, and if files came or went until all were open, it begins again.
func (c *capture) together(ctx context.Context, dirs ...string) (err error) {
	var cuts []*captured
	closeAll := func() error {
		var errs []error
		for _, k := range cuts {
			errs = append(errs, k.f.Close())
		}
		cuts = nil
		return errors.Join(errs...)
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	for range tries {
		before, err := c.look(ctx, dirs)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			err := c.walk(ctx, dir, nil, func(name string) error {
				k, err := c.open(name)
				if k != nil {
					cuts = append(cuts, k)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		after, err := c.look(ctx, dirs)
		if err != nil {
			return err
		}
		if before == after {
			for _, k := range cuts {
				if err := c.add(k); err != nil {
					return err
				}
			}
			return nil
		}
		if err := closeAll(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the files of %s keep changing: run the backup again", strings.Join(dirs, " and "))
}

// look tells files apart that have the same name. The head files of the audit are
// replaced all the time; a newer one would only vouch for more.
func (c *capture) look(ctx context.Context, dirs []string) (string, error) {
	var out strings.Builder
	for _, dir := range dirs {
		err := c.walk(ctx, dir, nil, func(name string) error {
			id, _, err := hostfile.At(c.data, name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if dir == keysFolder {
				id.Ino = 0
			}
			fmt.Fprintf(&out, "%s %d\n", name, id.Ino)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// memory adds a copy of the memory, which SQLite makes.
func (c *capture) memory(ctx context.Context) (err error) {
	at := func(name string) string { return filepath.Join(c.data.Name(), name) }
	st, err := c.data.Lstat(memoryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	link := err == nil && st.Mode().Type() == fs.ModeSymlink
	if link { // as SQLite does, wherever it leads
		st, err = os.Stat(at(memoryFile)) //nolint:forbidigo // the owner of the data directory made the link
	}
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is neither a file nor a link to one")
	}
	if err != nil && (link || st != nil) {
		c.notes = append(c.notes, fmt.Sprintf("%s is not in the backup: %v", memoryFile, err))
		return nil
	}
	if err != nil {
		return err
	}
	free, err := journal.Root(c.data).Free()
	if err != nil {
		return err
	}
	if need := st.Size() + session.MinFree; free.Bytes < need {
		return fmt.Errorf("a copy of %s needs %d MiB in the data directory, and %d are free", memoryFile, need>>20, free.Bytes>>20)
	}
	tmp := fmt.Sprintf(".%s.%d.tmp", memoryFile, os.Getpid())
	defer func() {
		if rerr := c.data.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	if err := c.data.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that has died
		return err
	}
	if err := memory_sqlite.Copy(ctx, at(memoryFile), at(tmp)); err != nil {
		if ctx.Err() != nil {
			return err
		}
		if link {
			c.notes = append(c.notes, fmt.Sprintf("%s is not in the backup: SQLite cannot copy it: %v", memoryFile, err))
			return nil
		}
		c.notes = append(c.notes, fmt.Sprintf("%s cannot be copied by SQLite, and is in the backup as it is: %v", memoryFile, err))
		return errors.Join(c.file(memoryFile), c.file(memoryFile+"-wal"))
	}
	k, err := c.open(tmp)
	if err != nil || k == nil {
		return err
	}
	if link {
		c.notes = append(c.notes, memoryFile+" is a link: the backup has what it leads to, and a restore makes a file of it")
	}
	k.name, k.stat = memoryFile, st
	return errors.Join(c.add(k), k.f.Close())
}

// config adds the files of the configuration folder. The key of the secrets is among them
// if the backup is encrypted.
func (c *capture) config(g *Flags) error {
	if rel, err := filepath.Rel(c.p.Data, c.p.Config); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return nil // they are files of the data directory
	}
	files := map[string]string{serversName: c.p.Servers(), settingsName: g.settingsFile(c.p)}
	if c.encrypted {
		keys, err := filepath.Glob(filepath.Join(c.p.Config, "secrets*.key"))
		if err != nil {
			return err
		}
		for _, key := range keys {
			files[filepath.Base(key)] = key
		}
	}
	for name, file := range files {
		content, found, err := userfile.Read(file)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := c.to.Add(backup.Member{Name: "config/" + name, Size: int64(len(content)), Modified: time.Now()}, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}
