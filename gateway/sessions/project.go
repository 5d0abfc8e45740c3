package sessions

import (
	"encoding/json"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Event is an event as clients are sent it, and a line of events.ndjson.
type Event struct {
	Time      string `json:"ts" format:"date-time"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id" doc:"empty for what belongs to no turn"`
	Type      string `json:"type"`
	Data      any    `json:"data"`
	// Seq is the entry of the tape that the event follows from; volatile events have
	// the last one before them.
	Seq   int64  `json:"seq"`
	Epoch string `json:"epoch"`
	// Entry is the entry itself, 0 for volatile events.
	Entry int64 `json:"entry_id,omitempty"`
}

// The types of events: those of the contract, and some more.
const (
	SessionCreated   = "session_created"
	MessageAdded     = "message_added"
	TurnStarted      = "turn_started"
	OutputDelta      = "model_output_delta"
	OutputCompleted  = "model_output_completed"
	ToolStarted      = "tool_call_started"
	ToolCompleted    = "tool_call_completed"
	ApprovalAsked    = "approval_requested"
	ApprovalGranted  = "approval_granted"
	ApprovalDenied   = "approval_denied"
	TurnCompleted    = "turn_completed"
	SessionCompleted = "session_completed"
	SessionFailed    = "session_failed"
	SessionCanceled  = "session_canceled"

	ToolProgress      = "tool_progress"      // volatile
	ApprovalWithdrawn = "approval_withdrawn" // neither granted nor denied
	QueueChanged      = "queue_changed"
	VerifyStarted     = "verify_started"
	VerifyCompleted   = "verify_completed"
	SessionReset      = "session_reset"
	HistoryCompacted  = "history_compacted"
	ModelChanged      = "model_changed"
	ModeChanged       = "mode_changed"
	Notice            = "notice"         // for people
	ModelRetry        = "model_retry"    // the same model is asked again
	ModelFallback     = "model_fallback" // another model is asked
	Resync            = "resync"         // not in events.ndjson: it is for one client
)

// noteClosed is the note of a session that was closed.
const noteClosed = "x.session.closed"

// Part is a part of a message.
type Part struct {
	Type     string `json:"type" enum:"text,image,audio,file"`
	Text     string `json:"text,omitempty" doc:"of a text"`
	Ref      string `json:"ref,omitempty" doc:"of an attachment, as its upload has answered"`
	MimeType string `json:"mime_type,omitempty"`
	Name     string `json:"name,omitempty"`
}

// Message is a message.
type Message struct {
	ID        string `json:"id" doc:"msg_…"`
	Role      string `json:"role" enum:"system,user,assistant,tool"`
	Parts     []Part `json:"parts"`
	CreatedAt string `json:"created_at" format:"date-time"`
	TurnID    string `json:"turn_id,omitempty"`
	Seq       int64  `json:"seq"`
}

// The data of events.
type (
	createdData struct {
		Workspace string `json:"workspace_path"`
		ParentID  string `json:"parent_id,omitempty"`
	}
	messageData struct {
		Message Message `json:"message"`
	}
	turnData struct {
		Model string `json:"model,omitempty"`
	}
	deltaData struct {
		Text   string `json:"text"`
		Offset int    `json:"offset"` // where it belongs in the output, in bytes
	}
	outputData struct {
		Text      string       `json:"text"`
		ToolCalls []toolCall   `json:"tool_calls"`
		Usage     *event.Usage `json:"usage,omitempty"`
		Model     string       `json:"model,omitempty"`
		CostUSD   float64      `json:"cost_usd,omitempty"`
	}
	toolCall struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolStartedData struct {
		ToolCall toolCall `json:"tool_call"`
	}
	toolResult struct {
		ID        string          `json:"id"`
		OK        bool            `json:"ok"`
		Parts     []Part          `json:"parts"`
		Error     string          `json:"error,omitempty"`
		Kind      string          `json:"kind,omitempty"` // of the failure
		Brief     string          `json:"brief,omitempty"`
		Artifacts json.RawMessage `json:"artifacts,omitempty"`
	}
	toolCompletedData struct {
		ToolResult toolResult `json:"tool_result"`
	}
	progressData struct {
		ToolCallID string   `json:"tool_call_id"`
		Progress   float64  `json:"progress"`
		Total      *float64 `json:"total,omitempty"`
		Message    string   `json:"message,omitempty"`
	}
	askData struct {
		ApprovalID string          `json:"approval_id"`
		ToolCallID string          `json:"tool_call_id"`
		ToolName   string          `json:"tool_name"`
		Input      json.RawMessage `json:"input"`
		Brief      string          `json:"brief"`
		Deadline   string          `json:"deadline,omitempty"`
		SessionID  string          `json:"asking_session_id,omitempty"` // where a sub-agent asks
	}
	answerData struct {
		ApprovalID string `json:"approval_id"`
		ToolCallID string `json:"tool_call_id"`
		ToolName   string `json:"tool_name"`
		Reason     string `json:"reason,omitempty"`
		ForSession bool   `json:"for_session,omitempty"`
		By         string `json:"by,omitempty"`
	}
	endData struct {
		Usage *event.Usage `json:"usage,omitempty"`
		// CostUSD is the cost of the turn in US dollars, as far as prices are known.
		CostUSD float64 `json:"cost_usd,omitempty"`
		Steps   int     `json:"steps,omitempty"`
		Error   string  `json:"error,omitempty"`
		Kind    string  `json:"kind,omitempty"`
		Reason  string  `json:"reason,omitempty"`
	}
	queueData struct {
		Queue []queued `json:"queue"`
	}
	queued struct {
		MessageID string `json:"message_id"`
		Text      string `json:"text"`
	}
	modelData struct {
		Model string `json:"model" doc:"the id of a provider, or ID/MODEL; empty: the active one"`
	}
	modeData struct {
		Mode session.Mode `json:"mode" enum:"work,plan,edits"`
	}
	noticeData struct {
		Text string `json:"text"`
	}
	retryData struct {
		Attempt    int     `json:"attempt" doc:"that failed, from 1"`
		Wait       float64 `json:"wait_seconds" doc:"until the next one"`
		Error      string  `json:"error"`
		Kind       string  `json:"kind,omitempty"`
		StatusCode int     `json:"status_code,omitempty"`
	}
	modelRef struct {
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}
	fallbackData struct {
		Failed     modelRef `json:"failed" doc:"the model that cannot answer"`
		Next       modelRef `json:"next" doc:"the one that answers for the rest of the turn"`
		Error      string   `json:"error"`
		Kind       string   `json:"kind,omitempty"`
		StatusCode int      `json:"status_code,omitempty"`
	}
	verifyData struct {
		Command   string `json:"command"`
		ExitCode  *int   `json:"exit_code,omitempty"`
		OutputRef string `json:"output_ref,omitempty"`
	}
	compactedData struct {
		Before int    `json:"tokens_before"`
		After  int    `json:"tokens_after"`
		How    string `json:"how"` // summarized, or shortened
	}
	nothing struct{}
)

// project returns what clients see of an entry; ok is false for what they do not.
// It depends on the entry alone, so that what is sent live, what is read again, and
// what is in events.ndjson are the same.
func project(id, epoch string, e session.Entry) (ev Event, ok bool) {
	ev = Event{Time: control.Stamp(e.Date), SessionID: id, TurnID: e.Meta.Turn, Seq: e.ID, Entry: e.ID, Epoch: epoch}
	switch e.Kind {
	case session.KindAnchor:
		ev.Type, ev.Data, ok = anchor(e)
	case session.KindMessage:
		m, known := message(e)
		ev.Type, ev.Data, ok = MessageAdded, messageData{m}, known
	case session.KindToolResult:
		var r session.ToolResult
		ok = json.Unmarshal(e.Payload, &r) == nil
		ev.Type, ev.Data = ToolCompleted, toolCompletedData{result(r)}
	case session.KindEvent:
		if n, known := e.Note(); known && e.Owns(n.Name) {
			ev.Type, ev.Data, ok = note(n)
		}
	}
	return ev, ok
}

func anchor(e session.Entry) (string, any, bool) {
	var a session.Anchor
	if json.Unmarshal(e.Payload, &a) != nil {
		return "", nil, false
	}
	switch a.Name {
	case "session/start":
		var st struct {
			Workspace string `json:"workspace"`
			Parent    *struct {
				SessionID string `json:"session_id"`
			} `json:"parent"`
		}
		if json.Unmarshal(a.State, &st) != nil {
			return "", nil, false
		}
		d := createdData{Workspace: st.Workspace}
		if st.Parent != nil {
			d.ParentID = st.Parent.SessionID
		}
		return SessionCreated, d, true
	default:
		var c session.Compaction // of which a shrink has the same members, as far as they matter
		if json.Unmarshal(a.State, &c) != nil {
			return "", nil, false
		}
		switch c.Kind {
		case "compaction":
			return HistoryCompacted, compactedData{c.TokensBefore, c.TokensAfter, event.Summarized}, true
		case "shrink":
			return HistoryCompacted, compactedData{c.TokensBefore, c.TokensAfter, event.Shortened}, true
		}
		return "", nil, false
	}
}

// message returns the message of an entry.
func message(e session.Entry) (Message, bool) {
	var m session.Message
	if json.Unmarshal(e.Payload, &m) != nil {
		return Message{}, false
	}
	out := Message{ID: e.Meta.Client, Role: m.Role, Parts: []Part{}, CreatedAt: control.Stamp(e.Date), TurnID: e.Meta.Turn, Seq: e.ID}
	if out.ID == "" {
		out.ID = "msg_" + e.Meta.Event
	}
	if m.Content != "" || len(m.Attachments) == 0 {
		out.Parts = append(out.Parts, Part{Type: "text", Text: m.Content})
	}
	for _, a := range m.Attachments {
		out.Parts = append(out.Parts, Part{Type: partType(a.MimeType), Ref: a.Ref, MimeType: a.MimeType, Name: a.Name})
	}
	return out, true
}

func calls(in []event.ToolCall) []toolCall {
	out := make([]toolCall, len(in))
	for i, c := range in {
		out[i] = toolCall{c.ID, c.Name, c.Args}
	}
	return out
}

// result returns a tool's result as clients see it.
func result(r session.ToolResult) toolResult {
	out := toolResult{ID: r.ToolCallID, OK: r.OK, Error: r.Error, Parts: []Part{}}
	var env struct {
		Kind    string `json:"kind"`
		Brief   string `json:"brief"`
		Display []struct {
			Text     string          `json:"text"`
			Markdown string          `json:"markdown"`
			Data     json.RawMessage `json:"data"`
		} `json:"display"`
		Artifacts json.RawMessage `json:"artifacts"`
	}
	if len(r.Envelope) > 0 && json.Unmarshal(r.Envelope, &env) == nil {
		out.Kind, out.Brief, out.Artifacts = env.Kind, env.Brief, env.Artifacts
		for _, b := range env.Display {
			out.Parts = append(out.Parts, Part{Type: "text", Text: b.Text + b.Markdown + string(b.Data)})
		}
	} else if len(r.Value) > 0 {
		out.Parts = append(out.Parts, Part{Type: "text", Text: string(r.Value)})
	}
	if !r.OK && out.Error == "" {
		out.Error = out.Brief
	}
	return out
}

// note returns the type and data of a recorded event.
func note(n session.Note) (string, any, bool) {
	p, err := event.DecodePayload(n.Name, n.Data)
	if err != nil {
		return "", nil, false
	}
	switch p := p.(type) {
	case event.TurnStarted:
		return TurnStarted, turnData{p.Model}, true
	case event.LLMResponse:
		if p.Partial() && p.Text != "" {
			return OutputCompleted, outputData{Text: p.Text, ToolCalls: calls(nil)}, true
		}
		if p.RequestID == "" { // calls that the strategy makes, or what a call took that wrote nothing
			return "", nil, false
		}
		return OutputCompleted, outputData{p.Text, calls(p.ToolCalls), &p.Usage, p.Model, p.CostUSD}, true
	case event.ToolCall: // tool.call.start
		return ToolStarted, toolStartedData{toolCall{p.ID, p.Name, p.Args}}, true
	case event.ToolError:
		return ToolCompleted, toolCompletedData{toolResult{ID: p.ID, Error: p.Brief, Kind: string(p.Kind), Brief: p.Brief, Parts: []Part{{Type: "text", Text: failure(p)}}}}, true
	case event.ApprovalRequest:
		var a session.Ask
		if json.Unmarshal(n.Data, &a) != nil {
			return "", nil, false
		}
		return ApprovalAsked, ask(a), true
	case event.ApprovalResponse:
		var d answerData
		var by struct {
			CallID string `json:"call_id"`
			Tool   string `json:"tool_name"`
			By     string `json:"by"`
		}
		if json.Unmarshal(n.Data, &by) != nil {
			return "", nil, false
		}
		d = answerData{p.ID, by.CallID, by.Tool, p.Feedback, p.Response == event.ApproveForSession, by.By}
		if p.Response == event.Reject {
			return ApprovalDenied, d, true
		}
		return ApprovalGranted, d, true
	case event.ApprovalCancelled:
		var w struct {
			CallID string `json:"call_id"`
			Tool   string `json:"tool_name"`
		}
		_ = json.Unmarshal(n.Data, &w) // an older record has neither
		return ApprovalWithdrawn, answerData{ApprovalID: p.ID, ToolCallID: w.CallID, ToolName: w.Tool, Reason: p.Reason}, true
	case event.TurnCompleted:
		return TurnCompleted, endData{Usage: &p.Usage, CostUSD: p.CostUSD, Steps: p.Steps, Reason: string(p.StopReason)}, true
	case event.TurnFailed:
		return SessionFailed, endData{Error: p.Error, Kind: p.Kind}, true
	case event.TurnCancelled:
		return SessionCanceled, endData{Reason: p.Reason}, true
	case event.Notice:
		return Notice, noticeData{p.Text}, true
	case event.LLMRetry:
		return ModelRetry, retryData{p.Attempt, p.WaitS, p.Error, string(p.Kind), p.StatusCode}, true
	case event.LLMFallback:
		return ModelFallback, fallbackData{modelRef(p.Failed), modelRef(p.Next), p.Error, string(p.Kind), p.StatusCode}, true
	case event.VerifyStarted:
		return VerifyStarted, verifyData{Command: p.Command}, true
	case event.VerifyCompleted:
		return VerifyCompleted, verifyData{p.Command, p.ExitCode, p.OutputRef}, true
	}
	switch n.Name {
	case noteClosed:
		return SessionCompleted, nothing{}, true
	case session.NoteMode:
		mode, ok := session.ModeOf(n.Data)
		return ModeChanged, modeData{mode}, ok
	case session.NoteModel:
		model, ok := session.ChosenModel(n.Data)
		return ModelChanged, modelData{model}, ok
	case session.NoteQueue:
		var q struct {
			Prompts []session.Prompt `json:"prompts"`
		}
		if json.Unmarshal(n.Data, &q) != nil {
			return "", nil, false
		}
		return QueueChanged, queueData{queue(q.Prompts)}, true
	}
	return "", nil, false
}

func queue(prompts []session.Prompt) []queued {
	out := make([]queued, len(prompts))
	for i, p := range prompts {
		out[i] = queued{p.ID, p.Text}
	}
	return out
}

func ask(a session.Ask) askData {
	return askData{a.ID, a.CallID, a.ToolName, a.Params, a.Brief, a.Deadline, a.SessionID}
}

// failure returns the text of a call that never ran.
func failure(t event.ToolError) string {
	var d struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(t.Detail, &d) == nil && d.Message != "" {
		return d.Message
	}
	return t.Brief
}
