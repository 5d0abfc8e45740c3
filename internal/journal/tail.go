package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Tail reads a file that another process may be appending to. It checks the chain
// from the first record on, and remembers where it is. It is not safe for
// concurrent use.
type Tail struct {
	fs   FS
	name string
	off  int64 // where the next record begins
	last int64 // id of the record before it, 0 for none
	sum  string
}

// NewTail returns a tail that begins with the first record.
func NewTail(fsys FS, name string) *Tail { return &Tail{fs: fsys, name: name, sum: NoSum} }

// NewTailAfter returns a tail of a file that continues another, whose last record has
// that id and that sum.
func NewTailAfter(fsys FS, name string, last int64, sum string) *Tail {
	return &Tail{fs: fsys, name: name, last: last, sum: sum}
}

// Renamed says that the file has another name now.
func (t *Tail) Renamed(name string) { t.name = name }

// Head returns the id and the sum of the last record that was visited.
func (t *Tail) Head() (last int64, sum string) { return t.last, t.sum }

// Next visits the records that were appended since the last call; without a file
// there are none yet. A record that is still being written is left for the next
// call. A file that was cut, replaced or removed since is a [*DamageError].
func (t *Tail) Next(visit Visit) (err error) {
	f, err := t.fs.Open(t.name, ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		if t.off == 0 {
			return nil
		}
		return t.damage("the file is gone")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil || size == t.off {
		return err
	}
	if size < t.off {
		return t.damage("the file was cut while it was read")
	}
	lines := newLineReader(f, t.off, size)
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errTorn):
			return nil
		case errors.Is(err, errLong):
			return t.damage(err.Error())
		case err != nil:
			return err
		}
		id, sum, reason := check(line, t.sum)
		switch {
		case reason != "":
			return t.damage(reason)
		case t.last > 0 && id != t.last+1:
			return t.damage(fmt.Sprintf("it has the id %d", id))
		}
		if err := visit(id, line); err != nil {
			return err
		}
		t.last, t.sum = id, sum
		t.off += int64(len(line)) + 1
	}
}

func (t *Tail) damage(reason string) error {
	return &DamageError{File: t.name, Entry: t.last + 1, Offset: t.off, Reason: reason}
}
