package sandbox

import (
	"os"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// tellUnseen reports the paths that the program was given and that exist, but not in the
// sandbox: a program that is started with such a path finds nothing there, and often does
// not say where it has looked. The folders that each sandbox has of its own, such as /tmp,
// count as visible.
func (r *Run) tellUnseen(plan *inside.Plan) {
	p := &r.policy
	if p.Unseen == nil {
		return
	}
	for _, name := range p.Told {
		to := real(name)
		if _, err := os.Stat(to); err != nil || to == "/" || CheckPath(to) != nil { //nolint:gosec // it is looked at whether it is there, no more
			continue
		}
		a := inside.Effective(plan.Rules, to, plan.Otherwise())
		ofItsOwn := a == inside.Private && (to == real("/tmp") || to == real("/var/tmp"))
		if a != inside.Read && a != inside.Write && !ofItsOwn {
			p.Unseen(name)
		}
	}
}
