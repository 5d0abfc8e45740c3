package invisible_test

import (
	"testing"

	"github.com/yaya-ai/yaya/internal/invisible"
)

func TestIs(t *testing.T) {
	for _, r := range "\x00\x1b\x7f\u00ad\u034f\u115f\u1160\u17b4\u180b\u200b\u200d\u202e\u2060\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\U000e0041\U000e0100\U000e01ef" {
		if !invisible.Is(r) {
			t.Errorf("Is(%U) = false, want true", r)
		}
	}
	for _, r := range " aé漢한☎👍́" {
		if invisible.Is(r) {
			t.Errorf("Is(%U) = true, want false", r)
		}
	}
}

func TestOfProse(t *testing.T) {
	for _, r := range "\u00ad\u200c\u200d\ufe0e\ufe0f\U000e0100" {
		if !invisible.OfProse('漢', r) {
			t.Errorf("OfProse(%U) behind 漢 = false, want true", r)
		}
		if before := '\ufe0f'; invisible.OfProse(before, r) != (r == '\u200d') || invisible.OfProse('\u200d', r) || invisible.OfProse(0, r) {
			t.Errorf("OfProse(%U) behind a character that is not seen = true, want it for a joiner behind a selector alone", r)
		}
		if r > '\u200d' && invisible.OfProse('a', r) {
			t.Errorf("OfProse(%U) behind a = true, want false: it has no variants", r)
		}
	}
	for _, c := range []struct {
		before, r rune
		want      bool
	}{
		{'é', '\U000e0141', false}, {'😀', '\U000e0141', false}, {'ᠠ', '\U000e0141', false}, {'漢', '\U000e0101', true},
		{'漢', '\u180b', false}, {'ᠠ', '\u180b', true}, {'😀', '\ufe0e', true},
	} {
		if got := invisible.OfProse(c.before, c.r); got != c.want {
			t.Errorf("OfProse(%U) behind %c = %v, want %v", c.r, c.before, got, c.want)
		}
	}
	for _, r := range "a\x1b\u200b\u200e\u200f\u202e\u2060\u2066\ufeff\u3164\U000e0041" {
		if invisible.OfProse('漢', r) {
			t.Errorf("OfProse(%U) = true, want false", r)
		}
	}
}

func TestOfEmoji(t *testing.T) {
	for _, c := range []struct {
		name      string
		before, r rune
		after     string
		want      bool
	}{
		{"a heart", '❤', '\ufe0f', "", true},
		{"an arrow", '↔', '\ufe0f', "", true},
		{"a key", '1', '\ufe0f', "\u20e3", true},
		{"a digit", '1', '\ufe0f', "2", false},
		{"a letter", 'a', '\ufe0f', "", false},
		{"a second selector", '\ufe0f', '\ufe0f', "", false},
		{"the first character", 0, '\ufe0f', "", false},
		{"another selector", '❤', '\ufe0e', "", false},
	} {
		if got := invisible.OfEmoji(c.before, c.r, c.after); got != c.want {
			t.Errorf("OfEmoji of %s = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo\tthree": "one two three", "a\u202eb\u200b\x1b[31mc": "ab[31mc", "x\u3164\ufe0fy": "xy", "\u2764\ufe0f ok": "\u2764\ufe0f ok",
		"a\u2028b": "a b", "bad \xff": "bad \ufffd", "": "",
	} {
		if got := invisible.Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}
