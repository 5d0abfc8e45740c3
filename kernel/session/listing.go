package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
)

// Place is a place in the list of sessions: behind the one that changed then. The
// zero value is its beginning.
type Place struct {
	Changed time.Time // in microseconds
	ID      string
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
		out[i] = r.info()
	}
	return out, more, nil
}

func (l *listing) info() Info {
	out := Info{ID: l.id, Workspace: l.Workspace, Tape: l.key.tape(), Title: l.Title, Size: l.size, Mark: l.mark.Value(), Modified: time.UnixMicro(l.changed).UTC()}
	if l.Parent != nil {
		out.ParentID = l.Parent.SessionID
	}
	return out
}

// Info describes the session of an id, the one changed last if several workspaces have one; ok is false
// if none has it. It reads no tape, and costs the same however many sessions there are.
func (m *Manager) Info(id string) (_ Info, ok bool, err error) {
	if err := m.ensure(); err != nil {
		return Info{}, false, err
	}
	found, ok, err := m.index.one(id)
	if !ok {
		return Info{}, false, err
	}
	return found.info(), true, nil
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
// filtered by, and when it changed. The index may lose a mark, and forgets it when a process
// without a surface writes to the session: it is "" until the surface says it again.
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
