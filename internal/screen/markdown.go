package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Limits of what nests.
const (
	maxQuotes = 6  // levels of quotes; more stay text
	maxIndent = 16 // columns of indentation
)

// Markdown renders markdown one line at a time, so that an answer can be shown while it is
// written. It knows headings, lists, quotes, rules, code blocks and tables (CommonMark and GFM),
// as far as single lines tell: a paragraph of several lines stays one.
type Markdown struct {
	palette Palette
	width   int
	prose   bool // as in [Prose]

	fence  string // the code block's first characters; "" outside one
	indent int    // of the code block
	quotes int    // around the code block, or the table
	code   highlighter

	table []string // rows that are held back until the table's end
	list  bool     // the last lines were a list's
	blank bool     // the last returned line is empty, or there is none
}

// New returns a Markdown for lines of at most a width, of what people and models write, as [Prose]
// is.
func New(p Palette, width int) *Markdown {
	return &Markdown{palette: p, width: max(width, 10), prose: true, blank: true}
}

// Render renders a whole text.
func Render(p Palette, text string, width int) []string { return New(p, width).whole(text) }

// Exactly is [Render] for what somebody is asked about: everything that is not seen is shown as an
// escape.
func Exactly(p Palette, text string, width int) []string {
	m := New(p, width)
	m.prose = false
	return m.whole(text)
}

func (m *Markdown) whole(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, m.Line(line)...)
	}
	out = append(out, m.End()...)
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// Line renders the next line of the source. It may return no lines, as within a table, or more
// than one.
func (m *Markdown) Line(line string) (out []string) {
	line = strings.TrimRight(line, "\r\n")
	if m.fence != "" {
		return m.inCode(line)
	}
	depth, rest := quotes(line, min(maxQuotes, m.width/4))
	if len(m.table) > 0 && (depth != m.quotes || !m.row(rest)) {
		if out = m.End(); m.fence != "" { // the line that was held back opens code
			return append(out, m.inCode(line)...)
		}
	}
	if len(m.table) > 0 || strings.Contains(rest, "|") {
		m.quotes = depth
		m.table = append(m.table, rest)
		if len(m.table) == maxRows {
			out = append(out, m.End()...)
		}
		return out
	}
	return append(out, m.block(depth, rest)...)
}

// Peek returns what a line would become that has no end yet, with what is held back.
func (m *Markdown) Peek(line string) []string {
	c := *m
	c.table = append([]string(nil), m.table...)
	if line == "" {
		return c.End()
	}
	return append(c.Line(line), c.End()...)
}

// End renders what is held back. The next line begins after it.
func (m *Markdown) End() (out []string) {
	held := m.table
	m.table = nil
	if len(held) >= 2 && delimiters(held[1]) != nil {
		m.blank = false
		return m.quoted(m.quotes, m.tableLines(held, m.width-2*m.quotes))
	}
	for _, l := range held {
		out = append(out, m.block(m.quotes, l)...)
	}
	return out
}

// quotes removes the signs of quotes from a line, and counts them.
func quotes(line string, limit int) (depth int, rest string) {
	rest = line
	for depth < limit {
		t := strings.TrimLeft(rest, " ")
		if len(rest)-len(t) > 3 || !strings.HasPrefix(t, ">") {
			break
		}
		rest = strings.TrimPrefix(t[1:], " ")
		depth++
	}
	return depth, rest
}

func (m *Markdown) quoted(depth int, lines []string) []string {
	if depth == 0 {
		return lines
	}
	bar := Paint(Faint, strings.Repeat("│ ", depth))
	for i := range lines {
		lines[i] = bar + lines[i]
	}
	return lines
}

// block renders a line outside code and tables.
func (m *Markdown) block(depth int, s string) []string {
	t := strings.TrimLeft(s, " \t")
	width := m.width - 2*depth
	if t == "" {
		if m.blank && depth == 0 {
			return nil
		}
		m.blank = true
		return m.quoted(depth, []string{""})
	}
	m.blank = false
	indent := min(ansi.StringWidth(strings.ReplaceAll(s[:len(s)-len(t)], "\t", "    ")), maxIndent, width/3)
	if f := fenceOf(t); f != "" && (indent < 4 || m.list) {
		m.fence, m.indent, m.quotes = f, len(s)-len(t), depth
		m.code = highlighter{palette: m.palette, lang: languageOf(t[len(f):])}
		return nil
	}
	if indent >= 4 && !m.list {
		return m.quoted(depth, m.codeLines([]span{{m.palette.Accent, s[min(4, len(s)-len(t)):]}}, width))
	}
	if text, ok := heading(t); ok && indent < 4 {
		m.list = false
		return m.quoted(depth, wrapped(m.inline(text, Bold+m.palette.Accent), width, false, m.prose))
	}
	if ruled(t) {
		m.list = false
		return m.quoted(depth, []string{Paint(Faint, strings.Repeat("─", min(width, 40)))})
	}
	hang := strings.Repeat(" ", indent)
	first := hang
	if mark, text := item(t); mark != "" && indent+len(mark) < width/2 {
		m.list = true
		first, t = hang+Paint(m.palette.Accent, mark)+" ", text
		hang += strings.Repeat(" ", ansi.StringWidth(mark)+1)
	} else {
		m.list = m.list && indent > 0
	}
	lines := wrapped(m.inline(t, ""), width-len(hang), false, m.prose)
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = hang + lines[i]
		}
	}
	return m.quoted(depth, lines)
}

// inCode renders a line of a code block, or ends the block.
func (m *Markdown) inCode(line string) []string {
	depth, rest := quotes(line, m.quotes)
	t := strings.Trim(rest, " ")
	if depth < m.quotes || (len(t) >= len(m.fence) && strings.Trim(t, m.fence[:1]) == "") {
		m.fence = ""
		if depth < m.quotes { // the end of a quote ends its code
			return m.Line(line)
		}
		return nil
	}
	for n := 0; n < m.indent && strings.HasPrefix(rest, " "); n++ {
		rest = rest[1:]
	}
	m.blank = false
	return m.quoted(m.quotes, m.codeLines(m.code.line(rest), m.width-2*m.quotes))
}

// codeLines indents code, so that it differs from text even without colours.
func (m *Markdown) codeLines(spans []span, width int) []string {
	lines := wrapped(spans, width-2, true, m.prose)
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// fenceOf returns the signs that open a code block.
func fenceOf(t string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(t) - len(strings.TrimLeft(t, c)); n >= 3 && (c != "`" || !strings.Contains(t[n:], "`")) {
			return t[:n]
		}
	}
	return ""
}

func heading(t string) (text string, ok bool) {
	text = strings.TrimLeft(t, "#")
	n := len(t) - len(text)
	if n == 0 || n > 6 || (text != "" && text[0] != ' ') {
		return "", false
	}
	text = strings.TrimSpace(text)
	if closed := strings.TrimRight(text, "#"); strings.HasSuffix(closed, " ") {
		text = strings.TrimSpace(closed)
	}
	return text, true
}

// ruled reports whether a line is a rule: three or more equal signs.
func ruled(t string) bool {
	t = strings.ReplaceAll(strings.TrimSpace(t), " ", "")
	return len(t) >= 3 && strings.ContainsRune("-*_", rune(t[0])) && strings.Trim(t, t[:1]) == ""
}

// item returns the mark of an item of a list as it is shown, and its text; "" for another line.
func item(t string) (mark, text string) {
	n := 0
	for n < len(t) && n < 9 && t[n] >= '0' && t[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n+1 < len(t) && (t[n] == '.' || t[n] == ')') && t[n+1] == ' ':
		return t[:n+1], strings.TrimLeft(t[n+1:], " ")
	case n == 0 && len(t) > 1 && strings.ContainsRune("-*+", rune(t[0])) && t[1] == ' ':
		text = strings.TrimLeft(t[1:], " ")
		switch {
		case strings.HasPrefix(text, "[ ] "):
			return "☐", text[4:]
		case strings.HasPrefix(text, "[x] "), strings.HasPrefix(text, "[X] "):
			return "☑", text[4:]
		}
		return "•", text
	}
	return "", t
}
