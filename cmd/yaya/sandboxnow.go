package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// followSandbox has servers started again that the settings want in another sandbox than
// they run in, whoever has changed the settings.
func (a *app) followSandbox() error {
	sub, err := bus.On(a.kernel.Bus, bus.SubscribeOptions{Name: "sandbox", Filter: func(ev event.Event) bool {
		p, ok := ev.Payload.(event.ConfigUpdated)
		return ok && (p.Key == "sandbox.mode" || p.Key == "sandbox.backend")
	}}, event.ConfigWasUpdated, func(context.Context, event.Event, event.ConfigUpdated) error {
		a.host.Reconsider()
		return nil
	})
	if err != nil {
		return errors.Join(err, a.traffic.Close(context.Background()))
	}
	others := a.unfollow
	a.unfollow = func() {
		sub.Close()
		others()
	}
	return nil
}

// running are the servers whose processes run, with what their sandboxes were made with.
func (a *app) running() map[string]admin.SandboxProgram {
	out := map[string]admin.SandboxProgram{}
	if a.host == nil {
		return out
	}
	for _, st := range a.host.Status() {
		if e := detailOf(st).Sandbox; e != nil {
			p := admin.SandboxProgram{Kind: "server", Name: st.ID, Profile: e.Profile, Backend: e.Backend}
			if p.Profile == servers.SandboxOff {
				p.Profile = ""
			}
			out[st.ID] = p
		}
	}
	return out
}

// otherwise says of a server how it runs, or why it does not, if the settings want it
// otherwise than its profile says, or than it runs now.
func otherwise(s sandbox.Standing, p admin.SandboxProgram) string {
	if p.Kind != "server" {
		return ""
	}
	wants, refused := sandbox.None, ""
	for _, e := range s.Profiles {
		if e.Profile == p.Profile {
			wants = e.Backend
		}
	}
	switch {
	case s.Refused != "" && p.Profile != "":
		refused = s.Refused
	case s.Mode == sandbox.Require && p.Profile == "":
		refused = "the setting sandbox.mode is require, and it runs in no sandbox"
	case s.Mode == sandbox.Require && s.Lacks[p.Profile] != 0:
		refused = fmt.Sprintf("the setting sandbox.mode is require, and %s cannot be enforced", s.Lacks[p.Profile])
	}
	switch {
	case refused != "" && p.Backend == "":
		return "does not start: " + refused
	case refused != "":
		return fmt.Sprintf("runs with back end %s until its calls have ended: %s", p.Backend, refused)
	case p.Backend != "" && p.Backend != wants:
		return fmt.Sprintf("runs with back end %s until its calls have ended: the settings want %s", p.Backend, wants)
	}
	return ""
}
