package jsonrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Limits of one document; the byte size is the caller's to bound, before it
// reads. They are the JSON row of the security limits.
const (
	MaxDepth      = 256       // arrays and objects inside each other
	MaxMembers    = 1_000_000 // members of one object, those of the objects around it included
	MaxNumberText = 1_000     // bytes of one number
)

// ErrSyntax is wrapped by every error of a scan: the bytes are not one strict
// JSON value within the limits.
var ErrSyntax = errors.New("invalid JSON")

// Member is one member of an object. Offsets count from the start of the bytes
// that were scanned; the key excludes its quotes and is as written, escapes
// included.
type Member struct {
	keyStart, keyEnd int
	valStart, valEnd int
}

// Check reports whether data is exactly one strict JSON value.
func Check(data []byte) error {
	s := scanner{data: data}
	if err := s.value(0, nil); err != nil {
		return err
	}
	return s.end()
}

type scanner struct {
	data []byte
	pos  int
	open int // members of the objects that are open, whose names are remembered
	// body, when set, gets the members of the params or the result of a message.
	body *[]Member
}

func (s *scanner) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrSyntax, what, s.pos)
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) end() error {
	s.space()
	if s.pos != len(s.data) {
		return s.fail("data after the value")
	}
	return nil
}

// value scans one value. The members of an object are appended to capture when
// it is not nil.
func (s *scanner) value(depth int, capture *[]Member) error {
	s.space()
	if s.pos >= len(s.data) {
		return s.fail("unexpected end")
	}
	switch c := s.data[s.pos]; c {
	case '{':
		return s.object(depth+1, capture)
	case '[':
		return s.array(depth + 1)
	case '"':
		_, _, _, err := s.str()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || (c >= '0' && c <= '9') {
			return s.number()
		}
		return s.fail("unexpected character")
	}
}

func (s *scanner) literal(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.fail("unexpected character")
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) number() error {
	start := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return s.fail("malformed number")
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.fail("malformed number")
		}
	}
	if s.pos < len(s.data) && (s.data[s.pos] == 'e' || s.data[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.fail("malformed number")
		}
	}
	if s.pos-start > MaxNumberText {
		return s.fail(fmt.Sprintf("number longer than %d bytes", MaxNumberText))
	}
	return nil
}

func (s *scanner) array(depth int) error {
	if depth > MaxDepth {
		return s.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.pos++
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(depth, nil); err != nil {
			return err
		}
		s.space()
		if s.pos >= len(s.data) {
			return s.fail("unexpected end of array")
		}
		switch s.data[s.pos] {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return nil
		default:
			return s.fail("expected , or ]")
		}
	}
}

func (s *scanner) object(depth int, capture *[]Member) error {
	if depth > MaxDepth {
		return s.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.pos++
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == '}' {
		s.pos++
		return nil
	}
	var seen keySet
	for n := 1; ; n++ {
		if s.open++; s.open > MaxMembers {
			return s.fail(fmt.Sprintf("more than %d members", MaxMembers))
		}
		s.space()
		if s.pos >= len(s.data) || s.data[s.pos] != '"' {
			return s.fail("expected a member name")
		}
		ks, ke, escaped, err := s.str()
		if err != nil {
			return err
		}
		if !seen.add(s.data, name{start: uint32(ks), end: uint32(ke), escaped: escaped}) { //nolint:gosec // a document is far below 4 GiB
			return s.fail("member appears twice")
		}
		s.space()
		if s.pos >= len(s.data) || s.data[s.pos] != ':' {
			return s.fail("expected :")
		}
		s.pos++
		s.space()
		var inner *[]Member
		if depth == 1 && s.body != nil {
			switch string(s.data[ks:ke]) {
			case "params", "result":
				inner = s.body
			}
		}
		vs := s.pos
		if err := s.value(depth, inner); err != nil {
			return err
		}
		if capture != nil {
			*capture = append(*capture, Member{ks, ke, vs, s.pos})
		}
		s.space()
		if s.pos >= len(s.data) {
			return s.fail("unexpected end of object")
		}
		switch s.data[s.pos] {
		case ',':
			s.pos++
		case '}':
			s.pos++
			s.open -= n
			return nil
		default:
			return s.fail("expected , or }")
		}
	}
}

const (
	lsb = 0x0101010101010101
	msb = 0x8080808080808080
)

// plain reports whether none of the eight bytes of w ends or interrupts a run
// of ordinary ASCII string content: a quote, a backslash, a control character
// or a byte above 0x7f. It may err on the side of false only.
func plain(w uint64) bool {
	quote := w ^ (lsb * '"')
	back := w ^ (lsb * '\\')
	hit := (quote - lsb) & ^quote
	hit |= (back - lsb) & ^back
	hit |= (w - lsb*0x20) & ^w
	hit |= w
	return hit&msb == 0
}

// str scans a string and returns the bounds of its content without the quotes,
// and whether it contains escapes.
func (s *scanner) str() (start, end int, escaped bool, err error) {
	s.pos++
	start = s.pos
	d := s.data
	i := s.pos
	for {
		for len(d)-i >= 8 && plain(binary.LittleEndian.Uint64(d[i:])) {
			i += 8
		}
		if i >= len(d) {
			s.pos = i
			return 0, 0, false, s.fail("unterminated string")
		}
		switch c := d[i]; {
		case c == '"':
			s.pos = i + 1
			return start, i, escaped, nil
		case c == '\\':
			escaped = true
			n, ok := escapeLen(d[i:])
			if !ok {
				s.pos = i
				return 0, 0, false, s.fail("invalid escape")
			}
			i += n
		case c < 0x20:
			s.pos = i
			return 0, 0, false, s.fail("control character in a string")
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(d[i:])
			if r == utf8.RuneError && n == 1 {
				s.pos = i
				return 0, 0, false, s.fail("invalid UTF-8")
			}
			i += n
		}
	}
}

// escapeLen returns the length of the escape at the start of d; a surrogate
// must come as a pair (a lone one has no meaning in UTF-8).
func escapeLen(d []byte) (int, bool) {
	if len(d) < 2 {
		return 0, false
	}
	switch d[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		r, ok := hex4(d[2:])
		if !ok {
			return 0, false
		}
		switch {
		case r >= 0xd800 && r < 0xdc00:
			if len(d) < 12 || d[6] != '\\' || d[7] != 'u' {
				return 0, false
			}
			low, ok := hex4(d[8:])
			if !ok || low < 0xdc00 || low > 0xdfff {
				return 0, false
			}
			return 12, true
		case r >= 0xdc00 && r <= 0xdfff:
			return 0, false
		}
		return 6, true
	}
	return 0, false
}

func hex4(d []byte) (rune, bool) {
	if len(d) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range d[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// Unquote resolves the escapes of string content that a scan has accepted. The
// content comes without its quotes.
func Unquote(content []byte) string {
	i := 0
	for i < len(content) && content[i] != '\\' {
		i++
	}
	if i == len(content) {
		return string(content)
	}
	out := append(make([]byte, 0, len(content)), content[:i]...)
	for i < len(content) {
		c := content[i]
		if c != '\\' || i+1 >= len(content) {
			out = append(out, c)
			i++
			continue
		}
		switch e := content[i+1]; e {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			n, _ := escapeLen(content[i:])
			r, _ := hex4(content[i+2:])
			if n == 12 {
				low, _ := hex4(content[i+8:])
				r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
			}
			out = utf8.AppendRune(out, r)
			i += max(n, 6)
			continue
		default:
			out = append(out, e)
		}
		i += 2
	}
	return string(out)
}
