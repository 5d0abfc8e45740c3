package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/yaya-ai/yaya/internal/journal"
)

// ErrDamaged means that a session's tape differs from what yaya wrote. The error that wraps
// it names the damage, and the command that mends it.
var ErrDamaged = errors.New("the session is damaged")

// damagedError is [ErrDamaged] of a session.
type damagedError struct {
	session string
	err     error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("session %s is damaged: %v; mend it: yaya repair --session %s", e.session, e.err, e.session)
}

func (e *damagedError) Unwrap() error { return e.err }

func (e *damagedError) Is(target error) bool { return target == ErrDamaged }

// damagedOf returns [ErrDamaged] of a session for an error that a repair can mend, and
// every other error as it is. The innermost session counts: a fork cannot be read
// because of its parent.
func damagedOf(id string, err error) error {
	if _, named := errors.AsType[*damagedError](err); named {
		return err
	}
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged || errors.Is(err, errLost) {
		return &damagedError{id, err}
	}
	return err
}

// ofSession is damagedOf with the session's id for other errors, too.
func ofSession(id string, err error) error {
	if err = damagedOf(id, err); errors.Is(err, ErrDamaged) {
		return err
	}
	return fmt.Errorf("session %s: %w", id, err)
}

// noStart is the problem of a tape whose first entry is another's.
const noStart = "it does not start like a tape"

// errLost is the cause of a fork whose parent's tape is gone.
var errLost = errors.New("the tape that it was forked from is gone")

// lost is a repair anchor's record of entries that are gone.
type lost struct {
	First int64  `json:"first"`           // id of the first
	Count int64  `json:"count"`           // by the lines of the file
	Bytes int64  `json:"bytes,omitempty"` // that they had
	Aside string `json:"aside,omitempty"` // the damaged file, below the data directory
	// Inherited says that they were the parent's: the tape itself lost nothing.
	Inherited bool `json:"inherited,omitempty"`
	// Orphaned says that nothing is left of the parent.
	Orphaned bool `json:"orphaned,omitempty"`
}

// repaired is the state of a repair anchor.
type repaired struct {
	Epoch  string `json:"epoch"`
	Reason string `json:"reason"`
	Lost   *lost  `json:"lost,omitempty"`
}

// cut reports whether entries of the tape itself were lost before the anchor: its ids
// are used again, and forks that saw the lost entries see no later ones.
func (r repaired) cut() bool { return r.Lost != nil && !r.Lost.Inherited }

// parentLost is the error of a fork whose parent cannot be found.
func parentLost(p parent) error {
	return fmt.Errorf("%w: session %s, %w", errLost, p.SessionID, fs.ErrNotExist)
}

// Emptied returns [ErrDamaged] if the tape of a session is there without an entry, nil
// otherwise. A crash can leave such a file of a new session: it is for those who know that
// the session had entries.
func (m *Manager) Emptied(id string) (emptied error) {
	err := m.tapes(func(name string) error {
		if !strings.HasSuffix(name, TapeName("", id)[16:]+".jsonl") {
			return nil
		}
		if _, _, err := m.header(name); errors.Is(err, errEmpty) {
			emptied = &damagedError{id, err}
		}
		return nil
	})
	return cmp.Or(emptied, err)
}
