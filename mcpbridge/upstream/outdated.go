package upstream

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// entered is what the settings made of the sandbox of a child. The zero value is that of
// a provider without one.
type entered struct {
	profile, backend string
	has              sandbox.Need
	refused          string // why there was no child
	lacks            bool   // because the settings demand what is not enforced
}

// outcome is what entering a sandbox came to.
func outcome(run *sandbox.Run, err error) entered {
	switch {
	case err != nil:
		_, lacks := errors.AsType[*sandbox.RefusedError](err)
		return entered{refused: err.Error(), lacks: lacks}
	case run == nil:
		return entered{}
	}
	return entered{profile: run.Enforced.Profile, backend: run.Enforced.Backend, has: run.Enforced.Has}
}

// born notes what became of the start of a child; boxes is held for reading.
func (p *Provider) born(st *stdio, of entered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entered = &of
	if st == nil {
		return
	}
	if p.children == nil {
		p.children = map[*stdio]entered{}
	}
	p.children[st] = of
}

// buried forgets a child that has ended.
func (p *Provider) buried(t transport) {
	if st, ok := t.(*stdio); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.children, st)
	}
}

// Outdated implements [feature.Outdated]: it says how the settings now want a child to
// run, if any runs otherwise, or if the last one was refused otherwise.
func (p *Provider) Outdated() string {
	if p.cfg.Sandbox == nil || p.cfg.Server.Transport != servers.Stdio {
		return ""
	}
	p.boxes.Lock() // who has asked the settings before is among the children from now on
	defer p.boxes.Unlock()
	run, err := p.cfg.Sandbox(func(Denial) {})
	if run != nil {
		run.Ended() // nothing is started in it
	}
	now := outcome(run, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if passing(err) {
		return "" // what runs goes on
	}
	for _, was := range p.children {
		if was != now {
			return was.differs(now)
		}
	}
	if len(p.children) == 0 && p.entered != nil && *p.entered != now {
		return p.entered.differs(now)
	}
	return ""
}

// passing reports whether an error says nothing of settings: one of the system, such as
// too many open files.
func passing(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system
}

// differs says how a child is to run that runs otherwise.
func (e entered) differs(now entered) string {
	const changed = "the settings of the sandbox have changed: "
	switch {
	case now.lacks:
		return changed + now.refused
	case now.refused != "":
		return now.refused
	case e.refused != "":
		return changed + "it may start"
	case e.backend != now.backend:
		return changed + fmt.Sprintf("back end %s, no longer %s", now.backend, e.backend)
	}
	return changed + fmt.Sprintf("enforced are %s, no longer %s", now.has, e.has)
}
