package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/unread"
	"github.com/yaya-ai/yaya/internal/workspace"
)

const (
	storeDir  = "folders"
	storeFile = "trusted.json"
	lockFile  = "trusted.lock"
	// maxStore bounds the file, in bytes; maxFolders its entries.
	maxStore   = 8 << 20
	maxFolders = 5_000
)

// ErrUnknown reports that a folder is not trusted, so there is nothing to revoke.
var ErrUnknown = errors.New("the folder is not trusted")

// Record is a folder that somebody trusts.
type Record struct {
	Subject
	Digest string    `json:"digest"` // of the subject when it was shown
	By     string    `json:"by"`     // the actor that answered
	At     time.Time `json:"at"`
}

// Store keeps the trusted folders. It is safe for concurrent use, even by several
// processes.
type Store struct {
	root     *os.Root // the data directory
	guard    *workspace.Guard
	inspect  func(w *workspace.Workspace) ([]Item, error)
	allowed  func(w *workspace.Workspace) []Item // nil without
	onChange []func(dir string)
	audit    func(event, by string, r Record) error
	mu       sync.Mutex // held while the file is changed

	lastMu sync.Mutex
	last   []byte // the file as it was read last, and what it says
	said   stored
}

// NewStore returns the store of a data directory, which the caller closes. It opens folders with
// guard. inspect returns everything in a folder that trusting it lets run.
func NewStore(data *os.Root, guard *workspace.Guard, inspect func(w *workspace.Workspace) ([]Item, error)) *Store {
	return &Store{root: data, guard: guard, inspect: inspect}
}

type stored struct {
	Version int               `json:"version"`
	Folders map[string]Record `json:"folders"`
}

// look returns the record of a folder, by its resolved path.
func (s *Store) look(dir string) (Record, bool, error) {
	all, err := s.load()
	if err != nil {
		return Record{}, false, err
	}
	r, ok := all.Folders[dir]
	return r, ok, nil
}

// List returns the trusted folders, by path.
func (s *Store) List() ([]Record, error) {
	all, err := s.load()
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(all.Folders), func(a, b Record) int { return strings.Compare(a.Folder, b.Folder) }), nil
}

// put records a folder; it replaces an earlier record.
func (s *Store) put(r Record) error {
	return s.update(func(all *stored) error {
		if _, known := all.Folders[r.Folder]; !known && len(all.Folders) >= maxFolders {
			return fmt.Errorf("%d folders are trusted: revoke some first (yaya trust list)", len(all.Folders))
		}
		all.Folders[r.Folder] = r
		return nil
	})
}

// remove deletes the record of a folder.
func (s *Store) remove(dir string) error {
	return s.update(func(all *stored) error {
		if _, known := all.Folders[dir]; !known {
			return fmt.Errorf("%w: %s", ErrUnknown, dir)
		}
		delete(all.Folders, dir)
		return nil
	})
}

// load reads the file; nobody may change what it returns.
func (s *Store) load() (stored, error) {
	all := stored{Version: 1, Folders: map[string]Record{}}
	f, err := s.root.OpenFile(storeDir+"/"+storeFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, s.broken(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxStore+1)) //nolint:forbidigo // bounded by the reader
	if err == nil && len(data) > maxStore {
		err = fmt.Errorf("it has more than %d bytes", maxStore)
	}
	s.lastMu.Lock()
	defer s.lastMu.Unlock()
	if err == nil && s.last != nil && bytes.Equal(data, s.last) { // it is read for each use of a folder
		return s.said, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err == nil && all.Version != 1 {
		err = fmt.Errorf("version %d is not known here", all.Version)
	}
	if err != nil {
		return stored{}, s.broken(err)
	}
	if all.Folders == nil {
		all.Folders = map[string]Record{}
	}
	s.last, s.said = data, all
	return all, nil
}

func (s *Store) broken(err error) error {
	remedy := " (remove it to start over)"
	if unread.Is(err) { // it may be whole
		remedy = ""
	}
	return fmt.Errorf("no folder is trusted while %s/%s/%s cannot be read%s: %w", s.root.Name(), storeDir, storeFile, remedy, err)
}

// update changes the file in one step, one process at a time.
func (s *Store) update(change func(*stored) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.root.MkdirAll(storeDir, 0o700); err != nil {
		return err
	}
	dir, err := s.root.OpenRoot(storeDir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	lock, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := hostfile.Lock(lock); err != nil {
		return fmt.Errorf("lock %s/%s: %w", storeDir, lockFile, err)
	}
	all, err := s.load()
	if err != nil {
		return err
	}
	all.Folders = maps.Clone(all.Folders)
	if err := change(&all); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(dir, storeFile, append(data, '\n'))
	return err
}
