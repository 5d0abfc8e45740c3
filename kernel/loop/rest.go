package loop

import (
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/session"
)

// AtRest calls act while a session rests, and keeps it at rest until act has returned: no turn and no
// [Loop.Compact] runs or begins, no prompt is taken in, and what the session owes has been started. It
// returns an [ErrBusy] otherwise, or why the session could not start what it owes. It waits for a turn
// that is about to end. act must not call the loop.
//
// s is nil for a session that is to be deleted: it may be damaged, and what it owes goes with it.
func (l *Loop) AtRest(id string, s *session.Session, act func() error) error {
	thread := l.thread(id)
	thread.admit.Lock()
	defer thread.admit.Unlock()
	err := l.owesNothing(thread, s)
	if err != nil && (s != nil || errors.Is(err, ErrBusy)) {
		return err
	}
	return act()
}

// owesNothing is rest for [Loop.AtRest].
func (l *Loop) owesNothing(thread *thread, s *session.Session) error {
	l.mu.Lock()
	message, closed, goesOn := thread.newest != nil, l.closed, thread.goesOn()
	l.mu.Unlock()
	if message { // an adapter's, which is about to begin a turn
		return fmt.Errorf("session %s: %w", thread.id, ErrBusy)
	}
	if s == nil && goesOn && l.cfg.Sessions != nil { // else the tape need not be read
		s, _ = l.cfg.Sessions.Get(thread.id)
	}
	if err := l.rest(thread, s); err != nil || !closed {
		return err
	}
	return ErrShutdown // nothing is started any longer
}

// rest returns an error while a turn runs, after it has started what the session owes. The thread's
// admit lock is held.
func (l *Loop) rest(thread *thread, s *session.Session) error {
	running, err := l.settle(thread, s)
	for err == nil && running != nil && running.closing() {
		running, err = l.settle(thread, s)
	}
	if err == nil && running != nil {
		err = running.busy()
	}
	return err
}

// busy is the error of who needs the turn to have ended.
func (t *turn) busy() error {
	if t.compacting {
		return fmt.Errorf("session %s: %w", t.thread.id, ErrCompacting)
	}
	return fmt.Errorf("session %s: %w", t.thread.id, ErrBusy)
}
