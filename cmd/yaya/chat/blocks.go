package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/screen"
)

// Bounds on what is shown of a call, unless the details are.
const (
	maxDiff   = 16  // lines of a patch
	maxResult = 200 // characters of an outcome
	maxFailed = 3   // last lines of the output of a command that has failed
)

// edge is the width of the names beside the conversation.
const edge = 5

// layout is the conversation as lines; it is kept until something changes.
type layout struct {
	epoch, changes int
	lines          []string
}

// writing is the text that the model is writing, as lines. Only the last line of the text is
// rendered again when it grows.
type writing struct {
	md    *screen.Markdown
	epoch int
	taken string // the part of the text that lines has
	lines []string
}

// redraw forgets all that was rendered: the width, the colours or the details have changed.
func (m *model) redraw() { m.epoch++ }

// lay returns the conversation as lines of the terminal's width.
func (m *model) lay() []string {
	if m.laid == nil || m.laid.epoch != m.epoch || m.laid.changes != m.t.changes {
		l := &layout{epoch: m.epoch, changes: m.t.changes}
		for i := range m.t.blocks {
			b := &m.t.blocks[i]
			if b.drawn == nil || b.epoch != m.epoch {
				b.drawn, b.epoch = m.block(*b), m.epoch
			}
			l.lines = append(l.lines, b.drawn...)
		}
		m.laid = l
	}
	out := m.laid.lines
	if m.t.stream != "" {
		out = append(out[:len(out):len(out)], m.beside("yaya", m.palette.Good, m.stream())...)
	}
	if len(m.sending) > 0 && m.lost {
		out = append(out[:len(out):len(out)], m.waiting()...)
	}
	return out
}

// stream renders the text that the model is writing.
func (m *model) stream() []string {
	w := &m.writing
	text := bounded(m.t.stream)
	if w.md == nil || w.epoch != m.epoch || !strings.HasPrefix(text, w.taken) {
		*w = writing{md: screen.New(m.palette, m.room()), epoch: m.epoch}
	}
	for {
		line, _, whole := strings.Cut(text[len(w.taken):], "\n")
		if !whole {
			break
		}
		w.lines = append(w.lines, w.md.Line(line)...)
		w.taken = text[:len(w.taken)+len(line)+1]
	}
	out := append(w.lines[:len(w.lines):len(w.lines)], w.md.Peek(text[len(w.taken):])...)
	if n := len(out); n > 0 && ansi.StringWidth(out[n-1])+2 <= m.room() {
		out[n-1] += " ▍"
		return out
	}
	return append(out, "▍")
}

// room returns the width of the conversation.
func (m *model) room() int { return max(m.width-edge-1, 10) }

// beside puts a name beside lines.
func (m *model) beside(name, style string, text []string) []string {
	out := make([]string, 0, len(text)+1)
	for i, l := range text {
		start := strings.Repeat(" ", edge)
		if i == 0 {
			start = screen.Paint(screen.Bold+style, name) + strings.Repeat(" ", edge-len(name))
		}
		out = append(out, start+l)
	}
	return append(out, "")
}

// block renders one block.
func (m *model) block(b block) []string {
	switch b.kind {
	case fromUser:
		return m.beside("you", m.palette.Accent, screen.Prose(b.text, m.room()))
	case fromModel:
		return m.beside("yaya", m.palette.Good, screen.Render(m.palette, b.text, m.room()))
	case fromTool:
		return m.tool(b)
	case fromShell:
		return m.shellBlock(b)
	case note, trouble:
	}
	mark, style := screen.Paint(screen.Faint, "  ·  "), ""
	if b.kind == trouble {
		mark, style = screen.Paint(m.palette.Bad, "  !  "), m.palette.Bad
	}
	out := screen.Lines(b.text, m.room())
	for i := range out {
		out[i] = mark + screen.Paint(style, out[i])
		mark = strings.Repeat(" ", edge)
	}
	return append(out, "")
}

// tool renders a call: its name and arguments on one line, the lines that a patch changes, and the
// outcome. The details are all of its arguments and its result.
func (m *model) tool(b block) []string {
	c := b.tool
	mark, style := screen.Paint(screen.Faint, "…"), ""
	switch {
	case c.bad:
		mark, style = screen.Paint(m.palette.Bad, "✗"), m.palette.Bad
	case c.done:
		mark = screen.Paint(m.palette.Good, "✓")
	}
	head := mark + " " + screen.Paint(screen.Bold, screen.Clean(c.name, 80))
	plan, isPlan := Steps(c.name, c.input)
	says, steps := m.steps(plan)
	switch {
	case m.details:
	case isPlan:
		head += "  " + says
	default:
		head += "  " + screen.Clean(short(c.name, c.input), maxResult)
	}
	out := []string{ansi.Truncate(head, m.room(), "…")}
	add := func(style string, lines []string) {
		for _, l := range lines {
			out = append(out, screen.Paint(screen.Faint, "│ ")+screen.Paint(style, l))
		}
	}
	if m.details {
		for _, l := range callargs.Lines(c.name, c.input) {
			add(m.signStyle(l.Sign), screen.Lines(l.Head+l.Text, m.room()-2))
		}
		if b.text != "" {
			add(screen.Faint, screen.Lines(b.text, m.room()-2))
		}
	} else if isPlan {
		add("", steps)
	} else {
		shown, more := callargs.Change(c.name, c.input, maxDiff)
		for _, l := range shown {
			add(m.signStyle(l.Sign), []string{ansi.Truncate(screen.Clean(l.Text, m.width), m.room()-2, "…")})
		}
		if more {
			add(screen.Faint, []string{"… (Ctrl+T shows all)"})
		}
	}
	if c.bad && c.name == "shell" && !m.details {
		for _, l := range lastLines(b.text, c.brief, maxFailed) {
			add(screen.Faint, []string{ansi.Truncate(screen.Clean(l, m.width), m.room()-2, "…")})
		}
	}
	if c.progress != "" && !c.done {
		out = append(out, screen.Paint(screen.Faint, "└ "+ansi.Truncate(screen.Clean(c.progress, maxResult), m.room()-2, "…")))
	}
	if c.brief != "" {
		out = append(out, screen.Paint(screen.Faint, "└ ")+screen.Paint(style, ansi.Truncate(screen.Clean(c.brief, maxResult), m.room()-2, "…")))
	}
	for i := range out {
		out[i] = strings.Repeat(" ", edge) + out[i]
	}
	return append(out, "")
}

// lastLines returns the last lines of a text that are not empty, as a terminal would leave them, and
// none that only says the outcome.
func lastLines(text, outcome string, most int) (out []string) {
	begins, cut := strings.CutSuffix(outcome, "…")
	for _, l := range slices.Backward(strings.Split(readable(text), "\n")) {
		if len(out) == most {
			break
		}
		says := strings.HasPrefix(l, "[exit code ") || l == outcome || cut && begins != "" && strings.HasPrefix(l, begins)
		if strings.TrimSpace(l) != "" && !says {
			out = append(out, l)
		}
	}
	slices.Reverse(out)
	return out
}

// short returns the arguments of a call on one line: a command as it is typed, others by name. The
// text of a change is not among them.
func short(tool string, input json.RawMessage) string {
	args := callargs.Read(input)
	if args == nil {
		return callargs.Plain(input)
	}
	var parts []string
	for _, a := range args {
		text, isText := a.Text()
		if callargs.IsChange(tool, a.Name) {
			continue
		}
		if !isText {
			text = callargs.Plain(a.Value)
		}
		first, _, more := strings.Cut(strings.TrimSpace(text), "\n")
		if more {
			first += " …"
		}
		if a.Name != "command" && a.Name != "path" {
			first = a.Name + "=" + first
		}
		parts = append(parts, first)
	}
	return strings.Join(parts, " ")
}
