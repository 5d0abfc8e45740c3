package manage

import (
	"fmt"
	"maps"
	"slices"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Importable lists what other clients of this user have configured.
func (s *Manager) Importable() []Importable {
	out := []Importable{}
	others, have := Discover(s.cfg.Home), s.configured()
	for _, f := range others {
		if len(f.Config.Servers) == 0 {
			continue
		}
		i := Importable{Client: f.Label, Path: f.Loc.Path}
		taken := merged(have, f)
		for _, x := range f.Config.Servers {
			isNew := slices.ContainsFunc(taken, func(t servers.Taken) bool { return t.From == f.From() && t.Was() == x.Name })
			i.Servers = append(i.Servers, ImportServer{Name: x.Name, Endpoint: x.Endpoint(), Known: !isNew})
		}
		out = append(out, i)
	}
	return out
}

// configured returns the servers that are configured and readable.
func (s *Manager) configured() []servers.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.list))
}

// merged returns the servers of another client that are not among those that yaya has.
func merged(have []servers.Server, f Found) []servers.Taken {
	taken, _ := servers.Merge(have, []servers.Source{f.Source()}, func(servers.Clash) servers.Conflict { return servers.Rename })
	return taken
}

// Import prepares to import the servers that a client has configured, except existing ones.
func (s *Manager) Import(client string) ([]Prepared, error) {
	others := Discover(s.cfg.Home)
	i := slices.IndexFunc(others, func(f Found) bool { return f.Label == client })
	if i < 0 {
		return nil, &told{ErrUnknown, fmt.Sprintf("the client %q has no servers on this machine", client)}
	}
	out := []Prepared{}
	for _, t := range merged(s.configured(), others[i]) {
		x := t.Server
		s.mu.Lock()
		err := s.mayChange(x.Name)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		x.File, x.Format = s.cfg.File, servers.FormatYaya
		p, err := s.prepared(x, "", false, t.Changes) // none of the configured ones has its name
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
