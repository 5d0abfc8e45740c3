package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

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
	return unapproved(e.Def.Name, gate.Admit(ctx, call, e.Def))
}

// permit asks hooks, policy and, if need be, a person; approved tells that one agreed.
func (d *Dispatcher) permit(ctx context.Context, e *Entry, call Call) (res Result, approved, ok bool) {
	if call.Caller.Principal == "" {
		d.cfg.Log.Error().Str("tool", e.Def.Identity.String()).Str("origin", string(call.Origin)).Msg("a tool call was refused: it does not say who makes it")
		return Fail(ErrRejected, "denied: it is not established who calls %s", e.Def.Name), false, false
	}
	d.mu.Lock()
	hooks := d.hooks
	d.mu.Unlock()
	strictest := Verdict{}
	weigh := func(who string, v Verdict, err error) {
		if err != nil {
			v = Verdict{Deny, fmt.Sprintf("%s failed: %v", who, err)}
		}
		if v.Decision > strictest.Decision {
			strictest = v
		}
	}
	def := e.Def
	if p, ok := e.Tool.(PreApproved); ok && p.PreApproved(call) {
		def.Kind, def.RequiresApproval = KindRead, false
	}
	for _, h := range hooks {
		v, err := callHook(ctx, h, call, e.Def)
		weigh("a permission hook", v, err)
	}
	v, err := d.cfg.Policy.Decide(ctx, call, def)
	weigh("the policy", v, err)

	switch strictest.Decision {
	case Allow:
		return Result{}, false, true
	case Ask:
		res, ok = d.ask(ctx, e, call)
		return res, ok, ok
	case Deny, Abstain:
	}
	return Fail(ErrRejected, "denied: %s", cmp.Or(strictest.Reason, "the policy does not allow "+e.Def.Name)), false, false
}

func callHook(ctx context.Context, h Hook, call Call, def Definition) (v Verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return h.PreToolCall(ctx, call, def)
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
