package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
)

// Times of a log.
const (
	// answerTime is how long one attempt to append waits for the stream. It is retried, as the same
	// append, for as long as patience.
	answerTime = time.Second
	patience   = 5 * time.Second
	retryAfter = 50 * time.Millisecond
	// lookEvery is how often a node asks the stream for its state, and reads what it has missed.
	lookEvery = time.Second
	// behind is how long a node waits before it reads again what it knows to be there: it may
	// have asked a server that has not got it yet.
	behind = 5 * time.Millisecond
)

// Options configure a [Log].
type Options struct {
	// Node is the name of this node. Required.
	Node string
	// Stream is the name of the stream; default "yaya_control". Its subjects have the same name.
	Stream string
	// Replicas is how many servers keep a stream that is made: 1, 3 or 5; default 1.
	Replicas    int
	Projections []control.Projection
	Now         func() time.Time // default time.Now
	Log         zerolog.Logger
}

// Log is a [control.Log] of several nodes.
type Log struct {
	o    Options
	conn *nats.Conn
	js   js.JetStream
	run  string
	ctx  context.Context // a base context: of what runs beside the calls; it ends with Close
	stop context.CancelFunc
	jobs sync.WaitGroup
	told chan struct{} // there may be something to read

	write sync.Mutex // held during an append: those of one node do not compete

	applying sync.Mutex // held while an entry is checked for or applied; after write
	sum      string     // of the last applied record
	newest   record     // the last applied one
	err      error      // why no other entry may follow

	mu       sync.Mutex
	last     int64 // index of the last entry that is applied
	term     int64 // its term
	readable int64 // index of the last one that is known to be there
	changed  chan struct{}
	health   health
}

var _ control.Log = (*Log)(nil)

// Open opens the log, makes its stream if there is none, and applies every entry to the
// projections. It uses conn until Close, which leaves it open.
func Open(ctx context.Context, conn *nats.Conn, o Options) (*Log, error) {
	o.Stream = cmp.Or(o.Stream, "yaya_control")
	o.Replicas = cmp.Or(o.Replicas, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
	api, err := js.New(conn)
	if err != nil {
		return nil, err
	}
	l := &Log{o: o, conn: conn, js: api, run: uuid.NewString(), told: make(chan struct{}, 1), changed: make(chan struct{})}
	info, err := l.makeStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("the stream %s of the control log: %w", o.Stream, err)
	}
	l.health = l.healthOf(info)
	announced, err := conn.Subscribe(l.announcements(), func(*nats.Msg) { l.tell() })
	if err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	if err := l.catchUp(ctx, int64(info.State.LastSeq)); err != nil { //nolint:gosec // a stream's numbers fit
		l.stop()
		return nil, errors.Join(err, announced.Unsubscribe())
	}
	l.jobs.Go(l.keepUp)
	l.jobs.Go(l.watch)
	context.AfterFunc(l.ctx, func() { _ = announced.Unsubscribe() }) // of a connection that may be closed
	return l, nil
}

func (l *Log) announcements() string { return l.o.Stream + ".committed" }

// config is how the stream has to be: whoever changed it could lose entries.
func (l *Log) config() js.StreamConfig {
	return js.StreamConfig{
		Name: l.o.Stream, Subjects: []string{l.o.Stream}, Description: "yaya: the control log",
		Retention: js.LimitsPolicy, Discard: js.DiscardNew, Storage: js.FileStorage, Replicas: l.o.Replicas,
		DenyDelete: true, DenyPurge: true, AllowDirect: true,
		RePublish: &js.RePublish{Source: l.o.Stream, Destination: l.announcements(), HeadersOnly: true},
	}
}

// makeStream finds the stream or makes it.
func (l *Log) makeStream(ctx context.Context) (*js.StreamInfo, error) {
	want := l.config()
	s, err := l.js.Stream(ctx, want.Name)
	if errors.Is(err, js.ErrStreamNotFound) {
		s, err = l.js.CreateStream(ctx, want) // another node may be first, and the same stream is not refused
	}
	if err != nil {
		return nil, err
	}
	info := s.CachedInfo()
	c := info.Config
	switch {
	case len(c.Subjects) != 1 || c.Subjects[0] != want.Subjects[0] || c.RePublish == nil || c.RePublish.Destination != want.RePublish.Destination || !c.AllowDirect:
		return nil, errors.New("there is another stream of that name")
	case c.Storage != js.FileStorage:
		return nil, errors.New("it is in memory, where the log would be lost")
	case !c.DenyDelete || !c.DenyPurge || c.Retention != js.LimitsPolicy || c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxAge > 0 || c.MaxMsgsPerSubject > 0:
		return nil, errors.New("its settings let entries be deleted")
	case info.State.Msgs > 0 && info.State.FirstSeq > 1:
		return nil, fmt.Errorf("its entries before %d are missing", info.State.FirstSeq)
	}
	return info, nil
}

// Append implements [control.Log].
func (l *Log) Append(ctx context.Context, c control.Change, check func() error) (control.Entry, error) {
	payload, err := c.Marshal()
	if err != nil {
		return control.Entry{}, err
	}
	l.write.Lock()
	defer l.write.Unlock()
	r := record{ID: uuid.NewString(), Run: l.run, Node: l.o.Node, Event: c.Event, Actor: c.Actor, Target: c.Target, Payload: payload}
	for {
		if err := ctx.Err(); err != nil {
			return control.Entry{}, err
		}
		after, err := l.prepare(&r, check)
		if err != nil {
			return control.Entry{}, err
		}
		e, err := l.propose(ctx, r, after)
		if err != nil || e.Index > 0 {
			return e, err
		}
		// Another node was first: check again when its entry is applied.
	}
}

// prepare runs the check, and makes the record follow the last entry, whose index it returns.
func (l *Log) prepare(r *record, check func() error) (after int64, err error) {
	l.applying.Lock()
	defer l.applying.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return 0, fmt.Errorf("%w: it is closed", control.ErrUnavailable)
	case l.err != nil:
		return 0, fmt.Errorf("%w: %w", control.ErrUnavailable, l.err)
	}
	if check != nil {
		if err := check(); err != nil {
			return 0, err
		}
	}
	r.Term = l.newest.Term
	if l.newest.Run != l.run {
		r.Term++
	}
	r.Before = l.sum
	r.Time = l.o.Now().UTC().Truncate(time.Millisecond)
	return l.applied(), nil
}

func (l *Log) applied() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// propose appends a record behind an entry, and applies it. It returns no entry and no error when
// another one has come between. ctx only ends waiting for others: what was sent may be
// written, and has its time to be found.
func (l *Log) propose(ctx context.Context, r record, after int64) (control.Entry, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return control.Entry{}, err
	}
	sent := false
	for until := time.Now().Add(patience); ; {
		index, err := l.publish(r.ID, raw, after)
		switch {
		case err == nil:
			return l.mine(r, raw, index)
		case isWrongLast(err):
			// Another entry is there; or this one, and the answer to its first attempt was lost.
			e, err := l.follower(ctx, r.ID, after, time.Until(until))
			if err != nil && sent {
				err = fmt.Errorf("%w: %w", control.ErrUncertain, err)
			}
			return e, err
		case isRefused(err) && !sent:
			return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
		}
		sent = sent || !isRefused(err) && !errors.Is(err, js.ErrNoStreamResponse)
		if time.Now().After(until) || l.ctx.Err() != nil {
			if sent {
				return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUncertain, err)
			}
			return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
		}
		select { // a leader may be about to be elected
		case <-time.After(retryAfter):
		case <-l.ctx.Done():
		}
	}
}

// publish sends a record once.
func (l *Log) publish(id string, raw []byte, after int64) (int64, error) {
	ctx, cancel := context.WithTimeout(l.ctx, answerTime)
	defer cancel()
	msg := &nats.Msg{Subject: l.o.Stream, Data: raw}
	ack, err := l.js.PublishMsg(ctx, msg, js.WithMsgID(id), js.WithExpectStream(l.o.Stream), js.WithExpectLastSequence(uint64(after)), js.WithRetryAttempts(0)) //nolint:gosec // an index is not negative
	if err != nil {
		return 0, err
	}
	return int64(ack.Sequence), nil //nolint:gosec // a stream's numbers fit
}

func isWrongLast(err error) bool {
	e, ok := errors.AsType[*js.APIError](err)
	return ok && (e.ErrorCode == js.JSErrCodeStreamWrongLastSequence || e.ErrorCode == js.JSErrCodeStreamWrongLastSequenceConstant)
}

// isRefused reports whether the stream has answered that it does not take a record.
func isRefused(err error) bool {
	_, ok := errors.AsType[*js.APIError](err)
	return ok
}

// mine applies an entry of this node that is in the stream.
func (l *Log) mine(r record, raw []byte, index int64) (control.Entry, error) {
	l.applying.Lock()
	defer l.applying.Unlock()
	err := l.apply(stored{index, raw})
	if err != nil {
		err = fmt.Errorf("%w: %w", control.ErrUncertain, err)
	}
	return r.entry(index), err
}

// follower waits for the entry behind another one. If that is the one with an id, it is returned.
func (l *Log) follower(ctx context.Context, id string, after int64, within time.Duration) (control.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := l.catchUp(ctx, after+1); err != nil {
		return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	var found control.Entry
	err := l.read(ctx, after+1, after+1, func(s stored) error {
		r, err := s.decode()
		if err == nil && r.ID == id {
			found = r.entry(s.seq)
		}
		return err
	})
	if err != nil {
		return found, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	return found, nil
}

// apply applies the next entry, and ignores one that was applied; applying is held.
func (l *Log) apply(s stored) error {
	if l.err != nil {
		return l.err
	}
	if s.seq <= l.applied() {
		return nil
	}
	r, err := s.decode()
	switch {
	case err != nil:
	case s.seq != l.applied()+1:
		err = fmt.Errorf("control log: entry %d is missing", l.applied()+1)
	case r.Before != l.sum:
		err = fmt.Errorf("control log, entry %d: it does not follow the entry before, as this node has seen it: the log was changed", s.seq)
	}
	if err == nil {
		l.mu.Lock()
		l.readable = max(l.readable, s.seq)
		l.mu.Unlock()
		e := r.entry(s.seq)
		for _, p := range l.o.Projections {
			if err = p.Apply(e); err != nil {
				break
			}
		}
	}
	if err != nil {
		l.err = err
		l.o.Log.Error().Err(err).Int64("entry", s.seq).Msg("the control log cannot go on")
		return err
	}
	l.sum, l.newest = sumOf(s.raw), r
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.term = s.seq, r.Term
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// tell has keepUp read.
func (l *Log) tell() {
	select {
	case l.told <- struct{}{}:
	default: // it will read anyway
	}
}

// keepUp applies the entries of others as they come.
func (l *Log) keepUp() {
	for {
		select {
		case <-l.told:
		case <-l.ctx.Done():
			return
		}
		if err := l.catchUp(l.ctx, 0); err != nil && l.ctx.Err() == nil {
			l.o.Log.Debug().Err(err).Msg("the control log cannot be read now")
		}
	}
}

// catchUp applies what the stream has, and at least up to an entry, or until ctx ends.
func (l *Log) catchUp(ctx context.Context, least int64) error {
	for {
		err := l.read(ctx, l.applied()+1, 0, func(s stored) error {
			l.applying.Lock()
			defer l.applying.Unlock()
			return l.apply(s)
		})
		if l.applied() >= least {
			return err
		}
		if err := l.failed(); err != nil {
			return err
		}
		select {
		case <-time.After(behind):
		case <-ctx.Done():
			return cmp.Or(err, ctx.Err())
		case <-l.ctx.Done():
			return errors.New("it is closed")
		}
	}
}

func (l *Log) failed() error {
	l.applying.Lock()
	defer l.applying.Unlock()
	return l.err
}

// Read implements [control.Log].
func (l *Log) Read(from int64, visit func(control.Entry) error) error {
	l.mu.Lock()
	last := l.readable
	l.mu.Unlock()
	from = max(from, 1)
	for until := time.Now().Add(patience); from <= last; {
		err := l.read(l.ctx, from, last, func(s stored) error {
			r, err := s.decode()
			if err != nil {
				return err
			}
			from = s.seq + 1
			return visited{visit(r.entry(s.seq))}.orNil()
		})
		if v, ok := errors.AsType[visited](err); ok {
			if errors.Is(v.error, fs.SkipAll) {
				return nil
			}
			return v.error
		}
		if err != nil && (l.ctx.Err() != nil || time.Now().After(until)) {
			return fmt.Errorf("the control log cannot be read: %w", err)
		}
		if from <= last {
			time.Sleep(behind) // see there
		}
	}
	return nil
}

// visited is an error of who visits.
type visited struct{ error }

func (v visited) orNil() error {
	if v.error == nil {
		return nil
	}
	return v
}

// Follow implements [control.Log].
func (l *Log) Follow(ctx context.Context, from int64, visit func(control.Entry) error) error {
	for {
		l.mu.Lock()
		last, changed := l.last, l.changed
		l.mu.Unlock()
		if from <= last {
			err := l.Read(from, func(e control.Entry) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if e.Index > last {
					return fs.SkipAll
				}
				from = e.Index + 1
				return visit(e)
			})
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ctx.Done():
			return fmt.Errorf("%w: it is closed", control.ErrUnavailable)
		}
	}
}

// Close ends the log. The connection stays open.
func (l *Log) Close() {
	l.stop()
	l.jobs.Wait()
	l.write.Lock() // who appends has found out
	defer l.write.Unlock()
}
