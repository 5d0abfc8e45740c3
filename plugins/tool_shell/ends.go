package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string {
	return []string{
		event.SessionWasReset.Name(), event.SessionWasArchived.Name(), event.SessionWasDeleted.Name(),
		event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name(),
	}
}

// OnEvent implements [plugin.Plugin]: it ends what runs for a session that ends. The session of a
// sub-agent ends with its turn.
func (p *Plugin) OnEvent(_ context.Context, ev event.Event, _ plugin.Context) error {
	switch e := ev.Payload.(type) {
	case event.SessionReset:
		p.End(e.SessionID)
	case event.SessionArchived:
		p.End(e.SessionID)
	case event.SessionDeleted:
		p.End(e.SessionID)
	case event.TurnCompleted, event.TurnFailed, event.TurnCancelled:
		if event.Root(ev.SessionID) != ev.SessionID {
			p.halt(ev.SessionID)
		}
	}
	return nil
}

// End ends the programs of a session that run between its calls, and removes its temporary files.
// It does not wait for the programs.
func (p *Plugin) End(session string) {
	p.halt(session)
	p.tmp.Remove(session)
}

// halt ends the programs of a session and of its sub-agents that run between calls.
func (p *Plugin) halt(session string) {
	p.langs.endOf(session)
	p.jobs.endOf(session)
}

// belongs reports whether a session is another one, or one of its sub-agents'.
func belongs(session, to string) bool {
	return session == to || strings.HasPrefix(session, to+event.AgentSeparator)
}

// TrustChanged ends, in the background, the programs that run between calls in a folder that is no
// longer trusted. dir is the folder whose trust has changed.
func (p *Plugin) TrustChanged(dir string) {
	p.jobs.aside(func() {
		for session := range p.sessions() {
			at, err := p.cfg.Folder(session)
			if err == nil && !inside(canonical(dir), filepath.FromSlash(canonical(at))) {
				continue
			}
			if !p.cfg.Trusted(session) {
				p.halt(session)
			}
		}
	})
}

// sessions are those with programs that run between calls.
func (p *Plugin) sessions() map[string]bool {
	all := map[string]bool{}
	p.jobs.mu.Lock()
	for _, j := range p.jobs.all {
		all[j.session] = true
	}
	p.jobs.mu.Unlock()
	p.langs.mu.Lock()
	defer p.langs.mu.Unlock()
	for key := range p.langs.all {
		all[key.session] = true
	}
	return all
}
