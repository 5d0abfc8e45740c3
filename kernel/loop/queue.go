package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// settle starts what a session owes while nothing runs: the turn of a message that was to
// start one when yaya died, or else that of the first queued prompt. It returns the running
// turn, nil if there is none; then the queue is empty, unless the loop is closed or an
// adapter's message comes first. The thread's admit lock is held.
//
// Every admission begins with it, so the present queue alone decides whether a prompt is refused,
// queued or started: there is no moment between two turns.
func (l *Loop) settle(thread *thread, s *session.Session) (*turn, error) {
	l.mu.Lock()
	running, others := thread.current, thread.newest != nil || l.closed
	l.mu.Unlock()
	if running != nil || others || s == nil {
		return running, nil
	}
	sn, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	if sn.TurnID != "" || sn.Owed || len(sn.Queue) > 0 { // what a failing disk has not got is not owed
		if err := s.Sync(context.Background(), sn.AsOfSeq); err != nil {
			return nil, err
		}
	}
	if err := l.closeLost(thread.id, sn); err != nil {
		return nil, err
	}
	began := len(sn.Queue)
	for len(sn.Queue) > 0 { // a crash between a message and the shorter queue leaves both
		was, _, err := s.Admitted(sn.Queue[0].ID)
		if err != nil {
			return nil, err
		}
		if was.Entry == 0 {
			break
		}
		sn.Queue = sn.Queue[1:]
	}
	if len(sn.Queue) < began {
		if _, err := s.SetQueue(sn.Queue, sn.Epoch); err != nil {
			return nil, err
		}
	}
	if sn.Owed {
		return l.start(thread, startWith{event: event.Event{SessionID: thread.id}, id: sn.PendingTurn})
	}
	if len(sn.Queue) == 0 {
		return nil, s.Emptied(context.Background())
	}
	return l.startFirst(thread, s, sn)
}

// closeAll ends the turns that a prompt replaces which nothing runs for: one whose end a
// failing disk has lost, and one that it did not let begin, which is interrupted. The prompt
// builds on what is on the disk: an end that it loses afterwards would not be made good.
func (l *Loop) closeAll(thread *thread, s *session.Session) (session.Snapshot, error) {
	if err := lasting(s); err != nil {
		return session.Snapshot{}, err
	}
	sn, err := s.Snapshot()
	if err != nil || sn.TurnID == "" && !sn.Owed {
		return sn, err
	}
	if err := l.closeLost(thread.id, sn); err != nil {
		return sn, err
	}
	if sn.Owed {
		ev, err := bus.Publish(l.kernel, event.TurnWasCancelled, thread.id, event.TurnCancelled{TurnID: sn.PendingTurn, Reason: ErrInterrupted.Error()})
		if err != nil || ev.Entry == 0 {
			return sn, cmp.Or(err, errEnd)
		}
	}
	return sn, lasting(s)
}

// errEnd means that a session cannot go on, because the end of a turn was not written.
var errEnd = errors.New("the end of the turn could not be written to the tape")

func (l *Loop) closeLost(id string, sn session.Snapshot) error {
	if sn.TurnID == "" {
		return nil
	}
	ev, err := bus.Publish(l.kernel, event.TurnHasFailed, id, event.TurnFailed{TurnID: sn.TurnID, Error: "the disk failed at the end of the turn", Kind: "storage"})
	if err == nil && ev.Entry == 0 {
		err = errEnd
	}
	return err
}

// lasting returns once everything that the session has written is on the disk: the end of a
// turn that a failing disk loses is noticed, though nobody waits for it.
func lasting(s *session.Session) error {
	sn, err := s.Snapshot()
	if err != nil {
		return err
	}
	return s.Sync(context.Background(), sn.AsOfSeq)
}

// startFirst starts the first of the queued prompts. The message reaches the disk before it
// leaves the queue.
func (l *Loop) startFirst(thread *thread, s *session.Session, sn session.Snapshot) (*turn, error) {
	p, turn := sn.Queue[0], newTurnID()
	defer l.starting(thread, turn)()
	ev, err := l.say(context.Background(), s, Prompt{SessionID: thread.id, ID: p.ID, Text: p.Text, Attachments: p.Attachments}, turn)
	if err == nil {
		_, err = s.SetQueue(sn.Queue[1:], sn.Epoch)
	}
	if err != nil {
		return nil, fmt.Errorf("start the queued prompt %s: %w", p.ID, err)
	}
	return l.start(thread, startWith{event: ev, id: turn, maxSteps: p.MaxSteps})
}

// starting notes the turn whose message is being taken in, until that turn begins or the
// function that it returns is called. The thread's admit lock is held.
func (l *Loop) starting(thread *thread, turn string) func() {
	set := func(id string, looked func()) (was func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		was = thread.looked
		thread.next, thread.nextOver, thread.looked = id, false, looked
		return was
	}
	set(turn, l.cfg.Look(thread.id))
	return func() {
		if looked := set("", nil); looked != nil {
			looked()
		}
	}
}

// Pauses between tries to go on with a session whose disk fails, or is full.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// pause waits before another try; it reports false when the loop ends.
func (l *Loop) pause(before int) bool {
	select {
	case <-time.After(backoff.Pause(firstPause, longestPause, before)):
		return true
	case <-l.ended:
		return false
	}
}

// goOn settles a session, and tries again while the disk refuses to.
func (l *Loop) goOn(thread *thread, s *session.Session) {
	for try := 0; ; try++ {
		thread.admit.Lock()
		running, err := l.settle(thread, s)
		thread.admit.Unlock()
		if err == nil && running == nil {
			err = lasting(s)
		}
		if err == nil || errors.Is(err, ErrShutdown) || errors.Is(err, bus.ErrClosed) || errors.Is(err, session.ErrElsewhere) || errors.Is(err, session.ErrNotFound) {
			return // another node goes on with it, or it was archived or deleted
		}
		if hopeless(err) {
			l.cfg.Log.Error().Err(err).Str("session", thread.id).Msg("a session with a queue cannot go on")
			return
		}
		if try == 0 {
			l.cfg.Log.Warn().Err(err).Str("session", thread.id).Msg("a session cannot go on yet: trying again")
		}
		if !l.pause(try) {
			return
		}
	}
}

// hopeless reports whether only a person can mend what is wrong with a session.
func hopeless(err error) bool {
	_, damaged := errors.AsType[*journal.DamageError](err)
	return damaged || errors.Is(err, fs.ErrNotExist)
}

// ResumeAtOnce bounds the sessions that [Loop.Continue] has going at the same time: a start
// with hundreds of queues does not make hundreds of model calls at once.
const ResumeAtOnce = 8

// Continue goes on with a session that has a queue, or whose last message was to start a
// turn when yaya died. It does not wait: sessions start in the order of the calls, at most
// [ResumeAtOnce] at a time, each until nothing is left to do in it. A prompt that arrives for
// a waiting session starts what the session owes at once.
func (l *Loop) Continue(s *session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.waiting = append(l.waiting, s)
	if l.resuming == ResumeAtOnce {
		return
	}
	l.resuming++
	l.work.Go(l.resume)
}

// resume goes on with waiting sessions until there are none.
func (l *Loop) resume() {
	for {
		l.mu.Lock()
		if l.closed || len(l.waiting) == 0 {
			l.resuming--
			l.mu.Unlock()
			return
		}
		s := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		thread := l.thread(s.ID())
		l.goOn(thread, s)
		l.idle(thread)
	}
}

// idle waits until a thread's turn and those that follow from its queue have ended.
func (l *Loop) idle(thread *thread) {
	var seen chan struct{}
	for {
		l.mu.Lock()
		followed := thread.followed
		l.mu.Unlock()
		if followed == seen { // nil if no turn has started
			return
		}
		select {
		case <-followed:
		case <-l.ended:
			return
		}
		seen = followed
	}
}
