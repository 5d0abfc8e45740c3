package traffic

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Bounds of the queue between two writes.
const (
	gather      = 100 * time.Millisecond
	settle      = time.Second // that readers wait for it
	maxQueued   = 8192        // records
	maxBodies   = 4 << 20     // bytes of their bodies
	bodiesASec  = 2 << 20     // so many more may come each second
	saveDays    = 10 * time.Second
	tidyEvery   = time.Hour
	keptBuffer  = 512 << 10 // larger buffers are not kept
	maxClient   = 512       // bytes of what a client says of itself
	maxClients  = 1024      // whose names are cached
	warnDropped = time.Minute
)

// Settings are read before each write.
type Settings struct {
	Days     int   // 0 keeps no record
	MaxBytes int64 // of all segments
	Bodies   Bodies
}

// Config assembles a log. Root and Settings are required.
type Config struct {
	// Root is the parent of the directory "traffic"; it belongs to the caller and
	// must stay open until the log is closed.
	Root     *os.Root
	Settings func() Settings
	// Mask appends text with its secrets hidden; nil hides none. Margin is how far
	// beyond MaxBody a body has to be examined so that no part of a secret is left at
	// its end.
	Mask   func(dst, text []byte) []byte
	Margin int
	Log    zerolog.Logger
}

// Log records calls. A nil log records none. Its methods are safe for concurrent use.
type Log struct {
	cfg  Config
	mode atomic.Int32 // Bodies, or none

	mu     sync.Mutex
	queue  []entry
	bodies []byte // of the queue's entries
	room   int    // that bodies may still take
	closed bool
	lost   Lost
	news   chan struct{} // closed when something was written
	taken  uint64        // how many calls were ever accepted
	tried  uint64        // how many of them were written, or failed to be

	wake    chan struct{}
	done    chan struct{}
	stopped chan struct{}

	sums *sums
	w    writer
}

// none is the mode without any record.
const none = -1

// Lost counts the data lost since the start.
type Lost struct {
	Busy   uint64 `json:"busy" doc:"calls that came faster than they could be written"`
	Failed uint64 `json:"failed" doc:"calls that could not be written to disk"`
	Bare   uint64 `json:"bare" doc:"calls that were recorded without arguments and result, since there was too much traffic"`
}

// entry is a call that waits to be written; its slices are lengths in Log.bodies.
type entry struct {
	Call
	argSize, resSize                 int // of the whole
	client, trace, arguments, result int
	busy                             bool
}

// New returns a log that is ready. Close ends it.
func New(cfg Config) *Log {
	l := &Log{cfg: cfg, room: maxBodies, news: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}), stopped: make(chan struct{})}
	l.sums = newSums(cfg.Root)
	l.w = writer{l: l, store: store{root: cfg.Root}, clients: map[string]client{}}
	l.configure()
	go l.w.run()
	return l
}

// Add records a call. It does not wait.
func (l *Log) Add(c *Call) {
	if l == nil {
		return
	}
	mode := l.mode.Load()
	if mode == none {
		return
	}
	keep := !c.Bare && (Bodies(mode) == BodiesAll || Bodies(mode) == BodiesErrors && c.Outcome != OutcomeOK)
	limit := MaxBody + l.cfg.Margin
	l.mu.Lock()
	if l.closed || len(l.queue) >= maxQueued {
		if !l.closed {
			l.lost.Busy++
		}
		l.mu.Unlock()
		return
	}
	e := entry{Call: *c, argSize: len(c.Arguments), resSize: max(len(c.Result), c.ResultSize)}
	e.Client, e.Trace, e.Arguments, e.Result = nil, nil, nil, nil
	put := func(b []byte, limit int) int {
		n := min(len(b), limit)
		l.bodies = append(l.bodies, b[:n]...)
		return n
	}
	if len(c.Client) <= maxClient {
		e.client = put(c.Client, maxClient)
	}
	e.trace = put(c.Trace, maxTrace)
	if keep {
		if need := min(len(c.Arguments), limit) + min(len(c.Result), limit); need <= l.room {
			l.room -= need
			e.arguments, e.result = put(c.Arguments, limit), put(c.Result, limit)
		} else {
			e.busy = true
			l.lost.Bare++
		}
	}
	l.queue = append(l.queue, e)
	l.taken++
	first := len(l.queue) == 1
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Lost returns the counts of lost data.
func (l *Log) Lost() Lost {
	if l == nil {
		return Lost{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Taken counts the calls that were accepted since the start.
func (l *Log) Taken() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// Settings returns the settings in force.
func (l *Log) Settings() Settings { return l.cfg.Settings() }

// Refresh applies changed settings to the next call.
func (l *Log) Refresh() { l.configure() }

// configure reads the settings.
func (l *Log) configure() Settings {
	s := l.cfg.Settings()
	mode := int32(s.Bodies)
	if s.Days <= 0 || s.MaxBytes <= 0 {
		mode = none
	}
	l.mode.Store(mode)
	return s
}

// News returns a channel that is closed when records have been written.
func (l *Log) News() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// Settle waits until all earlier calls are written, so that a client that makes a call
// and then queries the record finds it. It waits at most a second for a disk that hangs.
func (l *Log) Settle(ctx context.Context) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	l.mu.Lock()
	for upTo := l.taken; l.tried < upTo && !l.closed; {
		news := l.news
		l.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
}

// Close writes the queue, and waits for that as long as ctx allows: a disk may
// hang.
func (l *Log) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if !again {
		close(l.done)
	}
	select {
	case <-l.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the last calls are not recorded: %w", ctx.Err())
	}
}
