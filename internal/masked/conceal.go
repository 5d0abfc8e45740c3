package masked

import (
	"bytes"
	"slices"
	"sync"
)

// Few is the minimum number of different bytes of a declared value: one with fewer is a
// line or a placeholder, and would match by chance.
const Few = 4

// Declare is [Secrets.Learn] for declared secrets: values that the user stored, that
// were granted, or that the configuration names so. The methods named Conceal hide only
// these, and do not guess.
func (s *Secrets) Declare(values ...string) {
	if s == nil {
		return
	}
	s.Learn(values...)
	s.mu.Lock()
	defer s.mu.Unlock()
	added := false
	for _, v := range values {
		if len(v) < Shortest || len(v) > Longest || s.declared[v] || Is(v) || Monotonous(v) {
			continue
		}
		if s.declared == nil {
			s.declared = map[string]bool{}
		}
		added = true
		s.declared[v] = true
		s.said = append(s.said, v)
	}
	if !added {
		return
	}
	for len(s.said) > maxValues {
		delete(s.declared, s.said[0])
		s.said = s.said[1:]
	}
	s.finder.Store(newFinder(s.said))
}

// Monotonous reports whether fewer than [Few] different bytes make up a value.
func Monotonous(v string) bool {
	seen := []byte{}
	for i := range len(v) {
		if bytes.IndexByte(seen, v[i]) < 0 {
			seen = append(seen, v[i])
		}
	}
	return len(seen) < Few
}

// Declared reports whether there is anything to conceal. It is one atomic load.
func (s *Secrets) Declared() bool { return s != nil && s.finder.Load() != nil }

// Conceal hides declared secrets in a text, in every spelling: verbatim, backwards, with
// escapes of JSON and HTML and percent signs, in UTF-16, in base32, in hexadecimal with and
// without separators, and in base64, where the digits become those of as many asterisks, so
// that the encoded data keeps its length, unless the value extends over a line break. It
// returns a text without secrets unchanged, at the cost of one scan. Otherwise it
// overwrites text, and the result aliases it.
func (s *Secrets) Conceal(text []byte) []byte { return s.conceal(text, false) }

// ConcealJSON is [Secrets.Conceal] for a document of JSON, which stays one: a number that
// is hidden becomes a string.
func (s *Secrets) ConcealJSON(doc []byte) []byte { return s.conceal(doc, true) }

// Concealed is [Secrets.Conceal], or [Secrets.ConcealJSON], for bytes that others read:
// they are copied if something in them is hidden.
func (s *Secrets) Concealed(text []byte, json bool) []byte {
	if !s.Declared() || len(s.finder.Load().find(text)) == 0 {
		return text
	}
	return s.conceal(bytes.Clone(text), json)
}

// ConcealString is [Secrets.Conceal] for a string.
func (s *Secrets) ConcealString(text string) string {
	if !s.Declared() || len(text) < Shortest {
		return text
	}
	b := []byte(text)
	if f := s.finder.Load(); len(f.find(b)) == 0 {
		return text
	}
	return string(s.Conceal(b))
}

func (s *Secrets) conceal(text []byte, json bool) []byte {
	if s == nil {
		return text
	}
	f := s.finder.Load()
	if f == nil || len(text) < Shortest {
		return text
	}
	spans := f.find(text)
	if len(spans) == 0 {
		return text
	}
	if i := blank(text, 0); json && i < len(text) {
		spans = inJSON(text, spans)
	}
	return overwrite(text, spans)
}

// overwrite replaces spans, which are in order and disjoint, by text that is not
// longer.
func overwrite(text []byte, spans []span) []byte {
	out, last := 0, 0
	for _, s := range spans {
		out += copy(text[out:], text[last:s.from])
		with := s.mask()
		out += copy(text[out:], with[:min(len(with), s.to-s.from)])
		last = s.to
	}
	out += copy(text[out:], text[last:])
	return text[:out]
}

// find returns the places of values in text, in order and disjoint.
func (f *finder) find(text []byte) []span {
	var spans []span
	f.scan(text, func(s *spelling, from, to int) { spans = append(spans, s.span(text, from, to)) })
	for i := f.escaped(text, 0); i >= 0; {
		// The text around the escape is decoded. A value that extends beyond has another
		// escape there, or lies in the next part.
		from, to := max(0, i-around), min(len(text), i+2*around)
		for from > 0 && text[from-1] == '\\' {
			from--
		}
		for _, s := range f.decoded(text[from:to]) {
			s.from, s.to = s.from+from, s.to+from
			spans = append(spans, s)
		}
		if to == len(text) {
			break
		}
		i = f.escaped(text, to-around)
	}
	return apart(spans)
}

// around is how much is decoded on both sides of an escape, in bytes: more than the
// longest value spelled only with escapes.
const around = 64 << 10

// decoded finds the values that are written with escapes, nested ones included.
func (f *finder) decoded(text []byte) []span {
	var spans []span
	f.views(text, func(i int) int { return i }, false, func(v []byte, place func(int) int) {
		f.scan(v, func(s *spelling, from, to int) {
			// A value without an escape in it keeps its form, as in the text itself.
			if at, end := place(from), place(to); bytes.Equal(v[from:to], text[at:end]) {
				spans = append(spans, s.span(text, at, end))
			} else {
				spans = append(spans, span{from: at, to: end})
			}
		})
	})
	return spans
}

// scratch are the views of one text, by depth, and how many more may be made.
type scratch struct {
	views [maxSpellings]view
	left  int
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// views calls visit with the decoded text, with its decoded text, and so on,
// together with the place of each byte in the original.
func (f *finder) views(text []byte, place func(int) int, cut bool, visit func(v []byte, place func(int) int)) {
	if !cut && f.escaped(text, 0) < 0 {
		return
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.left = maxViews
	f.viewsIn(s, text, 0, place, cut, visit)
}

func (f *finder) viewsIn(s *scratch, text []byte, depth int, place func(int) int, cut bool, visit func(v []byte, place func(int) int)) {
	if depth == maxSpellings || !cut && f.escaped(text, 0) < 0 {
		return
	}
	for _, c := range decoders {
		if undecodable(text, c.sign) || s.left == 0 {
			continue
		}
		s.left--
		v := &s.views[depth]
		if !v.read(text, c.sign, cut, c.read) {
			continue
		}
		inner := func(i int) int { return place(int(v.at[i])) }
		visit(v.text, inner)
		f.viewsIn(s, v.text, depth+1, inner, cut, visit)
	}
}

// apart sorts spans and merges those that overlap.
func apart(spans []span) []span {
	slices.SortFunc(spans, byPlace)
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from < out[n-1].to {
			if s.to > out[n-1].to {
				out[n-1].to, out[n-1].with = s.to, nil
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// span returns the span to hide for a spelling in a text.
func (s *spelling) span(text []byte, from, to int) span {
	switch s.form {
	case codedBase64:
		return s.digits(text, from, to)
	case codedHex:
		return span{from, to, bytes.Repeat([]byte("2a"), (to-from)/2)}
	case codedRaw:
	}
	return span{from: from, to: to}
}

// digits64 are those of base64, of both alphabets.
const (
	digitsStd = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	digitsURL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
)

// digits replaces the digits of base64 at text[from:to], and the bits of the value in
// those on both sides, by those of asterisks. The bits of what is around stay.
func (s *spelling) digits(text []byte, from, to int) span {
	first := s.shift * 8 / 6            // the digit that has the value's first bit
	end := ((s.shift+s.size)*8 + 5) / 6 // behind the one that has its last
	exact := (s.shift*8 + 5) / 6        // the digit that text[from] is
	out := span{from: from - (exact - first), to: to}
	if out.from < 0 {
		out.from, first = from, exact
	}
	if last := out.from + end - first; last <= len(text) {
		out.to = last
	}
	url := bytes.ContainsAny(text[out.from:out.to], "-_")
	for i := out.from; i < out.to; i++ {
		had := value64(text[i])
		if had < 0 { // the end of the encoded data, or the surroundings are not base64
			if i < from {
				out.from, first, out.with = from, exact, out.with[:0]
				continue
			}
			out.to = i
			break
		}
		digit := 0
		for bit := range 6 {
			at := (first+i-out.from)*6 + bit - s.shift*8
			is := had >> (5 - bit) & 1
			if at >= 0 && at < s.size*8 {
				is = '*' >> (7 - at%8) & 1
			}
			digit = digit<<1 | is
		}
		alphabet := digitsStd
		if url {
			alphabet = digitsURL
		}
		out.with = append(out.with, alphabet[digit])
	}
	return out
}

func value64(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// nextByte returns the next place of c in text, -1 if there is none.
func nextByte(text []byte, from int, c byte) int {
	if i := bytes.IndexByte(text[min(from, len(text)):], c); i >= 0 {
		return from + i
	}
	return -1
}
