package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

const (
	filesDir = "sessions" // has a folder of files for each session
	// deletedDir has the tapes of sessions whose files are being removed, under names
	// that end with the folder: a crash leaves them to the next [Manager.Sweep].
	deletedDir = "tapes/.deleted"
	// deletedSuffix ends the names of archived tapes that only forks still need.
	deletedSuffix = ".deleted"
	maxFolders    = 8 // deep
)

// Delete deletes a session for good, with its sub-agents: its tape, attachments,
// artifacts and records. Agreed, if it is not nil, is called once nothing else
// prevents the deletion, and prevents it with an error. A tape that forks read stays in the
// archive until they are gone; kept says so. A damaged session can be deleted.
func (m *Manager) Delete(id, workspace string, agreed func() error) (kept bool, err error) {
	ws, err := absWorkspace(workspace)
	if err != nil {
		return false, err
	}
	head, found, err := m.locate(id, ws)
	if err != nil {
		return false, err
	}
	if !found {
		return false, notFound(id)
	}
	if err := m.ensure(); err != nil {
		return false, err
	}
	if err := m.hold(id, head.Workspace); err != nil {
		return false, err
	}
	err = m.atRest(id, nil, func() error {
		kept, err = m.delete(head, agreed)
		return err
	})
	if err != nil {
		return kept, err
	}
	var errs []error // what is left of it has to go in any case, since nobody can delete it again
	for _, r := range m.index.find(func(r *row) bool { return strings.HasPrefix(r.id, id+event.AgentSeparator) }) {
		sub, _, err := m.header(tapeFile(r.key.tape()))
		if err != nil || sub.Workspace != head.Workspace {
			continue // damaged, or of the same id elsewhere
		}
		if _, err := m.delete(sub, nil); err != nil && !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return kept, errors.Join(append(errs, m.forgotten(id))...)
}

// held returns the session of a tape with its locks held, and registers it, so that
// nobody opens or forks it until [Session.letGo].
func (m *Manager) held(head start) (*Session, error) {
	m.mu.Lock()
	s := m.known(head.SessionID)
	if s == nil {
		s = &Session{m: m, id: head.SessionID, workspace: head.Workspace, tape: TapeName(head.Workspace, head.SessionID), parent: head.Parent, birth: head.Epoch}
		m.sessions[s.id] = s
	}
	m.mu.Unlock()
	if s.workspace != head.Workspace {
		return nil, fmt.Errorf("session %s is open in %s, not in %s", s.id, s.workspace, head.Workspace)
	}
	s.forking.Lock()
	s.mu.Lock()
	if s.gone {
		s.letGo()
		return nil, notFound(s.id)
	}
	return s, nil
}

func (s *Session) letGo() {
	s.mu.Unlock()
	s.forking.Unlock()
}

func (m *Manager) delete(head start, agreed func() error) (kept bool, err error) {
	s, err := m.held(head)
	if err != nil {
		return false, err
	}
	kept, err = s.delete(agreed)
	gone := s.gone
	s.letGo()
	if gone { // even if that may not be on the disk
		m.end(s.id)
	}
	if err != nil {
		return kept, fmt.Errorf("delete session %s: %w", s.id, err)
	}
	m.left(s)
	if err := m.Sweep(); err != nil {
		m.cfg.Log.Warn().Err(err).Str("session", s.id).Msg("files of a deleted session are still there")
	}
	m.deleted(s.id)
	return kept, nil
}

// left ends what looks at a session that is gone, and forgets it.
func (m *Manager) left(s *Session) {
	for _, c := range s.connections() {
		c.end("client_close")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.id] == s {
		delete(m.sessions, s.id)
	}
}

// deleted says that a session is gone.
func (m *Manager) deleted(id string) {
	m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionWasDeleted, id, event.SessionDeleted{SessionID: id})
		return err
	})
}

// delete takes the tape away; mu is held. From the rename on the session is gone, and
// what is left of it only has to be removed.
func (s *Session) delete(agreed func() error) (kept bool, err error) {
	fsys, name := s.m.cfg.FS, tapeFile(s.tape)
	if s.st.turn != "" {
		return false, ErrBusy
	}
	if s.j == nil { // another process may have it
		f, err := fsys.Open(name, journal.Append)
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
	} else if err := s.j.Sync(context.Background(), s.j.Last()); err != nil {
		return false, err
	}
	if kept, err = s.m.forked(s.tape, s.birth); err != nil {
		return false, err
	}
	if agreed != nil {
		if err := agreed(); err != nil {
			return false, err
		}
	}
	if kept {
		to := path.Join(archiveDir, s.tape+".jsonl."+stamp(time.Now())+deletedSuffix)
		if err := errors.Join(fsys.Link(name, to), fsys.SyncDir(archiveDir)); err != nil {
			return kept, err
		}
	}
	defer s.m.index.naming()()
	if err := fsys.MkdirAll(deletedDir); err != nil {
		return kept, err
	}
	if err := fsys.Rename(name, path.Join(deletedDir, s.tape+"~"+event.Folder(s.id))); err != nil {
		return kept, err
	}
	s.m.index.drop(s.key())
	s.gone = true
	if err := errors.Join(fsys.SyncDir(deletedDir), fsys.SyncDir(tapesDir)); err != nil {
		return kept, errors.Join(err, s.close())
	}
	s.m.forgetQueue(s.tape)
	return kept, s.close()
}

// Sweep removes what is left of sessions that were deleted.
func (m *Manager) Sweep() error {
	entries, err := m.cfg.FS.ReadDir(deletedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		tape, folder, ok := strings.Cut(e.Name(), "~")
		if key, is := keyOf(tape); ok && is && folder != "" && !m.inUse(key) {
			if err := m.removeAll(path.Join(filesDir, folder), maxFolders); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		errs = append(errs, m.cfg.FS.Remove(path.Join(deletedDir, e.Name())))
	}
	return errors.Join(errs...)
}

// inUse reports whether there is a session with the id of a tape, in whatever
// workspace: they share a folder.
func (m *Manager) inUse(key tapeKey) bool {
	if m.ensure() != nil {
		return true
	}
	m.index.mu.Lock()
	defer m.index.mu.Unlock()
	return m.index.rows[key.half()] != nil
}

// removeAll removes a file or a folder; what is not there is removed.
func (m *Manager) removeAll(name string, depth int) error {
	fsys := m.cfg.FS
	if err := fsys.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := fsys.ReadDir(name)
	if err != nil {
		return err
	}
	if depth == 0 {
		return fmt.Errorf("%s has too many folders in each other", name)
	}
	for _, e := range entries {
		if err := m.removeAll(path.Join(name, e.Name()), depth-1); err != nil {
			return err
		}
	}
	return fsys.Remove(name)
}

// inherit gives a fork the files of its parent: its history names them. They are
// written once, so both may have the same ones.
func (m *Manager) inherit(parent, child string) error {
	for _, kind := range []string{"attachments", "artifacts"} {
		from := path.Join(filesDir, event.Folder(parent), kind)
		if err := m.share(from, path.Join(filesDir, event.Folder(child), kind), maxFolders); err != nil {
			return fmt.Errorf("files of session %s: %w", parent, err)
		}
	}
	return nil
}

func (m *Manager) share(from, to string, depth int) error {
	fsys := m.cfg.FS
	entries, err := fsys.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || depth == 0 {
		return cmp.Or(err, fmt.Errorf("%s has too many folders in each other", from))
	}
	made := false
	for _, e := range entries {
		a, b := path.Join(from, e.Name()), path.Join(to, e.Name())
		if e.IsDir() {
			if err := m.share(a, b, depth-1); err != nil {
				return err
			}
			continue
		}
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() { // an upload that is not finished
			continue
		}
		if !made {
			made = true
			if err := fsys.MkdirAll(to); err != nil {
				return err
			}
		}
		if err := fsys.Link(a, b); err == nil || errors.Is(err, fs.ErrExist) {
			continue
		}
		if err := m.copyFile(a, b); err != nil { // a file system without links
			return err
		}
	}
	if !made {
		return nil
	}
	return fsys.SyncDir(to)
}

func (m *Manager) copyFile(from, to string) (err error) {
	in, err := m.cfg.FS.Open(from, journal.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	size, err := in.Size()
	if err != nil {
		return err
	}
	out, err := m.cfg.FS.Open(to, journal.Create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; {
		n, err := in.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 {
			return err
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return out.Sync()
}
