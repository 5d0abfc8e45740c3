package servers_test

import (
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// A command line can be pasted into a shell.
func TestEndpointIsQuoted(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"-y", "-y"},
		{"@scope/pkg@1.2", "@scope/pkg@1.2"},
		{"", "''"},
		{"a b", "'a b'"},
		{"it's", `'it'\''s'`},
		{"echo hi >&2; exit", "'echo hi >&2; exit'"},
		{"~/x", "'~/x'"},
		{"${HOME}/docs", "${HOME}/docs"},
		{"${HOME}/my docs", `"${HOME}/my docs"`},
		{"${A} \"$B\" `c`", `"${A} \"\$B\" \` + "`" + `c\` + "`" + `"`},
		{"$HOME", "'$HOME'"},
	} {
		if got := (servers.Server{Transport: servers.Stdio, Command: "x", Args: []string{c.arg}}).Endpoint(); got != "x "+c.want {
			t.Errorf("the argument %q: got %s, want x %s", c.arg, got, c.want)
		}
	}
}
