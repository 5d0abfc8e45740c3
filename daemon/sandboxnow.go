package daemon

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// followSandbox has servers started again that the settings want in another sandbox than
// they run in, whoever has changed the settings.
func (b *bridge) followSandbox() (*bus.Subscription, error) {
	return bus.On(b.core.kernel.Bus, bus.SubscribeOptions{Name: "sandbox", Filter: func(ev event.Event) bool {
		p, ok := ev.Payload.(event.ConfigUpdated)
		return ok && (p.Key == SandboxMode || p.Key == SandboxBackend)
	}}, event.ConfigWasUpdated, func(context.Context, event.Event, event.ConfigUpdated) error {
		b.host.Reconsider()
		b.core.st.tellSandbox() // whoever has changed them
		b.mu.Lock()
		others := b.otherwise
		b.mu.Unlock()
		for _, f := range others {
			f()
		}
		return nil
	})
}

// onOtherwise has f called when the settings want other sandboxes, after the servers that
// run have been looked at.
func (b *bridge) onOtherwise(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.otherwise = append(b.otherwise[:len(b.otherwise):len(b.otherwise)], f)
}

// serverPrograms are the processes of servers, with what their sandboxes were made with.
func (b *bridge) serverPrograms() map[string]admin.SandboxProgram {
	out := map[string]admin.SandboxProgram{}
	for _, st := range b.host.Status() {
		if e := DetailOf(st).Sandbox; e != nil {
			p := admin.SandboxProgram{Kind: "server", Name: st.ID, Profile: e.Profile, Backend: e.Backend}
			if p.Profile == servers.SandboxOff {
				p.Profile = ""
			}
			out[st.ID] = p
		}
	}
	return out
}

// refused says why a program does not start with the settings as they are, "" if it does.
func (p sandboxed) refused(s sandbox.Standing) string {
	lacks := s.Lacks[p.Profile]
	switch {
	case s.Refused != "" && p.Profile != "":
		return s.Refused
	case s.Mode == sandbox.Require && p.Profile == "":
		return "the setting sandbox.mode is require, and it runs in no sandbox"
	case s.Mode == sandbox.Require && lacks != 0:
		return fmt.Sprintf("the setting sandbox.mode is require, and %s cannot be enforced%s", lacks, way(lacks.Way()))
	case s.Mode == sandbox.Prefer && lacks&p.needs != 0:
		return fmt.Sprintf("it does not run without %s, which the back end %s does not have here", lacks&p.needs, s.Best)
	}
	return ""
}

// otherwise says of a server how it runs, or why it does not, if the settings want it
// otherwise than its profile says, or than it runs now.
func otherwise(s sandbox.Standing, p sandboxed) string {
	if p.Kind != "server" {
		return ""
	}
	wants := sandbox.None
	for _, e := range s.Profiles {
		if e.Profile == p.Profile {
			wants = e.Backend
		}
	}
	switch {
	case p.Refused != "" && p.Backend == "":
		return NotStarted + p.Refused
	case p.Refused != "":
		return fmt.Sprintf("runs with back end %s until its calls have ended: %s", p.Backend, p.Refused)
	case p.Backend != "" && p.Backend != wants:
		return fmt.Sprintf("runs with back end %s until its calls have ended%s%s", p.Backend, SettingsWant, wants)
	}
	return ""
}

// Notes of a server that the settings keep from starting, and of one that runs otherwise
// than they want.
const (
	NotStarted   = "does not start: "
	SettingsWant = ": the settings want "
)
