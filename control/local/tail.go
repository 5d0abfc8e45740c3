package local

import (
	"errors"
	"slices"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// Tail reads the log of a data directory, and then new entries, even while another
// process has it open. It is not safe for concurrent use.
type Tail struct {
	fs   journal.FS
	t    *journal.Tail
	skip int64 // entries up to this one are not visited
	// first is the first entry of the file in which t is, 0 between two files: the file
	// that new entries are appended to becomes a segment.
	first int64
}

// NewTail returns a tail that begins with the first entry.
func NewTail(fsys journal.FS) *Tail { return tailAfter(fsys, begin) }

func tailAfter(fsys journal.FS, at place) *Tail {
	return &Tail{fs: fsys, t: journal.NewTailAfter(fsys, File, at.last, at.sum)}
}

// Resume returns a tail that begins behind the snapshot, whose state it gives to the
// projections; with the first entry without a snapshot for all of them. It does not
// check who has made the snapshot.
func Resume(fsys journal.FS, to ...control.Projection) (*Tail, error) {
	snap, err := readSnapshot(fsys, nil)
	if _, unusable := errors.AsType[*SealError](err); unusable || (err == nil && snap == nil) {
		return NewTail(fsys), nil
	}
	if err != nil {
		return nil, err
	}
	all, err := listSegments(fsys)
	if err != nil {
		return nil, err
	}
	if ok, err := snap.restore(to); err != nil || !ok {
		return NewTail(fsys), err
	}
	at := place{snap.Entry, snap.Sum}
	if newest := snap.Segments[len(snap.Segments)-1]; !has(all, newest.First) { // it is not closed yet
		at = snap.before()
	}
	t := tailAfter(fsys, at)
	t.skip = snap.Entry
	return t, nil
}

func has(all []found, first int64) bool {
	return slices.ContainsFunc(all, func(f found) bool { return f.first == first })
}

// Next visits the entries that were appended since the last call. For a log that is
// damaged, or was cut or replaced meanwhile, it returns a [*journal.DamageError].
func (t *Tail) Next(visit func(control.Entry) error) error {
	line := func(id int64, line []byte) error {
		if id <= t.skip {
			return nil
		}
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		return visit(e)
	}
	for {
		last, _ := t.t.Head()
		first := t.first
		if first == 0 {
			first = last + 1
		}
		all, err := listSegments(t.fs)
		if err != nil {
			return err
		}
		closed := has(all, first)
		if closed {
			t.t.Renamed(segmentName(first))
		}
		err = t.t.Next(line)
		at, sum := t.t.Head()
		if at > last {
			t.first = first
		}
		switch {
		case err == nil && !closed:
			return nil
		case err == nil && at < first: // nothing of the segment is there
			return &journal.DamageError{File: segmentName(first), Entry: first, Reason: "it was cut short"}
		case err == nil:
			t.t, t.first = journal.NewTailAfter(t.fs, File, at, sum), 0
			continue
		}
		if _, damaged := errors.AsType[*journal.DamageError](err); !damaged || closed {
			return err
		}
		again, lerr := listSegments(t.fs)
		if lerr != nil || !has(again, first) { // else it has become a segment meanwhile
			return errors.Join(err, lerr)
		}
	}
}
