package loop

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const (
	// maxSame is how often one turn may repeat a call that is always answered the same.
	maxSame = 3
	// maxDenied is how many calls in a row are denied for that before the turn fails: the model
	// does not find out of it.
	maxDenied = 10
)

// repeated counts how often a turn has made a call.
type repeated struct {
	times  int      // with the same answer
	answer [32]byte // digest of the last one
}

func callKey(name string, args []byte) [32]byte {
	return sha256.Sum256(append([]byte(name+"\x00"), args...))
}

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
	key := callKey(call.Name, call.Args)
	t.mu.Lock()
	defer t.mu.Unlock()
	made := t.counts[key]
	if made == nil {
		if def.Kind != tool.KindRead {
			for _, other := range t.counts {
				other.times = 0
			}
		}
		made = new(repeated)
		t.counts[key] = made
	}
	made.times++
	if made.times > maxSame {
		t.denied++
		return tool.Verdict{Decision: tool.Deny, Reason: fmt.Sprintf("this turn has made this very call %d times: its answer is above", maxSame)}, nil
	}
	t.denied = 0
	return tool.Verdict{}, nil
}

// answeredCall notes the answer to a call. One that differs from the answer before starts the count
// again: whoever reads the output of a command that runs gets more each time.
func (t *turn) answeredCall(c event.ToolCall, ev event.Event) {
	r, ok := ev.Payload.(event.ToolResult)
	if !ok {
		return
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.Error), {0}, r.Value, r.Envelope} {
		h.Write(part)
	}
	answer := [32]byte(h.Sum(nil))
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.counts[callKey(c.Name, c.Args)]; made != nil && made.answer != answer {
		made.answer, made.times = answer, min(made.times, 1)
	}
}

// stuckAt returns an error if the last calls of the turn, the last of which was c, were all denied
// as repetitions.
func (t *turn) stuckAt(c event.ToolCall) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.denied < maxDenied {
		return nil
	}
	return failed("repeated_calls", "the model repeats the call of %s although it was told %d times in a row that its answer is there", c.Name, t.denied)
}
