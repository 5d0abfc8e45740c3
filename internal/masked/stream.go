package masked

import (
	"bytes"
	"unicode/utf8"
)

// maxHeld bounds how much of a stream is held back, in bytes. Text beyond it is hidden:
// no value is that long in any spelling.
const maxHeld = 4 * around

// Stream conceals declared secrets in a text that arrives in pieces, wherever it is
// cut. It holds back a possible beginning of a value until more text arrives, or the
// end. It is for one goroutine; a nil Stream passes everything on.
type Stream struct {
	secrets *Secrets
	held    []byte
}

// Stream returns a stream, nil if s is nil.
func (s *Secrets) Stream() *Stream {
	if s == nil {
		return nil
	}
	return &Stream{secrets: s}
}

// Next accepts a piece and returns the text that can be passed on.
func (t *Stream) Next(piece string) string {
	if t == nil {
		return piece
	}
	f := t.secrets.finder.Load()
	if f == nil {
		return piece // nothing was declared so far, and so nothing is held
	}
	buf := append(t.held, piece...)
	spans := f.find(buf)
	end := f.open(buf)
	for i, s := range spans {
		if s.from >= end { // it is held
			spans = spans[:i]
			break
		}
		end = max(end, s.to)
	}
	out := overwrite(bytes.Clone(buf[:end]), spans)
	t.held = append(t.held[:0], buf[end:]...)
	if len(t.held) > maxHeld {
		t.held, out = t.held[:0], append(out, mask...)
	}
	return string(out)
}

// End returns the rest at the end of the text. It hides the beginning of a value that
// is long enough to reveal something of it.
func (t *Stream) End() string {
	if t == nil || len(t.held) == 0 {
		return ""
	}
	left := string(t.held)
	t.held = t.held[:0]
	if len(left) >= Shortest {
		return Mask
	}
	return left
}

// open returns the first place in text where a value may begin that the end of text
// cuts off; the length of text if there is none.
func (f *finder) open(text []byte) int {
	first := len(text)
	see := func(v []byte, place func(int) int) {
		for i := max(0, len(v)-f.longest); i < len(v); i++ {
			if f.begins(v[i:]) {
				first = min(first, place(i))
				break
			}
		}
		if i := half(v); i < len(v) {
			first = min(first, place(i))
		}
	}
	here := func(i int) int { return i }
	see(text, here)
	from := max(0, len(text)-around)
	for from > 0 && text[from-1] == '\\' {
		from--
	}
	f.views(text[from:], func(i int) int { return from + i }, true, see)
	return first
}

// half returns the place of an escape that the end of text cuts off, with the
// backslashes before it; the length of text if there is none.
func half(text []byte) int {
	for i := max(0, len(text)-maxNumeric); i < len(text); i++ {
		if c := text[i]; (c == '\\' || c == '%') && halfEscape(text[i:]) || c == '&' && halfEntity(text[i:]) {
			for i > 0 && text[i-1] == '\\' {
				i--
			}
			return i
		}
	}
	return len(text)
}

// Joint conceals declared secrets in separate messages, such as those of progress: it
// hides all but at most three bytes of a value that is split over several. No message
// waits for the next one. It is for one goroutine.
type Joint struct {
	secrets *Secrets
	last    []byte // the end of the last message, if a value may begin there
}

// shown3 is how many bytes of the beginning of a value may appear at the end of a
// message.
const shown3 = 3

// Joint returns a joint.
func (s *Secrets) Joint() *Joint { return &Joint{secrets: s} }

// Next returns a message without secrets.
func (j *Joint) Next(message string) string {
	if j.secrets == nil {
		return message
	}
	f := j.secrets.finder.Load()
	if f == nil {
		return message
	}
	buf := append(j.last, message...)
	told := len(j.last)
	end := f.open(buf)
	spans := f.find(buf)
	if len(buf)-end > shown3 {
		spans = apart(append(spans, span{from: end, to: len(buf)}))
	}
	changed := false
	var out []byte
	at := told
	for _, s := range spans {
		if s.to <= told {
			continue
		}
		if s.from < told {
			s = span{from: told, to: s.to}
		}
		changed = true
		out = append(append(out, buf[at:s.from]...), s.mask()...)
		at = s.to
	}
	out = append(out, buf[at:]...)
	last := buf[end:]
	if len(last) > maxHeld {
		last = last[len(last)-maxHeld:]
	}
	j.last = append([]byte(nil), last...)
	if !changed {
		return message
	}
	if !utf8.Valid(out) && utf8.ValidString(message) { // a rune was cut
		return string([]rune(string(out)))
	}
	return string(out)
}
