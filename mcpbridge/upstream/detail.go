package upstream

import (
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Detail is the information that `yaya mcp list` shows about a server beyond its state.
type Detail struct {
	Transport servers.Transport `json:"transport"`
	Endpoint  string            `json:"endpoint"`
	Node      string            `json:"node,omitempty"`    // of the cluster that it runs on, if that is another one
	Package   string            `json:"package,omitempty"` // that brings it
	PID       int               `json:"pid,omitempty"`
	Sandbox   *sandbox.Enforced `json:"sandbox,omitempty"` // of the running process
	Denied    []Denial          `json:"denied,omitempty"`  // the last refusals of its sandbox, newest first
	Peer      *peer             `json:"peer,omitempty"`
	Sessions  int               `json:"sessions"`
	Calls     uint64            `json:"calls"`
	Errors    uint64            `json:"errors"`
	Dropped   uint64            `json:"dropped"` // messages that answered nothing
	Cut       uint64            `json:"cut"`     // results that were truncated
	MedianMS  float64           `json:"median_ms"`
	Stderr    string            `json:"stderr,omitempty"` // last lines, made safe to show

	// For metrics: calls that the server works on, that wait for a place, and whether the
	// breaker lets none through.
	InFlight int  `json:"-"`
	Waiting  int  `json:"-"`
	Open     bool `json:"-"`
}

// Detail implements [feature.Detailer].
func (p *Provider) Detail() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	endpoint := p.cfg.Server.Endpoint()
	if p.cfg.Mask != nil { // the command line may contain secrets from the configuration
		endpoint = p.cfg.Mask(endpoint)
	}
	d := Detail{
		Transport: p.cfg.Server.Transport, Endpoint: feature.Clean(endpoint, 500), Package: p.cfg.Server.Package,
		Denied: p.denials.recent(),
		Calls:  p.stats.calls.Load(), Errors: p.stats.errors.Load(), Dropped: p.stats.dropped.Load(), Cut: p.stats.cut.Load(),
		MedianMS: float64(p.stats.median().Microseconds()) / 1000,
	}
	if p.useSSE {
		d.Transport = servers.SSE
	}
	d.Open = p.breaker.open()
	if p.Elsewhere() {
		d.Node = p.cfg.Server.RunOn
	}
	for _, sl := range p.sessions {
		if g := sl.gate(); g != nil {
			d.Sessions++
			d.add(g)
		}
	}
	if p.main != nil {
		d.Sessions++
		d.add(p.main.gate)
		d.Peer = &p.main.peer
		if st, ok := p.main.t.(*stdio); ok {
			d.PID = st.pid()
			if st.run != nil {
				d.Sandbox = &st.run.Enforced
			}
		}
	}
	if p.child != nil {
		stderr := p.child.Stderr()
		if p.cfg.Mask != nil {
			stderr = p.cfg.Mask(stderr)
		}
		d.Stderr = lastLines(stderr, 4096)
	}
	return d
}
