package loop

// State is the activity of a session.
type State string

// The states.
const (
	Idle           State = "idle"
	Running        State = "running"
	RequiresAction State = "requires_action" // an ask waits
)

// State returns the activity of a session, and its turn. A turn runs from the moment when its
// message is taken in: a session is not idle while that is being written. It is idle while
// [Loop.Compact] summarizes its history, which is not a turn.
func (l *Loop) State(id string) (State, string) {
	l.mu.Lock()
	var t *turn
	next := ""
	if thread := l.threads[id]; thread != nil {
		t, next = thread.current, thread.next
	}
	l.mu.Unlock()
	if t != nil && t.compacting {
		t = nil
	}
	if t == nil && next != "" {
		return Running, next
	}
	if t == nil {
		return Idle, ""
	}
	if l.cfg.Sessions != nil {
		if s, ok := l.cfg.Sessions.Get(id); ok {
			if sn, err := s.Snapshot(); err == nil && len(sn.Asks) > 0 {
				return RequiresAction, t.id
			}
		}
	}
	return Running, t.id
}

// GoesOn reports whether a turn of a session runs or begins, or the last one has ended and it is not
// decided yet what follows from the queue.
func (l *Loop) GoesOn(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	thread := l.threads[id]
	return thread != nil && !l.closed && thread.goesOn()
}

// goesOn is [Loop.GoesOn]; the loop's lock is held.
func (t *thread) goesOn() bool {
	if t.current != nil || t.next != "" {
		return true
	}
	select {
	case <-t.followed:
		return false
	default:
		return t.followed != nil
	}
}

// Resting reports whether [Loop.AtRest] would find the session at rest now.
func (l *Loop) Resting(id string) bool { return l.AtRest(id, nil, func() error { return nil }) == nil }
