package session

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/journal"
)

// written is a row whose line is about to be written.
type written struct {
	r    *row
	now  row
	more *details // nil for those in the file
	at   int64
}

// pending takes what the file does not have yet; mu is held.
func (x *index) pending() (rows []written, dead []tapeKey) {
	for r := range x.dirty {
		rows = append(rows, written{r: r, now: *r, more: x.fresh[r]})
	}
	for key := range x.dead {
		if x.get(key) == nil {
			dead = append(dead, key)
		}
	}
	clear(x.dirty)
	clear(x.dead)
	return rows, dead
}

// flush writes what has changed. The file is a cache: it is not synced.
func (x *index) flush() error {
	if !x.loaded.Load() {
		return nil
	}
	x.io.Lock()
	defer x.io.Unlock()
	if !x.owned {
		return x.acquire()
	}
	if x.size > 3*x.least || x.size == 0 {
		return x.rewrite()
	}
	x.mu.Lock()
	rows, dead := x.pending()
	x.mu.Unlock()
	if len(rows)+len(dead) == 0 {
		return nil
	}
	var buf []byte
	for _, key := range dead {
		buf = appendText(buf, "- "+hex.EncodeToString(key[:]))
	}
	buf, err := x.lines(buf, rows)
	if err == nil {
		_, err = x.file.Write(buf)
	}
	if err != nil {
		return x.failed(rows, dead, err)
	}
	for i := range rows {
		rows[i].at += x.size
	}
	x.size += int64(len(buf))
	x.wroteLines(rows)
	return nil
}

// lines appends the lines of rows and notes where they begin; io is held.
func (x *index) lines(buf []byte, rows []written) ([]byte, error) {
	for i := range rows {
		w := &rows[i]
		var d details
		if w.more != nil {
			d = *w.more
		} else {
			var err error
			if d, err = x.read(w.now.at); err != nil {
				return nil, err
			}
		}
		x.mu.Lock()
		if t, ok := x.titles[w.r]; ok {
			d.Title = t
		}
		x.mu.Unlock()
		w.at = int64(len(buf))
		var err error
		if buf, err = appendRow(buf, &w.now, d); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// wroteLines notes where the lines of rows are; io is held.
func (x *index) wroteLines(rows []written) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range rows {
		w.r.at = w.at
		if x.fresh[w.r] == w.more {
			delete(x.fresh, w.r)
			if w.now.titled || !w.r.titled {
				delete(x.titles, w.r)
			}
		}
		if x.get(w.r.key) != w.r { // dropped meanwhile
			x.dead[w.r.key] = w.r.id
		}
	}
}

// failed keeps what could not be written for the next time; io is held.
func (x *index) failed(rows []written, dead []tapeKey, err error) error {
	x.mu.Lock()
	for _, w := range rows {
		if x.get(w.r.key) == w.r {
			x.dirty[w.r] = struct{}{}
		}
	}
	for _, key := range dead {
		x.dead[key] = ""
	}
	x.mu.Unlock()
	if terr := x.file.Truncate(x.size); terr != nil {
		// The bytes behind the end have no valid checksum.
		err = errors.Join(err, terr)
	}
	return fmt.Errorf("index of sessions: %w", err)
}

// acquire makes this process the one that writes the file, once no other does; io is
// held. The other may have written it, so it is made again.
func (x *index) acquire() error {
	f, owned, err := x.take()
	if errors.Is(err, errnos.ReadOnly) { // the index lives in memory
		return nil
	}
	if err != nil {
		return err
	}
	if !owned {
		return f.Close()
	}
	err = x.rewrite()
	return errors.Join(err, f.Close())
}

// rewrite makes the file again, without the lines that no longer count; io is held.
func (x *index) rewrite() (err error) {
	if err := x.fs.Remove(indexNew); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("index of sessions: %w", err)
	}
	f, err := x.fs.Open(indexNew, journal.Create)
	if err != nil {
		return fmt.Errorf("index of sessions: %w", err)
	}
	x.mu.Lock()
	x.pending()
	rows := make([]written, 0, len(x.order))
	for _, r := range x.order {
		rows = append(rows, written{r: r, now: *r, more: x.fresh[r]})
	}
	x.mu.Unlock()
	size, err := x.writeAll(f, rows)
	if err == nil {
		err = errors.Join(f.Sync(), x.fs.Rename(indexNew, indexFile))
	}
	if err != nil {
		x.mu.Lock()
		for _, r := range x.order {
			x.dirty[r] = struct{}{}
		}
		x.mu.Unlock()
		return errors.Join(fmt.Errorf("index of sessions: %w", err), f.Close())
	}
	old := x.file
	x.file, x.owned, x.size, x.least = f, true, size, max(size, 1<<20)
	x.wroteLines(rows)
	if old == nil {
		return nil
	}
	return old.Close()
}

func (x *index) writeAll(f journal.File, rows []written) (size int64, err error) {
	const piece = 1000
	buf := appendText(nil, indexHead)
	for from := 0; ; from += piece {
		part := rows[min(from, len(rows)):min(from+piece, len(rows))]
		if buf, err = x.lines(buf, part); err != nil {
			return 0, err
		}
		for i := range part {
			part[i].at += size
		}
		if _, err := f.Write(buf); err != nil {
			return 0, err
		}
		size += int64(len(buf))
		if from+piece >= len(rows) {
			return size, nil
		}
		buf = buf[:0]
	}
}
