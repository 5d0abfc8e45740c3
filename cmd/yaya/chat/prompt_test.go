package chat

import (
	"strings"
	"testing"
	"testing/synctest"
)

// Ctrl+C takes the command of the shell from the input, and with it the leave to run one: a text that is
// pasted then runs nothing.
func TestNoCommandIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, a := typing(t, "")
		x.keys("!vi")
		if got := x.text(); !strings.Contains(got, "$ !vi") {
			t.Errorf("the screen is\n%s\nwant the command once, behind the prompt of a shell", got)
		}
		x.keys(ctrlC)
		if got := x.text(); strings.Contains(got, "$ Write") || x.m.bang {
			t.Errorf("after Ctrl+C the screen is\n%s\nwant the prompt of a message", got)
		}
		x.keys("\x1b[200~!touch x\x1b[201~", enter)
		if got := a.take(); got != "" || !strings.Contains(x.m.note, "a pasted ! runs nothing") {
			t.Errorf("sent %q, and it says %q; want that a pasted ! runs nothing", got, x.m.note)
		}
	})
}
