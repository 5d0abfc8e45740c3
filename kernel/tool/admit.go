package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// known refuses calls without a caller.
func (d *Dispatcher) known(e *Entry, call *Call) (Result, bool) {
	if call.Caller.Principal != "" {
		return Result{}, true
	}
	d.cfg.Log.Error().Str("tool", e.Def.Identity.String()).Str("origin", string(call.Origin)).Msg("a tool call was refused: it has no caller")
	return Fail(ErrRejected, "denied: the caller of %s is unknown", e.Def.Name), false
}

// limited refuses calls beyond the limit of their session.
func (d *Dispatcher) limited(e *Entry, call Call) (Result, bool) {
	d.mu.Lock()
	limit := d.limit
	d.mu.Unlock()
	if limit == nil {
		return Result{}, true
	}
	why, err := limit(call, e.Def)
	if err != nil {
		return Fail(ErrRejected, "denied: the limits of the session are unknown: %v", err), false
	}
	if why != "" {
		return Fail(ErrRejected, "denied: %s", why), false
	}
	return Result{}, true
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
		d.cfg.Log.Error().Str("tool", e.Def.Identity.String()).Msg("a tool call was refused: the dispatcher has no gate")
		return Fail(ErrRejected, "denied: %s works in the session's folder, and there is no gate that could admit it", e.Def.Name), false
	}
	// The gate does not ask about a folder for a call that a rule denies anyway.
	v := d.decide(ctx, call, e.Def)
	if v.Decision == Deny {
		return denied(e, v), false
	}
	return unapproved(e.Def.Name, gate.Admit(ctx, call, e.Def))
}

// permit asks hooks, policy and, if necessary, a person; approved reports that a
// person agreed.
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
		call.Why = strictest.Reason
		res, ok = d.ask(ctx, e, call)
		return res, ok, ok
	case Deny, Abstain:
	}
	return denied(e, strictest), false, false
}

// Insists returns why a hook requires a person's approval of a call, "" if none does; no
// rule can allow such a call.
func (d *Dispatcher) Insists(ctx context.Context, call Call, def Definition) string {
	d.mu.Lock()
	hooks := d.hooks
	d.mu.Unlock()
	for _, h := range hooks {
		if h.wants != nil && !h.wants(call.Origin) {
			continue
		}
		if v := callHook(ctx, h.Hook, call, def); v.Decision == Ask {
			return v.Reason
		}
	}
	return ""
}

// strictest asks the hooks, and the policy, which may see the tool in another form.
func (d *Dispatcher) strictest(ctx context.Context, hooks []selected, call Call, def, seen Definition) Verdict {
	out := Verdict{}
	for _, h := range hooks {
		if h.wants != nil && !h.wants(call.Origin) {
			continue
		}
		if v := callHook(ctx, h.Hook, call, def); v.Decision > out.Decision {
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

// agreedTo is the policy's view of a tool whose call was approved in advance.
func agreedTo(def Definition) Definition {
	def.Agreed, def.RequiresApproval = true, false
	return def
}

// decide asks the policy. Its error denies, and so does its absence.
func (d *Dispatcher) decide(ctx context.Context, call Call, def Definition) Verdict {
	if d.cfg.Policy == nil {
		return Verdict{Deny, "there is no policy that could allow it"}
	}
	v, err := d.cfg.Policy.Decide(ctx, call, def)
	if err != nil {
		return Verdict{Deny, err.Error()} // it begins with the setting, as a brief should
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
	d.mu.Lock()
	approver := d.approver
	d.mu.Unlock()
	if approver == nil {
		return Fail(ErrRejected, "denied: %s needs approval and there is nobody to ask", e.Def.Name), false
	}
	if c, ok := e.Tool.(Checker); ok {
		if res, ok := checked(ctx, c, call); !ok {
			return res, false
		}
	}
	brief := e.Def.Identity.String() + " " + string(call.Bound())
	if b, ok := e.Tool.(ApprovalBriefer); ok {
		brief = b.ApprovalBrief(call)
	}
	return unapproved(e.Def.Name, approver.Approve(ctx, call, e.Def, Brief(brief)))
}

// checked has a tool check a call; one that panics says nothing against it, and the call itself reports it.
func checked(ctx context.Context, c Checker, call Call) (res Result, ok bool) {
	defer func() {
		if recover() != nil {
			res, ok = Result{}, true
		}
	}()
	return c.Check(ctx, call)
}

// unapproved returns the result of a call that was not approved, if err says so.
func unapproved(name string, err error) (Result, bool) {
	if err == nil {
		return Result{}, true
	}
	if r, ok := errors.AsType[*RejectedError](err); ok {
		return Fail(ErrRejected, "rejected: %s", r.Error()), false
	}
	if errors.Is(err, context.Canceled) {
		return Fail(ErrRejected, "no approval for %s: the call was cancelled", name), false
	}
	return Fail(ErrRejected, "no approval for %s: %v", name, err), false
}
