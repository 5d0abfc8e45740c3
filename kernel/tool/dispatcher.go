package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/workgroup"
)

// Decision is the answer of a rule or a hook about a call. The strictest wins.
type Decision int

// Decisions, in ascending strictness.
const (
	Abstain Decision = iota
	Allow
	Ask
	Deny
)

// Verdict is a decision with its reason, which the caller can read.
type Verdict struct {
	Decision Decision
	Reason   string
}

// Hook is a PreToolCall hook. It sees the call that will run and cannot change it.
// An error denies the call.
type Hook interface {
	PreToolCall(ctx context.Context, call Call, def Definition) (Verdict, error)
}

// Selective is implemented by hooks that do not want all calls: others do not pay for them.
type Selective interface {
	// Wants reports whether calls of an origin are wanted now.
	Wants(origin Origin) bool
}

// selected is a hook; a nil wants wants all calls.
type selected struct {
	Hook
	wants func(Origin) bool
}

// After sees the results of calls whose tools ran, before anybody else, and returns what counts
// instead. It obeys ctx.
type After interface {
	Selective
	PostToolCall(ctx context.Context, call Call, def Definition, res Result) Result
}

// Policy decides about calls after the hooks.
type Policy interface {
	Decide(ctx context.Context, call Call, def Definition) (Verdict, error)
}

// Approver answers an ask.
type Approver interface {
	// Approve returns nil when the call may run, a [*RejectedError] when it was
	// refused, and another error when no answer came.
	Approve(ctx context.Context, call Call, def Definition, brief string) error
}

// Gate admits calls of tools that run or change something in a session's folder
// ([Definition.InFolder]), before any other check.
type Gate interface {
	// Admit returns nil when the call may use the folder, a [*RejectedError] when a
	// person has refused, and another error when no answer came. It may wait for an
	// answer.
	Admit(ctx context.Context, call Call, def Definition) error
}

// RejectedError is a refusal. The model sees the feedback.
type RejectedError struct{ Feedback string }

func (e *RejectedError) Error() string { return cmp.Or(e.Feedback, "the call was rejected") }

// Observer sees every finished call. It must not block.
type Observer interface {
	ToolCalled(call Call, def Definition, res Result, took time.Duration)
}

// DispatcherConfig assembles a dispatcher; Registry is required, every other field
// has a safe default.
type DispatcherConfig struct {
	Registry  *Registry
	Policy    Policy   // default [DefaultPolicy]
	Approver  Approver // default: nobody to ask, which denies
	Observer  Observer // default: none
	Artifacts *Store   // default: the rest of a long result is dropped, and the mark says so
	// Secrets are concealed in results and progress, except native ones, which arrive
	// without. Optional.
	Secrets *masked.Secrets
	// Agent says which agent drives a session: who makes the calls that come over
	// the bus. Required by Serve.
	Agent func(session string) Caller
	Log   zerolog.Logger
}

// Dispatcher runs tools. A part that is missing closes the door: a zero Dispatcher refuses
// every call, one without a gate those of tools in a session's folder, and one without a
// witness those that change something unasked.
type Dispatcher struct {
	cfg DispatcherConfig

	mu       sync.Mutex
	hooks    []selected
	gate     Gate
	approver Approver
	witness  Witness
	limit    Limit
	after    atomic.Pointer[After]
	work     workgroup.Group
}

// NewDispatcher returns a dispatcher without hooks, gate and witness. Without a policy in
// cfg, it has [DefaultPolicy].
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	if cfg.Policy == nil {
		cfg.Policy = DefaultPolicy{}
	}
	return &Dispatcher{cfg: cfg, approver: cfg.Approver}
}

// AddHook adds a PreToolCall hook for every tool.
func (d *Dispatcher) AddHook(h Hook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := selected{Hook: h}
	if x, ok := h.(Selective); ok {
		s.wants = x.Wants
	}
	d.hooks = append(d.hooks[:len(d.hooks):len(d.hooks)], s)
}

// SetAfter sets what sees results first, before the first call.
func (d *Dispatcher) SetAfter(a After) {
	d.after.Store(&a)
}

// SetGate sets the gate, before the first call. Without one every folder is closed.
func (d *Dispatcher) SetGate(g Gate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = g
}

// SetApprover puts another approver in the place of the configured one, before the first
// call.
func (d *Dispatcher) SetApprover(a Approver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.approver = a
}

// A Witness learns, before it runs, of an agent's call that may change the workspace
// although no person has agreed to it. Its error denies the call. The function that it returns
// is called when the tool has ended, which may be later than the call.
type Witness func(Change) (ended func() error, err error)

// SetWitness sets the witness, before the first call. Without one such calls are denied.
func (d *Dispatcher) SetWitness(w Witness) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.witness = w
}

// A Limit refuses calls for what their session may do, before anybody is asked. It returns the
// reason, which the caller reads, or "". Its error denies the call.
type Limit func(call Call, def Definition) (why string, err error)

// SetLimit sets the limit, before the first call. Without one there is none.
func (d *Dispatcher) SetLimit(l Limit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = l
}

// Close refuses new calls on goroutines of the dispatcher's own and waits for
// those that run.
func (d *Dispatcher) Close(ctx context.Context) error {
	if err := d.work.CloseWithin(ctx); err != nil {
		return fmt.Errorf("tools are still running: %w", err)
	}
	return nil
}

// DefaultPolicy asks for tools that write or execute, for tools that require approval,
// and for every provided tool; a native call from a downstream MCP client counts as
// approved by that client's own consent (rule origin=mcp), and so does a call that a
// person with the right to answer asks typed or filled in. A call that another node
// passes on was decided about there. Nobody stands behind a server's call.
type DefaultPolicy struct{}

// Decide implements [Policy]. Annotations never relax it.
func (DefaultPolicy) Decide(_ context.Context, call Call, def Definition) (Verdict, error) {
	if call.Origin == OriginCLI || call.Origin == OriginAPI || call.Origin == OriginNode || (call.Origin == OriginMCP && def.Identity.Provider != "" && !strings.HasPrefix(call.Caller.Principal, ServerPrefix)) {
		return Verdict{Decision: Allow}, nil
	}
	if def.RequiresApproval || def.Identity.Provider != "" {
		return Verdict{Decision: Ask}, nil
	}
	if def.Agreed {
		return Verdict{Decision: Allow}, nil
	}
	switch def.Kind {
	case KindRead, KindNetwork:
		return Verdict{Decision: Allow}, nil
	case KindWrite, KindExec:
	}
	return Verdict{Decision: Ask}, nil
}

// Call runs one call against a snapshot and returns its result; it never
// returns without one.
func (d *Dispatcher) Call(ctx context.Context, snap *Snapshot, call Call) Result {
	start := time.Now()
	e, ok := snap.Lookup(call.Name)
	if !ok {
		if w, withheld := snap.Withheld(call.Name); withheld && call.Caller.Reaches(w.Def.Identity.Provider) {
			return d.finish(call, w.Def, notRun(Fail(ErrUnavailable, "%s", w.Why)), start)
		}
	}
	if !ok || (e.Def.ForAgents && call.Origin != OriginLoop) || !call.Caller.Reaches(e.Def.Identity.Provider) {
		return d.finish(call, Definition{Name: call.Name}, notRun(Fail(ErrNotFound, "unknown tool %q%s", cut.Text(call.Name, 100), meant(snap, call))), start)
	}
	return d.finish(call, e.Def, d.run(ctx, e, call), start)
}

// Run runs one call of a tool that is in no snapshot: an operation that models and
// clients do not see as a tool, but that the same hooks, rules and approvals govern. An agent's
// call is bound by the view of its session, too, which no snapshot has applied to it.
func (d *Dispatcher) Run(ctx context.Context, t Tool, call Call) Result {
	start := time.Now()
	e := &Entry{Tool: t, Def: t.Definition()}
	e.schema = compiled(e.Def.InputSchema)
	hidden := call.Origin == OriginLoop && d.cfg.Registry != nil && !d.cfg.Registry.Sees(call.SessionID, &e.Def)
	if hidden || !call.Caller.Reaches(e.Def.Identity.Provider) || reserved(e.Def.Name) {
		return d.finish(call, Definition{Name: call.Name}, notRun(Fail(ErrNotFound, "there is nothing named %q", cut.Text(call.Name, 100))), start)
	}
	return d.finish(call, e.Def, d.run(ctx, e, call), start)
}

// Verdict returns the decision of hooks and rules about a call, without running it or
// asking anybody.
func (d *Dispatcher) Verdict(ctx context.Context, call Call, def Definition) Verdict {
	d.mu.Lock()
	hooks := d.hooks
	d.mu.Unlock()
	return d.strictest(ctx, hooks, call, def, def)
}

// Ruled returns the decision of rules alone about a call that may never be made: hooks take each call
// that they see for one, and count it.
func (d *Dispatcher) Ruled(ctx context.Context, call Call, def Definition) Verdict {
	return d.decide(ctx, call, def)
}

func (d *Dispatcher) finish(call Call, def Definition, res Result, start time.Time) Result {
	res = d.conceal(res)
	if d.cfg.Observer != nil {
		d.cfg.Observer.ToolCalled(call, def, res, time.Since(start))
	}
	return res
}

// notRun marks the result of a call whose tool never began.
func notRun(res Result) Result {
	res.NotRun = true
	return res
}

func (d *Dispatcher) run(ctx context.Context, e *Entry, call Call) Result {
	if res, ok := d.known(e, &call); !ok {
		return notRun(res)
	}
	if res, ok := limited(e, &call); !ok {
		return notRun(res)
	}
	if res, ok := d.check(e, &call); !ok {
		return notRun(res)
	}
	if res, ok := d.limited(e, call); !ok {
		return notRun(res)
	}
	if res, ok := d.admit(ctx, e, call); !ok {
		return notRun(res)
	}
	if t, ok := e.Tool.(Preparer); ok {
		if res, ok := d.prepare(ctx, t, e, &call); !ok {
			return notRun(res)
		}
		if call.Prepared.Close != nil {
			defer call.Prepared.Close()
		}
	}
	res, approved, ok := d.permit(ctx, e, call)
	if !ok {
		return notRun(res)
	}
	if call.Prepared != nil {
		call.Prepared.Approved = approved
	}
	var ended func()
	if !approved {
		if ended, res, ok = d.unreviewed(e, call); !ok {
			return notRun(res)
		}
	}
	whole := ctx
	if _, obeys := e.Tool.(Obedient); !obeys || e.Def.Timeout != OwnTimeout {
		limit := cmp.Or(max(e.Def.Timeout, 0), DefaultTimeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	d.concealProgress(&call)
	res = d.invoke(ctx, e, call, ended)
	if after := d.after.Load(); after != nil && (*after).Wants(call.Origin) {
		res = (*after).PostToolCall(whole, call, e.Def, d.conceal(res))
	}
	res.Approved = approved
	if call.Native != nil && res.Native != nil {
		return res
	}
	res.Native = nil
	return bound(d.cfg.Artifacts, call, d.conceal(res))
}

// check validates the arguments; it replaces absent ones by an empty object.
func (d *Dispatcher) check(e *Entry, call *Call) (Result, bool) {
	if len(call.Args) == 0 {
		call.Args = json.RawMessage("{}")
	}
	// Native arguments were scanned when their message was parsed.
	if call.Native != nil && !e.Def.Validate {
		return Result{}, true
	}
	if err := jsonrpc.Check(call.Args); err != nil {
		return invalid(e.Def.Name, []Violation{{Message: err.Error()}}), false
	}
	schema, err := e.schema()
	if err != nil {
		return Fail(ErrInternal, "the input schema of %s cannot be used: %v", e.Def.Name, err), false
	}
	if vs := validate(schema, call.Args); len(vs) > 0 {
		if why := notJSON(call.Args); why != "" {
			vs = []Violation{{Message: why}}
		}
		return invalid(e.Def.Name, vs), false
	}
	return Result{}, true
}

func invalid(name string, vs []Violation) Result {
	msg := fmt.Sprintf("invalid arguments for %s:", name)
	before := "\n- "
	if len(vs) == 1 { // a brief has the first line alone
		before = " "
	}
	for _, v := range vs {
		msg += before + v.String()
	}
	res := Fail(ErrValidation, "%s", msg)
	detail, err := json.Marshal(struct {
		Errors []Violation `json:"errors"`
	}{vs})
	if err == nil {
		res.Detail = detail
	}
	return res
}

// invoke runs the tool. A tool that does not promise to obey its context gets its own
// goroutine, so that the deadline holds. When the tool has ended, invoke calls ended,
// which may be nil.
func (d *Dispatcher) invoke(ctx context.Context, e *Entry, call Call, ended func()) Result {
	if _, ok := e.Tool.(Obedient); ok {
		res, err := guarded(ctx, e.Tool, call, ended)
		return d.settle(ctx, e, res, err)
	}
	return d.detached(ctx, e, call, ended)
}

// detached runs a tool on a goroutine of its own. In invoke, the goroutine's closure
// would move every call to the heap.
func (d *Dispatcher) detached(ctx context.Context, e *Entry, call Call, ended func()) Result {
	if !d.work.Begin() {
		if ended != nil {
			ended()
		}
		return notRun(Fail(ErrCancelled, "yaya is shutting down"))
	}
	// The tool may outlive the call, and then the caller may reuse its memory.
	call.Args, call.Native = bytes.Clone(call.Args), nil
	type outcome struct {
		res Result
		err error
	}
	// Progress after the end of the call has no reader.
	if report := call.Progress; report != nil {
		var mu sync.Mutex
		over := false
		call.Progress = func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				report(p)
			}
		}
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			over = true
		}()
	}
	done := make(chan outcome, 1)
	go func() {
		defer d.work.End()
		res, err := guarded(ctx, e.Tool, call, ended)
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return d.settle(ctx, e, o.res, o.err)
	case <-ctx.Done():
		return d.settle(ctx, e, Result{}, ctx.Err())
	}
}

// crash returns the error of a tool's panic.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("panic: %v", c.value) }

func guarded(ctx context.Context, t Tool, call Call, ended func()) (res Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &crash{r, debug.Stack()}
		}
		if ended != nil {
			ended()
		}
	}()
	return t.Invoke(ctx, call)
}

// settle turns an error into a result.
func (d *Dispatcher) settle(ctx context.Context, e *Entry, res Result, err error) Result {
	if err == nil {
		if !res.OK && res.ErrorKind == "" {
			res.ErrorKind = ErrTool
		}
		res.Brief = Brief(res.Brief)
		return res
	}
	if c, ok := errors.AsType[*crash](err); ok {
		d.cfg.Log.Error().Str("tool", e.Def.Identity.String()).Interface("panic", c.value).Bytes("stack", c.stack).Msg("a tool panicked")
		return Fail(ErrCrashed, "%s crashed", e.Def.Name)
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Fail(ErrTimeout, "%s did not finish in time", e.Def.Name)
	case ctx.Err() != nil:
		return Fail(ErrCancelled, "the call of %s was cancelled", e.Def.Name)
	}
	return Fail(ErrInternal, "%s failed: %v", e.Def.Name, err)
}
