package manage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// List describes the configured servers, by name.
func (s *Manager) List() []Server {
	states, invalid := s.observed()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Server{}
	for name, x := range s.list {
		row := s.row(x)
		st, running := states[name]
		switch {
		case running:
			row.State, row.Reason, row.Status = string(st.State), st.Reason, &st
		case x.Disabled:
			row.State = "disabled"
		case s.cfg.Bridge == nil:
			row.State, row.Reason = "stopped", "yaya is not running"
		default:
			row.State, row.Reason = "invalid", cmp.Or(invalid[name], "it is not running")
		}
		out = append(out, row)
	}
	for _, x := range s.bad {
		out = append(out, Server{Name: x.Name, File: x.File, Editable: s.editable(x.File), State: "invalid", Reason: feature.Clean(x.Err.Error(), 1024), Config: json.RawMessage("null")})
	}
	for _, x := range s.wait {
		row := s.row(x.Server)
		row.State, row.Reason = "waiting", fmt.Sprintf("the folder %s brings it, and %v: yaya trust %s", x.Folder.Folder, feature.Clean(x.Cause.Error(), 1024), x.Folder.Folder)
		out = append(out, row)
	}
	slices.SortFunc(out, func(x, y Server) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// observed returns the status of the running servers.
func (s *Manager) observed() (states map[string]feature.Status, invalid map[string]string) {
	states, invalid = map[string]feature.Status{}, map[string]string{}
	if s.cfg.Bridge == nil {
		return states, invalid
	}
	for _, st := range s.cfg.Host.Status() {
		states[st.ID] = st
	}
	for _, inv := range s.cfg.Bridge.InvalidServers() {
		invalid[inv.Name] = feature.Clean(inv.Err.Error(), 1024)
	}
	return states, invalid
}

// Configured returns the servers that are configured and can be read, in no order; of a
// folder's, those that its user trusts.
func (s *Manager) Configured() []servers.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.list))
}

func (s *Manager) row(x servers.Server) Server {
	masked, err := x.Masked()
	if err != nil { // cannot happen: it was built from JSON
		masked = json.RawMessage("null")
	}
	row := Server{Name: x.Name, Transport: x.Transport, Endpoint: x.Endpoint(), File: x.File, Editable: s.editable(x.File), Config: masked, Revision: Revision(x), Withheld: x.ExcludeTools}
	if profile := x.SandboxProfile(); profile != "" {
		row.Profile, row.Allowed = profile, s.inSandbox(s.permitted(x))
	}
	return row
}

// inSandbox describes what a server's process may do here.
func (s *Manager) inSandbox(x servers.Server) string {
	return mcpbridge.Here(s.cfg.Sandboxes, x, os.LookupEnv).Says(x.InSandbox(x.Places(s.scope(x))))
}
