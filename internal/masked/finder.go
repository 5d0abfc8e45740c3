package masked

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
)

// coding is the encoding of a spelling.
type coding byte

const (
	codedRaw coding = iota
	codedBase64
	codedHex
)

// spelling is a value in one encoding. For base64 it has the digits that depend
// only on the value, wherever the value lies in the encoded data.
type spelling struct {
	text  string
	form  coding
	shift int  // of base64: bytes of what was encoded that precede the value, modulo 3
	size  int  // of the value, in bytes
	apart bool // has separators, which no program escapes alone
}

// longWord is the minimum length of a line of a value to be searched for on its
// own.
const longWord = 20

// longestApart is the length of the longest value, in bytes, that is searched for in the
// encodings that make it several times as long: hexadecimal with separators, base32 and
// UTF-16.
const longestApart = 512

// spellings returns the encodings of a value: verbatim, backwards, in hexadecimal, in
// base64, and, of a value that is not long, those of [further]. A value of several lines, such as a private key, may also appear line by
// line.
func spellings(v string) []spelling {
	raw := []string{v, backwards(v)}
	if strings.Contains(v, " ") {
		raw = append(raw, strings.ReplaceAll(v, " ", "+")) // in a query
	}
	if strings.Contains(v, "\n") {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= longWord && !strings.ContainsAny(line, " \t") {
				raw = append(raw, line)
			}
		}
	}
	var out []spelling
	add := func(s spelling) {
		if len(s.text) >= Shortest && !slices.ContainsFunc(out, func(o spelling) bool { return o.text == s.text && o.form == s.form }) {
			out = append(out, s)
		}
	}
	for _, text := range raw {
		add(spelling{text: text})
	}
	digits := fmt.Sprintf("%x", v)
	add(spelling{text: digits, form: codedHex})
	add(spelling{text: strings.ToUpper(digits), form: codedHex})
	for shift := range 3 {
		padded := append(make([]byte, shift), v...)
		from, to := (shift*8+5)/6, len(padded)*8/6
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add(spelling{text: enc.EncodeToString(padded)[from:to], form: codedBase64, shift: shift, size: len(v)})
		}
	}
	if len(v) <= longestApart {
		further(v, add)
	}
	return out
}

// separators are the characters before and between the digits of bytes in hexadecimal, in dumps,
// fingerprints and arrays.
var separators = [...]struct{ before, between string }{{"", ":"}, {"", " "}, {"0x", ", "}, {"0x", ","}}

// further adds the encodings of a value that make it several times as long.
func further(v string, add func(spelling)) {
	for _, sep := range separators {
		for _, format := range []string{"%02x", "%02X"} {
			var b strings.Builder
			for i := range len(v) {
				if i > 0 {
					b.WriteString(sep.between)
				}
				fmt.Fprintf(&b, sep.before+format, v[i])
			}
			add(spelling{text: b.String(), apart: true})
		}
	}
	for shift := range 5 {
		padded := append(make([]byte, shift), v...)
		from, to := (shift*8+4)/5, len(padded)*8/5
		text := base32.StdEncoding.EncodeToString(padded)[from:to]
		add(spelling{text: text})
		add(spelling{text: strings.ToLower(text)})
	}
	// Between the first and the last byte of ASCII, both byte orders are the same.
	little, big := []byte{}, []byte{}
	for _, u := range utf16.Encode([]rune(v)) {
		little, big = binary.LittleEndian.AppendUint16(little, u), binary.BigEndian.AppendUint16(big, u)
	}
	add(spelling{text: string(bytes.TrimSuffix(little, []byte{0})), apart: true})
	add(spelling{text: string(bytes.TrimPrefix(big, []byte{0})), apart: true})
}

func backwards(v string) string {
	r := []rune(v)
	slices.Reverse(r)
	return string(r)
}

// stride is the step width of a finder. Spellings have at least 8 bytes, so each has
// four consecutive bytes at one of the examined places.
const stride = 4

// finder finds values in texts, in all their spellings. It is immutable once it is
// in use.
type finder struct {
	spellings []spelling
	longest   int
	// grams has a bit for the hash of each four bytes at the first places of a spelling.
	grams  []uint64
	shift  int
	places map[uint32][]place
	firsts [256][]int32 // spellings by their first byte
	has    [256]bool    // bytes that spellings have
}

// place is the position of four bytes in a spelling.
type place struct {
	spelling int32
	offset   int32
}

// newFinder returns a finder of values, nil for none.
func newFinder(values []string) *finder {
	if len(values) == 0 {
		return nil
	}
	f := &finder{places: map[uint32][]place{}}
	for _, v := range values {
		f.spellings = append(f.spellings, spellings(v)...)
	}
	// One bit in 64 or fewer is set, within 8 KiB to 512 KiB.
	size := min(max(bits.Len(uint(len(f.spellings)*stride*64)), 16), 22)
	f.grams, f.shift = make([]uint64, 1<<(size-6)), 32-size
	for i, s := range f.spellings {
		f.longest = max(f.longest, len(s.text))
		f.firsts[s.text[0]] = append(f.firsts[s.text[0]], int32(i)) //nolint:gosec // few
		for k := range len(s.text) {
			if !s.apart || s.text[k] == 0 {
				f.has[s.text[k]] = true
			}
		}
		for offset := range stride {
			gram := binary.LittleEndian.Uint32([]byte(s.text[offset : offset+4]))
			h := gram * spread >> f.shift
			f.grams[h>>6] |= 1 << (h & 63)
			f.places[gram] = append(f.places[gram], place{int32(i), int32(offset)}) //nolint:gosec // few
		}
	}
	return f
}

// scan calls hit for each place in text that matches a spelling.
func (f *finder) scan(text []byte, hit func(s *spelling, from, to int)) {
	grams, shift := f.grams, f.shift
	mask := uint32(len(grams) - 1) //nolint:gosec // a power of two, far below 4 Gi
	for i := 0; i+4 <= len(text); i += stride {
		gram := binary.LittleEndian.Uint32(text[i:])
		h := gram * spread >> shift
		if grams[h>>6&mask]&(1<<(h&63)) == 0 {
			continue
		}
		for _, p := range f.places[gram] {
			s := &f.spellings[p.spelling]
			from := i - int(p.offset)
			if from >= 0 && from+len(s.text) <= len(text) && string(text[from:from+len(s.text)]) == s.text {
				hit(s, from, from+len(s.text))
			}
		}
	}
}

// begins reports whether a value may begin with text, which is not a complete one.
func (f *finder) begins(text []byte) bool {
	for _, i := range f.firsts[text[0]] {
		if s := f.spellings[i].text; len(s) > len(text) && s[:len(text)] == string(text) {
			return true
		}
	}
	return false
}

// escaped returns the place of the next escape, of JSON, of HTML or with a percent sign,
// that may be a part of a value, or of the next line break in base64; -1 if there is none.
// Escapes of line ends and quotes are in most texts, and in few values.
func (f *finder) escaped(text []byte, from int) int {
	end := len(text)
	if i := f.slash(text, from); i >= 0 {
		end = i
	}
	if i := f.percentAt(text[:end], from); i >= 0 {
		end = i
	}
	if i := f.entityAt(text[:end], from); i >= 0 {
		end = i
	}
	if i := wrap(text[:end], from); i >= 0 {
		end = i
	}
	if end == len(text) {
		return -1
	}
	return end
}

// slash is [finder.escaped] for escapes with a backslash.
func (f *finder) slash(text []byte, from int) int {
	for slash := nextByte(text, from, '\\'); slash >= 0; {
		end := slash // of the run: escapes in each other
		for end < len(text) && text[end] == '\\' {
			end++
		}
		if f.has['\\'] && end-slash > 1 || f.counts(text[end-1:]) || end < len(text) && text[end] == 'n' && wraps(text, slash) {
			return slash
		}
		slash = nextByte(text, end, '\\')
	}
	return -1
}

func (f *finder) percentAt(text []byte, from int) int {
	for sign := nextByte(text, from, '%'); sign >= 0; sign = nextByte(text, sign+1, '%') {
		if b, n := percent(text[sign:]); n > 0 && f.matters(b[0]) {
			return sign
		}
	}
	return -1
}

// counts reports whether the character behind the JSON escape at the beginning of text
// may be a part of a value, or of another escape.
func (f *finder) counts(text []byte) bool {
	b, n := escape(text)
	return n > 0 && f.matters(b[0])
}

func (f *finder) matters(c byte) bool { return f.has[c] || c == '\\' || c == '%' }
