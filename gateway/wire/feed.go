package wire

import (
	"fmt"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/gateway/follow"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// feed is the view of a session for the clients of its agent: events, and the text of an
// answer as a stream.
type feed struct {
	*follow.Follower // its lock is held while anything of the session is published
	a                *Agents
	topic            string

	epoch   string
	turn    string
	calls   int // of the model in this turn
	open    *stream
	streams []*stream // the open one last
}

// Open implements [follow.Projection].
func (f *feed) Open() (session.AttachOptions, error) {
	return session.AttachOptions{Adapter: "wire", Snapshot: true}, nil
}

const sessionClosed = "the agent's session was closed"

// Close implements [follow.Projection].
func (f *feed) Close(lost bool) {
	if lost {
		f.a.cfg.Server.End(f.topic, sessionClosed, false)
	}
}

func (f *feed) publish(e Event) { f.a.cfg.Server.Publish(f.topic, e) }

// Resync tells clients of an agent to forget what they have.
type Resync struct {
	Type    string           `json:"type"` // "resync"
	Reason  string           `json:"reason"`
	Current session.Snapshot `json:"current"`
}

// Take implements [follow.Projection].
func (f *feed) Take(it session.Item) error {
	f.take(it)
	f.Ready() // with the first item, the snapshot
	return nil
}

func (f *feed) take(it session.Item) {
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
		if e, ok := shown(it.Entry, f.ID, f.epoch); ok {
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

// begin starts a stream. The lock is held, as in what follows.
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
	if f.open.pending.Len() > 0 {
		f.Later(streamDelay)
	}
}

// Flush implements [follow.Projection]: what is pending becomes a chunk.
func (f *feed) Flush() {
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
	f.Flush()
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
// gone. It skips numbers after the last chunk so far.
func (f *feed) again(id string, missing []int) (events []Event, gone []int, ok bool) {
	f.Lock()
	defer f.Unlock()
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
