package proc

import (
	"sync"
)

// firstProcesses are those of the sandboxes that were started here.
func firstProcesses() map[int]bool {
	living.mu.Lock()
	defer living.mu.Unlock()
	pids := map[int]bool{}
	for p := range living.procs {
		if p.sandboxed() {
			pids[p.PID()] = true
		}
	}
	return pids
}

// sandboxed reports whether the process was started in a sandbox.
func (p *Process) sandboxed() bool { return p.sandbox != none{} }

// living are the processes of all managers: orphans come to the one process.
var living = struct {
	mu    sync.Mutex
	procs map[*Process]struct{}
}{procs: map[*Process]struct{}{}}

// belongsToOther reports whether a group or a marker is that of another process of
// ours which lives.
func (p *Process) belongsToOther(group int, marker string) bool {
	living.mu.Lock()
	defer living.mu.Unlock()
	for q := range living.procs {
		if q != p && (q.PID() == group || q.marker == marker) {
			return true
		}
	}
	return false
}
