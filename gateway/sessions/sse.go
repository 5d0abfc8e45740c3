package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Limits of streams.
const (
	writeTimeout = 10 * time.Second
	maxQueued    = 256
	maxQueuedAll = 1 << 20 // bytes
	maxReaders   = 2000

	feedLag = 5 * time.Millisecond // between looks whether a feed has caught up
)

// reader is one client's stream.
type reader struct {
	who  auth.Principal
	live bool // guarded by the feed's mutex

	mu     sync.Mutex
	frames [][]byte
	size   int
	over   bool // nothing more comes; the client comes back
	wake   chan struct{}
}

func newReader(who auth.Principal) *reader { return &reader{who: who, wake: make(chan struct{}, 1)} }

// push queues a frame; who does not keep up is disconnected. It never waits.
func (r *reader) push(frame []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if len(r.frames) >= maxQueued || r.size+len(frame) > maxQueuedAll {
		r.frames, r.over = nil, true
	} else {
		r.frames, r.size = append(r.frames, frame), r.size+len(frame)
	}
	r.signal()
}

func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.signal()
}

func (r *reader) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns what is queued, and whether that is all there will be.
func (r *reader) take(spare [][]byte) (frames [][]byte, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	frames, r.frames, r.size = r.frames, spare[:0], 0
	return frames, r.over
}

func (r *reader) mayAnswer() bool { return auth.Allow(r.who, auth.ApprovalsAnswer) == nil }

var cursorPattern = lazyregexp.New(`^([A-Za-z0-9-]{1,64}):([0-9]{1,18})$`)

func cursorOf(epoch string, seq int64) string { return epoch + ":" + strconv.FormatInt(seq, 10) }

// parseCursor reads <epoch>:<seq>.
func parseCursor(s string) (session.Cursor, bool) {
	m := cursorPattern().FindStringSubmatch(s)
	if m == nil {
		return session.Cursor{}, false
	}
	seq, err := strconv.ParseInt(m[2], 10, 64)
	return session.Cursor{Epoch: m[1], Seq: seq}, err == nil
}

// resyncData tells a client why it cannot go on from where it was: forget what you
// have, this is the state.
type resyncData struct {
	Reason  string   `json:"reason"`
	Current Snapshot `json:"current"`
}

// events is GET /v1/sessions/{id}/events: what there was since the cursor, or
// all of it, then what comes, unless follow is false, without gap or duplicate.
func (s *Service) events(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("session_id")
	k, _, err := s.find(id)
	if err != nil {
		s.Refuse(w, r, err)
		return
	}
	var from session.Cursor
	given := r.Header.Get("Last-Event-ID")
	if given == "" {
		given = r.URL.Query().Get("after")
	}
	if given != "" {
		var ok bool
		if from, ok = parseCursor(given); !ok {
			s.Refuse(w, r, api.Coded(http.StatusBadRequest, "bad_cursor", "a cursor is <epoch>:<seq>, as the ids of events are"))
			return
		}
	}
	follow := true
	if given := r.URL.Query().Get("follow"); given != "" {
		if follow, err = strconv.ParseBool(given); err != nil {
			s.Refuse(w, r, api.Fail(http.StatusBadRequest, "follow is true or false"))
			return
		}
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	if !s.enter() {
		full := api.Coded(http.StatusServiceUnavailable, "too_many_streams", "there are %d streams already", maxReaders)
		full.Wait = 5 * time.Second
		s.Refuse(w, r, full)
		return
	}
	defer s.leave()
	f, err := s.join(r.Context(), id)
	if err != nil {
		if r.Context().Err() == nil { // else nobody is there to be answered
			s.Refuse(w, r, err)
		}
		return
	}
	defer f.Leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	st := &stream{w: w, rc: http.NewResponseController(w)}
	if err := st.run(r.Context(), f, k, newReader(auth.FromContext(r.Context())), from, follow); err != nil && r.Context().Err() == nil && !errors.Is(err, errGone) {
		s.cfg.Log.Debug().Err(err).Str("session", id).Msg("a stream has ended")
	}
}

func (s *Service) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.readers >= maxReaders {
		return false
	}
	s.readers++
	return true
}

func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
}

var errGone = errors.New("the stream is over")

// stream writes to one client.
type stream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// write sends what is in buf.
func (st *stream) write() error {
	if len(st.buf) == 0 {
		return nil
	}
	if err := st.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := st.w.Write(st.buf)
	st.buf = st.buf[:0]
	return errors.Join(err, st.rc.Flush())
}

func (st *stream) event(ev Event) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	frame, err := frameOf(ev, data)
	if err != nil {
		return err
	}
	st.buf = append(st.buf, frame...)
	if len(st.buf) < 32<<10 {
		return nil
	}
	return st.write()
}

// run sends what was missed, then what comes, if follow is set.
func (st *stream) run(ctx context.Context, f *feed, k *session.Session, r *reader, from session.Cursor, follow bool) error {
	st.buf = append(st.buf, "retry: 2000\n\n"...)
	defer f.Watch(r.mayAnswer)()
	f.Lock()
	ended := f.Ended()
	f.readers[r] = struct{}{}
	f.Unlock()
	defer func() {
		f.Lock()
		delete(f.readers, r)
		f.Unlock()
	}()
	if ended {
		return errGone
	}
	if err := st.catchUp(ctx, f, k, r, from); err != nil || !follow {
		return err
	}
	return st.follow(ctx, r, f.s.cfg.KeepAlive)
}

// catchUp sends what there is on the tape behind the cursor, and goes live in the
// moment in which nothing is missing.
func (st *stream) catchUp(ctx context.Context, f *feed, k *session.Session, r *reader, at session.Cursor) error {
	for {
		f.Lock()
		epoch, last, ended := f.epoch, f.seq, f.Ended()
		behind := (at.Epoch != "" && at.Epoch != epoch) || at.Seq > last
		if !behind && at.Seq == last && !ended {
			r.live = true
			var inFlight Event
			if f.told > 0 { // of the output that is in flight
				inFlight = Event{Time: control.Stamp(time.Now()), SessionID: f.ID, TurnID: f.turn, Type: OutputDelta, Data: deltaData{string(f.text[:f.told]), 0}, Seq: last, Epoch: epoch}
			}
			f.Unlock() // nobody waits for this client's network
			if inFlight.Type != "" {
				if err := st.event(inFlight); err != nil {
					return err
				}
			}
			return st.write()
		}
		f.Unlock()
		if ended {
			return errGone
		}
		if behind {
			var err error
			if at, err = st.align(ctx, f.ID, k, at); err != nil {
				return err
			}
			continue
		}
		err := k.Entries(at.Seq+1, func(e session.Entry) error {
			if e.ID > last {
				return fs.SkipAll
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if ev, ok := project(f.ID, epoch, e); ok {
				return st.event(ev)
			}
			return nil
		})
		if err != nil {
			return err
		}
		at = session.Cursor{Epoch: epoch, Seq: last}
	}
}

// align is for a cursor that the feed has not come to: it waits a moment if the session
// has, else the client is told what the state is, and goes on from there.
func (st *stream) align(ctx context.Context, id string, k *session.Session, at session.Cursor) (session.Cursor, error) {
	now, err := k.Snapshot()
	if err != nil {
		return at, err
	}
	var reason string
	switch {
	case at.Epoch != "" && at.Epoch != now.Epoch:
		reason = "epoch"
	case at.Seq > now.AsOfSeq:
		reason = "ahead"
	default:
		select {
		case <-time.After(feedLag):
			return at, nil
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
	ev := Event{Time: control.Stamp(time.Now()), SessionID: id, Type: Resync, Data: resyncData{reason, snapshotOf(id, now)}, Seq: now.AsOfSeq, Epoch: now.Epoch}
	return now.Cursor(), errors.Join(st.event(ev), st.write())
}

// follow sends what comes, until the client or the feed is gone.
func (st *stream) follow(ctx context.Context, r *reader, keepAlive time.Duration) error {
	alive := time.NewTimer(keepAlive)
	defer alive.Stop()
	var spare [][]byte
	for {
		select {
		case <-r.wake:
		case <-alive.C:
			st.buf = append(st.buf, ": keep-alive\n\n"...)
		case <-ctx.Done():
			return ctx.Err()
		}
		frames, over := r.take(spare)
		for i, frame := range frames {
			st.buf = append(st.buf, frame...)
			frames[i] = nil
		}
		spare = frames
		if err := st.write(); err != nil {
			return err
		}
		if over {
			return errGone
		}
		alive.Reset(keepAlive)
	}
}
