package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// maxFile bounds the file of a sum.
const maxFile = 4 << 10

// kept is a sum as its file has it.
type kept struct {
	Day   string `json:"day,omitempty"` // of the sum of a day
	Nanos int64  `json:"usd_nanos"`
}

// on returns the sum of a day: nothing if that is a new one. A clock that was set back makes none new.
func (k kept) on(day string) kept {
	if day > k.Day {
		return kept{Day: day}
	}
	return k
}

// sum is a sum in a file.
type sum struct {
	root   *os.Root
	name   string
	folder string // that the file is in, which is made if need be; "" for the root
	lock   string // a file that is locked meanwhile; "" if no other process writes this one

	mu         sync.Mutex
	day        string
	added      int64 // on that day, and not yet in the file
	rev, saved int   // how often something was added, and how much of that is in the file

	writing sync.Mutex // held while the file is written: what is added meanwhile goes with the next write
}

// add adds to the sum, and returns once the file has it.
func (s *sum) add(n int64, day string) error {
	s.mu.Lock()
	if day > s.day {
		s.day, s.added = day, 0
	}
	s.added = min(s.added, maxSum-n) + n
	s.rev++
	rev := s.rev
	s.mu.Unlock()
	return s.flush(rev)
}

// now returns the sum, with what could not be written before.
func (s *sum) now(day string) (kept, error) {
	s.mu.Lock()
	rev := s.rev
	s.mu.Unlock()
	if err := s.flush(rev); err != nil {
		return kept{}, err
	}
	at, err := s.read()
	return at.on(day), err
}

// written reports whether the file has all that was added.
func (s *sum) written() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved >= s.rev
}

// flush returns once the file has what was added up to a revision.
func (s *sum) flush(rev int) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	n, day, now, done := s.added, s.day, s.rev, s.saved >= rev
	s.mu.Unlock()
	if done {
		return nil
	}
	if err := s.change(n, day); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved = now; s.day == day {
		s.added -= n
	}
	return nil
}

// change adds to the sum in the file.
func (s *sum) change(n int64, day string) (err error) {
	if s.folder != "" {
		if err := s.root.MkdirAll(s.folder, 0o700); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if s.lock != "" {
		lock, err := s.root.OpenFile(s.lock, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Close() }() // unlocks
		if err := hostfile.Lock(lock); err != nil {
			return fmt.Errorf("%s: %w", s.lock, err)
		}
	}
	at, err := s.read()
	if err != nil {
		return err
	}
	at = at.on(day)
	at.Nanos = min(at.Nanos, maxSum-n) + n
	raw, err := json.Marshal(at)
	if err != nil {
		return err
	}
	dir := s.root
	if s.folder != "" {
		if dir, err = s.root.OpenRoot(s.folder); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
	}
	_, err = atomicfile.Write(dir, file, append(raw, '\n'))
	return err
}

// read reads the file; without one, nothing was spent.
func (s *sum) read() (at kept, err error) {
	f, err := hostfile.OpenNoLink(s.root, s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, nil
	}
	if err != nil {
		return kept{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1)) //nolint:forbidigo // bounded
	if err != nil {
		return kept{}, err
	}
	if len(raw) > maxFile || json.Unmarshal(raw, &at) != nil || at.Nanos < 0 || at.Nanos > maxSum || !plain(at.Day) {
		return kept{}, fmt.Errorf("%s is damaged (remove it to begin at $0)", s.name)
	}
	return at, nil
}

// plain reports whether a text is a day, or empty.
func plain(day string) bool {
	_, err := time.Parse(time.DateOnly, day)
	return day == "" || err == nil
}
