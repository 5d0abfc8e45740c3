// Package cut shortens text that came from elsewhere before it is shown, logged or kept.
//
// A text that is cut at a byte ends in half of a character more often than one thinks:
// the names and messages of servers, clients and models are in every language, and JSON
// and terminals refuse the half, or show something else. Nothing here ends in one.
package cut

import (
	"strings"
	"unicode/utf8"
)

// Bytes returns the beginning of s: at most n bytes, and no half of a character. It says
// nothing of what is missing.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Whole returns b without a character at its end of which bytes are missing. Other bytes that
// are not UTF-8 stay.
func Whole(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if end := b[len(b)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// Text is [Bytes] with "…" behind what is cut.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Bytes(s, n) + "…"
}

// Line returns s on one line, its white space folded, and of at most n characters; the
// last of them is "…" if more are missing.
func Line(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}
