package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Limits of the kept part of a session.
const (
	maxBlocks = 4000     // older blocks are available elsewhere
	maxText   = 64 << 10 // bytes of a block
)

// kind tells who wrote a block.
type kind int

const (
	fromUser kind = iota
	fromModel
	fromTool
	fromShell // a command of the user's
	note
	trouble
)

// block is a part of the conversation.
type block struct {
	kind kind
	text string // for a tool or a command: its result
	tool call
	// drawn are its lines as of an epoch; a change of the block clears it.
	drawn []string
	epoch int
}

// call is a call of a tool.
type call struct {
	id, name  string
	input     json.RawMessage
	progress  string
	brief     string // the outcome
	done, bad bool
}

// Ask is a question about a call.
type Ask struct {
	ID       string          `json:"approval_id"`
	Call     string          `json:"tool_call_id"`
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"input"`
	Brief    string          `json:"brief"`
	Deadline string          `json:"deadline"`
}

type queued struct {
	ID   string `json:"message_id"`
	Text string `json:"text"`
}

// transcript is the state that the events of a session add up to.
type transcript struct {
	blocks  []block
	stream  string // the text that the model is writing
	running bool
	turn    string // the last one that started
	failed  bool   // so it has ended
	stopped bool   // by its user
	closed  bool
	asks    []Ask
	queue   []queued
	changes int // a version number, to cache the layout

	model   string  // of the last call, "" if its provider does not say
	mode    string  // "plan" or "work"
	context int     // tokens of the last prompt and its answer; 0 if the history is shorter since
	cost    float64 // of all turns, in US dollars, as far as prices are known
}

func (t *transcript) add(b block) {
	b.text = bounded(b.text)
	t.blocks = append(t.blocks, b)
	if len(t.blocks) > maxBlocks {
		t.blocks = slices.Delete(t.blocks, 0, maxBlocks/4)
	}
	t.changes++
}

func textOf(parts []Part) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.Text != "":
			out = append(out, p.Text)
		case p.Ref != "":
			out = append(out, "[file "+p.Name+" "+p.Ref+"]")
		}
	}
	return strings.Join(out, "\n")
}

// data is the part of the events' payload that the chat uses.
type data struct {
	Message struct {
		Role  string `json:"role"`
		Parts []Part `json:"parts"`
	} `json:"message"`
	Text     string `json:"text"`
	Offset   int    `json:"offset"`
	ToolCall struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"tool_call"`
	ToolResult struct {
		ID    string `json:"id"`
		OK    bool   `json:"ok"`
		Brief string `json:"brief"`
		Error string `json:"error"`
		Parts []Part `json:"parts"`
	} `json:"tool_result"`
	Model    string   `json:"model"`
	Wait     float64  `json:"wait_seconds"`
	Failed   modelRef `json:"failed"`
	Next     modelRef `json:"next"`
	Mode     string   `json:"mode"`
	Tool     string   `json:"tool_name"`
	Approval string   `json:"approval_id"`
	Reason   string   `json:"reason"`
	How      string   `json:"how"`
	ForAll   bool     `json:"for_session"`
	Queue    []queued `json:"queue"`
	CostUSD  float64  `json:"cost_usd"`
	Usage    struct {
		Total int `json:"total"`
	} `json:"usage"`
	Error    string `json:"error"`
	Command  string `json:"command"`
	ExitCode *int   `json:"exit_code"`
	Current  struct {
		TurnID string   `json:"turn_id"`
		Asks   []Ask    `json:"pending_approvals"`
		Queue  []queued `json:"queue"`
	} `json:"current"`
}

// modelRef names a model at a provider.
type modelRef struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// name is the model's, or its provider's id if the provider does not say which model it has.
func (r modelRef) name() string { return cmp.Or(r.Model, r.Provider) }

func (r modelRef) String() string { return strings.TrimSuffix(r.Provider+"/"+r.Model, "/") }

// The modes of a session.
const (
	planMode = "plan"  // it only reads until its plan is approved
	editMode = "edits" // most changes of files need no question
)

// Waits writes how long something waits, in seconds.
func Waits(seconds float64) string { return fmt.Sprintf("%.1f s", seconds) }

// take adds an event.
func (t *transcript) take(ev Event) {
	var d data
	switch ev.Type {
	case "message_added", "tool_progress": // "message" is an object in one event, a string in the other
		if ev.Type == "tool_progress" {
			t.progress(ev.Data)
			return
		}
	case "approval_requested":
		var a Ask
		if json.Unmarshal(ev.Data, &a) == nil && !slices.ContainsFunc(t.asks, func(x Ask) bool { return x.ID == a.ID }) {
			t.asks = append(t.asks, a)
		}
		return
	}
	if json.Unmarshal(ev.Data, &d) != nil {
		return // from a newer yaya
	}
	switch ev.Type {
	case "message_added":
		k := fromUser
		if d.Message.Role != "user" {
			k = note
		}
		if d.Message.Role != "assistant" && d.Message.Role != "tool" { // these arrive as separate events
			t.add(block{kind: k, text: textOf(d.Message.Parts)})
		}
	case "turn_started":
		t.running, t.turn, t.failed, t.stopped, t.stream = true, ev.TurnID, false, false, ""
		t.model = d.Model
	case "model_output_delta":
		if d.Offset == 0 || d.Offset > len(t.stream) {
			t.stream = ""
		}
		t.stream = t.stream[:min(d.Offset, len(t.stream))] + d.Text
	case "model_output_completed":
		t.stream = ""
		t.model, t.context = cmp.Or(d.Model, t.model), cmp.Or(d.Usage.Total, t.context) // a broken answer has neither
		if d.Text != "" {
			t.add(block{kind: fromModel, text: d.Text})
		}
	case "tool_call_started":
		if t.tool(d.ToolCall.ID) == nil {
			t.add(block{kind: fromTool, tool: call{id: d.ToolCall.ID, name: d.ToolCall.Name, input: d.ToolCall.Input}})
		}
	case "tool_call_completed":
		t.completed(d)
	case "approval_granted", "approval_denied", "approval_withdrawn":
		t.asks = slices.DeleteFunc(t.asks, func(a Ask) bool { return a.ID == d.Approval })
		t.add(block{kind: note, text: answered(ev.Type, d)})
	case "queue_changed":
		t.queue = d.Queue
	case "verify_completed":
		if d.ExitCode != nil && *d.ExitCode != 0 {
			t.add(block{kind: trouble, text: fmt.Sprintf("check %s failed (%d)", d.Command, *d.ExitCode)})
		} else {
			t.add(block{kind: note, text: "check " + d.Command + " passed"})
		}
	case "turn_completed":
		t.end(d, false)
	case "session_failed":
		t.end(d, true)
		t.add(block{kind: trouble, text: "the turn failed: " + d.Error})
	case "session_canceled":
		t.end(d, false)
		t.stopped = true
		t.add(block{kind: trouble, text: strings.TrimSuffix("the turn was cancelled: "+d.Reason, ": ")})
	case "session_completed":
		t.closed = true
		t.add(block{kind: note, text: "the session is closed"})
	case "session_reset":
		*t = transcript{changes: t.changes + 1, mode: t.mode}
		t.add(block{kind: note, text: "the session starts over"})
	case "history_compacted", "notice", "model_retry", "model_fallback", "mode_changed", "model_changed":
		switch ev.Type {
		case "history_compacted":
			t.context = 0 // the next call says it
		case "mode_changed":
			t.mode = d.Mode
		case "model_changed":
			t.model = "" // the next call has another one
		}
		t.add(block{kind: note, text: tells(ev.Type, d)})
	case "resync":
		*t = transcript{changes: t.changes + 1, mode: t.mode, running: d.Current.TurnID != "", turn: d.Current.TurnID, asks: d.Current.Asks, queue: d.Current.Queue}
		t.add(block{kind: note, text: "the earlier conversation is not shown: " + d.Reason})
	}
	t.changes++
}

// Told describes an event about the model or the history, such as a retry, in a sentence.
func Told(ev Event) string {
	var d data
	if json.Unmarshal(ev.Data, &d) != nil {
		return "" // from a newer yaya
	}
	return tells(ev.Type, d)
}

// tells describes an event that a note in the transcript tells of.
func tells(event string, d data) string {
	switch {
	case event == "history_compacted" && d.How == "shortened":
		return "long results of tools were shortened for the model"
	case event == "history_compacted":
		return "the earlier conversation was summarized for the model"
	case event == "model_retry":
		return fmt.Sprintf("the model did not answer (%s); asked again after %s", d.Error, Waits(d.Wait))
	case event == "model_fallback":
		return fmt.Sprintf("%s cannot answer (%s): %s answers instead", d.Failed, d.Error, d.Next)
	case event == "mode_changed" && d.Mode == planMode:
		return "the agent only reads until you approve its plan (/plan off ends that)"
	case event == "mode_changed" && d.Mode == editMode:
		return "the agent changes files without a question (/edits off ends that, /undo undoes a change)"
	case event == "mode_changed":
		return "the agent may work: change files and run commands, as far as you allow it"
	case event == "model_changed":
		return "the model of this session is now " + cmp.Or(d.Model, "the active one")
	}
	return d.Text
}

// Withdrawn describes why a question ended without an answer: reason is that of the event.
func Withdrawn(reason string) string {
	switch reason {
	case "timeout":
		return "nobody answered in time, so the call was rejected"
	case "shutdown":
		return "the question was withdrawn, because the turn was cancelled or yaya stopped"
	}
	return "the question was withdrawn: " + reason
}

func answered(typ string, d data) string {
	switch {
	case typ == "approval_withdrawn":
		return strings.TrimPrefix(d.Tool+": ", ": ") + Withdrawn(d.Reason)
	case typ == "approval_denied":
		return strings.TrimSuffix("rejected "+d.Tool+": "+d.Reason, ": ")
	case d.ForAll && d.Tool == trustTool:
		return "approved " + d.Tool + " for this session"
	case d.ForAll:
		return "approved this call of " + d.Tool + ", also later in this session"
	}
	return "approved " + d.Tool
}

func (t *transcript) end(d data, failed bool) {
	t.cost += max(d.CostUSD, 0)
	t.running, t.failed, t.stream = false, failed, ""
}

// tool returns the block of a call, to change it; nil if there is none.
func (t *transcript) tool(id string) *block {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		if b := &t.blocks[i]; b.kind == fromTool && b.tool.id == id {
			b.drawn = nil
			return b
		}
	}
	return nil
}

func (t *transcript) completed(d data) {
	b := t.tool(d.ToolResult.ID)
	if b == nil {
		t.add(block{kind: fromTool, tool: call{id: d.ToolResult.ID, name: "a call"}})
		b = &t.blocks[len(t.blocks)-1]
	}
	b.tool.done, b.tool.bad = true, !d.ToolResult.OK
	b.tool.brief = cmp.Or(d.ToolResult.Brief, d.ToolResult.Error)
	b.text = bounded(textOf(d.ToolResult.Parts))
	t.changes++
}

func (t *transcript) progress(raw json.RawMessage) {
	var p struct {
		Call     string   `json:"tool_call_id"`
		Progress float64  `json:"progress"`
		Total    *float64 `json:"total"`
		Message  string   `json:"message"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return
	}
	b := t.tool(p.Call)
	if b == nil || b.tool.done {
		return
	}
	said := strings.TrimSpace(p.Message) // of a command, the last lines of its output
	said = strings.TrimSpace(said[strings.LastIndexByte(said, '\n')+1:])
	switch {
	case p.Total != nil:
		said = strings.TrimSpace(fmt.Sprintf("%v of %v %s", p.Progress, *p.Total, said))
	case said == "":
		said = fmt.Sprint(p.Progress) // of a command, which has a message, it counts bytes
	}
	b.tool.progress = said
	t.changes++
}

// bounded cuts a text to the size that is kept.
func bounded(s string) string {
	if len(s) > maxText {
		s = cut.Bytes(s, maxText) + "\n…"
	}
	return s
}
