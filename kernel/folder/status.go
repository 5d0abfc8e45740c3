package folder

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrChanged refuses an answer about a folder that brings something else than was
// shown.
var ErrChanged = errors.New("the folder has changed since it was shown")

// Question is what the question about a folder shows, and what the answer binds.
type Question struct {
	Subject
	// Added and Removed are the difference to what was trusted before, if anything was.
	Added   []Item `json:"added,omitempty"`
	Removed []Item `json:"removed,omitempty"`
}

// Status is how a folder stands.
type Status struct {
	Question
	Trusted bool
	// Was is the record that trusts the folder, or that did before it changed.
	Was *Record
}

// Status looks at a folder.
func (s *Store) Status(dir string) (Status, error) {
	at, err := Resolve(dir)
	if err != nil {
		return Status{}, fmt.Errorf("look at the folder: %w", err)
	}
	items, err := s.inspect(at)
	if err != nil {
		return Status{}, fmt.Errorf("look at %s: %w", at, err)
	}
	st := Status{Question: Question{Subject: Subject{at, sorted(items)}}}
	was, known, err := s.look(at)
	if err != nil || !known {
		return st, err
	}
	st.Was = &was
	if st.Trusted = was.Digest == st.Digest(); !st.Trusted {
		st.Added, st.Removed = without(st.Items, was.Items), without(was.Items, st.Items)
	}
	return st, nil
}

func without(items, other []Item) []Item {
	return slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return slices.Contains(other, i) })
}

// Trust records that by trusts a folder as it was shown, which digest names.
func (s *Store) Trust(dir, digest, by string) (Record, error) {
	st, err := s.Status(dir)
	if err != nil {
		return Record{}, err
	}
	if st.Digest() != digest {
		return Record{}, fmt.Errorf("%w: %s", ErrChanged, st.Folder)
	}
	if err := st.check(); err != nil {
		return Record{}, err
	}
	r := Record{st.Subject, digest, by, time.Now().UTC().Truncate(time.Second)}
	if err := s.audited(EventTrusted, by, r); err != nil {
		return Record{}, err
	}
	if err := s.put(r); err != nil {
		return Record{}, err
	}
	s.changed(r.Folder)
	return r, nil
}

// Revoke makes a folder restricted again. A folder that is gone can be named by the
// path under which it was trusted.
func (s *Store) Revoke(dir, by string) (string, error) {
	at, err := Resolve(dir)
	if err != nil {
		at = dir
	}
	r, known, err := s.look(at)
	if err != nil {
		return "", err
	}
	if !known {
		return "", fmt.Errorf("%w: %s", ErrUnknown, at)
	}
	if err := s.audited(EventRevoked, by, r); err != nil {
		return "", err
	}
	if err := s.remove(at); err != nil {
		return "", err
	}
	s.changed(at)
	return at, nil
}

// Events of the audit.
const (
	EventTrusted = "folder_trusted"
	EventRevoked = "folder_revoked"
)

// Audit has f told of every change before it is made; its error refuses the change. It is
// set before the store is shared.
func (s *Store) Audit(f func(event, by string, r Record) error) { s.audit = f }

func (s *Store) audited(event, by string, r Record) error {
	if s.audit == nil {
		return nil
	}
	return s.audit(event, by, r)
}

// OnChange has f called after a folder was trusted or revoked by this process. f must
// not block; it is set before the store is shared.
func (s *Store) OnChange(f func(dir string)) { s.onChange = append(s.onChange, f) }

func (s *Store) changed(dir string) {
	for _, f := range s.onChange {
		f(dir)
	}
}

// Below returns the resolved path of a folder, and whether it is one that is trusted now,
// or lies in one or in one of roots. Roots that are not there hold nothing.
func (s *Store) Below(dir string, roots []string) (at string, below bool, err error) {
	at, err = Resolve(dir)
	if err != nil {
		return "", false, err
	}
	for _, r := range roots {
		if root, err := Resolve(r); err == nil && within(at, root) {
			return at, true, nil
		}
	}
	all, err := s.List()
	if err != nil {
		return "", false, err
	}
	for _, r := range all {
		if !within(at, r.Folder) {
			continue
		}
		if st, err := s.Status(r.Folder); err == nil && st.Trusted {
			return at, true, nil
		}
	}
	return at, false, nil
}
