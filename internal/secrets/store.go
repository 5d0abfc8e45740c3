package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/masked"
)

// Names of the files in the data folder.
const (
	File     = "secrets.sealed"
	lockFile = "secrets.lock"
)

// Bounds of a value, in bytes: those between which a value is hidden in what is shown.
const (
	Shortest = masked.Shortest
	Longest  = masked.Longest
)

// Bounds of what a file holds.
const (
	maxSecrets = 1024
	maxRecords = 4096
	maxRecord  = 256 << 10
)

// ErrNone is the error about a secret that is not there.
var ErrNone = errors.New("it is not set")

const maxName = 128

// CheckName reports why a name cannot be that of a secret.
func CheckName(name string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%q cannot be the name of a secret: 1 to %d letters, digits, dots, dashes and underscores", clip(name), maxName)
	}
	return nil
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// CheckValue reports why a value cannot be that of a secret. It does not say the value.
func CheckValue(value string) error {
	switch {
	case value == "":
		return errors.New("the value is empty")
	case len(value) < Shortest:
		return fmt.Errorf("the value has %d bytes, %d at least: a shorter one cannot be hidden in what programs print, since it would hide ordinary words", len(value), Shortest)
	case len(value) > Longest:
		return fmt.Errorf("the value has %d bytes, %d at most: a longer one cannot be hidden in what programs print; keep it in a file, and give the program its path", len(value), Longest)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return errors.New("the value is not text (UTF-8 without NUL): give it in base64")
	case masked.Is(value):
		return fmt.Errorf("the value has %s in it, which stands for a secret that is hidden: give the secret itself", masked.Mask)
	}
	return nil
}

// Options say where secrets are. Data is required, and its caller closes it.
type Options struct {
	Data *os.Root
	// KeyDir is the folder of secrets.key, which is made when it is needed.
	KeyDir string
	// Passphrase is the path of a file with the passphrase; "" is none. It may be a pipe.
	Passphrase string
	// Keychain is asked for a new key before one is put into a file; nil is none.
	Keychain Keychain
	// Learn is told every value that is read or set, before anybody gets it. Optional.
	Learn func(name, value string)
	// Now tells the time; nil is time.Now.
	Now func() time.Time

	cost kdf // of a passphrase, in tests that derive many keys
}

// Store is the secrets of a data folder.
type Store struct {
	o Options

	mu     sync.Mutex
	stamp  stamp
	read   *document // what the file held; nil before it was read
	keys   map[string][]byte
	phrase []byte
}

// Info is what may be shown of a secret.
type Info struct {
	Name string    `json:"name"`
	Set  time.Time `json:"set_at"`
}

// New returns the secrets of a data folder. It reads nothing.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.cost.Passes == 0 {
		o.cost = recommended
	}
	return &Store{o: o, keys: map[string][]byte{}}
}

// stamp tells whether a file is the one that was read.
type stamp struct {
	mod  time.Time
	size int64
	ino  uint64
}

func stampOf(st fs.FileInfo) stamp {
	out := stamp{mod: st.ModTime(), size: st.Size()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		out.ino = sys.Ino
	}
	return out
}

// Path is the path of the sealed file.
func (s *Store) Path() string { return s.o.Data.Name() + "/" + File }

// Get returns the value of a secret. Without one of that name the error wraps [ErrNone]
// and says what to do.
func (s *Store) Get(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	d, err := s.load()
	if err != nil {
		return "", err
	}
	e, ok := d.Secrets[name]
	if !ok {
		return "", fmt.Errorf("the secret %s has no value: %w (set it with: yaya secret set %s)", name, ErrNone, name)
	}
	return e.Value, nil
}

// List returns what may be shown of all secrets, by name.
func (s *Store) List() ([]Info, error) {
	d, err := s.load()
	if err != nil {
		return nil, err
	}
	out := []Info{}
	for _, name := range slices.Sorted(maps.Keys(d.Secrets)) {
		out = append(out, Info{name, d.Secrets[name].Set})
	}
	return out, nil
}

// Set gives a secret a value. It reports whether there was one of that name.
func (s *Store) Set(name, value string) (replaced bool, err error) {
	if err := errors.Join(CheckName(name), CheckValue(value)); err != nil {
		return false, err
	}
	return replaced, s.change(func(d *document) (bool, error) {
		old, there := d.Secrets[name]
		replaced = there
		if !there && len(d.Secrets) >= maxSecrets {
			return false, fmt.Errorf("there are %d secrets, %d at most", len(d.Secrets), maxSecrets)
		}
		d.Secrets[name] = secret{value, s.o.Now().UTC().Truncate(time.Second)}
		return !there || old.Value != value, nil
	})
}

// Remove deletes a secret. It reports whether there was one of that name.
func (s *Store) Remove(name string) (found bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	return found, s.change(func(d *document) (bool, error) {
		_, found = d.Secrets[name]
		delete(d.Secrets, name)
		return found, nil
	})
}

// Record returns what is kept under a key for a part of yaya itself, and when it was
// written; nil without one. No reference reaches a record.
func (s *Store) Record(key string) ([]byte, time.Time, error) {
	d, err := s.load()
	if err != nil {
		return nil, time.Time{}, err
	}
	r, ok := d.Records[key]
	if !ok {
		return nil, time.Time{}, nil
	}
	return bytes.Clone(r.Data), r.Changed, nil
}

// PutRecord keeps data under a key.
func (s *Store) PutRecord(key string, data []byte) error {
	if key == "" || len(key) > 200 || len(data) > maxRecord {
		return fmt.Errorf("the record %q has %d bytes, %d at most", clip(key), len(data), maxRecord)
	}
	return s.change(func(d *document) (bool, error) {
		if _, there := d.Records[key]; !there && len(d.Records) >= maxRecords {
			return false, fmt.Errorf("there are %d records, %d at most", len(d.Records), maxRecords)
		}
		d.Records[key] = record{bytes.Clone(data), s.o.Now().UTC()}
		return true, nil
	})
}

// DeleteRecord deletes what is kept under a key, and reports whether there was something.
func (s *Store) DeleteRecord(key string) (found bool, err error) {
	return found, s.change(func(d *document) (bool, error) {
		_, found = d.Records[key]
		delete(d.Records, key)
		return found, nil
	})
}

// load returns what the file holds; nothing without one. The result is not changed.
func (s *Store) load() (*document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, _, err := s.current()
	return d, err
}

// current returns what the file holds and its header, nil without a file; mu is held.
func (s *Store) current() (*document, *header, error) {
	st, err := s.o.Data.Lstat(File)
	if errors.Is(err, fs.ErrNotExist) {
		s.read, s.stamp = nil, stamp{}
		return newDocument(), nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the secrets: %w", err)
	}
	if s.read != nil && s.stamp == stampOf(st) {
		return s.read, &s.read.header, nil
	}
	data, st, err := readRegular(s.o.Data, File, maxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Path(), err)
	}
	h, box, err := parse(data)
	if err != nil {
		return nil, nil, s.damaged(err)
	}
	key, err := s.keyOf(h)
	if err != nil {
		return nil, nil, err
	}
	d, err := open(h, box, key)
	if err != nil {
		return nil, nil, s.damaged(err)
	}
	d.header = h
	s.learn(d)
	s.read, s.stamp = d, stampOf(st)
	return d, &d.header, nil
}

// damaged is the error about a file that cannot be opened with the right key.
func (s *Store) damaged(err error) error {
	if errors.Is(err, errNewer) {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	return fmt.Errorf("%s is damaged or was changed by something other than yaya: %w; restore it from a backup, or move it away and set the secrets again (yaya secret set NAME, yaya mcp login SERVER)", s.Path(), err)
}

// learn tells the values to whoever hides them.
func (s *Store) learn(d *document) {
	if s.o.Learn == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.Secrets)) {
		s.o.Learn(name, d.Secrets[name].Value)
	}
}

// change edits what the file holds, under a lock that other processes respect; edit
// reports whether there is something to write.
func (s *Store) change(edit func(*document) (bool, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, err := s.o.Data.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the secrets: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a descriptor fits
		return fmt.Errorf("the secrets: lock %s: %w", lockFile, err)
	}
	now, h, err := s.current()
	if err != nil {
		return err
	}
	next := now.clone()
	if write, err := edit(next); err != nil || !write {
		return err
	}
	if h == nil && next.empty() {
		return nil
	}
	nh, key, err := s.sealWith(h)
	if err != nil {
		return err
	}
	next.header = nh
	data, err := seal(nh, next, key)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	s.learn(next)
	// Who asks next reads what has reached the disk.
	s.read, s.stamp = nil, stamp{}
	if _, err := atomicfile.Write(s.o.Data, File, data); err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	return nil
}
