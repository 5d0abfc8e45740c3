package sessions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Bounds of a session as text.
const (
	maxTextTurns = 100
	maxTextCall  = 1 << 10 // bytes of a call's input, and of its result
)

// Recent returns the sessions of this node that changed last, at most n.
func (s *Service) Recent(n int) ([]SessionRow, error) {
	page, err := s.ownPage(n, "", "")
	if err != nil {
		return nil, err
	}
	out := make([]SessionRow, len(page.Sessions))
	for i, p := range page.Sessions {
		out[i] = p.SessionRow
	}
	return out, nil
}

// Text returns a session for readers: what it is, and its last turns, as many as fit into limit
// bytes. It says what is left out.
func (s *Service) Text(id string, limit int) (string, error) {
	st, err := s.state(id)
	if err != nil {
		return "", err
	}
	turns, err := s.turns(&InPage{InSession: InSession{id}, Limit: maxTextTurns})
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("Session %s: %s\nFolder: %s\nStatus: %s, %s\nChanged: %s\nTurns: %d, steps: %d, cost: $%.4f as far as prices are known\n",
		id, st.Title, st.Workspace, st.Status, st.State, st.UpdatedAt.Format("2006-01-02 15:04:05 MST"), st.Usage.Turns, st.Usage.Steps, st.Usage.CostUSD)
	const left, end = "\n[earlier turns are left out]\n", "\n[cut]\n"
	room := limit - len(head) - len(left) - len(end)
	var texts []string
	whole := turns.Body.Before == 0
	for _, t := range turns.Body.Turns { // the last one first
		text := t.text()
		if len(text) > room && len(texts) == 0 {
			text = cut.Bytes(text, room) + end
		} else if len(text) > room {
			whole = false
			break
		}
		room -= len(text)
		texts = append(texts, text)
	}
	if !whole {
		head += left
	}
	slices.Reverse(texts)
	return head + strings.Join(texts, ""), nil
}

// text returns a turn: what was said to the agent, its calls, and what it said.
func (t *Turn) text() string {
	var b strings.Builder
	said := func(of func(role string) bool) {
		for _, m := range t.Messages {
			if !of(m.Role) {
				continue
			}
			fmt.Fprintf(&b, "\n%s:\n", m.Role)
			for _, p := range m.Parts {
				if p.Type == "text" {
					b.WriteString(p.Text + "\n")
				} else {
					fmt.Fprintf(&b, "[%s %s]\n", p.Type, p.Name)
				}
			}
		}
	}
	said(func(role string) bool { return role != "assistant" })
	for _, c := range t.ToolCalls {
		fmt.Fprintf(&b, "\ncall: %s %s\n", c.Name, brief(string(c.Input)))
		if r := c.Result; r != nil {
			outcome := "result"
			if !r.OK {
				outcome = "failed"
			}
			var text strings.Builder
			for _, p := range r.Parts {
				text.WriteString(p.Text)
			}
			if text.Len() == 0 {
				text.WriteString(r.Brief)
			}
			fmt.Fprintf(&b, "%s: %s\n", outcome, brief(text.String()))
		}
	}
	said(func(role string) bool { return role == "assistant" })
	if t.Status != "completed" {
		fmt.Fprintf(&b, "\n[the turn is %s] %s\n", t.Status, t.Error)
	}
	return b.String()
}

func brief(s string) string {
	if len(s) <= maxTextCall {
		return s
	}
	return cut.Bytes(s, maxTextCall) + " [cut]"
}
