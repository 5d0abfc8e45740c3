package jetstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	foundTime  = 20 * time.Second
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
	Replicas int
	// Copy keeps the entries on this node, and applies them. The log does not close it. Required.
	Copy Copy
	Now  func() time.Time // default time.Now
	Log  zerolog.Logger
}

func (o *Options) fill() {
	o.Stream = cmp.Or(o.Stream, "yaya_control")
	o.Replicas = cmp.Or(o.Replicas, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Copy keeps the log on a node, as a replica of package local does.
type Copy interface {
	// Put keeps the next entry, and applies it. Only an error that wraps
	// [control.ErrUnavailable] lets the log try again.
	Put(e control.Entry) error
	// Sync returns nil once every entry has reached the disk.
	Sync(ctx context.Context) error
	Follow(ctx context.Context, from int64, visit func(control.Entry) error) error
	control.Reader
}

// Log is a [control.Log] of several nodes.
type Log struct {
	o      Options
	conn   *nats.Conn
	js     js.JetStream
	stream *Stream
	run    string
	ctx    context.Context // a base context: of what runs beside the calls; it ends with Close
	stop   context.CancelFunc
	jobs   sync.WaitGroup
	told   chan struct{} // there may be something to read
	heed   *nats.Subscription

	write     sync.Mutex   // held during an append: those of one node do not compete
	appending atomic.Bool  // the same, for who only asks
	newest    atomic.Int64 // index of the entry that was announced last

	applying sync.Mutex // held while an entry is checked for or applied; after write
	met      bool       // the copy is known to be a part of the stream
	sum      string     // of the last applied record
	writer   string     // the run that wrote it
	err      error      // why no other entry may follow
	proposed string     // id of the newest append of this node
	taken    int64      // its index, once it is applied

	mu     sync.Mutex
	health health
	broken bool // err is set
}

var _ control.Log = (*Log)(nil)

// Open opens the log of a stream, and gives the copy of this node every entry that it lacks. It
// uses conn until Close, which leaves it open.
//
// A stream that cannot be reached does not keep a node from starting: the log can be read as far
// as the copy goes, and says that it has no quorum, until the stream is there. Open fails with a
// [RefusedError] if the stream does not exist, can lose entries, or has others than the copy.
func Open(ctx context.Context, conn *nats.Conn, o Options) (*Log, error) {
	o.fill()
	api, err := js.New(conn)
	if err != nil {
		return nil, err
	}
	l := &Log{o: o, conn: conn, js: api, stream: &Stream{conn, api, o.Stream}, run: uuid.NewString(), told: make(chan struct{}, 1), health: health{nodes: 1}}
	if l.heed, err = conn.Subscribe(announcements(o.Stream), l.announced); err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	begun := time.Now()
	last, err := l.meet(ctx)
	if err == nil {
		if err = l.catchUp(ctx, last); err == nil {
			l.heard(begun)
		}
	}
	if failed := l.failed(); failed != nil {
		err = failed
	}
	if err != nil {
		if _, refused := errors.AsType[*RefusedError](err); refused || l.failed() != nil || ctx.Err() != nil {
			return nil, errors.Join(err, l.Close())
		}
		o.Log.Warn().Err(err).Msg("the control log of the cluster cannot be reached: this node goes on with what it has, and changes nothing")
	}
	l.jobs.Go(l.keepUp)
	l.jobs.Go(l.watch)
	return l, nil
}

// Read implements [control.Log].
func (l *Log) Read(from int64, visit func(control.Entry) error) error {
	return l.o.Copy.Read(from, visit)
}

// Follow implements [control.Log].
func (l *Log) Follow(ctx context.Context, from int64, visit func(control.Entry) error) error {
	return l.o.Copy.Follow(ctx, from, visit)
}

// Close ends the log. The connection and the copy stay open.
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
