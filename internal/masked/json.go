package masked

import (
	"bytes"
	"strings"
)

// frame is an array or an object that is being read.
type frame struct {
	object     bool
	secret     bool // all that is in it is hidden
	properties bool // it is the "properties" of a JSON schema: names, not values
	// For an object: the meaning of its last name for the value that follows, whether
	// its "name" is that of a secret, and the place of its "value".
	key      keyKind
	named    bool
	from, to int
	bare     bool // its "args" are those of a command whose -p takes no password
	// For an array: the meaning of its last string for the next one, and their number.
	next  argKind
	count int
}

// keyKind is the meaning of a member's name for its value.
type keyKind byte

const (
	keyPlain keyKind = iota
	keySecret
	keySecrets    // several: a number is how many
	keyName       // "name" of a pair
	keyValue      // "value" of a pair
	keyProperties // of a JSON schema
	keyCommand
	keyPrincipal // who calls: "token:laptop"
)

func kindOf(name []byte) keyKind {
	switch string(name) {
	case "name", "key", "header":
		return keyName
	case "value", "val", "values":
		return keyValue
	case "properties":
		return keyProperties
	case "command", "cmd":
		return keyCommand
	case "principal":
		return keyPrincipal
	}
	switch {
	case !SecretName(string(name)):
		return keyPlain
	case name[len(name)-1]|0x20 == 's':
		return keySecrets
	}
	return keySecret
}

// walk reads JSON that begins at src[i], hides the secrets in it, and returns where it
// ends: after the document, or where it is not JSON. whole reports which it was.
//
//nolint:gocyclo // a state machine is easier to follow in one piece
func (m *masker) walk(src []byte, i, depth int, cut bool) (end int, whole bool) {
	base := len(m.frames)
	defer func() { // what was not closed is cut off, or not JSON from here on
		for len(m.frames) > base {
			if f := &m.frames[len(m.frames)-1]; f.from > 0 && f.to == 0 {
				f.to = max(end, f.from)
			}
			m.close()
		}
	}()
	value := true // a value has to follow, else a comma or the end of what is open
	for i < len(src) {
		c := src[i]
		if isSpace(c) {
			i++
			continue
		}
		var f *frame
		if len(m.frames) > base {
			f = &m.frames[len(m.frames)-1]
		}
		if !value || (c == '}' || c == ']') && f != nil { // an empty array ends where a value could be
			switch {
			case c == ',':
				value = true
				i++
				if f.object {
					if i = m.key(src, i, depth, cut, f); i < 0 {
						return -i, false
					}
				}
				continue
			case c == '}' && f.object || c == ']' && !f.object:
				i++
				m.close()
				value = false
				if m.ended(base, i) {
					return i, true
				}
				continue
			}
			return i, false
		}
		start := i
		secret := f != nil && (f.secret || f.object && (f.key == keySecret || f.key == keySecrets && c != '-' && (c < '0' || c > '9')))
		switch c {
		case '{', '[':
			if len(m.frames)-base == maxContainers {
				return i, false
			}
			g := f.within(c == '{', secret)
			if f != nil {
				f.begins(start)
			}
			m.frames = append(m.frames, g)
			i++
			if g.object {
				if i = blank(src, i); i < len(src) && src[i] == '}' {
					value = false
					continue
				}
				if i = m.key(src, i, depth, cut, &m.frames[len(m.frames)-1]); i < 0 {
					return -i, false
				}
			}
			continue
		case '"':
			to, closed := stringEnd(src, i)
			if f != nil {
				f.begins(start)
				if closed {
					f.ends(to + 1)
				}
			}
			m.value(src, i+1, to, depth, cut && !closed, secret, f)
			if i = to + 1; !closed {
				return len(src), cut
			}
		default:
			i = literalEnd(src, i)
			if !literal(src[start:i], cut && i == len(src)) {
				return start, false
			}
			if c == '-' || c >= '0' && c <= '9' {
				m.number(start, i, src, secret)
			}
			if f != nil {
				f.begins(start)
				f.ends(i)
				f.next = argPlain
				f.count++
			}
		}
		if value = false; len(m.frames) == base {
			return i, true
		}
	}
	return i, cut
}

// number masks a number that is marked secret or equals a known secret.
func (m *masker) number(start, end int, src []byte, secret bool) {
	for k := start; !secret && m.set.some && k < end; k++ {
		_, to := m.set.at(src, k, false)
		secret = to > 0 && to <= end
	}
	if secret {
		m.spans = append(m.spans, span{start, end, []byte(`"` + Mask + `"`)})
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func literalEnd(src []byte, i int) int {
	for i < len(src) && (nameByte(src[i]) || src[i] == '.' || src[i] == '+') {
		i++
	}
	return i
}

// within returns the frame of an array or an object that is a value of f, if there is one.
func (f *frame) within(object, secret bool) frame {
	g := frame{object: object, secret: secret}
	if f != nil {
		g.properties = f.object && f.key == keyProperties
		g.bare = f.object && f.bare
		if f.properties && g.object { // the definition of what has that name
			g.secret = f.secret
		}
	}
	return g
}

// ended reports whether the closed value was the document, and records its end if it
// was a member.
func (m *masker) ended(base, end int) bool {
	if len(m.frames) == base {
		return true
	}
	f := &m.frames[len(m.frames)-1]
	f.ends(end)
	f.next = argPlain
	f.count++
	return false
}

// begins and ends record the place of the "value" of a pair.
func (f *frame) begins(at int) {
	if f.object && f.key == keyValue {
		f.from, f.to = at, 0
	}
}

func (f *frame) ends(at int) {
	if f.object && f.key == keyValue {
		f.to = at
	}
}

// close ends an array or object.
func (m *masker) close() {
	f := m.frames[len(m.frames)-1]
	m.frames = m.frames[:len(m.frames)-1]
	if f.named && f.to > 0 {
		m.spans = append(m.spans, span{f.from, f.to, []byte(`"` + Mask + `"`)})
	}
}

// key reads the name of a member and the colon, and returns the next place, or, as a
// negative number, the place where the text is not JSON.
func (m *masker) key(src []byte, i, depth int, cut bool, f *frame) int {
	i = blank(src, i)
	if i == len(src) || src[i] != '"' {
		return -i
	}
	to, closed := stringEnd(src, i)
	raw := src[i+1 : min(to, len(src))]
	name := m.decode(raw, depth, cut && !closed)
	f.key = kindOf(name)
	m.inner(i+1, to, raw, name, depth, cut && !closed)
	if !closed {
		return -len(src)
	}
	if i = blank(src, to+1); i == len(src) || src[i] != ':' {
		return -i
	}
	return i + 1
}

func blank(src []byte, i int) int {
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	return i
}

// value hides the secrets in the string src[from:to], without its quotes.
func (m *masker) value(src []byte, from, to, depth int, cut, secret bool, f *frame) {
	raw := src[from:to]
	text := m.decode(raw, depth, cut)
	if f != nil {
		switch {
		case !f.object:
			secret = secret || f.argument(text)
		case f.key == keyName:
			f.named = f.named || SecretName(string(text))
		case f.key == keyCommand:
			f.bare = bareShort(string(text))
		}
	}
	if secret {
		if len(text) > 0 && !shown(text) {
			m.hide(from, to)
		}
		return
	}
	if rest, ok := bytes.CutPrefix(raw, tokenPrefix); ok && len(rest) > 0 && rest[0] != ' ' && f != nil && f.object && f.key == keyPrincipal && len(raw) == len(text) {
		from, raw, text = from+len(tokenPrefix), rest, rest // it names a token, and is not one
	}
	m.inner(from, to, raw, text, depth, cut)
}

var tokenPrefix = []byte("token:")

// inner hides the secrets in the decoded text of a string.
func (m *masker) inner(from, to int, raw, text []byte, depth int, cut bool) {
	if len(text) < 3 {
		return
	}
	mark := len(m.spans)
	m.text(text, depth+1, cut)
	if len(m.spans) == mark {
		return
	}
	if len(raw) == len(text) { // nothing in it was escaped
		for i := mark; i < len(m.spans); i++ {
			if w := m.spans[i].with; w != nil {
				m.spans[i].with = appendEscaped(nil, w)
			}
			m.spans[i].from += from
			m.spans[i].to += from
		}
		return
	}
	with := appendEscaped(nil, m.write(nil, text, mark))
	m.spans = append(m.spans, span{from, to, with})
}

// stringEnd returns where the string ends whose quote is src[i].
func stringEnd(src []byte, i int) (end int, closed bool) {
	for i++; i < len(src); i++ {
		n := bytes.IndexByte(src[i:], '"')
		if n < 0 {
			return len(src), false
		}
		if i += n; slashes(src, i)%2 == 0 {
			return i, true
		}
	}
	return len(src), false
}

// decode returns the text of a string, until the next of the same depth. Where it is
// cut off, half an escape is left out.
func (m *masker) decode(raw []byte, depth int, cut bool) []byte {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return raw
	}
	out := append(m.decoded[depth][:0], raw[:i]...)
	for i < len(raw) {
		if raw[i] == '\\' {
			if b, n := escape(raw[i:]); n > 0 {
				out = append(out, b...)
				i += n
				continue
			}
			if cut && halfEscape(raw[i:]) {
				break
			}
		}
		out = append(out, raw[i])
		i++
	}
	m.decoded[depth] = out
	return out
}

// appendEscaped appends text as it stands in a string of JSON.
func appendEscaped(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// literal reports whether a word is a number, true, false or null, or the beginning of
// one where the text is cut.
func literal(word []byte, cut bool) bool {
	if len(word) == 0 {
		return false
	}
	if c := word[0]; c == '-' || c >= '0' && c <= '9' {
		for _, c := range word {
			if (c < '0' || c > '9') && !bytes.ContainsRune([]byte("-+.eE"), rune(c)) {
				return false
			}
		}
		return true
	}
	for _, w := range []string{"true", "false", "null"} {
		if string(word) == w || cut && len(word) < len(w) && string(word) == w[:len(word)] {
			return true
		}
	}
	return false
}

// shown reports whether a value with the name of a secret is not one: it is already
// masked, a reference to a variable, or a yes or no.
func shown(value []byte) bool {
	return Is(string(value)) || Reference(string(value)) || len(value) <= longestSaid && said[strings.ToLower(string(value))]
}
