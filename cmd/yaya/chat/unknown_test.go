package chat

import (
	"strings"
	"testing"
	"testing/synctest"
)

// An unknown command goes to nobody. It leaves the input, so that the next one is not added to it, and the
// history brings it back.
func TestUnknownCommand(t *testing.T) {
	for _, line := range []string{"/nothing", "/mcp/tools", "/clear/model nope"} {
		synctest.Test(t, func(t *testing.T) {
			x, a := typing(t, "")
			x.keys(line, enter)
			if got := a.take(); got != "" || x.m.input.Value() != "" || !strings.Contains(x.m.note, "unknown command "+strings.Fields(line)[0]) {
				t.Errorf("%s: sent %q, the input is %q, and the note %q; want nothing sent, no input, and that it is unknown", line, got, x.m.input.Value(), x.m.note)
			}
			x.keys(up)
			if got := x.m.input.Value(); got != line {
				t.Errorf("up brings back %q, want %q", got, line)
			}
		})
	}
}
