package masked

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// set finds values by their first four bytes. It is immutable once it is in use.
type set struct {
	first  [1 << 10]uint64 // a bit for the hash of what a value begins with
	starts map[uint32][]pattern
	some   bool
}

// pattern is a value, or its base64 digits that are the same wherever it lies in the
// encoded data.
type pattern struct {
	text   string
	base64 bool
}

var nothing = new(set)

const spread = 0x9E3779B1 // of a hash

func compile(values []string) *set {
	t := &set{starts: map[uint32][]pattern{}, some: len(values) > 0}
	add := func(v string, base64 bool) {
		head := binary.LittleEndian.Uint32([]byte(v[:4]))
		if p := (pattern{v, base64}); !slices.Contains(t.starts[head], p) {
			h := head * spread >> 16
			t.first[h>>6] |= 1 << (h & 63)
			t.starts[head] = append(t.starts[head], p)
		}
	}
	for _, v := range values {
		for _, s := range spellings(v) {
			add(s.text, s.form == codedBase64)
		}
	}
	for _, ps := range t.starts { // one may begin with another
		slices.SortFunc(ps, func(a, b pattern) int { return len(b.text) - len(a.text) })
	}
	return t
}

// maybe reports whether a value may begin at text[i].
func (t *set) maybe(text []byte, i int) bool {
	if i+4 > len(text) {
		return false
	}
	h := binary.LittleEndian.Uint32(text[i:]) * spread >> 16
	return t.first[h>>6]&(1<<(h&63)) != 0
}

// at returns the bounds of the value at text[i]; for base64 they include the
// surrounding digits. to is 0 if there is no value. If cut is set, a value that the
// end of the text cuts off is found by its first bytes.
func (t *set) at(text []byte, i int, cut bool) (from, to int) {
	if i+Shortest > len(text) {
		return 0, 0
	}
	rest := text[i:]
	for _, p := range t.starts[binary.LittleEndian.Uint32(rest)] {
		n := len(p.text)
		if len(rest) < n {
			if n = len(rest); !cut {
				continue
			}
		}
		if string(rest[:n]) != p.text[:n] {
			continue
		}
		from, to = i, i+n
		if p.base64 {
			for from > 0 && digit64(text[from-1]) && text[from-1] != '/' {
				from--
			}
			if from > 0 && text[from-1] == '/' && i == from { // it has bits of the value
				from--
			}
			for to < len(text) && (digit64(text[to]) || text[to] == '=') {
				to++
			}
		}
		return from, to
	}
	return 0, 0
}

func digit64(c byte) bool { return nameByte(c) || c == '+' || c == '/' }

// known hides the values that appear verbatim in src.
func (m *masker) known(src []byte, from, to int, cut bool) {
	for i := from; i < to; i++ {
		if !m.set.maybe(src, i) {
			continue
		}
		if a, b := m.set.at(src, i, cut); b > 0 {
			m.hide(a, b)
			i = b - 1
		}
	}
}

// view is a decoded text. at has the place of each of its bytes, and of its end, in
// the original.
type view struct {
	text []byte
	at   []int32
}

// spellings hides the values in src that are written with escapes of JSON or percent
// signs, nested ones included. offset is the place of src in the text of the spans.
func (m *masker) spellings(src []byte, offset int, cut bool) {
	if !m.set.some {
		return
	}
	mark := len(m.spans)
	m.left = maxViews
	m.spelled(src, 0, cut, func(i int) int { return i })
	for i := mark; i < len(m.spans); i++ {
		m.spans[i].from += offset
		m.spans[i].to += offset
	}
}

func (m *masker) spelled(src []byte, depth int, cut bool, place func(int) int) {
	if depth == maxSpellings || len(src) < Shortest {
		return
	}
	for _, c := range decoders {
		if undecodable(src, c.sign) || m.left == 0 {
			continue
		}
		m.left--
		v := &m.views[depth]
		if !v.read(src, c.sign, cut, c.read) {
			continue
		}
		inner := func(i int) int { return place(int(v.at[i])) }
		for i := 0; i < len(v.text); i++ {
			if !m.set.maybe(v.text, i) {
				continue
			}
			if a, b := m.set.at(v.text, i, cut); b > 0 {
				m.hide(inner(a), inner(b))
				i = b - 1
			}
		}
		m.spelled(v.text, depth+1, cut, inner)
	}
}

// read makes v the view of src, and reports whether src has escapes. An escape decodes
// to a few bytes, which all have its place.
func (v *view) read(src []byte, sign byte, cut bool, one func([]byte) ([]byte, int)) (changed bool) {
	v.text, v.at = v.text[:0], v.at[:0]
	for i := 0; i < len(src); {
		if src[i] == sign {
			if b, n := one(src[i:]); n > 0 {
				changed = true
				if n := len(v.text); sign == '\n' && n > 0 && v.text[n-1] == '\r' {
					v.text, v.at = v.text[:n-1], v.at[:n-1]
				}
				for range b {
					v.at = append(v.at, int32(i)) //nolint:gosec // texts are far below 2 GiB
				}
				v.text = append(v.text, b...)
				i += n
				continue
			}
			if cut && sign != '\n' && half(src[i:]) == 0 {
				changed = true
				break
			}
		}
		if sign == '\n' && src[i] == '\r' && i == len(src)-1 { // of a line break that is cut
			changed = true
			break
		}
		v.text, v.at = append(v.text, src[i]), append(v.at, int32(i)) //nolint:gosec // as above
		i++
	}
	v.at = append(v.at, int32(len(src))) //nolint:gosec // as above
	return changed
}

// escape reads the JSON escape at the beginning of text: its character, and its length,
// 0 if it is not an escape.
func escape(text []byte) ([]byte, int) {
	if len(text) < 2 {
		return nil, 0
	}
	c := text[1]
	switch c {
	case '"', '\\', '/', '\'':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'x': // of other languages
		if len(text) < 4 {
			return nil, 0
		}
		high, ok1 := hex(text[2])
		low, ok2 := hex(text[3])
		if !ok1 || !ok2 {
			return nil, 0
		}
		b := int(high<<4 | low)
		return bytesOf[b : b+1], 4
	case 'u':
		r, ok := unit(text)
		if !ok {
			return nil, 0
		}
		n := 6
		if utf16.IsSurrogate(r) {
			low, _ := unit(text[6:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				n = 12
			}
		}
		if r < utf8.RuneSelf {
			return bytesOf[r : r+1], n
		}
		return utf8.AppendRune(nil, r), n
	default:
		return nil, 0
	}
	return bytesOf[c : c+1], 2
}

// halfEscape reports whether text is the beginning of an escape, of JSON or with a
// percent sign.
func halfEscape(text []byte) bool {
	whole, digits := 3, text[1:]
	if text[0] == '\\' {
		switch {
		case len(text) < 2 || text[1] == 'u':
			whole = 6
		case text[1] == 'x':
			whole = 4
		default:
			return false
		}
		digits = text[min(2, len(text)):]
	}
	for _, c := range digits {
		if _, ok := hex(c); !ok {
			return false
		}
	}
	return len(text) < whole
}

// unit reads \uXXXX.
func unit(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		d, ok := hex(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// bytesOf has each byte once, so that reading one allocates nothing.
var bytesOf = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
	}
	return t
}()

// percent reads %XX at the beginning of text.
func percent(text []byte) ([]byte, int) {
	if len(text) < 3 {
		return nil, 0
	}
	high, ok1 := hex(text[1])
	low, ok2 := hex(text[2])
	if !ok1 || !ok2 {
		return nil, 0
	}
	c := int(high<<4 | low)
	return bytesOf[c : c+1], 3
}

func hex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
