package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Mode is how strictly sandboxes are enforced.
type Mode string

// Modes.
const (
	// Prefer enforces everything that this machine supports, and refuses a program
	// whose policy requires more.
	Prefer Mode = "prefer"
	// Require refuses every program whose policy is not enforced as a whole.
	Require Mode = "require"
	// Without enforces nothing.
	Without Mode = "off"
)

// Settings are a user's decisions about all sandboxes.
type Settings struct {
	Mode    Mode
	Backend string // one of [Backends], or "auto"
	// ModeFrom and BackendFrom name the variable of yaya's environment that says so, ""
	// for what yaya config set changes.
	ModeFrom, BackendFrom string
}

// check returns an error for an unknown mode: then the user's intention is unknown, and
// nothing starts.
func (s Settings) check() error {
	switch s.Mode {
	case Prefer, Require, Without:
		return nil
	}
	return fmt.Errorf("the setting sandbox.mode is %q, which is none of %s, %s and %s", s.Mode, Prefer, Require, Without)
}

// Outside returns an error if no program may run outside a sandbox.
func (s Settings) Outside() error {
	if s.Mode == Require {
		return errors.New("the setting sandbox.mode is require: nothing runs outside the sandbox")
	}
	return s.check()
}

// Sandboxes creates the sandboxes of one yaya. Its fields are not changed once it is
// in use; its methods are safe for concurrent use.
type Sandboxes struct {
	// Own are yaya's own folders and sockets.
	Own []string
	// Files returns yaya's own files outside those folders, and of them apart what may
	// be read; nil for none. It is called at each start; if it fails, the
	// start fails with its error.
	Files func() (hidden, readable []string, err error)
	// Home is the user's home folder.
	Home string
	// Cache is the folder below which each sandbox has its caches.
	Cache string
	// Listens returns the addresses that yaya listens on now; nil for none.
	Listens func() []string
	// Settings is called at each start.
	Settings func() Settings

	mu      sync.Mutex
	denials map[string]int64 // connections that were refused, by profile
}

// Paths are yaya's own folders, files and sockets as far as they are known now, and apart
// those that may be read.
func (s *Sandboxes) Paths() (hidden, readable []string) {
	hidden, readable, _ = s.paths() // who starts something learns why
	return hidden, readable
}

func (s *Sandboxes) paths() (hidden, readable []string, err error) {
	if s.Files != nil {
		hidden, readable, err = s.Files()
	}
	return slices.Concat(s.Own, hidden), readable, err
}

// Policy returns the policy of a profile, with caches that are kept under a name:
// programs that do not trust each other must not share one. "" means no cache.
func (s *Sandboxes) Policy(profile, name string) (Policy, error) {
	p, err := Profile(profile)
	if err != nil {
		return p, err
	}
	p.Home = s.Home
	if p.HostWrites && s.Cache != "" { // what runs in a sandbox trusts its caches
		if err := os.MkdirAll(s.Cache, 0o700); err != nil { //nolint:forbidigo // a folder of the user's, named by yaya
			return p, err
		}
		p.Hide = append(p.Hide, s.Cache)
	}
	if name != "" && !p.HostWrites {
		p.Cache = filepath.Join(s.Cache, name)
		if err := os.MkdirAll(p.Cache, 0o700); err != nil { //nolint:forbidigo // a folder of the user's, named by yaya
			return p, err
		}
	}
	return p, nil
}

// box returns what makes the sandbox of a policy, which it changes as the settings want.
func (s *Sandboxes) box(p *Policy) (*Box, error) {
	set := s.Settings()
	if err := set.check(); err != nil {
		return nil, err
	}
	box := &Box{Backend: set.Backend, Listens: s.Listens, Set: &set}
	switch set.Mode {
	case Without:
		box.Backend, p.Require = None, 0
	case Require:
		p.Require = p.Wants()
	case Prefer:
	}
	return box, nil
}

// Here returns the enforced parts of a policy on this machine with the present settings.
// The error says why a program would not start.
func (s *Sandboxes) Here(p Policy) (Enforced, error) {
	box, err := s.box(&p)
	if err != nil {
		return Enforced{}, err
	}
	_, unknown := lookAtMounts()
	e, _, err := box.decide(&p, unknown)
	return e, err
}

// Enter decides how a policy is enforced, as the settings want it. It takes the
// policy's paths over, and closes them when the run ends or cannot be.
func (s *Sandboxes) Enter(p Policy) (*Run, error) {
	box, err := s.box(&p)
	if err != nil {
		return nil, errors.Join(err, closeAll(p))
	}
	if box.Own, box.Readable, err = s.paths(); err != nil {
		return nil, errors.Join(err, closeAll(p))
	}
	profile, told := p.Profile, p.Net.Denied
	p.Net.Denied = func(d Denial) {
		s.denied(profile)
		if told != nil {
			told(d)
		}
	}
	return box.Enter(p)
}

func (s *Sandboxes) denied(profile string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denials == nil {
		s.denials = map[string]int64{}
	}
	s.denials[profile]++
}

// Denials counts the connections that sandboxes have refused, by profile.
func (s *Sandboxes) Denials() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.denials)
}
