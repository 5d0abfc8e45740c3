package traffic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

const (
	dir        = "traffic"
	suffix     = ".ndjson"
	maxSegment = 4 << 20
	minSegment = 64 << 10
	maxLife    = 24 * time.Hour // of a segment that is written to
	reserve    = 64 << 20       // bytes of the disk that stay free for more important data
)

// segment is a file of records.
type segment struct {
	first int64 // id of its first record
	size  int64
	last  time.Time // when it was last written to
}

func (s segment) name() string { return fmt.Sprintf("%s/%016d%s", dir, s.first, suffix) }

// segments lists the segments, oldest first. A directory that is not there has none.
func segments(root *os.Root) ([]segment, error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []segment
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		first, err := strconv.ParseInt(name, 10, 64)
		if !ok || err != nil || len(name) != 16 || !e.Type().IsRegular() {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // another process has removed it
		}
		out = append(out, segment{first, st.Size(), st.ModTime()})
	}
	slices.SortFunc(out, func(a, b segment) int { return cmp.Compare(a.first, b.first) })
	return out, nil
}

// store has the segments for their writer.
type store struct {
	root   *os.Root
	latch  *os.File // what is locked
	file   *os.File // the segment that is written to, the last
	have   []segment
	opened time.Time // when the last was begun
	next   int64     // id of the next record
}

func (s *store) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.latch != nil {
		_ = s.latch.Close()
	}
	s.file, s.latch = nil, nil
}

// lock locks the directory against other processes, for the duration of a write.
func (s *store) lock() (unlock func(), err error) {
	if s.latch == nil {
		if err := s.root.MkdirAll(dir+"/days", 0o700); err != nil {
			return nil, err
		}
		if s.latch, err = openRegular(s.root, dir+"/lock", os.O_RDWR|os.O_CREATE); err != nil {
			return nil, err
		}
	}
	if err := hostfile.Lock(s.latch); err != nil {
		return nil, fmt.Errorf("lock the record of calls: %w", err)
	}
	return func() { _ = hostfile.Unlock(s.latch) }, nil
}

// openRegular opens one of our files: it neither follows a link nor blocks on a pipe
// in its place.
func openRegular(root *os.Root, name string, flag int) (*os.File, error) {
	if st, err := root.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", name)
	}
	f, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("open %s: not a regular file", name), err, f.Close())
	}
	return f, nil
}

// load updates the store from disk if necessary: another process may have written, and
// files may have been removed.
func (s *store) load() error {
	have, err := segments(s.root)
	if err != nil {
		return err
	}
	if s.file != nil && len(have) > 0 && len(s.have) > 0 && have[len(have)-1].first == s.have[len(s.have)-1].first && have[len(have)-1].size == s.have[len(s.have)-1].size {
		s.have = have
		return nil
	}
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	s.have, s.next = have, max(s.next, 1)
	if len(have) == 0 {
		return nil
	}
	last := &s.have[len(have)-1]
	f, err := openRegular(s.root, last.name(), os.O_RDWR|os.O_APPEND)
	if err != nil {
		return err
	}
	data, err := read(f, 0)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if n := len(data); n > 0 && data[n-1] != '\n' { // a crash has cut a line off
		whole := bytes.LastIndexByte(data, '\n') + 1
		if err := f.Truncate(int64(whole)); err != nil {
			return errors.Join(err, f.Close())
		}
		data, last.size = data[:whole], int64(whole)
	}
	s.next, s.opened = max(s.next, last.first), last.last
	var r Record
	for i := 0; len(data) > 0; i++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if id := idOf(line); id >= s.next {
			s.next = id + 1
		}
		if i == 0 && json.Unmarshal(line, &r) == nil {
			s.opened = r.Time
		}
	}
	s.file = f
	return nil
}

// idOf returns the id of a line, 0 if it has none.
func idOf(line []byte) int64 {
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	digits, _, more := bytes.Cut(rest, []byte(","))
	if !ok || !more {
		return 0
	}
	id, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// maxRead bounds a segment for reading: a larger one is not ours.
const maxRead = maxSegment + 4<<20

func read(f *os.File, from int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := st.Size() - from
	if n <= 0 {
		return nil, nil
	}
	if n > maxRead {
		return nil, fmt.Errorf("%s has %d bytes, more than yaya writes", f.Name(), st.Size())
	}
	data := make([]byte, n)
	got, err := f.ReadAt(data, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:got], nil
}

// append writes n complete lines; the last has the id before next.
func (s *store) append(lines []byte, n int, set Settings) error {
	if err := s.free(); err != nil {
		return err
	}
	full := min(max(set.MaxBytes/16, minSegment), maxSegment)
	if s.file == nil || s.have[len(s.have)-1].size+int64(len(lines)) > full || time.Since(s.opened).Abs() > maxLife {
		if err := s.begin(s.next - int64(n)); err != nil {
			return err
		}
	}
	s.shrink(set.MaxBytes - int64(len(lines)))
	last := &s.have[len(s.have)-1]
	if _, err := s.file.Write(lines); err != nil {
		// A partial write is taken back; if that fails, the next start does it.
		err = errors.Join(err, s.file.Truncate(last.size), s.file.Close())
		s.file = nil
		return err
	}
	last.size += int64(len(lines))
	return nil
}

// begin begins a segment.
func (s *store) begin(first int64) error {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	seg := segment{first: first, last: time.Now()}
	f, err := openRegular(s.root, seg.name(), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	if n := len(s.have); n == 0 || s.have[n-1].first != first {
		s.have = append(s.have, seg)
	}
	s.file, s.opened = f, time.Now()
	return nil
}

// shrink removes the oldest segments until all together have at most that many
// bytes, except the current one.
func (s *store) shrink(limit int64) {
	total := int64(0)
	for _, seg := range s.have {
		total += seg.size
	}
	for total > limit && len(s.have) > 1 {
		if err := s.root.Remove(s.have[0].name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // it is tried again with the next write
		}
		total -= s.have[0].size
		s.have = s.have[1:]
	}
}

// expire removes the segments that were last written to before then, and what is older
// than one of those: a wrong clock may have dated it into the future. The last stays,
// emptied, so that ids go on.
func (s *store) expire(before time.Time) error {
	if err := s.load(); err != nil {
		return err
	}
	old := 0
	for i, seg := range s.have {
		if seg.last.Before(before) {
			old = i + 1
		}
	}
	if old == 0 {
		return nil
	}
	if old == len(s.have) {
		if s.have[old-1].size == 0 {
			old--
		} else if err := s.begin(s.next); err != nil {
			return err
		}
	}
	var errs []error
	for _, seg := range s.have[:old] {
		if err := s.root.Remove(seg.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	s.have = s.have[old:]
	return errors.Join(errs...)
}

var errFull = errors.New("the disk is almost full")

// free fails when the disk has less free space than more important data may need.
func (s *store) free() error {
	left, _, err := hostfile.Free(s.latch)
	if err != nil {
		return err
	}
	if left < reserve {
		return fmt.Errorf("%w: %d MiB are left, and %d MiB are kept for sessions", errFull, left>>20, reserve>>20)
	}
	return nil
}

// tidy removes old records. It trusts a clock that was set only an hour later: until
// then age counts from the newest record.
func (w *writer) tidy() {
	now := time.Now()
	drift := now.Round(0).Sub(w.clock.Round(0)) - now.Sub(w.clock)
	w.clock = now
	if err := w.expire(w.l.cfg.Settings(), now, drift.Abs() < time.Minute); err != nil {
		w.l.cfg.Log.Warn().Err(err).Msg("old records of calls could not be removed")
	}
}

func (w *writer) expire(set Settings, now time.Time, steady bool) error {
	have, err := segments(w.l.cfg.Root)
	if err != nil || len(have) == 0 || set.Days <= 0 {
		return err
	}
	if newest := have[len(have)-1].last; !steady && newest.Before(now) {
		now = newest
	}
	unlock, err := w.store.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(w.store.expire(now.AddDate(0, 0, -set.Days)), w.l.sums.expire(now))
}
