package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/follow"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	// deltaEvery is how often clients get text and progress.
	deltaEvery = 50 * time.Millisecond
	// idleAfter is how long a session without readers and turns is followed.
	idleAfter = 10 * time.Second
)

// feed is the view of a session in /v1: it writes events.ndjson and has the readers'
// frames.
type feed struct {
	*follow.Follower // its lock guards what is below
	s                *Service
	k                *session.Session
	unpin            func()

	log      *os.File
	epoch    string
	seq      int64 // of the last entry that was written down
	turn     string
	text     []byte // of the output in flight
	told     int    // of text, in bytes
	isLive   bool
	whole    bool   // the output was sent whole: the rest of it is late
	inFlight string // text that was in flight when the feed attached
	progress map[string]progressData
	flushed  time.Time // when volatile events were sent last
	owes     bool      // session.json, what has been counted
	readers  map[*reader]struct{}
}

// feed returns the feed of a session for a request that is carried out whether or not
// its client waits. The caller holds it until it calls Leave or Finish.
func (s *Service) feed(id string) (*feed, error) { return s.join(context.Background(), id) }

// join is feed for a client that may go while it waits.
func (s *Service) join(ctx context.Context, id string) (*feed, error) {
	f, err := s.feeds.Join(ctx, id)
	if errors.Is(err, follow.ErrClosed) || errors.Is(err, follow.ErrEnded) {
		return nil, errors.Join(api.ErrStopping, err)
	}
	return f, err
}

// Open implements [follow.Projection]: the feed goes on behind what is in
// events.ndjson.
func (f *feed) Open() (session.AttachOptions, error) {
	k, err := f.s.cfg.Sessions.Find(f.ID, "")
	if err != nil {
		return session.AttachOptions{}, absent(f.ID, err)
	}
	r, err := f.s.record(f.ID) // which the feed counts into
	if err == nil && r != nil {
		err = f.s.catchUp(k)
	}
	if err != nil {
		return session.AttachOptions{}, err
	}
	if err := f.openLog(); err != nil {
		return session.AttachOptions{}, err
	}
	f.k, f.unpin = k, k.Pin()
	from := f.seq // which moves
	return session.AttachOptions{Adapter: "v1", Since: &from, Epoch: f.epoch, Snapshot: true, Entries: true, Answers: f.ours}, nil
}

// ours reports whether the session was made over this API: whoever made it is there to
// be asked. For others, a reader has to be, and so for those of MCP clients, which are asked
// themselves if they can be.
func (f *feed) ours() bool {
	r, err := f.s.record(f.ID)
	if err != nil || r == nil {
		return false
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return !r.Adopted && r.Client == nil
}

// Close implements [follow.Projection].
func (f *feed) Close(lost bool) {
	defer f.unpin()
	f.Lock()
	defer f.Unlock()
	if !lost && f.isLive {
		f.finish()
	}
	f.Flush()
	if err := f.log.Close(); err != nil {
		f.s.cfg.Log.Warn().Err(err).Str("session", f.ID).Msg("events.ndjson could not be closed")
	}
	for r := range f.readers {
		r.end()
	}
}

// finish takes the entries that the session has not sent yet: the end of a turn that was cancelled
// because yaya stops, say.
func (f *feed) finish() {
	sn, err := f.k.Snapshot()
	if err == nil && sn.Epoch == f.epoch && sn.AsOfSeq > f.seq {
		err = f.read(f.seq+1, sn)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) { // it was archived or deleted
		f.s.cfg.Log.Warn().Err(err).Str("session", f.ID).Msg("the last events of a session could not be read: they are written when it is used again")
	}
}

// Take implements [follow.Projection].
func (f *feed) Take(it session.Item) error {
	switch {
	case it.Snapshot != nil:
		f.inFlight = it.Snapshot.Text
		f.runs(it.Snapshot.TurnID)
		if f.epoch == "" {
			f.epoch = it.Snapshot.Epoch
		}
		return nil
	case it.Resync != nil:
		return f.restart(it.Resync.Reason, it.Resync.Current)
	case it.Entry.ID > 0:
		f.entry(it.Entry, it.Cursor.Epoch)
		return nil
	}
	switch p := it.Event.Payload.(type) {
	case event.ReplayDone:
		f.caughtUp()
	case event.Delta:
		f.say(it.Offset, p.Content)
	case event.ToolProgress:
		f.progress[p.ID] = progressData{p.ID, p.Progress, p.Total, p.Message}
		f.soon()
	}
	return nil
}

// caughtUp is when the tape has been read: what is in flight is in flight now.
func (f *feed) caughtUp() {
	f.text, f.told = []byte(f.inFlight), 0
	f.inFlight, f.isLive = "", true
	if len(f.text) > 0 {
		f.soon()
	}
	f.Ready()
}

// runs notes the turn that runs, "" for none: its end has to be written down.
func (f *feed) runs(turn string) {
	f.turn = turn
	f.Busy(turn != "")
}

// restart goes on in another epoch, in which the session was reset or repaired. It does
// not know what of the old epoch still holds, so it tells everything again.
func (f *feed) restart(reason string, now session.Snapshot) error {
	known := f.epoch != "" && f.seq > 0
	f.flush(time.Now())
	f.isLive = false
	f.epoch, f.seq, f.inFlight = now.Epoch, 0, now.Text
	f.runs(now.TurnID)
	if known {
		f.s.recount(f.ID)
		f.emit(Event{Time: control.Stamp(time.Now()), SessionID: f.ID, Type: SessionReset, Data: endData{Reason: reason}, Epoch: f.epoch}, true)
		f.emit(Event{Time: control.Stamp(time.Now()), SessionID: f.ID, Type: Resync, Data: resyncData{reason, snapshotOf(f.ID, now)}, Seq: now.AsOfSeq, Epoch: f.epoch}, false)
	}
	err := f.read(0, now)
	f.caughtUp()
	return err
}

// read takes the entries of a snapshot from one on.
func (f *feed) read(from int64, now session.Snapshot) error {
	return f.k.Entries(from, func(e session.Entry) error {
		if e.ID <= now.AsOfSeq {
			f.entry(e, now.Epoch)
		}
		return nil
	})
}

// entry writes an entry down and tells the readers.
func (f *feed) entry(e session.Entry, epoch string) {
	ev, ok := project(f.ID, epoch, e)
	out, isOutput := ev.Data.(outputData)
	if isOutput && f.isLive && strings.HasPrefix(out.Text, string(f.text)) {
		f.text = []byte(out.Text) // the model's last words may come later than its answer
	}
	f.flush(e.Date)
	f.epoch, f.seq, f.whole = epoch, e.ID, isOutput
	if f.s.count(f.ID, epoch, e, e.ID <= f.k.ForkedAt()) {
		f.owes = true
		f.Later(deltaEvery)
	}
	if !ok {
		return
	}
	switch ev.Type {
	case OutputCompleted:
		f.text, f.told = nil, 0
	case TurnStarted:
		f.text, f.told = nil, 0
		f.runs(ev.TurnID)
	case TurnCompleted, SessionFailed, SessionCanceled:
		f.text, f.told = nil, 0
		f.runs("")
	}
	f.emit(ev, true)
}

// say takes text of the model in, which belongs at that offset of the output.
func (f *feed) say(offset int, text string) {
	if f.whole {
		return
	}
	if offset == 0 {
		f.text, f.told = f.text[:0], 0
	}
	if offset < len(f.text) {
		return // known already
	}
	f.text = append(f.text, text...)
	f.soon()
}

// soon has volatile events told: at once if none were for a while, so that the first
// words come as soon as they can, else in a moment.
func (f *feed) soon() {
	if f.Ended() {
		return
	}
	if now := time.Now(); now.Sub(f.flushed) >= deltaEvery {
		f.flush(now)
		return
	}
	f.Later(deltaEvery)
}

// Flush implements [follow.Projection]. session.json is written here, and not when something
// ends: its events do not wait for it, and several turns in a moment cost one writing.
func (f *feed) Flush() {
	f.flush(time.Now())
	if f.owes {
		f.owes = false
		f.s.counted(f.ID, true)
	}
}

// flush tells what is volatile and was not told yet.
func (f *feed) flush(now time.Time) {
	volatile := func(typ string, data any) {
		f.flushed = time.Now()
		f.emit(Event{Time: control.Stamp(now), SessionID: f.ID, TurnID: f.turn, Type: typ, Data: data, Seq: f.seq, Epoch: f.epoch}, true)
	}
	if f.told < len(f.text) {
		from := f.told
		f.told = len(f.text)
		volatile(OutputDelta, deltaData{string(f.text[from:]), from})
	}
	for id, p := range f.progress {
		delete(f.progress, id)
		volatile(ToolProgress, p)
	}
}

// emit encodes an event once, appends it to events.ndjson, and hands it to the
// readers. It logs an event that it cannot append, which is still on the tape.
func (f *feed) emit(ev Event, keep bool) {
	data, err := json.Marshal(ev)
	if err != nil {
		f.s.cfg.Log.Error().Err(err).Str("session", f.ID).Msg("an event could not be encoded")
		return
	}
	if keep {
		if _, err := f.log.Write(append(data, '\n')); err != nil {
			f.s.cfg.Log.Warn().Err(err).Str("session", f.ID).Msg("an event could not be written to events.ndjson")
		}
	}
	if len(f.readers) == 0 {
		return
	}
	frame, err := frameOf(ev, data)
	if err != nil {
		f.s.cfg.Log.Error().Err(err).Str("session", f.ID).Msg("an event could not be encoded")
		return
	}
	for r := range f.readers {
		if r.live {
			r.push(frame)
		}
	}
}

// frameOf makes a server-sent event of an encoded one. Only what is on the tape has
// an id: a client that comes back with it misses nothing.
func frameOf(ev Event, data []byte) ([]byte, error) {
	out := sse.Event{Name: ev.Type, Data: data}
	if ev.Entry > 0 {
		out.ID = cursorOf(ev.Epoch, ev.Seq)
	}
	return sse.Append(make([]byte, 0, len(data)+96), out)
}
