package trust

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
)

// ErrDamaged is the cause of approvals that cannot be read. Nothing of their server is
// offered, until a repair has put an empty record in the place of the file.
var ErrDamaged = errors.New("the approvals are damaged")

func (s *Store) damaged(file string, err error) error {
	return worded.Error(ErrDamaged, "its approvals are damaged: %s/%s/%s: %v; mend them: yaya repair, and approve its tools again", s.root.Name(), folder, file, err)
}

// maxNames bounds the names of servers that are remembered.
const maxNames = 4096

// remember keeps the name of a server, which its file's name does not tell; the caller
// holds mu.
func (s *Store) remember(src Source) {
	if len(s.names) >= maxNames {
		clear(s.names)
	}
	s.names[src.file()] = src.Server
}

// blockedBy is the verdict while the approvals of a server cannot be read.
func blockedBy(err error, seen Seen) Verdict {
	v := Verdict{Whole: err.Error(), Blocked: map[string]string{}}
	for name := range seen.Tools {
		v.Blocked[name] = v.Whole
	}
	return v
}

// Damaged returns why the files of approvals cannot be read that are damaged, by name
// below the data directory. It changes none.
func (s *Store) Damaged() (map[string]error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.all(s.parse)
	out := map[string]error{}
	for file, r := range all {
		if r.broken != nil {
			out[folder+"/"+file] = r.broken
		}
	}
	return out, err
}

// Restart puts a record in the place of a damaged file, which the caller has moved away,
// by its name below the data directory. Nothing in it is approved: without it, the
// server would count as new, and its first offer would be approved as a whole.
func (s *Store) Restart(name string, now time.Time) error {
	file, ok := strings.CutPrefix(name, folder+"/")
	if !ok || strings.Contains(file, "/") {
		return fmt.Errorf("%s holds no approvals", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.root.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there", name), err)
	}
	at := now.UTC()
	return s.save(file, record{First: at, Repaired: &at, Tools: map[string]Definition{}, Instructions: new(string)})
}

// Tidy removes the configurations of servers, which earlier versions stored, from all
// files. It reports those that cannot be read.
func (s *Store) Tidy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.records()
	for _, file := range slices.Sorted(maps.Keys(all)) {
		err = errors.Join(err, all[file].broken)
	}
	return err
}
