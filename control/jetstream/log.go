package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	heed *nats.Subscription

	write sync.Mutex // held during an append: those of one node do not compete

	applying sync.Mutex // held while an entry is checked for or applied; after write
	sum      string     // of the last applied record
	writer   string     // the run that wrote it
	err      error      // why no other entry may follow
	proposed string     // id of the newest append of this node
	taken    int64      // its index, once it is applied

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
	if l.heed, err = conn.Subscribe(l.announcements(), func(*nats.Msg) { l.tell() }); err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	if err := l.catchUp(ctx, int64(info.State.LastSeq)); err != nil { //nolint:gosec // a stream's numbers fit
		return nil, errors.Join(err, l.Close())
	}
	l.jobs.Go(l.keepUp)
	l.jobs.Go(l.watch)
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

// Close ends the log. The connection stays open.
func (l *Log) Close() error {
	l.stop()
	l.jobs.Wait()
	l.write.Lock() // who appends has found out
	defer l.write.Unlock()
	if err := l.heed.Unsubscribe(); !errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	return nil
}
