package loop

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const (
	// maxSame is how often one turn may repeat a call that is always answered the same.
	maxSame = 3
	// patience is how long after the last one a call is not a repetition of it: what takes time may be
	// asked about until it is done.
	patience = 30 * time.Second
	// maxMade is how often one turn may make a call without such a pause, however it is answered: the
	// output of a check that fails differs in its times each time.
	maxMade = 30
	// maxIdle is how many steps in a row may have calls of which none runs, before the turn fails: the
	// model does not find out of it. It is told so after warnIdle.
	maxIdle  = 10
	warnIdle = 5

	idling = "None of your last calls has run: read why each was refused. If none of the tools that you have can do it, answer without calls. After %d steps in a row in which no call runs, this turn ends."
)

// repetitions is what [guard] knows of a turn. The turn's mu guards it.
type repetitions struct {
	made    map[[32]byte]*repeated
	refused map[string]bool // the ids of calls that were denied as repetitions
	idle    int             // steps in a row of whose calls none has run
}

// repeated counts how often a turn has made a call since it has changed something.
type repeated struct {
	total  int
	times  int       // with the same answer, one soon after the other
	at     time.Time // of the last one
	answer [32]byte  // digest of the last answer
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
	if t == nil || t.compacting {
		return tool.Verdict{}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	why := t.calls.count(callKey(call.Name, call.Args), def.Kind != tool.KindRead)
	if why == "" {
		return tool.Verdict{}, nil
	}
	if t.calls.refused == nil {
		t.calls.refused = map[string]bool{}
	}
	t.calls.refused[call.ID] = true
	return tool.Verdict{Decision: tool.Deny, Reason: why}, nil
}

// count counts a call, and returns why it is not made, "" if it is. changes says that it may change
// something.
func (r *repetitions) count(key [32]byte, changes bool) (why string) {
	of := r.made[key]
	if of == nil {
		if changes {
			for _, other := range r.made {
				other.total, other.times = 0, 0
			}
		}
		if r.made == nil {
			r.made = map[[32]byte]*repeated{}
		}
		of = new(repeated)
		r.made[key] = of
	}
	if time.Since(of.at) >= patience {
		of.total, of.times = 0, 0
	}
	switch {
	case of.total >= maxMade:
		return fmt.Sprintf("this turn has made this very call %d times, which is as often as it may: do something else, or answer with what you have. What takes time can be asked about again after %v", maxMade, patience)
	case of.times >= maxSame:
		return fmt.Sprintf("this turn has made this very call %d times: go on with its answer, or do something else. What takes time can be asked about again after %v", maxSame, patience)
	}
	of.total++
	of.times++
	of.at = time.Now()
	return ""
}

// answered notes the answer to a call, and reports whether the call has run. One that differs from the
// answer before starts the count again: whoever reads the output of a command that runs gets more each
// time.
func (r *repetitions) answered(c event.ToolCall, ev event.Event) (ran bool) {
	if r.refused[c.ID] {
		return false
	}
	h := sha256.New()
	switch a := ev.Payload.(type) {
	case event.ToolResult:
		ran = !notRun(a)
		for _, part := range [][]byte{[]byte(a.Error), {0}, a.Value, a.Envelope} {
			h.Write(part)
		}
	case event.ToolError:
		ran = !a.NotRun
		for _, part := range [][]byte{[]byte(a.Brief), {0}, a.Detail} {
			h.Write(part)
		}
	}
	answer := [32]byte(h.Sum(nil))
	if of := r.made[callKey(c.Name, c.Args)]; of != nil && of.answer != answer {
		of.answer, of.times = answer, min(of.times, 1)
	}
	return ran
}

// notRun reports whether a result is of a call whose tool never began.
func notRun(r event.ToolResult) bool {
	var env struct {
		NotRun bool `json:"not_run"`
	}
	return !r.OK && json.Unmarshal(r.Envelope, &env) == nil && env.NotRun
}

// answeredCalls notes the answers to the calls of a step. It returns an error if none of the calls of
// this step and of those before it has run.
func (t *turn) answeredCalls(calls []event.ToolCall, answers []event.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.calls
	ran := false
	for i, ev := range answers {
		ran = r.answered(calls[i], ev) || ran
	}
	last := len(calls) - 1
	repeats := r.refused[calls[last].ID]
	r.refused = nil
	if r.idle++; ran {
		r.idle = 0
	}
	switch {
	case r.idle < maxIdle:
		return nil
	case repeats:
		return failed("repeated_calls", "the model repeats the call of %s although %d times in a row it was denied for that", calls[last].Name, r.idle)
	}
	return failed("failing_calls", "none of the calls of %d steps in a row has run; the last one, of %s: %s", r.idle, calls[last].Name, whyNot(answers[last]))
}

// idle returns how many steps in a row have had calls of which none has run.
func (t *turn) idle() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls.idle
}

// whyNot returns in a line why a call has not run.
func whyNot(ev event.Event) string {
	switch a := ev.Payload.(type) {
	case event.ToolResult:
		return a.Error
	case event.ToolError:
		return a.Brief
	}
	return ""
}
