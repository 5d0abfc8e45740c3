package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// verifyTool needs no approval while it runs checks that its user has approved.
type verifyTool struct {
	tool.Tool
	p *Plugin
}

func (verifyTool) ObeysContext() {}

// Touches implements [tool.Toucher]: the agent does not choose what checks write.
func (verifyTool) Touches(tool.Call) []string { return nil }

// checks is a prepared call of verify.
type checks struct {
	*setting
	commands []string
	files    []string // files with unreviewed changes
	facts    []fact
	since    *unseen
	asks     string // why it needs approval; "" if it does not
}

// maxChecks bounds the verify commands, so that they can be shown.
const maxChecks = 64

// Prepare implements [tool.Preparer].
func (v verifyTool) Prepare(ctx context.Context, call tool.Call) (*tool.Prepared, error) {
	c := &checks{commands: v.p.commands(call.SessionID)}
	if len(c.commands) == 0 {
		return &tool.Prepared{Shown: json.RawMessage(`{"commands":[]}`), Run: c}, nil
	}
	if n := len(strings.Join(c.commands, "\n")); len(c.commands) > maxChecks || n > maxCommand {
		return nil, &tool.Failure{Kind: tool.ErrUnavailable, Err: fmt.Errorf("there are %d verify commands of %d bytes; the limits are %d commands and %d bytes: put them into a script", len(c.commands), n, maxChecks, maxCommand)}
	}
	s, err := v.p.settle(call.SessionID, "", asCheck)
	if err != nil {
		return nil, failure(tool.ErrUnavailable, err)
	}
	c.setting = s
	shown := struct {
		Commands []string `json:"commands"`
		Cwd      string   `json:"cwd"`
		shownBox
		Changed  []shownFile `json:"changed_unreviewed,omitempty"`
		By       []string    `json:"changed_by,omitempty"`
		Unknown  string      `json:"changed_unknown,omitempty"`
		Files    []shownFile `json:"files,omitempty"`
		More     int         `json:"more_files,omitempty"`
		Programs []string    `json:"programs,omitempty"`
	}{Commands: c.commands, Cwd: s.at.cwd, shownBox: s.box.shown}
	if c.since, err = v.p.marks.of(s.at.root); err != nil {
		shown.Unknown = err.Error()
	} else {
		c.files, shown.By = c.since.files(s.at.root), c.since.tools()
	}
	if c.facts, err = c.look(ctx); err != nil {
		s.at.close()
		return nil, err
	}
	shown.Files, shown.More, shown.Programs = show(slices.DeleteFunc(slices.Clone(c.facts), c.unseen))
	for _, f := range c.facts {
		if c.unseen(f) {
			shown.Changed = append(shown.Changed, f.shown())
		}
	}
	switch {
	case shown.Unknown != "":
		c.asks = "while the changed files are unknown"
	case len(c.files) > 0 || len(shown.By) > 0:
		c.asks = "after changes that nobody has reviewed"
	case !v.p.cfg.Agreed(call.SessionID, c.commands):
		c.asks = "with commands that nobody has approved"
	}
	return prepared(c, shown, s, c.facts)
}

// look surveys the checks.
func (c *checks) look(ctx context.Context) ([]fact, error) {
	return look(ctx, c.at, c.env, c.commands, true, c.files)
}

// unseen reports whether a file has unreviewed changes.
func (c *checks) unseen(f fact) bool {
	return !f.program && slices.Contains(c.files, f.path)
}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (verifyTool) ApprovalBrief(call tool.Call) string {
	c, err := fixed[*checks](call)
	if err != nil {
		return "verify"
	}
	return strings.TrimSpace("verify, "+c.asks) + ": " + strings.Join(c.commands, "; ")
}

// PreApproved implements [tool.PreApproved]: the commands are the trusted ones of the folder,
// and a person has approved every change since.
func (verifyTool) PreApproved(call tool.Call) bool {
	c, err := fixed[*checks](call)
	return err == nil && c.asks == ""
}

// Commands returns the current verify commands for a folder, which is nil if it cannot be opened:
// those of the configuration (plugin.tool_shell.verify), otherwise those of its AGENTS.md, otherwise
// make test if its Makefile has that target, otherwise none.
func (p *Plugin) Commands(w *workspace.Workspace) []string {
	p.mu.Lock()
	c := p.c
	p.mu.Unlock()
	if c == nil {
		return nil
	}
	var configured []string
	if raw := c.Config("verify"); raw != nil && json.Unmarshal(raw, &configured) == nil {
		return configured
	}
	if w == nil {
		return nil
	}
	return Checks(w)
}

// commands returns the verify commands of a session.
func (p *Plugin) commands(session string) []string {
	dir, err := p.cfg.Folder(session)
	if err != nil {
		return p.Commands(nil)
	}
	w, err := p.cfg.Guard.Open(dir)
	if err != nil {
		return p.Commands(nil)
	}
	defer func() { _ = w.Close() }()
	return p.Commands(w)
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

// FromAgents reads the verify commands of an AGENTS.md: the first code block, or the list
// items, below a heading that contains the word verify, verification or checks.
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

// Verdict is the outcome of a verification, in the form of the tool's structured result.
type Verdict struct {
	OK       bool   `json:"ok"`
	Command  string `json:"command,omitempty"` // the one that failed
	ExitCode int    `json:"exit_code"`
}

// verify runs prepared checks.
func (p *Plugin) verify(ctx context.Context, call tool.Call, _ struct{}) (tool.Result, error) {
	c, err := fixed[*checks](call)
	if err != nil {
		return tool.Result{}, err
	}
	if len(c.commands) == 0 {
		return tool.OK("there are no verify commands", tool.Text("No verify commands are configured, and neither AGENTS.md nor a Makefile has any.")), nil
	}
	var all strings.Builder
	v := Verdict{OK: true}
	for i, command := range c.commands {
		var first func(context.Context) error
		if i == 0 { // the second check may use files that the first one changes
			first = func(ctx context.Context) error { return p.agreed(ctx, call, c) }
		}
		r, err := p.check(ctx, call, c, command, first)
		if err != nil {
			return ended(r.result, err)
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
	res := tool.OK("verified by "+worded.Count(len(c.commands), "command", "commands"), tool.Text(all.String()))
	res.Structured = raw
	return res, nil
}

// agreed checks that the checks use the shown files, and records that the approving person has
// seen the changes.
func (p *Plugin) agreed(ctx context.Context, call tool.Call, c *checks) error {
	now, err := c.look(ctx)
	if err = errors.Join(err, differ(c.facts, now)); err != nil {
		return err
	}
	if !call.Prepared.Approved && c.asks == "" {
		return p.unchanged(c)
	}
	if !call.Prepared.Approved || c.since == nil {
		return nil
	}
	if err := p.marks.clear(c.since); err != nil { // it needs approval again
		p.c.Log().Warn().Err(err).Str("folder", c.at.root).Msg("cannot record that the changes in a folder were approved")
	}
	return nil
}

// unchanged checks that checks without approval still need none.
func (p *Plugin) unchanged(c *checks) error {
	now, err := p.marks.of(c.at.root)
	if err != nil {
		return err
	}
	if by := slices.Concat(now.files(c.at.root), now.tools()); len(by) > 0 {
		return &tool.Failure{Kind: tool.ErrRejected, Err: fmt.Errorf("unreviewed changes appeared in the meantime (%.300s): call verify again", strings.Join(by, ", "))}
	}
	return nil
}

// check runs one command, and publishes that on the bus.
func (p *Plugin) check(ctx context.Context, call tool.Call, c *checks, command string, first func(context.Context) error) (ran, error) {
	if err := p.c.Emit(event.VerifyWasStarted.Name(), call.SessionID, event.VerifyStarted{TurnID: call.Turn, Command: command}); err != nil {
		return ran{}, err
	}
	r, err := p.run(ctx, call, c.setting, command, nil, maxTimeout, first)
	done := event.VerifyCompleted{TurnID: call.Turn, Command: command}
	if err == nil {
		done.ExitCode = &r.code
		if art, aerr := p.cfg.Artifacts.Put(call, "text/plain; charset=utf-8", []byte(r.output)); aerr == nil && len(r.output) > 0 {
			done.OutputRef = art.ID
		}
	}
	return r, errors.Join(err, p.c.Emit(event.VerifyWasCompleted.Name(), call.SessionID, done))
}
