package upstream

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// entered is the sandbox that the settings gave a child. The zero value stands for a provider
// without a sandbox.
type entered struct {
	profile, backend string
	has              sandbox.Need
	refused          string // why the child did not start
	lacks            bool   // because the settings require something that is not enforced
}

// outcome is the result of entering a sandbox.
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

// born records the result of starting a child; the caller holds boxes for reading.
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

// buried removes a child that has ended.
func (p *Provider) buried(t transport) {
	if st, ok := t.(*stdio); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.children, st)
	}
}

// Outdated implements [feature.Outdated]: it tells how the settings now want a child to run, if
// any child runs differently, or if the last one was refused under other settings.
func (p *Provider) Outdated() string {
	if p.cfg.Sandbox == nil || p.cfg.Server.Transport != servers.Stdio {
		return ""
	}
	p.boxes.Lock() // a start that read the settings earlier is among the children from now on
	defer p.boxes.Unlock()
	run, err := p.cfg.Sandbox(func(Denial) {})
	if run != nil {
		run.Ended() // nothing is started in it
	}
	now := outcome(run, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if passing(err) {
		return "" // running children continue
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

// passing reports whether an error is unrelated to settings: a temporary one of the system,
// such as too many open files.
func passing(err error) bool {
	_, system := errors.AsType[syscall.Errno](err)
	return system
}

// differs describes how a child has to run, compared with how it runs.
func (e entered) differs(now entered) string {
	const changed = "the settings of the sandbox have changed: "
	switch {
	case now.lacks:
		return changed + now.refused
	case now.refused != "":
		return now.refused
	case e.refused != "":
		return changed + "it may start now"
	case e.backend != now.backend:
		return changed + fmt.Sprintf("back end %s, no longer %s", now.backend, e.backend)
	}
	return changed + fmt.Sprintf("enforced are %s, no longer %s", now.has, e.has)
}
