package acp

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
)

// session is a session that the editor has open.
type session struct {
	a       *agent
	id      string
	folder  string
	servers []string // that the editor would like; "" when it was told

	ctx context.Context // of what belongs to it
	end context.CancelFunc

	last    string     // the id of the event behind which start follows, "" for all of them
	waiting []chat.Ask // the questions that are open then

	// Of whoever takes events: load, then the goroutine that follows.
	live   bool   // the past has been said
	said   string // of the output that is being written
	output int    // outputs so far, which makes the ids of messages
	calls  map[string]bool
	title  string

	mu     sync.Mutex
	prompt *turn                         // of this editor, nil while it has none that is not over
	asks   map[string]context.CancelFunc // questions that the editor got, by approval
	err    error                         // why nothing follows
}

// turn is the turn of a prompt, which waits for its end.
type turn struct {
	message string
	id      string        // "" while it waits for its turn to begin
	sent    chan struct{} // closed when yaya has the message, or has refused it
	over    chan outcome
	stop    context.CancelFunc // ends a command, which yaya does itself; nil for a message
}

type outcome struct {
	reason string
	err    error
}

func newSession(a *agent, id string, p opening) *session {
	s := &session{
		a: a, id: id, folder: p.Folder,
		calls: map[string]bool{}, asks: map[string]context.CancelFunc{},
	}
	for _, srv := range p.Servers {
		s.servers = append(s.servers, strconv.Quote(srv.Name))
	}
	s.ctx, s.end = context.WithCancel(a.life)
	return s
}

// start follows the events of the session, and puts the questions that are open. The editor has the answer
// by then that opened the session: what has changed since is told after it.
func (s *session) start() {
	s.live = true
	for _, q := range s.waiting {
		s.ask(q)
	}
	s.a.work.Go(func() {
		err := s.a.api.Follow(s.ctx, s.id, s.last, s.take, func(err error) {
			if err != nil && s.ctx.Err() == nil {
				s.a.o.Log.Warn().Err(err).Str("session", s.id).Msg("the events of a session are interrupted: trying again")
			}
		})
		if s.ctx.Err() != nil {
			err = errors.New("the session was closed")
		}
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		s.finish(func(*turn) bool { return true }, outcome{err: err})
	})
}

func (s *session) update(u any) { s.a.conn.notify("session/update", notice{s.id, u}) }
