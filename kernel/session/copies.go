package session

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
)

// File is a file of a session, as others copy it.
type File struct {
	Name string // below the data directory
	// Generation changes when a file that grows is another one; "" for one that is replaced as a whole.
	Generation string
	Size       int64
}

// grew has the tape copied as it is now; mu is held.
func (s *Session) grew(size int64) {
	if s.m.cfg.Owner != nil && !s.apart {
		s.m.cfg.Owner.Grew(event.Root(s.id), s.file(size))
	}
}

// file returns the tape with a size; mu is held.
func (s *Session) file(size int64) File { return File{tapeFile(s.tape), s.birth, size} }

// Saved has a file of a session's folder copied, by its name below the data directory.
func (m *Manager) Saved(id, name string) {
	if m.cfg.Owner != nil && !strings.HasPrefix(id, event.BridgePrefix) {
		m.cfg.Owner.Grew(event.Root(id), File{Name: name})
	}
}

// kept waits until the tape is copied as far as it was. The tape may be closed since; one that was given up is not
// copied.
func (s *Session) kept(ctx context.Context, f File) error {
	s.mu.Lock()
	moved := s.moved
	if s.j != nil && s.birth != f.Generation { // it was begun again
		f = s.file(s.j.Size())
	}
	s.mu.Unlock()
	if moved {
		return movedAway(s.id)
	}
	return s.m.cfg.Owner.Kept(ctx, event.Root(s.id), f)
}

// Describe says what a session is, for the lists of other nodes.
func (m *Manager) Describe(id string, data json.RawMessage) {
	if m.cfg.Owner != nil {
		m.cfg.Owner.Describe(id, data)
	}
}

// Shared reports whether other nodes have copies of the sessions.
func (m *Manager) Shared() bool { return m.cfg.Owner != nil }

// savedFolder has the files of a session copied that were there before its tape: those that it has inherited, and
// that say how it was made.
func (m *Manager) savedFolder(id string) error {
	if m.cfg.Owner == nil {
		return nil
	}
	for _, name := range copied {
		if err := m.below(path.Join(filesDir, event.Folder(id), name), maxFolders, func(name string) { m.Saved(id, name) }); err != nil {
			return err
		}
	}
	return nil
}

// family visits the tapes of a session and of its sub-agents.
func (m *Manager) family(id string, visit func(h start, tape string) error) error {
	if err := m.ensure(); err != nil {
		return err
	}
	for _, r := range m.index.find(func(r *row) bool { return event.Root(r.id) == id }) {
		h, _, err := m.header(tapeFile(r.key.tape()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmpty) {
			continue
		}
		if err == nil {
			err = visit(h, r.key.tape())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copied are the files in a session's folder that go with it. The record of what clients were sent follows from
// the tape.
var copied = []string{"session.json", "spent.json", "attachments", "artifacts"}

// Files lists the files of a session of this node that are copied, those of its sub-agents included.
func (m *Manager) Files(id string) (out []File, err error) {
	err = m.family(id, func(h start, tape string) error {
		size, err := m.size(tapeFile(tape))
		if err != nil {
			return err
		}
		out = append(out, File{tapeFile(tape), h.Epoch, size})
		folder := path.Join(filesDir, event.Folder(h.SessionID))
		for _, name := range copied {
			if err := m.below(path.Join(folder, name), maxFolders, func(name string) { out = append(out, File{Name: name}) }); err != nil {
				return err
			}
		}
		return nil
	})
	for i, f := range out {
		if f.Generation == "" && err == nil {
			out[i].Size, err = m.size(f.Name)
		}
	}
	return out, err
}

// size returns the size of a file.
func (m *Manager) size(name string) (n int64, err error) {
	f, err := m.cfg.FS.Open(name, journal.ReadOnly)
	if err != nil {
		return 0, err
	}
	n, err = f.Size()
	return n, errors.Join(err, f.Close())
}

// below visits a file, or the files in a folder, if it is there.
func (m *Manager) below(name string, depth int, visit func(name string)) error {
	entries, err := m.cfg.FS.ReadDir(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || depth == 0:
		return nil
	case err != nil: // it may be a file
		if _, serr := m.size(name); serr != nil {
			return err
		}
		visit(name)
		return nil
	}
	for _, e := range entries {
		at := path.Join(name, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."): // an upload that is not finished
		case e.IsDir():
			if err := m.below(at, depth-1, visit); err != nil {
				return err
			}
		case e.Type().IsRegular():
			visit(at)
		}
	}
	return nil
}
