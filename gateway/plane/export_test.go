package plane

import (
	"context"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// Tick is one beat.
func (p *Plane) Tick() { p.tick(time.Now()) }

// PerEntry is how many indexes an entry provides.
const PerEntry = perEntry

// Update does what a kernel's update_agent does.
func (p *Plane) Update(ctx context.Context, kernel, id, status string, patch map[string]any) (int64, error) {
	return p.update(ctx, kernel, id, status, patch)
}

// UseUp leaves so many indexes of the newest entry.
func (p *Plane) UseUp(left int64) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.at = (p.at/perEntry+1)*perEntry - 1 - left
}

// Lead is what Start does first, with this log.
func (p *Plane) Lead(ctx context.Context, log control.Log) error {
	p.run.Log = log
	return p.lead(ctx)
}
