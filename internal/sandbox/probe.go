package sandbox

import (
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Report says what this machine can enforce, as found by doing it.
type Report struct {
	System   string `json:"system"` // and its version
	User     string `json:"user"`   // "root" or "ordinary user"
	Landlock int    `json:"landlock"`
	HostProc string `json:"host_proc,omitempty"` // why a sandbox sees the host's /proc
	// Group says why the memory of all processes of a sandbox together is not bounded,
	// "" where a control group does it.
	Group    string  `json:"control_group,omitempty"`
	Backends []State `json:"backends"` // the best first
	Best     string  `json:"backend"`
	// Why says why the best back end of all is not the one, and Fix is the one command
	// that would change it. Both are empty when it is.
	Why string `json:"why,omitempty"`
	Fix string `json:"fix,omitempty"`
	// Profiles say what is enforced of each profile.
	Profiles []Enforced `json:"profiles"`
}

// State is whether a back end works.
type State struct {
	Name  string `json:"name"`
	Works bool   `json:"works"`
	Why   string `json:"why,omitempty"` // it does not
}

var probed = sync.OnceValue(func() Report {
	r := probe()
	r.Backends = append(r.Backends, State{Name: None, Works: true})
	for _, s := range r.Backends {
		if s.Works {
			r.Best = s.Name
			break
		}
	}
	if r.Best != r.Backends[0].Name {
		r.Why = r.Backends[0].Why
	}
	for _, name := range Profiles() {
		p, err := Profile(name)
		if err == nil { // each name has one
			r.Profiles = append(r.Profiles, decide(r.Best, &p, r))
		}
	}
	known.Store(true)
	return r
})

var known atomic.Bool

// Probe finds out what this machine can enforce. It starts a sandbox with each back
// end, once in the life of this process.
func Probe() Report { return probed() }

// Known reports whether [Probe] has found out and no longer takes time.
func Known() bool { return known.Load() }

// EnforcedWith says what a back end that works would enforce of a profile.
func (r Report) EnforcedWith(backend, profile string) (Enforced, error) {
	p, err := Profile(profile)
	if err != nil {
		return Enforced{}, err
	}
	return decide(backend, &p, r), nil
}

var _ = inside.Env // the hook must be in every program that makes sandboxes
