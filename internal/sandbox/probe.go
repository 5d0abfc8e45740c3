package sandbox

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// Report describes what this machine can enforce, as found by probes.
type Report struct {
	System   string `json:"system"` // and its version
	User     string `json:"user"`   // "root" or "ordinary user"
	Landlock int    `json:"landlock"`
	HostProc string `json:"host_proc,omitempty"` // why a sandbox sees the host's /proc
	// Group says why the memory of all processes of a sandbox together is not bounded,
	// "" where a control group does it.
	Group string `json:"control_group,omitempty"`
	// Changes says why the keeper cannot change modes, owners and times of files for a
	// program that Landlock alone bounds, "" if it can.
	Changes string `json:"-"`
	// Mounts says why the mounts of this process are not known, "" if they are.
	Mounts   string  `json:"-"`
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

// tryAgain is how long a back end that failed for a reason that may pass is not tried.
const tryAgain = time.Minute

// backEnd is one of this system's, and what its last try has found.
type backEnd struct {
	name string
	try  func() found

	mu    sync.Mutex // held during a try
	found found
	at    time.Time // of the try; zero without one
}

// found is the result of starting a sandbox with a back end.
type found struct {
	why      string // it does not work; "" is that it does
	final    bool   // the reason does not pass
	fix      string // the command that changes it
	landlock int
	hostProc string
	changes  string
}

// look returns the state of a back end. It does not repeat a probe that succeeded,
// or that the system refused permanently; other failures are temporary, because a
// lack of processes or memory at a busy moment must not cost every later program
// its sandbox.
func (b *backEnd) look() found {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() || b.found.why != "" && !b.found.final && time.Since(b.at) >= tryAgain {
		b.found, b.at = b.try(), time.Now()
	}
	return b.found
}

// prober finds out what a machine can enforce.
type prober struct {
	about func() Report // without what the back ends have found
	ends  []*backEnd    // the best first
	known atomic.Bool   // each was tried
}

// full reports on every back end.
func (p *prober) full() Report {
	r := p.report(p.ends, false)
	p.known.Store(true)
	if _, err := lookAtMounts(); err != nil {
		r.Mounts = err.Error()
	}
	for _, name := range Profiles() {
		p, err := Profile(name)
		if err == nil { // each name has one
			r.Profiles = append(r.Profiles, decide(r.Best, &p, r))
		}
	}
	return r
}

// choice reports on what a choice of a back end needs, and tries nothing else: the one
// of that name, or each until one works.
func (p *prober) choice(name string) Report {
	if name == "" || name == "auto" {
		return p.report(p.ends, true)
	}
	for _, b := range p.ends {
		if b.name == name {
			return p.report([]*backEnd{b}, true)
		}
	}
	return p.report(nil, true)
}

func (p *prober) report(ends []*backEnd, first bool) Report {
	r := p.about()
	for _, b := range ends {
		f := b.look()
		r.Backends = append(r.Backends, State{Name: b.name, Works: f.why == "", Why: f.why})
		r.Landlock = max(r.Landlock, f.landlock)
		r.HostProc, r.Changes, r.Fix = cmp.Or(r.HostProc, f.hostProc), cmp.Or(r.Changes, f.changes), cmp.Or(r.Fix, f.fix)
		if first && f.why == "" {
			break
		}
	}
	r.Backends = append(r.Backends, State{Name: None, Works: true})
	r.Best = r.Backends[slices.IndexFunc(r.Backends, func(s State) bool { return s.Works })].Name
	if r.Best != r.Backends[0].Name {
		r.Why = r.Backends[0].Why
	}
	return r
}

var thisMachine = newProber()

// Probe finds out what this machine can enforce. It starts a sandbox with each back end.
// It caches successes and permanent refusals; after other failures it tries again after
// a minute.
func Probe() Report { return thisMachine.full() }

// Known reports whether [Probe] has found out and no longer takes time.
func Known() bool { return thisMachine.known.Load() }

var _ = inside.Env // the hook must be in every program that makes sandboxes
