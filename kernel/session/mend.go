package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
)

// Known holds facts about a session from elsewhere than its tape.
type Known struct {
	ID        string
	Workspace string
	Counted   Cursor // an entry that the tape had
	Size      int64  // bytes that the tape had, 0 if unknown
	Settled   bool   // as it had that size, nothing at its end was unfinished
}

// Mended describes the changes of [Manager.Mend] to the tape of a session.
type Mended struct {
	Session string `json:"session,omitempty"` // "" if nothing tells it
	File    string `json:"file"`
	// Aside is the present path of the damaged file, "" if it was not damaged itself.
	Aside string `json:"aside,omitempty"`
	Kept  int64  `json:"kept"` // entries that are left of the tape
	Lost  int64  `json:"lost"` // entries that are gone, by the lines of the file
	// Bytes is the size of what is gone.
	Bytes  int64  `json:"bytes,omitempty"`
	Reason string `json:"reason"`
	// Forks lost entries that they had inherited.
	Forks []string `json:"forks,omitempty"`
}

// Mend mends a tape that [Verify] has found damaged, by its name below the data
// directory: it cuts the tape to its verified entries, and appends one that says what
// was lost. The damaged file is kept under the same name below the folder aside. known
// is what is known of the session, if anything is; a tape of which nothing can be
// verified begins again only with it, and is gone without it. Mend returns nil for a
// tape that is whole. While another process has the tape open, the error wraps
// [journal.ErrLocked].
func (m *Manager) Mend(file, aside string, known Known) (*Mended, error) {
	before, _, herr := m.header(file)
	done := Mended{Session: cmp.Or(before.SessionID, known.ID), File: file, Aside: path.Join(aside, file)}
	left := int64(0) // last entry that is left
	at := lost{Aside: done.Aside}
	least := int64(0)
	if known.Settled {
		least = known.Size
	}
	loss, err := journal.Mend(m.cfg.FS, file, done.Aside, least, func(l journal.Loss) ([]byte, error) {
		at.First, at.Count, at.Bytes = l.Entry, l.Lines, l.Bytes
		return repairMembers("the tape was damaged: "+l.Reason, at)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && known.something():
		err = nil
		done.Aside, done.Reason, done.Lost, done.Bytes = "", "the tape was gone", known.Counted.Seq, known.Size
	case err != nil:
		return nil, fmt.Errorf("mend %s: %w", file, err)
	case loss != nil:
		done.Kept, done.Lost, done.Bytes, done.Reason = loss.Kept, loss.Lines, loss.Bytes, loss.Reason
		if loss.Kept > 0 {
			left = loss.Entry - 1
		}
	default:
		var found bool
		found, left, err = m.mendWhole(file, &done, known)
		if err != nil || !found {
			return nil, err
		}
	}
	if done.Kept == 0 && file == tapeFile(TapeName(known.Workspace, known.ID)) {
		if err := m.begin(file, known, done); err != nil {
			return nil, fmt.Errorf("mend %s: %w", file, err)
		}
	}
	if herr == nil && done.Lost > 0 {
		done.Forks, err = m.tellForks(file, before, left)
	}
	return &done, err
}

// mendWhole mends a tape whose records are undamaged: one that is not a
// tape, has lost its parent, or ends before an entry that it had.
func (m *Manager) mendWhole(file string, done *Mended, known Known) (found bool, left int64, err error) {
	fsys := m.cfg.FS
	var o outline
	rep, err := journal.Scan(fsys, file, o.visit)
	if err != nil {
		return false, 0, err
	}
	size := rep.Last - rep.First + 1
	switch {
	case rep.Size == 0:
		if !known.something() {
			return false, 0, nil
		}
		done.Reason, done.Lost, done.Bytes = "the tape was emptied", known.Counted.Seq, known.Size
		return true, 0, journal.SetAside(fsys, file, done.Aside)
	case o.start.Epoch == "":
		done.Reason, done.Lost, done.Bytes = noStart, size, rep.Size
		return true, 0, journal.SetAside(fsys, file, done.Aside)
	case known.cut(rep, o.epoch):
		done.Aside, done.Kept, done.Lost, done.Bytes = "", size, max(known.Counted.Seq-rep.Last, 0), max(known.Size-rep.Size, 0)
		done.Reason = fmt.Sprintf("the tape was cut: it ends at entry %d", rep.Last)
		return true, rep.Last, m.note(file, done.Reason, lost{First: rep.Last + 1, Count: done.Lost, Bytes: done.Bytes})
	case o.start.Parent != nil && !o.orphan:
		_, _, perr := m.parentFile(*o.start.Parent)
		if !errors.Is(perr, errLost) {
			return false, 0, nil
		}
		done.Aside, done.Kept, done.Reason = "", size, perr.Error()
		return true, rep.Last, m.note(file, done.Reason, lost{Inherited: true, Orphaned: true})
	}
	return false, 0, nil
}

// repairMembers returns the members of a repair anchor.
func repairMembers(reason string, l lost) ([]byte, error) {
	return anchorMembers(anchorRepair, repaired{Epoch: newEpoch(), Reason: reason, Lost: &l})
}

func anchorMembers(name string, st any) ([]byte, error) {
	raw, err := json.Marshal(st)
	if err == nil {
		raw, err = json.Marshal(Anchor{Name: name, State: raw})
	}
	if err != nil {
		return nil, err
	}
	return members(KindAnchor, raw, Meta{}, time.Now())
}

// note appends a repair anchor to a tape that is whole.
func (m *Manager) note(file, reason string, l lost) error {
	return m.appendTo(file, journal.Options{MustExist: true}, func() ([]byte, error) { return repairMembers(reason, l) })
}

// appendTo opens a tape and appends entries to it, durably.
func (m *Manager) appendTo(file string, o journal.Options, entries ...func() ([]byte, error)) (err error) {
	m.index.disturb() // another process may have the index
	j, err := journal.Open(m.cfg.FS, file, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for _, e := range entries {
		b, err := e()
		if err == nil {
			_, err = j.Append(b)
		}
		if err != nil {
			return err
		}
	}
	return j.Sync(context.Background(), j.Last())
}

// begin begins a tape again of which nothing could be verified. It says so.
func (m *Manager) begin(file string, known Known, done Mended) error {
	return m.appendTo(file, journal.Options{}, func() ([]byte, error) {
		return anchorMembers(anchorStart, start{Format: tapeFormat, SessionID: known.ID, Workspace: known.Workspace, Epoch: newEpoch()})
	}, func() ([]byte, error) {
		return repairMembers("nothing of the tape could be verified: "+done.Reason, lost{First: 1, Count: done.Lost, Bytes: done.Bytes, Aside: done.Aside})
	})
}

// tellForks finds the forks that had inherited entries which are gone: those after
// last, or all of them if that is 0. It writes an entry to each that says so.
func (m *Manager) tellForks(file string, of start, last int64) (forks []string, err error) {
	tape, _, _ := strings.Cut(path.Base(file), ".jsonl")
	err = m.tapes(func(name string) error {
		h, _, err := m.header(name)
		if err != nil || h.Parent == nil || h.Parent.Tape != tape || h.Parent.Epoch != of.Epoch || h.Parent.Entry <= last {
			return nil //nolint:nilerr // a tape that cannot be read is a finding of its own
		}
		forks = append(forks, h.SessionID)
		gone := lost{First: last + 1, Count: h.Parent.Entry - last, Inherited: true, Orphaned: last == 0}
		err = m.note(name, "entries of session "+of.SessionID+", which it was forked from, are gone", gone)
		if errors.Is(err, journal.ErrLocked) {
			return nil // a running yaya works on it, and the report names it
		}
		return err
	})
	return forks, err
}

// Tapes returns the files of a session's tapes, by their names below the data directory:
// one, or those of all workspaces without one. None is opened.
func (m *Manager) Tapes(id, workspace string) (files []string, err error) {
	ws, err := absWorkspace(workspace)
	if err != nil {
		return nil, err
	}
	err = m.tapes(func(name string) error {
		if ws != "" && name == tapeFile(TapeName(ws, id)) || ws == "" && strings.HasSuffix(name, TapeName("", id)[16:]+".jsonl") {
			files = append(files, name)
		}
		return nil
	})
	slices.Sort(files)
	if err == nil && len(files) == 0 {
		err = notFound(id)
	}
	return files, err
}
