package chat

import (
	"encoding/json"
	"testing"
)

// A question about a host, and one about a command outside the sandbox, say so first.
func TestHeading(t *testing.T) {
	for name, tt := range map[string]struct {
		tool, input, want string
	}{
		"host":               {hostTool, `{"host":"example.com","port":443,"command":"curl"}`, "may the command reach " + paint(bold, "example.com:443") + "?"},
		"outside":            {"shell", `{"command":"git push","outside":true}`, "may " + paint(bold, "shell") + " run " + paint(bold, "outside the sandbox") + "?"},
		"inside":             {"shell", `{"command":"git push"}`, "may " + paint(bold, "shell") + " run?"},
		"another tool's own": {"fx__shell", `{"outside":true,"host":"example.com"}`, "may " + paint(bold, "fx__shell") + " run?"},
		"not JSON":           {hostTool, `x`, "may " + paint(bold, hostTool) + " run?"},
	} {
		if got := heading(Ask{Tool: tt.tool, Input: json.RawMessage(tt.input)}); got != tt.want {
			t.Errorf("%s: heading = %q, want %q", name, got, tt.want)
		}
	}
}
