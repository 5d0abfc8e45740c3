package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Call describes a request of MCP. Its texts are those of clients and servers.
type Call struct {
	Method string
	// Target is the tool, the prompt or the URI that the request names, "" for none.
	Target string
	// Server is the MCP server's name in yaya; known for requests that yaya sends.
	Server    string
	Principal string
	Session   string // of the protocol; "" for none
	Transport string // tcp or pipe, "" if unknown
}

// Context is a client's trace context, as it came.
type Context struct{ Parent, State []byte }

// Operation is a request in progress. The zero value is one that nobody observes.
type Operation struct {
	t     *Telemetry
	meter *meter
	begun time.Time
	span  trace.Span // nil if it is not recorded
	call  Call
}

// Served begins a request that a client made. The returned context is for everything that the
// request causes.
func (t *Telemetry) Served(ctx context.Context, c Call, from Context) (context.Context, Operation) {
	if t == nil {
		return ctx, Operation{}
	}
	o := Operation{t: t, begun: time.Now(), call: c}
	if t.meters != nil {
		o.meter = &t.meters.server
	}
	if t.tracer == nil {
		return ctx, o
	}
	parent := parse(from.Parent, from.State)
	id, sampled := t.sampler.decide(parent)
	if !sampled {
		return ctx, o
	}
	if parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	} else {
		ctx = context.WithValue(ctx, idsKey{}, ids{id, newSpanID()})
	}
	ctx, o.span = t.tracer.Start(ctx, spanName(c), trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(o.begun))
	return context.WithValue(ctx, idsKey{}, nil), o
}

// Sent begins a request to a server. It is recorded if it is caused by something that is.
func (t *Telemetry) Sent(ctx context.Context, c Call) (context.Context, Operation) {
	if t == nil {
		return ctx, Operation{}
	}
	o := Operation{t: t, begun: time.Now(), call: c}
	if t.meters != nil {
		o.meter = &t.meters.client
	}
	if t.tracer == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, o
	}
	ctx, o.span = t.tracer.Start(ctx, spanName(c), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(o.begun))
	return ctx, o
}

// Named says what a request turned out to be for: a server, and its tool, prompt or resource.
func (o *Operation) Named(server, target string) { o.call.Server, o.call.Target = server, target }

// Trace returns the trace context that a server gets with the request, "" if it is not recorded:
// the client's own then passes unchanged.
func (o *Operation) Trace() (parent, state string) {
	if o.span == nil {
		return "", ""
	}
	c := o.span.SpanContext()
	return format(c), c.TraceState().String()
}

// End ends a request. failure is the type of its error, "" if it has none.
func (o *Operation) End(ctx context.Context, failure string) {
	if o.t == nil {
		return
	}
	now := time.Now()
	if o.meter != nil {
		o.meter.record(ctx, now.Sub(o.begun).Seconds(), o.call, failure)
	}
	if o.span == nil {
		return
	}
	o.span.SetName(spanName(o.call))
	o.span.SetAttributes(o.call.attributes(true)...)
	fail(o.span, failure)
	o.span.End(trace.WithTimestamp(now))
}

func fail(span trace.Span, failure string) {
	if failure != "" {
		span.SetAttributes(attribute.String(attrErrorType, failure))
		span.SetStatus(codes.Error, "")
	}
}

// maxName bounds a name in a span, in bytes.
const maxName = 200

func short(s string) string {
	if len(s) > maxName {
		return s[:maxName]
	}
	return s
}

// spanName is the name by the conventions: the method, and the tool or prompt, which are few. A
// URI is an attribute.
func spanName(c Call) string {
	if c.Target != "" && (c.Method == methodCallTool || c.Method == methodPrompt) {
		return c.Method + " " + short(c.Target)
	}
	return c.Method
}

// attributes describes a call; those of metrics are few.
func (c Call) attributes(all bool) []attribute.KeyValue {
	out := append(make([]attribute.KeyValue, 0, 8), attribute.String(attrMethod, c.Method))
	add := func(name, value string) {
		if value != "" {
			out = append(out, attribute.String(name, short(value)))
		}
	}
	switch c.Method {
	case methodCallTool:
		add(attrOperation, opExecuteTool)
		add(attrTool, c.Target)
	case methodPrompt:
		add(attrPrompt, c.Target)
	default:
		if all {
			add(attrResource, c.Target)
		}
	}
	add(attrServer, c.Server)
	add(attrTransport, c.Transport)
	if all {
		add(attrPrincipal, c.Principal)
		add(attrSession, c.Session)
	}
	return out
}
