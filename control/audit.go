package control

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"
)

// SealEvent is the event of seals: entries that vouch for all entries before them.
// Only the log itself writes them.
const SealEvent = "log_sealed"

// Query selects entries. Zero fields match all.
type Query struct {
	Since, Until time.Time // [Since, Until)
	Actor        string
	Target       string
	Event        string // a name, or a pattern as in device_*
	After        int64  // index
	Before       int64  // index; 0 for none
	Limit        int    // only the last ones; 0 for all
	Seals        bool   // include seals; without it only Event selects them
}

// Matches reports whether the query selects an entry, apart from Limit.
func (q Query) Matches(e Entry) bool {
	if e.Index <= q.After || (q.Before > 0 && e.Index >= q.Before) {
		return false
	}
	if (!q.Since.IsZero() && e.Time.Before(q.Since)) || (!q.Until.IsZero() && !e.Time.Before(q.Until)) {
		return false
	}
	if (q.Actor != "" && e.Actor != q.Actor) || (q.Target != "" && e.Target != q.Target) {
		return false
	}
	return q.selects(e.Event)
}

// selects reports whether the query selects entries of an event.
func (q Query) selects(event string) bool {
	if q.Event == "" {
		return q.Seals || event != SealEvent
	}
	ok, err := path.Match(q.Event, event)
	return err == nil && ok
}

// maxAudit bounds what a query without a limit returns.
const maxAudit = 100_000

// ErrTooMany says that a query matches more entries than fit into one answer.
var ErrTooMany = errors.New("more than 100,000 entries match: narrow the query, or give it a limit")

// Block is a part of a log, and what is known of its entries without reading them.
type Block struct {
	First, Last  int64     // indexes
	Since, Until time.Time // of the entries, both included; zero for unknown
	Events       []string  // that occur; nil for unknown
}

// Extend makes the block know of another entry.
func (b *Block) Extend(e Entry) {
	const maxEvents = 64 // beyond, every event may occur
	if b.First == 0 {
		b.First, b.Since, b.Until, b.Events = e.Index, e.Time, e.Time, []string{}
	}
	b.Last = e.Index
	if e.Time.Before(b.Since) {
		b.Since = e.Time
	}
	if e.Time.After(b.Until) {
		b.Until = e.Time
	}
	if b.Events == nil || slices.Contains(b.Events, e.Event) {
		return
	}
	if b.Events = append(b.Events, e.Event); len(b.Events) > maxEvents {
		b.Events = nil
	}
}

// mayMatch reports whether the query can select an entry of a block.
func (q Query) mayMatch(b Block) bool {
	if b.Last <= q.After || (q.Before > 0 && b.First >= q.Before) {
		return false
	}
	if !b.Since.IsZero() && ((!q.Since.IsZero() && b.Until.Before(q.Since)) || (!q.Until.IsZero() && !b.Since.Before(q.Until))) {
		return false
	}
	return b.Events == nil || slices.ContainsFunc(b.Events, q.selects)
}

// Reader is the part of a [Log] that a query needs.
type Reader interface {
	Read(from int64, visit func(Entry) error) error
	State() State
}

// blocked is a [Reader] that knows something of parts of itself.
type blocked interface {
	// Block returns the part that an index is in; false without knowledge.
	Block(index int64) (Block, bool)
}

// AuditLog answers a query from a log. It begins with the newest entries and reads
// until the limit is reached, so the cost of a page does not depend on what is before
// it. It ends with ctx.
func AuditLog(ctx context.Context, l Reader, q Query) ([]Audit, error) {
	limit := min(q.Limit, maxAudit)
	last := l.State().Last
	if q.Before > 0 {
		last = min(last, q.Before-1)
	}
	var pages [][]Audit // the newest first
	known, _ := l.(blocked)
	found, size := 0, int64(firstRead)
	for last > q.After && (limit <= 0 || found < limit) {
		first := max(last-size+1, q.After+1, 1)
		if known != nil {
			if b, ok := known.Block(last); ok {
				if !q.mayMatch(b) {
					last = b.First - 1
					continue
				}
				first = max(first, b.First)
			}
		}
		page := []Audit{}
		err := l.Read(first, func(e Entry) error {
			switch {
			case e.Index > last:
				return fs.SkipAll
			case q.Matches(e):
				page = append(page, e.Audit())
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		if found += len(page); limit <= 0 && found > maxAudit {
			return nil, ErrTooMany
		}
		pages = append(pages, page)
		last, size = first-1, min(2*size, mostRead)
	}
	slices.Reverse(pages)
	out := slices.Concat(pages...)
	if out == nil {
		out = []Audit{}
	}
	if limit > 0 && len(out) > limit {
		out = out[len(out)-limit:]
	}
	return out, nil
}

// How many entries a query reads at once: first, and at most.
const (
	firstRead = 256
	mostRead  = 8192
)

// Forward passes every audit event from an index on to a sink, in order, until ctx
// ends or the sink fails, whose error it returns: it sends a copy of the audit
// elsewhere. No event is lost between two calls: the next one begins after the last
// event that the sink accepted.
func Forward(ctx context.Context, l Log, from int64, sink func(Audit) error) (next int64, err error) {
	next = from
	err = l.Follow(ctx, from, func(e Entry) error {
		if err := sink(e.Audit()); err != nil {
			return err
		}
		next = e.Index + 1
		return nil
	})
	return next, err
}
