//go:build !linux && !darwin

package sandbox

import (
	"os/exec"
	"runtime"
)

// runSystem is the system-specific part of a run, empty where no back end exists.
type runSystem struct{ tmp string }

// Wrap changes nothing here.
func (*Run) Wrap(*exec.Cmd) error { return nil }

// Started has nothing to wait for here.
func (*Run) Started(int) error { return nil }

// PID is not known here.
func (*Run) PID() int { return 0 }

// Keeps reports that nothing ends what a program leaves.
func (*Run) Keeps() bool { return false }

// End does nothing: there is no sandbox.
func (*Run) End() {}

// Ended closes what the policy held.
func (r *Run) Ended() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.stopServing()
	_ = closeAll(r.policy)
}

func newProber() *prober {
	p := &prober{about: func() Report { return Report{System: runtime.GOOS, User: "any user"} }}
	for _, name := range Backends() {
		if name == None { // which works everywhere
			continue
		}
		p.ends = append(p.ends, &backEnd{name: name, try: func() found { return found{why: "it needs Linux", final: true} }})
	}
	return p
}
