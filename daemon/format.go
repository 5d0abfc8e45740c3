package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/session"
)

// DataFormat is the format of the data directories that this yaya works with. Format 1 is
// that of directories without a file that says so.
const DataFormat = 2

// Names of files that say what a data directory is.
const (
	formatFile    = "VERSION"
	restoringFile = "RESTORING" // there while a restore is not finished
)

// migration takes a data directory to the next format. It may be run again on a directory
// where it was ended at any point, and before that an older yaya can still work there.
type migration struct {
	to  int
	run func(data *os.Root) error
}

// migrations are all of them, in order.
func migrations() []migration {
	return []migration{
		// The first format that is written down. Versions before it did not mark queues.
		{2, func(data *os.Root) error { return session.MarkQueues(journal.Root(data)) }},
	}
}

// formatOf returns the format of a data directory, and who wrote it; 0 for a directory that
// holds nothing yet.
func formatOf(data *os.Root) (format int, by string, err error) {
	at := filepath.Join(data.Name(), formatFile)
	raw, err := readSmall(data, formatFile)
	if errors.Is(err, fs.ErrNotExist) {
		empty, err := holdsNothing(data)
		if err != nil || empty {
			return 0, "", err
		}
		return 1, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("%s: %w", at, err)
	}
	line, rest, _ := strings.Cut(string(raw), "\n")
	format, err = strconv.Atoi(line)
	words, by, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), ", written by yaya ")
	if err != nil || format < 1 || rest != "" && words != formatWords(format) {
		return 0, "", fmt.Errorf("%s is damaged: restore the directory from a backup (yaya restore); if this yaya worked here last, mend the file: echo %d > %s", at, DataFormat, shellLine(at, nil))
	}
	return format, by, nil
}

func formatWords(format int) string { return fmt.Sprintf("format %d of yaya's data directory", format) }

// writeFormat says which format a data directory has.
func writeFormat(data *os.Root, format int) error {
	text := fmt.Sprintf("%d\n%s, written by yaya %s\n", format, formatWords(format), Version())
	_, err := atomicfile.Write(data, formatFile, []byte(text))
	return err
}

// maxSmall bounds a small file, in bytes.
const maxSmall = 16 << 10

// readSmall reads a small file of a data directory, which is neither a link nor a pipe.
func readSmall(data *os.Root, name string) ([]byte, error) { return readPlain(data, name, maxSmall) }

// readPlain reads up to most bytes of a file that is neither a link nor a pipe.
func readPlain(dir *os.Root, name string, most int64) ([]byte, error) {
	f, err := hostfile.OpenNoLink(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is not a regular file"), err)
	}
	return io.ReadAll(io.LimitReader(f, most)) //nolint:forbidigo // bounded by the reader
}

// holdsNothing reports whether a data directory has at most locks in it.
func holdsNothing(data *os.Root) (bool, error) {
	entries, err := fs.ReadDir(data.FS(), ".")
	if err != nil {
		return false, fmt.Errorf("data directory: %w", err)
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasSuffix(e.Name(), ".lock") && e.Type() != fs.ModeSocket
	}), nil
}

// checkFormat refuses a data directory that this yaya cannot work with, and reports whether
// it has an older format.
func checkFormat(data *os.Root) (older bool, err error) {
	if _, err := data.Lstat(restoringFile); err == nil {
		return false, fmt.Errorf("the data directory %s was being restored from a backup, and that did not end: run yaya restore FILE again, which begins from the start", data.Name())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("data directory: %w", err)
	}
	format, by, err := formatOf(data)
	if err != nil {
		return false, err
	}
	if format > DataFormat {
		return false, newerFormat("the data directory "+data.Name(), format, by)
	}
	return format < DataFormat, nil
}

// newerFormat refuses what a newer yaya has written.
func newerFormat(what string, format int, by string) error {
	if by == "" {
		by = "a newer version"
	} else {
		by = "version " + Printable(by, 60)
	}
	return fmt.Errorf("%s has format %d, and this yaya (%s) works with formats up to %d: run the yaya that wrote it (%s), or restore a backup from before the upgrade into an empty directory (yaya restore FILE --data-dir DIR)", what, format, Version(), DataFormat, by)
}

// upgradeTo takes a data directory to a format; its lock is held. It returns the format
// that the directory had, 0 for one that held nothing.
func upgradeTo(data *os.Root, format int, steps []migration) (from int, err error) {
	if from, _, err = formatOf(data); err != nil || from >= format {
		return from, err
	}
	if from == 0 {
		return 0, writeFormat(data, format)
	}
	for _, m := range steps {
		if m.to <= from {
			continue
		}
		err := m.run(data)
		if err == nil {
			err = writeFormat(data, m.to)
		}
		if err != nil {
			return from, fmt.Errorf("upgrade of the data directory %s to format %d: %w; the yaya that worked there before still does, and the next start of this one tries again", data.Name(), m.to, err)
		}
	}
	return from, nil
}

// current takes a data directory to the present format, unless it has it. While another
// process works there it waits for that one to do it: one of this version does so before
// anything else.
func current(data *os.Root) (notes []string, err error) {
	for patience := time.Now().Add(lockPatience); ; time.Sleep(lockRetry) {
		older, err := checkFormat(data)
		if err != nil || !older {
			return nil, err
		}
		unlock, err := lock(data)
		if errors.Is(err, errRunning) && time.Now().Before(patience) {
			continue
		}
		if errors.Is(err, errRunning) {
			return nil, fmt.Errorf("the data directory %s has an older format, and an older yaya works there: restart it with this version (%s), which upgrades the directory: %w", data.Name(), Version(), err)
		}
		if err != nil {
			return nil, err
		}
		defer unlock()
		return upgrade(data)
	}
}

// currentHeld is current for a process that has the lock of the directory from the program
// before it, which was perhaps an older yaya.
func currentHeld(data *os.Root, have *os.File) (notes []string, err error) {
	older, err := checkFormat(data)
	if err != nil || !older {
		return nil, err
	}
	f, err := relock(data, have)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing is written to it
	return upgrade(data)
}

// upgrade takes a data directory whose lock is held to the present format.
func upgrade(data *os.Root) (notes []string, err error) {
	from, err := upgradeTo(data, DataFormat, migrations())
	if err == nil && from > 0 {
		notes = append(notes, fmt.Sprintf("the data directory %s is upgraded from format %d to %d", data.Name(), from, DataFormat))
	}
	return notes, err
}
