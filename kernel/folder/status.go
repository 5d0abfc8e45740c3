package folder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// ErrChanged is returned by [Store.Trust] when the folder has changed since the question.
var ErrChanged = errors.New("the folder has changed since it was shown")

// Question is the content of the question about a folder, which the answer binds.
type Question struct {
	Subject
	// Added and Removed are the difference to the content that was trusted before, if
	// any.
	Added   []Item `json:"added,omitempty"`
	Removed []Item `json:"removed,omitempty"`
	// Allowed are the folder's servers to which the user granted more than the folder asks
	// for, with all their rights. The answer does not bind it, because it is the user's own
	// configuration.
	Allowed []Item `json:"allowed,omitempty"`
}

// Status is the trust status of a folder.
type Status struct {
	Question
	Trusted bool
	// Was is the record that trusts the folder, or trusted it before it changed.
	Was *Record
}

// Status returns the status of a folder.
func (s *Store) Status(dir string) (Status, error) {
	w, st, err := s.Open(dir)
	if w != nil {
		_ = w.Close() // nothing was written
	}
	return st, err
}

// Open opens a folder, and returns its status: that of the open folder, whatever happens to its path
// meanwhile. The caller closes the workspace, which is open even with an error if it is not nil: the
// folder is there then, but cannot be judged.
func (s *Store) Open(dir string) (*workspace.Workspace, Status, error) {
	at, err := Resolve(dir)
	if err != nil {
		return nil, Status{}, fmt.Errorf("look at the folder: %w", err)
	}
	w, err := s.guard.Open(at)
	if err != nil {
		return nil, Status{}, fmt.Errorf("look at the folder: %w", err)
	}
	st, err := s.judge(w)
	return w.Lent(dir, w.Close), st, err // paths are told and taken by this name of it
}

// judge returns the status of a folder that is open under its resolved path.
func (s *Store) judge(w *workspace.Workspace) (Status, error) {
	at := w.Dir()
	items, err := s.inspect(w)
	if err != nil {
		return Status{}, fmt.Errorf("look at %s: %w", at, err)
	}
	st := Status{Question: Question{Subject: Subject{at, sorted(items)}}}
	was, known, err := s.look(at)
	if err != nil || !known {
		return st, err
	}
	st.Was = &was
	if st.Trusted = was.Digest == st.asAgreed(was).Digest(); !st.Trusted {
		st.Added = without(st.Items, func(i Item) bool { return slices.ContainsFunc(was.Items, i.within) })
		st.Removed = without(was.Items, func(i Item) bool {
			return slices.ContainsFunc(st.Items, func(now Item) bool { return now.within(i) })
		})
		if s.allowed != nil {
			st.Allowed = s.allowed(w)
		}
	}
	return st, nil
}

// asAgreed returns the subject with the sandbox weaknesses of its items as the user agreed
// to them, unless they have become worse: a sandbox that now enforces more needs no new
// question, one that enforces less does.
func (s Subject) asAgreed(was Record) Subject {
	s.Items = slices.Clone(s.Items)
	for i, item := range s.Items {
		if at := slices.IndexFunc(was.Items, item.within); at >= 0 {
			s.Items[i].Lacks = was.Items[at].Lacks
		}
	}
	return s
}

func without(items []Item, drop func(Item) bool) []Item {
	return slices.DeleteFunc(slices.Clone(items), drop)
}

// AsShown returns the question for display: the words about its items say what their
// sandboxes enforce here.
func (q Question) AsShown() Question {
	for _, list := range []*[]Item{&q.Items, &q.Added, &q.Removed} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i] = (*list)[i].shown()
		}
	}
	return q
}

// maxDifferences bounds how many items a sentence names.
const maxDifferences = 3

// Differences describes the changes since the user's agreement, "" if none is known.
func (q Question) Differences() string {
	var all []string
	for _, now := range q.Added {
		says := " is new"
		if i := slices.IndexFunc(q.Removed, func(was Item) bool { return was.Kind == now.Kind && was.Name == now.Name && now.Name != "" }); i >= 0 {
			says = " has changed"
		}
		if slices.ContainsFunc(q.Removed, now.Same) {
			says = " would have more rights than you agreed to (" + now.Weaker + ")"
		}
		all = append(all, now.title()+says)
	}
	for _, was := range q.Removed {
		if !slices.ContainsFunc(q.Added, func(now Item) bool {
			return now.Same(was) || now.Kind == was.Kind && now.Name == was.Name && now.Name != ""
		}) {
			all = append(all, was.title()+" is gone")
		}
	}
	if more := len(all) - maxDifferences; more > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// Trust records that by trusts a folder with the content that digest identifies. If it is
// trusted so already, its record stays.
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
	if was, known, err := s.look(st.Folder); err != nil {
		return Record{}, err
	} else if known && st.Trusted && was.Digest == digest {
		return was, nil // nothing changes
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

// Audit makes the store call f before every change; if f returns an error, the
// store refuses the change. Call Audit before the store is shared.
func (s *Store) Audit(f func(event, by string, r Record) error) { s.audit = f }

// Allows sets f, which returns the user's additional grants to the servers of a folder,
// for the question about a changed folder. Call it before the store is shared.
func (s *Store) Allows(f func(w *workspace.Workspace) []Item) { s.allowed = f }

func (s *Store) audited(event, by string, r Record) error {
	if s.audit == nil {
		return nil
	}
	return s.audit(event, by, r)
}

// OnChange makes the store call f after this process trusted or revoked a folder. f
// must not block; call OnChange before the store is shared.
func (s *Store) OnChange(f func(dir string)) { s.onChange = append(s.onChange, f) }

func (s *Store) changed(dir string) {
	for _, f := range s.onChange {
		f(dir)
	}
}

// Below returns the resolved path of a folder, and whether it is trusted, or lies in a
// trusted folder or in one of roots. Roots that do not exist are ignored.
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
