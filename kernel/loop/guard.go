package loop

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxSame is how often one turn may repeat a call.
const maxSame = 3

// Guard is a hook for the dispatcher that stops a turn from making the same call
// over and over.
func (l *Loop) Guard() tool.Hook { return guard{l} }

type guard struct{ l *Loop }

// PreToolCall implements [tool.Hook]. A new call that may change something starts the counts
// again: a turn may run the same check after each of its changes.
func (g guard) PreToolCall(_ context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	if call.Origin != tool.OriginLoop {
		return tool.Verdict{}, nil
	}
	g.l.mu.Lock()
	var t *turn
	if thread := g.l.threads[call.SessionID]; thread != nil {
		t = thread.current
	}
	g.l.mu.Unlock()
	if t == nil {
		return tool.Verdict{}, nil
	}
	key := sha256.Sum256(append([]byte(call.Name+"\x00"), call.Args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, made := t.counts[key]; !made && def.Kind != tool.KindRead {
		for other := range t.counts {
			t.counts[other] = 0
		}
	}
	t.counts[key]++
	if n := t.counts[key]; n > maxSame {
		return tool.Verdict{Decision: tool.Deny, Reason: fmt.Sprintf("this turn has made this very call %d times: its answer is above", maxSame)}, nil
	}
	return tool.Verdict{}, nil
}
