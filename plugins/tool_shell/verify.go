package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// verifyTool needs no asking while it runs what its user knows.
type verifyTool struct {
	tool.Tool
	p *Plugin
}

func (verifyTool) ObeysContext() {}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (v verifyTool) ApprovalBrief(call tool.Call) string {
	return "verify, with commands that have changed: " + strings.Join(v.p.Commands(call.SessionID), "; ")
}

// PreApproved implements [tool.PreApproved].
func (v verifyTool) PreApproved(call tool.Call) bool {
	v.p.mu.Lock()
	pinned, known := v.p.pins[call.SessionID]
	v.p.mu.Unlock()
	return known && slices.Equal(pinned, v.p.Commands(call.SessionID))
}

// Hook notes what the commands are before a session's first tool runs.
func (p *Plugin) Hook() tool.Hook { return pinner{p} }

type pinner struct{ p *Plugin }

// PreToolCall implements [tool.Hook].
func (h pinner) PreToolCall(_ context.Context, call tool.Call, _ tool.Definition) (tool.Verdict, error) {
	if call.Origin == tool.OriginLoop {
		h.p.Pin(call.SessionID)
	}
	return tool.Verdict{}, nil
}

// Pin notes what the verify commands of a session are, if that is not known yet. A
// sub-agent has those of its root.
func (p *Plugin) Pin(session string) {
	p.mu.Lock()
	_, known := p.pins[session]
	root, _, sub := strings.Cut(session, "::agent::")
	inherited, has := p.pins[root]
	p.mu.Unlock()
	if known || !p.trusted(session) {
		return // a folder that is trusted later brings what was shown then
	}
	commands := inherited
	if !sub || !has {
		commands = p.Commands(session)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pins) >= maxPins {
		clear(p.pins) // those sessions are asked about again
	}
	p.pins[session] = commands
}

// Commands returns the verify commands of a session as they are now: of the
// configuration (plugin.tool_shell.verify), else of AGENTS.md, else make test if there
// is a Makefile with such a target; none if there is nothing, or the folder is
// restricted.
func (p *Plugin) Commands(session string) []string {
	p.mu.Lock()
	c := p.c
	p.mu.Unlock()
	if c == nil || !p.trusted(session) {
		return nil
	}
	var configured []string
	if raw := c.Config("verify"); raw != nil && json.Unmarshal(raw, &configured) == nil {
		return configured
	}
	dir, err := p.folder(session)
	if err != nil {
		return nil
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = w.Close() }()
	return Checks(w)
}

// Checks returns the verify commands that a folder brings.
func Checks(w *workspace.Workspace) []string {
	if text, err := w.Text("AGENTS.md"); err == nil {
		if cs := FromAgents(text); len(cs) > 0 {
			return cs
		}
	}
	if text, err := w.Text("Makefile"); err == nil && strings.Contains("\n"+text, "\ntest:") {
		return []string{"make test"}
	}
	return nil
}

// FromAgents reads the verify commands of an AGENTS.md: those in the first block of
// code, or in the items of the list, below a heading that has the word verify,
// verification or checks in it.
func FromAgents(text string) []string {
	var out []string
	in, code := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			if in && code && len(out) > 0 {
				return out
			}
			code = !code
		case !code && strings.HasPrefix(line, "#"):
			if in {
				return out
			}
			heading := strings.ToLower(strings.TrimLeft(line, "# "))
			in = slices.ContainsFunc(strings.FieldsFunc(heading, func(r rune) bool { return r < 'a' || r > 'z' }), func(w string) bool {
				return w == "verify" || w == "verification" || w == "checks"
			})
		case in && code && trimmed != "" && !strings.HasPrefix(trimmed, "#"):
			out = append(out, strings.TrimPrefix(trimmed, "$ "))
		case in && !code:
			if item := strings.TrimLeft(trimmed, "-*0123456789. "); item != trimmed && strings.HasPrefix(item, "`") {
				if command, _, ok := strings.Cut(item[1:], "`"); ok {
					out = append(out, command)
				}
			}
		}
	}
	return out
}

// Verdict is how a verification ended, as the tool's structured result has it.
type Verdict struct {
	OK       bool   `json:"ok"`
	Command  string `json:"command,omitempty"` // the one that failed
	ExitCode int    `json:"exit_code"`
}

func (p *Plugin) verify(ctx context.Context, call tool.Call, _ struct{}) (tool.Result, error) {
	commands := p.Commands(call.SessionID)
	if len(commands) == 0 {
		return tool.OK("there is nothing to verify with", tool.Text("No verify commands are configured, and neither AGENTS.md nor a Makefile has any.")), nil
	}
	dir, err := p.place(call.SessionID, "")
	if err != nil {
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	var all strings.Builder
	v := Verdict{OK: true}
	for _, command := range commands {
		r, err := p.check(ctx, call, dir, command)
		if err != nil {
			return tool.Result{}, err
		}
		fmt.Fprintf(&all, "$ %s\n%s", command, r.result().Text()+"\n")
		if r.code != 0 || r.timedOut {
			v = Verdict{false, command, r.code}
			break
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return tool.Result{}, err
	}
	if !v.OK {
		res := tool.Fail(tool.ErrTool, "verification failed: %s ended with exit code %d", v.Command, v.ExitCode)
		res.Display, res.Structured = []tool.Block{tool.Text(all.String())}, raw
		return res, nil
	}
	res := tool.OK(fmt.Sprintf("verified by %d commands", len(commands)), tool.Text(all.String()))
	res.Structured = raw
	return res, nil
}

// check runs one command, and says so on the bus (S-51, S-54).
func (p *Plugin) check(ctx context.Context, call tool.Call, dir, command string) (ran, error) {
	if err := p.c.Emit(event.VerifyWasStarted.Name(), call.SessionID, event.VerifyStarted{TurnID: call.Turn, Command: command}); err != nil {
		return ran{}, err
	}
	r, err := p.run(ctx, dir, command, nil, cmp.Or(maxTimeout, p.timeout()), call.Progress)
	done := event.VerifyCompleted{TurnID: call.Turn, Command: command}
	if err == nil {
		done.ExitCode = &r.code
		if art, aerr := p.artifacts.Put(call, "text/plain; charset=utf-8", []byte(r.output)); aerr == nil && len(r.output) > 0 {
			done.OutputRef = art.ID
		}
	}
	return r, errors.Join(err, p.c.Emit(event.VerifyWasCompleted.Name(), call.SessionID, done))
}
