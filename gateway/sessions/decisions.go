package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

type (
	decision struct {
		TurnID     string `json:"turn_id,omitempty" maxLength:"128" doc:"if given, the turn that the call belongs to"`
		ToolCallID string `json:"tool_call_id" minLength:"1" maxLength:"256"`
		Action     string `json:"action" enum:"approve,approve_for_session,deny"`
		Reason     string `json:"reason,omitempty" maxLength:"16384" doc:"with deny, what the model is told"`
	}
	// Answered is the recorded decision: the first answer counts.
	Answered struct {
		ApprovalID string `json:"approval_id"`
		ToolCallID string `json:"tool_call_id"`
		Action     string `json:"action" enum:"approve,approve_for_session,deny"`
		Reason     string `json:"reason,omitempty"`
		By         string `json:"by"`
	}
	outAsks struct {
		Body struct {
			Approvals []askData `json:"approvals"`
		}
	}
)

var actions = map[string]event.ApprovalAnswer{"approve": event.Approve, "approve_for_session": event.ApproveForSession, "deny": event.Reject}

func actionOf(a event.ApprovalAnswer) string {
	if a == event.Reject {
		return "deny"
	}
	return string(a)
}

func (s *Service) decisionRoutes() {
	api.Handle(s.API, op("GET", "/v1/sessions/{session_id}/approvals", "listApprovals", auth.SessionsRead, "List calls that wait for an answer", http.StatusOK), func(_ context.Context, in *InSession) (*outAsks, error) {
		k, _, err := s.find(in.SessionID)
		if err != nil {
			return nil, err
		}
		sn, err := k.Snapshot()
		out := new(outAsks)
		out.Body.Approvals = snapshotOf(in.SessionID, sn).Approvals
		return out, err
	})
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/approve", "decide", auth.ApprovalsAnswer, "Approve or deny a waiting call", http.StatusOK), func(ctx context.Context, in *struct {
		InSession
		Body decision
	},
	) (*struct{ Body Answered }, error) {
		a, err := s.decide(ctx, in.SessionID, in.Body)
		return &struct{ Body Answered }{a}, err
	})
}

// decide answers the ask of a call. The first answer counts; who comes
// later is told which that was.
func (s *Service) decide(ctx context.Context, id string, d decision) (Answered, error) {
	k, _, err := s.find(id)
	if err != nil {
		return Answered{}, err
	}
	sn, err := k.Snapshot()
	if err != nil {
		return Answered{}, err
	}
	for _, a := range sn.Asks {
		if a.CallID != d.ToolCallID {
			continue
		}
		if d.TurnID != "" && d.TurnID != sn.TurnID {
			return Answered{}, api.Coded(http.StatusConflict, "unexpected_turn", "the call belongs to the turn %s", sn.TurnID)
		}
		got, err := s.cfg.Approvals.Answer(a.ID, actions[d.Action], d.Reason, auth.FromContext(ctx).Actor())
		switch {
		case errors.Is(err, approval.ErrAnswered):
			return Answered{}, answered(Answered{a.ID, d.ToolCallID, actionOf(got.Response), got.Feedback, got.By})
		case errors.Is(err, approval.ErrUnknown): // it has ended since
			return Answered{}, notPending()
		case err != nil:
			return Answered{}, err
		}
		return Answered{a.ID, d.ToolCallID, actionOf(got.Response), got.Feedback, got.By}, nil
	}
	was, known, err := decided(k, d.ToolCallID)
	if err != nil {
		return Answered{}, err
	}
	if known {
		return Answered{}, answered(was)
	}
	return Answered{}, notPending()
}

func notPending() *api.Failure {
	return api.Coded(http.StatusNotFound, "not_pending", "no approval is pending for this call")
}

func answered(a Answered) *api.Failure {
	e := api.Coded(http.StatusConflict, "already_answered", "the call was answered before: %s, by %s", a.Action, a.By)
	e.More = &a
	return e
}

// decided finds the recorded answer for a call near the end of the tape.
func decided(k *session.Session, call string) (a Answered, known bool, err error) {
	err = window(k, 0, func(es []session.Entry, _ bool) bool {
		for _, e := range es {
			n, ok := e.Note()
			if !ok || n.Name != event.ApprovalAnswered.Name() {
				continue
			}
			var d approval.Decision
			if json.Unmarshal(n.Data, &d) == nil && d.CallID == call {
				a, known = Answered{d.ID, call, actionOf(d.Response), d.Feedback, d.By}, true
			}
		}
		return known
	})
	return a, known, err
}
