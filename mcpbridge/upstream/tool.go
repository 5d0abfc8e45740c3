package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// remote is a tool of the server.
type remote struct {
	p        *Provider
	hash     [32]byte
	native   jsonrpc.Object
	nameJSON []byte    // the tool's own name as a JSON string
	typed    *mcp.Tool // with x-mcp-header annotations only
	spec     feature.Spec
}

// Spec implements [feature.Tool].
func (t *remote) Spec() feature.Spec { return t.spec }

// invocation holds all that a call needs while it runs, in one piece of memory.
type invocation struct {
	limit  limit
	edits  [4]jsonrpc.Edit
	native tool.NativeResult
}

// Invoke implements [feature.Tool]: it relays one call.
func (t *remote) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	in := new(invocation)
	limit := &in.limit
	o := outgoing{method: methodCallTool, target: t.spec.Name, by: call.Caller.Principal, caller: call.Caller, origin: call.Origin}
	if call.Native != nil {
		o.peer, _ = call.Native.Peer.(relay.Peer)
		o.params = call.Native.Params
		o.edits = append(in.edits[:0], jsonrpc.Edit{Name: "name", Value: t.nameJSON})
	} else {
		raw := append([]byte(`{"name":`), t.nameJSON...)
		raw = append(append(raw, `,"arguments":`...), call.Args...)
		var err error
		if o.params, err = jsonrpc.ParseObject(append(raw, '}')); err != nil {
			return tool.Result{}, err
		}
	}
	if report := call.Progress; report != nil { // the whole call would go to the heap
		o.progress = func(n note) {
			if p, ok := progressOf(n); ok {
				report(p)
			}
		}
	}
	ctx = t.p.cfg.Telemetry.InTurn(ctx, call.Turn, call.ID)
	limit.start(ctx, t.p.times())
	defer limit.stop()
	o.limit = limit
	before := t.p.denials.count.Load()
	r, err := t.p.exchange(limit, call.SessionID, o, t.typed)
	if err != nil {
		res, err := t.explain(ctx, err, limit)
		if denied := t.p.tells(call.Caller, before); denied != "" && err == nil {
			res = failedBecause(res, denied)
		}
		return res, err
	}
	if t.p.cfg.Kept != nil {
		t.p.complaints(r)
	}
	if denied := t.p.tells(call.Caller, before); denied != "" {
		r = r.because(denied)
	}
	if r.err == nil && !r.result.IsObject() {
		r.buf.Release()
		return tool.Fail(tool.ErrTool, "server %q sent a result that is not an object", t.p.cfg.Server.Name), nil
	}
	if call.Native != nil {
		if r.err == nil && call.Origin != tool.OriginNode { // the other node has the client, and the bound
			if r, err = t.bounded(call, r); err != nil {
				r.buf.Release()
				return tool.Fail(tool.ErrTool, "server %q: %v", t.p.cfg.Server.Name, err), nil
			}
		}
		in.native = tool.NativeResult{Result: r.result, Error: r.err, Buffer: r.buf}
		return tool.Result{OK: r.err == nil, Native: &in.native}, nil
	}
	defer r.buf.Release()
	if r.err != nil {
		return tool.Fail(tool.ErrTool, "%s", jsonrpc.ParseError(r.err).Error()), nil
	}
	return normalise(t.p.cfg.Artifacts, call, r.result.Raw())
}

// explain turns the failure of a call into a message for its caller: the server, the cause, the
// remedy.
func (t *remote) explain(ctx context.Context, err error, limit *limit) (tool.Result, error) {
	name := t.p.cfg.Server.Name
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case limit.Err() != nil:
		//nolint:nilerr // a timeout is a result
		return tool.Fail(tool.ErrTimeout, "%s", t.p.late(err, limit)), nil
	case errors.Is(err, errTooLarge), errors.Is(err, errNoRoom):
		return tool.Fail(tool.ErrTool, "server %q: %v", name, err), nil
	case unmade(err):
		return tool.Fail(tool.ErrUnavailable, "server %q: %v", name, err), nil
	case errors.Is(err, feature.ErrNotSent):
		return tool.Result{}, fmt.Errorf("server %q: %w", name, err)
	}
	return tool.Fail(tool.ErrUnavailable, "server %q: %s; the call may or may not have taken effect (see: yaya mcp list)", name, feature.Clean(t.p.cfg.Secrets.ConcealString(err.Error()), 600)), nil
}

// late tells which limit ended a call.
func (p *Provider) late(err error, l *limit) string {
	e := l.expired()
	waited, queued := errors.AsType[*waitedError](err)
	switch {
	case queued:
		return fmt.Sprintf("server %q: %v", p.cfg.Server.Name, waited)
	case e != nil:
		return fmt.Sprintf("server %q %v", p.cfg.Server.Name, e)
	}
	return fmt.Sprintf("server %q: %s", p.cfg.Server.Name, feature.Clean(p.cfg.Secrets.ConcealString(err.Error()), 600))
}

// unmade reports whether a call was never made and must not be repeated at once.
func unmade(err error) bool {
	if _, busy := errors.AsType[*busyError](err); busy {
		return true
	}
	if _, open := errors.AsType[*openError](err); open {
		return true
	}
	wait, ok := errors.AsType[patient](err)
	return ok && wait.RetryAfter() > 0
}
