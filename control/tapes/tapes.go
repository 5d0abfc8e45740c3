package tapes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// The streams, and what their subjects begin with. One of them has the last message of each subject.
const (
	state    = "yaya_state"
	leasesOf = state + ".lease."
	rowsOf   = state + ".session."
	sessions = "yaya_sessions"
)

// Times.
const (
	// answerTime is how long one request waits for a stream.
	answerTime = time.Second
	retryAfter = 100 * time.Millisecond
	// patience is how long a session waits for its node's lease, or for its entries to be kept: as
	// long as servers may need to elect a leader.
	patience  = 12 * time.Second
	closeTime = 2 * time.Second
)

// maxAtOnce is for how many sessions a node sends at the same time.
const maxAtOnce = 8

var (
	// ErrUnknown reports a session that no node has.
	ErrUnknown = errors.New("no node has the session")
	// ErrUnavailable means that this node cannot act for sessions at the moment: it has not reached a
	// majority of the servers for a while, and other nodes may have taken its sessions over.
	ErrUnavailable = errors.New("the cluster cannot be reached: sessions pause until a majority of its servers answers")
	// ErrBehind means that the cluster has more of a session than this node, which was restored from a
	// backup or has lost a part of its disk.
	ErrBehind = errors.New("the cluster has more of the session than this node")
	errClosed = errors.New("it is closed")
)

// ElsewhereError is why this node may not act for a session.
type ElsewhereError struct{ Session, Node string }

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the session %s is on the node %s: use it there, on the page or over /v1", e.Session, e.Node)
}

// File is a file of a session.
type File struct {
	Name string // below the data directory
	// Generation changes when a file that grows is another one; "" for one that is replaced as a whole.
	Generation string
	Size       int64
}

// Options configure [Tapes]. All fields are required but those that say otherwise.
type Options struct {
	Node string // the name of this node
	// Data is the data directory.
	Data *os.Root
	// Copies returns how many servers are to keep the streams, when these are made.
	Copies func(context.Context) (int, error)
	// Files lists the files of a session of this node, those of its sub-agents included.
	Files func(session string) ([]File, error)
	// Lost is called, in a goroutine of its own, when another node has taken a session over.
	Lost func(session, node string)
	// Renewed is called, in a goroutine of its own, when this node has got another lease: others may
	// have taken sessions over before. Its context ends with [Tapes.Close].
	Renewed func(context.Context)
	Log     zerolog.Logger
}

// Tapes decides which node may write to a session, and copies what this one writes. All methods are
// safe for concurrent use.
type Tapes struct {
	o    Options
	conn *nats.Conn
	js   js.JetStream
	ctx  context.Context // a base context: of what runs beside the calls; it ends with Close
	stop context.CancelFunc
	jobs sync.WaitGroup
	slot chan struct{} // one for each session that is sent for
	ears *nats.Subscription

	mu       sync.Mutex
	streams  map[string]js.Stream // once they are there
	mine     held
	heard    map[string]hearing
	began    time.Time     // when this node began to listen
	changed  chan struct{} // closed when mine changes
	sessions map[string]*session
}

// Open begins to say that this node runs, once the servers answer. It uses conn until Close, which
// leaves it open.
func Open(conn *nats.Conn, o Options) (*Tapes, error) {
	api, err := js.New(conn)
	if err != nil {
		return nil, err
	}
	t := &Tapes{
		o: o, conn: conn, js: api, slot: make(chan struct{}, maxAtOnce), heard: map[string]hearing{}, began: time.Now(),
		changed: make(chan struct{}), sessions: map[string]*session{},
	}
	if err := o.Data.RemoveAll(arrivalDir); err != nil { // of a process that has ended in between
		return nil, err
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	if t.ears, err = conn.Subscribe(leasesOf+"*", t.hear); err != nil {
		t.stop()
		return nil, err
	}
	t.jobs.Go(t.keep)
	return t, nil
}

// Node returns the name of this node.
func (t *Tapes) Node() string { return t.o.Node }

// Close sends what waits to be copied, for two seconds at most, and ends it. The rest is copied when the node
// runs again.
func (t *Tapes) Close() error {
	for until := time.Now().Add(closeTime); t.sending() && time.Now().Before(until); {
		time.Sleep(lookEach / 10)
	}
	t.mu.Lock() // nobody adds a job after that
	t.stop()
	t.mu.Unlock()
	t.jobs.Wait()
	if err := t.ears.Unsubscribe(); !errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	return nil
}

// sending reports whether something waits to be copied, and can be.
func (t *Tapes) sending() bool {
	t.mu.Lock()
	all, mine := maps.Clone(t.sessions), t.mine
	t.mu.Unlock()
	if !mine.valid(time.Now()) {
		return false
	}
	for _, s := range all {
		s.mu.Lock()
		sending := s.sending
		s.mu.Unlock()
		if sending {
			return true
		}
	}
	return false
}

// begin starts a job, unless it is closed; mu is held.
func (t *Tapes) begin(job func()) {
	if t.ctx.Err() == nil {
		t.jobs.Go(job)
	}
}

// configs are how the streams have to be.
func configs(copies int) []js.StreamConfig {
	return []js.StreamConfig{{
		Name: state, Subjects: []string{state + ".>"}, Description: "yaya: which nodes run, and what their sessions are", Storage: js.FileStorage, Replicas: copies, AllowDirect: true,
		MaxMsgsPerSubject: 1, Discard: js.DiscardOld, Compression: js.S2Compression,
	}, {
		Name: sessions, Subjects: []string{sessions + ".*"}, Description: "yaya: the sessions of agents", Storage: js.FileStorage, Replicas: copies, AllowDirect: true,
		Discard: js.DiscardNew, Compression: js.S2Compression,
	}}
}

// Streams returns the names of the streams that it uses.
func Streams() []string { return []string{state, sessions} }

// make makes the streams, or finds them.
func (t *Tapes) make() error {
	t.mu.Lock()
	ready := t.streams != nil
	t.mu.Unlock()
	if ready {
		return nil
	}
	found := map[string]js.Stream{}
	ctx, cancel := context.WithTimeout(t.ctx, 3*answerTime)
	defer cancel()
	copies := 0
	for _, c := range configs(1) {
		s, err := t.js.Stream(ctx, c.Name)
		if errors.Is(err, js.ErrStreamNotFound) {
			if copies == 0 {
				if copies, err = t.o.Copies(ctx); err != nil {
					return err
				}
			}
			c.Replicas = copies
			if s, err = t.js.CreateStream(ctx, c); errors.Is(err, js.ErrStreamNameAlreadyInUse) { // another node was first
				s, err = t.js.Stream(ctx, c.Name)
			}
		}
		if err != nil {
			return err
		}
		if err := check(c, s.CachedInfo().Config); err != nil {
			return err
		}
		found[c.Name] = s
	}
	t.mu.Lock()
	t.streams = found
	t.mu.Unlock()
	return nil
}

// check refuses a stream that somebody has made otherwise.
func check(want, c js.StreamConfig) error {
	if len(c.Subjects) != 1 || c.Subjects[0] != want.Subjects[0] || c.Storage != js.FileStorage || !c.AllowDirect || c.Retention != js.LimitsPolicy ||
		c.MaxAge > 0 || c.MaxMsgs > 0 || c.MaxBytes > 0 && c.Discard != js.DiscardNew || c.MaxMsgsPerSubject > 0 && c.MaxMsgsPerSubject != want.MaxMsgsPerSubject {
		return fmt.Errorf("the stream %s has other settings than yaya makes it with, and could lose sessions", c.Name)
	}
	return nil
}

// stream returns a stream, if it was found already.
func (t *Tapes) stream(name string) (js.Stream, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == nil {
		return nil, errors.New("the servers have not answered yet")
	}
	return t.streams[name], nil
}

// put appends a message to its subject behind another one, 0 for the first one.
func (t *Tapes) put(ctx context.Context, stream string, msg *nats.Msg, behind uint64) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	ack, err := t.js.PublishMsg(ctx, msg, js.WithExpectStream(stream), js.WithExpectLastSequencePerSubject(behind), js.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
