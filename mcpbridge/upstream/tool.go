package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
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

var errCallTimeout = errors.New("the call ran into its time limit")

// Invoke implements [feature.Tool]: it relays one call.
func (t *remote) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	start := time.Now()
	limit := newLimit(ctx, cmp.Or(t.p.cfg.Server.CallTimeout, callTimeout))
	defer limit.stop()

	s, leave, err := t.p.session(limit.ctx, call)
	if err != nil {
		return t.explain(ctx, err, limit)
	}
	defer leave()
	if err := s.acquire(limit.ctx); err != nil {
		return t.explain(ctx, err, limit)
	}
	defer s.release()

	var onNote func(note)
	if call.Progress != nil {
		onNote = func(n note) {
			limit.extend()
			if p, ok := progressOf(n); ok {
				call.Progress(p)
			}
		}
	}
	r, err := t.send(limit.ctx, s, call, onNote)
	t.p.stats.record(time.Since(start), err == nil && r.err == nil)
	if err != nil {
		t.p.lostMain(s, err)
		return t.explain(ctx, err, limit)
	}
	if r.err == nil && !r.result.IsObject() {
		return tool.Fail(tool.ErrTool, "server %q sent a result that is no object", t.p.cfg.Server.Name), nil
	}
	if call.Native != nil {
		return tool.Result{OK: r.err == nil, Native: &tool.NativeResult{Result: r.result, Error: r.err, Buffer: r.buf}}, nil
	}
	if r.err != nil {
		return tool.Fail(tool.ErrTool, "%s", jsonrpc.ParseError(r.err).Error()), nil
	}
	return normalise(t.p.cfg.Artifacts, call, r.result.Raw())
}

// send builds the params by splicing: the caller's own where it speaks MCP, with
// the tool's own name and without what belongs to its hop.
func (t *remote) send(ctx context.Context, s *session, call tool.Call, onNote func(note)) (reply, error) {
	var params jsonrpc.Object
	var edits []jsonrpc.Edit
	if call.Native != nil {
		params = call.Native.Params
		edits = append(make([]jsonrpc.Edit, 0, 2), jsonrpc.Edit{Name: "name", Value: t.nameJSON})
	} else {
		raw := append([]byte(`{"name":`), t.nameJSON...)
		raw = append(append(raw, `,"arguments":`...), call.Args...)
		var err error
		if params, err = jsonrpc.ParseObject(append(raw, '}')); err != nil {
			return reply{}, err
		}
	}
	var header http.Header
	if t.typed != nil && s.peer.Era == servers.EraModern {
		header = http.Header{}
		for k, v := range mcp.GenerateParamHeaders(t.typed, params.Append(nil)) {
			header.Set(k, v)
		}
	}
	return s.relay(ctx, methodCallTool, params, edits, onNote, header)
}

// explain turns the failure of a call into what its caller gets to read: the
// server, the cause, the remedy.
func (t *remote) explain(ctx context.Context, err error, limit *limit) (tool.Result, error) {
	name := t.p.cfg.Server.Name
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case limit.ctx.Err() != nil:
		//nolint:nilerr // a timeout is an answer
		return tool.Fail(tool.ErrTimeout, "server %q did not answer within %v; raise tool_timeout_sec in its configuration if it needs longer", name, limit.per), nil
	case errors.Is(err, feature.ErrNotSent):
		return tool.Result{}, fmt.Errorf("server %q: %w", name, err)
	}
	return tool.Fail(tool.ErrUnavailable, "server %q: %s; the call may or may not have taken effect (see: yaya mcp list)", name, feature.Clean(err.Error(), 600)), nil
}

// limit is the time limit of a call: so much without a sign of life, and
// maxCall in all.
type limit struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	per    time.Duration
	end    time.Time

	mu    sync.Mutex
	timer *time.Timer
}

func newLimit(ctx context.Context, per time.Duration) *limit {
	l := &limit{per: per, end: time.Now().Add(max(maxCall, per))}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(per, func() { l.cancel(errCallTimeout) })
	return l
}

// extend starts the time without a sign of life anew, within the whole.
func (l *limit) extend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer.Stop() {
		l.timer.Reset(min(l.per, time.Until(l.end)))
	}
}

func (l *limit) stop() {
	l.timer.Stop()
	l.cancel(nil)
}
