package main

import (
	"strings"
	"testing"
)

// A server that cannot be used was neither restarted nor does switching it on start it:
// the command fails and says why.
func TestRestartAndEnableSayWhatWasNotStarted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	b.must("mcp", "add", "-e", "K=${NOT_SET_9}", "lame", "true")
	for _, args := range [][]string{{"restart", "lame"}, {"enable", "lame"}, {"disable", "lame"}, {"enable", "lame"}} {
		out, err := b.run(append([]string{"mcp"}, args...)...)
		if args[0] == "disable" {
			if err != nil {
				t.Errorf("yaya mcp %q: got %v, %s; want no error", args, err, out)
			}
			continue
		}
		if exitCode(err) != 1 || !strings.Contains(out, "was not started") || !strings.Contains(out, "NOT_SET_9 is not set") || strings.Contains(out, "restarted lame") || strings.Contains(out, "enabled lame") {
			t.Errorf("yaya mcp %q: got %v, %s; want exit code 1 and the variable", args, err, out)
		}
	}
	if got := b.serverStates(); got != "lame invalid\n" {
		t.Errorf("the servers are %q, want lame switched on and invalid", got)
	}
}
