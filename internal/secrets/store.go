package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/worded"
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

// ErrDamaged is the cause of an error about a file that was read, and is not what yaya wrote
// with its key. Without it, an error of [Store.Load] says nothing about the file: the key may
// be missing.
var ErrDamaged = errors.New("the sealed file is damaged")

// ErrNone is the error about a missing secret.
var ErrNone = errors.New("it is not set")

// Unfit is the error about a name or a value that cannot be kept, and about one secret or
// record too many. Other errors are about files and keys.
type Unfit struct{ text string }

func (e *Unfit) Error() string { return e.text }

func unfit(format string, args ...any) error { return &Unfit{fmt.Sprintf(format, args...)} }

// lockPatience is how long a change waits for another one, and look how often
// it tries: a lock of the system cannot be waited for with a deadline.
const (
	lockPatience = 30 * time.Second
	look         = 10 * time.Millisecond
)

const maxName = 128

// CheckName returns an error if a name is not valid for a secret.
func CheckName(name string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, odd) {
		return unfit("%q cannot be the name of a secret, which has 1 to %d letters, digits, dots, dashes and underscores", clip(name), maxName)
	}
	return nil
}

// clip is how much of a name or key that is unfit is said.
func clip(s string) string { return cut.Text(s, 80) }

// CheckValue returns an error if a value is not valid for a secret. The error does not
// contain the value.
func CheckValue(value string) error {
	switch {
	case value == "":
		return unfit("the value is empty")
	case len(value) < Shortest:
		return unfit("the value has %d bytes, %d at least: a shorter one cannot be hidden in what programs print, since it would hide ordinary words", len(value), Shortest)
	case len(value) > Longest:
		return unfit("the value has %d bytes, %d at most: a longer one cannot be hidden in what programs print; keep it in a file, and give the program its path", len(value), Longest)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return unfit("the value is not text (UTF-8 without NUL): give it in base64")
	case masked.Monotonous(value):
		return unfit("the value has fewer than %d different characters: it cannot be hidden in what programs print, since it would hide lines and placeholders", masked.Few)
	case masked.Phrase(value):
		return unfit("the value is a few ordinary words: hidden in what programs print, it would hide a part of other texts, and of yaya's own; choose a longer one, or one without spaces")
	case masked.Is(value):
		return unfit("the value has %s in it, which stands for a secret that is hidden: give the secret itself", masked.Mask)
	}
	return nil
}

// Options say where secrets are. Data is required, and its caller closes it.
type Options struct {
	Data *os.Root
	// KeyDir is the folder of secrets.key, which is made when it is needed.
	KeyDir string
	// Passphrase is the path of a file with the passphrase, or ""; the file may be a
	// pipe.
	Passphrase string
	// Keychain, unless nil, is preferred over a file for a new key.
	Keychain Keychain
	// Learn is called with all values, by name, when they are read and before one is
	// set, and before anybody gets one. It may be called by several goroutines at once.
	// Optional.
	Learn func(values map[string]string)
	// Now tells the time; nil is time.Now.
	Now func() time.Time

	cost kdf // of a passphrase, in tests that derive many keys
}

// Store is the secrets of a data folder.
type Store struct {
	o Options

	// mu is held for moments only: nothing that waits for a disk, a program or a person
	// is done with it, since every start of a server looks up its secrets.
	mu       sync.Mutex
	stamp    stamp
	read     *document // what the file held; nil before it was read
	keys     map[string][]byte
	fetching map[string]*fetch

	phrasing sync.Mutex // held while the passphrase is read
	phrase   []byte
}

// fetch is a key that is being fetched. Key and err are set when done is closed.
type fetch struct {
	done chan struct{}
	key  []byte
	err  error

	cancel  context.CancelFunc
	waiting int // how many want it; under the store's mu
}

// Info is the public part of a secret.
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
	return &Store{o: o, keys: map[string][]byte{}, fetching: map[string]*fetch{}}
}

// stamp tells whether a file is the one that was read.
type stamp struct {
	mod  time.Time
	size int64
	ino  uint64
}

func stampOf(st fs.FileInfo) stamp {
	out := stamp{st.ModTime(), st.Size(), hostfile.Inode(st)}
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
	d, _, err := s.current(context.Background())
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
	d, _, err := s.current(context.Background())
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
	return s.put(name, value, true)
}

// Add gives a secret a value unless there is one of that name, which stays. It reports whether
// it did.
func (s *Store) Add(name, value string) (added bool, err error) {
	there, err := s.put(name, value, false)
	return !there && err == nil, err
}

// put reports whether there was a secret of that name, and replaces it if replace is set.
func (s *Store) put(name, value string, replace bool) (there bool, err error) {
	if err := errors.Join(CheckName(name), CheckValue(value)); err != nil {
		return false, err
	}
	return there, s.change(func(d *document) (bool, error) {
		var old secret
		old, there = d.Secrets[name]
		switch {
		case there && (!replace || old.Value == value):
			return false, nil
		case !there && len(d.Secrets) >= maxSecrets:
			return false, unfit("there are %d secrets, %d at most", len(d.Secrets), maxSecrets)
		}
		d.Secrets[name] = secret{value, s.o.Now().UTC().Truncate(time.Second)}
		return true, nil
	})
}

// RemoveValue deletes a secret if it has that value: another one was set by somebody else.
func (s *Store) RemoveValue(name, value string) error {
	return s.change(func(d *document) (bool, error) {
		if d.Secrets[name].Value != value {
			return false, nil
		}
		delete(d.Secrets, name)
		return true, nil
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
	d, _, err := s.current(context.Background())
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
		return unfit("the record %q has %d bytes, %d at most", clip(key), len(data), maxRecord)
	}
	return s.change(func(d *document) (bool, error) {
		if _, there := d.Records[key]; !there && len(d.Records) >= maxRecords {
			return false, unfit("there are %d records, %d at most", len(d.Records), maxRecords)
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

// Load reads the secrets and has them learnt. It waits for the key until ctx ends.
func (s *Store) Load(ctx context.Context) error {
	_, _, err := s.current(ctx)
	return err
}

// current returns what the file holds, which is not changed, and its header; nothing and
// nil without a file. It waits for no change, only for a key that nobody has fetched yet.
func (s *Store) current(ctx context.Context) (*document, *header, error) {
	st, err := s.o.Data.Lstat(File)
	if errors.Is(err, fs.ErrNotExist) {
		s.keep(nil, stamp{})
		return newDocument(), nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sealed file: %w", err)
	}
	if d := s.kept(stampOf(st)); d != nil {
		return d, &d.header, nil
	}
	data, st, err := readRegular(s.o.Data, File, maxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Path(), err)
	}
	h, box, err := parse(data)
	if err != nil {
		return nil, nil, s.damaged(err)
	}
	key, err := s.keyOf(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	d, err := open(h, box, key)
	if err != nil {
		return nil, nil, s.damaged(err)
	}
	d.header = h
	s.learn(d)
	s.keep(d, stampOf(st))
	return d, &d.header, nil
}

// kept returns what was read of the file with a stamp, nil if that is another one.
func (s *Store) kept(is stamp) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stamp != is {
		return nil
	}
	return s.read
}

func (s *Store) keep(d *document, of stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.stamp = d, of
}

// damaged is the error about a file that cannot be opened with the right key.
func (s *Store) damaged(err error) error {
	if errors.Is(err, errNewer) {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	return worded.Error(ErrDamaged, "%s is damaged or was changed by something other than yaya: %v; restore it from a backup, or move it away and set the secrets again (yaya secret set NAME, yaya mcp login SERVER)", s.Path(), err)
}

// learn tells the values to whoever hides them, all at once: each call has its price.
func (s *Store) learn(d *document) {
	if s.o.Learn == nil || len(d.Secrets) == 0 {
		return
	}
	values := make(map[string]string, len(d.Secrets))
	for name, x := range d.Secrets {
		values[name] = x.Value
	}
	s.o.Learn(values)
}

// change edits what the file holds, under a lock that other processes and goroutines
// respect; edit reports whether there is something to write.
func (s *Store) change(edit func(*document) (bool, error)) error {
	ctx := context.Background() // every wait has its own end
	if err := s.prepare(ctx); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now, h, err := s.current(ctx)
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
	nh, key, err := s.sealWith(ctx, h)
	if err != nil {
		return err
	}
	return s.replace(next, nh, key)
}

// prepare waits for the key of the file and for the passphrase, so that nobody is locked
// out for that long.
func (s *Store) prepare(ctx context.Context) error {
	_, h, err := s.current(ctx)
	if err == nil && s.o.Passphrase != "" && (h == nil || h.Key != keyPassphrase) {
		_, err = s.passphrase(ctx)
	}
	return err
}

// lock makes its caller the only one that changes the file, until unlock is called.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	f, err := s.o.Data.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sealed file: %w", err)
	}
	late := time.NewTimer(lockPatience)
	defer late.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	for {
		err := hostfile.TryLock(f)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, hostfile.ErrLocked):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", s.lockPath(), err), f.Close())
		}
		select {
		case <-again.C:
		case <-late.C:
			return nil, errors.Join(fmt.Errorf("the secrets are not changed: another change has held the lock %s for %v: wait until it has ended and try again, or end the process that makes it", s.lockPath(), lockPatience), f.Close())
		case <-ctx.Done():
			return nil, errors.Join(worded.Error(ctx.Err(), "the secrets are not changed: another change holds the lock %s: wait until it has ended and try again", s.lockPath()), f.Close())
		}
	}
}

func (s *Store) lockPath() string { return s.o.Data.Name() + "/" + lockFile }

// replace writes a document in the place of the file; the lock is held.
func (s *Store) replace(next *document, h header, key []byte) error {
	next.header = h
	data, err := seal(h, next, key)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	s.learn(next)
	// The next call reads the content that has reached the disk.
	s.keep(nil, stamp{})
	if _, err := atomicfile.Write(s.o.Data, File, data); err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	return nil
}
