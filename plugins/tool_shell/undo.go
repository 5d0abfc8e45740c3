package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// watchFiles notes the state of the workspace before a command, so that its changes can be
// undone. ended is called after the command; it returns a note if they cannot.
func (p *Plugin) watchFiles(ctx context.Context, call tool.Call, s *setting) (ended func(context.Context) string) {
	if p.cfg.Undo == nil || call.Name == "diagram" {
		return func(context.Context) string { return "" }
	}
	change, err := p.cfg.Undo.Begin(ctx, event.Root(call.SessionID), call.Name, s.at.w)
	return func(ctx context.Context) string {
		if err == nil {
			err = change.Done(context.WithoutCancel(ctx))
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Sprintf("[changes of files by this command cannot be undone: %v]", err)
		}
		return ""
	}
}

// forget removes what would undo the changes of a session that ends.
func (p *Plugin) forget(session string) error {
	if p.cfg.Undo == nil || event.Root(session) != session {
		return nil
	}
	return p.cfg.Undo.Forget(session)
}
