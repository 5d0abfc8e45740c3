// Package logfile writes a log into a file that cannot grow without bound: a file that has
// reached its size becomes NAME.1, the file that was NAME.1 becomes NAME.2, and the oldest
// is removed. A file that something else has moved away or removed, such as logrotate, is
// noticed within a second of lines, and a new one begins.
package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Kept is how many full files are kept beside the one that is written.
const Kept = 3

// File is a log file. Its methods are safe for concurrent use.
type File struct {
	path  string
	limit int64 // bytes of one file

	mu     sync.Mutex
	f      *os.File // nil after Close
	size   int64
	lost   error     // why there is no file in the place of one that went
	looked time.Time // when the file was last compared with its path
}

// lookEvery is how often a file that is written is compared with its path.
const lookEvery = time.Second

// Open opens the log file at an absolute path, and creates it with mode 0600 if it does not
// exist. A file that is rotated at limit bytes is at most one line longer. It refuses links,
// and files that do not look like a log: a wrong path must not append to somebody's file.
func Open(path string, limit int64) (*File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("log file %q: the path must be absolute", path)
	}
	l := &File{path: filepath.Clean(path), limit: limit}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// Check reports why [Open] would fail, without creating the file.
func Check(path string) error {
	l := &File{path: filepath.Clean(path)}
	if !filepath.IsAbs(path) {
		return fmt.Errorf("log file %q: the path must be absolute", path)
	}
	err := l.openWith(0)
	if err == nil {
		return l.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(l.path)
	if err := hostfile.CheckMake(dir); err != nil {
		return fmt.Errorf("log file %s: yaya cannot create it: %w", l.path, err)
	}
	return nil
}

// open opens the file for appending, and creates it. Its errors name the file.
func (l *File) open() error { return l.openWith(os.O_CREATE) }

func (l *File) openWith(flag int) error {
	// Without O_NONBLOCK, a FIFO would block until it has a reader.
	f, err := hostfile.OpenFile(l.path, flag|os.O_RDWR|hostfile.Append|hostfile.NoFollow|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = ours(f, info)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("log file %s: %w", l.path, err), f.Close())
	}
	l.f, l.size = f, info.Size()
	return nil
}

// Reopen goes on in the file that has the path now, and creates one if there is none. After
// an error, Write fails until a file can be opened there.
func (l *File) Reopen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return fmt.Errorf("log file %s: %w", l.path, os.ErrClosed)
	}
	return l.reopen()
}

// reopen is Reopen; mu is held.
func (l *File) reopen() error {
	old := l.f
	if l.lost = l.open(); l.lost != nil {
		return l.lost
	}
	if err := old.Close(); err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	return nil
}

// look reopens the file if its path no longer leads to it; mu is held.
func (l *File) look() error {
	now := time.Now()
	if now.Sub(l.looked) < lookEvery {
		return l.lost
	}
	l.looked = now
	open, err := l.f.Stat()
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	l.size = open.Size()                                                                         // something else may have cut it
	if there, err := os.Lstat(l.path); l.lost == nil && err == nil && os.SameFile(open, there) { //nolint:forbidigo // the user chose the path
		return nil
	}
	return l.reopen()
}

// ours reports why a file is not a log of yaya's.
func ours(f *os.File, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if info.Size() == 0 {
		return nil
	}
	first := make([]byte, len(begin))
	if _, err := f.ReadAt(first, 0); err != nil || string(first) != begin {
		return errors.New("it exists and is not a log of yaya: choose another name")
	}
	return nil
}

// begin is how every line of a log begins.
const begin = `{"level":"`

// Write appends a line, and rotates the files before it if the line does not fit. A line
// that cannot be written whole is an error.
func (l *File) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return 0, fmt.Errorf("log file %s: %w", l.path, os.ErrClosed)
	}
	if err := l.look(); err != nil {
		return 0, err
	}
	if l.size > 0 && l.size+int64(len(line)) > l.limit {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := hostfile.WriteEnd(l.f, line)
	if err != nil {
		// The caller writes the line elsewhere, and the next one must not follow half of it.
		if info, serr := l.f.Stat(); n > 0 && serr == nil {
			err = errors.Join(err, l.f.Truncate(info.Size()-int64(n)))
		}
		return 0, fmt.Errorf("log file: %w", err)
	}
	l.size += int64(n)
	return n, nil
}

// rotate begins a new file; mu is held. After an error the old file is written on.
func (l *File) rotate() error {
	// The next file is there before any is renamed: without one, each line that does not fit
	// would push out a full file.
	next := &File{path: l.path + ".new"}
	if err := next.open(); err != nil {
		return err
	}
	for i := Kept; i > 0; i-- {
		if err := os.Rename(l.numbered(i-1), l.numbered(i)); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:forbidigo // beside that path
			return errors.Join(fmt.Errorf("log file: %w", err), next.Close())
		}
	}
	if err := os.Rename(next.path, l.path); err != nil { //nolint:forbidigo // beside that path
		return errors.Join(fmt.Errorf("log file: %w", err), next.Close())
	}
	old := l.f
	l.f, l.size = next.f, next.size
	if err := old.Close(); err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	return nil
}

// numbered returns the path of a full file; 0 is the one that is written.
func (l *File) numbered(i int) string {
	if i == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, i)
}

// Close closes the file. Later calls do nothing.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}
