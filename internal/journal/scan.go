package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	sumLen    = 32 // hexadecimal digits
	prevIntro = `,"prev":"`
	sumIntro  = `","sum":"`
	lineEnd   = `"}`
	tailLen   = len(prevIntro) + sumLen + len(sumIntro) + sumLen + len(lineEnd)

	// indexEvery is how many records share one remembered offset.
	indexEvery = 128
)

// NoSum is the sum before the first record.
var NoSum = string(bytes.Repeat([]byte("0"), sumLen))

// DamageError reports where a file is damaged.
type DamageError struct {
	File   string
	Entry  int64 // id of the first record that is not whole
	Offset int64 // byte where it starts
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: entry %d (byte %d) is damaged: %s", e.File, e.Entry, e.Offset, e.Reason)
}

// Report is the result of [Scan].
type Report struct {
	First, Last int64 // ids; Last is First-1 when there is no record
	Size        int64 // bytes of whole records
	Torn        int64 // bytes of an unfinished record behind them
	sum         string
	index       []int64
}

// Sum returns the sum of the last record, or of the record before the file.
func (r Report) Sum() string { return r.sum }

// Sum returns the sum of a record that was visited.
func Sum(line []byte) string {
	if len(line) < tailLen {
		return ""
	}
	return string(line[len(line)-len(lineEnd)-sumLen : len(line)-len(lineEnd)])
}

// CheckFirst returns a [*DamageError] if the first line of a file, without its end, is
// damaged.
func CheckFirst(name string, line []byte) error {
	id, _, reason := check(line, NoSum)
	if reason == "" {
		return nil
	}
	return &DamageError{File: name, Entry: max(id, 1), Reason: reason}
}

// Visit gets every record of a file in order. The line is valid during the call.
type Visit func(id int64, line []byte) error

// Scan reads a file once and checks every bit of it. Records before a damaged
// one are visited.
func Scan(fsys FS, name string, visit Visit) (Report, error) {
	return ScanAfter(fsys, name, NoSum, visit)
}

// ScanAfter is [Scan] of a file that continues another, whose last record has the
// sum prev.
func ScanAfter(fsys FS, name, prev string, visit Visit) (Report, error) {
	f, err := fsys.Open(name, ReadOnly)
	if err != nil {
		return Report{}, err
	}
	rep, err := scanFile(f, name, prev, visit)
	return rep, errors.Join(err, f.Close())
}

func scanFile(f File, name, prev string, visit Visit) (Report, error) {
	size, err := f.Size()
	if err != nil {
		return Report{}, err
	}
	rep := Report{sum: prev}
	damage := func(reason string) error {
		return &DamageError{File: name, Entry: max(rep.Last+1, 1), Offset: rep.Size, Reason: reason}
	}
	lines := newLineReader(f, 0, size)
	for {
		line, err := lines.next()
		if errors.Is(err, errTorn) {
			// A complete record without its line end was not cut short by a crash: it was
			// modified.
			if n := len(line); n > 0 && wholeIn(line) {
				return rep, damage("its line end is not there")
			}
			rep.Torn = size - rep.Size
			return rep, nil
		}
		if errors.Is(err, io.EOF) {
			return rep, nil
		}
		if err != nil {
			if errors.Is(err, errLong) {
				return rep, damage(err.Error())
			}
			return rep, err
		}
		id, sum, reason := check(line, rep.sum)
		if reason != "" {
			if bytes.Contains(line, make([]byte, 16)) && rep.Size+int64(len(line))+1 == size {
				rep.Torn = size - rep.Size // a crash can leave holes in what was not synced
				return rep, nil
			}
			return rep, damage(reason)
		}
		if rep.Size == 0 {
			rep.First, rep.Last = id, id-1
		}
		if id != rep.Last+1 {
			return rep, damage(fmt.Sprintf("it has the id %d", id))
		}
		if (id-rep.First)%indexEvery == 0 {
			rep.index = append(rep.index, rep.Size)
		}
		rep.Last, rep.sum = id, sum
		rep.Size += int64(len(line)) + 1
		if visit != nil {
			if err := visit(id, line); err != nil {
				return rep, err
			}
		}
	}
}

// check verifies one line against the sum of the record before it.
func check(line []byte, prev string) (id int64, sum, reason string) {
	id, ok := lineID(line)
	if !ok {
		return 0, "", "it does not start with an id"
	}
	if len(line) < tailLen {
		return 0, "", "it is too short"
	}
	tail := line[len(line)-tailLen:]
	if string(tail[:len(prevIntro)]) != prevIntro || string(tail[len(tail)-len(lineEnd):]) != lineEnd ||
		string(tail[len(prevIntro)+sumLen:][:len(sumIntro)]) != sumIntro {
		return 0, "", "it does not end with its sums"
	}
	body := line[:len(line)-len(sumIntro)-sumLen-len(lineEnd)]
	sum = digest(body)
	if sum != string(line[len(line)-len(lineEnd)-sumLen:len(line)-len(lineEnd)]) {
		return 0, "", "its content does not match its sum"
	}
	if got := string(tail[len(prevIntro):][:sumLen]); got != prev {
		return 0, "", "it does not follow the entry before it"
	}
	return id, sum, ""
}

func digest(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:sumLen/2])
}

func lineID(line []byte) (int64, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	end := bytes.IndexByte(rest, ',')
	if !ok || end < 1 || end > 19 {
		return 0, false
	}
	id, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return id, err == nil && id > 0
}

// wholeIn reports whether line holds a whole record at its start.
func wholeIn(line []byte) bool {
	for n := len(line); n > len(line)-2 && n >= tailLen; n-- {
		body := line[:n-len(sumIntro)-sumLen-len(lineEnd)]
		if digest(body) == string(line[n-len(lineEnd)-sumLen:n-len(lineEnd)]) && n < len(line) {
			return true
		}
	}
	return false
}

var (
	errTorn = errors.New("no line end")
	errLong = fmt.Errorf("it is longer than %d bytes", MaxRecord)
)

// lineReader reads lines of a part of a file.
type lineReader struct {
	f        io.ReaderAt
	off, end int64
	buf      []byte
	have     []byte
}

func newLineReader(f io.ReaderAt, off, end int64) *lineReader {
	return &lineReader{f: f, off: off, end: end, buf: make([]byte, 0, min(int64(256<<10), end-off+1))}
}

// next returns the next line without its end, valid until the next call. With
// errTorn it returns what is left.
func (r *lineReader) next() ([]byte, error) {
	from := 0
	for {
		if i := bytes.IndexByte(r.have[from:], '\n'); i >= 0 {
			line := r.have[:from+i]
			r.have = r.have[from+i+1:]
			return line, nil
		}
		from = len(r.have)
		if from > MaxRecord {
			return nil, errLong
		}
		if r.off == r.end {
			if from > 0 {
				return r.have, errTorn
			}
			return nil, io.EOF
		}
		if int64(cap(r.buf)-from) < min(64<<10, r.end-r.off) {
			r.buf = make([]byte, 0, min(max(2*cap(r.buf), 256<<10), MaxRecord+(64<<10)))
		}
		r.buf = append(r.buf[:0], r.have...)
		n, err := r.f.ReadAt(r.buf[from:][:min(int64(cap(r.buf)-from), r.end-r.off)], r.off)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		r.buf = r.buf[:from+n]
		r.have = r.buf
		r.off += int64(n)
	}
}
