package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// First returns the id of the first record of a file, 0 without a whole one. It does
// not verify the record.
func First(fsys FS, name string) (id int64, err error) {
	f, err := fsys.Open(name, ReadOnly)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	line, err := newLineReader(f, 0, size).next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, errTorn):
		return 0, nil
	case err != nil && !errors.Is(err, errLong):
		return 0, err
	}
	id, ok := lineID(line)
	if !ok || err != nil {
		return 0, &DamageError{File: name, Entry: 1, Reason: "it does not start with an id"}
	}
	return id, nil
}

// ReadPart visits the records from id on of a file that nobody appends to, until visit
// returns an error, which it returns. It finds the first of them without reading all
// before it, and verifies every record that it visits; that they follow what is before
// them only [ScanAfter] can tell.
func ReadPart(fsys FS, name string, from int64, visit Visit) (err error) {
	f, err := fsys.Open(name, ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	off, err := seek(f, size, from)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	lines := newLineReader(f, off, size)
	last, prev := int64(0), ""
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		damage := func(reason string) error {
			return &DamageError{File: name, Entry: max(last+1, from, 1), Offset: off, Reason: reason}
		}
		switch {
		case errors.Is(err, errTorn):
			return damage("its line end is not there")
		case errors.Is(err, errLong):
			return damage(err.Error())
		case err != nil:
			return err
		}
		if prev == "" && len(line) >= tailLen {
			prev = string(line[len(line)-tailLen+len(prevIntro):][:sumLen])
		}
		id, sum, reason := check(line, prev)
		switch {
		case reason != "":
			return damage(reason)
		case last > 0 && id != last+1:
			return damage(fmt.Sprintf("it has the id %d", id))
		}
		last, prev = id, sum
		off += int64(len(line)) + 1
		if id < from {
			continue
		}
		if err := visit(id, line); err != nil {
			return err
		}
	}
}

// seekNear is how close to a record a search for it ends.
const seekNear = 64 << 10

// seek returns where a record at or before the one of that id begins.
func seek(f io.ReaderAt, size, id int64) (int64, error) {
	lo, hi := int64(0), size
	for hi-lo > seekNear {
		mid := lo + (hi-lo)/2
		at, got, err := lineAfter(f, mid, hi)
		if err != nil {
			return 0, err
		}
		if at < hi && got <= id {
			lo = at
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// lineAfter returns where the first line that begins behind off does, and its id; or
// end, if none begins before it or what begins there is no record.
func lineAfter(f io.ReaderAt, off, end int64) (at, id int64, err error) {
	buf := make([]byte, 4<<10)
	for at = off; at < end; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
		if n == 0 && err != nil {
			return 0, 0, err
		}
		i := bytes.IndexByte(buf[:n], '\n')
		if i < 0 {
			at += int64(n)
			continue
		}
		at += int64(i) + 1
		if at >= end {
			break
		}
		n, err = f.ReadAt(buf[:min(32, end-at)], at)
		if n == 0 && err != nil {
			return 0, 0, err
		}
		if id, ok := lineID(buf[:n]); ok {
			return at, id, nil
		}
		break
	}
	return end, 0, nil
}
