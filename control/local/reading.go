package local

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// reading is a reading of the log from the newest snapshot on, or from the first entry.
type reading struct {
	fs    journal.FS
	chain *chain // nil without seals
	// visit gets the entries behind the snapshot.
	visit func(control.Entry) error

	snap     *snapshot // nil: from the first entry on
	segments []segment
	at       place // behind the entries that were read
	term     int64
	tail     control.Block // what the tail has
	// pending reports that the tail is to become the newest segment of the snapshot: it
	// was interrupted.
	pending bool
	before  place // the tail
}

// locate begins behind the snapshot. It checks that every segment that the snapshot
// names is there and has its length, and reads none of them.
func (r *reading) locate(snap *snapshot) error {
	all, err := listSegments(r.fs)
	if err != nil {
		return err
	}
	sizes := make(map[int64]int64, len(all))
	for _, f := range all {
		sizes[f.first] = f.size
	}
	list := snap.segments()
	for i, s := range list {
		size, there := sizes[s.First]
		if !there && i == len(list)-1 {
			first, err := journal.First(r.fs, File)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.pending = first == s.First
			there, size = r.pending, s.Size
		}
		switch {
		case !there:
			return missing(s.First, s.Last)
		case size != s.Size:
			return &SealError{File: s.name(), Entry: s.First, Problem: fmt.Sprintf("the segment has %d bytes and had %d when it was closed", size, s.Size), Remedy: remedyRestore}
		}
	}
	if r.pending {
		list, r.before = list[:len(list)-1], snap.before()
	}
	r.snap, r.segments, r.at, r.term = snap, list, place{snap.Entry, snap.Sum}, snap.Term
	if r.chain != nil {
		return r.chain.resume(r)
	}
	return nil
}

// line visits a record.
func (r *reading) line(id int64, line []byte) error {
	e, err := decode(id, line)
	if err != nil {
		return err
	}
	sum := journal.Sum(line)
	if id <= r.at.last { // of a pending segment
		if id == r.at.last && sum != r.at.sum {
			return notOfSnapshot(id)
		}
		return nil
	}
	if r.chain != nil {
		if err := r.chain.visit(e, sum); err != nil {
			return err
		}
	}
	r.at, r.term = place{id, sum}, e.Term
	return r.visit(e)
}

// closed reads the segments behind the snapshot; with one that is in use there are
// none.
func (r *reading) closed() error {
	all, err := listSegments(r.fs)
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.first <= r.at.last {
			if r.snap == nil || len(r.segments) == 0 || f.first > r.segments[len(r.segments)-1].First {
				return &SealError{File: segmentName(f.first), Entry: f.first, Problem: "the segment does not continue the ones before it", Remedy: remedyRestore}
			}
			continue
		}
		s, err := scanSegment(r.fs, f.first, r.at, r.line)
		if err != nil {
			return err
		}
		r.segments = append(r.segments, s)
	}
	if !r.pending {
		r.before = r.at
	}
	first, err := journal.First(r.fs, File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if first > r.before.last+1 {
		return missing(r.before.last+1, first-1)
	}
	return nil
}

// tailLine visits a record of the tail.
func (r *reading) tailLine(id int64, line []byte) error {
	if err := r.line(id, line); err != nil {
		return err
	}
	e, err := decode(id, line)
	if err == nil {
		r.tail.Extend(e)
	}
	return err
}

// ended checks the tail, whose last entry has that index.
func (r *reading) ended(last int64) error {
	if r.pending && last < r.snap.Entry {
		return broken(last+1, remedyRestore, "the log was cut: it ends here, and %s was made at entry %d", StateFile, r.snap.Entry)
	}
	return nil
}

// sumOf returns the sum of an entry at or before the place, "" if it is not there.
func (r *reading) sumOf(entry int64) (sum string, err error) {
	if entry == r.at.last {
		return r.at.sum, nil
	}
	name := File // of a pending segment
	for _, s := range r.segments {
		if entry <= s.Last {
			name = s.name()
			break
		}
	}
	err = journal.ReadPart(r.fs, name, entry, func(id int64, line []byte) error {
		if id == entry {
			sum = journal.Sum(line)
		}
		return fs.SkipAll
	})
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return sum, err
}
