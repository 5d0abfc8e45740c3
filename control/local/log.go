package local

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// Options configure a [Log].
type Options struct {
	Node        string // name of this node; default "local"
	Projections []control.Projection
	Now         func() time.Time // default time.Now
	// Seal enables sealing and the check of seals; nil disables both.
	Seal *SealOptions
	// Replica makes the log keep what others have ordered: it takes [Log.Put] and not
	// [Log.Append]. It must not be sealed: a seal is an entry, and would take an index of the
	// others.
	Replica bool
	// Segment is how many entries a file of the log has at least before it is closed,
	// and what they have led to is saved; default 10,000. Only a sealed log whose
	// projections are all [control.Stateful] does so.
	Segment int64
	// Log receives failures to seal.
	Log zerolog.Logger
}

// Log is a [control.Log] in files below a data directory, of one process at a time.
type Log struct {
	o    Options
	fs   journal.FS
	term int64 // of the last entry, and of the next one unless it is a replica's

	write  sync.Mutex    // held while one change is checked, written and applied
	tail   control.Block // what the tail has
	before place         // of the tail
	err    error         // why no other entry may follow

	sealer *sealer // nil without seals

	mu       sync.Mutex
	j        *journal.Journal // the tail; replaced under write too
	segments []segment        // before the tail; replaced, never changed
	last     int64            // index of the last entry that is applied
	readable int64            // index of the last durable entry: it can be read while it is applied
	changed  chan struct{}    // closed when last grows
}

var _ control.Log = (*Log)(nil)

// record is an entry in the file, without what the journal adds.
type record struct {
	Term    int64           `json:"term"`
	Time    time.Time       `json:"ts"`
	Event   string          `json:"event"`
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Payload json.RawMessage `json:"payload"`
}

func decode(id int64, line []byte) (control.Entry, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return control.Entry{}, fmt.Errorf("%s, entry %d: %w", File, id, err)
	}
	return control.Entry{Index: id, Term: r.Term, Time: r.Time, Event: r.Event, Actor: r.Actor, Target: r.Target, Payload: r.Payload}, nil
}

// Open opens or creates the log and applies every entry to the projections. While
// another process has it open, the error wraps [journal.ErrLocked]; a damaged file is
// a [*journal.DamageError], and one that does not match its seals a [*SealError].
func Open(fsys journal.FS, o Options) (*Log, error) {
	if o.Node == "" {
		o.Node = "local"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Replica && o.Seal != nil {
		return nil, errors.New("control log: a replica cannot be sealed")
	}
	if err := fsys.MkdirAll(folder); err != nil {
		return nil, fmt.Errorf("control log: %w", err)
	}
	o.Segment = cmp.Or(o.Segment, 10_000)
	l := &Log{o: o, fs: fsys, changed: make(chan struct{})}
	var c *chain
	var key ed25519.PrivateKey
	if o.Seal != nil {
		var err error
		if c, key, err = newChain(o.Seal); err != nil {
			return nil, err
		}
	}
	r := &reading{fs: fsys, chain: c, at: begin, visit: l.apply}
	err := l.resume(r)
	if err == nil {
		err = r.closed()
	}
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(fsys, File, journal.Options{First: r.before.last + 1, Prev: r.before.sum, Visit: r.tailLine})
	if err != nil {
		return nil, err
	}
	if err = r.ended(j.Last()); err == nil && c != nil {
		if err = c.end(); err == nil {
			l.sealer, err = newSealer(o.Seal, c, key)
		}
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if l.term = r.term; !o.Replica {
		l.term++ // of this run
	}
	l.j, l.segments, l.tail, l.before = j, r.segments, r.tail, r.before
	l.last, l.readable = j.Last(), j.Last()
	if c == nil {
		return l, nil
	}
	if r.pending && r.snap.Entry == j.Last() { // finish what was interrupted
		l.write.Lock()
		l.closeTail()
		l.write.Unlock()
	}
	ctx, stop := context.WithCancel(context.Background())
	l.sealer.stop = stop
	go l.keepSealed(ctx)
	l.write.Lock()
	defer l.write.Unlock()
	if l.sealer.resumed {
		o.Log.Warn().Msg("keys/" + HeadFile + " is missing: the audit goes on with the log as it is, and the log says so")
	}
	if err := l.sealStart(); err != nil { // the log can be read; the next change tries again
		l.sealFailed(err)
	}
	return l, nil
}

// resume gives the projections the state of the snapshot, if there is one that can be
// used.
func (l *Log) resume(r *reading) error {
	var key ed25519.PublicKey
	if r.chain != nil {
		if key = r.chain.key; key == nil {
			return nil // nothing was sealed yet
		}
	}
	snap, err := readSnapshot(l.fs, key)
	if p, ok := errors.AsType[*SealError](err); ok {
		l.o.Log.Warn().Err(p).Msg("the whole control log is read")
		return nil
	}
	if err != nil || snap == nil {
		return err
	}
	if ok, err := snap.restore(l.o.Projections); err != nil || !ok {
		return err
	}
	return r.locate(snap)
}

func (l *Log) apply(e control.Entry) error {
	for _, p := range l.o.Projections {
		if err := p.Apply(e); err != nil {
			return fmt.Errorf("entry %d (%s) cannot be applied: %w", e.Index, e.Event, err)
		}
	}
	return nil
}

// Append implements [control.Log].
func (l *Log) Append(ctx context.Context, c control.Change, check func() error) (control.Entry, error) {
	payload, err := c.Marshal()
	if err != nil {
		return control.Entry{}, err
	}
	if c.Event == control.SealEvent {
		return control.Entry{}, fmt.Errorf("%w: %s is reserved for seals", control.ErrInvalid, control.SealEvent)
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := ctx.Err(); err != nil {
		return control.Entry{}, err
	}
	if l.o.Replica {
		return control.Entry{}, fmt.Errorf("%w: it is a copy of a log elsewhere", control.ErrUnavailable)
	}
	if l.err != nil {
		return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, l.err)
	}
	if check != nil {
		if err := check(); err != nil {
			return control.Entry{}, err
		}
	}
	if err := l.sealStart(); err != nil {
		return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	e, err := l.commit(control.Entry{Term: l.term, Time: l.now(), Event: c.Event, Actor: c.Actor, Target: c.Target, Payload: payload})
	if err != nil {
		return control.Entry{}, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	l.sealSoon()
	return e, nil
}

func (l *Log) now() time.Time { return l.o.Now().UTC().Truncate(time.Millisecond) }

// commit writes an entry, applies it and notifies followers; write is held.
func (l *Log) commit(e control.Entry) (_ control.Entry, err error) {
	if e.Index, err = l.persist(e); err != nil {
		return e, err
	}
	return e, l.committed(e)
}

// committed applies an entry that is written, and notifies followers; write is held.
func (l *Log) committed(e control.Entry) error {
	l.tail.Extend(e)
	l.mu.Lock()
	l.readable = e.Index
	l.mu.Unlock()
	if err := l.apply(e); err != nil {
		l.err = err
		return err
	}
	l.mu.Lock()
	l.last, l.term = e.Index, e.Term
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	return nil
}

// recover cuts a failed journal to its durable part, so that a refused entry does
// not reappear.
func (l *Log) recover() error {
	if l.j.Err() == nil {
		return nil
	}
	_, err := l.j.Recover()
	return err
}

// persist writes an entry and waits for the disk.
func (l *Log) persist(e control.Entry) (int64, error) {
	if err := l.recover(); err != nil {
		return 0, err
	}
	raw, err := json.Marshal(record{e.Term, e.Time, e.Event, e.Actor, e.Target, e.Payload})
	if err != nil {
		return 0, err
	}
	id, err := l.j.Append(raw[1 : len(raw)-1])
	if err != nil {
		return 0, err
	}
	// Not the caller's context: the outcome must not stay unknown.
	return id, l.j.Sync(context.Background(), id)
}

// Read implements [control.Log].
func (l *Log) Read(from int64, visit func(control.Entry) error) error {
	l.mu.Lock()
	last := l.readable
	l.mu.Unlock()
	from = max(from, 1)
	line := func(id int64, line []byte) error {
		if id > last {
			return fs.SkipAll
		}
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		from = id + 1
		return visit(e)
	}
	var err error
	for err == nil && from <= last {
		err = l.readSome(from, line)
	}
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// readSome reads the file that has an entry, from that entry on.
func (l *Log) readSome(from int64, line journal.Visit) error {
	l.mu.Lock()
	j, segments := l.j, l.segments
	l.mu.Unlock()
	if s, ok := holding(segments, from); ok {
		return journal.ReadPart(l.fs, s.name(), from, line)
	}
	var visited error
	err := j.Read(from, func(id int64, text []byte) error {
		visited = line(id, text)
		return visited
	})
	if err == nil || visited != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if j != l.j { // it was closed, and is a segment now
		return nil
	}
	return err
}

// holding returns the segment that has an entry.
func holding(segments []segment, index int64) (segment, bool) {
	i, _ := slices.BinarySearchFunc(segments, index, func(s segment, index int64) int { return cmp.Compare(s.Last, index) })
	if i < len(segments) && segments[i].First <= index {
		return segments[i], true
	}
	return segment{}, false
}

// Block returns the segment that an entry is in, false for none.
func (l *Log) Block(index int64) (control.Block, bool) {
	l.mu.Lock()
	segments := l.segments
	l.mu.Unlock()
	s, ok := holding(segments, index)
	return s.Block, ok
}

// Follow implements [control.Log].
func (l *Log) Follow(ctx context.Context, from int64, visit func(control.Entry) error) error {
	return control.Follow(ctx, from, l.Read, visit, func() (int64, <-chan struct{}) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.last, l.changed
	})
}

// State implements [control.Log].
func (l *Log) State() control.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return control.State{Last: l.last, Term: l.term, Leader: l.o.Node, Nodes: 1, Quorum: l.j.Err() == nil}
}

// Close writes the last seal and closes the file.
func (l *Log) Close() error {
	var err error
	if l.sealer != nil {
		err = l.endSeals()
	}
	l.write.Lock()
	defer l.write.Unlock()
	return errors.Join(err, l.j.Close())
}
