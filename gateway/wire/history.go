package wire

import (
	"context"
	"encoding/json"
	"io/fs"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Limits of an answer to history.
const (
	maxHistory      = 500       // entries
	maxHistoryBytes = 512 << 10 // bytes, unless one event alone has more
)

type (
	historyPush struct {
		Before int64 `json:"before"`          // seq: what is older is wanted
		Limit  int   `json:"limit,omitempty"` // entries, default and at most 500
	}
	historyPage struct {
		Events []AgentEvent `json:"events"` // oldest first
		// First is the sequence number to ask for next: there is nothing between it and the events, and
		// nothing older if it is 1.
		First int64 `json:"first"`
	}
)

// history answers with events of an agent that are older than a cursor: a client
// that joins without since has what comes, and pages through what was. Its answer
// is bounded in entries and bytes.
func (a *Agents) history(c Client, id string, payload json.RawMessage) (any, error) {
	if err := auth.Allow(c.Principal, auth.SessionsRead); err != nil { // it may have been taken since the join
		return nil, err
	}
	var in historyPush
	if err := Decode(payload, &in); err != nil {
		return nil, err
	}
	if in.Before < 1 || in.Limit < 0 || in.Limit > maxHistory {
		return nil, Refuse("history is {before ≥ 1, limit? ≤ %d}", maxHistory)
	}
	if in.Limit == 0 {
		in.Limit = maxHistory
	}
	return Later(func(context.Context) (any, error) { return a.page(id, in) }), nil
}

func (a *Agents) page(id string, in historyPush) (any, error) {
	s, err := a.cfg.Sessions.Find(id, "")
	if err != nil {
		return nil, Refuse("the agent's session is gone")
	}
	now, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	before := min(in.Before, now.AsOfSeq+1)
	out := historyPage{Events: []AgentEvent{}, First: max(1, before-int64(in.Limit))}
	var sizes []int
	total := 0
	err = s.Entries(out.First, func(e session.Entry) error {
		if e.ID >= before {
			return fs.SkipAll
		}
		ev, ok := shown(e, id, now.Epoch)
		if !ok {
			return nil
		}
		p, _ := ev.Payload.(AgentEvent)
		out.Events, sizes = append(out.Events, p), append(sizes, len(e.Payload))
		total += len(e.Payload)
		for total > maxHistoryBytes && len(sizes) > 1 {
			total -= sizes[0]
			out.Events, sizes = out.Events[1:], sizes[1:]
			out.First = out.Events[0].Cursor.Seq
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
