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
	switch {
	case thread == nil || l.closed:
		return false
	case thread.current != nil || thread.next != "":
		return true
	case thread.followed == nil:
		return false
	}
	select {
	case <-thread.followed:
		return false
	default:
		return true
	}
}

// Resting reports whether no turn and no [Loop.Compact] runs in a session, and none begins. It waits for
// one that is about to end.
func (l *Loop) Resting(id string) bool {
	l.mu.Lock()
	var t *turn
	next := ""
	if thread := l.threads[id]; thread != nil {
		t, next = thread.current, thread.next
	}
	l.mu.Unlock()
	return next == "" && (t == nil || t.closing())
}
