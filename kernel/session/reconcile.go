package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
)

// slack is by how much the time of a tape may differ from the one that was noted when
// it was written: clocks of file systems are coarse.
const slack = 2 * time.Second

// folderTime returns when the names of tapes changed last, in nanoseconds; 0 if that
// cannot be told.
func (x *index) folderTime() int64 {
	entries, err := x.fs.ReadDir(".")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.Name() != tapesDir {
			continue
		}
		if info, err := e.Info(); err == nil {
			return info.ModTime().UnixNano()
		}
	}
	return 0
}

// naming is called before this process changes the names of tapes, and what it returns
// when the rows say so. Changes of others are found by the time of the folder.
func (x *index) naming() (done func()) {
	if !x.loaded.Load() {
		x.disturb()
		return func() {}
	}
	x.names.Lock()
	if x.names.ops == 0 {
		x.names.base = x.folderTime()
	}
	x.names.ops++
	x.names.Unlock()
	return func() {
		x.names.Lock()
		defer x.names.Unlock()
		if x.names.ops--; x.names.ops == 0 && x.names.base == x.names.seen {
			x.names.seen = x.folderTime()
		}
	}
}

// current reports whether the rows have all names of tapes.
func (x *index) current() bool {
	x.names.Lock()
	defer x.names.Unlock()
	return x.names.ops > 0 || (x.names.seen != 0 && x.names.seen == x.folderTime())
}

// ensure loads the index, once, and has it know every tape. It compares the rows with
// the tapes only if the file was lost or damaged, or if names of tapes have changed
// elsewhere. After an unclean end it compares the names: a row may then say what its tape
// was some seconds before that end, until [Manager.Index] has compared the rest.
func (m *Manager) ensure() error {
	x := m.index
	if x.complete.Load() && x.current() {
		return nil // also while the tapes are compared in the background
	}
	// Nobody who waits here waits for a comparison in the background.
	x.loading.Lock()
	defer x.loading.Unlock()
	if err := m.loadOnce(); err != nil {
		return err
	}
	if x.complete.Load() && x.current() {
		return nil
	}
	x.recon.Lock()
	defer x.recon.Unlock()
	return m.compare(context.Background(), true) // a page waits for it, and stopping ends it
}

// loadOnce loads the index if that has not happened; loading is held.
func (m *Manager) loadOnce() error {
	x := m.index
	if x.loaded.Load() {
		return nil
	}
	x.recon.Lock()
	defer x.recon.Unlock()
	left := x.wasClean()
	if left == 0 {
		return m.loadUnclean()
	}
	whole, err := x.load()
	if err != nil || !whole {
		return err
	}
	x.names.Lock()
	x.names.seen = left
	x.names.Unlock()
	x.complete.Store(true)
	return nil
}

// loadUnclean loads the index after an unclean end, when the names of the tapes have to be
// read as well: at the same time, for a page waits for both. Recon is held.
func (m *Manager) loadUnclean() error {
	x := m.index
	type names struct {
		keys []tapeKey
		err  error
	}
	seen, read := x.folderTime(), make(chan names, 1)
	go func() {
		var n names
		n.err = x.fs.Each(tapesDir, func(e journal.Entry) error {
			tape, ok := strings.CutSuffix(e.Name(), ".jsonl")
			if key, is := keyOf(tape); ok && is {
				n.keys = append(n.keys, key)
			}
			return nil
		})
		read <- n
	}()
	whole, err := x.load()
	there := <-read
	if err != nil || !whole {
		return err
	}
	x.stale.Store(true)
	pass, known := x.known(there.keys)
	if there.err != nil || !known {
		return m.compare(context.Background(), false)
	}
	return m.compared(pass, seen)
}

// exact is ensure for those who rely on more than the names of tapes.
func (m *Manager) exact(ctx context.Context) error {
	if err := m.ensure(); err != nil || !m.index.stale.Load() {
		return err
	}
	return m.Index(ctx)
}

// Index loads the index of sessions and compares it with every tape, including those whose
// names say that nothing has changed.
func (m *Manager) Index(ctx context.Context) error {
	if err := m.ensure(); err != nil {
		return err
	}
	m.index.recon.Lock()
	defer m.index.recon.Unlock()
	return m.compare(ctx, true)
}

// maxUnread is how many tapes that could not be read are named.
const maxUnread = 32

// compare brings the rows to what the tapes are, or only to their names; recon is held. It
// reads the beginning of the tapes that have changed, and no other.
func (m *Manager) compare(ctx context.Context, all bool) error {
	x := m.index
	seen := x.folderTime()
	var unread []error
	pass, _ := x.known(nil)
	err := x.fs.Each(tapesDir, func(e journal.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.stopped() {
			return bus.ErrClosed
		}
		tape, ok := strings.CutSuffix(e.Name(), ".jsonl")
		key, is := keyOf(tape)
		if !ok || !is || (!all && x.there(key, pass)) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.IsDir() || x.same(key, info, pass) {
			return nil
		}
		err = m.describe(key, tape, info.ModTime())
		if err == nil {
			return nil
		}
		m.cfg.Log.Debug().Err(err).Str("tape", e.Name()).Msg("a tape is not listed")
		if !errors.Is(err, errEmpty) && !errors.Is(err, fs.ErrNotExist) && len(unread) < maxUnread {
			unread = append(unread, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	x.unread = unread
	if all {
		x.stale.Store(false)
	}
	return m.compared(pass, seen)
}

// compared ends a comparison for which the folder of tapes had the time seen: what it did
// not see is gone. Recon is held.
func (m *Manager) compared(pass uint32, seen int64) error {
	x := m.index
	for _, r := range x.find(func(r *row) bool { return r.pass != pass && !r.live }) {
		if _, _, err := m.header(tapeFile(r.key.tape())); errors.Is(err, fs.ErrNotExist) {
			x.drop(r.key)
		}
	}
	x.names.Lock()
	x.names.seen = seen
	x.names.Unlock()
	x.complete.Store(true)
	return x.flush()
}

// known begins a comparison, notes which tapes are there, and reports whether all of them
// have rows.
func (x *index) known(there []tapeKey) (pass uint32, all bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pass++
	all = true
	for _, key := range there {
		if r := x.get(key); r != nil {
			r.pass = x.pass
		} else {
			all = false
		}
	}
	return x.pass, all
}

// there notes that a tape is there, and reports whether it has a row.
func (x *index) there(key tapeKey, pass uint32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.get(key)
	if r != nil {
		r.pass = pass
	}
	return r != nil
}

func (m *Manager) stopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// same reports whether a row says what a file is, and notes that the file is there.
func (x *index) same(key tapeKey, info fs.FileInfo, pass uint32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.get(key)
	if r == nil {
		return false
	}
	r.pass = pass
	return r.live || (r.size == info.Size() && time.UnixMicro(r.written).Sub(info.ModTime()).Abs() <= slack)
}

// describe notes what a tape says of its session.
func (m *Manager) describe(key tapeKey, tape string, modified time.Time) error {
	name := tapeFile(tape)
	h, title, err := m.header(name)
	if err != nil {
		m.index.drop(key)
		return err
	}
	if TapeName(h.Workspace, h.SessionID) != tape {
		m.index.drop(key)
		return fmt.Errorf("%s is named like the tape of another session", name)
	}
	size, err := m.size(name)
	if err != nil {
		return err
	}
	m.index.put(key, h.SessionID, details{h.Workspace, title, h.Parent}, size, modified, false)
	return nil
}
