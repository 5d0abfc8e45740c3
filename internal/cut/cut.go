// Package cut shortens text that came from elsewhere before it is shown, logged or kept.
//
// A text that is cut at a byte ends in half of a character more often than one thinks:
// the names and messages of servers, clients and models are in every language, and JSON
// and terminals refuse the half, or show something else. Nothing here ends in one.
package cut

import (
	"fmt"
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

// Ends keeps the beginning and the end of what is written to it, and counts the rest. It is not safe
// for concurrent use.
type Ends struct {
	Most int // bytes that are kept, half of them from each end

	head, tail []byte
	total      int64
}

// Write implements [io.Writer]; it never fails.
func (e *Ends) Write(b []byte) (int, error) {
	n, half := len(b), e.Most/2
	e.total += int64(n)
	room := min(half-len(e.head), n)
	e.head = append(e.head, b[:room]...)
	e.tail = append(e.tail, b[room:]...)
	if len(e.tail) > 2*half { // bytes move only when there are twice as many as wanted
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-half:]...)
	}
	return n, nil
}

// Total returns how many bytes were written.
func (e *Ends) Total() int64 { return e.total }

// String returns both ends, and between them how much is missing.
func (e *Ends) String() string {
	tail := e.tail[max(0, len(e.tail)-e.Most/2):]
	text := string(e.head)
	if gone := e.total - int64(len(e.head)+len(tail)); gone > 0 {
		text += fmt.Sprintf("\n[… %d of %d bytes omitted …]\n", gone, e.total)
	}
	return strings.ToValidUTF8(text+string(tail), "\uFFFD")
}
