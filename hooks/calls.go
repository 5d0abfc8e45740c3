package hooks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func bodyOf(call tool.Call, def tool.Definition) body {
	b := body{Tool: &toolBody{Name: def.Name, Server: def.Identity.Provider, Kind: def.Kind, Origin: call.Origin, Principal: call.Caller.Principal, CallID: call.ID, Input: call.Args}}
	if call.Prepared != nil {
		b.Tool.Shown = call.Prepared.Shown
	}
	return b
}

// PreToolCall implements [tool.Hook].
func (h *Hooks) PreToolCall(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	s := h.of(call.SessionID, call.Origin == tool.OriginLoop)
	if s.empty() || def.IsQuestion() {
		return tool.Verdict{}, nil
	}
	if s.Err != nil {
		return h.denied(ctx, hookconf.Hook{Name: "hooks", Event: hookconf.PreTool}, call, def, "the hooks cannot be read: "+s.Err.Error()), nil //nolint:nilerr // the verdict says so
	}
	var out tool.Verdict
	for _, hook := range s.Hooks {
		if hook.Event != hookconf.PreTool || !hook.Matches(names(hook, def)...) {
			continue
		}
		a, err := h.run(ctx, hook, h.place(call), bodyOf(call, def))
		if err != nil {
			return h.denied(ctx, hook, call, def, err.Error()), nil
		}
		switch v := (tool.Verdict{Reason: said(hook, a.Reason)}); a.Decision {
		case hookconf.Deny:
			return h.denied(ctx, hook, call, def, v.Reason), nil
		case hookconf.Ask:
			if v.Decision = tool.Ask; out.Decision < v.Decision {
				out = v
			}
		case hookconf.Allow, "": // no objection: rules and people decide
		}
	}
	return out, nil
}

// place is the session whose folder the hooks of a call run in.
func (h *Hooks) place(call tool.Call) string {
	if call.Origin == tool.OriginLoop {
		return call.SessionID
	}
	return ""
}

func said(hook hookconf.Hook, reason string) string {
	if reason == "" {
		return fmt.Sprintf("hook %q", hook.Name)
	}
	return fmt.Sprintf("hook %q: %s", hook.Name, reason)
}

// denied is a verdict that is in the audit. A call that was cancelled is not: nobody decided.
func (h *Hooks) denied(ctx context.Context, hook hookconf.Hook, call tool.Call, def tool.Definition, reason string) tool.Verdict {
	if ctx.Err() == nil {
		h.record(Denial{Hook: hook.Name, File: hook.File, Event: string(hook.Event), Session: call.SessionID, Tool: def.Identity.String(), Principal: call.Caller.Principal, Reason: reason})
	}
	return tool.Verdict{Decision: tool.Deny, Reason: reason}
}

func (h *Hooks) record(d Denial) {
	h.cfg.Log.Warn().Str("hook", d.Hook).Str("session", d.Session).Str("tool", d.Tool).Msg("a hook denies: " + d.Reason)
	if h.cfg.Audit == nil {
		return
	}
	if err := h.cfg.Audit(d); err != nil {
		h.cfg.Log.Error().Err(err).Str("hook", d.Hook).Msg("the denial of a hook is not in the audit")
	}
}

// Wants implements [tool.Selective].
func (h *Hooks) Wants(origin tool.Origin) bool {
	return origin == tool.OriginLoop || h.of("", false) != nil
}

// PostToolCall implements [tool.After]: hooks can replace the text of a result, add to it, or
// withhold it. One that fails changes nothing, and the model learns of it: the call has run.
func (h *Hooks) PostToolCall(ctx context.Context, call tool.Call, def tool.Definition, res tool.Result) tool.Result {
	s := h.of(call.SessionID, call.Origin == tool.OriginLoop)
	if s.empty() || s.Err != nil {
		return res
	}
	for _, hook := range s.Hooks {
		if hook.Event != hookconf.PostTool || !hook.Matches(names(hook, def)...) {
			continue
		}
		b := bodyOf(call, def)
		b.Result = &resultBody{OK: res.OK, Text: text(res)}
		a, err := h.run(ctx, hook, h.place(call), b)
		switch {
		case err != nil:
			h.cfg.Log.Warn().Err(err).Str("session", call.SessionID).Msg("a hook failed")
			res = add(res, "["+err.Error()+"]")
		case a.Decision == hookconf.Deny && hook.Claude:
			res = add(res, "["+said(hook, a.Reason)+"]") // there, it is a message to the model
		case a.Decision == hookconf.Deny:
			h.denied(ctx, hook, call, def, said(hook, a.Reason))
			return tool.Fail(tool.ErrRejected, "the call ran, and its result is withheld: %s", said(hook, a.Reason))
		default:
			if a.Result != nil && res.Native == nil {
				res.Display, res.Structured = []tool.Block{tool.Text(*a.Result)}, nil
			}
			res = add(res, a.Context)
		}
	}
	return res
}

// text returns the text of a result; of one in a server's own bytes, all of it.
func text(res tool.Result) string {
	if res.Native != nil {
		return string(res.Native.Result.Raw())
	}
	return res.Text()
}

// add adds a text to a result for a model. The bytes of servers are passed on as they are.
func add(res tool.Result, text string) tool.Result {
	if text != "" && res.Native == nil {
		res.Display = append(res.Display[:len(res.Display):len(res.Display)], tool.Text(text))
	}
	return res
}

// Approving runs the hooks for an ask that is about to be put. Its error is a
// [*tool.RejectedError].
func (h *Hooks) Approving(ctx context.Context, call tool.Call, def tool.Definition) error {
	s := h.of(call.SessionID, call.Origin == tool.OriginLoop)
	if s.empty() || def.IsQuestion() {
		return nil
	}
	for _, hook := range s.Hooks {
		if hook.Event != hookconf.Approval || !hook.Matches(names(hook, def)...) {
			continue
		}
		a, err := h.run(ctx, hook, h.place(call), bodyOf(call, def))
		if err != nil { // a person decides in any case
			h.cfg.Log.Warn().Err(err).Str("session", call.SessionID).Msg("a hook failed")
			continue
		}
		if a.Decision == hookconf.Deny {
			return &tool.RejectedError{Feedback: h.denied(ctx, hook, call, def, said(hook, a.Reason)).Reason}
		}
	}
	return nil
}

// ErrDenied means that a hook has ended a turn before the model got the message.
var ErrDenied = errors.New("denied")

// Admit runs the hooks for the start of a session, once in this process, and for messages that a
// model is about to get: those of the user, and those with which agents prompt sub-agents. It returns what they add for the model.
func (h *Hooks) Admit(ctx context.Context, session, prompt string) (string, error) {
	s := h.of(session, true)
	if s.empty() {
		return "", nil
	}
	if s.Err != nil {
		return "", fmt.Errorf("%w: the hooks cannot be read: %w", ErrDenied, s.Err)
	}
	var out []string
	if event.Root(session) == session { // a sub-agent is part of its parent's session
		if at := h.begun(ctx, s, session); at != "" {
			out = append(out, at)
		}
	}
	for _, hook := range s.Hooks {
		if hook.Event != hookconf.Prompt || prompt == "" {
			continue
		}
		a, err := h.run(ctx, hook, session, body{Prompt: prompt})
		if err == nil && (a.Decision == hookconf.Deny || a.Decision == hookconf.Ask) {
			err = errors.New(said(hook, a.Reason))
		}
		if err != nil {
			if ctx.Err() == nil {
				h.record(Denial{Hook: hook.Name, File: hook.File, Event: string(hook.Event), Session: session, Reason: err.Error()})
			}
			return "", fmt.Errorf("%w: %w", ErrDenied, err)
		}
		if a.Context != "" {
			out = append(out, a.Context)
		}
	}
	return strings.Join(out, "\n"), nil
}

// begun runs the hooks for the start of a session, and remembers what they add.
func (h *Hooks) begun(ctx context.Context, s *Found, session string) string {
	h.mu.Lock()
	was, known := h.started[session]
	h.mu.Unlock()
	if known {
		return was
	}
	var out []string
	for _, hook := range s.Hooks {
		if hook.Event != hookconf.SessionStart {
			continue
		}
		a, err := h.run(ctx, hook, session, body{})
		if err != nil {
			h.cfg.Log.Warn().Err(err).Str("session", session).Msg("a hook failed")
		} else if a.Context != "" {
			out = append(out, a.Context)
		}
	}
	if ctx.Err() != nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.started) >= maxSessions {
		clear(h.started)
	}
	h.started[session] = strings.Join(out, "\n")
	return h.started[session]
}
