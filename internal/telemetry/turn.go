package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// maxOpen bounds the turns, model calls and tool calls whose ends are awaited; others are
// not recorded.
const maxOpen = 4096

// Usage counts the tokens of a model call. Input has the cached ones in it.
type Usage struct{ Input, Output, CacheRead, CacheCreation int }

// InTurn returns a context for a tool call of an agent: what it causes belongs to the span of
// that call.
func (t *Telemetry) InTurn(ctx context.Context, turn, call string) context.Context {
	if t == nil || t.tracer == nil || turn == "" {
		return ctx
	}
	id, _ := idsOf(turn)
	if !t.sampler.takes(id) {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: spanOf(turn, call), TraceFlags: trace.FlagsSampled}))
}

// TurnStarted begins the span of a turn. The turn of a sub-agent, whose session begins with
// that of its parent, has a trace of its own, which is linked to the parent's turn.
func (t *Telemetry) TurnStarted(session, parent, turn, agent string, at time.Time) {
	if t == nil || t.tracer == nil {
		return
	}
	id, span := idsOf(turn)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of) < maxOpen {
		t.of[session] = turn
	}
	if !t.sampler.takes(id) || len(t.turns) >= maxOpen {
		return
	}
	o := []trace.SpanStartOption{trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
		attribute.String(attrOperation, opInvokeAgent), attribute.String(attrAgent, agent), attribute.String(attrConversation, session), attribute.String(attrTurn, turn),
	)}
	if above := t.turns["turn "+t.of[parent]]; parent != "" && above != nil {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: above.SpanContext()}))
	}
	_, t.turns["turn "+turn] = t.tracer.Start(context.WithValue(context.Background(), idsKey{}, ids{id, span}), opInvokeAgent+" "+short(agent), o...)
}

// TurnEnded ends the span of a turn. failure is the type of its error, "" if it has none.
func (t *Telemetry) TurnEnded(session, turn, agent, failure string, took time.Duration, at time.Time) {
	if t == nil {
		return
	}
	if t.meters != nil && took > 0 {
		t.meters.agent.Record(context.Background(), took.Seconds(), with(failure, attribute.String(attrAgent, agent)))
	}
	t.mu.Lock()
	if t.of[session] == turn {
		delete(t.of, session)
	}
	t.mu.Unlock()
	t.end("turn "+turn, failure, at)
}

// begin begins a span in a turn.
func (t *Telemetry) begin(key, turn string, span trace.SpanID, kind trace.SpanKind, name string, at time.Time, attrs ...attribute.KeyValue) {
	if t.tracer == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	above := t.turns["turn "+turn]
	if above == nil || len(t.turns) >= maxOpen {
		return
	}
	ctx := context.Background()
	if span.IsValid() {
		ctx = context.WithValue(ctx, idsKey{}, ids{span: span})
	}
	_, t.turns[key] = t.tracer.Start(trace.ContextWithSpan(ctx, above), name, trace.WithTimestamp(at), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
}

// end ends a span that is open.
func (t *Telemetry) end(key, failure string, at time.Time, attrs ...attribute.KeyValue) {
	t.mu.Lock()
	span := t.turns[key]
	delete(t.turns, key)
	t.mu.Unlock()
	if span == nil {
		return
	}
	span.SetAttributes(attrs...)
	fail(span, failure)
	span.End(trace.WithTimestamp(at))
}

// running returns the turn of a session that is recorded, "" for none.
func (t *Telemetry) running(session string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[session]
}

// ModelAsked begins the span of a model call.
func (t *Telemetry) ModelAsked(session, request, provider, model string, at time.Time) {
	if t == nil {
		return
	}
	t.begin("model "+request, t.running(session), trace.SpanID{}, trace.SpanKindClient, opChat+" "+short(model), at,
		attribute.String(attrOperation, opChat), attribute.String(attrProvider, provider), attribute.String(attrModel, model), attribute.String(attrConversation, session))
}

// ModelAnswered ends the span of a model call. failure is the type of its error, "" if it
// has none.
func (t *Telemetry) ModelAnswered(request, provider, model, failure string, u Usage, took time.Duration, at time.Time) {
	if t == nil {
		return
	}
	if m := t.meters; m != nil {
		of := []attribute.KeyValue{attribute.String(attrOperation, opChat), attribute.String(attrProvider, provider), attribute.String(attrModel, model)}
		m.model.Record(context.Background(), took.Seconds(), with(failure, of...))
		if failure == "" {
			m.tokens.Record(context.Background(), int64(u.Input), with("", append(of, attribute.String(attrTokenType, "input"))...))
			m.tokens.Record(context.Background(), int64(u.Output), with("", append(of, attribute.String(attrTokenType, "output"))...))
		}
	}
	var attrs []attribute.KeyValue
	if failure == "" {
		attrs = []attribute.KeyValue{attribute.Int(attrInputTokens, u.Input), attribute.Int(attrOutputTokens, u.Output), attribute.Int(attrCacheRead, u.CacheRead), attribute.Int(attrCacheCreation, u.CacheCreation)}
	}
	t.end("model "+request, failure, at, attrs...)
}

// ToolAsked begins the span of a tool call of an agent.
func (t *Telemetry) ToolAsked(turn, call, tool string, at time.Time) {
	if t == nil {
		return
	}
	t.begin("tool "+turn+" "+call, turn, spanOf(turn, call), trace.SpanKindInternal, opExecuteTool+" "+short(tool), at,
		attribute.String(attrOperation, opExecuteTool), attribute.String(attrTool, short(tool)), attribute.String(attrToolCall, short(call)))
}

// ToolAnswered ends the span of a tool call. failure is the type of its error, "" if it has none.
func (t *Telemetry) ToolAnswered(turn, call, tool, failure string, took time.Duration, at time.Time) {
	if t == nil {
		return
	}
	if t.meters != nil {
		t.meters.tool.Record(context.Background(), took.Seconds(), with(failure, attribute.String(attrTool, short(tool))))
	}
	t.end("tool "+turn+" "+call, failure, at)
}

// with returns attributes of a metric, and the type of an error if there is one.
func with(failure string, attrs ...attribute.KeyValue) metric.MeasurementOption {
	if failure != "" {
		attrs = append(attrs[:len(attrs):len(attrs)], attribute.String(attrErrorType, failure))
	}
	return metric.WithAttributes(attrs...)
}
