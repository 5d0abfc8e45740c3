package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
)

// Place is a place in the list of sessions: behind the one that changed then. The
// zero value is its beginning.
type Place struct {
	Changed time.Time // in microseconds
	ID      string
}

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
	whole, err := x.load()
	if err != nil || !whole {
		return err
	}
	if left == 0 {
		x.stale.Store(true)
		return m.compare(context.Background(), false)
	}
	x.names.Lock()
	x.names.seen = left
	x.names.Unlock()
	x.complete.Store(true)
	return nil
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
	x.mu.Lock()
	x.pass++
	pass := x.pass
	x.mu.Unlock()
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
	for _, r := range x.find(func(r *row) bool { return r.pass != pass && !r.live }) {
		if _, _, err := m.header(tapeFile(r.key.tape())); errors.Is(err, fs.ErrNotExist) {
			x.drop(r.key)
		}
	}
	x.names.Lock()
	x.names.seen = seen
	x.names.Unlock()
	if all {
		x.stale.Store(false)
	}
	x.complete.Store(true)
	return x.flush()
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
	f, err := m.cfg.FS.Open(name, journal.ReadOnly)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	m.index.put(key, h.SessionID, details{h.Workspace, title, h.Parent}, size, modified, false)
	return nil
}

// Page describes up to limit sessions behind a place, the one changed last first, and
// says whether there are more. Keep, if it is not nil, chooses by id and mark; it must
// not call the manager. A page costs what it shows: it reads no tape.
func (m *Manager) Page(after Place, limit int, keep func(id, mark string) bool) ([]Info, bool, error) {
	if err := m.ensure(); err != nil {
		return nil, false, err
	}
	rows, more, err := m.index.list(after, limit, keep)
	if errors.Is(err, errLine) { // damaged since it was loaded
		m.cfg.Log.Warn().Err(err).Msg("the index of sessions is damaged and made again")
		if err = m.rebuild(); err == nil {
			rows, more, err = m.index.list(after, limit, keep)
		}
	}
	if err != nil {
		return nil, false, err
	}
	out := make([]Info, len(rows))
	for i, r := range rows {
		out[i] = Info{ID: r.id, Workspace: r.Workspace, Tape: r.key.tape(), Title: r.Title, Size: r.size, Mark: r.mark.Value(), Modified: time.UnixMicro(r.changed).UTC()}
		if r.Parent != nil {
			out[i].ParentID = r.Parent.SessionID
		}
	}
	return out, more, nil
}

// rebuild makes the index again of the tapes.
func (m *Manager) rebuild() error {
	x := m.index
	x.recon.Lock()
	defer x.recon.Unlock()
	x.io.Lock()
	x.mu.Lock()
	live := slices.DeleteFunc(x.order, func(r *row) bool { return !r.live })
	x.clear()
	x.size = 0 // the next flush makes a new file
	x.mu.Unlock()
	x.io.Unlock()
	err := m.compare(context.Background(), true)
	for _, r := range live {
		x.open(r.key, r.size, true, r.settled)
	}
	return err
}

// List describes every session, the one changed last first. It compares the index with
// the tapes first; those that cannot be read are left to [Verify].
func (m *Manager) List() ([]Info, error) {
	if err := m.Index(context.Background()); err != nil {
		return nil, err
	}
	out, _, err := m.Page(Place{}, maxListed, nil)
	return out, err
}

const maxListed = 1 << 30

// Mark notes what a surface keeps of a session: a word of its own that lists can be
// filtered by, and when it changed. The index may lose a mark: it is "" until the
// surface says it again.
func (m *Manager) Mark(id, mark string, changed time.Time) {
	if strings.ContainsAny(mark, " \n") || len(mark) > 128 {
		m.cfg.Log.Error().Str("session", id).Msg("a mark of a session is not a word")
		return
	}
	m.index.mark(id, mark, changed)
}

// Marked returns the ids of the sessions whose id and mark want accepts, which must not
// call the manager.
func (m *Manager) Marked(want func(id, mark string) bool) ([]string, error) {
	if err := m.ensure(); err != nil {
		return nil, err
	}
	var out []string
	for _, r := range m.index.find(func(r *row) bool { return want(r.id, r.mark.Value()) }) {
		out = append(out, r.id)
	}
	return out, nil
}

// elsewhere finds the tapes of a session by its id, whatever their workspace.
func (m *Manager) elsewhere(id string) (got []start, err error) {
	var broken error // of a tape that is this session's by its name
	add := func(name string) {
		h, _, err := m.header(name)
		if err == nil && h.SessionID == id {
			got = append(got, h)
		}
		if d := damagedOf(id, err); errors.Is(d, ErrDamaged) {
			broken = d
		}
	}
	if m.index.complete.Load() {
		if err := m.ensure(); err != nil {
			return nil, err
		}
		for _, r := range m.index.sameID(id) {
			add(tapeFile(r.key.tape()))
		}
	}
	if len(got) == 0 { // the index has no tape that cannot be read
		suffix := TapeName("", id)[16:] + ".jsonl"
		err = m.tapes(func(name string) error {
			if strings.HasSuffix(name, suffix) { // else it is of another id
				add(name)
			}
			return nil
		})
	}
	if err == nil && len(got) == 0 {
		err = broken
	}
	return got, err
}

// forked reports whether a session has forks that read its tape.
func (m *Manager) forked(tape, epoch string) (bool, error) {
	if err := m.ensure(); err != nil {
		return false, err
	}
	forks, err := m.index.forks()
	for _, f := range forks {
		if f.Parent != nil && f.Parent.Tape == tape && f.Parent.Epoch == epoch {
			return true, err
		}
	}
	return false, err
}

// tapes visits the names of the tape files, in no order.
func (m *Manager) tapes(visit func(name string) error) error {
	var failed error
	err := m.cfg.FS.Each(tapesDir, func(e journal.Entry) error {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			failed = visit(path.Join(tapesDir, e.Name()))
		}
		return failed
	})
	if err != nil && failed == nil {
		return fmt.Errorf("sessions: %w", err)
	}
	return err
}
