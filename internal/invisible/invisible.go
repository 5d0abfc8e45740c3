// Package invisible tells the characters that a reader does not see. Text of others can hide
// words in them, or make two names look alike, so whatever shows such text shows them as escapes.
//
// The page has the same rule (gateway/dashboard/page/text.js); a test in cmd/yaya compares both.
package invisible

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// selector asks for the coloured form of the character before it.
const selector = '\ufe0f'

// Is reports whether r is a control or format character, one for private use, a separator of
// lines, or a filler of a script, a blank of braille or of music, or a variation selector, which
// count as printable.
func Is(r rune) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	return r == '\u2800' || r == '\U0001d159' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// OfProse reports whether r is a character that is not seen and that writing needs behind the character
// before: a joiner, which shapes the letters of Persian and Hindi and makes one picture of several emoji, a
// hint where a word may be divided, or a variation selector, which ASCII has none of. Behind another
// one it is not needed: texts could be written with them that nobody sees.
func OfProse(before, r rune) bool {
	switch {
	case r == '\u00ad', r == '\u200c', r == '\u200d':
		return !Is(before) || r == '\u200d' && before == selector
	case r >= '\U000e0100' && r <= '\U000e01ef': // a byte each
		return unicode.Is(unicode.Han, before)
	case r >= '\u180b' && r <= '\u180f':
		return unicode.Is(unicode.Mongolian, before) && !Is(before)
	case unicode.Is(unicode.Variation_Selector, r):
		return before >= 0x80 && !Is(before)
	}
	return false
}

// OfEmoji reports whether r is the selector that an emoji consists of: it follows the character
// before, and after is the text behind it.
func OfEmoji(before, r rune, after string) bool {
	switch {
	case r != selector:
		return false
	case before < 0x80:
		return strings.ContainsRune("0123456789#*", before) && strings.HasPrefix(after, "\u20e3") // a key
	case before >= '\u2190' && unicode.Is(unicode.Sm, before), strings.ContainsRune("‼⁉〰", before):
		return true
	}
	return unicode.Is(unicode.So, before)
}

// Plain returns a text on one line, without invisible characters: they could instruct a model unseen. The
// selectors of emoji stay.
func Plain(s string) string {
	var b strings.Builder
	var before rune
	for i, r := range s {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case !Is(r) || OfEmoji(before, r, s[min(len(s), i+utf8.RuneLen(r)):]):
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}
