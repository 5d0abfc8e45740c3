package approval

import (
	"slices"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

const maxEnded = 200 // asks that are remembered for people

// Ended is an ask that was answered, or withdrawn without an answer.
type Ended struct {
	Request           // without its arguments, and without most of its tool's definition
	Decision Decision // without a response if the ask was withdrawn
	Reason   string   // of the withdrawal, "timeout" or "shutdown"
	At       time.Time
}

// end remembers the end of an ask.
func (r *Runtime) end(req Request, d Decision, reason string) {
	req.Params, req.Def = nil, tool.Definition{Name: req.Def.Name, Identity: req.Def.Identity, Kind: req.Def.Kind}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ended) >= maxEnded {
		r.ended = slices.Delete(r.ended, 0, len(r.ended)-maxEnded+1)
	}
	r.ended = append(r.ended, Ended{req, d, reason, time.Now()})
}

// Ended returns the asks that ended last, the newest first.
func (r *Runtime) Ended() []Ended {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.ended)
	slices.Reverse(out)
	return out
}
