package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// AuditFile answers a query from the files of a data directory, even while another
// process has them open. It verifies every bit that it reads, which is no more than the
// query needs.
func AuditFile(ctx context.Context, fsys journal.FS, q control.Query) ([]control.Audit, error) {
	for range patience {
		f, err := openFiles(fsys)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return control.AuditLog(ctx, f, q)
	}
	return nil, errMoved
}

// files are the files of a log at one moment.
type files struct {
	fs       journal.FS
	segments []segment
	tail     []control.Entry
	last     int64
}

// errMoved reports that the tail has become a segment meanwhile.
var errMoved = errors.New("the control log closes segments faster than it can be read: try again")

// openFiles reads the tail, and of the segments no more than the snapshot tells.
func openFiles(fsys journal.FS) (*files, error) {
	f := &files{fs: fsys}
	all, err := listSegments(fsys)
	if err != nil {
		return nil, err
	}
	at := begin
	for _, s := range all {
		f.segments = append(f.segments, segment{Block: control.Block{First: s.first}, Size: s.size})
	}
	if n := len(all); n > 0 {
		if at, err = f.known(); err != nil {
			return nil, err
		}
	}
	f.last = at.last
	_, err = journal.ScanAfter(fsys, File, at.sum, func(id int64, line []byte) error {
		if id != f.last+1 {
			return missing(f.last+1, id-1)
		}
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		f.last = id
		f.tail = append(f.tail, e)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		if again, lerr := listSegments(fsys); lerr != nil || len(again) > len(all) {
			return nil, errors.Join(lerr, errMoved)
		}
	}
	return f, err
}

// known completes the list of segments: from the snapshot, and where that says nothing
// from the segment. It returns the place behind the last one.
func (f *files) known() (at place, err error) {
	snap, err := readSnapshot(f.fs, nil)
	if _, unusable := errors.AsType[*SealError](err); err != nil && !unusable {
		return at, err
	}
	var told []segment
	if snap != nil {
		told = snap.segments()
	}
	at = begin
	for i, s := range f.segments {
		if s.First != at.last+1 {
			return at, missing(at.last+1, s.First-1)
		}
		if i < len(told) && told[i].First == s.First {
			if told[i].Size != s.Size {
				return at, &journal.DamageError{File: s.name(), Entry: s.First, Reason: fmt.Sprintf("it has %d bytes and had %d when it was closed", s.Size, told[i].Size)}
			}
			f.segments[i] = told[i]
		} else if f.segments[i], err = scanSegment(f.fs, s.First, at, func(int64, []byte) error { return nil }); err != nil {
			return at, err
		}
		at = place{f.segments[i].Last, f.segments[i].Sum}
	}
	return at, nil
}

// State implements [control.Reader].
func (f *files) State() control.State { return control.State{Last: f.last} }

// Block returns the segment that an entry is in, false for none.
func (f *files) Block(index int64) (control.Block, bool) {
	s, ok := holding(f.segments, index)
	return s.Block, ok
}

// Read implements [control.Reader].
func (f *files) Read(from int64, visit func(control.Entry) error) error {
	err := f.read(from, visit)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

func (f *files) read(from int64, visit func(control.Entry) error) error {
	for {
		s, ok := holding(f.segments, from)
		if !ok {
			break
		}
		err := journal.ReadPart(f.fs, s.name(), from, func(id int64, line []byte) error {
			if id == s.Last && journal.Sum(line) != s.Sum {
				return &journal.DamageError{File: s.name(), Entry: id, Reason: "the segment was chained again"}
			}
			e, err := decode(id, line)
			if err != nil {
				return err
			}
			return visit(e)
		})
		if err != nil {
			return err
		}
		from = s.Last + 1
	}
	for _, e := range f.tail {
		if e.Index < from {
			continue
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}
