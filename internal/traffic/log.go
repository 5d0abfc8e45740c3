package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Bounds of what gathers between two writes.
const (
	gather      = 100 * time.Millisecond
	settle      = time.Second // that who reads waits for it
	maxQueued   = 8192        // records
	maxBodies   = 4 << 20     // bytes of their bodies
	bodiesASec  = 2 << 20     // so many more may come each second
	saveDays    = 10 * time.Second
	tidyEvery   = time.Hour
	keptBuffer  = 512 << 10 // larger buffers are not kept
	maxClient   = 512       // bytes of what a client says of itself
	maxClients  = 1024      // of which the names are remembered
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
	// Root is where the directory "traffic" is made; it belongs to the caller and
	// must stay open until the log is closed.
	Root     *os.Root
	Settings func() Settings
	// Mask appends text with its secrets hidden; nil hides none. Margin is how much
	// longer than MaxBody a body has to be looked at so that no part of a secret is
	// left at its end.
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
	taken  uint64        // how many calls were ever taken on
	tried  uint64        // how many of them were written, or failed to be

	wake    chan struct{}
	done    chan struct{}
	stopped chan struct{}

	sums *sums
	w    writer
}

// none is the mode without any record.
const none = -1

// Lost counts what was not recorded since the start.
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

// Lost returns what was not recorded.
func (l *Log) Lost() Lost {
	if l == nil {
		return Lost{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Settings returns the settings in force.
func (l *Log) Settings() Settings { return l.cfg.Settings() }

// Refresh has changed settings hold for the next call.
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

// Settle waits until the calls that were taken on before are written, so that who has
// made a call and then looks finds it. A disk that hangs is waited for a second at most.
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

// Close writes what waits, and waits for it as long as ctx allows: a disk may hang.
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

// client is what an MCP client says of itself.
type client struct{ name, version string }

// writer is what the goroutine of a log has for itself.
type writer struct {
	l       *Log
	store   store
	clients map[string]client // by the bytes that they say it in
	queue   []entry
	bodies  []byte
	out     []byte
	masked  []byte
	failing bool
	refill  time.Time
	told    time.Time // that calls were dropped
	told0   uint64    // how many
	clock   time.Time // when it was last looked at
}

func (w *writer) run() {
	l := w.l
	defer close(l.stopped)
	defer w.store.close()
	defer w.save()
	w.refill, w.clock = time.Now(), time.Now()
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	save := time.NewTimer(saveDays)
	save.Stop()
	defer save.Stop()
	saving := false
	for {
		select {
		case <-l.wake:
			t := time.NewTimer(gather)
			select {
			case <-t.C:
			case <-l.done:
				t.Stop()
			}
			w.flush()
			if !saving {
				save.Reset(saveDays)
				saving = true
			}
		case <-save.C:
			saving = false
			w.save()
		case <-tidy.C:
			l.configure()
			w.tidy()
		case <-l.done:
			w.flush()
			return
		}
	}
}

// take makes what waits the writer's.
func (w *writer) take() {
	l := w.l
	// What a burst has taken is given back when it is over.
	if cap(w.bodies) > keptBuffer && len(w.bodies) < cap(w.bodies)/4 {
		w.bodies = nil
	}
	if cap(w.queue) > maxQueued/8 && len(w.queue) < cap(w.queue)/4 {
		w.queue = nil
	}
	clear(w.queue)
	now := time.Now()
	more := int(min(now.Sub(w.refill), time.Minute).Seconds() * bodiesASec)
	w.refill = now
	l.mu.Lock()
	defer l.mu.Unlock()
	w.queue, l.queue = l.queue, w.queue[:0]
	w.bodies, l.bodies = l.bodies, w.bodies[:0]
	l.room = min(l.room+more, maxBodies)
	if l.lost.Busy > w.told0 && now.Sub(w.told) > warnDropped {
		l.cfg.Log.Warn().Uint64("calls", l.lost.Busy-w.told0).Msg("calls came faster than they could be recorded: some are missing in the record of calls")
		w.told, w.told0 = now, l.lost.Busy
	}
}

func (w *writer) flush() {
	s := w.l.configure()
	w.take()
	if len(w.queue) == 0 {
		return
	}
	if err := w.write(s); err != nil {
		if !w.failing { // told once, until it works again
			w.l.cfg.Log.Error().Err(err).Msg("calls cannot be recorded: the record of calls has a gap until this is mended; the calls themselves go on")
		}
		w.failing = true
	} else if w.failing {
		w.failing = false
		w.l.cfg.Log.Info().Msg("calls are recorded again")
	}
	w.l.mu.Lock()
	w.l.tried += uint64(len(w.queue))
	close(w.l.news)
	w.l.news = make(chan struct{})
	w.l.mu.Unlock()
}

// write writes the queue, under the lock of the directory.
func (w *writer) write(s Settings) (err error) {
	written := 0
	defer func() {
		if n := len(w.queue) - written; n > 0 && err != nil {
			w.l.mu.Lock()
			w.l.lost.Failed += uint64(n)
			w.l.mu.Unlock()
		}
	}()
	unlock, err := w.store.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.store.load(); err != nil {
		return err
	}
	w.out = w.out[:0]
	rest := w.bodies
	held := 0
	for i := range w.queue {
		e := &w.queue[i]
		rest = w.encode(e, rest, s.Bodies)
		held++
		if len(w.out) < 256<<10 && i < len(w.queue)-1 {
			continue
		}
		if err := w.store.append(w.out, held, s); err != nil {
			return err
		}
		written, held, w.out = written+held, 0, w.out[:0]
	}
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
	return nil
}

// encode appends the line of an entry to w.out, and returns the bodies of the next.
func (w *writer) encode(e *entry, bodies []byte, mode Bodies) (rest []byte) {
	next := func(n int) []byte {
		b := bodies[:n:n]
		bodies = bodies[n:]
		return b
	}
	c := w.client(next(e.client))
	trace := traceID(next(e.trace))
	arguments, result := next(e.arguments), next(e.result)
	if mode == BodiesOff || mode == BodiesErrors && e.Outcome == OutcomeOK { // since the call
		arguments, result = nil, nil
	}
	r := Record{
		ID: w.store.next, Time: e.Start.UTC(), TookMS: float64(e.Took.Microseconds()) / 1000, Origin: e.Origin,
		Client: c.name, ClientVersion: c.version, Principal: clip(e.Principal, maxText), Session: clip(e.Session, maxText),
		Method: e.Method, Server: clip(e.Server, maxText), Tool: clip(e.Tool, maxText), Name: clip(e.Name, maxText), Outcome: e.Outcome, Error: w.text(e.Error),
		Trace: trace, ArgumentsBytes: int64(e.argSize), ResultBytes: int64(e.resSize), Busy: e.busy,
	}
	if e.Method != MethodTool || e.Outcome != OutcomeOK { // else it is the name of a tool that there is
		r.Tool, r.Name = w.text(e.Tool), w.text(e.Name)
	}
	if r.Name == r.Tool {
		r.Name = ""
	}
	if e.Approved {
		r.Approval = "person"
	}
	w.masked = w.masked[:0]
	arguments = w.body(arguments, e.argSize, &r)
	result = w.body(result, e.resSize, &r)
	w.out = appendRecord(w.out, &r, arguments, result)
	if cap(w.masked) > keptBuffer {
		w.masked = nil
	}
	w.store.next++
	w.l.sums.add(&r)
	return bodies
}

// text returns a text of others as it is kept.
func (w *writer) text(s string) string {
	if s == "" || w.l.cfg.Mask == nil {
		return clip(s, maxText)
	}
	s = clip(s, 4*maxText)
	at := len(w.masked)
	w.masked = w.l.cfg.Mask(w.masked, []byte(s))
	if got := w.masked[at:]; string(got) != s {
		s = string(got)
	}
	w.masked = w.masked[:at]
	return clip(s, maxText)
}

// body returns a body as it is kept: masked first, then cut.
func (w *writer) body(b []byte, whole int, r *Record) []byte {
	if len(b) == 0 {
		return nil
	}
	r.Cut = r.Cut || whole > len(b)
	if w.l.cfg.Mask != nil {
		at := len(w.masked)
		w.masked = w.l.cfg.Mask(w.masked, b)
		b = w.masked[at:]
	}
	if len(b) > MaxBody {
		b, r.Cut = b[:MaxBody], true
	}
	return b
}

// client reads what an MCP client says of itself, once for each.
func (w *writer) client(raw []byte) client {
	if len(raw) == 0 {
		return client{}
	}
	if c, ok := w.clients[string(raw)]; ok {
		return c
	}
	var says struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if json.Unmarshal(raw, &says) != nil {
		return client{}
	}
	c := client{clip(says.Name, 64), clip(says.Version, 32)}
	if len(w.clients) >= maxClients {
		clear(w.clients)
	}
	w.clients[string(raw)] = c
	return c
}

// maxTrace is the length of a traceparent: version, trace id, parent id, flags.
const maxTrace = 55

// traceID returns the trace id of a traceparent, "" if it is none.
func traceID(parent []byte) string {
	if len(parent) != maxTrace || parent[2] != '-' || parent[35] != '-' {
		return ""
	}
	for _, c := range parent[3:35] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return string(parent[3:35])
}
