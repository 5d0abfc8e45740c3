package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Bounds of a folder that sandboxes have as their /tmp.
const (
	maxScratches    = 64 // of one process
	maxScratchFiles = 100_000
	maxScratchBytes = 4 * gib
)

// Scratch keeps folders that several sandboxes have as their /tmp, one after the other or
// at the same time, until their owner is done with them. The folders of a process that was
// killed are removed by the next one that makes a Scratch. What is in them was written by
// programs in sandboxes: nothing outside of one reads it. Its methods are safe for
// concurrent use.
type Scratch struct {
	top string // where those of all processes are

	mu     sync.Mutex
	own    string // of this process, "" without
	lock   *os.File
	used   map[string]time.Time // by name
	closed bool
}

// NewScratch returns one that keeps its folders below top, which no sandbox writes.
func NewScratch(top string) *Scratch { return &Scratch{top: top, used: map[string]time.Time{}} }

// held is the file by which a process holds its folders.
const held = "held"

// Sweep removes what processes have left that were killed.
func (s *Scratch) Sweep() error {
	if _, err := os.Lstat(s.top); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.alone()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := os.ReadDir(s.top)
	if err != nil {
		return err
	}
	var failed error
	for _, e := range all {
		if dir := filepath.Join(s.top, e.Name()); e.IsDir() {
			failed = errors.Join(failed, removeAbandoned(dir))
		}
	}
	return failed
}

// removeAbandoned removes the folders of a process that holds them no longer.
func removeAbandoned(dir string) error {
	lock, err := os.OpenFile(filepath.Join(dir, held), os.O_RDWR|os.O_CREATE, 0o600) //nolint:forbidigo,gosec // a folder of yaya's
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor fits
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	return removeAll(dir)
}

// alone keeps other processes from making and removing folders meanwhile.
func (s *Scratch) alone() (unlock func(), err error) {
	if err := os.MkdirAll(s.top, 0o700); err != nil { //nolint:forbidigo // a folder of the user's, named by yaya
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.top, "lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:forbidigo // it holds nothing
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a descriptor fits
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// Folder returns the folder of a name, which it makes when there is none. One that has
// grown too large is emptied.
func (s *Scratch) Folder(name string) (dir string, emptied bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", false, errors.New("temporary folder of the sandbox: yaya ends")
	}
	if err := s.hold(); err != nil {
		return "", false, fmt.Errorf("temporary folder of the sandbox: %w", err)
	}
	if _, known := s.used[name]; !known && len(s.used) >= maxScratches {
		if err := s.remove(s.oldest()); err != nil {
			return "", false, err
		}
	}
	s.used[name] = time.Now()
	dir = s.path(name)
	if tooLarge(dir) {
		if err := removeAll(dir); err != nil {
			return "", false, fmt.Errorf("temporary folder of the sandbox: %w", err)
		}
		emptied = true
	}
	err = os.Mkdir(dir, 0o700) //nolint:forbidigo // a folder of yaya's
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = os.Chmod(dir, 0o777|fs.ModeSticky) //nolint:forbidigo,gosec // as /tmp is; the folder above is this user's alone
	}
	if err != nil {
		return "", false, fmt.Errorf("temporary folder of the sandbox: %w", err)
	}
	return dir, emptied, nil
}

// hold makes the folder of this process.
func (s *Scratch) hold() error {
	if s.own != "" {
		return nil
	}
	unlock, err := s.alone()
	if err != nil {
		return err
	}
	defer unlock()
	own, err := os.MkdirTemp(s.top, "of-")
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(own, held), os.O_RDWR|os.O_CREATE, 0o600) //nolint:forbidigo,gosec // it holds nothing
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) //nolint:gosec // a descriptor fits
	}
	if err != nil {
		return errors.Join(err, lock.Close(), os.RemoveAll(own)) //nolint:forbidigo // made above
	}
	s.own, s.lock = own, lock
	return nil
}

func (s *Scratch) path(name string) string {
	return filepath.Join(s.own, fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:24])
}

func (s *Scratch) oldest() (name string) {
	for n, at := range s.used {
		if name == "" || at.Before(s.used[name]) {
			name = n
		}
	}
	return name
}

// Remove removes the folder of a name, if there is one.
func (s *Scratch) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(name)
}

func (s *Scratch) remove(name string) error {
	if _, known := s.used[name]; !known {
		return nil
	}
	delete(s.used, name)
	if err := removeAll(s.path(name)); err != nil {
		return fmt.Errorf("temporary folder of the sandbox: %w", err)
	}
	return nil
}

// Close removes all folders of this process. None is made after it.
func (s *Scratch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.own == "" {
		return nil
	}
	err := removeAll(s.own)
	s.own = ""
	return errors.Join(err, s.lock.Close())
}

// tooLarge reports whether a folder has more files, or larger ones, than it may.
func tooLarge(dir string) bool {
	files, bytes := 0, int64(0)
	large := false
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what cannot be looked at is removed in the end
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if files++; files > maxScratchFiles || bytes > maxScratchBytes {
			large = true
			return fs.SkipAll
		}
		return nil
	})
	return large
}

// removeAll removes a folder that programs in sandboxes have written, also one that they
// took the right from to be looked into.
func removeAll(dir string) error {
	err := os.RemoveAll(dir) //nolint:forbidigo,gosec // a folder of yaya's
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:forbidigo,gosec // a folder of yaya's
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." {
			err = root.Chmod(name, 0o700) // before it is read
		}
		return err
	})
	return errors.Join(err, root.Close(), os.RemoveAll(dir)) //nolint:forbidigo,gosec // a folder of yaya's
}
