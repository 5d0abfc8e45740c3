package plugin

import "encoding/json"

// Status describes a plugin.
type Status struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Category     Category        `json:"category"`
	Status       State           `json:"status"`
	Bundled      bool            `json:"bundled"`
	Enabled      bool            `json:"enabled"`
	Error        string          `json:"error,omitempty"` // one that is loaded can have one, too
	ConfigSchema json.RawMessage `json:"config_schema"`
	// Guards are the points at which it is asked, even if it is not loaded.
	Guards []string `json:"guards,omitempty"`
}

// Snapshot describes all plugins, in load order.
func (r *Registry) Snapshot() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Status, 0, len(r.order))
	for _, l := range r.order {
		s := Status{Name: l.manifest.Name, Version: l.manifest.Version, Category: l.manifest.Category, Status: l.status, Bundled: l.bundled, Error: l.failure, ConfigSchema: l.manifest.ConfigSchema}
		s.Enabled = l.ctx == nil || l.ctx.enabled()
		if l.status == Loaded {
			s.Error = r.trouble(l)
		}
		s.Guards = r.Guards(l.manifest.Name)
		if s.ConfigSchema == nil {
			s.ConfigSchema = json.RawMessage("null")
		}
		out = append(out, s)
	}
	return out
}

// trouble says what is wrong with a loaded plugin, "" for nothing; mu is held.
func (r *Registry) trouble(l *loaded) string {
	why := ""
	if t, ok := l.plugin.(Troubled); ok {
		if err := t.Trouble(); err != nil {
			why = r.cfg.Secrets.ConcealString(firstLine(err))
		}
	}
	switch {
	case l.stale == "":
		return why
	case why == "":
		return "its files have changed, and what was loaded before goes on: " + l.stale + "; to end that first: yaya plugin reload " + l.manifest.Name
	}
	return why + "; its changed files were not loaded: " + l.stale
}
