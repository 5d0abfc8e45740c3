package plane

import (
	"encoding/json"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
)

var _ control.Stateful = (*Plane)(nil)

// The saved state of a [Plane]: all that the entries have led to, and nothing of this
// process.
type (
	savedState struct {
		Agents   []agents.Agent         `json:"agents"`
		Kernels  map[string]savedKernel `json:"kernels"`
		Promoted map[string]bool        `json:"promoted"`
	}
	savedKernel struct {
		Device string   `json:"device_id,omitempty"`
		Skills []string `json:"skills,omitempty"`
	}
)

// Part implements [control.Stateful].
func (p *Plane) Part() string { return "agents" }

// Save implements [control.Stateful].
func (p *Plane) Save() (json.RawMessage, error) {
	s := savedState{Agents: p.agents.List(), Kernels: map[string]savedKernel{}}
	for i := range s.Agents { // the log has no entries of it
		s.Agents[i].Status, s.Agents[i].Context = agents.Idle, map[string]any{}
		s.Agents[i].Index /= perEntry // entries, as in files of earlier versions
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Promoted = p.promoted
	for id, k := range p.kernels {
		if k.device != "" || k.skills != nil {
			s.Kernels[id] = savedKernel{k.device, k.skills}
		}
	}
	return json.Marshal(s)
}

// Restore implements [control.Stateful].
func (p *Plane) Restore(state json.RawMessage) error {
	var s savedState
	if err := json.Unmarshal(state, &s); err != nil {
		return err
	}
	for i := range s.Agents {
		s.Agents[i].Index *= perEntry
	}
	p.agents.Replace(s.Agents)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, k := range s.Kernels {
		p.kernels[id] = &kernel{id: id, device: k.Device, skills: k.Skills}
	}
	if s.Promoted != nil {
		p.promoted = s.Promoted
	}
	return nil
}
