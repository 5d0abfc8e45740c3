package main

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/screen"
)

// TW-08, R18: a question shows all of a call's arguments, so that two calls that differ
// look different, and nothing that acts on the terminal.
func TestShownArguments(t *testing.T) {
	for _, c := range []struct{ name, args, want, line string }{
		{"a command", `{"command":"ls \u0026\u0026 git status"}`, "  command: ls && git status\n", "command=ls && git status"},
		{"lines", `{"patch":"a\nb\n"}`, "  patch:\n  | a\n  | b\n", "patch=a … (1 more line)"},
		{"an empty line at the end", `{"patch":"a\n\n"}`, "  patch:\n  | a\n  | \n", "patch=a"},
		{"the order is kept", `{"b":1,"a":[1,"<x>"]}`, "  b: 1\n  a: [1,\"<x>\"]\n", `b=1 a=[1,"<x>"]`},
		{"a number is as it was written", `{"n":1.0e3}`, "  n: 1.0e3\n", "n=1.0e3"},
		{"a text that looks like a number", `{"n":"5"}`, "  n: \"5\"\n", "n=5"},
		{"a character that turns text around", `{"s":"\u202e"}`, "  s: \\u202e\n", "s=\u202e"},
		{"and the text that would look like it", `{"s":"\\u202e"}`, "  s: \\\\u202e\n", `s=\u202e`},
		{"an escape sequence in a name", `{"\u001b[2J\n":"x"}`, "  \\u001b[2J\\u000a: x\n", "\x1b[2J\n=x"},
		{"a name that is there twice", `{"a":1,"a":2}`, "  {\"a\":1,\"a\":2}\n", `{"a":1,"a":2}`},
		{"and below", `{"x":{"a":1,"a":"\u003C\\u0026"}}`, "  x: {\"a\":1,\"a\":\"<\\\\u0026\"}\n", `x={"a":1,"a":"<\\u0026"}`},
		{"nothing", `{}`, "  (no arguments)\n", ""},
		{"not an object", `["<"]`, "  [\"<\"]\n", `["<"]`},
		{"not JSON", "{\x1b", "  {\\u001b\n", "{\x1b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, whole := shownArguments(screen.Palette{}, "x", []byte(c.args))
			if got != c.want || !whole {
				t.Errorf("shownArguments(%s) = %q, %v, want %q", c.args, got, whole, c.want)
			}
			if got := argumentLine([]byte(c.args)); got != c.line {
				t.Errorf("argumentLine(%s) = %q, want %q", c.args, got, c.line)
			}
		})
	}
	// USE-4: the texts of an edit are what goes and what comes.
	if got, _ := shownArguments(screen.Palette{}, "edit", []byte(`{"path":"a.go","old_text":"x","new_text":"y\nz"}`)); got != "  path: a.go\n  change:\n  | -x\n  | +y\n  | +z\n" {
		t.Errorf("an edit is shown as %q", got)
	}
	for _, args := range []string{`{"s":"` + strings.Repeat("x", maxShown) + `"}`, `{"s":"` + strings.Repeat(`x\n`, maxShown) + `"}`, `[` + strings.Repeat(`1,`, maxShown) + `1]`} {
		if got, whole := shownArguments(screen.Palette{}, "x", []byte(args)); whole {
			t.Errorf("%d bytes are shown as %d", len(args), len(got))
		}
	}
}
