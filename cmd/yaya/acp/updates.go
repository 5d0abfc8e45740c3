package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/internal/cut"
)

// maxShown bounds what the editor gets of a result.
const maxShown = 64 << 10

// happening is the part of an event's data that is translated.
type happening struct {
	Message struct {
		ID     string      `json:"id"`
		Role   string      `json:"role"`
		Parts  []chat.Part `json:"parts"`
		TurnID string      `json:"turn_id"`
	} `json:"message"`
	Text     string `json:"text"`
	Offset   int    `json:"offset"`
	Calls    []call `json:"tool_calls"`
	ToolCall call   `json:"tool_call"`
	Result   struct {
		ID    string      `json:"id"`
		OK    bool        `json:"ok"`
		Parts []chat.Part `json:"parts"`
		Error string      `json:"error"`
	} `json:"tool_result"`
	Approval string `json:"approval_id"`
	Error    string `json:"error"`
	Kind     string `json:"kind"`
	Mode     string `json:"mode"`
	Command  string `json:"command"`
	ExitCode *int   `json:"exit_code"`
	Current  struct {
		TurnID string     `json:"turn_id"`
		Asks   []chat.Ask `json:"pending_approvals"`
		Queue  []struct {
			ID string `json:"message_id"`
		} `json:"queue"`
	} `json:"current"`
}

type call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// take translates an event, if the protocol has a counterpart.
func (s *session) take(ev chat.Event) {
	switch ev.Type {
	case "tool_progress":
		s.progress(ev.Data)
		return
	case "approval_requested":
		var q chat.Ask
		if json.Unmarshal(ev.Data, &q) == nil && s.live {
			s.ask(q)
		}
		return
	}
	var d happening
	if json.Unmarshal(ev.Data, &d) != nil {
		return // from a newer yaya
	}
	switch ev.Type {
	case "message_added":
		s.message(ev, d)
	case "turn_started":
		s.said = ""
	case "model_output_delta":
		s.delta(ev.TurnID, d.Offset, d.Text)
	case "model_output_completed":
		s.delta(ev.TurnID, 0, d.Text)
		s.said = ""
		s.output++
		for _, c := range d.Calls {
			s.announce(c, pending)
		}
	case "tool_call_started":
		s.announce(d.ToolCall, running)
		if p, ok := planned(d.ToolCall); ok {
			s.update(p)
		}
	case "tool_call_completed":
		s.result(d)
	case "approval_granted", "approval_denied", "approval_withdrawn":
		s.settled(d.Approval)
	case "verify_completed":
		if d.ExitCode != nil && *d.ExitCode != 0 {
			s.update(chunk{Kind: "agent_thought_chunk", Content: text(fmt.Sprintf("The check %s failed (%d).\n", d.Command, *d.ExitCode))})
		}
	case "turn_completed":
		// Never "refusal": an editor takes that as a prompt that is not part of the next one.
		s.ended(ev.TurnID, outcome{reason: "end_turn"})
	case "notice":
		s.update(chunk{Kind: "agent_message_chunk", Message: "yaya", Content: text("\n\n" + d.Text + "\n\n")})
	case "model_retry", "model_fallback", "history_compacted":
		if told := chat.Told(ev); told != "" {
			s.update(chunk{Kind: "agent_thought_chunk", Content: text(told + ".\n")})
		}
	case "session_failed":
		if !s.ended(ev.TurnID, failure(d)) { // no prompt of this editor gets the error
			s.update(chunk{Kind: "agent_message_chunk", Message: "yaya", Content: text("\n\nThe turn failed: " + d.Error + "\n\n")})
		}
	case "session_canceled":
		s.ended(ev.TurnID, outcome{reason: "cancelled"})
	case "model_changed":
		if s.live {
			s.modelChanged(ev.Data)
		}
	case "mode_changed":
		if s.live {
			s.update(inMode{"current_mode_update", d.Mode})
		}
	case "resync":
		s.resync(d)
	}
}

// resync goes on from a state, because the events until then are no longer there: a prompt
// that is not part of it is over.
func (s *session) resync(d happening) {
	s.said = ""
	waits := map[string]bool{}
	for _, q := range d.Current.Queue {
		waits[q.ID] = true
	}
	s.finish(func(t *turn) bool { return t.id != d.Current.TurnID && !waits[t.message] }, outcome{reason: "cancelled"})
	for _, q := range d.Current.Asks {
		s.ask(q)
	}
}

// failure is the outcome of a turn that failed.
func failure(d happening) outcome {
	if d.Kind == "max_iterations" {
		return outcome{reason: "max_turn_requests"}
	}
	return outcome{err: errors.New("the turn failed: " + d.Error)}
}

// message tells of a message, unless the editor has sent it itself, and which turn takes it.
func (s *session) message(ev chat.Event, d happening) {
	if d.Message.Role != "user" {
		return // the rest arrives as events of its own
	}
	s.mu.Lock()
	mine := s.prompt != nil && s.prompt.message == d.Message.ID
	if mine {
		s.prompt.id = cmp.Or(d.Message.TurnID, ev.TurnID)
	}
	s.mu.Unlock()
	if mine {
		return
	}
	for _, p := range d.Message.Parts {
		b := text(p.Text)
		if p.Ref != "" {
			b = text("[" + p.Name + "]")
		}
		s.update(chunk{Kind: "user_message_chunk", Message: d.Message.ID, Content: b})
	}
}

// delta tells of what is new in an output.
func (s *session) delta(turn string, offset int, piece string) {
	if offset > len(s.said) || len(s.said)-offset > len(piece) || s.said[offset:] != piece[:len(s.said)-offset] {
		return // the whole output comes at its end, and what has been said stays said
	}
	fresh := piece[len(s.said)-offset:]
	if fresh == "" {
		return
	}
	s.said += fresh
	s.update(chunk{Kind: "agent_message_chunk", Message: turn + "-" + strconv.Itoa(s.output), Content: text(fresh)})
}

// announce tells of a call, or that it runs.
func (s *session) announce(c call, status string) {
	if s.calls[c.ID] {
		s.update(toolCall{Update: "tool_call_update", ID: c.ID, Status: status})
		return
	}
	s.calls[c.ID] = true
	out := described(s.folder, c)
	out.Update, out.Status = "tool_call", status
	s.update(out)
}

func (s *session) result(d happening) {
	s.announceUnknown(d.Result.ID)
	out := toolCall{Update: "tool_call_update", ID: d.Result.ID, Status: completed}
	if !d.Result.OK {
		out.Status = failed
	}
	said := d.Result.Error
	for _, p := range d.Result.Parts {
		if strings.HasPrefix(p.Text, said) { // the text of a failure often begins with its reason
			said = ""
		}
		said = strings.TrimPrefix(said+"\n"+p.Text, "\n")
	}
	if len(said) > maxShown {
		said = cut.Bytes(said, maxShown) + "\n…"
	}
	if said != "" {
		out.Content = []content{shown(fenced(said))}
	}
	s.update(out)
	delete(s.calls, d.Result.ID)
}

// announceUnknown announces a call whose beginning is not known.
func (s *session) announceUnknown(id string) {
	if !s.calls[id] {
		s.announce(call{ID: id, Name: "a call"}, running)
	}
}

func (s *session) progress(raw json.RawMessage) {
	var p struct {
		Call     string   `json:"tool_call_id"`
		Progress float64  `json:"progress"`
		Total    *float64 `json:"total"`
		Message  string   `json:"message"`
	}
	if json.Unmarshal(raw, &p) != nil || !s.calls[p.Call] {
		return
	}
	said := p.Message
	switch {
	case p.Total != nil:
		said = strings.TrimSpace(fmt.Sprintf("%v of %v %s", p.Progress, *p.Total, said))
	case said == "":
		said = fmt.Sprint(p.Progress) // of a command, which has a message, it counts bytes
	}
	s.update(toolCall{Update: "tool_call_update", ID: p.Call, Content: []content{shown(said)}})
}

// ended answers the prompt whose turn is over, after the title that it may have made.
func (s *session) ended(id string, out outcome) (mine bool) {
	s.said = ""
	s.mu.Lock()
	mine = s.prompt != nil && s.prompt.id == id
	s.mu.Unlock()
	if mine {
		s.retitle()
		s.finish(func(t *turn) bool { return t.id == id }, out)
	}
	return mine
}

// retitle tells the title of the session, if it has changed.
func (s *session) retitle() {
	at, err := s.a.api.Session(s.ctx, s.id)
	if err != nil || at.Title == "" || at.Title == s.title {
		return // the title is a courtesy
	}
	s.title = at.Title
	s.update(info{Kind: "session_info_update", Title: at.Title})
}

// ask puts a question to the editor, and gives its answer to yaya.
func (s *session) ask(q chat.Ask) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	if _, asked := s.asks[q.ID]; asked {
		s.mu.Unlock()
		cancel()
		return
	}
	s.asks[q.ID] = cancel
	s.mu.Unlock()
	s.a.work.Go(func() {
		defer s.settled(q.ID)
		var got chosen
		err := s.a.conn.call(ctx, "session/request_permission", s.asked(q), &got)
		if err == nil && got.Outcome.Outcome == "selected" {
			// Not ctx: that ends once the call is approved, before the mode is set.
			err = s.a.api.Answer(s.ctx, s.id, q, got.Outcome.Option, "")
		}
		if err != nil && ctx.Err() == nil {
			s.a.o.Log.Warn().Err(err).Str("session", s.id).Str("tool", q.Tool).Msg("a question has no answer of the editor: it can be answered on yaya's page")
		}
	})
}

// settled withdraws a question that has been answered.
func (s *session) settled(approval string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.asks[approval]; cancel != nil {
		cancel()
		s.asks[approval] = nil
	}
}
