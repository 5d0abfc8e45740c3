package plugin

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// unrouted answers requests to providers that do not exist, so that nobody waits
// for them.
func (r *Registry) unrouted(_ context.Context, ev event.Event, req event.LLMRequest) error {
	i := r.cfg.Config.Providers().GetInstance(req.Provider)
	var reason string
	switch {
	case i == nil:
		reason = fmt.Sprintf("provider %q not found: yaya provider list shows all providers", req.Provider)
	case !r.has(i.Plugin, LLMProvider):
		reason = fmt.Sprintf("provider %q needs the plugin %s, which is not loaded", req.Provider, i.Plugin)
	default:
		return nil
	}
	_, err := bus.Publish(r.kernel, event.LLMCallError, ev.SessionID, event.LLMError{Error: reason, Kind: event.LLMOther, Request: event.Request{RequestID: ev.ID}})
	return err
}

// filter is the routing rule of a category.
func (r *Registry) filter(l *loaded) func(event.Event) bool {
	m := l.manifest
	return func(ev event.Event) bool {
		switch p := ev.Payload.(type) {
		case event.ToolRequest:
			return m.Category != Tool || (m.ToolName == p.Name && p.SchemaVersion == "")
		case event.LLMRequest:
			if m.Category != LLMProvider {
				return true
			}
			i := r.cfg.Config.Providers().GetInstance(p.Provider)
			return i != nil && i.Plugin == m.Name
		case event.DecideRequest:
			return m.Category != Strategy || r.cfg.Strategy == nil || r.cfg.Strategy(ev.SessionID) == m.StrategyID
		}
		return true
	}
}
