package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// watchFiles notes the state of the workspace before a command, so that its changes can be
// undone. ended is called after the command; it reports that no file has changed, and returns a
// note if changes cannot be undone.
func (p *Plugin) watchFiles(ctx context.Context, call tool.Call, s *setting) (ended func(context.Context) (same bool, note string)) {
	if p.cfg.Undo == nil || call.Name == "diagram" {
		return func(context.Context) (bool, string) { return false, "" }
	}
	change, err := p.cfg.Undo.Begin(ctx, event.Root(call.SessionID), call.Name, s.at.w)
	runs := ctx.Err() == nil
	return func(ctx context.Context) (same bool, note string) {
		if err == nil {
			same, err = change.Done(context.WithoutCancel(ctx))
		} else if runs {
			err = errors.Join(err, p.cfg.Undo.Missed(event.Root(call.SessionID), call.Name, s.at.w))
		}
		if err != nil && ctx.Err() == nil {
			return false, fmt.Sprintf("[changes of files by this command cannot be undone: %v]", err)
		}
		return same, ""
	}
}
