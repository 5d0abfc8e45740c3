package daemon

import (
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/admin"
)

// Bounds of the states that are kept of servers.
const (
	statesKept  = 64 // of one server
	serversKept = 1000
	statesFor   = 24 * time.Hour
)

// pastStates keeps the last states of servers, while yaya runs. The zero value is ready; nil has
// none. Methods are safe for concurrent use.
type pastStates struct {
	mu       sync.Mutex
	byServer map[string][]admin.ServerState
}

// note adds the state that a server has from a time on.
func (p *pastStates) note(server, state string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.byServer[server]
	if n := len(all); n > 0 && all[n-1].State == state {
		return
	}
	if p.byServer == nil {
		p.byServer = map[string][]admin.ServerState{}
	}
	if all == nil && len(p.byServer) >= serversKept {
		return // servers come and go under ever new names
	}
	if len(all) > statesKept {
		all = slices.Delete(all, 0, len(all)-statesKept)
	}
	p.byServer[server] = append(all, admin.ServerState{State: state, Since: since})
}

// of returns the states of a server in the last day, oldest first; the first may be older.
func (p *pastStates) of(server string) []admin.ServerState {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.byServer[server]
	begin := time.Now().Add(-statesFor)
	i := slices.IndexFunc(all, func(s admin.ServerState) bool { return s.Since.After(begin) })
	if i < 0 {
		i = len(all)
	}
	return slices.Clone(all[max(i-1, 0):])
}
