// Package control is the vocabulary of the control log: what changes the state of
// the control plane (devices, agents, capabilities, signing keys), in one order
// that every part agrees on.
//
// A [Log] makes a [Change] durable and gives it an index; [Projection]s are the
// state that follows from the changes, and are rebuilt from them. The package
// starts no goroutine.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Limits of a change.
const (
	MaxName    = 256       // bytes of an actor or a target
	MaxPayload = 256 << 10 // bytes of a payload
)

var (
	// ErrUnavailable is wrapped when a change cannot be made durable: the disk has
	// failed or is full, or there is no quorum. Nothing has changed.
	ErrUnavailable = errors.New("the control log cannot be written")
	// ErrInvalid is wrapped when a change is none.
	ErrInvalid = errors.New("invalid change")
)

// Change is what somebody wants to change.
type Change struct {
	Event   string // what happens, as in device_approved
	Actor   string // who does it: a device, a kernel, or Owner
	Target  string // what it happens to
	Payload any    // becomes a JSON object; nil for none
}

// Owner is the actor of what the user that runs yaya does on this machine.
const Owner = "owner"

// Entry is a change that has happened.
type Entry struct {
	Index   int64           // strictly increasing, from 1
	Term    int64           // increases whenever another node, or another run, begins to write
	Time    time.Time       // UTC, when it was written; order goes by Index alone
	Event   string          // of the change, as the rest
	Actor   string          //
	Target  string          //
	Payload json.RawMessage // an object
}

// Audit is an entry as the wire protocol shows it (W-44).
type Audit struct {
	Type    string          `json:"type"` // "audit"
	Event   string          `json:"event"`
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Index   int64           `json:"raft_log_index"`
	Payload json.RawMessage `json:"payload"`
	Time    string          `json:"ts"` // RFC 3339, UTC, milliseconds
}

// TimeFormat is how times look outside: RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Audit returns the audit event of an entry.
func (e Entry) Audit() Audit {
	return Audit{"audit", e.Event, e.Actor, e.Target, e.Index, e.Payload, e.Time.UTC().Format(TimeFormat)}
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
	// Apply takes in one entry; entries come in order, each once, and not
	// concurrently. Entries of events that the projection does not know are none of
	// its business. An error stops the log: what follows would build on it.
	Apply(e Entry) error
}

// Log is the order of all changes. It is safe for concurrent use.
type Log interface {
	// Append writes a change. check, unless nil, is asked with every earlier entry
	// applied and none after it, and its error is returned without anything
	// written; so what must happen once is checked and done in one step (R34).
	// When Append returns without an error, the entry is durable and applied. check
	// must not append.
	Append(ctx context.Context, c Change, check func() error) (Entry, error)
	// Read visits the entries from that index on, as they were when it was called.
	// An entry can be read as soon as a projection is given it.
	Read(from int64, visit func(Entry) error) error
	// Follow visits the entries from that index on, and those to come, until ctx
	// ends or visit returns an error, which it returns. It misses none and waits
	// for a slow visit.
	Follow(ctx context.Context, from int64, visit func(Entry) error) error
	// State tells how the log is.
	State() State
}

// State is how a log is.
type State struct {
	Last   int64  // index of the last entry, 0 without one
	Term   int64  // current term
	Leader string // node that orders the changes
	Nodes  int    // nodes that can vote
	Quorum bool   // whether changes can be written
}

var eventName = regexp.MustCompile(`^[a-z][a-z0-9_.]{0,63}$`)

// Marshal checks a change and returns its payload as JSON.
func (c Change) Marshal() (json.RawMessage, error) {
	if !eventName.MatchString(c.Event) {
		return nil, fmt.Errorf("%w: %q is no name of an event", ErrInvalid, c.Event)
	}
	if c.Actor == "" || len(c.Actor) > MaxName || len(c.Target) > MaxName {
		return nil, fmt.Errorf("%w: actor or target of %s is missing or too long", ErrInvalid, c.Event)
	}
	if c.Payload == nil {
		return json.RawMessage("{}"), nil
	}
	raw, err := json.Marshal(c.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, c.Event, err)
	}
	if len(raw) > MaxPayload || raw[0] != '{' {
		return nil, fmt.Errorf("%w: the payload of %s is no object of at most %d bytes", ErrInvalid, c.Event, MaxPayload)
	}
	return raw, nil
}
