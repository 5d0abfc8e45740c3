package chat

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/callargs"
)

// Styles; a terminal ignores the ones that it does not support.
const (
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	reverse = "\x1b[7m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	cyan    = "\x1b[36m"
	plain   = "\x1b[0m"
)

// clean makes an untrusted text safe for a terminal: on one line, with a limited number of
// characters, and with invisible characters, and those that change how others appear, made
// visible.
func clean(s string, limit int) string {
	var b strings.Builder
	for n, r := range []rune(s) {
		if n == limit {
			b.WriteString("…")
			break
		}
		visible(&b, r)
	}
	return b.String()
}

func visible(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString("  ")
	case r == unicode.ReplacementChar, !unicode.IsPrint(r) && r != ' ':
		fmt.Fprintf(b, `\u{%x}`, r)
	default:
		b.WriteRune(r)
	}
}

// lines makes a text safe and wraps it at a width.
func lines(s string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n") {
		var b strings.Builder
		for _, r := range line {
			visible(&b, r)
		}
		out = append(out, strings.Split(ansi.Wrap(b.String(), width, ""), "\n")...)
	}
	return out
}

// layout returns the conversation as lines of a width; the result is cached until something
// changes.
type layout struct {
	width, changes int
	lines          []string
}

func paint(colour, s string) string { return colour + s + plain }

func (m *model) lay() []string {
	if m.laid == nil || m.laid.width != m.width || m.laid.changes != m.t.changes {
		l := &layout{width: m.width, changes: m.t.changes}
		for _, b := range m.t.blocks {
			l.lines = append(l.lines, m.block(b)...)
		}
		m.laid = l
	}
	out := m.laid.lines
	if m.t.stream != "" {
		out = append(out[:len(out):len(out)], m.block(block{kind: fromModel, text: m.t.stream + " ▍"})...)
	}
	return out
}

// block renders one block.
func (m *model) block(b block) []string {
	var out []string
	add := func(first, rest, colour, text string) {
		for i, l := range lines(text, max(m.width-ansi.StringWidth(first)-1, 10)) {
			start := rest
			if i == 0 {
				start = first
			}
			if colour != "" {
				l = paint(colour, l)
			}
			out = append(out, start+l)
		}
	}
	switch b.kind {
	case fromUser:
		add(paint(bold+cyan, "you  "), "     ", "", b.text)
	case fromModel:
		add(paint(bold+green, "yaya "), "     ", "", b.text)
	case fromTool:
		mark := "… "
		if b.done {
			mark = ""
		}
		colour := dim
		if strings.HasPrefix(b.head, "✗") {
			colour = red
		}
		add("     ", "     ", colour, mark+clean(b.head, 200))
		if m.details && b.text != "" {
			add(paint(dim, "     │ "), paint(dim, "     │ "), dim, b.text)
		}
	case trouble:
		add(paint(red, "  !  "), "     ", red, b.text)
	case note:
		add(paint(dim, "  ·  "), "     ", dim, b.text)
	}
	return append(out, "")
}

// question renders a question in full.
func (m *model) question() []string {
	if len(m.t.asks) == 0 {
		return nil
	}
	a := m.t.asks[0]
	what := heading(a)
	shown, folder := FolderQuestion(a)
	if folder {
		what = "do you trust this folder?"
	}
	out := []string{paint(yellow, strings.Repeat("═", m.width)), paint(bold+yellow, "yaya asks: ") + what}
	if folder {
		for _, l := range lines(shown, m.width-2) {
			out = append(out, "  "+l)
		}
	} else {
		out = append(out, m.arguments(a)...)
	}
	wait := ""
	if m.now().Sub(m.since) < arming {
		wait = dim
	}
	more := ""
	if n := len(m.t.asks) - 1; n > 0 {
		more = fmt.Sprintf("  (%d more)", n)
	}
	if d, err := time.Parse(time.RFC3339, a.Deadline); err == nil {
		more += paint(dim, "  until "+d.Local().Format(time.TimeOnly))
	}
	return append(out, paint(wait+bold, "Alt+Y")+" yes  "+paint(wait+bold, "Alt+S")+" yes, for this session  "+paint(wait+bold, "Alt+N")+" no (your input is sent as the reason)"+more)
}

// arguments renders what a call would do: a patch as a patch, a command as sh receives it, other
// arguments by name. A line of a text of several lines stands behind a bar.
func (m *model) arguments(a Ask) (out []string) {
	colours := map[byte]string{'+': green, '-': red, '@': dim}
	for _, l := range callargs.Lines(a.Tool, a.Input) {
		indent := "  "
		if l.Inner {
			indent = "  │ "
		}
		for _, text := range lines(l.Head+l.Text, m.width-len([]rune(indent))) {
			if colour := colours[l.Sign]; colour != "" {
				text = paint(colour, text)
			}
			out = append(out, indent+text)
		}
	}
	return out
}

func (m *model) status() string {
	state := paint(green, "idle")
	switch {
	case m.lost:
		state = paint(red, "connecting …")
	case len(m.t.asks) > 0:
		state = paint(yellow, "needs approval")
	case m.t.running:
		state = paint(yellow, "is working") + paint(dim, "  Enter queues, Ctrl+S steers, Esc stops")
	case m.t.closed:
		state = paint(dim, "closed")
	case m.t.stopped:
		state = paint(dim, "stopped  /retry runs it again")
	case m.t.failed:
		state = paint(red, "the last turn failed") + paint(dim, "  /retry runs it again")
	}
	title := m.title
	if title == "" {
		title = m.id
	}
	out := paint(bold, clean(title, 40)) + "  " + state
	if n := len(m.t.queue); n > 0 {
		out += fmt.Sprintf("  %d queued", n)
	}
	if m.up > 0 {
		out += paint(dim, "  (scrolled up)")
	}
	return ansi.Truncate(out, m.width, "…")
}

func (m *model) page() int { return max(m.height-8, 3) }

// View implements [tea.Model].
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
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
		colour := dim
		if m.isBad {
			colour = red
		}
		tail = append(tail, ansi.Truncate(paint(colour, clean(m.note, m.width*2)), m.width, "…"))
	}
	tail = append(tail, strings.Split(m.input.View(), "\n")...)
	room := max(m.height-len(tail), 3)
	if len(bottom) > room {
		bottom = append(bottom, paint(yellow, "The question does not fit on the screen: press PgUp to see the rest."))
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
	out := []string{paint(bold, "Sessions") + paint(dim, "  ↑ ↓ Enter, Esc goes back"), ""}
	room := max(m.height-3, 3)
	from := max(0, min(m.at-room/2, len(m.list)-room))
	for i := from; i < min(len(m.list), from+room); i++ {
		s := m.list[i]
		title := s.Title
		if title == "" {
			title = s.ID
		}
		line := ansi.Truncate(fmt.Sprintf(" %-16s  %-18s  %s", s.Updated.Local().Format("2006-01-02 15:04"), clean(s.Status, 18), clean(title, 200)), m.width-1, "…")
		if i == m.at {
			line = paint(reverse, line)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
