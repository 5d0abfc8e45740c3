package sessions

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// now is the time as it is shown: in milliseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

const (
	firstWindow = 256
	maxWindow   = 32 << 10 // entries that are read for one page
)

type (
	outMessages struct {
		Body struct {
			Messages []Message `json:"messages"`
			Before   int64     `json:"before,omitempty" doc:"of the next page"`
		}
	}
	outTurns struct {
		Body struct {
			Turns  []Turn `json:"turns"`
			Before int64  `json:"before,omitempty" doc:"of the next page"`
		}
	}
	// Turn describes one turn.
	Turn struct {
		ID        string       `json:"id"`
		Status    string       `json:"status" enum:"pending,running,completed,failed,cancelled"`
		Seq       int64        `json:"seq" doc:"of its first event"`
		StartedAt string       `json:"started_at" format:"date-time"`
		EndedAt   string       `json:"ended_at,omitempty" format:"date-time"`
		Model     string       `json:"model,omitempty"`
		Messages  []Message    `json:"messages"`
		ToolCalls []TurnCall   `json:"tool_calls"`
		Usage     *event.Usage `json:"usage,omitempty"`
		CostUSD   float64      `json:"cost_usd,omitempty" doc:"as far as prices are known"`
		Steps     int          `json:"steps,omitempty"`
		Error     string       `json:"error,omitempty"`
		Kind      string       `json:"kind,omitempty" doc:"of the failure"`
	}
	// TurnCall is a tool call with its result, if there is one.
	TurnCall struct {
		toolCall
		Result *toolResult `json:"result,omitempty"`
	}
)

// window reads the entries before a place, further back until enough says that
// there are enough, or there are no more. It reads the tape's end however long the
// tape is.
func window(k *session.Session, before int64, enough func(es []session.Entry, whole bool) bool) error {
	sn, err := k.Snapshot()
	if err != nil {
		return err
	}
	if before <= 0 || before > sn.AsOfSeq+1 {
		before = sn.AsOfSeq + 1
	}
	for n := int64(firstWindow); ; n *= 4 {
		from := max(before-n, 1)
		var es []session.Entry
		err := k.Entries(from, func(e session.Entry) error {
			if e.ID >= before {
				return fs.SkipAll
			}
			es = append(es, e)
			return nil
		})
		if err != nil {
			return err
		}
		if enough(es, from == 1) || from == 1 || n >= maxWindow {
			return nil
		}
	}
}

// messages returns a page of messages, the last first.
func (s *Service) messages(in *InPage) (*outMessages, error) {
	k, _, err := s.find(in.SessionID)
	if err != nil {
		return nil, err
	}
	out := new(outMessages)
	err = window(k, in.Before, func(es []session.Entry, whole bool) bool {
		list := []Message{}
		more := !whole
		for _, e := range slices.Backward(es) {
			if e.Kind != session.KindMessage {
				continue
			}
			if len(list) == in.Limit {
				more = true
				break
			}
			if m, ok := message(e); ok {
				list = append(list, m)
			}
		}
		out.Body.Messages, out.Body.Before = list, 0
		if more && len(list) > 0 {
			out.Body.Before = list[len(list)-1].Seq
		}
		return len(list) == in.Limit
	})
	return out, err
}

// turns returns a page of turns, the last first.
func (s *Service) turns(in *InPage) (*outTurns, error) {
	k, _, err := s.find(in.SessionID)
	if err != nil {
		return nil, err
	}
	sn, err := k.Snapshot()
	if err != nil {
		return nil, err
	}
	out := new(outTurns)
	err = window(k, in.Before, func(es []session.Entry, whole bool) bool {
		all := group(es, sn)
		if !whole && len(all) > 1 {
			all = all[1:] // it may have begun before
		}
		enough := len(all) >= in.Limit
		more := !whole || len(all) > in.Limit
		all = all[max(0, len(all)-in.Limit):]
		slices.Reverse(all)
		out.Body.Turns, out.Body.Before = all, 0
		if more && len(all) > 0 {
			out.Body.Before = all[len(all)-1].Seq
		}
		return enough
	})
	return out, err
}

// group makes turns of entries, in their order.
func group(es []session.Entry, sn session.Snapshot) []Turn {
	out := []Turn{}
	at := map[string]int{}
	for _, e := range es {
		id := e.Meta.Turn
		if id == "" {
			continue
		}
		i, known := at[id]
		if !known {
			i = len(out)
			at[id] = i
			status := "failed" // unless it says otherwise: it cannot have ended well
			switch id {
			case sn.TurnID:
				status = "running"
			case sn.PendingTurn:
				status = "pending"
			}
			out = append(out, Turn{ID: id, Status: status, Seq: e.ID, StartedAt: control.Stamp(e.Date), Messages: []Message{}, ToolCalls: []TurnCall{}})
		}
		out[i].add(e)
	}
	return out
}

func (t *Turn) add(e session.Entry) {
	switch e.Kind {
	case session.KindMessage:
		if m, ok := message(e); ok {
			t.Messages = append(t.Messages, m)
		}
	case session.KindToolCall:
		var c event.ToolCall
		if json.Unmarshal(e.Payload, &c) == nil {
			t.ToolCalls = append(t.ToolCalls, TurnCall{toolCall: toolCall{c.ID, c.Name, c.Args}})
		}
	case session.KindToolResult:
		var r session.ToolResult
		if json.Unmarshal(e.Payload, &r) == nil {
			t.result(result(r))
		}
	case session.KindEvent:
		if n, ok := e.Note(); ok {
			t.note(n, e)
		}
	}
}

func (t *Turn) result(r toolResult) {
	for i := range t.ToolCalls {
		if t.ToolCalls[i].ID == r.ID && t.ToolCalls[i].Result == nil {
			t.ToolCalls[i].Result = &r
			return
		}
	}
}

func (t *Turn) note(n session.Note, e session.Entry) {
	_, data, ok := note(n)
	if !ok {
		return
	}
	switch d := data.(type) {
	case turnData:
		t.Model, t.StartedAt = d.Model, control.Stamp(e.Date)
	case toolCompletedData: // of a call that never ran
		t.result(d.ToolResult)
	case endData:
		t.EndedAt, t.Usage, t.CostUSD, t.Steps, t.Error, t.Kind = control.Stamp(e.Date), d.Usage, d.CostUSD, d.Steps, d.Error, d.Kind
		switch n.Name {
		case event.TurnWasCompleted.Name():
			t.Status = "completed"
		case event.TurnWasCancelled.Name():
			t.Status, t.Error = "cancelled", d.Reason
		default:
			t.Status = "failed"
		}
	}
}

// export is GET /v1/sessions/{id}/export: the session's tape as it is, one entry a
// line, those of its parent included.
func (s *Service) export(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("session_id")
	k, _, err := s.find(id)
	if err != nil {
		s.Refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="`+event.Folder(id)+`.ndjson"`)
	rc := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	err = k.Entries(0, func(e session.Entry) error {
		if err := r.Context().Err(); err != nil {
			return err
		}
		if err := rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return enc.Encode(e)
	})
	if err != nil && r.Context().Err() == nil {
		// The part already sent cannot be taken back; the client sees that the rest is cut off.
		s.cfg.Log.Warn().Err(err).Str("session", id).Msg("an export was cut off")
		panic(http.ErrAbortHandler)
	}
}
