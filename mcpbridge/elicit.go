package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// maxShown bounds the arguments that a client is asked about: the approver sees all of what
// runs, or is not asked.
const maxShown = 16 << 10

// decision is the form's schema.
const decisionSchema = `{"type":"object","properties":{` +
	`"decision":{"type":"string","title":"Decision","enum":["approve","approve_for_session","reject"],"description":"approve_for_session: the same call needs no further approval in this session"},` +
	`"feedback":{"type":"string","title":"Feedback","description":"sent to the caller if you reject"}},"required":["decision"]}`

// mayApprove is the scope that answering approvals requires, here as elsewhere.
const mayApprove = "approvals:answer"

// AskCaller returns a function that asks the calling MCP client for approval, by elicitation;
// nil if the client does not support that, or may not answer.
func AskCaller(call tool.Call) approval.Ask { return AskMaker(call, call) }

// AskMaker is AskCaller for a call that an agent makes: it asks the client whose call gave the
// agent its task.
func AskMaker(task, call tool.Call) approval.Ask {
	if task.Native == nil {
		return nil
	}
	peer, ok := task.Native.Peer.(relay.Peer)
	if !ok || !task.Caller.May(mayApprove) || len(call.Bound()) > maxShown || !relay.Supports(peer.Capabilities(), relay.Elicitation, jsonrpc.Object{}) {
		return nil
	}
	who := "yaya"
	if call.Native == nil {
		who = "The agent that works on your task"
	}
	return func(ctx context.Context, req approval.Request) (event.ApprovalAnswer, string, error) {
		var args bytes.Buffer
		if err := json.Indent(&args, req.Params, "", "  "); err != nil {
			return "", "", err
		}
		params, err := json.Marshal(map[string]any{
			"mode":            "form",
			"message":         feature.Clean(fmt.Sprintf("%s asks for your approval to call the tool %s with\n%s", who, req.ToolName, args.String()), 8*maxShown),
			"requestedSchema": json.RawMessage(decisionSchema),
		})
		if err != nil {
			return "", "", err
		}
		r, err := peer.Ask(ctx, relay.Elicitation, params)
		switch {
		case err != nil:
			return "", "", err
		case r.Err != nil:
			return "", "", jsonrpc.ParseError(r.Err)
		}
		return decide(r.Result.Raw())
	}
}

// decide reads the answer to the form. Only an explicit yes approves.
func decide(raw []byte) (event.ApprovalAnswer, string, error) {
	var a struct {
		Action  string `json:"action"`
		Content struct {
			Decision string `json:"decision"`
			Feedback string `json:"feedback"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return "", "", err
	}
	if a.Action != "accept" {
		return event.Reject, a.Content.Feedback, nil
	}
	switch d := event.ApprovalAnswer(a.Content.Decision); d {
	case event.Approve, event.ApproveForSession, event.Reject:
		return d, a.Content.Feedback, nil
	}
	return "", "", errors.New("the answer contains no decision")
}
