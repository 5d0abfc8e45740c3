package proc

// InSandbox reports whether a process is one that this one has started in a sandbox, or
// was started by such a one. It goes by ancestors and by the marker in the environment:
// what a sandbox has left behind stays below its first process. A process that ends
// while it is looked at is in one.
func InSandbox(pid int) bool {
	living.mu.Lock()
	pids, markers := map[int]bool{}, map[string]bool{}
	for p := range living.procs {
		if p.sandboxed() {
			pids[p.PID()], markers[p.marker] = true, true
		}
	}
	living.mu.Unlock()
	if len(pids) == 0 {
		return false
	}
	at, err := openProc(pid)
	if err != nil {
		return true
	}
	defer func() { at.close() }()
	for range maxDepth {
		if marker, found := at.marker(); pids[at.pid] || found && markers[marker] {
			return true
		}
		parent, err := at.parent()
		if err != nil {
			return true
		}
		if parent <= 1 {
			return false
		}
		up, hidden := openProc(parent)
		// Parents do not come back: what was opened is the parent if it is the parent
		// before and after.
		if again, err := at.parent(); err != nil || again != parent {
			up.close()
			if err != nil {
				return true
			}
			continue
		}
		if hidden != nil {
			return false // not ours: those can be seen
		}
		at.close()
		at = up
	}
	return true
}
