package chat

import (
	"errors"
	"strings"
	"unicode"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/yaya-ai/yaya/internal/invisible"
)

// Limits of the input.
const (
	maxInput  = 256 << 10 // characters
	maxLines  = 10_000
	maxHeight = 8 // lines on the screen; the rest scrolls
)

// The beginning of each line of the input: of a message, and of a command for the shell.
const (
	messagePrompt = "│ "
	shellPrompt   = "$ " // the ! is in the text
)

func newInput() textarea.Model {
	in := textarea.New()
	in.Placeholder = "Write a message, or /help"
	in.ShowLineNumbers = false
	in.Prompt = messagePrompt
	in.CharLimit, in.MaxContentHeight = maxInput, maxLines
	in.DynamicHeight, in.MinHeight, in.MaxHeight = true, 1, maxHeight
	in.SetHeight(1)
	in.KeyMap.InsertNewline.SetKeys("ctrl+j", "shift+enter", "alt+enter")
	in.KeyMap.Paste.SetEnabled(false) // it starts programs; terminals paste by themselves
	in.SetVirtualCursor(false)
	style := textarea.StyleState{Placeholder: lipgloss.NewStyle().Faint(true), Prompt: lipgloss.NewStyle().Faint(true)}
	in.SetStyles(textarea.Styles{Focused: style, Blurred: style})
	in.Focus()
	return in
}

// paste adds a text of somebody else's, perhaps. Characters that cannot be seen would act on the
// terminal, or would tell the model something that the user does not read.
func (m *model) paste(text string) {
	var before rune
	text = strings.Map(func(r rune) rune {
		was := before
		before = r
		if r == '\n' || r == '\r' || r == '\t' || invisible.OfProse(was, r) || unicode.IsPrint(r) && !invisible.Is(r) {
			return r
		}
		return -1
	}, strings.ReplaceAll(text, "\r\n", "\n"))
	m.menu, m.leaving = nil, false
	m.begins()
	m.input, _ = m.input.Update(tea.PasteMsg{Content: text})
	if m.input.Length() >= maxInput || m.input.LineCount() >= maxLines {
		m.complain(errors.New("the input is full, and what was pasted may be cut off; put it in a file"))
	}
}

// edit handles a key of the input. Removed text comes back with Ctrl+Y.
func (m *model) edit(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	before := m.input.Value()
	switch key {
	case "up", "ctrl+p":
		if m.input.Line() == 0 && m.input.LineInfo().RowOffset == 0 {
			if text, ok := m.history.older(before); ok {
				m.put(text)
			}
			return nil
		}
	case "down", "ctrl+n":
		if info := m.input.LineInfo(); m.input.Line() == m.input.LineCount()-1 && info.RowOffset == info.Height-1 {
			if text, ok := m.history.newer(); ok {
				m.put(text)
			}
			return nil
		}
	case "ctrl+y":
		m.input.InsertString(m.killed)
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(k)
	m.bang = strings.HasPrefix(m.input.Value(), "!") && (m.bang || strings.HasPrefix(k.Text, "!"))
	switch key {
	case "ctrl+k", "ctrl+u", "ctrl+w", "alt+d", "alt+backspace":
		if gone := removed(before, m.input.Value()); gone != "" {
			m.killed = gone
		}
	}
	return cmd
}

// put replaces the input by a text of the user's.
func (m *model) put(text string) {
	m.input.SetValue(text)
	m.bang = strings.HasPrefix(text, "!")
}

// removed returns the text that before has and after has not, in one place.
func removed(before, after string) string {
	n := 0
	for n < len(after) && before[n] == after[n] {
		n++
	}
	return before[n : n+len(before)-len(after)]
}

// interrupt is Ctrl+C: once it cancels the turn, or empties the input; twice it leaves.
func (m *model) interrupt() tea.Cmd {
	if m.leaving {
		m.quit = true
		return nil
	}
	m.leaving = true
	m.say1("press Ctrl+C again to leave; the session continues")
	if m.stopErrand() {
		return nil
	}
	if m.t.running {
		return m.do(m.cancel())
	}
	if text := m.input.Value(); text != "" {
		m.killed = text
		m.input.Reset()
		m.bang = false
	}
	return nil
}

// continued reports whether the input ends with a backslash, which stands for another line, and
// begins that line.
func (m *model) continued() bool {
	v := m.input.Value()
	if line, _ := m.word(); !strings.HasSuffix(v, "\\") || !strings.HasSuffix(v, line) || m.input.Line() != m.input.LineCount()-1 {
		return false
	}
	m.input, _ = m.input.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	m.input.InsertString("\n")
	return true
}
