// Package control defines the control log: all changes of the control plane
// (devices, agents, capabilities, signing keys), in one order that every part
// agrees on.
//
// A [Log] makes a [Change] durable and gives it an index; [Projection]s are the state
// that follows from the changes, and are rebuilt from them. A [Query] finds entries,
// and a [Fanout] carries events between nodes. Package local has the log of a single
// node, and package controltest the tests that every implementation must pass.
//
// The package starts no goroutine.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Limits of a change.
const (
	MaxName    = 256       // bytes of an actor or a target
	MaxPayload = 256 << 10 // bytes of a payload
)

var (
	// ErrUnavailable is wrapped when a change cannot be made durable: the disk has
	// failed or is full, or there is no quorum. Nothing has changed; only
	// [ErrUncertain], which wraps it, leaves that open.
	ErrUnavailable = errors.New("the control log cannot be written")
	// ErrUncertain is an [ErrUnavailable] after which a change may be in the log, or come
	// into it: it was sent to other nodes, and none has answered in time.
	ErrUncertain = fmt.Errorf("%w: nobody has said whether the change was made", ErrUnavailable)
	// ErrInvalid is wrapped by the error for an invalid change.
	ErrInvalid = errors.New("invalid change")
)

// Change is a requested change.
type Change struct {
	Event   string // the event, such as device_approved
	Actor   string // the actor: a device, a kernel, or Owner
	Target  string // the object of the change
	Payload any    // becomes a JSON object; nil for none
}

// Owner is the actor of changes by the user that runs yaya, on this machine.
const Owner = "owner"

// Entry is a recorded change.
type Entry struct {
	Index   int64           // strictly increasing, from 1
	Term    int64           // increases whenever another node, or another run, begins to write
	Time    time.Time       // UTC, when it was written; order goes by Index alone
	Event   string          // from the change, like the rest
	Actor   string          //
	Target  string          //
	Payload json.RawMessage // an object
}

// Audit is an entry in the form of the wire protocol.
type Audit struct {
	Type    string          `json:"type"` // "audit"
	Event   string          `json:"event"`
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Index   int64           `json:"raft_log_index"`
	Payload json.RawMessage `json:"payload"`
	Time    string          `json:"ts"` // RFC 3339, UTC, milliseconds
}

// TimeFormat is the format of times outside: RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Stamp returns a time in [TimeFormat].
func Stamp(t time.Time) string { return t.UTC().Format(TimeFormat) }

// Audit returns the audit event of an entry.
func (e Entry) Audit() Audit {
	return Audit{"audit", e.Event, e.Actor, e.Target, e.Index, e.Payload, Stamp(e.Time)}
}

// Decode reads the payload.
func (e Entry) Decode(v any) error {
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("control log, entry %d (%s): %w", e.Index, e.Event, err)
	}
	return nil
}

// Projection is state that follows from the log.
type Projection interface {
	// Apply applies one entry; entries arrive in order, each once, and not
	// concurrently. A projection ignores entries of events that it does not know. An
	// error stops the log, because later entries build on this one.
	Apply(e Entry) error
}

// Stateful is a projection whose state can be saved, so that a log does not need to
// apply every entry since its first one again.
type Stateful interface {
	Projection
	// Part names the state among those of other projections.
	Part() string
	// Save returns what the entries so far have led to, and what Restore makes of it is
	// the same. It is not called concurrently with Apply.
	Save() (json.RawMessage, error)
	// Restore replaces the state of a projection that no entry was applied to. After an
	// error the projection must not be used.
	Restore(state json.RawMessage) error
}

// Log is the order of all changes. It is safe for concurrent use.
type Log interface {
	// Append writes a change. check, unless nil, runs when every earlier entry is
	// applied and none after it; Append returns its error without writing anything. So
	// a change that must happen once is checked and made in one step. When Append
	// returns without an error, the entry is durable and applied. check must not
	// append.
	Append(ctx context.Context, c Change, check func() error) (Entry, error)
	// Read visits the entries from that index on, as they were when it was called.
	// An entry can be read as soon as a projection is given it. An error of visit ends
	// the visit and is returned, except [io/fs.SkipAll], which only ends it.
	Read(from int64, visit func(Entry) error) error
	// Follow visits the entries from that index on, and later ones as they are
	// written, until ctx ends or visit returns an error, which it returns. It misses
	// none and waits for a slow visit.
	Follow(ctx context.Context, from int64, visit func(Entry) error) error
	// State returns the state of the log.
	State() State
}

// State is the state of a log.
type State struct {
	Last   int64  // index of the last entry, 0 without one
	Term   int64  // current term
	Leader string // node that orders the changes
	Nodes  int    // nodes that can vote
	Quorum bool   // whether changes can be written
	// Behind is for how long changes may have been made elsewhere that this log does not
	// know of; 0 for a log of one node.
	Behind time.Duration
}

var eventName = lazyregexp.New(`^[a-z][a-z0-9_.]{0,63}$`)

// Marshal checks a change and returns its payload as JSON.
func (c Change) Marshal() (json.RawMessage, error) {
	if !eventName().MatchString(c.Event) {
		return nil, fmt.Errorf("%w: %q is not the name of an event", ErrInvalid, c.Event)
	}
	if c.Actor == "" || len(c.Actor) > MaxName || len(c.Target) > MaxName {
		return nil, fmt.Errorf("%w: actor or target of %s is missing or too long", ErrInvalid, c.Event)
	}
	raw, err := json.Marshal(c.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, c.Event, err)
	}
	if string(raw) == "null" { // a nil map counts as an empty payload
		return json.RawMessage("{}"), nil
	}
	if len(raw) > MaxPayload || raw[0] != '{' {
		return nil, fmt.Errorf("%w: the payload of %s is not an object of at most %d bytes", ErrInvalid, c.Event, MaxPayload)
	}
	return raw, nil
}
