package traffic

import (
	"encoding/json"

	"github.com/yaya-ai/yaya/internal/cut"
)

// client is an MCP client's description of itself.
type client struct{ name, version string }

// encode appends the line of an entry to w.out, and returns the bodies of the next.
func (w *writer) encode(e *entry, bodies []byte, mode Bodies) (rest []byte) {
	next := func(n int) []byte {
		b := bodies[:n:n]
		bodies = bodies[n:]
		return b
	}
	c := w.client(next(e.client))
	trace := traceID(next(e.trace))
	arguments, result := next(e.arguments), next(e.result)
	if mode == BodiesOff || mode == BodiesErrors && e.Outcome == OutcomeOK { // since the call
		arguments, result = nil, nil
	}
	r := Record{
		ID: w.store.next, Time: e.Start.UTC(), TookMS: float64(e.Took.Microseconds()) / 1000, Origin: e.Origin,
		Client: c.name, ClientVersion: c.version, Principal: cut.Bytes(e.Principal, maxText), Session: cut.Bytes(e.Session, maxText),
		Method: e.Method, Server: cut.Bytes(e.Server, maxText), Tool: cut.Bytes(e.Tool, maxText), Name: cut.Bytes(e.Name, maxText), Outcome: e.Outcome, Error: w.text(e.Error),
		Trace: trace, ArgumentsBytes: int64(e.argSize), ResultBytes: int64(e.resSize), Busy: e.busy,
	}
	if e.Method != MethodTool || e.Outcome != OutcomeOK { // else it is the name of a tool that there is
		r.Tool, r.Name = w.text(e.Tool), w.text(e.Name)
	}
	if r.Name == r.Tool {
		r.Name = ""
	}
	if e.Approved {
		r.Approval = "person"
	}
	w.masked = w.masked[:0]
	arguments = w.body(arguments, e.argSize, &r)
	result = w.body(result, e.resSize, &r)
	w.out = appendRecord(w.out, &r, arguments, result)
	if cap(w.masked) > keptBuffer {
		w.masked = nil
	}
	w.store.next++
	w.l.sums.add(&r)
	return bodies
}

// text returns the recorded form of foreign text.
func (w *writer) text(s string) string {
	if s == "" || w.l.cfg.Mask == nil {
		return cut.Bytes(s, maxText)
	}
	s = cut.Bytes(s, 4*maxText)
	at := len(w.masked)
	w.masked = w.l.cfg.Mask(w.masked, []byte(s))
	if got := w.masked[at:]; string(got) != s {
		s = string(got)
	}
	w.masked = w.masked[:at]
	return cut.Bytes(s, maxText)
}

// body returns the recorded form of a body: masked first, then cut.
func (w *writer) body(b []byte, whole int, r *Record) []byte {
	if len(b) == 0 {
		return nil
	}
	r.Cut = r.Cut || whole > len(b)
	if w.l.cfg.Mask != nil {
		at := len(w.masked)
		w.masked = w.l.cfg.Mask(w.masked, b)
		b = w.masked[at:]
	}
	if len(b) > MaxBody {
		b, r.Cut = b[:MaxBody], true
	}
	return b
}

// client reads an MCP client's description of itself, once for each.
func (w *writer) client(raw []byte) client {
	if len(raw) == 0 {
		return client{}
	}
	if c, ok := w.clients[string(raw)]; ok {
		return c
	}
	var says struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if json.Unmarshal(raw, &says) != nil {
		return client{}
	}
	c := client{cut.Bytes(says.Name, 64), cut.Bytes(says.Version, 32)}
	if len(w.clients) >= maxClients {
		clear(w.clients)
	}
	w.clients[string(raw)] = c
	return c
}

// maxTrace is the length of a traceparent: version, trace id, parent id, flags.
const maxTrace = 55

// traceID returns the trace id of a traceparent, "" if it is malformed.
func traceID(parent []byte) string {
	if len(parent) != maxTrace || parent[2] != '-' || parent[35] != '-' {
		return ""
	}
	for _, c := range parent[3:35] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return string(parent[3:35])
}
