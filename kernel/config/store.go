package config

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
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

const (
	storeFile = "config.json"
	lockFile  = "config.lock"
)

// Origin is the layer that a value comes from.
type Origin string

// The layers, the weakest first.
const (
	FromDefault Origin = "default"
	FromFile    Origin = "file"
	FromStore   Origin = "set"
	FromEnv     Origin = "environment"
	FromFlag    Origin = "flag"
)

// Options are the layers of a store. Root is required; the live part is its
// config.json, 0600.
type Options struct {
	Root     *os.Root
	File     []byte   // the TOML file's content, nil if there is none
	FileName string   // for error messages
	Env      []string // as os.Environ returns it
	Flags    map[string]string
}

// Store holds the configuration.
type Store struct {
	root  *os.Root
	bus   *bus.Bus
	vault Vault // nil when there is none

	environ    []string // what env is made of
	env, flags values

	mu    sync.Mutex // held while the live part changes
	cache sync.RWMutex
	file  values
	live  values
	stamp stamp
	count uint64 // of changes so far
	begun values // the values in force of the keys that are read at the start; nil before Begin

	providers func() (map[string]Instance, error) // see instances
}

// stamp identifies the version of the live part's file that was read.
type stamp struct {
	mod  time.Time
	size int64
	ino  uint64
}

// Open reads all layers. An invalid layer is an error that names the place.
func Open(o Options) (*Store, error) {
	s := &Store{root: o.Root, environ: o.Env, flags: values{}}
	s.providers = Derive(s, instances)
	var err error
	if s.live, s.stamp, err = s.read(); err != nil {
		return nil, err
	}
	if s.file, err = parseTOML(o.FileName, o.File); err != nil {
		return nil, err
	}
	if s.env, err = s.fromEnv(s.file); err != nil {
		return nil, err
	}
	for k, v := range o.Flags {
		s.flags[k] = ParseValue(k, v)
		if err := CheckValue(k, s.flags[k]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// fromEnv reads the environment beside a file.
func (s *Store) fromEnv(file values) (values, error) {
	return fromEnv(s.environ, func(yield func(string) bool) {
		for _, layer := range []values{file, s.live} {
			for k := range layer {
				yield(k)
			}
		}
	})
}

// Bind gives the store the bus that it announces changes on.
func (s *Store) Bind(b *bus.Bus) { s.bus = b }

// document is the live part as it is stored.
type document struct {
	Version int    `json:"version"`
	Values  values `json:"values"`
}

func (s *Store) read() (values, stamp, error) {
	fail := func(err error) (values, stamp, error) {
		return nil, stamp{}, fmt.Errorf("%s: %w", storeFile, err)
	}
	f, err := s.root.OpenFile(storeFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return values{}, stamp{}, nil
	}
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return fail(unread.Error(errors.Join(errors.New("not a regular file"), err)))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxStore+1)) //nolint:forbidigo // bounded by the reader
	if err != nil || len(data) > maxStore {
		return fail(errors.Join(fmt.Errorf("cannot be read, or has more than %d bytes", maxStore), err))
	}
	var d document
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return fail(err)
	}
	if d.Version != 1 {
		return fail(fmt.Errorf("version %d is not known; it was written by a newer yaya", d.Version))
	}
	for k, v := range d.Values {
		v = within(k, v)
		if err := checkForm(k, v); err != nil {
			return fail(err)
		}
		var flat bytes.Buffer // the file is laid out for people, and values are compared
		if err := json.Compact(&flat, v); err != nil {
			return fail(err)
		}
		d.Values[k] = flat.Bytes()
	}
	if d.Values == nil {
		d.Values = values{}
	}
	return d.Values, stampOf(st), nil
}

func stampOf(st fs.FileInfo) stamp {
	out := stamp{st.ModTime(), st.Size(), hostfile.Inode(st)}
	return out
}

// write replaces the live part atomically.
func (s *Store) write(next values) (stamp, error) {
	data, err := json.MarshalIndent(document{1, next}, "", "  ")
	if err != nil {
		return stamp{}, err
	}
	if len(data) > maxStore || len(next) > maxKeys {
		return stamp{}, fmt.Errorf("more than %d keys or %d bytes of configuration", maxKeys, maxStore)
	}
	st, err := atomicfile.Write(s.root, storeFile, append(data, '\n'))
	if err != nil {
		return stamp{}, err
	}
	return stampOf(st), nil
}

// change edits the live part under a lock that other processes respect, and
// announces the change: first persisted, then visible, then announced.
func (s *Store) change(edit func(values) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, err := s.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := hostfile.Lock(lock); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	now, _, err := s.read()
	if err != nil {
		return err
	}
	next := maps.Clone(now)
	if err := edit(next); err != nil {
		return err
	}
	if maps.EqualFunc(next, now, sameValue) {
		return s.adopt(now, s.stamp)
	}
	st, err := s.write(next)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	return s.adopt(next, st)
}

func sameValue(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

// adopt publishes a live part to readers; s.mu is held.
func (s *Store) adopt(next values, st stamp) error {
	s.cache.Lock()
	old := s.live
	s.live, s.stamp = next, st
	s.count++
	s.cache.Unlock()
	return s.announce(differing(old, next))
}

// differing returns the keys whose values differ between two layers.
func differing(old, next values) []string {
	changed := map[string]bool{}
	for k, v := range next {
		if o, ok := old[k]; !ok || !sameValue(o, v) {
			changed[k] = true
		}
	}
	for k := range old {
		if _, ok := next[k]; !ok {
			changed[k] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// announce publishes that keys have changed.
func (s *Store) announce(keys []string) error {
	if s.bus == nil {
		return nil
	}
	var errs []error
	for _, k := range keys {
		_, err := bus.Publish(s.bus.Kernel(), event.ConfigWasUpdated, event.KernelSession, event.ConfigUpdated{Key: k, PrefixMatchHint: event.PrefixHint(k)})
		if err != nil && !errors.Is(err, bus.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Set stores a value. A masked secret in it keeps its value; it is an error if none
// is known, or if its address in the same value has changed.
func (s *Store) Set(key string, value json.RawMessage) error {
	if err := CheckValue(key, value); err != nil {
		return err
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, value); err != nil {
		return err
	}
	kept, replaced := false, false // in the vault, and a reference to it
	err := s.change(func(v values) error {
		next, same, err := s.unmask(v, key, flat.Bytes())
		if err != nil || same {
			return err
		}
		was, there := v[key]
		ref, err := s.stow(key, next)
		if err != nil {
			return err
		}
		kept = !sameValue(ref, next)
		replaced = there && !kept && slices.Contains(secretsIn(was), key)
		if v[key] = ref; kept && there && sameValue(was, ref) {
			return nil
		}
		kept = false // the change of the value is announced anyway
		return nil
	})
	switch {
	case err != nil:
		return err
	case kept: // the reference is the same, but the secret is not
		return s.SecretChanged(key)
	case replaced:
		return s.unstow([]string{key})
	}
	return nil
}

// Same reports whether Set would leave a key as it is: it was set to that value, or the value
// is its masked one. It is false where that is unknown.
func (s *Store) Same(key string, value json.RawMessage) bool {
	var flat, known bytes.Buffer
	if s.Refresh() != nil || json.Compact(&flat, value) != nil {
		return false
	}
	s.cache.RLock()
	live := s.live
	s.cache.RUnlock()
	next, same, err := s.unmask(live, key, flat.Bytes())
	if err != nil || same {
		return same
	}
	was, there := live[key]
	if !there {
		return false
	}
	if was, err = s.Shown(key, was); err != nil || json.Compact(&known, was) != nil {
		return false
	}
	return sameValue(known.Bytes(), next)
}

// Holds reports whether Unset would remove anything.
func (s *Store) Holds(key string) bool {
	if s.Refresh() != nil {
		return true // Unset says what is wrong
	}
	prefix, all := strings.CutSuffix(key, "*")
	s.cache.RLock()
	defer s.cache.RUnlock()
	for k := range s.live {
		if k == key || all && strings.HasPrefix(k, prefix) {
			return true
		}
	}
	return false
}

// Override gives a key a value that takes precedence over every other, for the life
// of this store; it is not saved. Flags of commands use it.
func (s *Store) Override(key, value string) error {
	v := ParseValue(key, value)
	if err := CheckValue(key, v); err != nil {
		return err
	}
	s.cache.Lock()
	defer s.cache.Unlock()
	s.flags[key] = v
	s.count++
	return nil
}

// Unset removes a key from the live part, or all keys below it if the key ends in
// ".*". It reports whether it removed anything.
func (s *Store) Unset(key string) (removed bool, err error) {
	prefix, all := strings.CutSuffix(key, "*")
	if all && !strings.HasSuffix(prefix, ".") {
		return false, fmt.Errorf("%q: a * stands alone behind a dot", key)
	}
	var kept []string // in the vault
	err = s.change(func(v values) error {
		n := len(v)
		maps.DeleteFunc(v, func(k string, now json.RawMessage) bool {
			gone := k == key || (all && strings.HasPrefix(k, prefix))
			if gone && slices.Contains(secretsIn(now), k) {
				kept = append(kept, k)
			}
			return gone
		})
		removed = len(v) < n
		return nil
	})
	if err == nil {
		err = s.unstow(kept)
	}
	return removed, err
}

// Refresh applies changes of another process. Without changes it costs one stat. An
// invalid file leaves the last good one in force.
func (s *Store) Refresh() error {
	st, err := s.root.Stat(storeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	s.cache.RLock()
	same := s.stamp == stampOf(st)
	s.cache.RUnlock()
	if same {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, now, err := s.read()
	if err != nil {
		return err
	}
	return s.adopt(next, now)
}

// Check returns an error if the live part below a data directory cannot be read.
func Check(root *os.Root) error {
	_, _, err := (&Store{root: root}).read()
	return err
}
