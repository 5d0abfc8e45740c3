package session

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
)

// PruneFiles removes artifacts from before that time to which no tape refers: of
// sessions without a tape, such as those of MCP clients, and of turns that were reset.
// Folders of files without a session go as a whole, once nothing in them is younger. It
// returns how many files it removed.
func (m *Manager) PruneFiles(before time.Time) (n int, err error) {
	if err := m.ensure(); err != nil {
		return 0, err
	}
	entries, err := m.cfg.FS.ReadDir(filesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	folders := map[string][]string{} // of sub-agents, whose names do not say whose they are
	for _, r := range m.index.find(func(r *row) bool { return event.CheckClientSession(r.id) != nil }) {
		folders[event.Folder(r.id)] = append(folders[event.Folder(r.id)], r.key.tape())
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if m.stopped() {
			break
		}
		tapes := folders[e.Name()]
		for _, r := range m.index.sameID(e.Name()) {
			tapes = append(tapes, r.key.tape())
		}
		gone, err := m.pruneFolder(path.Join(filesDir, e.Name()), tapes, before)
		n += gone
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// pruneFolder is PruneFiles for the folder of one session.
func (m *Manager) pruneFolder(folder string, tapes []string, before time.Time) (n int, err error) {
	within := folder
	if len(tapes) > 0 {
		within = path.Join(folder, "artifacts")
	}
	old, young, err := m.older(within, before, maxFolders)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	if len(tapes) == 0 && !young {
		return len(old), m.removeAll(folder, maxFolders)
	}
	refers, err := m.referred(old, tapes)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, name := range old {
		if refers[path.Base(name)] || !strings.Contains(name, "/artifacts/") {
			continue
		}
		if err := m.cfg.FS.Remove(name); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// older returns the files from before that time, and whether there are younger ones.
func (m *Manager) older(folder string, before time.Time, depth int) (old []string, young bool, err error) {
	entries, err := m.cfg.FS.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || depth == 0 {
		return nil, depth == 0, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, false, err
		case e.IsDir():
			o, y, err := m.older(name, before, depth-1)
			if err != nil {
				return nil, false, err
			}
			old, young = append(old, o...), young || y
		case info.ModTime().Before(before):
			old = append(old, name)
		default:
			young = true
		}
	}
	return old, young, nil
}

// referred returns the names of those files that tapes refer to, archived ones
// included. A tape that cannot be read ends it.
func (m *Manager) referred(files, tapes []string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(tapes) == 0 {
		return out, nil
	}
	var names []string
	for _, tape := range tapes {
		names = append(names, tapeFile(tape))
	}
	archived, err := m.inArchive()
	if err != nil {
		return nil, err
	}
	for _, a := range archived {
		for _, tape := range tapes {
			if a.tape == tape {
				names = append(names, path.Join(archiveDir, a.name))
			}
		}
	}
	for _, name := range names {
		_, err := journal.Scan(m.cfg.FS, name, func(_ int64, line []byte) error {
			if !bytes.Contains(line, []byte("art_")) {
				return nil
			}
			for _, f := range files {
				if bytes.Contains(line, []byte(path.Base(f))) {
					out[path.Base(f)] = true
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return out, nil
}
