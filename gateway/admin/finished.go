package admin

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// finishedKept is of how many sessions it is known that they have finished.
const finishedKept = 50

// finishedTurn is the last turn of a session that has ended by itself.
type finishedTurn struct {
	session, turn string
	failed        bool
	at            time.Time
}

// finishedTurns are the last turns of the sessions of this node, since yaya runs, oldest
// first. The zero value is ready; methods are safe for concurrent use.
type finishedTurns struct {
	mu   sync.Mutex
	last []finishedTurn
}

// note takes an event of the bus over. A turn that begins ends what was known of its session.
func (f *finishedTurns) note(e event.Event) {
	if event.CheckClientSession(e.SessionID) != nil || strings.Contains(e.SessionID, event.AgentSeparator) {
		return
	}
	t := finishedTurn{session: e.SessionID, at: e.Time.UTC()}
	switch p := e.Payload.(type) {
	case event.TurnCompleted:
		t.turn = p.TurnID
	case event.TurnFailed:
		t.turn, t.failed = p.TurnID, true
	case event.TurnStarted, event.SessionDeleted, event.SessionArchived, event.SessionReset, event.TurnCancelled:
	default:
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = slices.DeleteFunc(f.last, func(x finishedTurn) bool { return x.session == t.session })
	if t.turn == "" {
		return
	}
	if f.last = append(f.last, t); len(f.last) > finishedKept {
		f.last = slices.Delete(f.last, 0, len(f.last)-finishedKept)
	}
}

func (f *finishedTurns) all() []finishedTurn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.last)
}
