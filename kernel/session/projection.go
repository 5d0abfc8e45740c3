package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
)

// NotBegun is the result, for the model, of a call before which its turn was ended.
const NotBegun = `{"error":"not run: the turn ended before this call began"}`

// Interrupted is the result, for the model, of a call that has begun, or may have before a crash,
// and whose result was never recorded.
const Interrupted = `{"error":"` + interrupted + `"}`

// Elsewhere is the result, for the model of a fork, of a call that still ran or waited in the parent.
// A sub-agent finds there the call that has started it.
const Elsewhere = `{"pending":"this call had not ended when this conversation branched off from the one that made it; its result does not come here"}`

const interrupted = "interrupted: the call has no result; it may or may not have had an effect"

// NoteRole is the role of notes in a history, see [event.TurnNote].
const NoteRole = "note"

// StoppedHere follows a text in the model's view that it could not finish.
const StoppedHere = "\n[this answer was interrupted here]"

// Projection derives a model's history from entries. The zero
// value is an empty history. It is not safe for concurrent use; the slices that
// Messages returns are never changed.
type Projection struct {
	msgs    []event.Message
	from    []int64        // the entry of each message
	slots   map[string]int // open tool call → the message that waits for its result
	shared  bool           // msgs has been handed out
	summed  bool           // the first message is a summary
	bytes   int
	answer  string // of the model, until it becomes a message …
	partial bool   // … of which the rest is missing: it was cut off
	denied  bool   // the last turn failed because its message was denied
	turn    int64  // the entry with which the turn that runs has begun; 0: none runs
}

// Messages returns the history: the last compaction's summary, if there is one, and
// all messages after it. Every tool call is followed by its result, by [Interrupted], [NotBegun]
// or [Elsewhere].
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

// pictureSize is about what a picture costs, in bytes of text.
const pictureSize = 4000

func size(m event.Message) int {
	n := len(m.Content) + 16
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Args) + 16
	}
	for _, r := range m.Reasoning {
		n += len(r.Text)
	}
	for _, a := range m.Attachments {
		if isPicture(a.MimeType) {
			n += pictureSize
		}
	}
	return n
}

// Apply adds the next entry.
func (p *Projection) Apply(e Entry) {
	switch e.Kind {
	case KindMessage:
		var m Message
		if json.Unmarshal(e.Payload, &m) == nil {
			if p.denied {
				p.withdraw()
			}
			// A message that arrives at the end of a turn follows the answer.
			if m.Role == "user" && p.answer != "" {
				p.push(e.ID, event.Message{Role: "assistant", Content: p.answer})
			}
			p.answer, p.partial = "", false
			tool := m.Role == "tool" // of no call that a model has made: providers would not take it
			if tool {
				m.Role, m.Content = "user", "A tool has said:\n"+m.Content
			}
			p.push(e.ID, event.Message{Role: m.Role, Content: m.Content, Tool: tool, Attachments: m.Attachments})
		}
	case KindToolCall:
		var c event.ToolCall
		if json.Unmarshal(e.Payload, &c) == nil {
			if i, ok := p.slots[c.ID]; ok {
				p.set(i, Interrupted, nil)
			}
		}
	case KindToolResult:
		var r ToolResult
		if json.Unmarshal(e.Payload, &r) == nil {
			p.fill(r.ToolCallID, resultText(r), pictures(r))
		}
	case KindEvent:
		n, ok := e.Note()
		if !ok {
			return
		}
		switch n.Name {
		case event.TurnWasCompleted.Name():
			p.turn = 0
		case event.TurnWasCancelled.Name():
			p.turn = 0
			p.stopped()
		case event.TurnHasFailed.Name():
			p.stopped()
			var f event.TurnFailed
			if json.Unmarshal(n.Data, &f) == nil {
				p.denied = f.Kind == event.Denied
			}
			if f.Kind == afterCrash || f.Kind == "storage" {
				// Either can lose the record of a call that had begun.
				p.reword(Interrupted, NotBegun)
			}
			p.turn = 0
		case event.TurnWasStarted.Name():
			// The next answer is a whole one, and not the rest of that; messages that were denied are tried again.
			p.turn, p.partial, p.denied = e.ID, false, false
		case event.TurnNoted.Name():
			var t event.TurnNote
			if json.Unmarshal(n.Data, &t) == nil {
				p.push(e.ID, event.Message{Role: NoteRole, Note: t.Name, Content: t.Text})
			}
		case event.LLMCallResponse.Name():
			var r event.LLMResponse
			if json.Unmarshal(n.Data, &r) != nil || r.Partial() && r.Text == "" { // which only says what it took
				return
			}
			if !p.partial {
				p.answer = ""
			}
			r.Text = p.answer + r.Text
			p.answer = ""
			if p.partial = false; len(r.ToolCalls) > 0 {
				p.asked(e.ID, r)
			} else {
				p.answer, p.partial = r.Text, r.StopReason == event.StopLength || r.StopReason == event.StopBroken
				if r.StopReason == event.StopInterrupted {
					p.answer += StoppedHere
				}
			}
		case event.ToolCallError.Name():
			var t event.ToolError
			if json.Unmarshal(n.Data, &t) == nil {
				p.fill(t.ID, errorText(t), nil)
			}
		}
	case KindAnchor:
		if c, ok := CompactionOf(e); ok {
			p.compact(c)
		} else if s, ok := shrinkOf(e); ok {
			p.shrink(s)
		}
	}
}

// stopped ends an answer of which the rest does not come.
func (p *Projection) stopped() {
	if p.partial && p.answer != "" {
		p.answer += StoppedHere
	}
	p.partial = false
}

// withdraw removes the messages that no model has answered: one of them was denied. They stay for
// a turn that is tried again without another message.
func (p *Projection) withdraw() {
	p.denied = false
	from := len(p.msgs)
	least := 0
	if p.summed {
		least = 1
	}
	for from > least && p.from[from-1] > 0 && p.msgs[from-1].Role != "assistant" && p.msgs[from-1].Role != "tool" {
		from--
	}
	kept, entries := slices.Clone(p.msgs[:from]), slices.Clone(p.from[:from])
	for i := from; i < len(p.msgs); i++ {
		if m := p.msgs[i]; m.Role == "user" {
			p.bytes -= size(m)
		} else {
			kept, entries = append(kept, m), append(entries, p.from[i])
		}
	}
	p.msgs, p.from, p.shared = kept, entries, false
}

// reword gives results of the last answer's calls that say one of some texts another text, unless a turn
// runs that has not made them: how those of earlier turns ended is known.
func (p *Projection) reword(text string, said ...string) {
	for at := len(p.msgs) - 1; at >= 0 && p.from[at] >= p.turn && p.msgs[at].Role != "assistant"; at-- {
		if p.msgs[at].Role == "tool" && slices.Contains(said, p.msgs[at].Content) {
			p.set(at, text, nil)
		}
	}
}

// asked adds a model's answer with tool calls: the calls, and right after them the
// places of their results.
func (p *Projection) asked(entry int64, r event.LLMResponse) {
	p.push(entry, event.Message{Role: "assistant", Content: r.Text, ToolCalls: r.ToolCalls, Reasoning: r.Reasoning})
	if p.slots == nil {
		p.slots = map[string]int{}
	}
	for _, c := range r.ToolCalls {
		p.slots[c.ID] = len(p.msgs)
		p.push(entry, event.Message{Role: "tool", ToolCallID: c.ID, Content: NotBegun})
	}
}

func (p *Projection) fill(call, text string, shown []event.Attachment) {
	i, ok := p.slots[call]
	if !ok {
		return // not asked for by the model, or answered before
	}
	delete(p.slots, call)
	p.set(i, text, shown)
}

// set gives a message another content.
func (p *Projection) set(i int, text string, shown []event.Attachment) {
	if p.shared {
		p.msgs, p.shared = slices.Clone(p.msgs), false
	}
	p.bytes -= size(p.msgs[i])
	p.msgs[i].Content, p.msgs[i].Attachments = text, shown
	p.bytes += size(p.msgs[i])
}

// maxPictures is how many pictures of one result a model sees.
const maxPictures = 4

// pictures returns those of a result, for models that can see.
func pictures(r ToolResult) (out []event.Attachment) {
	if !bytes.Contains(r.Envelope, []byte(`"artifacts"`)) {
		return nil
	}
	var env struct {
		Artifacts []struct {
			ID       string `json:"id"`
			MimeType string `json:"mime_type"`
		} `json:"artifacts"`
	}
	if json.Unmarshal(r.Envelope, &env) != nil {
		return nil
	}
	for _, a := range env.Artifacts {
		if isPicture(a.MimeType) && len(out) < maxPictures {
			out = append(out, event.Attachment{Ref: a.ID, MimeType: a.MimeType})
		}
	}
	return out
}

func isPicture(mime string) bool { return strings.HasPrefix(mime, "image/") }

// resultText describes a tool's result to a model.
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

// errorText describes a call that never ran to a model.
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
