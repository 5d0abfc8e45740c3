package masked

import (
	"bytes"
	"unicode/utf8"
)

// decoders decode escapes for views, by the sign that an escape begins with.
var decoders = [...]struct {
	sign byte
	read func([]byte) ([]byte, int)
}{{'\\', escape}, {'%', percent}, {'&', entity}, {'\n', lineBreak}}

// maxViews bounds how often a text is decoded: escapes of several kinds in each other make
// more views with each depth.
const maxViews = 64

// undecodable reports whether a text has nothing to decode for a sign. A line break counts
// only in base64.
func undecodable(text []byte, sign byte) bool {
	if sign == '\n' {
		return wrap(text, 0) < 0
	}
	return bytes.IndexByte(text, sign) < 0
}

// entities are the characters that HTML has names for and secrets may have.
var entities = [...]struct {
	name string
	is   byte
}{{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {"apos;", '\''}}

// entity reads the character reference of HTML at the beginning of text: &lt;, &#60; or
// &#x3c;.
func entity(text []byte) ([]byte, int) {
	b, n := charRef(text[1:])
	if n > 0 {
		n++
	}
	return b, n
}

// charRef is [entity] without the ampersand.
func charRef(text []byte) ([]byte, int) {
	if len(text) > 1 && text[0] == '#' {
		return numeric(text)
	}
	for _, e := range entities {
		if len(text) >= len(e.name) && string(text[:len(e.name)]) == e.name {
			return bytesOf[e.is : int(e.is)+1], len(e.name)
		}
	}
	return nil, 0
}

// maxNumeric is the length of the longest numeric reference, &#1114111;, that is read. Zeros
// may precede the digits.
const maxNumeric = 16

func numeric(text []byte) ([]byte, int) {
	i, base := 1, rune(10)
	if text[1]|0x20 == 'x' {
		i, base = 2, 16
	}
	r, from := rune(0), i
	for ; i < len(text) && i < maxNumeric; i++ {
		d, ok := hex(text[i])
		if !ok || rune(d) >= base {
			break
		}
		if r = r*base + rune(d); r > utf8.MaxRune {
			return nil, 0
		}
	}
	if i == from || i == len(text) || text[i] != ';' {
		return nil, 0
	}
	if r < utf8.RuneSelf {
		return bytesOf[r : r+1], i + 1
	}
	return utf8.AppendRune(nil, r), i + 1
}

// halfEntity reports whether text is the beginning of a character reference.
func halfEntity(text []byte) bool {
	text = text[1:]
	if len(text) > 0 && text[0] == '#' {
		for i, c := range text[1:] {
			if _, ok := hex(c); !ok && (i > 0 || c|0x20 != 'x') {
				return false
			}
		}
		return len(text) < maxNumeric
	}
	for _, e := range entities {
		if len(text) < len(e.name) && e.name[:len(text)] == string(text) {
			return true
		}
	}
	return false
}

// entityAt returns the place of the next character reference that may be a part of a value,
// -1 if there is none. An ampersand alone is in most addresses and pages: it counts if values
// have one, or if it begins another reference.
func (f *finder) entityAt(text []byte, from int) int {
	for i := nextByte(text, from, '&'); i >= 0; i = nextByte(text, i+1, '&') {
		b, n := entity(text[i:])
		if n == 0 {
			continue
		}
		if f.matters(b[0]) {
			return i
		}
		if b[0] == '&' {
			if _, more := charRef(text[i+n:]); more > 0 {
				return i
			}
		}
	}
	return -1
}

// wrapWidth is the least width of a line of base64 that is continued in the next line, in
// digits: programs break it at 60, 64 or 76.
const wrapWidth = 60

// wrap returns the place of the next line break in base64, -1 if there is none. A stream may
// have cut one in two.
func wrap(text []byte, from int) int {
	for i := nextByte(text, from, '\n'); i >= 0; i = nextByte(text, i+1, '\n') {
		if wraps(text, i) {
			return i
		}
	}
	if i := len(text) - 1; i >= from && text[i] == '\r' && wraps(text, i) {
		return i
	}
	return -1
}

// wraps reports whether a line of base64 ends at text[i]. In the first line, fewer digits
// suffice: a stream may have passed on those before.
func wraps(text []byte, i int) bool {
	if i > 0 && text[i-1] == '\r' {
		i--
	}
	if i > 1 && text[i-1] == 'r' && text[i-2] == '\\' { // the break is escaped, and text[i] the next backslash
		i -= 2
	}
	for _, c := range text[max(0, i-wrapWidth):i] {
		if value64(c) < 0 && c != '\\' { // of an escaped slash
			return false
		}
	}
	return i > 0
}

// lineBreak reads a line break and the indentation behind it, which are nothing in base64.
func lineBreak(text []byte) ([]byte, int) {
	n := 1
	for n < len(text) && (text[n] == ' ' || text[n] == '\t') {
		n++
	}
	return nil, n
}
