package mcpbridge

import (
	"fmt"
	"net/http"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// place returns a server as it is run or called here, and the way to it if it runs on another node.
func (b *Bridge) place(s servers.Server) (servers.Server, http.RoundTripper, error) {
	switch {
	case s.RunOn == "":
		return s, nil, nil
	case s.RunOn == b.cfg.Node:
		s.RunOn = ""
		return s, nil, nil
	case b.cfg.Node == "":
		return s, nil, fmt.Errorf(`it runs on the node %q, and this yaya is alone: remove "run_on", or have this yaya join the cluster (yaya cluster join)`, s.RunOn)
	case b.cfg.Elsewhere == nil:
		return s, nil, fmt.Errorf("it runs on the node %q, which only a running yaya reaches: yaya serve", s.RunOn)
	}
	way, address := b.cfg.Elsewhere(s.RunOn, s.Name)
	return s.Through(address), way, nil
}

// RunsHere reports whether a server is configured and runs on this node.
func (b *Bridge) RunsHere(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.providers[name]
	return p != nil && !p.Elsewhere()
}
