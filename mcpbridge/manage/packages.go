package manage

import (
	"context"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bring takes over the servers of an installed package, in the place of those that it had before;
// without any they end. One whose name another server has is left out, and the notes say so.
func (s *Manager) Bring(ctx context.Context, pack string, now []servers.Server) (notes []string) {
	s.changing.Lock()
	defer s.changing.Unlock()
	var stop []string
	var start []servers.Server
	s.mu.Lock()
	for name, x := range s.list {
		if x.Package == pack {
			stop = append(stop, name)
			delete(s.list, name)
		}
	}
	for _, x := range now {
		if _, taken := s.list[x.Name]; taken || slices.ContainsFunc(s.bad, func(i servers.Invalid) bool { return i.Name == x.Name }) {
			notes = append(notes, fmt.Sprintf("server %q of the package %s is left out: there is another one of that name", x.Name, pack))
			continue
		}
		s.list[x.Name] = x
		start = append(start, x)
	}
	s.mu.Unlock()
	if s.cfg.Bridge == nil || !s.cfg.Bridge.Loaded() { // nothing runs
		return notes
	}
	for _, name := range stop {
		s.cfg.Bridge.Remove(name)
	}
	for _, x := range start {
		s.run(ctx, x)
	}
	s.changed(true)
	return notes
}
