package session

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/journal"
)

// The index's files. Older versions of yaya pass over folders among the tapes.
const (
	indexDir  = "tapes/.index"
	indexFile = indexDir + "/sessions"
	indexNew  = indexDir + "/sessions.new"
	// indexClean is there while the index agrees with the tapes and nobody works on
	// them; it holds the modification time of their folder.
	indexClean = indexDir + "/clean"

	indexHead = "yaya-sessions 1"
	maxLine   = 64 << 10
)

// A line is the checksum of the rest in eight hexadecimal digits, a space, and the
// rest: the head; "+" with a session; or "-" with the key of one that is gone. The
// last line of a session counts.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendSum(b []byte, from int) []byte {
	sum := crc32.Checksum(b[from+9:], castagnoli)
	const digits = "0123456789abcdef"
	for i := range 8 {
		b[from+i] = digits[sum>>(28-4*i)&15]
	}
	b[from+8] = ' '
	return append(b, '\n')
}

func appendText(b []byte, text string) []byte {
	from := len(b)
	b = append(append(b, "         "...), text...)
	return appendSum(b, from)
}

// appendRow appends the line of a session.
func appendRow(b []byte, r *row, d details) ([]byte, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return b, err
	}
	from := len(b)
	b = append(b, "         + "...)
	b = hex.AppendEncode(b, r.key[:])
	for _, n := range []int64{r.size, r.written, r.changed} {
		b = append(b, ' ')
		b = strconv.AppendInt(b, n, 10)
	}
	flag := func(is bool, c byte) {
		if is {
			b = append(b, c)
		} else {
			b = append(b, '-')
		}
	}
	b = append(b, ' ')
	flag(d.Parent != nil, 'f')
	flag(d.Title != "", 't')
	flag(r.settled, 's')
	b = append(b, ' ')
	b = append(b, cmp.Or(r.mark.Value(), "-")...)
	b = append(append(b, ' '), r.id...)
	b = append(append(b, ' '), raw...)
	return appendSum(b, from), nil
}

// content returns what a line holds, without its end; ok is false for one that was not
// written by yaya.
func content(line []byte) ([]byte, bool) {
	if len(line) < 10 || line[8] != ' ' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(line[:8]), 16, 32)
	return line[9:], err == nil && uint32(sum) == crc32.Checksum(line[9:], castagnoli)
}

var errLine = errors.New("a line of the index is not one of a session")

// parseRow parses the content of a session's line, up to its details.
func parseRow(b []byte, marks map[string]mark) (r row, rest []byte, err error) {
	var fields [7][]byte
	b, ok := bytes.CutPrefix(b, []byte("+ "))
	for i := range fields {
		var found bool
		fields[i], b, found = bytes.Cut(b, []byte(" "))
		ok = ok && found
	}
	if !ok || len(fields[0]) != 2*len(r.key) || len(fields[4]) < 2 || len(fields[4]) > 3 {
		return r, nil, errLine
	}
	if _, err := hex.Decode(r.key[:], fields[0]); err != nil {
		return r, nil, errLine
	}
	for i, to := range []*int64{&r.size, &r.written, &r.changed} {
		if *to, err = strconv.ParseInt(string(fields[1+i]), 10, 64); err != nil {
			return r, nil, errLine
		}
	}
	r.fork, r.titled = fields[4][0] == 'f', fields[4][1] == 't'
	r.settled = len(fields[4]) == 3 && fields[4][2] == 's' // version 0.1 did not say
	r.mark = unknown
	if string(fields[5]) != "-" {
		known, ok := marks[string(fields[5])]
		if !ok {
			known = unique.Make(string(fields[5]))
			if len(marks) < 64 { // looking one up here is quicker
				marks[known.Value()] = known
			}
		}
		r.mark = known
	}
	r.id, r.place = string(fields[6]), r.changed
	return r, b, nil
}

// load reads the file; recon is held. Whole says that every line is good.
func (x *index) load() (whole bool, err error) {
	x.io.Lock()
	defer x.io.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.clear()
	x.least = 1 << 20
	if x.file == nil {
		if x.file, x.owned, err = x.take(); err != nil {
			// A full disk, say: the index lives in memory until the file can be made.
			x.log.Warn().Err(err).Msg("sessions are listed without an index")
			x.loaded.Store(true)
			return false, nil
		}
	}
	if x.size, err = x.file.Size(); err != nil {
		return false, err
	}
	x.rows = make(map[[8]byte]*row, x.size/512)
	in := bufio.NewReaderSize(io.NewSectionReader(x.file, 0, x.size), maxLine)
	lines := lines{marks: map[string]mark{}}
	var at int64
	whole = true
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return false, fmt.Errorf("index of sessions: %w", err)
		}
		whole = x.take1(line, at, &lines) && whole
		at += int64(len(line))
	}
	whole = whole && at == x.size && at > 0
	// The file is nearly in order, and keeping its own saves most of the sorting.
	if lines.outdated {
		x.order = slices.DeleteFunc(x.order, func(r *row) bool { return x.get(r.key) != r })
	}
	x.order = slices.Clip(x.order)
	slices.SortFunc(x.order, byPlace)
	x.least = max(int64(len(x.order))*256, x.least)
	x.loaded.Store(true)
	return whole, nil
}

// lines holds the state of [index.load] from the lines that it has read.
type lines struct {
	marks    map[string]mark
	outdated bool // a later line replaced or removed the session of an earlier one
}

// take1 takes a line into the rows and reports whether it was good; mu is held.
func (x *index) take1(line []byte, at int64, seen *lines) bool {
	c, ok := content(bytes.TrimSuffix(line, []byte("\n")))
	switch {
	case !ok:
		return false
	case at == 0:
		return string(c) == indexHead
	case c[0] == '-':
		var key tapeKey
		if len(c) != 2+2*len(key) {
			return false
		}
		_, err := hex.Decode(key[:], c[2:])
		x.del(key)
		seen.outdated = true
		return err == nil
	}
	r, _, err := parseRow(c, seen.marks)
	if err != nil {
		return false
	}
	r.at = at
	if x.add(&r) {
		seen.outdated = true
	}
	x.order = append(x.order, &r)
	return true
}

// take opens the file to write it or, while another process may or nobody can, to read it.
func (x *index) take() (f journal.File, owned bool, err error) {
	if err := x.fs.MkdirAll(indexDir); err != nil {
		return nil, false, fmt.Errorf("index of sessions: %w", err)
	}
	f, err = x.fs.Open(indexFile, journal.Append)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = x.fs.Open(indexFile, journal.Create)
	}
	owned = err == nil
	if errors.Is(err, journal.ErrLocked) || errors.Is(err, fs.ErrExist) || errors.Is(err, errnos.ReadOnly) {
		read, rerr := x.fs.Open(indexFile, journal.ReadOnly)
		if rerr == nil || !errors.Is(err, errnos.ReadOnly) {
			f, err = read, rerr
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("index of sessions: %w", err)
	}
	return f, owned, nil
}

// read reads the details of a line; io is held.
func (x *index) read(at int64) (d details, err error) {
	buf := make([]byte, 512)
	for {
		n, err := x.file.ReadAt(buf, at)
		line, _, whole := bytes.Cut(buf[:n], []byte("\n"))
		if whole {
			c, ok := content(line)
			if !ok {
				return d, errLine
			}
			_, rest, err := parseRow(c, map[string]mark{})
			if err != nil {
				return d, err
			}
			return d, json.Unmarshal(rest, &d)
		}
		if err != nil && !errors.Is(err, io.EOF) || len(buf) >= maxLine || n < len(buf) {
			return d, errors.Join(errLine, err)
		}
		buf = make([]byte, 2*len(buf))
	}
}

// disturb notes that a process without the index works on tapes: the file may no
// longer agree with them.
func (x *index) disturb() {
	if x.loaded.Load() {
		return
	}
	x.disturbed.Do(func() {
		f, err := x.fs.Open(indexClean, journal.ReadOnly)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err == nil {
			err = errors.Join(f.Close(), x.fs.Remove(indexClean))
		}
		if err != nil {
			x.log.Warn().Err(err).Msg("the list of sessions may be out of date until the next start")
		}
	})
}

// cleanNote reads the note of a clean end, and returns the modification time of the folder of
// tapes in it; 0 if the note is damaged.
func (x *index) cleanNote() (int64, error) {
	f, err := x.fs.Open(indexClean, journal.ReadOnly)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64)
	n, err := f.ReadAt(buf, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	c, ok := content(bytes.TrimSuffix(buf[:n], []byte("\n")))
	at, err := strconv.ParseInt(strings.TrimPrefix(string(c), "clean "), 10, 64)
	if !ok || err != nil {
		return 0, nil //nolint:nilerr // as if there were none
	}
	return at, nil
}

// wasClean removes the note of a clean end, and returns the modification time of the
// folder of tapes in it; 0 without a note.
func (x *index) wasClean() int64 {
	at, err := x.cleanNote()
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	// A loss of power must not bring it back beside tapes that have changed since.
	if errors.Join(err, x.fs.Remove(indexClean), x.fs.SyncDir(indexDir)) != nil {
		return 0
	}
	return at
}

// close writes what has changed and lets go of the file.
func (x *index) close() error {
	if !x.loaded.Load() {
		return nil
	}
	err := x.flush()
	x.io.Lock()
	defer x.io.Unlock()
	x.names.Lock()
	seen := x.names.seen
	x.names.Unlock()
	if x.file == nil {
		return err
	}
	if err == nil && x.owned && x.complete.Load() && !x.stale.Load() && seen == x.folderTime() {
		err = x.leave(seen)
	}
	return errors.Join(err, x.file.Close())
}

// leave notes that the file agrees with the tapes; io is held.
func (x *index) leave(seen int64) error {
	if err := x.file.Sync(); err != nil {
		return err
	}
	if err := x.fs.Remove(indexClean); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of another process, which was there at the same time
	}
	f, err := x.fs.Open(indexClean, journal.Create)
	if err != nil {
		return err
	}
	_, err = f.Write(appendText(nil, "clean "+strconv.FormatInt(seen, 10)))
	return errors.Join(err, f.Sync(), f.Close())
}
