package chat

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/screen"
)

// maxNoteLines bounds the last message outside the conversation: more would hide the conversation.
const maxNoteLines = 4

func (m *model) page() int { return max(m.height-8, 3) }

// View implements [tea.Model].
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = m.window()
	if m.list == nil {
		// The terminal's own cursor is the one that screen readers and input methods follow.
		if v.Cursor = m.input.Cursor(); v.Cursor != nil {
			v.Cursor.Y += m.height - 1 - m.input.Height()
		}
	}
	return v
}

// screen returns the content of the terminal.
func (m *model) screen() string {
	if m.list != nil {
		return m.viewList()
	}
	bottom := m.question()
	// A question that does not fit on the screen is not cut: the user can scroll it.
	tail := []string{m.status()}
	if m.note != "" {
		colour := screen.Faint
		if m.isBad {
			colour = m.palette.Bad
		}
		lines := screen.Lines(m.note, m.width)
		if len(lines) > maxNoteLines {
			lines = lines[:maxNoteLines]
			lines[maxNoteLines-1] = ansi.Truncate(lines[maxNoteLines-1], m.width-1, "") + "…"
		}
		for _, l := range lines {
			tail = append(tail, screen.Paint(colour, l))
		}
	}
	tail = append(tail, m.viewMenu()...)
	m.input.Prompt = messagePrompt
	if m.bang {
		m.input.Prompt = shellPrompt
	}
	tail = append(tail, strings.Split(m.input.View(), "\n")...)
	tail = append(tail, m.facts())
	// In a low window the input stays, and the lines above it go.
	least := min(3, max(0, m.height-1-m.input.Height()))
	tail = tail[max(0, len(tail)-(m.height-least)):]
	room := max(m.height-len(tail), 0)
	if len(bottom) > room {
		bottom = append(bottom, screen.Paint(m.palette.Accent, "The question does not fit on the screen: press PgUp to see the rest."))
	}
	all := m.lay()
	all = append(all[:len(all):len(all)], bottom...)
	m.up = min(m.up, max(0, len(all)-room))
	from := max(0, len(all)-room-m.up)
	shown := all[from:min(len(all), from+room)]
	out := make([]string, 0, m.height)
	for range room - len(shown) {
		out = append(out, "")
	}
	return strings.Join(append(append(out, shown...), tail...), "\n")
}

func (m *model) viewList() string {
	out := []string{screen.Paint(screen.Bold, "Sessions") + screen.Paint(screen.Faint, "  ↑ ↓ Enter, Esc goes back"), ""}
	room := max(m.height-3, 3)
	from := max(0, min(m.at-room/2, len(m.list)-room))
	for i := from; i < min(len(m.list), from+room); i++ {
		s := m.list[i]
		title := s.Title
		if title == "" {
			title = s.ID
		}
		line := ansi.Truncate(fmt.Sprintf(" %-16s  %-18s  %s", s.Updated.Local().Format("2006-01-02 15:04"), screen.Clean(s.Status, 18), screen.CleanProse(title, 200)), m.width-1, "…")
		if i == m.at {
			line = screen.Paint(screen.Reverse, line)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
