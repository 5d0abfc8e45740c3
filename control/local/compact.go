package local

import (
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// maxTail is how many bytes the tail has at least before it is closed, whatever the
// number of its entries.
const maxTail = 16 << 20

// compactWhenDue closes the tail if it is large enough: it becomes a segment, and the
// snapshot says what it has led to. write is held, and the last entry is a seal that the
// head file names. A failure costs nothing but a slower start; the next seal tries
// again.
func (l *Log) compactWhenDue() {
	n := l.j.Last() - l.before.last
	if n < l.o.Segment && (n < 2 || l.j.Size() < maxTail) {
		return
	}
	done, err := l.snapshot()
	if err != nil {
		l.o.Log.Error().Err(err).Msg("the control log could not be compacted; the next seal tries again")
	}
	if done {
		l.closeTail()
	}
}

// snapshot writes what the entries have led to; false without a projection's state.
func (l *Log) snapshot() (done bool, err error) {
	last, sum := l.j.Head()
	s := &snapshot{Format: stateFormat, Entry: last, Sum: sum, Term: l.term, Seals: l.sealer.seals}
	if ok, err := s.save(l.o.Projections); err != nil || !ok {
		return false, err
	}
	for _, seg := range append(l.segments[:len(l.segments):len(l.segments)], l.newest()) {
		s.Segments = append(s.Segments, seg.record())
	}
	return true, s.write(l.fs, l.sealer.key)
}

// newest returns the segment that the tail becomes.
func (l *Log) newest() segment {
	_, sum := l.j.Head()
	return segment{l.tail, l.j.Size(), sum}
}

// closeTail makes the tail, which the snapshot names, a segment, and begins another.
// write is held. If a step fails, the tail stays what it is.
func (l *Log) closeTail() {
	seg := l.newest()
	j, err := l.nextTail(seg)
	if err != nil {
		l.o.Log.Error().Err(err).Msg("the control log could not be compacted; the next seal tries again")
		return
	}
	old := l.j
	l.mu.Lock()
	l.j, l.segments = j, append(l.segments[:len(l.segments):len(l.segments)], seg)
	l.mu.Unlock()
	l.tail, l.before = control.Block{}, place{seg.Last, seg.Sum}
	if err := old.Close(); err != nil {
		l.o.Log.Error().Err(err).Msg("a segment of the control log could not be closed")
	}
}

// nextTail moves the tail and makes an empty one. A crash leaves the tail in its place,
// or as a segment with or without another tail: the next start goes on with each.
func (l *Log) nextTail(seg segment) (*journal.Journal, error) {
	if err := l.fs.MkdirAll(Segments); err != nil {
		return nil, err
	}
	if err := l.fs.SyncDir(folder); err != nil {
		return nil, err
	}
	if err := l.fs.Rename(File, seg.name()); err != nil {
		return nil, err
	}
	err := l.fs.SyncDir(Segments) // before the folder that it has left
	var j *journal.Journal
	if err == nil {
		j, err = journal.Open(l.fs, File, journal.Options{First: seg.Last + 1, Prev: seg.Sum})
	}
	if err == nil {
		err = l.fs.SyncDir(folder)
	}
	if err == nil {
		return j, nil
	}
	var undo error
	if j != nil {
		undo = errors.Join(j.Close(), l.fs.Remove(File))
	}
	if undo == nil {
		undo = l.fs.Rename(seg.name(), File)
	}
	if undo == nil {
		undo = errors.Join(l.fs.SyncDir(folder), l.fs.SyncDir(Segments))
	}
	if undo != nil { // nobody knows where the next entry would be after a crash
		l.err = fmt.Errorf("the log could not be moved back: %w; start yaya again", undo)
	}
	return nil, errors.Join(err, undo)
}
