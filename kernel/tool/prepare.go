package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
)

// Preparer is a tool that fixes what a call will use before anybody is asked about it:
// Invoke runs from that and reads nothing again, so that what was shown is what runs.
// Prepare is called once a call, after its arguments were validated. An error that is
// a [*Failure] ends the call with its kind.
type Preparer interface {
	Obedient
	Prepare(ctx context.Context, call Call) (*Prepared, error)
}

// Prepared is what a call will use, fixed.
type Prepared struct {
	// Shown is what people are asked about instead of the arguments: a JSON object that
	// holds everything that decides what runs.
	Shown json.RawMessage
	// Binds is what an approval is for besides Shown, such as digests that are shown
	// shortened.
	Binds []byte
	// Sandbox is what the call runs in, for the record of its approval: a profile and
	// its back end, "off" or "outside"; "" if the tool starts no process. Weaker is what the
	// profile wants and does not get.
	Sandbox string
	Weaker  []string
	// Run is the tool's own: what Invoke runs from.
	Run any
	// Close gives back what Run holds. Optional.
	Close func()
	// Approved is set by the dispatcher when a person has agreed to this very call, not
	// a rule, a default or a setting.
	Approved bool
}

// Failure is an error that says which kind of failure it is.
type Failure struct {
	Kind ErrorKind
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Toucher is a built-in tool that knows which files of the workspace a call changes
// itself. One that writes or executes and is no Toucher may change any.
type Toucher interface {
	Touches(call Call) (paths []string)
}

// Bound returns what people are asked about: the prepared call, else the arguments.
func (c Call) Bound() json.RawMessage {
	if c.Prepared != nil {
		return c.Prepared.Shown
	}
	return c.Args
}

// Change is a call that may change the workspace and that no person has agreed to.
type Change struct {
	SessionID string
	Tool      string
	// Paths are the files that it changes; Any says that it may change others.
	Paths []string
	Any   bool
}

// change tells whether a call may change the workspace.
func change(e *Entry, call Call) (Change, bool) {
	c := Change{SessionID: call.SessionID, Tool: e.Def.Name}
	if e.Def.Identity.Provider != "" { // what it says about itself decides nothing
		c.Any = true
		return c, true
	}
	switch e.Def.Kind {
	case KindRead, KindNetwork:
		return Change{}, false
	case KindWrite, KindExec:
	}
	if t, ok := e.Tool.(Toucher); ok {
		c.Paths = t.Touches(call)
		return c, len(c.Paths) > 0
	}
	c.Any = true
	return c, true
}

// witness tells of a change that nobody looks at before it is made, and when it is over.
func (d *Dispatcher) witness(e *Entry, call Call) (ended func(), res Result, ok bool) {
	if d.cfg.Unreviewed == nil || call.Origin != OriginLoop {
		return nil, Result{}, true
	}
	c, changes := change(e, call)
	if !changes {
		return nil, Result{}, true
	}
	over, err := d.cfg.Unreviewed(c)
	if err != nil {
		return nil, Fail(ErrRejected, "denied: %s runs unasked only when it is noted that it may change the workspace, and that failed: %v", e.Def.Name, err), false
	}
	return func() {
		if err := over(); err != nil {
			d.cfg.Log.Error().Err(err).Str("tool", c.Tool).Str("session", c.SessionID).Msg("it could not be noted that a call that may have changed the workspace has ended")
		}
	}, Result{}, true
}

// prepare has a tool fix what its call will use.
func (d *Dispatcher) prepare(ctx context.Context, t Preparer, e *Entry, call *Call) (res Result, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			res, ok = d.settle(ctx, e, Result{}, &crash{v, debug.Stack()}), false
		}
	}()
	p, err := t.Prepare(ctx, *call)
	if err == nil && p == nil {
		err = errors.New("nothing was prepared")
	}
	if f, is := errors.AsType[*Failure](err); is {
		return Fail(f.Kind, "%v", err), false
	}
	if err != nil {
		return d.settle(ctx, e, Result{}, fmt.Errorf("prepare the call: %w", err)), false
	}
	call.Prepared = p
	return Result{}, true
}
