package downstream

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// observed wraps work so that telemetry shows it. Without telemetry it stays as it is.
func (s *Server) observed(work func(context.Context, *exchange) ([]byte, error)) func(context.Context, *exchange) ([]byte, error) {
	t := s.cfg.Telemetry
	if t == nil {
		return work
	}
	return func(ctx context.Context, x *exchange) ([]byte, error) {
		c := telemetry.Call{Method: x.msg.Method, Principal: x.caller.Principal, Session: x.c.token, Transport: telemetry.Pipe}
		if x.overHTTP {
			c.Transport = telemetry.TCP
		}
		ctx, op := t.Served(ctx, c, x.traceContext())
		result, err := work(ctx, x)
		op.Named(x.passed.server, x.passed.tool)
		op.End(ctx, x.failure(err))
		return result, err
	}
}

// failure returns the type of a request's error by OpenTelemetry's conventions, "" for none: a
// code of JSON-RPC, tool_error for a result that is an error, or yaya's own word.
func (x *exchange) failure(err error) string {
	e, isError := errors.AsType[*jsonrpc.Error](err)
	switch {
	case errors.Is(err, errNoAnswer):
		return string(tool.ErrCancelled)
	case x.passed.outcome == tool.ErrTool:
		return telemetry.ToolError
	case x.passed.outcome != "":
		return string(x.passed.outcome)
	case isError && e.Raw != nil:
		return strconv.Itoa(jsonrpc.ParseError(e.Raw).Code)
	case isError:
		return strconv.Itoa(e.Code)
	case err != nil:
		return string(tool.ErrInternal)
	}
	return ""
}

// traceContext returns the trace that a request belongs to: what _meta says, else the header
// of its HTTP request.
func (x *exchange) traceContext() telemetry.Context {
	if parent, state := x.traceOf(); parent != nil {
		return telemetry.Context{Parent: parent, State: state}
	}
	return x.ambient
}

// traceOf returns traceparent and tracestate of _meta, as W3C writes them; nil for none.
func (x *exchange) traceOf() (parent, state []byte) {
	raw := x.msg.Params.Get("_meta")
	if raw == nil || raw[0] != '{' || !bytes.Contains(raw, []byte("traceparent")) {
		return nil, nil
	}
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil, nil
	}
	return unquoted(meta.Get("traceparent")), unquoted(meta.Get("tracestate"))
}

// unquoted returns the text of a string that needs no escapes, nil for anything else.
func unquoted(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return nil
	}
	return v[1 : len(v)-1]
}
