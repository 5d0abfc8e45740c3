package screen

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarkup bounds a line with markup, in bytes. A longer one is shown as it is.
const maxMarkup = 16 << 10

// Limits of a link. The search for its end stops there, so that a text of brackets alone takes
// no longer than another one.
const (
	maxLabel   = 300
	maxAddress = 2000
)

// inliner renders the text of a line: emphasis, code, links.
type inliner struct {
	p    Palette
	base string
	s    string
	out  []span
	text strings.Builder

	bold, italic, strike byte            // the sign that began it; 0 outside
	none                 map[string]bool // signs without another one behind
	inLink               bool
}

func (m *Markdown) inline(s, base string) []span {
	if len(s) > maxMarkup {
		return []span{{base, s}}
	}
	in := inliner{p: m.palette, base: base, s: spaces.Replace(s)}
	return in.run()
}

// spaces makes the spaces of typesetting plain. Elsewhere they are shown as what they are.
var spaces = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2009", " ")

func (in *inliner) style() string {
	s := in.base
	if in.bold != 0 && in.base == "" {
		s += Bold
	}
	if in.italic != 0 {
		s += Italic
	}
	if in.strike != 0 {
		s += Strike
	}
	if in.inLink {
		s += Underline
	}
	return s
}

// flush ends a span.
func (in *inliner) flush() {
	if in.text.Len() > 0 {
		in.out = append(in.out, span{in.style(), in.text.String()})
		in.text.Reset()
	}
}

func (in *inliner) add(style, text string) {
	in.flush()
	in.out = append(in.out, span{style, text})
}

func (in *inliner) run() []span {
	for i := 0; i < len(in.s); {
		rest := in.s[i:]
		n := 0
		switch rest[0] {
		case '\\':
			if len(rest) > 1 && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", rest[1]) >= 0 {
				in.text.WriteByte(rest[1])
				n = 2
			}
		case '`':
			n = in.codeSpan(rest)
		case '*', '_', '~':
			n = in.emphasis(i)
		case '!', '[':
			n = in.link(rest)
		case '<':
			if end := strings.IndexByte(rest[:min(len(rest), maxAddress)], '>'); end > 0 && address(rest[1:end]) && !strings.ContainsAny(rest[:end], " \t") {
				in.add(in.style()+Underline, rest[1:end])
				n = end + 1
			}
		case '&':
			if end := strings.IndexByte(rest[:min(len(rest), 12)], ';'); end > 0 {
				if text := html.UnescapeString(rest[:end+1]); text != rest[:end+1] {
					in.text.WriteString(text)
					n = end + 1
				}
			}
		case 'h':
			// An address begins no word's middle; the check comes first, because the search for the end
			// would take time for each.
			if !in.inLink && (i == 0 || !wordy(in.s[i-1])) {
				if n = bare(rest); n > 0 {
					in.add(in.style()+Underline, rest[:n])
				}
			}
		}
		if n == 0 {
			n = 1
			in.text.WriteByte(rest[0])
		}
		i += n
	}
	in.flush()
	return in.out
}

// closer returns the place in s, which is behind the sign at hand, where an equal run ends what
// sign begins: behind a word, unless it is code. An answer of -1 holds for all that is behind, and
// is kept.
func (in *inliner) closer(s, sign string) int {
	for i := 0; !in.none[sign]; {
		n := strings.IndexByte(s[i:], sign[0])
		if n < 0 {
			break
		}
		i += n
		end := i
		for end < len(s) && s[end] == sign[0] {
			end++
		}
		if end-i == len(sign) && i > 0 && (sign[0] == '`' || (s[i-1] != ' ' && s[i-1] != '\\')) {
			return i
		}
		i = end
	}
	if in.none == nil {
		in.none = map[string]bool{}
	}
	in.none[sign] = true
	return -1
}

// codeSpan renders code between equal runs of backquotes. It returns the bytes that it took.
func (in *inliner) codeSpan(rest string) int {
	n := len(rest) - len(strings.TrimLeft(rest, "`"))
	sign := rest[:n]
	end := in.closer(rest[n:], sign)
	if end < 0 {
		in.text.WriteString(sign)
		return n
	}
	end += n
	text := rest[n:end]
	if strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") && strings.TrimSpace(text) != "" {
		text = text[1 : len(text)-1]
	}
	in.add(in.style()+in.p.Accent, text)
	return end + n
}

// emphasis begins or ends emphasis at i, if the signs there do.
func (in *inliner) emphasis(i int) int {
	rest := in.s[i:]
	c := rest[0]
	n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	before, _ := utf8.DecodeLastRuneInString(in.s[:i])
	after, _ := utf8.DecodeRuneInString(rest[n:])
	ends := i > 0 && !unicode.IsSpace(before)
	begins := n < len(rest) && !unicode.IsSpace(after)
	literal := n > 3 || (c == '~' && n != 2) || (c == '_' && ends && begins && word(before) && word(after))
	var states []*byte
	switch {
	case c == '~':
		states = []*byte{&in.strike}
	case n == 1:
		states = []*byte{&in.italic}
	case n == 2:
		states = []*byte{&in.bold}
	default:
		states = []*byte{&in.bold, &in.italic}
	}
	on := *states[0] == c
	switch {
	case !literal && on && ends:
	case !literal && *states[0] == 0 && begins && in.closer(rest[n:], rest[:n]) >= 0:
	default:
		in.text.WriteString(rest[:n])
		return n
	}
	in.flush()
	for _, s := range states {
		*s = c
		if on {
			*s = 0
		}
	}
	return n
}

// link renders a link or an image with its address.
func (in *inliner) link(rest string) int {
	start := strings.IndexByte(rest[:min(2, len(rest))], '[') + 1
	if start == 0 || in.inLink {
		return 0
	}
	depth, end := 1, start
	for ; end < len(rest) && end-start < maxLabel && depth > 0; end++ {
		switch rest[end] {
		case '\\':
			end++
		case '[':
			depth++
		case ']':
			depth--
		}
	}
	if depth > 0 || end >= len(rest) || rest[end] != '(' {
		return 0
	}
	label := rest[start : end-1]
	to := end + 1
	for depth = 1; to < len(rest) && to-end < maxAddress && depth > 0; to++ {
		switch rest[to] {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	if depth > 0 {
		return 0
	}
	target, _, _ := strings.Cut(strings.TrimSpace(rest[end+1:to-1]), " ") // a title may follow
	target = strings.TrimSuffix(strings.TrimPrefix(target, "<"), ">")
	in.flush()
	inner := inliner{p: in.p, base: in.style(), s: label, inLink: true}
	in.out = append(in.out, inner.run()...)
	if target != label && target != "mailto:"+label {
		in.add(in.base+Faint, " ("+target+")")
	}
	return to
}

// address reports whether a text is the address of something elsewhere.
func address(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "mailto:")
}

// bare returns the length of the address at the beginning of s.
func bare(s string) int {
	if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return 0
	}
	n := strings.IndexAny(s, " \t<>`\"'|*")
	if n < 0 {
		n = len(s)
	}
	return len(strings.TrimRight(s[:n], ".,;:!?)]"))
}

func wordy(c byte) bool { return c >= 0x80 || word(rune(c)) }
func word(r rune) bool  { return unicode.IsLetter(r) || unicode.IsDigit(r) }
