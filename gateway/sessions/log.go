package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/yaya-ai/yaya/kernel/event"
)

// tailSize is how much of events.ndjson is read first to find its last entry.
const tailSize = 1 << 20

// openLog opens events.ndjson, cuts off a line that was not finished, and finds the
// last entry in it.
func (f *feed) openLog() error {
	folder := event.Folder(f.ID)
	if err := f.s.cfg.Root.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	log, err := f.s.cfg.Root.OpenFile(f.s.file(f.ID, eventsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	f.log = log
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	for tail := int64(tailSize); ; tail *= 8 {
		n := min(tail, size)
		buf := make([]byte, n)
		if _, err := log.ReadAt(buf, size-n); err != nil && n > 0 {
			return errors.Join(err, log.Close())
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		if end == 0 && n < size {
			continue // a very long line
		}
		if int64(end) < n {
			if err := log.Truncate(size - n + int64(end)); err != nil {
				return errors.Join(err, log.Close())
			}
		}
		if f.lastOf(buf[:end]) || n == size {
			return nil
		}
	}
}

// lastOf finds the last entry in lines.
func (f *feed) lastOf(lines []byte) bool {
	for len(lines) > 0 {
		i := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		var ev struct {
			Epoch string `json:"epoch"`
			Entry int64  `json:"entry_id"`
		}
		if json.Unmarshal(lines[i:], &ev) == nil && ev.Entry > 0 {
			f.epoch, f.seq = ev.Epoch, ev.Entry
			return true
		}
		lines = lines[:i]
	}
	return false
}
