package plane

import "time"

// Tick is one beat.
func (p *Plane) Tick() { p.tick(time.Now()) }
