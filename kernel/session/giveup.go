package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
)

// movedAway is why a session cannot be used that was here a moment ago.
func movedAway(id string) error {
	return worded.Error(ErrElsewhere, "another node has just taken over the session %s: try again", id)
}

// GiveUp puts a session away that another node owns, with its sub-agents. A tape that has entries which
// were not copied stays in the archive; another one stays as long as forks read it.
func (m *Manager) GiveUp(id string) error {
	_, err := m.giveUp(id, false)
	return err
}

// giveUp is GiveUp. away is false for a session that is this node's after all, or again: that one stays, unless it
// is to go in any case.
func (m *Manager) giveUp(id string, always bool) (away bool, err error) {
	m.giving.Lock()
	defer m.giving.Unlock()
	if !always && m.Elsewhere(context.Background(), id) == "" {
		return false, nil
	}
	return true, m.putAway(id)
}

// putAway puts a session away; giving is held.
func (m *Manager) putAway(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), giveUpTime)
	defer cancel()
	var all []start
	var files []File
	err := m.family(id, func(h start, tape string) error {
		size, err := m.size(tapeFile(tape))
		all, files = append(all, h), append(files, File{tapeFile(tape), h.Epoch, size})
		return err
	})
	if err != nil {
		return err
	}
	if len(all) == 0 { // a try before may have left what others keep
		return m.ended(id)
	}
	whole, err := m.cfg.Owner.Copied(ctx, id, files)
	if err != nil { // then nothing is lost for sure
		whole = false
	}
	errs := []error{err}
	for _, h := range all {
		s, err := m.held(h)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		name, err := s.putAway(whole)
		s.letGo()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, m.putFolderAway(s.id, whole)) // the session is gone in any case
		m.left(s)
		log := m.cfg.Log.Warn().Str("session", s.id)
		if !whole {
			log = log.Str("archive", name)
		}
		log.Msg("a session was put away, because the cluster has another copy of it")
		m.deleted(s.id)
	}
	return errors.Join(append(errs, m.ended(id))...) // its own tape may have gone before, without an end
}

const giveUpTime = 10 * time.Second

// removals bounds the tries to remove a folder in which a file appears meanwhile.
const removals = 10

// putFolderAway takes the folder of a session away, for the archive if its tape is there.
func (m *Manager) putFolderAway(id string, copied bool) error {
	folder := path.Join(filesDir, event.Folder(id))
	if copied {
		var err error
		for range removals { // a reader of the session may be writing a file there
			if err = m.removeAll(folder, maxFolders); !errors.Is(err, fs.ErrExist) {
				break
			}
		}
		return err
	}
	if err := m.cfg.FS.MkdirAll(putAway); err != nil {
		return err
	}
	err := m.cfg.FS.Rename(folder, fmt.Sprintf("%s/%s.%d", putAway, event.Folder(id), time.Now().UnixMilli()))
	if errors.Is(err, fs.ErrNotExist) { // only sessions of clients have one
		return nil
	}
	return err
}

// putAway takes the tape of a session of another node away; mu is held.
func (s *Session) putAway(copied bool) (name string, err error) {
	fsys, tape := s.m.cfg.FS, tapeFile(s.tape)
	suffix := archiveSuffix
	if copied {
		suffix = deletedSuffix
	}
	name = path.Join(archiveDir, s.tape+".jsonl."+stamp(time.Now())+suffix)
	if err := errors.Join(fsys.Link(tape, name), fsys.SyncDir(archiveDir)); err != nil {
		return "", err
	}
	err = s.takeAway()
	s.moved = s.gone
	return name, err
}
