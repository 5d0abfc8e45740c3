package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/yaya-ai/yaya/internal/journal"
)

// MarkQueues makes the markers of the sessions that have a queue, for data directories that
// may lack some: those of versions that made none, and of backups. Without its marker a queue
// does not go on. It reads every tape, and may be run again. Nobody may work with the sessions
// meanwhile.
func MarkQueues(fsys journal.FS) error {
	entries, err := fsys.ReadDir(tapesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("queues of sessions: %w", err)
	}
	made := false
	for _, e := range entries {
		tape, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || e.IsDir() {
			continue
		}
		queued, err := endsWithQueue(fsys, tapeFile(tape))
		if err != nil {
			return fmt.Errorf("queues of sessions: %w", err)
		}
		if !queued {
			continue
		}
		if !made {
			if err := fsys.MkdirAll(queuedDir); err != nil {
				return fmt.Errorf("queues of sessions: %w", err)
			}
			made = true
		}
		if err := makeMarker(fsys, tape); err != nil {
			return fmt.Errorf("queues of sessions: %w", err)
		}
	}
	if !made {
		return nil
	}
	if err := errors.Join(fsys.SyncDir(queuedDir), fsys.SyncDir(tapesDir)); err != nil {
		return fmt.Errorf("queues of sessions: %w", err)
	}
	return nil
}

// endsWithQueue reports whether the queue of a tape was not empty when it was written last.
// A tape that is damaged counts up to the damage: after a repair it ends there.
func endsWithQueue(fsys journal.FS, name string) (bool, error) {
	var last []byte
	_, err := journal.Scan(fsys, name, func(_ int64, line []byte) error {
		rest, ok := bytes.CutPrefix(line[bytes.IndexByte(line, ',')+1:], bEvent)
		if !ok || !bytes.HasPrefix(rest, bQueue) {
			return nil
		}
		e, err := decodeEntry(line)
		if err == nil && e.Meta.Source == "" { // a plugin's says nothing
			last = append(last[:0], line...)
		}
		return err
	})
	if _, damaged := errors.AsType[*journal.DamageError](err); err != nil && !damaged {
		return false, err
	}
	if last == nil {
		return false, nil
	}
	e, err := decodeEntry(last)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	var n Note
	if err := json.Unmarshal(e.Payload, &n); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	var st state
	st.note(n)
	return len(st.queue) > 0, nil
}

// makeMarker creates the marker of a tape, unless it is there.
func makeMarker(fsys journal.FS, tape string) error {
	f, err := fsys.Open(marker(tape), journal.Create)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// forgetQueue removes the marker of a tape whose name is gone, and is so on the disk. One that
// stays is removed by the next start.
func (m *Manager) forgetQueue(tape string) {
	if err := m.unmark(tape); err != nil {
		m.cfg.Log.Warn().Err(err).Str("tape", tape).Msg("the marker of a queue whose session is gone is still there")
	}
}
