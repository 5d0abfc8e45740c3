package telemetry

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// maxState bounds the tracestate that is taken over from a client (W3C Trace Context,
// section 3.3.1.5).
const maxState = 512

// parse reads a traceparent, with the tracestate that came with it (W3C Trace Context, section
// 3.2). A malformed one is as none.
func parse(parent, state []byte) trace.SpanContext {
	// version "-" trace-id "-" parent-id "-" flags; a later version may have more.
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || (len(parent) > 55 && (string(parent[:2]) == "00" || parent[55] != '-')) {
		return trace.SpanContext{}
	}
	var version, flags [1]byte
	var id trace.TraceID
	var span trace.SpanID
	if !lower(parent[:55]) || !decode(version[:], parent[:2]) || !decode(id[:], parent[3:35]) || !decode(span[:], parent[36:52]) || !decode(flags[:], parent[53:55]) || version[0] == 0xff {
		return trace.SpanContext{}
	}
	c := trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled, Remote: true}
	if len(state) > 0 && len(state) <= maxState {
		if s, err := trace.ParseTraceState(string(state)); err == nil { // a malformed one is left out
			c.TraceState = s
		}
	}
	return trace.NewSpanContext(c)
}

func decode(dst, src []byte) bool {
	_, err := hex.Decode(dst, src)
	return err == nil
}

// lower reports whether hexadecimal digits are in lower case, as the specification wants them.
func lower(b []byte) bool {
	for _, c := range b {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	return true
}

// format writes a traceparent.
func format(c trace.SpanContext) string {
	id, span := c.TraceID(), c.SpanID()
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, id[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	if c.IsSampled() {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}
