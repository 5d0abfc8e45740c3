package wire

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// feed follows one session for all clients of its topic.
type feed struct {
	a     *Agents
	id    string
	topic string

	start sync.Once
	err   error
	conn  *session.Connection

	// Guarded by a.mu.
	refs     int
	away     *time.Timer
	watchers map[*auth.Principal]struct{}

	mu      sync.Mutex // held while anything of the session is published
	epoch   string
	turn    string
	calls   int // of the model in this turn
	open    *stream
	streams []*stream // the open one last
	timer   *time.Timer
	timing  bool // the timer has been set
	closed  bool
}

// feed returns the feed of a session, following the session if nobody did. The
// caller holds it until it calls release.
func (a *Agents) feed(id string) (*feed, error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, errStops
	}
	f := a.feeds[id]
	if f == nil {
		f = &feed{a: a, id: id, topic: AgentPrefix + id, watchers: map[*auth.Principal]struct{}{}}
		a.feeds[id] = f
	}
	f.refs++
	if f.away != nil {
		f.away.Stop()
		f.away = nil
	}
	a.mu.Unlock()
	f.start.Do(func() { f.err = f.follow() })
	if f.err != nil {
		a.mu.Lock()
		if a.feeds[id] == f { // the next one tries again
			delete(a.feeds, id)
		}
		a.mu.Unlock()
		return nil, f.err
	}
	return f, nil
}

func (f *feed) follow() error {
	ready := make(chan struct{})
	first := sync.OnceFunc(func() { close(ready) })
	conn, err := f.a.cfg.Sessions.Attach(f.id, session.AttachOptions{Adapter: "wire", Snapshot: true, Answers: f.answers, Send: func(_ context.Context, it session.Item) error {
		defer first()
		f.take(it)
		return nil
	}})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.conn = conn
	f.mu.Unlock()
	f.a.mu.Lock()
	closed := f.a.closed
	if !closed {
		f.a.work.Go(func() { // it ends with the connection, which the feed or the session ends
			<-conn.Done()
			f.ended()
		})
	}
	f.a.mu.Unlock()
	if closed {
		f.drop()
		return errStops
	}
	select {
	case <-ready:
	case <-conn.Done():
	}
	return nil
}

var errStops = Refuse("yaya stops")

// ended is when the session has let go.
func (f *feed) ended() {
	f.a.mu.Lock()
	ours := f.a.feeds[f.id] == f
	if ours {
		delete(f.a.feeds, f.id)
	}
	f.a.mu.Unlock()
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	if ours { // not by our own wish
		f.a.cfg.Server.End(f.topic, "the agent's session was closed", false)
	}
}

// answers tells whether a client is there that may answer asks.
func (f *feed) answers() bool {
	f.a.mu.Lock()
	watchers := slices.Collect(maps.Keys(f.watchers))
	f.a.mu.Unlock()
	return slices.ContainsFunc(watchers, func(p *auth.Principal) bool { return auth.Allow(*p, auth.ApprovalsAnswer) == nil })
}

// watch notes that a client is there, until leave is called.
func (f *feed) watch(p auth.Principal) (leave func()) {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	f.watchers[&p] = struct{}{}
	return func() {
		f.a.mu.Lock()
		defer f.a.mu.Unlock()
		delete(f.watchers, &p)
	}
}

// release lets go of the feed; some time after the last has, it ends.
func (f *feed) release() {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	f.refs--
	if f.refs > 0 || f.a.closed {
		return
	}
	f.away = time.AfterFunc(linger, func() {
		f.a.mu.Lock()
		still := f.refs == 0 && f.a.feeds[f.id] == f && !f.a.closed
		if still {
			delete(f.a.feeds, f.id)
		}
		f.a.mu.Unlock()
		if still {
			f.drop()
		}
	})
}

// close ends the feed, and waits for nothing.
func (f *feed) close() {
	f.a.mu.Lock()
	delete(f.a.feeds, f.id)
	if f.away != nil {
		f.away.Stop()
	}
	f.a.mu.Unlock()
	f.drop()
}

func (f *feed) drop() {
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = f.a.cfg.Sessions.Drop(f.id, conn.ID()) // or the session has let go
	}
}

func (f *feed) heartbeat() {
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if conn != nil {
		_ = f.a.cfg.Sessions.Heartbeat(f.id, conn.ID()) // or the session has let go
	}
}

func (f *feed) publish(e Event) { f.a.cfg.Server.Publish(f.topic, e) }

// Resync tells clients of an agent to forget what they have.
type Resync struct {
	Type    string           `json:"type"` // "resync"
	Reason  string           `json:"reason"`
	Current session.Snapshot `json:"current"`
}

// take takes in what the session sends, one at a time and in order.
func (f *feed) take(it session.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case it.Snapshot != nil:
		f.epoch, f.turn = it.Snapshot.Epoch, it.Snapshot.TurnID
		if it.Snapshot.Text != "" { // in the middle of a message
			f.begin(time.Now())
			f.say(it.Snapshot.Text)
		}
		return
	case it.Resync != nil:
		f.finish(time.Now(), "")
		f.epoch, f.turn = it.Resync.Current.Epoch, it.Resync.Current.TurnID
		f.a.cfg.Server.Restart(f.topic, it.Resync.Current.AsOfSeq)
		f.publish(Event{Name: "resync", Payload: Resync{"resync", it.Resync.Reason, it.Resync.Current}})
		return
	}
	if it.Event.Kind == session.NoteQueue {
		if e, ok := shown(it.Entry, f.id, f.epoch); ok {
			f.publish(e)
		}
		return
	}
	ev := it.Event
	switch p := ev.Payload.(type) {
	case event.Delta:
		if f.open != nil && it.Offset == 0 { // another message
			f.finish(ev.Time, "")
		}
		if f.open == nil {
			f.begin(ev.Time)
		}
		f.say(p.Content)
		return // clients get it as a stream
	case event.TurnStarted:
		f.turn, f.calls = p.TurnID, 0
	case event.TurnFailed:
		f.finish(ev.Time, p.Error)
	case event.TurnCancelled:
		f.finish(ev.Time, "cancelled: "+p.Reason)
	case event.AssistantMessage, event.TurnCompleted:
		f.finish(ev.Time, "")
	default:
		if ev.Kind == event.ToolCallStart.Name() {
			f.finish(ev.Time, "")
		}
	}
	f.publish(project(ev, f.epoch))
}

// begin starts a stream. mu is held, as in what follows.
func (f *feed) begin(now time.Time) {
	f.streams = slices.DeleteFunc(f.streams, func(s *stream) bool { return !s.ended.IsZero() && now.Sub(s.ended) > streamKept })
	if len(f.streams) >= maxStreams {
		f.streams = slices.Delete(f.streams, 0, 1)
	}
	f.calls++
	f.open = &stream{id: fmt.Sprintf("%s.%d", f.turn, f.calls)}
	f.streams = append(f.streams, f.open)
	f.publish(f.open.start(now))
}

// say adds text to the open stream; what arrives in a short time is one chunk.
func (f *feed) say(text string) {
	for _, e := range f.open.add(text) {
		f.publish(e)
	}
	if f.open.pending.Len() == 0 || f.closed {
		return
	}
	if f.timer == nil {
		f.timing = true
		f.timer = time.AfterFunc(streamDelay, f.flush)
		return
	}
	if !f.timing {
		f.timing = true
		f.timer.Reset(streamDelay)
	}
}

func (f *feed) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timing = false
	f.flushOpen()
}

func (f *feed) flushOpen() {
	if f.open == nil {
		return
	}
	if e, ok := f.open.flush(); ok {
		f.publish(e)
	}
}

// finish ends the open stream, if there is one.
func (f *feed) finish(now time.Time, failure string) {
	if f.open == nil {
		return
	}
	f.flushOpen()
	f.publish(f.open.end(now, failure))
	f.open = nil
}

// live returns what is under way, for a client that goes live.
func (f *feed) live() []Event {
	if f.open == nil {
		return nil
	}
	return f.open.replay(time.Now()) // what is pending follows, for everybody
}

// again returns chunks of a stream once more, and the numbers of those that are
// gone. What is behind the last chunk so far is neither.
func (f *feed) again(id string, missing []int) (events []Event, gone []int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.streams, func(s *stream) bool { return s.id == id })
	if i < 0 {
		return nil, nil, false
	}
	s := f.streams[i]
	gone = []int{}
	for _, seq := range missing {
		if e, ok := s.again(seq); ok {
			events = append(events, e)
		} else if seq < s.first || s.last != nil {
			gone = append(gone, seq)
		}
	}
	if s.last != nil {
		events = append(events, *s.last)
	}
	return events, gone, true
}
