package feature

import "testing"

// The error for a call of a tool whose server is down names the remedy: for a failed
// server, to start it again; for a starting one, to wait, since a restart would begin
// again.
func TestDownNamesTheRemedy(t *testing.T) {
	for _, c := range []struct {
		state        State
		reason, want string
	}{
		{Failed, "no such file", `server "s" is failed, and its tools cannot be called: no such file; see: yaya mcp logs s; start it again with: yaya mcp restart s`},
		{Stopped, "", `server "s" is stopped, and its tools cannot be called; see: yaya mcp logs s; start it again with: yaya mcp restart s`},
		{Installing, "fetching 3 of 9", `server "s" is installing, and its tools cannot be called yet: fetching 3 of 9; call again when it is ready; see: yaya mcp logs s`},
		{Starting, "", `server "s" is starting, and its tools cannot be called yet; call again when it is ready; see: yaya mcp logs s`},
	} {
		if got := Down("s", c.state, c.reason); got != c.want {
			t.Errorf("Down(%s) = %q, want %q", c.state, got, c.want)
		}
	}
}
