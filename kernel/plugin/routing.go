package plugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// unrouted answers requests to providers that do not exist, so that nobody waits
// for them.
func (r *Registry) unrouted(_ context.Context, ev event.Event, req event.LLMRequest) error {
	backs := r.cfg.Config.Providers().PluginOf(req.Provider)
	var reason string
	switch {
	case backs == "":
		reason = fmt.Sprintf("provider %q not found: yaya provider list shows all providers", req.Provider)
	case !r.has(backs, LLMProvider):
		reason = fmt.Sprintf("provider %q needs the plugin %s, which is not loaded", req.Provider, backs)
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
			return r.cfg.Config.Providers().PluginOf(p.Provider) == m.Name
		case event.DecideRequest:
			return m.Category != Strategy || r.cfg.Strategy == nil || r.cfg.Strategy(ev.SessionID) == m.StrategyID
		}
		return true
	}
}

// ID returns the member of the manifest that its category requires, as "strategy_id" and "react";
// tools and skills have none.
func (m Manifest) ID() (member, id string) {
	switch m.Category {
	case Adapter:
		return "adapter_id", m.AdapterID
	case LLMProvider:
		return "provider_id", m.ProviderID
	case Strategy:
		return "strategy_id", m.StrategyID
	case Memory:
		return "memory_kind", m.MemoryKind
	case Tool, Skill:
	}
	return "", ""
}

// Collides reports whether another plugin has the id of this one, so that it would get what is
// meant for it. Memories share their kinds.
func (m Manifest) Collides(other Manifest) bool {
	_, id := m.ID()
	_, taken := other.ID()
	return m.Name != other.Name && m.Category == other.Category && m.Category != Memory && id != "" && id == taken
}

// Holder returns the name of the plugin that m collides with, whether it is loaded or not, "" if
// there is none.
func (r *Registry) Holder(m Manifest) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.order, func(l *loaded) bool { return m.Collides(l.manifest) })
	if i < 0 {
		return ""
	}
	return r.order[i].manifest.Name
}
