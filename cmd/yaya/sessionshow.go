package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of what yaya session show prints of a result.
const (
	maxShownLines = 20
	maxShownLine  = 500 // bytes
)

// showEntry prints the parts of an entry that people want to see.
func showEntry(w io.Writer, e session.Entry) error {
	at := e.Date.Local().Format(time.TimeOnly)
	line := func(format string, args ...any) error {
		_, err := fmt.Fprintf(w, "%5d  %s  %s\n", e.ID, at, fmt.Sprintf(format, args...))
		return err
	}
	switch e.Kind {
	case session.KindMessage:
		var m session.Message
		if err := json.Unmarshal(e.Payload, &m); err != nil {
			return err
		}
		return line("%s: %s", daemon.Printable(m.Role, 20), daemon.Prose(m.Content))
	case session.KindToolCall:
		var call event.ToolCall
		if err := json.Unmarshal(e.Payload, &call); err != nil {
			return err
		}
		return line("→ %s %s", daemon.Printable(call.Name, 80), daemon.Printable(string(call.Args), 500))
	case session.KindToolResult:
		var r session.ToolResult
		if err := json.Unmarshal(e.Payload, &r); err != nil {
			return err
		}
		mark := map[bool]string{true: "✓", false: "✗"}[r.OK]
		if err := line("%s %s", mark, daemon.Printable(brief(event.ToolResult{Envelope: r.Envelope, Error: r.Error}), 200)); err != nil {
			return err
		}
		return showOutput(w, r.Envelope)
	case session.KindAnchor:
		var a session.Anchor
		if err := json.Unmarshal(e.Payload, &a); err != nil {
			return err
		}
		return line("⚓ %s %s", daemon.Printable(a.Name, 80), daemon.Printable(string(a.State), 300))
	}
	var n session.Note
	if err := json.Unmarshal(e.Payload, &n); err != nil {
		return err
	}
	switch n.Name {
	case event.LLMCallResponse.Name():
		var r event.LLMResponse
		if err := json.Unmarshal(n.Data, &r); err != nil {
			return err
		}
		if text := strings.TrimSpace(r.Text); text != "" && len(r.ToolCalls) > 0 { // without calls, a message has it
			return line("assistant: %s", daemon.Prose(text))
		}
	case event.ToolCallError.Name():
		var p event.ToolError
		if err := json.Unmarshal(n.Data, &p); err != nil {
			return err
		}
		return line("✗ %s", daemon.Multiline(neverRan(p)))
	case event.ApprovalRequested.Name(), event.ApprovalAnswered.Name(), event.ApprovalWithdrawn.Name(),
		event.TurnHasFailed.Name(), event.TurnWasCancelled.Name():
		return line("· %s %s", n.Name, daemon.Printable(string(n.Data), 500))
	}
	return nil // other kinds are for programs; export prints them
}

// showOutput prints the beginning of what a tool has answered.
func showOutput(w io.Writer, envelope json.RawMessage) error {
	var env tool.Envelope
	if json.Unmarshal(envelope, &env) != nil {
		return nil //nolint:nilerr // it has no output that this version knows
	}
	text := strings.TrimSpace(tool.Result{Display: env.Display}.Text())
	if text == "" || text == env.Brief { // which is shown already
		return nil
	}
	lines := strings.Split(text, "\n")
	cut := len(lines) > maxShownLines
	for _, l := range lines[:min(len(lines), maxShownLines)] {
		cut = cut || len(l) > maxShownLine
		if _, err := fmt.Fprintf(w, "         │ %s\n", daemon.Printable(strings.TrimRight(l, "\r"), maxShownLine)); err != nil {
			return err
		}
	}
	if !cut {
		return nil
	}
	_, err := fmt.Fprintf(w, "         └ cut; yaya session export has all %d bytes\n", len(text))
	return err
}

// neverRan is the message of a call that never ran, whose brief may be cut before the reason.
func neverRan(p event.ToolError) string {
	var detail struct {
		Message string           `json:"message"`
		Errors  []tool.Violation `json:"errors"`
	}
	switch {
	case !strings.HasSuffix(p.Brief, "…") || json.Unmarshal(p.Detail, &detail) != nil:
	case detail.Message != "":
		return detail.Message
	case len(detail.Errors) > 0:
		all := make([]string, len(detail.Errors))
		for i, v := range detail.Errors {
			all[i] = v.String()
		}
		before, _, _ := strings.Cut(p.Brief, ":")
		return before + ": " + strings.Join(all, "; ")
	}
	return p.Brief
}
