package daemon

import (
	"bytes"
	"testing"
)

// JSON for people and programs keeps its meaning, whatever is in it.
func TestPlainJSON(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":               {`{"a":"é 😀 <b>"}`, `{"a":"é 😀 <b>"}`},
		"C1":                  {"\"\u009b\"", `"\u009b"`},
		"DEL":                 {"\"\u007f\"", `"\u007f"`},
		"the other way":       {"\"\u202e\"", `"\u202e"`},
		"beyond 16 bits":      {"\"\U000e0041\"", `"\udb40\udc41"`},
		"not UTF-8":           {"\"\x9b\"", `"\ufffd"`},
		"an escape before it": {"\"\\\\\u009b\"", `"\\\u009b"`},
		"returns between":     {"[1,\r\n2]", "[1,\n2]"},
	} {
		got := PlainJSON([]byte(c.in))
		if string(got) != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if !bytes.Equal(PlainJSON(got), got) {
			t.Errorf("%s: %q changes when it is done again", name, got)
		}
	}
}

// The prose of people and models keeps what scripts and emoji need; a file or a program gets all but
// the characters that act.
func TestProse(t *testing.T) {
	const text = "می\u200cخواهم 👨\u200d👩\u200d👧 ❤\ufe0f Wort\u00adteil\u200b\u202e\x1b[2J\U000e0041\n\tb"
	if got, want := Prose(text), "می\u200cخواهم 👨\u200d👩\u200d👧 ❤\ufe0f Wort\u00adteil\\u{200b}\\u{202e}\\u{1b}[2J\\u{e0041}\n\tb"; got != want {
		t.Errorf("Prose(%q) = %q, want %q", text, got, want)
	}
	if got, want := Title(text, 200), "می\u200cخواهم 👨\u200d👩\u200d👧 ❤\ufe0f Wort\u00adteil\\u{200b}\\u{202e}\\u{1b}[2J\\u{e0041}\\n b"; got != want {
		t.Errorf("Title(%q) = %q, want %q", text, got, want)
	}
	if got, want := Piped(text), "می\u200cخواهم 👨\u200d👩\u200d👧 ❤\ufe0f Wort\u00adteil\u200b\\u{202e}\\u{1b}[2J\U000e0041\n\tb"; got != want {
		t.Errorf("Piped(%q) = %q, want %q", text, got, want)
	}
	if got, want := Printable("a\u200cb", 200), `a\u{200c}b`; got != want {
		t.Errorf("Printable = %q, want %q", got, want)
	}
}
