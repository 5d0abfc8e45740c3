package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/invisible"
)

// maxMarks bounds the combining marks of one character: more of them reach into other lines.
const maxMarks = 3

// span is a text in one style.
type span struct{ style, text string }

// cell is a character with its marks.
type cell struct {
	text, style  string
	width, marks int
}

// Clean makes a text safe on one line of at most limit characters.
func Clean(s string, limit int) string { return clean(s, limit, false) }

// CleanProse is [Clean] for what people and models write, such as titles: what is not seen, but is
// part of writing, is not shown as an escape.
func CleanProse(s string, limit int) string { return clean(s, limit, true) }

func clean(s string, limit int, prose bool) string {
	var b strings.Builder
	n := 0
	var before rune
	for i, r := range s {
		if n == limit {
			b.WriteString("…")
			break
		}
		n++
		if r == '\n' {
			b.WriteString(`\n`)
			continue
		}
		switch {
		case prose && invisible.OfProse(before, r):
			if shapes(before, r) {
				b.WriteRune(r)
			}
		case !invisible.OfEmoji(before, r, s[min(len(s), i+utf8.RuneLen(r)):]):
			b.WriteString(visible(r)) // without the selectors of emoji, as in cells
		}
		before = r
	}
	return b.String()
}

// shapes reports whether r is a joiner behind a letter that it gives another shape, where it has no
// width. Terminals disagree about the width of soft hyphens, of variants, and of joined emoji, all
// of which mean the same without them.
func shapes(before, r rune) bool {
	return (r == '\u200c' || r == '\u200d') && unicode.In(before, unicode.L, unicode.M) &&
		!unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han)
}

// visible returns a character in a form that does nothing but show itself.
func visible(r rune) string {
	switch {
	case r == '\t':
		return "  "
	case r == unicode.ReplacementChar, !unicode.IsPrint(r), invisible.Is(r):
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return string(r)
}

// CleanText is [Clean] for each line of a text, of any length.
func CleanText(s string) string {
	all := strings.Split(s, "\n")
	for i, l := range all {
		all[i] = Clean(l, len(l))
	}
	return strings.Join(all, "\n")
}

// Lines makes a text safe and wraps it at a width.
func Lines(s string, width int) []string { return lines(s, width, false) }

// Prose is [Lines] for what people and models write, as [CleanProse] is.
func Prose(s string, width int) []string { return lines(s, width, true) }

func lines(s string, width int, prose bool) (out []string) {
	for line := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n") {
		out = append(out, wrapped([]span{{"", line}}, width, false, prose)...)
	}
	return out
}

// cells splits spans into characters, and makes these safe. Of prose it leaves
// out joiners between emoji, their skin tones, and variants: terminals disagree about their width.
func cells(spans []span, prose bool) (out []cell) {
	n := 0
	for _, s := range spans {
		n += len(s.text)
	}
	out = make([]cell, 0, n)
	var before rune
	for _, s := range spans {
		for i, r := range s.text {
			switch {
			case r >= ' ' && r < 0x7f: // most are
				out = append(out, cell{s.text[i : i+1], s.style, 1, 0})
			case prose && invisible.OfProse(before, r):
				if last := len(out) - 1; last >= 0 && shapes(before, r) && out[last].marks >= 0 && out[last].marks < maxMarks {
					out[last].text += string(r)
					out[last].marks++
				}
			case !invisible.OfEmoji(before, r, s.text[min(len(s.text), i+utf8.RuneLen(r)):]):
				out = appendCell(out, before, r, s.style, prose)
			}
			before = r
		}
	}
	return out
}

func appendCell(out []cell, before, r rune, style string, prose bool) []cell {
	var last *cell
	if len(out) > 0 && out[len(out)-1].marks >= 0 {
		last = &out[len(out)-1]
	}
	text := visible(r)
	plain := text == string(r)
	width := ansi.StringWidth(text)
	switch {
	case last != nil && r >= 0x1f3fb && r <= 0x1f3ff && prose && unicode.Is(unicode.So, before):
		return out
	case last != nil && r >= 0x1f3fb && r <= 0x1f3ff && !prose:
		text, plain = fmt.Sprintf(`\u{%x}`, r), false
	case plain && regional(r) && last != nil && last.marks == 0 && regional([]rune(last.text)[0]):
		last.text, last.width, last.marks = last.text+text, 2, 1
		return out
	case plain && (width == 0 || unicode.In(r, unicode.Mn, unicode.Me)):
		if last != nil && last.marks < maxMarks {
			last.text, last.marks = last.text+text, last.marks+1
			return out
		}
		text, plain = fmt.Sprintf(`\u{%x}`, r), false
	}
	if plain {
		return append(out, cell{text, style, width, 0})
	}
	for i := range text { // an escape; nothing joins it
		out = append(out, cell{text[i : i+1], style, 1, -1})
	}
	return out
}

// regional reports whether a character is half of a flag.
func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// wrapped returns spans as lines of at most a width: code is cut anywhere, text at spaces.
func wrapped(spans []span, width int, code, prose bool) (out []string) {
	cs := cells(spans, prose)
	width = max(width, 2) // the widest character
	for len(cs) > 0 {
		end, space, word, w := 0, 0, false, 0
		for end < len(cs) && w+cs[end].width <= width {
			if cs[end].text != " " {
				word = true
			} else if word {
				space = end
			}
			w += cs[end].width
			end++
		}
		if end < len(cs) && !code && space > 0 && cs[end].text != " " {
			end = space
		}
		out = append(out, joined(cs[:end]))
		cs = cs[end:]
		for !code && len(cs) > 0 && cs[0].text == " " {
			cs = cs[1:]
		}
	}
	if out == nil {
		out = []string{""}
	}
	return out
}

// joined returns cells as text with their styles.
func joined(cs []cell) string {
	var b strings.Builder
	style := ""
	for _, c := range cs {
		if c.style != style {
			if style != "" {
				b.WriteString(Reset)
			}
			b.WriteString(c.style)
			style = c.style
		}
		b.WriteString(c.text)
	}
	if style != "" {
		b.WriteString(Reset)
	}
	return b.String()
}
