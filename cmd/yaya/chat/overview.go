package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/screen"
	"github.com/yaya-ai/yaya/internal/worded"
)

// Limits of what the commands list that show what there is.
const (
	maxRows  = 20 // lines
	maxNames = 40 // tools of one server
)

// Local reads files of this machine that no API tells of. Each of its functions may be nil.
type Local struct {
	// Skills and Agents return those of the user and of a folder: skills, and files of sub-agents.
	Skills, Agents func(folder string) ([]Entry, error)
	// Today returns what all sessions have cost today, in US dollars.
	Today func() (float64, error)
}

// Entry is a skill or a sub-agent.
type Entry struct {
	Name   string
	Says   string // its description
	Path   string // of the file
	Reason string // why models do not see it; "" if they do
}

// row is a line of a list: a name, and what is said of it.
type row struct{ name, says string }

// table writes rows below a heading, of which those that do not fit are counted; all says where they are.
func table(head string, rows []row, all string) string {
	width := 0
	shown := rows[:min(len(rows), maxRows)]
	for _, r := range shown {
		width = max(width, min(ansi.StringWidth(screen.Clean(r.name, 60)), 24))
	}
	var b strings.Builder
	b.WriteString(head)
	for _, r := range shown {
		name := screen.Clean(r.name, 60)
		b.WriteString("\n  " + name)
		if r.says != "" {
			b.WriteString(strings.Repeat(" ", max(width-ansi.StringWidth(name), 0)+2) + screen.Clean(r.says, maxResult))
		}
	}
	if n := len(rows) - len(shown); n > 0 {
		fmt.Fprintf(&b, "\n  … %d more: %s", n, all)
	}
	return b.String()
}

// tell shows what f returns.
func (m *model) tell(f func() (string, error)) action {
	return func() error {
		text, err := f()
		if err == nil {
			m.send(told{text})
		}
		return err
	}
}

// servers lists the MCP servers.
func (m *model) servers() action {
	return m.tell(func() (string, error) {
		var all []struct {
			Name, State, Reason string
			Tools               int
		}
		if err := m.api.call(m.ctx, http.MethodGet, "/api/mcp/servers", nil, &all); err != nil {
			return "", err
		}
		if len(all) == 0 {
			return "no MCP server is configured (to add one: yaya mcp add, or yaya mcp import)", nil
		}
		rows := make([]row, len(all))
		for i, s := range all {
			says := fmt.Sprintf("%-9s %s", s.State, worded.Count(s.Tools, "tool", "tools"))
			if s.Reason != "" {
				says += ": " + s.Reason
			}
			rows[i] = row{s.Name, says}
		}
		return table(worded.Count(len(all), "MCP server", "MCP servers"), rows, "yaya mcp list"), nil
	})
}

// tools lists the tools of the agent, by who has them.
func (m *model) tools() action {
	limits := ""
	switch {
	case m.restricted:
		limits = "; the agent only reads and searches in this folder until you trust it (/trust)"
	case m.t.mode == planMode:
		limits = "; the agent only reads until you approve its plan"
	case m.t.mode == editMode:
		limits = "; it changes files without a question (/edits off)"
	}
	return m.tell(func() (string, error) {
		var all []struct {
			Name, Provider, Kind string
			Asks                 bool `json:"requires_approval"`
		}
		if err := m.api.call(m.ctx, http.MethodGet, "/api/tools", nil, &all); err != nil {
			return "", err
		}
		by := map[string][]string{}
		var providers []string
		for _, t := range all {
			if by[t.Provider] == nil {
				providers = append(providers, t.Provider)
			}
			name := screen.Clean(t.Name, 128)
			if t.Asks || t.Provider != "" || (t.Kind != "read" && t.Kind != "network") { // as they do without a rule
				name += "*"
			}
			by[t.Provider] = append(by[t.Provider], name)
		}
		slices.Sort(providers) // yaya's own come first
		rows := make([]row, len(providers))
		for i, p := range providers {
			rows[i].name = p
			if p == "" {
				rows[i].name = "yaya"
			}
		}
		out := table(worded.Count(len(all), "tool", "tools")+" (* asks first, unless a rule answers)"+limits, rows, "yaya mcp tools")
		lines := strings.Split(out, "\n")
		for i := range rows[:min(len(rows), maxRows)] {
			names := by[providers[i]]
			slices.Sort(names)
			more := ""
			if n := len(names) - maxNames; n > 0 {
				names, more = names[:maxNames], fmt.Sprintf(" … %d more: yaya mcp tools %s", n, screen.Clean(providers[i], 60))
			}
			lines[i+1] += ": " + strings.Join(names, ", ") + more
		}
		return strings.Join(lines, "\n"), nil
	})
}

// costs tells what this session and all of today have used, beside the limits.
func (m *model) costs() action {
	id, today := m.id, m.local.Today
	return m.tell(func() (string, error) {
		s, err := m.api.Session(m.ctx, id)
		if err != nil {
			return "", err
		}
		var settings map[string]json.RawMessage
		if err := m.api.call(m.ctx, http.MethodGet, "/api/config", nil, &settings); err != nil {
			return "", err
		}
		limit := func(key string) string {
			var cents float64
			if raw, ok := settings[key]; !ok || json.Unmarshal(raw, &cents) != nil || cents <= 0 {
				return "without a limit (" + key + ")"
			}
			return fmt.Sprintf("of $%.2f (%s)", cents/100, key)
		}
		u := s.Usage
		cost := fmt.Sprintf("$%.4f", u.CostUSD)
		if u.CostUSD == 0 && u.Total > 0 {
			cost += ", as no price of its models is known,"
		}
		text := fmt.Sprintf("this session: %s %s\n  %s, %s of the model\n  tokens: %d in (%d of them from the cache), %d out",
			cost, limit("budget.session_cents"), worded.Count(u.Turns, "turn", "turns"), worded.Count(u.Steps, "call", "calls"), u.Input, u.Cached, u.Output)
		if today == nil {
			return text, nil
		}
		usd, err := today()
		if err != nil {
			return "", err
		}
		return text + fmt.Sprintf("\nall sessions today (UTC): $%.4f %s", usd, limit("budget.day_cents")), nil
	})
}

// entries lists skills or sub-agents of the session's folder: what is there, how many of what cannot be
// used, and why; end is the last line.
func (m *model) entries(find func(folder string) ([]Entry, error), one, many, add, all, end string, more func(context.Context, string, []Entry) error) action {
	folder := m.workspace
	if find == nil {
		return func() error { return errors.New("this chat has no files of " + many) }
	}
	return m.tell(func() (string, error) {
		found, err := find(folder)
		if err != nil {
			return "", err
		}
		if more != nil {
			if err := more(m.ctx, folder, found); err != nil {
				return "", err
			}
		}
		if len(found) == 0 {
			return "there are no " + many + " (to add one: " + add + ")" + end, nil
		}
		rows := make([]row, len(found))
		usable := 0
		for i, e := range found {
			rows[i] = row{e.Name, e.Says}
			if e.Reason == "" {
				usable++
			} else {
				rows[i].says = "not used: " + e.Reason
			}
		}
		head := worded.Count(usable, one, many)
		if n := len(found) - usable; n > 0 {
			head += fmt.Sprintf(", %d not used", n)
		}
		return table(head, rows, all) + end, nil
	})
}

func (m *model) skills() action {
	return m.entries(m.local.Skills, "skill", "skills", "yaya skill add, or yaya skill new", "yaya skill list", "", nil)
}

func (m *model) agents() action {
	end := ""
	if m.restricted {
		end = "\nThose of this folder are not read until you trust it (/trust)."
	}
	return m.entries(m.local.Agents, "sub-agent", "sub-agents", "a file .yaya/agents/NAME.md of a trusted folder", "the files in .yaya/agents, and in agents of your configuration folder", end, m.api.unusable)
}

// unusable adds to sub-agents why they cannot be used, as far as their files alone do not tell: their tools
// and models are those of the running yaya.
func (c *Client) unusable(ctx context.Context, folder string, all []Entry) error {
	var found []struct {
		Plugin  string
		Details []struct{ Name, Message string }
	}
	if err := c.call(ctx, http.MethodGet, "/api/doctor?"+url.Values{"folder": {folder}, "timeout_ms": {"2000"}}.Encode(), nil, &found); err != nil {
		return err
	}
	for _, d := range found {
		for _, x := range d.Details {
			for i := range all {
				if d.Plugin == "agent-tool" && x.Name == fmt.Sprintf("%+q", all[i].Path) {
					all[i].Reason = x.Message
				}
			}
		}
	}
	return nil
}
