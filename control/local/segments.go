package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// The log is a row of files that continue each other: segments, which never change
// again, and the file to which entries are appended, which becomes the next segment
// once it is large enough.
const (
	folder = "control"
	// File is the name of the file, below the data directory, that the newest entries
	// of the control log are appended to.
	File = folder + "/log.jsonl"
	// Segments is the folder of the entries before them.
	Segments = folder + "/segments"
)

// segment is a file of Segments.
type segment struct {
	control.Block
	Size int64  // bytes
	Sum  string // of its last record
}

func (s segment) name() string { return segmentName(s.First) }

// segmentName returns the name of the segment that begins with an entry.
func segmentName(first int64) string { return fmt.Sprintf("%s/%012d.jsonl", Segments, first) }

// found is a segment in the folder.
type found struct {
	first, size int64
}

// listSegments returns the segments in the folder, in order, and leaves other files
// alone.
func listSegments(fsys journal.FS) ([]found, error) {
	names, err := fsys.ReadDir(Segments)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("control log: %w", err)
	}
	var out []found
	for _, n := range names {
		digits, ok := strings.CutSuffix(n.Name(), ".jsonl")
		first, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || first < 1 || path.Join(Segments, n.Name()) != segmentName(first) {
			continue
		}
		info, err := n.Info()
		if err != nil {
			return nil, fmt.Errorf("control log: %w", err)
		}
		out = append(out, found{first, info.Size()})
	}
	slices.SortFunc(out, func(a, b found) int { return cmp.Compare(a.first, b.first) })
	return out, nil
}

// place is the position of a reader of the log: behind an entry.
type place struct {
	last int64
	sum  string // of that entry
}

var begin = place{0, journal.NoSum}

// scanSegment reads a segment that continues the log at a place, and checks every bit
// of it.
func scanSegment(fsys journal.FS, first int64, at place, visit journal.Visit) (segment, error) {
	name := segmentName(first)
	if first != at.last+1 {
		return segment{}, missing(at.last+1, first-1)
	}
	var s segment
	rep, err := journal.ScanAfter(fsys, name, at.sum, func(id int64, line []byte) error {
		if id != first && s.First == 0 {
			return &journal.DamageError{File: name, Entry: first, Reason: fmt.Sprintf("it begins with entry %d", id)}
		}
		e, err := decode(id, line)
		if err != nil {
			return err
		}
		s.Extend(e)
		return visit(id, line)
	})
	switch {
	case err != nil:
		return s, err
	case rep.Torn > 0 || rep.Size == 0:
		return s, &journal.DamageError{File: name, Entry: max(rep.Last+1, first), Offset: rep.Size, Reason: "it was cut short"}
	}
	s.Size, s.Sum = rep.Size, rep.Sum()
	return s, nil
}

// missing reports that entries are not there.
func missing(first, last int64) *SealError {
	return &SealError{File: Segments, Entry: first, Problem: fmt.Sprintf("entries %d to %d are missing: a segment of the log was removed", first, last), Remedy: remedyRestore}
}

// Scan reads the log below a data directory, even while another process has it open,
// and verifies every bit of it. It visits nothing if there is no log.
func Scan(fsys journal.FS, visit func(control.Entry) error) (journal.Report, error) {
	rep, err := scanLines(fsys, func(id int64, line []byte) error {
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

// scanLines reads segments and tail as one. The report is of both; without a file the
// error wraps [fs.ErrNotExist].
func scanLines(fsys journal.FS, visit journal.Visit) (whole journal.Report, err error) {
	at, size := begin, int64(0)
	for {
		all, err := listSegments(fsys)
		if err != nil {
			return journal.Report{}, err
		}
		for _, f := range all {
			if f.first <= at.last { // read before
				continue
			}
			s, err := scanSegment(fsys, f.first, at, visit)
			if err != nil {
				return journal.Report{First: 1, Last: max(s.Last, at.last), Size: size}, err
			}
			at, size = place{s.Last, s.Sum}, size+s.Size
		}
		first, err := journal.First(fsys, File)
		gone := errors.Is(err, fs.ErrNotExist)
		if err != nil && !gone {
			return journal.Report{First: 1, Last: at.last, Size: size}, err
		}
		if gone || (first != 0 && first != at.last+1) {
			again, err := listSegments(fsys)
			if err != nil {
				return journal.Report{}, err
			}
			if len(again) > len(all) { // it has become a segment meanwhile
				continue
			}
			switch {
			case gone && len(all) == 0:
				return journal.Report{}, fs.ErrNotExist
			case gone: // a crash can leave it so
				return journal.Report{First: 1, Last: at.last, Size: size}, nil
			case first > at.last:
				return journal.Report{First: 1, Last: at.last, Size: size}, missing(at.last+1, first-1)
			}
		}
		rep, err := journal.ScanAfter(fsys, File, at.sum, visit)
		if rep.Size == 0 {
			rep.Last = at.last
		}
		rep.First, rep.Size = 1, rep.Size+size
		return rep, err
	}
}
