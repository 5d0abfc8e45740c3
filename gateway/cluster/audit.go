package cluster

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// Query says which entries are wanted. Zero fields want all.
type Query struct {
	Since, Until time.Time // [Since, Until)
	Actor        string
	Target       string
	Event        string // a name, or a pattern as in device_*
	After        int64  // index
	Limit        int    // the last so many; 0 for all
	Seals        bool   // seals, too; without it only an Event gets them
}

// Matches reports whether an entry is wanted, apart from Limit.
func (q Query) Matches(e control.Entry) bool {
	if e.Index <= q.After || (!q.Since.IsZero() && e.Time.Before(q.Since)) || (!q.Until.IsZero() && !e.Time.Before(q.Until)) {
		return false
	}
	if (q.Actor != "" && e.Actor != q.Actor) || (q.Target != "" && e.Target != q.Target) {
		return false
	}
	if q.Event == "" {
		return q.Seals || e.Event != SealEvent
	}
	ok, err := path.Match(q.Event, e.Event)
	return err == nil && ok
}

// maxAudit bounds what a query without a limit returns.
const maxAudit = 100_000

// ErrTooMany says that a query matches more entries than fit into one answer.
var ErrTooMany = errors.New("more than 100,000 entries match: narrow the query, or give it a limit")

// AuditFile answers a query from the file of a data directory, whoever has it
// open. Every bit that is read has been checked.
func AuditFile(fsys journal.FS, q Query) ([]control.Audit, error) {
	return collect(q, func(visit func(control.Entry) error) error {
		_, err := Scan(fsys, visit)
		return err
	})
}

// AuditLog answers a query from a log.
func AuditLog(l control.Log, q Query) ([]control.Audit, error) {
	return collect(q, func(visit func(control.Entry) error) error { return l.Read(q.After+1, visit) })
}

func collect(q Query, read func(visit func(control.Entry) error) error) ([]control.Audit, error) {
	out := []control.Audit{}
	q.Limit = min(q.Limit, maxAudit)
	err := read(func(e control.Entry) error {
		if !q.Matches(e) {
			return nil
		}
		if q.Limit <= 0 && len(out) == maxAudit {
			return ErrTooMany
		}
		out = append(out, e.Audit())
		if q.Limit > 0 && len(out) >= 2*q.Limit { // keep the last of them, without moving each
			out = append(out[:0], out[len(out)-q.Limit:]...)
		}
		return nil
	})
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[len(out)-q.Limit:]
	}
	return out, err
}

// Forward hands every audit event from an index on to a sink, in order, until ctx
// ends or the sink fails, whose error it returns: the queue from which events are
// anchored elsewhere (W-47). Nothing is lost between two calls: the next one begins
// behind what the sink has taken.
func Forward(ctx context.Context, l control.Log, from int64, sink func(control.Audit) error) (next int64, err error) {
	next = from
	err = l.Follow(ctx, from, func(e control.Entry) error {
		if err := sink(e.Audit()); err != nil {
			return err
		}
		next = e.Index + 1
		return nil
	})
	return next, err
}

// Tail reads the log of a data directory from its first entry on, and then what is
// appended, whoever has it open. It is not safe for concurrent use.
type Tail struct{ t *journal.Tail }

// NewTail returns a tail that begins with the first entry.
func NewTail(fsys journal.FS) Tail { return Tail{journal.NewTail(fsys, File)} }

// Next visits the entries that were appended since the last call. A log that is
// damaged, or was cut or replaced meanwhile, is a [*journal.DamageError].
func (t Tail) Next(visit func(control.Entry) error) error {
	return t.t.Next(func(id int64, line []byte) error {
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		return visit(e)
	})
}
