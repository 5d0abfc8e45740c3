package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Ask is a call that waits for an answer: what is shown is what runs.
type Ask struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool_name"`
	Params    json.RawMessage `json:"params"`
	Brief     string          `json:"brief"`
	CallID    string          `json:"call_id"`
	SessionID string          `json:"session_id"`
	Deadline  time.Time       `json:"deadline"`
	Digest    string          `json:"digest" doc:"of tool, definition and arguments: asks with the same one are the same question"`
	Decisions []string        `json:"decisions" doc:"what may be answered"`
	Server    string          `json:"server,omitempty" doc:"the server that has the tool; empty for yaya's own"`
	Kind      string          `json:"kind" doc:"read, write, exec or network; empty for a server's tool"`
	Why       string          `json:"why,omitempty" doc:"the reason that a rule or a hook gives for asking; empty if such a tool always asks"`
	Claims    *Claims         `json:"claims,omitempty" doc:"the server's own description of the tool, which nobody has checked"`
	Node      string          `json:"node,omitempty" doc:"the node of the cluster that asks, if that is another one"`
}

// Claims are the hints of a server about its tool. An absent one was not given.
type Claims struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty" doc:"it reaches things outside the server"`
}

// PastAsk is an ask that has ended. Its response is empty if nobody answered.
type PastAsk struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool_name"`
	Server    string    `json:"server,omitempty"`
	Brief     string    `json:"brief"`
	SessionID string    `json:"session_id"`
	Digest    string    `json:"digest"`
	Response  string    `json:"response,omitempty" enum:"approve,approve_for_session,reject"`
	Feedback  string    `json:"feedback,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty" enum:"timeout,shutdown" doc:"why it was withdrawn"`
	At        time.Time `json:"at"`
}

// Answer is a recorded decision.
type Answer struct {
	ID       string `json:"id"`
	Response string `json:"response" enum:"approve,approve_for_session,reject"`
	Feedback string `json:"feedback,omitempty"`
	By       string `json:"by"`
}

func (a *API) approvalRoutes() {
	r := routes{a, "approvals", a.cfg.Approvals != nil, "approvals"}
	handle(r, "GET", "/api/approvals", "listApprovals", api.For(auth.SessionsRead), "List calls of all sessions that wait for an answer, most urgent first", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []Ask }, error) {
		return &struct{ Body []Ask }{a.allAsks(ctx)}, nil
	})
	handle(r, "GET", "/api/approvals/answered", "listAnsweredApprovals", api.For(auth.SessionsRead), "List the last 200 calls of this node that were answered, or that nobody answered, since yaya started, newest first", http.StatusOK, func(context.Context, *none) (*struct{ Body []PastAsk }, error) {
		return &struct{ Body []PastAsk }{a.pastAsks()}, nil
	})
	handle(r, "POST", "/api/approvals/{id}", "answerApproval", api.For(auth.ApprovalsAnswer), "Answer a call; the first answer counts", http.StatusOK, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"256"`
		Body struct {
			Response string `json:"response" enum:"approve,approve_for_session,reject"`
			Feedback string `json:"feedback,omitempty" maxLength:"16384" doc:"what the model is told"`
		}
	},
	) (*struct{ Body Answer }, error) {
		d, err := a.cfg.Approvals.Answer(in.ID, event.ApprovalAnswer(in.Body.Response), in.Body.Feedback, auth.FromContext(ctx).Actor())
		switch {
		case errors.Is(err, approval.ErrAnswered):
			return nil, api.Fail(http.StatusConflict, "the question was already answered: %s, by %s", d.Response, d.By)
		case errors.Is(err, approval.ErrUnknown):
			return nil, api.Fail(http.StatusNotFound, "no question with the id %q waits for an answer", cut.Text(in.ID, 100))
		case err != nil:
			return nil, err
		}
		return &struct{ Body Answer }{Answer{d.ID, string(d.Response), d.Feedback, d.By}}, nil
	})
}

// asks returns the calls that wait on this node.
func (a *API) asks() []Ask {
	out := []Ask{}
	for _, q := range a.cfg.Approvals.Pending() {
		ask := Ask{ID: q.ID, Tool: q.ToolName, Params: q.Params, Brief: q.Brief, CallID: q.CallID, SessionID: q.SessionID, Deadline: q.Deadline.UTC(), Digest: q.Digest, Decisions: []string{}, Server: q.Def.Identity.Provider, Why: q.Why}
		if ask.Server == "" {
			ask.Kind = string(q.Def.Kind)
		} else {
			ask.Claims = claims(q.Def.Annotations)
		}
		for _, d := range q.Decisions {
			ask.Decisions = append(ask.Decisions, string(d))
		}
		out = append(out, ask)
	}
	slices.SortFunc(out, byUrgency)
	return out
}

func byUrgency(x, y Ask) int {
	return cmp.Or(x.Deadline.Compare(y.Deadline), strings.Compare(x.ID, y.ID))
}

// claims reads the hints of a server about its tool; nil without any.
func claims(annotations json.RawMessage) *Claims {
	var hints struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  *bool `json:"idempotentHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	}
	// Hints of another form say nothing.
	if json.Unmarshal(annotations, &hints) != nil || (hints.ReadOnly == nil && hints.Destructive == nil && hints.Idempotent == nil && hints.OpenWorld == nil) {
		return nil
	}
	return &Claims{hints.ReadOnly, hints.Destructive, hints.Idempotent, hints.OpenWorld}
}

// pastAsks returns the asks of this node that have ended.
func (a *API) pastAsks() []PastAsk {
	out := []PastAsk{}
	for _, e := range a.cfg.Approvals.Ended() {
		out = append(out, PastAsk{
			ID: e.ID, Tool: e.ToolName, Server: e.Def.Identity.Provider, Brief: e.Brief, SessionID: e.SessionID, Digest: e.Digest,
			Response: string(e.Decision.Response), Feedback: e.Decision.Feedback, By: e.Decision.By, Reason: e.Reason, At: e.At.UTC(),
		})
	}
	return out
}
