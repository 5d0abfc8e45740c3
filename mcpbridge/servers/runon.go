package servers

import (
	"slices"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// nodeName matches the names of nodes, see control/nodes.
var nodeName = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Through returns a server that runs on another node as this one calls it: at an address of that
// node, which names, starts, bounds and pins it as its own entry says. Of the entry here, only
// what is about the calls from here counts.
func (s Server) Through(address string) Server {
	bare := ""
	return Server{
		Name: s.Name, File: s.File, Format: s.Format, Transport: HTTP, URL: address, RunOn: s.RunOn, NoOAuth: true,
		Disabled: s.Disabled, Required: s.Required, StartTimeout: s.StartTimeout, CallTimeout: s.CallTimeout, CallMax: s.CallMax,
		IncludeTools: s.listed(s.IncludeTools), ExcludeTools: s.listed(s.ExcludeTools), MaxResult: s.MaxResult, Description: s.Description,
		// Each request says whose it is, so that they can share a connection that has no sessions.
		Era: EraModern, Session: Shared, MaxInFlight: maxInFlight,
		Prefix: &bare, Trust: TrustAlways,
	}
}

// listed returns patterns for tools as they fit the names under which yaya lists those.
func (s Server) listed(patterns []string) []string {
	prefix := s.Name
	if s.Prefix != nil {
		prefix = *s.Prefix
	}
	if prefix == "" {
		return patterns
	}
	out := slices.Clone(patterns)
	for i := range out {
		out[i] = prefix + "__" + out[i]
	}
	return out
}
