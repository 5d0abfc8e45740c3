package daemon

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/feature"
)

// OneLine is the first line of a text, with how many follow it.
func OneLine(s string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(s), "\n")
	if !more {
		return first
	}
	lines := "lines"
	if !strings.Contains(rest, "\n") {
		lines = "line"
	}
	return fmt.Sprintf("%s … (%d more %s)", strings.TrimSpace(first), strings.Count(rest, "\n")+1, lines)
}

// Escaped writes everything but printable ASCII as \u escapes, and stops when it has
// written more than limit bytes.
func Escaped(s string, limit int) string {
	var b strings.Builder
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		if b.Len() > limit {
			break
		}
	}
	return b.String()
}

// Multiline makes text that came from elsewhere safe for a terminal and keeps
// its lines.
func Multiline(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = feature.Clean(l, 1<<20)
	}
	return strings.Join(lines, "\n")
}

// Prose is [Multiline] for what people and models write: characters that are not seen, but that
// scripts and emoji need, stay.
func Prose(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = feature.Prose(l, 1<<20)
	}
	return strings.Join(lines, "\n")
}

// Piped makes an answer safe for a reader that is not a terminal: it is the model's text, but for
// control characters and those that turn the direction of text, which would act on whatever
// shows it in the end.
func Piped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// PlainJSON escapes what would do something to a terminal, such as control characters of
// eight bits and those that turn the direction of text. Its meaning stays the same: in
// JSON such characters can only be in strings, but for returns between values, which are
// left out. Bytes that are not UTF-8 become U+FFFD, as decoders read them.
func PlainJSON(raw []byte) []byte {
	if !bytes.ContainsFunc(raw, acts) {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(raw)/8)
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		switch {
		case r == '\r':
		case !acts(r):
			out = append(out, raw[:n]...)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		raw = raw[n:]
	}
	return out
}

// acts reports whether a character does something to a terminal other than to be seen
// or to lay JSON out.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == utf8.RuneError)
}

// Printable makes text that came from elsewhere safe for a terminal, on one
// line.
func Printable(s string, limit int) string { return oneLine.Replace(feature.Clean(s, limit)) }

// Title is [Printable] for what people and models write, as [Prose] is.
func Title(s string, limit int) string { return oneLine.Replace(feature.Prose(s, limit)) }

var oneLine = strings.NewReplacer("\n", `\n`, "\t", " ")
