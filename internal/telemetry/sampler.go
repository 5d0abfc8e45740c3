package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"

	"go.opentelemetry.io/otel/trace"
)

// sampler decides which traces are recorded, as OTEL_TRACES_SAMPLER says.
type sampler struct {
	parent bool   // what has a parent does what the parent did
	bound  uint64 // of 2^63: traces with a smaller id are recorded
}

// newSampler reads the variables of the specification. The default records every trace that
// the client does not exclude.
func newSampler(name, arg string) (sampler, error) {
	const all = 1 << 63
	ratio := func() (uint64, error) {
		if arg == "" {
			return all, nil
		}
		r, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(r >= 0 && r <= 1) {
			return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q: it must be a number from 0 to 1", arg)
		}
		return uint64(r * all), nil
	}
	switch name {
	case "", "parentbased_always_on":
		return sampler{true, all}, nil
	case "always_on":
		return sampler{false, all}, nil
	case "parentbased_always_off":
		return sampler{true, 0}, nil
	case "always_off":
		return sampler{false, 0}, nil
	case "traceidratio", "parentbased_traceidratio":
		bound, err := ratio()
		return sampler{name != "traceidratio", bound}, err
	}
	return sampler{}, fmt.Errorf("OTEL_TRACES_SAMPLER is %q: it must be always_on, always_off or traceidratio, or one of them after parentbased_", name)
}

// takes reports whether a trace without a parent is recorded.
func (s sampler) takes(id trace.TraceID) bool {
	return binary.BigEndian.Uint64(id[8:])>>1 < s.bound
}

// decide reports whether a request is recorded, in which trace. parent may be invalid.
func (s sampler) decide(parent trace.SpanContext) (trace.TraceID, bool) {
	if parent.IsValid() {
		if s.parent {
			return parent.TraceID(), parent.IsSampled()
		}
		return parent.TraceID(), s.takes(parent.TraceID())
	}
	if s.bound == 0 {
		return trace.TraceID{}, false
	}
	id := newTraceID()
	return id, s.takes(id)
}

func newTraceID() (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) //nolint:gosec // it has to be unlike others, not secret; and not zero
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())  //nolint:gosec // the same
	return id
}

func newSpanID() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) //nolint:gosec // the same
	return id
}

// idsOf derives the ids of a turn's trace and of its first span from the turn's id. The relay
// knows the ids of turn and call, and so names the span of the call without asking anybody: see
// [Telemetry.InTurn].
func idsOf(turn string) (trace.TraceID, trace.SpanID) {
	sum := sha256.Sum256([]byte("turn\x00" + turn))
	return trace.TraceID(sum[:16]), trace.SpanID(sum[16:24])
}

// spanOf derives the id of the span of a tool call.
func spanOf(turn, call string) trace.SpanID {
	sum := sha256.Sum256([]byte("call\x00" + turn + "\x00" + call))
	return trace.SpanID(sum[:8])
}

// generator gives spans the ids that their context names, and others random ones.
type generator struct{}

type idsKey struct{}

// ids are those of the next span.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs implements [sdktrace.IDGenerator].
func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if f, ok := ctx.Value(idsKey{}).(ids); ok {
		return f.trace, f.span
	}
	return newTraceID(), newSpanID()
}

// NewSpanID implements [sdktrace.IDGenerator].
func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if f, ok := ctx.Value(idsKey{}).(ids); ok {
		return f.span
	}
	return newSpanID()
}
