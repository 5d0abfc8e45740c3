package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	// deltaEvery is how often clients are told of text and progress.
	deltaEvery = 50 * time.Millisecond
	// idleAfter is how long a session without readers and turns is followed.
	idleAfter = 10 * time.Second
	tailSize  = 1 << 20
)

// feed follows one session: it writes events.ndjson and has the readers' frames.
type feed struct {
	s    *Service
	id   string
	k    *session.Session
	once sync.Once
	err  error
	conn *session.Connection
	live chan struct{} // closed when the feed has caught up with the tape
	gone chan struct{} // closed when it has ended

	// Guarded by the service's mutex.
	refs int
	away *time.Timer

	mu       sync.Mutex
	ended    bool
	log      *os.File
	epoch    string
	seq      int64 // of the last entry that was written down
	turn     string
	text     []byte // of the output in flight
	told     int    // of text, in bytes
	isLive   bool
	whole    bool   // the output was told whole: what still comes of it is late
	inFlight string // text that was in flight when the feed attached
	progress map[string]progressData
	timer    *time.Timer
	timing   bool
	flushed  time.Time // when volatile events were told last
	readers  map[*reader]struct{}
}

// feed returns the feed of a session, following it if nobody did. The caller holds
// it until it calls release.
func (s *Service) feed(id string) (*feed, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errStops
	}
	f := s.feeds[id]
	if f == nil {
		f = &feed{s: s, id: id, live: make(chan struct{}), gone: make(chan struct{}), readers: map[*reader]struct{}{}, progress: map[string]progressData{}}
		s.feeds[id] = f
	}
	f.refs++
	if f.away != nil {
		f.away.Stop()
		f.away = nil
	}
	s.mu.Unlock()
	f.once.Do(func() { f.err = f.follow() })
	if f.err != nil {
		s.mu.Lock()
		if s.feeds[id] == f { // the next one tries again
			delete(s.feeds, id)
		}
		s.mu.Unlock()
		return nil, f.err
	}
	return f, nil
}

// release lets go of the feed; some time after the last has, and when nothing
// happens, it ends.
func (f *feed) release() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.refs--
	f.rest()
}

// done is release for who only wanted what there was to be written down: nobody else
// needs the feed, so it ends at once.
func (f *feed) done() {
	f.s.mu.Lock()
	f.refs--
	idle := f.refs == 0
	f.s.mu.Unlock()
	f.mu.Lock()
	idle = idle && f.turn == "" && !f.ended
	f.mu.Unlock()
	if idle {
		f.drop()
		<-f.gone
	}
}

// rest sets the time at which the feed ends; the service's mutex is held.
func (f *feed) rest() {
	if f.refs > 0 || f.s.closed || f.away != nil {
		return
	}
	f.away = time.AfterFunc(idleAfter, func() {
		f.s.mu.Lock()
		f.away = nil
		f.mu.Lock()
		busy := f.turn != "" && !f.ended
		f.mu.Unlock()
		idle := f.refs == 0 && !busy && !f.s.closed
		if !idle {
			f.rest()
		}
		f.s.mu.Unlock()
		if idle {
			f.drop()
		}
	})
}

// drop ends the feed.
func (f *feed) drop() {
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if conn != nil { // else it is not there yet, and sees that the service is closed
		_ = f.s.cfg.Sessions.Drop(f.id, conn.ID()) // or the session has let go
	}
}

// follow opens events.ndjson, attaches to the session behind what is in there, and
// returns when it has caught up.
func (f *feed) follow() error {
	k, err := f.s.cfg.Sessions.Find(f.id, "")
	if err != nil {
		return absent(err)
	}
	f.k = k
	if err := f.openLog(); err != nil {
		return err
	}
	release := k.Pin()
	from := f.seq // which moves
	conn, err := f.s.cfg.Sessions.Attach(f.id, session.AttachOptions{Adapter: "v1", Since: &from, Epoch: f.epoch, Snapshot: true, Entries: true, Answers: f.answers, Send: f.take})
	if err != nil {
		release()
		return errors.Join(err, f.log.Close())
	}
	f.mu.Lock()
	f.conn = conn
	f.mu.Unlock()
	f.s.mu.Lock()
	closed := f.s.closed
	if !closed {
		f.s.work.Go(func() {
			<-conn.Done()
			f.over()
			release()
			close(f.gone)
		})
	}
	f.s.mu.Unlock()
	if closed {
		f.drop()
		<-conn.Done()
		release()
		return errors.Join(errStops, f.log.Close())
	}
	beat := time.NewTicker(20 * time.Second)
	f.s.work.Go(func() { // the session takes who is silent for gone
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				_ = f.s.cfg.Sessions.Heartbeat(f.id, conn.ID()) // or it has let go
			case <-conn.Done():
				return
			}
		}
	})
	select {
	case <-f.live:
	case <-conn.Done():
		return errStops
	}
	return nil
}

// over is when the session has let go.
func (f *feed) over() {
	f.s.mu.Lock()
	if f.s.feeds[f.id] == f {
		delete(f.s.feeds, f.id)
	}
	if f.away != nil {
		f.away.Stop()
	}
	f.s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.flush(time.Now())
	if err := f.log.Close(); err != nil {
		f.s.cfg.Log.Warn().Err(err).Str("session", f.id).Msg("events.ndjson could not be closed")
	}
	for r := range f.readers {
		r.end()
	}
}

// answers tells whether somebody is there who may answer asks: whoever made the
// session over this API is; of others, a reader has to be.
func (f *feed) answers() bool {
	f.s.mu.Lock()
	r := f.s.records[f.id]
	ours := r != nil && !r.Adopted
	f.s.mu.Unlock()
	if ours {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.readers {
		if r.mayAnswer() {
			return true
		}
	}
	return false
}

// openLog opens events.ndjson, cuts off a line that was not finished, and finds the
// last entry in it.
func (f *feed) openLog() error {
	folder := event.Folder(f.id)
	if err := f.s.cfg.Root.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	log, err := f.s.cfg.Root.OpenFile(f.s.file(f.id, eventsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	f.log = log
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	for tail := int64(tailSize); ; tail *= 8 {
		n := min(tail, size)
		buf := make([]byte, n)
		if _, err := log.ReadAt(buf, size-n); err != nil && n > 0 {
			return errors.Join(err, log.Close())
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		if end == 0 && n < size {
			continue // a very long line
		}
		if int64(end) < n {
			if err := log.Truncate(size - n + int64(end)); err != nil {
				return errors.Join(err, log.Close())
			}
		}
		if f.lastOf(buf[:end]) || n == size {
			return nil
		}
	}
}

// lastOf finds the last entry in lines.
func (f *feed) lastOf(lines []byte) bool {
	for len(lines) > 0 {
		i := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		var ev struct {
			Epoch string `json:"epoch"`
			Entry int64  `json:"entry_id"`
		}
		if json.Unmarshal(lines[i:], &ev) == nil && ev.Entry > 0 {
			f.epoch, f.seq = ev.Epoch, ev.Entry
			return true
		}
		lines = lines[:i]
	}
	return false
}

// take takes one item of the session, in order.
func (f *feed) take(_ context.Context, it session.Item) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case it.Snapshot != nil:
		f.inFlight, f.turn = it.Snapshot.Text, it.Snapshot.TurnID
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
	select {
	case <-f.live:
	default:
		close(f.live)
	}
}

// restart goes on in another epoch, in which the session was reset or repaired.
// What of the old one still holds is not known, so everything is told again.
func (f *feed) restart(reason string, now session.Snapshot) error {
	known := f.epoch != "" && f.seq > 0
	f.flush(time.Now())
	f.isLive = false
	f.epoch, f.seq, f.turn, f.inFlight = now.Epoch, 0, now.TurnID, now.Text
	if known {
		f.s.recount(f.id)
		f.emit(Event{Time: stamp(time.Now()), SessionID: f.id, Type: SessionReset, Data: endData{Reason: reason}, Epoch: f.epoch}, true)
		f.emit(Event{Time: stamp(time.Now()), SessionID: f.id, Type: Resync, Data: resyncData{reason, snapshotOf(f.id, now)}, Seq: now.AsOfSeq, Epoch: f.epoch}, false)
	}
	err := f.k.Entries(0, func(e session.Entry) error {
		if e.ID <= now.AsOfSeq {
			f.entry(e, now.Epoch)
		}
		return nil
	})
	f.caughtUp()
	return err
}

// entry writes an entry down and tells the readers.
func (f *feed) entry(e session.Entry, epoch string) {
	ev, ok := project(f.id, epoch, e)
	out, isOutput := ev.Data.(outputData)
	if isOutput && f.isLive && strings.HasPrefix(out.Text, string(f.text)) {
		f.text = []byte(out.Text) // the model's last words may come later than its answer
	}
	f.flush(e.Date)
	f.epoch, f.seq, f.whole = epoch, e.ID, isOutput
	f.s.count(f.id, epoch, e, e.ID <= f.k.ForkedAt())
	if !ok {
		return
	}
	switch ev.Type {
	case OutputCompleted:
		f.text, f.told = nil, 0
	case TurnStarted:
		f.turn, f.text, f.told = ev.TurnID, nil, 0
	case TurnCompleted, SessionFailed, SessionCanceled:
		f.turn, f.text, f.told = "", nil, 0
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
	if f.timing || f.ended {
		return
	}
	if now := time.Now(); now.Sub(f.flushed) >= deltaEvery {
		f.flush(now)
		return
	}
	f.timing = true
	if f.timer == nil {
		f.timer = time.AfterFunc(deltaEvery, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.timing = false
			if !f.ended {
				f.flush(time.Now())
			}
		})
		return
	}
	f.timer.Reset(deltaEvery)
}

// flush tells what is volatile and was not told yet.
func (f *feed) flush(now time.Time) {
	volatile := func(typ string, data any) {
		f.flushed = time.Now()
		f.emit(Event{Time: stamp(now), SessionID: f.id, TurnID: f.turn, Type: typ, Data: data, Seq: f.seq, Epoch: f.epoch}, true)
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
// readers. What cannot be written there is on the tape, and is logged.
func (f *feed) emit(ev Event, keep bool) {
	data, err := json.Marshal(ev)
	if err != nil {
		f.s.cfg.Log.Error().Err(err).Str("session", f.id).Msg("an event could not be encoded")
		return
	}
	if keep {
		if _, err := f.log.Write(append(data, '\n')); err != nil {
			f.s.cfg.Log.Warn().Err(err).Str("session", f.id).Msg("an event could not be written to events.ndjson")
		}
	}
	if len(f.readers) == 0 {
		return
	}
	frame, err := frameOf(ev, data)
	if err != nil {
		f.s.cfg.Log.Error().Err(err).Str("session", f.id).Msg("an event could not be encoded")
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
