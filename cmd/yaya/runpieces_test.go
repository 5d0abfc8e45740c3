package main

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
)

// GF-9: the output of a command is shown in whole lines, wherever it was cut into pieces.
func TestPiecesAreShownAsLines(t *testing.T) {
	for name, c := range map[string]struct {
		tool   string
		pieces []string
		want   string // while it runs
		end    string // at its end
	}{
		"a line in pieces":       {"shell", []string{"ab", "cd", "\n"}, "  abcd\n", ""},
		"lines at once":          {"shell", []string{"a\nb\nc\n"}, "  a\n  b\n  c\n", ""},
		"a line that never ends": {"verify", []string{"a\nb", "c"}, "  a\n", "  bc\n"},
		"a progress bar":         {"shell", []string{"10%\r20%\r", "30%\r\ndone\n"}, "  30%\n  done\n", ""},
		"much":                   {"shell", []string{strings.Repeat("x\n", 100)}, strings.Repeat("  x\n", 40) + "  … (60 more lines)\n", ""},
		"nothing":                {"shell", nil, "", ""},
		"a long line":            {"shell", []string{strings.Repeat("y", maxPieceHeld), "y"}, "  " + daemon.Printable(strings.Repeat("y", 300), 200) + "\n", ""},
	} {
		var p pieces
		p.begin("c", c.tool)
		var out strings.Builder
		for _, one := range c.pieces {
			if !p.add(&out, "c", one) {
				t.Errorf("%s: the piece %q is not a command's", name, one)
			}
		}
		if out.String() != c.want {
			t.Errorf("%s: shows %q, want %q", name, out.String(), c.want)
		}
		out.Reset()
		if p.end(&out, "c"); out.String() != c.end || len(p.held) > 0 {
			t.Errorf("%s: shows %q at the end and holds %v, want %q and nothing", name, out.String(), p.held, c.end)
		}
	}
	var p pieces
	p.begin("c", "fs__read")
	if p.add(new(strings.Builder), "c", "a message") {
		t.Error("a message of a server's tool is taken for a piece")
	}
}
