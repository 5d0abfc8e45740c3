package upstream

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// observe begins the telemetry of a request. If the request is recorded, the server gets the
// trace context of its span in place of the client's.
func (p *Provider) observe(ctx context.Context, s *session, o *outgoing) (context.Context, telemetry.Operation) {
	t := p.cfg.Telemetry
	if t == nil {
		return ctx, telemetry.Operation{}
	}
	c := telemetry.Call{Method: o.method, Target: o.named(), Server: p.cfg.Server.Name, Principal: o.by, Transport: telemetry.Pipe}
	if _, child := s.t.(*stdio); !child {
		c.Transport = telemetry.TCP
	}
	ctx, op := t.Sent(ctx, c)
	o.trace, o.state = op.Trace()
	return ctx, op
}

// named returns what a request is for: the tool, the prompt or the URI, in the server's own words.
func (o *outgoing) named() string {
	if o.target != "" {
		return o.target
	}
	member := named[o.method]
	for _, e := range o.edits {
		if e.Name == member {
			name, _ := jsonrpc.AsString(e.Value)
			return name
		}
	}
	name, _ := o.params.String(member)
	return name
}

// traceHeader gives an HTTP request the trace context of its span, for servers that read
// headers.
func (o *outgoing) traceHeader(req *request) {
	if o.trace == "" {
		return
	}
	if req.header == nil {
		req.header = http.Header{}
	}
	req.header.Set("traceparent", o.trace)
	if o.state != "" {
		req.header.Set("tracestate", o.state)
	}
}

// retraced returns the caller's _meta with the trace context of the request's span.
func (o *outgoing) retraced(callers []byte) []byte {
	if o.trace == "" {
		return callers
	}
	if callers == nil {
		callers = []byte("{}")
	}
	obj, err := jsonrpc.ParseObject(callers)
	if err != nil { // it is not an object: the server says so
		return callers
	}
	state := jsonrpc.Edit{Name: "tracestate"}
	if o.state != "" {
		state.Value = jsonrpc.AppendString(nil, o.state)
	}
	return obj.Append(nil, jsonrpc.Edit{Name: "traceparent", Value: jsonrpc.AppendString(nil, o.trace)}, state)
}

// failure returns the type of an answer that is an error, "" for none.
func (r reply) failure() string {
	switch {
	case r.err != nil:
		return strconv.Itoa(jsonrpc.ParseError(r.err).Code)
	case string(r.result.Get("isError")) == "true":
		return telemetry.ToolError
	}
	return ""
}

// failureOf returns the type of a failed request, or that of its answer.
func failureOf(err error, answered string) string {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, errCallTimeout), errors.Is(err, context.DeadlineExceeded):
		return string(tool.ErrTimeout)
	case errors.Is(err, context.Canceled):
		return string(tool.ErrCancelled)
	}
	return string(tool.ErrUnavailable)
}
