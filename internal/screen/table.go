package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Limits of a table. A larger one stays text.
const (
	maxRows    = 500
	maxColumns = 20
	minColumn  = 4
)

// row reports whether a line can belong to the table that is held back.
func (m *Markdown) row(line string) bool {
	if len(m.table) == 1 {
		return delimiters(line) != nil
	}
	return strings.Contains(line, "|")
}

// delimiters reads the second line of a table: for each column, 'l', 'c' or 'r'. It returns nil
// for another line.
func delimiters(line string) []byte {
	if strings.Trim(line, " \t|:-") != "" || !strings.Contains(line, "-") || !strings.Contains(line, "|") {
		return nil
	}
	var out []byte
	for _, c := range fields(line) {
		if strings.Trim(c, ":") == "" {
			return nil
		}
		switch {
		case strings.HasPrefix(c, ":") && strings.HasSuffix(c, ":"):
			out = append(out, 'c')
		case strings.HasSuffix(c, ":"):
			out = append(out, 'r')
		default:
			out = append(out, 'l')
		}
	}
	if len(out) > maxColumns {
		return nil
	}
	return out
}

// fields splits a row. A bar behind a backslash is text.
func fields(line string) (out []string) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			b.WriteByte('|')
			i++
		case line[i] == '|' && len(out) < maxColumns:
			out = append(out, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(line[i])
		}
	}
	if rest := strings.TrimSpace(b.String()); rest != "" || len(out) == 0 {
		out = append(out, rest)
	}
	return out
}

// tableLines renders a table. A column that is too wide is wrapped.
func (m *Markdown) tableLines(held []string, width int) (out []string) {
	align := delimiters(held[1])
	if len(align)*(minColumn+3) > width+3 { // too many columns for lines: the source is clearer
		for _, l := range held {
			out = append(out, wrapped([]span{{"", l}}, width, true, m.prose)...)
		}
		return out
	}
	rows := make([][][]span, 0, len(held)-1)
	natural := make([]int, len(align))
	for i, l := range held {
		if i == 1 {
			continue
		}
		style := ""
		if i == 0 {
			style = Bold
		}
		row := make([][]span, len(align))
		for c, text := range fields(l) {
			if c < len(align) {
				row[c] = m.inline(text, style)
				natural[c] = max(natural[c], widthOf(row[c], m.prose))
			}
		}
		rows = append(rows, row)
	}
	widths := fit(natural, width-3*(len(align)-1))
	for i, row := range rows {
		out = append(out, tableRow(row, widths, align, m.prose)...)
		if i == 0 {
			rule := make([]string, len(widths))
			for c, w := range widths {
				rule[c] = strings.Repeat("─", w)
			}
			out = append(out, Paint(Faint, strings.Join(rule, "─┼─")))
		}
	}
	return out
}

func widthOf(spans []span, prose bool) (n int) {
	for _, c := range cells(spans, prose) {
		n += c.width
	}
	return n
}

// fit narrows the widest columns until all of them fit.
func fit(widths []int, room int) []int {
	sum := 0
	for i, w := range widths {
		widths[i] = max(1, min(w, room))
		sum += widths[i]
	}
	for sum > room {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
		sum--
	}
	return widths
}

func tableRow(row [][]span, widths []int, align []byte, prose bool) (out []string) {
	lines := make([][]string, len(row))
	height := 0
	for c, spans := range row {
		lines[c] = wrapped(spans, widths[c], false, prose)
		height = max(height, len(lines[c]))
	}
	for y := range height {
		var b strings.Builder
		for c := range row {
			text := ""
			if y < len(lines[c]) {
				text = lines[c][y]
			}
			space := max(0, widths[c]-ansi.StringWidth(text))
			left := 0
			switch align[c] {
			case 'r':
				left = space
			case 'c':
				left = space / 2
			}
			if c > 0 {
				b.WriteString(Paint(Faint, " │ "))
			}
			b.WriteString(strings.Repeat(" ", left) + text)
			if c < len(row)-1 {
				b.WriteString(strings.Repeat(" ", space-left))
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}
