package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
)

// temporary matches the names of files that replace others: .NAME.PID.tmp, of
// [github.com/yaya-ai/yaya/internal/atomicfile].
var temporary = regexp.MustCompile(`^\..+\.([1-9][0-9]{0,9})\.tmp$`)

// leftover are names of other files that exist only while something is written, and
// that the daemon alone writes.
var leftover = []string{"keys/.audit.head.tmp", "sessions/*/attachments/.att_*"}

// Tidy removes what a crash has left of files that were being written: only files of
// yaya's own names, and none that a process may be at work on. It may run beside the
// daemon that has had the data directory for itself since then, and beside commands. It
// returns the names of what it removed.
func Tidy(ctx context.Context, root *os.Root, since time.Time) (removed []string, err error) {
	fsys := journal.Root(root)
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && name != ".": // it has just been removed
			return nil
		case err != nil:
			return fmt.Errorf("data directory: %w", err)
		case e.IsDir() && name == Aside:
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		gone := false
		if path.Dir(name) == "tapes" && strings.HasSuffix(name, ".jsonl.new") {
			gone, err = removeUnlocked(fsys, name)
		} else if abandoned(name, e, since) {
			err = root.Remove(name)
			gone = err == nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if gone {
			removed = append(removed, name)
		}
		return err
	})
	return removed, err
}

// abandoned reports whether nobody writes a file any longer that exists only meanwhile.
func abandoned(name string, e fs.DirEntry, since time.Time) bool {
	st, err := e.Info()
	if err != nil {
		return false
	}
	before := st.ModTime().Before(since)
	if m := temporary.FindStringSubmatch(path.Base(name)); m != nil {
		pid, err := strconv.Atoi(m[1])
		switch {
		case err != nil:
			return false
		case pid == os.Getpid(): // of this process, or of one with its id before
			return before
		}
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	for _, pattern := range leftover {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return before
		}
	}
	return false
}

// removeUnlocked removes a tape that was not finished, unless a process is at work on it.
func removeUnlocked(fsys journal.FS, name string) (gone bool, err error) {
	f, err := fsys.Open(name, journal.Append) // with its lock
	if errors.Is(err, journal.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return true, fsys.Remove(name)
}
