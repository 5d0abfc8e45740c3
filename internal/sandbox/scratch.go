package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Bounds of the folders that sandboxes have as their /tmp.
const (
	maxScratches    = 64 // of one process that no program uses
	maxScratchFiles = 20_000
	maxScratchBytes = 4 * gib
)

// Scratch keeps folders that several sandboxes have as their /tmp, one after the other or
// at the same time, until their owner is done with them. None is removed while a program
// uses it. The folders of a process that was killed are removed by the next one that makes
// a Scratch. Programs in sandboxes write their content: nothing outside a sandbox reads
// it. Its methods are safe for concurrent use.
type Scratch struct {
	top string // where those of all processes are

	mu      sync.Mutex // never held while a folder is measured or removed
	own     string     // of this process, "" without
	lock    *os.File
	folders map[string]*scratchFolder // by name
	made    int
	closed  bool
	failed  error // the first removal that has failed

	removals sync.WaitGroup
}

// scratchFolder is one of them. Its fields are guarded by the mutex of its Scratch.
type scratchFolder struct {
	dir   string
	users int
	asked time.Time
	done  bool // it has no name, and goes with its last user
}

// NewScratch returns one that keeps its folders below top, which no sandbox writes.
func NewScratch(top string) *Scratch {
	return &Scratch{top: top, folders: map[string]*scratchFolder{}}
}

// Names of the folders of processes. One that has a file by which its process holds it
// is named again.
const (
	held       = "held"
	heldPrefix = "of-"
	newPrefix  = "new-"
	newAge     = time.Hour // after which no process is about to hold one
)

// Sweep removes the folders of processes that were killed.
func (s *Scratch) Sweep() error {
	switch info, err := os.Lstat(s.top); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: remove it", s.top)
	}
	lock, err := os.OpenFile(filepath.Join(s.top, "lock"), os.O_RDWR|os.O_CREATE|hostfile.NoFollow|syscall.O_NONBLOCK, 0o600) //nolint:forbidigo // it holds nothing
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if ours, err := flock(lock); err != nil || !ours {
		return err // another process is at it
	}
	all, err := os.ReadDir(s.top)
	if err != nil {
		return err
	}
	var failed error
	for _, e := range all {
		// Where only Landlock keeps a program, it can put a link in the place of these folders:
		// what else lies there is not a Scratch's.
		begun := strings.HasPrefix(e.Name(), newPrefix)
		if !begun && !strings.HasPrefix(e.Name(), heldPrefix) {
			continue
		}
		if info, err := e.Info(); err != nil || !e.IsDir() || begun && time.Since(info.ModTime()) < newAge {
			continue // it has gone meanwhile, or begins
		}
		failed = errors.Join(failed, removeAbandoned(filepath.Join(s.top, e.Name())))
	}
	return failed
}

// flock takes the lock of a file, and reports whether it could.
func flock(f *os.File) (bool, error) {
	err := hostfile.TryLock(f)
	if errors.Is(err, hostfile.ErrLocked) {
		return false, nil
	}
	return err == nil, err
}

// removeAbandoned removes the folders of a process that holds them no longer.
func removeAbandoned(dir string) error {
	lock, err := os.OpenFile(filepath.Join(dir, held), os.O_RDWR|hostfile.NoFollow|syscall.O_NONBLOCK, 0o600) //nolint:forbidigo,gosec // a folder of yaya's
	if errors.Is(err, fs.ErrNotExist) {
		return removeAll(dir) // whoever removed it was killed, too
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if free, err := flock(lock); err != nil || !free {
		return err
	}
	return removeAll(dir)
}

// Use returns the folder of a name, which it makes when there is none, until release is
// called. One that has grown too large is replaced by an empty one, unless another
// program uses it.
func (s *Scratch) Use(name string) (dir string, emptied bool, release func(), err error) {
	f, idle, err := s.use(name)
	if err != nil {
		return "", false, nil, fmt.Errorf("temporary folder of the sandbox: %w", err)
	}
	if idle && tooLarge(f.dir) {
		s.mu.Lock()
		if emptied = f.users == 1 && s.folders[name] == f; emptied {
			s.forget(name)
		}
		s.mu.Unlock()
	}
	if emptied {
		s.release(f)
		if f, _, err = s.use(name); err != nil {
			return "", false, nil, fmt.Errorf("temporary folder of the sandbox: %w", err)
		}
	}
	return f.dir, emptied, sync.OnceFunc(func() { s.release(f) }), nil
}

// use counts a user of a folder. It reports whether the folder existed without
// users.
func (s *Scratch) use(name string) (f *scratchFolder, idle bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errors.New("yaya ends")
	}
	if f = s.folders[name]; f != nil {
		if err := f.open(); err != nil {
			return nil, false, err
		}
		f.users, f.asked = f.users+1, time.Now()
		return f, f.users == 1, nil
	}
	if err := s.hold(); err != nil {
		return nil, false, err
	}
	for len(s.folders) >= maxScratches {
		oldest, found := s.oldest()
		if !found {
			break // programs use them all
		}
		s.forget(oldest)
	}
	s.made++
	f = &scratchFolder{dir: filepath.Join(s.own, strconv.Itoa(s.made)), users: 1, asked: time.Now()}
	if err := f.open(); err != nil {
		return nil, false, err
	}
	s.folders[name] = f
	return f, false, nil
}

// open creates a folder, or restores its mode, which programs may have changed.
func (f *scratchFolder) open() error {
	root, err := os.OpenRoot(filepath.Dir(f.dir))
	if err != nil {
		return err
	}
	name := filepath.Base(f.dir)
	err = root.Mkdir(name, 0o700)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = root.Chmod(name, 0o777|fs.ModeSticky) // as /tmp is; the folder above is this user's alone
	}
	return errors.Join(err, root.Close())
}

func (s *Scratch) release(f *scratchFolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.users--
	s.removeDone(f)
}

// hold makes the folder of this process. It has its name once it is held.
func (s *Scratch) hold() error {
	if s.own != "" {
		return nil
	}
	if err := os.MkdirAll(s.top, 0o700); err != nil { //nolint:forbidigo // a folder of the user's, named by yaya
		return err
	}
	begun, err := os.MkdirTemp(s.top, newPrefix)
	if err != nil {
		return err
	}
	own := filepath.Join(s.top, heldPrefix+strings.TrimPrefix(filepath.Base(begun), newPrefix)+"-"+strconv.Itoa(os.Getpid()))
	lock, err := os.OpenFile(filepath.Join(begun, held), os.O_RDWR|os.O_CREATE, 0o600) //nolint:forbidigo,gosec // it holds nothing
	if err == nil {
		_, err = flock(lock) // nobody else knows it
	}
	if err == nil {
		err = os.Rename(begun, own) //nolint:forbidigo // folders of yaya's, which no program in a sandbox writes
	}
	if err != nil {
		return errors.Join(err, lock.Close(), os.RemoveAll(begun)) //nolint:forbidigo // made above
	}
	s.own, s.lock = own, lock
	return nil
}

// oldest is the folder without a user that was asked for longest ago.
func (s *Scratch) oldest() (name string, found bool) {
	for n, f := range s.folders {
		if f.users == 0 && (!found || f.asked.Before(s.folders[name].asked)) {
			name, found = n, true
		}
	}
	return name, found
}

// Remove removes the folder of a name, if there is one, once no program uses it. A
// later call of Use with that name gets another one.
func (s *Scratch) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(name)
}

func (s *Scratch) forget(name string) {
	if f := s.folders[name]; f != nil {
		delete(s.folders, name)
		f.done = true
		s.removeDone(f)
	}
}

// removeDone removes a folder that nobody can ask for and nobody uses.
func (s *Scratch) removeDone(f *scratchFolder) {
	if !f.done || f.users > 0 || s.closed { // Close removes them all
		return
	}
	s.removals.Go(func() {
		if err := removeAll(f.dir); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = cmp.Or(s.failed, fmt.Errorf("temporary folder of the sandbox: %w", err))
		}
	})
}

// Close removes all folders of this process, and reports what could not be removed
// before. None is made after it.
func (s *Scratch) Close() error {
	s.mu.Lock()
	own, lock := s.own, s.lock
	s.closed, s.own = true, ""
	s.mu.Unlock()
	s.removals.Wait()
	if own == "" {
		return nil
	}
	return errors.Join(s.failed, removeAll(own), lock.Close())
}

// tooLarge reports whether a folder has more files, or larger ones, than it may. It looks
// at no more of them.
func tooLarge(top string) bool {
	files, bytes := 0, int64(0)
	for dirs := []string{top}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		f, err := os.OpenFile(dir, os.O_RDONLY|hostfile.Directory|hostfile.NoFollow|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // bounded
		if err != nil {
			continue // what cannot be looked at is removed in the end
		}
		all, _ := f.ReadDir(maxScratchFiles - files + 1) // as many as there are
		_ = f.Close()
		for _, e := range all {
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dir, e.Name()))
			} else if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
			if files++; files > maxScratchFiles || bytes > maxScratchBytes {
				return true
			}
		}
	}
	return false
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
