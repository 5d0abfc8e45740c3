package masked

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Bounds of the values that [Secrets] knows, in bytes. A shorter value would hide
// ordinary words, and is hidden only where its name reveals it.
const (
	Shortest  = 8
	Longest   = 8 << 10
	maxValues = 2048
)

// Bounds of nesting.
const (
	maxStrings    = 5  // JSON in strings of JSON
	maxContainers = 64 // arrays and objects in each other
	maxSpellings  = 4  // escapes of JSON and HTML, percent signs and line breaks in each other: three, in a message
)

// Secrets hides secrets in text: values that it has learnt, in every spelling of JSON, HTML,
// URLs, hexadecimal, base64, base32 and UTF-16, and backwards; values with names of secrets (token,
// password, api_key and so on), in JSON, in JSON inside strings, in headers, queries, flags
// and NAME=value lines; and values recognized by their form, such as GitHub's tokens and
// private keys. The zero value knows no values. It is safe for concurrent use.
type Secrets struct {
	mu    sync.Mutex
	known map[string]bool
	order []string // as learnt
	set   atomic.Pointer[set]

	declared map[string]bool
	said     []string // as declared
	finder   atomic.Pointer[finder]
}

// Learn adds values permanently: one that is replaced or removed may still appear
// in output. Beyond 2,048 values the oldest are forgotten. A known value costs one
// look-up.
func (s *Secrets) Learn(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := false
	for _, v := range values {
		if len(v) < Shortest || len(v) > Longest || s.known[v] || Is(v) {
			continue
		}
		if s.known == nil {
			s.known = map[string]bool{}
		}
		added = true
		s.known[v] = true
		s.order = append(s.order, v)
	}
	if !added {
		return
	}
	for len(s.order) > maxValues {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.set.Store(compile(s.order))
}

// String returns text with its secrets hidden.
func (s *Secrets) String(text string) string {
	if s == nil || len(text) < 3 {
		return text
	}
	return string(s.Append(nil, []byte(text)))
}

// spans returns the spans of text to hide, in order.
func (s *Secrets) spans(text []byte) []span {
	m, ok := maskers.Get().(*masker)
	if !ok {
		m = new(masker)
	}
	if m.set = s.set.Load(); m.set == nil {
		m.set = nothing
	}
	m.text(text, 0, true)
	out := slices.Clone(m.spans)
	m.release()
	slices.SortStableFunc(out, byPlace)
	return out
}

// Append appends text with its secrets hidden. JSON stays JSON. The end of text may be
// where it was cut off: the beginning of a value there is hidden, too.
func (s *Secrets) Append(dst, text []byte) []byte {
	m, ok := maskers.Get().(*masker)
	if !ok {
		m = new(masker)
	}
	m.set = s.set.Load()
	if m.set == nil {
		m.set = nothing
	}
	m.text(text, 0, true)
	dst = m.write(dst, text, 0)
	m.release()
	return dst
}

// span is a part of a text with its replacement.
type span struct {
	from, to int
	with     []byte // nil for Mask
}

// mask returns the replacement.
func (s span) mask() []byte {
	if s.with == nil {
		return mask
	}
	return s.with
}

func byPlace(a, b span) int {
	if a.from != b.from {
		return a.from - b.from
	}
	return b.to - a.to
}

// masker is the state of hiding the secrets of one text. Nested texts are processed
// meanwhile: their spans lie above those of the text.
type masker struct {
	set     *set
	spans   []span
	frames  []frame
	decoded [maxStrings + 1][]byte
	views   [maxSpellings]view
	left    int // views that may still be made of a text
}

var maskers sync.Pool

// keptScratch bounds the buffers that are kept, in bytes.
const keptScratch = 256 << 10

func (m *masker) release() {
	clear(m.spans)
	m.set, m.spans, m.frames = nil, m.spans[:0], m.frames[:0]
	size := cap(m.spans) * 40
	for _, b := range m.decoded {
		size += cap(b)
	}
	for _, v := range m.views {
		size += cap(v.text) + 4*cap(v.at)
	}
	if size <= keptScratch {
		maskers.Put(m)
	}
}

func (m *masker) hide(from, to int) {
	if to > from {
		m.spans = append(m.spans, span{from: from, to: to})
	}
}

var mask = []byte(Mask)

// write appends src with the spans from mark on replaced, and removes these.
func (m *masker) write(dst, src []byte, mark int) []byte {
	spans := m.spans[mark:]
	if !slices.IsSortedFunc(spans, byPlace) {
		slices.SortFunc(spans, byPlace)
	}
	last := 0
	for i := 0; i < len(spans); i++ {
		s := spans[i]
		with := s.mask()
		for i+1 < len(spans) && spans[i+1].from < s.to {
			if i++; spans[i].to > s.to {
				s.to, with = spans[i].to, mask
			}
		}
		dst = append(append(dst, src[last:s.from]...), with...)
		last = s.to
	}
	m.spans = m.spans[:mark]
	return append(dst, src[last:]...)
}
