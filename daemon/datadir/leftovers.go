package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/proc"
)

// temporary matches the names of files that replace others: .NAME.PID.tmp, of
// [github.com/yaya-ai/yaya/internal/atomicfile].
var temporary = lazyregexp.New(`^\..+\.([1-9][0-9]{0,9})\.tmp$`)

// leftover are names of other files that exist only while something is written, and
// that the daemon alone writes.
var leftover = []string{"keys/.audit.head.tmp", "sessions/*/attachments/.att_*"}

// Tidy removes what a crash has left of files that were being written: only files of
// yaya's own names, and none that a process may be at work on. It may run beside the
// daemon that has had the data directory for itself since then, and beside commands. It
// returns the names of what it removed.
func Tidy(ctx context.Context, root *os.Root, since time.Time) (removed []string, err error) {
	fsys := journal.Root(root)
	folders := []string{"."}
	for len(folders) > 0 {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		err := fsys.Each(folder, func(e journal.Entry) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			name := path.Join(folder, e.Name())
			st, err := e.Info()
			switch {
			case err != nil:
				return gone(err)
			case st.IsDir() && name != Aside:
				folders = append(folders, name)
			case st.Mode().IsRegular():
				is, err := tidy(root, fsys, name, st, since)
				if is {
					removed = append(removed, name)
				}
				return gone(err)
			}
			return nil
		})
		if err != nil && (folder == "." || gone(err) != nil) {
			return removed, fmt.Errorf("data directory: %w", err)
		}
	}
	return removed, nil
}

// gone is the error about a file, nil if it has just been removed.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// tidy removes a file if a crash has left it.
func tidy(root *os.Root, fsys journal.FS, name string, st fs.FileInfo, since time.Time) (removed bool, err error) {
	if path.Dir(name) == "tapes" && strings.HasSuffix(name, ".jsonl.new") {
		return removeUnlocked(fsys, name)
	}
	if !abandoned(name, st, since) {
		return false, nil
	}
	err = root.Remove(name)
	return err == nil, err
}

// abandoned reports whether nobody writes a file any longer that exists only meanwhile.
func abandoned(name string, st fs.FileInfo, since time.Time) bool {
	before := st.ModTime().Before(since)
	if m := temporary().FindStringSubmatch(path.Base(name)); m != nil {
		pid, err := strconv.Atoi(m[1])
		switch {
		case err != nil:
			return false
		case pid == os.Getpid(): // of this process, or of one with its id before
			return before
		}
		return proc.Gone(pid)
	}
	return before && slices.ContainsFunc(leftover, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
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
