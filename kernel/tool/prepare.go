package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Preparer is a tool that fixes a call's inputs before anybody is asked about it:
// Invoke works from them and reads nothing again, so that the call that runs is the
// one that was shown. Prepare is called once per call, after its arguments were
// validated. An error that is a [*Failure] ends the call with its kind.
type Preparer interface {
	Obedient
	Prepare(ctx context.Context, call Call) (*Prepared, error)
}

// Prepared holds the fixed inputs of a call.
type Prepared struct {
	// Shown is displayed to people instead of the arguments: a JSON object with
	// everything that determines what runs.
	Shown json.RawMessage
	// Binds is bound by an approval in addition to Shown, such as digests that Shown
	// abbreviates.
	Binds []byte
	// Sandbox is the sandbox of the call, for the record of its approval: a profile and its
	// back end, "off" or "outside"; "" if the tool starts no process. Weaker names the
	// limits of the profile that are not enforced.
	Sandbox string
	Weaker  []string
	// Wait is the least time that a person has to answer about the call, whatever the settings say;
	// 0 is theirs.
	Wait time.Duration
	// Run is private to the tool: Invoke works from it.
	Run any
	// Close releases the resources of Run. Optional.
	Close func()
	// Approved is set by the dispatcher when a person, not a rule, a default or a
	// setting, has approved exactly this call.
	Approved bool
}

// Failure is an error with its kind of failure.
type Failure struct {
	Kind ErrorKind
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Toucher is a built-in tool that knows which files of the workspace a call changes
// itself. A tool that writes or executes and is not a Toucher may change any file.
type Toucher interface {
	Touches(call Call) (paths []string)
}

// Bound returns the content of an ask: the prepared call, else the arguments.
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

// unreviewed reports a change that nobody reviews before it is made, and its end.
func (d *Dispatcher) unreviewed(e *Entry, call Call) (ended func(), res Result, ok bool) {
	if call.Origin != OriginLoop {
		return nil, Result{}, true
	}
	c, changes := change(e, call)
	if !changes {
		return nil, Result{}, true
	}
	d.mu.Lock()
	witness := d.witness
	d.mu.Unlock()
	if witness == nil {
		d.cfg.Log.Error().Str("tool", e.Def.Identity.String()).Msg("a tool call was refused: the dispatcher has no witness")
		return nil, Fail(ErrRejected, "denied: %s runs unasked only if the possible change of the workspace can be recorded, and nothing records it", e.Def.Name), false
	}
	over, err := witness(c)
	if err != nil {
		return nil, Fail(ErrRejected, "denied: %s runs unasked only if the possible change of the workspace can be recorded, and recording failed: %v", e.Def.Name, err), false
	}
	return func() {
		if err := over(); err != nil {
			d.cfg.Log.Error().Err(err).Str("tool", c.Tool).Str("session", c.SessionID).Msg("the end of a call that may have changed the workspace could not be recorded")
		}
	}, Result{}, true
}

// prepare makes a tool fix the inputs of its call.
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
