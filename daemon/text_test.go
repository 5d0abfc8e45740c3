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
