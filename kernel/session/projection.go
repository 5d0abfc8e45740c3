package session

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Interrupted is what a model is told of a call whose result was never recorded.
const Interrupted = `{"error":"` + interrupted + `"}`

const interrupted = "interrupted: the call has no result; it may or may not have had an effect"

// Projection derives a model's history from entries (Y-159, Y-172). The zero
// value is an empty history. It is not safe for concurrent use; the slices that
// Messages returns are never changed.
type Projection struct {
	msgs   []event.Message
	from   []int64        // the entry of each message
	slots  map[string]int // open tool call → the message that waits for its result
	shared bool           // msgs has been handed out
	bytes  int
	answer string // of the model, until it becomes a message
}

// Messages returns the history: the last compaction's summary, if there is one,
// and what came after. Every tool call is followed by its result, or by
// [Interrupted].
func (p *Projection) Messages() []event.Message {
	p.shared = true
	return p.msgs[:len(p.msgs):len(p.msgs)]
}

// Tokens estimates the length of the history in tokens.
func (p *Projection) Tokens() int { return p.bytes / 4 }

func (p *Projection) push(entry int64, m event.Message) {
	p.msgs = append(p.msgs, m)
	p.from = append(p.from, entry)
	p.bytes += size(m)
}

func size(m event.Message) int {
	n := len(m.Content) + 16
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Args) + 16
	}
	return n
}

// Apply takes in the next entry.
func (p *Projection) Apply(e Entry) {
	switch e.Kind {
	case KindMessage:
		var m Message
		if json.Unmarshal(e.Payload, &m) == nil {
			// Who speaks into the end of a turn speaks after the answer.
			if m.Role == "user" && p.answer != "" {
				p.push(e.ID, event.Message{Role: "assistant", Content: p.answer})
			}
			p.answer = ""
			if m.Role == "tool" { // of no call that a model has made: providers would not take it
				m.Role, m.Content = "user", "A tool has said:\n"+m.Content
			}
			p.push(e.ID, event.Message{Role: m.Role, Content: m.Content, Attachments: m.Attachments})
		}
	case KindToolResult:
		var r ToolResult
		if json.Unmarshal(e.Payload, &r) == nil {
			p.fill(r.ToolCallID, resultText(r))
		}
	case KindEvent:
		var n Note
		if json.Unmarshal(e.Payload, &n) != nil {
			return
		}
		switch n.Name {
		case event.LLMCallResponse.Name():
			var r event.LLMResponse
			if json.Unmarshal(n.Data, &r) != nil {
				return
			}
			p.answer = ""
			if len(r.ToolCalls) > 0 {
				p.asked(e.ID, r)
			} else {
				p.answer = r.Text
			}
		case event.ToolCallError.Name():
			var t event.ToolError
			if json.Unmarshal(n.Data, &t) == nil {
				p.fill(t.ID, errorText(t))
			}
		}
	case KindAnchor:
		if c, ok := compactionOf(e); ok {
			p.compact(c)
		}
	}
}

// asked takes in an answer of the model that calls tools: the calls, and right
// behind them the places of their results.
func (p *Projection) asked(entry int64, r event.LLMResponse) {
	p.push(entry, event.Message{Role: "assistant", Content: r.Text, ToolCalls: r.ToolCalls})
	if p.slots == nil {
		p.slots = map[string]int{}
	}
	for _, c := range r.ToolCalls {
		p.slots[c.ID] = len(p.msgs)
		p.push(entry, event.Message{Role: "tool", ToolCallID: c.ID, Content: Interrupted})
	}
}

func (p *Projection) fill(call, text string) {
	i, ok := p.slots[call]
	if !ok {
		return // not asked for by the model, or answered before
	}
	delete(p.slots, call)
	if p.shared {
		p.msgs, p.shared = slices.Clone(p.msgs), false
	}
	p.bytes += len(text) - len(p.msgs[i].Content)
	p.msgs[i].Content = text
}

// Compaction is the state of an anchor that replaces the entries before KeepFrom
// by a summary (Y-160, Y-180).
type Compaction struct {
	Kind         string `json:"kind"` // "compaction"
	Summary      string `json:"summary"`
	KeepFrom     int64  `json:"keep_from"` // first entry that is still shown as it is
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
}

func compactionOf(e Entry) (Compaction, bool) {
	var a Anchor
	var c Compaction
	if e.Kind != KindAnchor || json.Unmarshal(e.Payload, &a) != nil || len(a.State) == 0 || json.Unmarshal(a.State, &c) != nil || c.Kind != "compaction" {
		return Compaction{}, false
	}
	if c.KeepFrom <= 0 || c.KeepFrom > e.ID {
		c.KeepFrom = e.ID
	}
	return c, true
}

func (p *Projection) compact(c Compaction) {
	cut, _ := slices.BinarySearch(p.from, c.KeepFrom)
	msgs, from, slots := p.msgs[cut:], p.from[cut:], p.slots
	*p = Projection{answer: p.answer}
	p.push(0, event.Message{Role: "system", Content: c.Summary})
	for i, m := range msgs {
		p.push(from[i], m)
	}
	for call, i := range slots {
		if i >= cut {
			if p.slots == nil {
				p.slots = map[string]int{}
			}
			p.slots[call] = i - cut + 1
		}
	}
}

// Split divides the history for a compaction that keeps about keep tokens at its
// end, at least the last message from the user: what to summarise, and the entry
// from which on to keep. It returns nil when there is nothing to gain.
func (p *Projection) Split(keep int) (old []event.Message, keepFrom int64) {
	cut, n := 0, 0
	for i := len(p.msgs) - 1; i >= 0; i-- {
		n += size(p.msgs[i])
		if p.msgs[i].Role != "user" {
			continue // never between a call and its result
		}
		if cut > 0 && n/4 > keep {
			break
		}
		cut = i
	}
	if cut <= 1 { // one message, which may be a summary already
		return nil, 0
	}
	return p.msgs[:cut:cut], p.from[cut]
}

// resultText is a tool's result as a model reads it.
func resultText(r ToolResult) string {
	if len(r.Envelope) > 0 {
		var env struct {
			Display []struct {
				Text     string          `json:"text"`
				Markdown string          `json:"markdown"`
				Data     json.RawMessage `json:"data"`
			} `json:"display"`
			Brief string `json:"brief"`
		}
		if json.Unmarshal(r.Envelope, &env) == nil {
			var parts []string
			for _, b := range env.Display {
				parts = append(parts, b.Text+b.Markdown+string(b.Data))
			}
			if text := strings.Join(parts, "\n"); text != "" {
				return text
			}
			return env.Brief
		}
	}
	if !r.OK {
		return `{"error":` + quote(r.Error) + `}`
	}
	if len(r.Value) > 0 {
		return string(r.Value)
	}
	return "ok"
}

// errorText is a call that never ran, as a model reads it.
func errorText(t event.ToolError) string {
	if len(t.Detail) > 0 {
		var d struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(t.Detail, &d) == nil && d.Message != "" {
			return d.Message
		}
		return t.Brief + "\n" + string(t.Detail)
	}
	return t.Brief
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}
