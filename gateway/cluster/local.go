package cluster

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// The log's place below the data directory.
const (
	folder = "control"
	// File is the name of the control log below the data directory.
	File = folder + "/log.jsonl"
)

// Options says how to open a [Local] log.
type Options struct {
	Node        string // name of this node; default "local"
	Projections []control.Projection
	Now         func() time.Time // default time.Now
	// Seal has the log sealed and its seals checked. nil: it is not.
	Seal *SealOptions
	// Log is told of seals that could not be made.
	Log zerolog.Logger
}

// Local is a [control.Log] in one file, of one process at a time.
type Local struct {
	o    Options
	term int64

	write sync.Mutex // held while one change is checked, written and applied
	j     *journal.Journal
	err   error // an entry could not be applied: nothing may follow

	sealer *sealer // nil without seals

	mu       sync.Mutex
	last     int64         // index of the last entry that is applied
	readable int64         // of the last that is durable: whoever hears of it while it is applied can read it
	changed  chan struct{} // closed when last grows
}

var _ control.Log = (*Local)(nil)

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

// Open opens or creates the log and applies every entry to the projections.
// While another process has it open, the error wraps [journal.ErrLocked]; a file
// that is not as it was written is a [*journal.DamageError], and one that is not what
// was sealed a [*SealError].
func Open(fsys journal.FS, o Options) (*Local, error) {
	if o.Node == "" {
		o.Node = "local"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := fsys.MkdirAll(folder); err != nil {
		return nil, fmt.Errorf("control log: %w", err)
	}
	l := &Local{o: o, changed: make(chan struct{})}
	var c *chain
	var key ed25519.PrivateKey
	if o.Seal != nil {
		var err error
		if c, key, err = newChain(o.Seal); err != nil {
			return nil, err
		}
	}
	j, err := journal.Open(fsys, File, journal.Options{Visit: func(id int64, line []byte) error {
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		if c != nil {
			if err := c.visit(e, journal.Sum(line)); err != nil {
				return err
			}
		}
		l.term = e.Term
		return l.apply(e)
	}})
	if err != nil {
		return nil, err
	}
	l.term++ // of this run
	l.j, l.last, l.readable = j, j.Last(), j.Last()
	if c == nil {
		return l, nil
	}
	if err = c.end(); err == nil {
		l.sealer, err = newSealer(o.Seal, c, key)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
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

func (l *Local) apply(e control.Entry) error {
	for _, p := range l.o.Projections {
		if err := p.Apply(e); err != nil {
			return fmt.Errorf("entry %d (%s) cannot be applied: %w", e.Index, e.Event, err)
		}
	}
	return nil
}

// Append implements [control.Log].
func (l *Local) Append(ctx context.Context, c control.Change, check func() error) (control.Entry, error) {
	payload, err := c.Marshal()
	if err != nil {
		return control.Entry{}, err
	}
	if c.Event == SealEvent {
		return control.Entry{}, fmt.Errorf("%w: %s is for seals alone", control.ErrInvalid, SealEvent)
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := ctx.Err(); err != nil {
		return control.Entry{}, err
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

func (l *Local) now() time.Time { return l.o.Now().UTC().Truncate(time.Millisecond) }

// commit writes an entry, has it applied and tells those who follow; write is held.
func (l *Local) commit(e control.Entry) (_ control.Entry, err error) {
	if e.Index, err = l.persist(e); err != nil {
		return e, err
	}
	l.mu.Lock()
	l.readable = e.Index
	l.mu.Unlock()
	if err := l.apply(e); err != nil {
		l.err = err
		return e, err
	}
	l.mu.Lock()
	l.last = e.Index
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	return e, nil
}

// recover cuts a journal that has failed to what was durable, so that what was
// refused does not come back.
func (l *Local) recover() error {
	if l.j.Err() == nil {
		return nil
	}
	_, err := l.j.Recover()
	return err
}

// persist writes an entry and waits for the disk.
func (l *Local) persist(e control.Entry) (int64, error) {
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
	// Not the caller's context: whether it happened must not be left open.
	return id, l.j.Sync(context.Background(), id)
}

// Read implements [control.Log].
func (l *Local) Read(from int64, visit func(control.Entry) error) error {
	l.mu.Lock()
	last := l.readable
	l.mu.Unlock()
	err := l.j.Read(from, func(id int64, line []byte) error {
		if id > last {
			return errEnough
		}
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		return visit(e)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

var errEnough = errors.New("enough")

// Follow implements [control.Log].
func (l *Local) Follow(ctx context.Context, from int64, visit func(control.Entry) error) error {
	for {
		l.mu.Lock()
		last, changed := l.last, l.changed
		l.mu.Unlock()
		if from <= last {
			err := l.Read(from, func(e control.Entry) error {
				if err := ctx.Err(); err != nil {
					return err
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
		}
	}
}

// State implements [control.Log].
func (l *Local) State() control.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return control.State{Last: l.last, Term: l.term, Leader: l.o.Node, Nodes: 1, Quorum: l.j.Err() == nil}
}

// Close makes the last seal and lets go of the file.
func (l *Local) Close() error {
	var err error
	if l.sealer != nil {
		err = l.endSeals()
	}
	l.write.Lock()
	defer l.write.Unlock()
	return errors.Join(err, l.j.Close())
}

// Scan reads the log below a data directory, whoever has it open, and checks
// every bit of it. Without a log there are no entries.
func Scan(fsys journal.FS, visit func(control.Entry) error) (journal.Report, error) {
	rep, err := journal.Scan(fsys, File, func(id int64, line []byte) error {
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		return visit(e)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return journal.Report{}, nil
	}
	return rep, err
}
