package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// known refuses calls that do not say who makes them.
func (d *Dispatcher) known(e *Entry, call *Call) (Result, bool) {
	if call.Caller.Principal != "" {
		return Result{}, true
	}
	d.cfg.Log.Error().Str("tool", e.Def.Identity.String()).Str("origin", string(call.Origin)).Msg("a tool call was refused: it does not say who makes it")
	return Fail(ErrRejected, "denied: it is not established who calls %s", e.Def.Name), false
}

// admit asks the gate about a tool that works in the session's folder.
func (d *Dispatcher) admit(ctx context.Context, e *Entry, call Call) (Result, bool) {
	if !e.Def.InFolder {
		return Result{}, true
	}
	d.mu.Lock()
	gate := d.gate
	d.mu.Unlock()
	if gate == nil {
		return Result{}, true
	}
	// Nobody is asked about a folder for a call that a rule denies anyway.
	v := d.decide(ctx, call, e.Def)
	if _, agreed := e.Tool.(PreApproved); agreed && v.Decision == Deny { // perhaps; that is known later
		v = d.decide(ctx, call, agreedTo(e.Def))
	}
	if v.Decision == Deny {
		return denied(e, v), false
	}
	return unapproved(e.Def.Name, gate.Admit(ctx, call, e.Def))
}

// permit asks hooks, policy and, if need be, a person; approved tells that one agreed.
func (d *Dispatcher) permit(ctx context.Context, e *Entry, call Call) (res Result, approved, ok bool) {
	d.mu.Lock()
	hooks := d.hooks
	d.mu.Unlock()
	def := e.Def
	if p, ok := e.Tool.(PreApproved); ok && p.PreApproved(call) {
		def = agreedTo(def)
	}
	strictest := d.strictest(ctx, hooks, call, e.Def, def)

	switch strictest.Decision {
	case Allow:
		return Result{}, false, true
	case Ask:
		res, ok = d.ask(ctx, e, call)
		return res, ok, ok
	case Deny, Abstain:
	}
	return denied(e, strictest), false, false
}

// Insists returns why a hook wants a person to be asked about a call, "" if none does: no
// rule allows such a call.
func (d *Dispatcher) Insists(ctx context.Context, call Call, def Definition) string {
	d.mu.Lock()
	hooks := d.hooks
	d.mu.Unlock()
	for _, h := range hooks {
		if v := callHook(ctx, h, call, def); v.Decision == Ask {
			return v.Reason
		}
	}
	return ""
}

// strictest asks the hooks, and the policy, which may see the tool as another.
func (d *Dispatcher) strictest(ctx context.Context, hooks []Hook, call Call, def, seen Definition) Verdict {
	out := Verdict{}
	for _, h := range hooks {
		if v := callHook(ctx, h, call, def); v.Decision > out.Decision {
			out = v
		}
	}
	if v := d.decide(ctx, call, seen); v.Decision > out.Decision {
		out = v
	}
	return out
}

func denied(e *Entry, v Verdict) Result {
	return Fail(ErrRejected, "denied: %s", cmp.Or(v.Reason, "the policy does not allow "+e.Def.Name))
}

// agreedTo is how the policy sees a tool whose call was agreed to in advance.
func agreedTo(def Definition) Definition {
	def.Kind, def.RequiresApproval = KindRead, false
	return def
}

// decide asks the policy. Its error denies.
func (d *Dispatcher) decide(ctx context.Context, call Call, def Definition) Verdict {
	v, err := d.cfg.Policy.Decide(ctx, call, def)
	if err != nil {
		return Verdict{Deny, fmt.Sprintf("the policy failed: %v", err)}
	}
	return v
}

// callHook asks a hook. Its error denies, and so does its panic.
func callHook(ctx context.Context, h Hook, call Call, def Definition) (v Verdict) {
	defer func() {
		if r := recover(); r != nil {
			v = Verdict{Deny, fmt.Sprintf("a permission hook failed: panic: %v", r)}
		}
	}()
	v, err := h.PreToolCall(ctx, call, def)
	if err != nil {
		return Verdict{Deny, fmt.Sprintf("a permission hook failed: %v", err)}
	}
	return v
}

func (d *Dispatcher) ask(ctx context.Context, e *Entry, call Call) (Result, bool) {
	if d.cfg.Approver == nil {
		return Fail(ErrRejected, "denied: %s needs approval and there is nobody to ask", e.Def.Name), false
	}
	brief := e.Def.Identity.String() + " " + string(call.Bound())
	if b, ok := e.Tool.(ApprovalBriefer); ok {
		brief = b.ApprovalBrief(call)
	}
	return unapproved(e.Def.Name, d.cfg.Approver.Approve(ctx, call, e.Def, Brief(brief)))
}

// unapproved is the result of a call that was not agreed to, if err says so.
func unapproved(name string, err error) (Result, bool) {
	if err == nil {
		return Result{}, true
	}
	if r, ok := errors.AsType[*RejectedError](err); ok {
		return Fail(ErrRejected, "rejected: %s", r.Error()), false
	}
	return Fail(ErrRejected, "no approval for %s: %v", name, err), false
}
