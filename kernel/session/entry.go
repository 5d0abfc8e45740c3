package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// The kinds of entries.
const (
	KindMessage    = "message"     // {role, content, …}
	KindToolCall   = "tool_call"   // {id, name, args}
	KindToolResult = "tool_result" // {tool_call_id, ok, …}
	KindAnchor     = "anchor"      // {name, state}
	KindEvent      = "event"       // {name, data}
)

// Entry is one record of a tape. Ids are consecutive and start at 1; those of a
// fork continue its parent's.
type Entry struct {
	ID      int64           `json:"id"`
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload"`
	Meta    Meta            `json:"meta"`
	Date    time.Time       `json:"date"` // wall clock, for people; order is by ID

	note *Note // of an entry that was just written; see [Entry.Note]
}

// Meta records the origin of an entry.
type Meta struct {
	Event  string `json:"event,omitempty"`  // id of the event
	Source string `json:"source,omitempty"` // its source, unless the kernel
	Client string `json:"client,omitempty"` // the id that a client gave it
	Turn   string `json:"turn,omitempty"`   // the turn that it belongs to
	Starts bool   `json:"starts,omitempty"` // the turn starts with this message; see [event.Event]
}

// Message is the payload of a message entry.
type Message struct {
	Role        string             `json:"role"`
	Content     string             `json:"content"`
	Attachments []event.Attachment `json:"attachments,omitempty"`
	ToolCalls   []event.ToolCall   `json:"tool_calls,omitempty"`
}

// ToolResult is the payload of a tool_result entry.
type ToolResult struct {
	ToolCallID string          `json:"tool_call_id"`
	OK         bool            `json:"ok"`
	Value      json.RawMessage `json:"value,omitempty"`
	Error      string          `json:"error,omitempty"`
	Envelope   json.RawMessage `json:"envelope,omitempty"`
	RequestID  string          `json:"request_id,omitempty"`
}

// Anchor is the payload of an anchor entry.
type Anchor struct {
	Name  string          `json:"name"`
	State json.RawMessage `json:"state"`
}

// Note is the payload of an event entry.
type Note struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// noted is a note that is about to be written.
type noted struct {
	Name string `json:"name"`
	Data any    `json:"data"`
}

// Note returns the note that an event entry holds; ok is false for an entry of another kind, or of
// another form. Do not change the data: others read it, too.
func (e Entry) Note() (n Note, ok bool) {
	if e.note != nil {
		return *e.note, true
	}
	return n, e.Kind == KindEvent && json.Unmarshal(e.Payload, &n) == nil
}

// noteIn returns the note in the JSON text of a payload, for the readers of a new entry: each
// would parse it again. It is nil for any other payload, and where a secret in the name was masked.
func noteIn(payload any, raw json.RawMessage) *Note {
	var name string
	switch p := payload.(type) {
	case noted:
		name = p.Name
	case Note:
		name = p.Name
	default:
		return nil
	}
	data, ok := bytes.CutPrefix(raw, []byte(`{"name":"`+name+`","data":`))
	if !ok {
		return nil
	}
	end := len(data) - len("}")
	return &Note{Name: name, Data: data[:end:end]}
}

// canonical reports whether a kind is always recorded, whatever its emitter asks
// for.
func canonical(kind string) bool {
	switch kind {
	case event.UserMessageReceived.Name(), event.AssistantMessageDone.Name(),
		event.ToolCallRequest.Name(), event.ToolCallResult.Name(), event.ToolCallError.Name():
		return true
	}
	return false
}

// owed reports whether the emitter of a kind must learn that it was not recorded.
func owed(kind string) bool {
	return kind == event.UserMessageReceived.Name() || kind == event.ToolCallRequest.Name()
}

// entryOf maps an event to its entry; ok is false for an event that is not
// recorded.
func entryOf(ev event.Event) (kind string, payload any, ok bool) {
	switch p := ev.Payload.(type) {
	case event.UserMessage:
		return KindMessage, Message{Role: "user", Content: p.Text, Attachments: p.Attachments}, true
	case event.AssistantMessage:
		return KindMessage, Message{Role: "assistant", Content: p.Content, ToolCalls: p.ToolCalls}, true
	case event.ToolRequest:
		return KindToolCall, event.ToolCall{ID: p.ID, Name: p.Name, Args: p.Args}, true
	case event.ToolResult:
		return KindToolResult, ToolResult{p.ID, p.OK, p.Value, p.Error, p.Envelope, p.RequestID}, true
	}
	k, known := event.Lookup(ev.Kind)
	if !known || k.Class == event.Lossy || strings.HasPrefix(ev.Kind, "session.") || (ev.Unrecorded && !canonical(ev.Kind)) {
		return "", nil, false
	}
	return KindEvent, noted{ev.Kind, ev.Payload}, true
}

// EntryOf returns the entry that an event becomes, without id; ok is false for an
// event that is not recorded. It keeps history where there is no tape.
func EntryOf(ev event.Event) (e Entry, ok bool) {
	kind, payload, ok := entryOf(ev)
	if !ok {
		return Entry{}, false
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return Entry{}, false
	}
	return Entry{Kind: kind, Payload: raw}, true
}

// members renders the members of a journal record except its id and sums.
func members(kind string, p json.RawMessage, meta Meta, now time.Time) ([]byte, error) {
	b := make([]byte, 0, len(p)+160)
	b = append(b, `"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","payload":`...)
	b = append(b, p...)
	b = append(b, `,"meta":`...)
	m, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	b = append(b, m...)
	b = append(b, `,"date":"`...)
	b = now.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	return append(b, '"'), nil
}

func decodeEntry(line []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, fmt.Errorf("entry: %w", err)
	}
	return e, nil
}

// ownNotes begin the names of notes that the kernel alone writes.
const ownNotes = "x.session."

// Owns reports whether the writer of an entry may write a note of that name: what a plugin calls by
// the name of one of the kernel's notes says nothing about the session.
func (e Entry) Owns(name string) bool {
	return e.Meta.Source == "" || !strings.HasPrefix(name, ownNotes)
}

// Event returns the event that an entry was made of. Anchors have none.
func (e Entry) Event(session string) (event.Event, bool) {
	source := e.Meta.Source
	if source == "" {
		source = event.KernelSource
	}
	ev := event.Event{ID: e.Meta.Event, SessionID: session, Time: e.Date, Source: source, Entry: e.ID, ClientID: e.Meta.Client, Turn: e.Meta.Turn, Starts: e.Meta.Starts}
	set := func(kind string, payload any) (event.Event, bool) {
		ev.Kind, ev.Payload = kind, payload
		return ev, true
	}
	switch e.Kind {
	case KindMessage:
		var m Message
		if json.Unmarshal(e.Payload, &m) != nil {
			return event.Event{}, false
		}
		if m.Role != "user" && m.Role != "assistant" {
			return event.Event{}, false
		}
		if m.Role == "user" {
			return set(event.UserMessageReceived.Name(), event.UserMessage{Text: m.Content, Attachments: m.Attachments})
		}
		if m.ToolCalls == nil {
			m.ToolCalls = []event.ToolCall{}
		}
		return set(event.AssistantMessageDone.Name(), event.AssistantMessage{Content: m.Content, ToolCalls: m.ToolCalls})
	case KindToolCall:
		var c event.ToolCall
		if json.Unmarshal(e.Payload, &c) != nil {
			return event.Event{}, false
		}
		return set(event.ToolCallRequest.Name(), event.ToolRequest{ID: c.ID, Name: c.Name, Args: c.Args, SchemaVersion: event.SchemaV1})
	case KindToolResult:
		var r ToolResult
		if json.Unmarshal(e.Payload, &r) != nil {
			return event.Event{}, false
		}
		return set(event.ToolCallResult.Name(), event.ToolResult{ID: r.ToolCallID, OK: r.OK, Value: r.Value, Error: r.Error, Envelope: r.Envelope, Request: event.Request{RequestID: r.RequestID}})
	case KindEvent:
		n, ok := e.Note()
		if !ok {
			return event.Event{}, false
		}
		payload, err := event.DecodePayload(n.Name, n.Data)
		if err != nil {
			return event.Event{}, false
		}
		if k, ok := event.Lookup(n.Name); ok && k.OnKernel {
			ev.SessionID = event.KernelSession
		}
		return set(n.Name, payload)
	}
	return event.Event{}, false
}
