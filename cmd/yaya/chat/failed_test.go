package chat

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/colorprofile"
)

// Of a command that has failed, the last lines of its output are shown, and with the details all of it.
func TestFailedCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 80, 24, colorprofile.ASCII)
		x.take(ev("turn_started", "t1", `{"model":"m"}`),
			ev("tool_call_started", "t1", `{"tool_call":{"id":"c1","name":"shell","input":{"command":"make test"}}}`),
			ev("tool_call_completed", "t1", `{"tool_result":{"id":"c1","ok":false,"brief":"exit code 4","parts":[{"type":"text","text":"one\ntwo\nthree \u001b[31mred\u202e\n\nfour\n[exit code 4]"}]}}`),
			ev("tool_call_started", "t1", `{"tool_call":{"id":"c2","name":"shell","input":{"command":"ls"}}}`),
			ev("tool_call_completed", "t1", `{"tool_result":{"id":"c2","ok":true,"brief":"exit code 0","parts":[{"type":"text","text":"a\nb"}]}}`))
		golden(t, "80x24-failed", x.text())
	})
}

// A command that did not run has a reason and no output, and the reason stands there once.
func TestRefusedCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 80, 24, colorprofile.ASCII)
		x.take(ev("turn_started", "t1", `{"model":"m"}`),
			ev("tool_call_started", "t1", `{"tool_call":{"id":"c1","name":"shell","input":{"command":"ls"}}}`),
			ev("tool_call_completed", "t1", `{"tool_result":{"id":"c1","ok":false,"brief":"denied: this session pla…","parts":[{"type":"text","text":"denied: this session plans, and only reads"}]}}`))
		if got := x.text(); strings.Count(got, "denied: ") != 1 {
			t.Errorf("got\n%s\nwant the reason once", got)
		}
	})
}

// A line of output that only begins as the outcome does is output.
func TestOutputLikeTheOutcome(t *testing.T) {
	if got := lastLines("exit code 101 of the linker\n[exit code 1]", "exit code 1", 3); len(got) != 1 {
		t.Errorf("got %q, want the line of the linker", got)
	}
}
