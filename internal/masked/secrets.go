package masked

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of the values that [Secrets] knows, in bytes. A shorter value would hide
// ordinary words, and is hidden only where its name says what it is.
const (
	Shortest  = 8
	Longest   = 8 << 10
	maxValues = 2048
)

// Secrets hides secrets in text: values that it has learnt, wherever they stand, and
// values whose names say that they are secrets (token, password, api_key and so on),
// in JSON, in JSON inside of strings, in queries and in NAME=value lines. The zero
// value knows no values. It is safe for concurrent use.
type Secrets struct {
	mu    sync.Mutex
	known map[string]bool
	order []string // as learnt
	set   atomic.Pointer[set]
}

// set finds values by their first two bytes. It is not changed once it is in use.
type set struct {
	first  [1 << 10]uint64 // a bit for each pair of bytes that a value begins with
	starts map[uint16][]string
}

// Learn adds values, for good: one that is replaced or removed may still be in what
// is shown. Of more than 2,048 the oldest are forgotten. Values that are known cost
// a look-up each.
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

func compile(values []string) *set {
	t := &set{starts: map[uint16][]string{}}
	add := func(v string) {
		pair := uint16(v[0])<<8 | uint16(v[1])
		if slices.Contains(t.starts[pair], v) {
			return
		}
		t.first[pair>>6] |= 1 << (pair & 63)
		t.starts[pair] = append(t.starts[pair], v)
	}
	for _, v := range values {
		add(v)
		// In JSON a value may be written with escapes.
		if raw, err := json.Marshal(v); err == nil {
			add(string(raw[1 : len(raw)-1]))
		}
		add(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(v))
	}
	for _, vs := range t.starts { // one may begin with another
		slices.SortFunc(vs, func(a, b string) int { return len(b) - len(a) })
	}
	return t
}

// at returns the length of the value that stands at text[i], 0 when none does. One
// that the end of the text cuts off is found by its first bytes.
func (t *set) at(text []byte, i int) int {
	rest := text[i:]
	for _, v := range t.starts[uint16(rest[0])<<8|uint16(rest[1])] {
		if len(rest) >= len(v) {
			if string(rest[:len(v)]) == v {
				return len(v)
			}
		} else if len(rest) >= Shortest && strings.HasPrefix(v, string(rest)) {
			return len(rest)
		}
	}
	return 0
}

// String returns text with its secrets hidden.
func (s *Secrets) String(text string) string {
	if s == nil || len(text) < 3 {
		return text
	}
	return string(s.Append(nil, []byte(text)))
}

var nothing = new(set)

// Append appends text with its secrets hidden. JSON stays JSON.
func (s *Secrets) Append(dst, text []byte) []byte {
	t := s.set.Load()
	if t == nil {
		t = nothing
	}
	last := 0
	for i := 0; i+1 < len(text); {
		var from, to int
		mask := Mask
		switch text[i] {
		case ':', '=':
			from, to, mask = named(text, i)
		case ' ':
			from, to = credentials(text, i)
		}
		if pair := uint16(text[i])<<8 | uint16(text[i+1]); to == 0 && t.first[pair>>6]&(1<<(pair&63)) != 0 {
			if n := t.at(text, i); n > 0 {
				from, to, mask = i, i+n, Mask
			}
		}
		if to == 0 {
			i++
			continue
		}
		dst = append(append(dst, text[last:from]...), mask...)
		i, last = to, to
	}
	return append(dst, text[last:]...)
}
