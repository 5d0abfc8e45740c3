package loop

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxSame is how often one turn may make the very same call.
const maxSame = 3

// Guard is a hook for the dispatcher that stops a turn from making the same call
// over and over (TW-21).
func (l *Loop) Guard() tool.Hook { return guard{l} }

type guard struct{ l *Loop }

// PreToolCall implements [tool.Hook].
func (g guard) PreToolCall(_ context.Context, call tool.Call, _ tool.Definition) (tool.Verdict, error) {
	if call.Origin != tool.OriginLoop {
		return tool.Verdict{}, nil
	}
	g.l.mu.Lock()
	var t *turn
	if th := g.l.threads[call.SessionID]; th != nil {
		t = th.current
	}
	g.l.mu.Unlock()
	if t == nil {
		return tool.Verdict{}, nil
	}
	key := sha256.Sum256(append([]byte(call.Name+"\x00"), call.Args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[key]++
	if n := t.counts[key]; n > maxSame {
		return tool.Verdict{Decision: tool.Deny, Reason: fmt.Sprintf("this turn has made this very call %d times: its answer is above", maxSame)}, nil
	}
	return tool.Verdict{}, nil
}
