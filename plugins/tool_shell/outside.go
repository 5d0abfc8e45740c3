package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Hook returns the hook that asks a person about every command that wants to run outside the
// sandbox, whatever rules say about commands.
func (*Plugin) Hook() tool.Hook { return hook{} }

type hook struct{}

// PreToolCall implements [tool.Hook].
func (hook) PreToolCall(_ context.Context, call tool.Call, _ tool.Definition) (tool.Verdict, error) {
	if c, err := fixed[*command](call); err == nil && c.outside {
		return tool.Verdict{Decision: tool.Ask, Reason: "it runs outside the sandbox"}, nil
	}
	return tool.Verdict{}, nil
}
