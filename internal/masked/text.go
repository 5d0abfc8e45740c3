package masked

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// sign says whether something may begin or end at a byte.
type sign byte

const (
	signNone  sign = iota
	signName       // a name ended, or the scheme of a URL
	signBlank      // the scheme of a header ended
	signJSON       // JSON begins
	signDash       // a flag begins, or the prefix of a token ended
	signToken      // the prefix of a token ended
)

var signs = [256]sign{':': signName, '=': signName, ' ': signBlank, '{': signJSON, '[': signJSON, '-': signDash, '_': signToken, 'I': signToken, 'J': signToken, '.': signToken}

// text hides the secrets in src.
func (m *masker) text(src []byte, depth int, cut bool) {
	some := m.set.some
	i := blank(src, 0)
	begun := 0 // text that is not JSON, up to i
	json := func(i int) int {
		m.spellings(src[begun:i], begun, false)
		end, whole := m.walk(src, i, depth, cut)
		// A value may contain more than strings. A document stays valid.
		if some && (depth > 0 || !whole || blank(src, end) < len(src) || blank(src, 0) < i) {
			m.known(src, begun, end, cut)
		}
		begun = end
		return end
	}
	if depth < maxStrings && i < len(src) && (src[i] == '{' || src[i] == '[' || src[i] == '"') {
		if end := json(i); end > i {
			i = end
		} else {
			begun = 0
		}
	} else {
		i = 0
	}
	for i < len(src) {
		s := signs[src[i]]
		if s == signNone && (!some || !m.set.maybe(src, i)) {
			i++
			continue
		}
		from, to := 0, 0
		switch s {
		case signNone:
		case signName:
			if from, to = userinfo(src, i); to == 0 {
				from, to = named(src, i)
			}
		case signBlank:
			from, to = credentials(src, i)
		case signJSON:
			if depth < maxStrings && fragment(src, i) {
				if end := json(i); end > i {
					i = end
					continue
				}
				begun = i
			}
		case signDash:
			if from, to = privateKey(src, i); to == 0 {
				if from, to = flag(src, i); to == 0 {
					from, to = token(src, i)
				}
			}
		case signToken:
			from, to = token(src, i)
		}
		if some && m.set.maybe(src, i) {
			if a, b := m.set.at(src, i, cut); b > to {
				from, to = a, b
			}
		}
		if to > i {
			m.hide(from, to)
			i = to
			continue
		}
		i++
	}
	if begun < len(src) {
		m.spellings(src[begun:], begun, cut)
	}
}

// fragment reports whether JSON seems to begin at text[i], amidst other text.
func fragment(text []byte, i int) bool {
	k := blank(text, i+1)
	if k == len(text) {
		return false
	}
	return text[k] == '"' || text[i] == '[' && (text[k] == '{' || text[k] == '[')
}

// slashes counts the backslashes before text[i].
func slashes(text []byte, i int) int {
	n := 0
	for i-n > 0 && text[i-n-1] == '\\' {
		n++
	}
	return n
}

// refers reports whether the colon text[i] is the one of a reference to a secret, which is not
// hidden itself.
func refers(text []byte, i int) bool {
	const before = len("${secret")
	return i >= before && text[i-1] == 't' && reference(string(text[i-before:min(len(text), i+130)])) > 0
}

// named finds the value after the separator text[i], if its name is one of a
// secret: from and to are its bounds. to is 0 if there is nothing to hide.
func named(text []byte, i int) (from, to int) {
	if text[i] == ':' && refers(text, i) {
		return 0, 0
	}
	j := i
	for j > 0 && i-j < 3 && (text[j-1] == ' ' || text[j-1] == ':' && text[i] == '=') {
		j--
	}
	quoted := false
	if j > 0 && (text[j-1] == '"' || text[j-1] == '\'') {
		quoted = true
		j -= 1 + slashes(text, j-1)
	}
	if j <= 0 || !lastByte(text[j-1]) {
		return 0, 0
	}
	start := j
	for start > 0 && j-start < 128 && nameByte(text[start-1]) {
		start--
	}
	name := string(text[start:j])
	secret := SecretName(name)
	before := byte('\n') // what stands before the name
	if start > 0 {
		before = text[start-1]
	}
	k := i + 1
	if k < len(text) && (text[k] == '=' || text[k] == '>' || text[k] == ':') {
		if text[i] == ':' { // := is handled separately, and Type::member is not a value
			return 0, 0
		}
		k++
	}
	if !secret {
		from, to = k, word(text, k, true)
		return from, least(from, to, odd(name, before == '?' || before == '&', text[i]))
	}
	for k < len(text) && k-i < 5 && text[k] == ' ' {
		k++
	}
	if k == len(text) || text[i] == ':' && (reason(text[k:]) || before == '/' && position(text[i+1:])) {
		return 0, 0
	}
	open := k
	for open < len(text) && text[open] == '\\' {
		open++
	}
	lower := strings.ToLower(name)
	header := strings.HasSuffix(lower, "authorization") || strings.HasSuffix(lower, "cookie")
	switch {
	case open < len(text) && (text[open] == '"' || text[open] == '\''):
		from, to = open+1, closing(text, open, open-k)
	case text[k] == '[' || text[k] == '{':
		from, to = k+1, bracket(text, k)
	case quoted:
		from, to = k, word(text, k, false)
	case before == '?' || before == '&':
		from, to = k, word(text, k, true)
	case before == '"' || before == '\'' || before == '`':
		from, to = k, line(text, k, before, slashes(text, start-1))
		to = command(text, from, to, text[i])
	case before == ';':
		from, to = k, line(text, k, ';', 0)
	case header && text[i] == ':':
		from, to = k, line(text, k, 0, 0)
	case endsInAny(lower, loose) && begins(text, start):
		from, to = k, line(text, k, 0, 0)
		to = command(text, from, to, text[i])
	default:
		from, to = k, word(text, k, false)
	}
	if header && text[i] == ':' {
		from, to = afterScheme(text, from, to, before != '"' && before != '\'' && !begins(text, start))
	}
	if to <= from || shown(text[from:to]) || !header && isPlain(text[from:to]) {
		return 0, 0
	}
	return from, to
}

// odd returns the minimum length of a secret with an ambiguous name; 0 means never.
func odd(name string, query bool, separator byte) int {
	if separator != '=' {
		return 0
	}
	switch lower := strings.ToLower(name); {
	case query && (lower == "pass" || lower == "pwd" || lower == "auth"):
		return 1
	case lower == "signature" || lower == "x-amz-signature" || query && (lower == "sig" || lower == "key"):
		return 16
	}
	return 0
}

func least(from, to, n int) int {
	if n == 0 || to-from < n {
		return 0
	}
	return to
}

func endsInAny(s string, words []string) bool {
	for _, w := range words {
		if strings.HasSuffix(s, w) {
			return true
		}
	}
	return false
}

// begins reports whether a line begins at text[i], but for blanks, a dash and export.
func begins(text []byte, i int) bool {
	from := i - min(i, 64)
	head := text[from:i]
	if n := bytes.LastIndexByte(head, '\n'); n >= 0 {
		head = head[n+1:]
	} else if from > 0 {
		return false
	}
	head = bytes.TrimLeft(head, " \t-#>")
	head = bytes.TrimPrefix(head, []byte("export "))
	return len(bytes.TrimSpace(head)) == 0
}

// word returns the end of the word at text[i]. Separators of lists may be part of
// it, if no other name follows; in a query they end it.
func word(text []byte, i int, query bool) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n', '"', '\'', '<', '>', '`':
			return i
		case '&', '#':
			if query {
				return i
			}
			if text[i] == '&' && separates(text, i) {
				return i
			}
		case ',', ';', ')', '}', ']', '|':
			if separates(text, i) {
				return i
			}
		case '\\':
			if i+1 == len(text) || strings.IndexByte(`nrt"'\/`, text[i+1]) >= 0 {
				return i
			}
		}
	}
	return i
}

// separates reports whether text[i] ends a word: nothing follows it, or a name does.
func separates(text []byte, i int) bool {
	for i++; i < len(text); i++ {
		if c := text[i]; !strings.ContainsRune(`,;)}]&|`, rune(c)) {
			break
		}
	}
	k := i
	for k < len(text) && k-i < 64 && nameByte(text[k]) {
		k++
	}
	if k == len(text) {
		return k == i
	}
	if k == i {
		return strings.IndexByte(" \t\r\n\"'\\<>`", text[k]) >= 0
	}
	return text[k] == '=' || text[k] == ':'
}

// line returns where the line ends that goes on at text[i], or before it the quote,
// which that many backslashes precede.
func line(text []byte, i int, quote byte, depth int) int {
	for ; i < len(text) && text[i] != '\n' && text[i] != '\r'; i++ {
		switch {
		case quote != 0 && text[i] == quote && slashes(text, i) <= depth:
			return i - slashes(text, i)
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == 'n' || text[i+1] == 'r'):
			return i
		}
	}
	return i
}

// command returns where a value ends that may be the first word of a command line.
func command(text []byte, from, to int, separator byte) int {
	if separator != '=' {
		return to
	}
	first := bytes.IndexByte(text[from:to], ' ')
	if first < 0 {
		return to
	}
	rest := text[from+first : to]
	if bytes.Contains(rest, []byte(" -")) || bytes.ContainsAny(rest, "/|&;<>=$\"'") {
		return from + first
	}
	return to
}

// afterScheme excludes the scheme of an Authorization header. One word follows most
// schemes; other words on the line, amidst, stay.
func afterScheme(text []byte, from, to int, amidst bool) (int, int) {
	n := bytes.IndexByte(text[from:to], ' ')
	if n < 0 {
		return from, to
	}
	kind := schemes[strings.ToLower(string(text[from:from+min(n, 20)]))]
	if kind == 0 {
		return from, to
	}
	from += n + 1
	if kind == 1 && amidst {
		to = min(to, word(text, from, false))
	}
	return from, to
}

// bracket returns where the list ends that text[i] opens, or its line.
func bracket(text []byte, i int) int {
	depth := 0
	for k := i; k < len(text) && k-i < 4<<10; k++ {
		switch text[k] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return k
			}
		}
	}
	return line(text, i, 0, 0)
}

// closing returns where the string ends whose quote is text[open], after that many
// backslashes: a quote inside a string inside a string has more of them.
func closing(text []byte, open, depth int) int {
	for i := open + 1; i < len(text); i++ {
		if text[i] != text[open] {
			if text[open] == '\'' && text[i] == '\n' {
				return i
			}
			continue
		}
		run := min(slashes(text, i), i-open-1)
		if run < depth {
			return i - run
		}
		if (run-depth)/(depth+1)%2 == 0 {
			return i - depth
		}
	}
	return len(text)
}

// credentials finds the text after the scheme of an Authorization header that ends
// at the space text[i], wherever it appears.
func credentials(text []byte, i int) (from, to int) {
	scheme := 0
	switch {
	case i < 5 || text[i-1]|0x20 != 'r' && text[i-1]|0x20 != 'c':
		return 0, 0
	case i >= 6 && strings.EqualFold(string(text[i-6:i]), "bearer"):
		scheme = 6
	case strings.EqualFold(string(text[i-5:i]), "basic"):
		scheme = 5
	}
	if scheme == 0 || (i > scheme && nameByte(text[i-scheme-1]) && text[i-scheme-1] != 'n') { // \nBearer
		return 0, 0
	}
	from = i + 1
	digit := false
	for to = from; to < len(text); to++ {
		c := text[to]
		if !digit64(c) && c != '.' && c != '~' && c != '=' {
			break
		}
		digit = digit || c >= '0' && c <= '9'
	}
	for to > from && text[to-1] == '.' { // of a sentence
		to--
	}
	value := text[from:to]
	switch {
	case len(value) >= Shortest && (digit || len(value) >= 20):
		return from, to
	case len(value) == 0 || plain[strings.ToLower(string(value))]:
		return 0, 0
	case scheme == 6 && (digit && len(value) >= 4 || i == scheme && to == len(text)):
		return from, to
	case scheme == 5:
		pair, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(value), "="))
		if err == nil && bytes.IndexByte(pair, ':') >= 0 {
			return from, to
		}
	}
	return 0, 0
}

// userinfo finds the password in the URL whose scheme ends at text[i].
func userinfo(text []byte, i int) (from, to int) {
	if i == 0 || i+3 >= len(text) || text[i] != ':' || text[i+1] != '/' || text[i+2] != '/' || !alphanumeric(text[i-1]) {
		return 0, 0
	}
	from = i + 3
	end := from
	for end < len(text) && end-from < 1<<10 && strings.IndexByte("/?# \t\r\n\"'<>\\`", text[end]) < 0 {
		end++
	}
	at := bytes.LastIndexByte(text[from:end], '@')
	if at < 0 {
		return 0, 0
	}
	user := text[from : from+at]
	if colon := bytes.IndexByte(user, ':'); colon >= 0 {
		from += colon + 1
		user = user[colon+1:]
	} else if len(user) < 16 {
		return 0, 0
	}
	if len(user) == 0 || shown(user) {
		return 0, 0
	}
	return from, from + len(user)
}
