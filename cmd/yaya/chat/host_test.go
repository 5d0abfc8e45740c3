package chat

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/internal/screen"
)

// A question about a host, and one about a command outside the sandbox, say so first.
func TestHeading(t *testing.T) {
	for name, tt := range map[string]struct {
		tool, input, want string
	}{
		"host":               {hostTool, `{"host":"example.com","port":443,"command":"curl"}`, "may the command reach " + screen.Paint(screen.Bold, "example.com:443") + "?"},
		"an address":         {hostTool, `{"host":"example.com","port":443,"url":"https://example.com/x"}`, "may the agent read from " + screen.Paint(screen.Bold, "example.com:443") + "?"},
		"outside":            {"shell", `{"command":"git push","outside":true}`, "may " + screen.Paint(screen.Bold, "shell") + " run " + screen.Paint(screen.Bold, "outside the sandbox") + "?"},
		"inside":             {"shell", `{"command":"git push"}`, "may " + screen.Paint(screen.Bold, "shell") + " run?"},
		"another tool's own": {"fx__shell", `{"outside":true,"host":"example.com"}`, "may " + screen.Paint(screen.Bold, "fx__shell") + " run?"},
		"not JSON":           {hostTool, `x`, "may " + screen.Paint(screen.Bold, hostTool) + " run?"},
	} {
		if got := heading(Ask{Tool: tt.tool, Input: json.RawMessage(tt.input)}); got != tt.want {
			t.Errorf("%s: heading = %q, want %q", name, got, tt.want)
		}
	}
}
