package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

const (
	archiveSuffix = ".bak"
	stampFormat   = "20060102T150405.000000Z"
	// putAway has the folders of archived sessions, under names that end with the time in
	// milliseconds.
	putAway = filesDir + "/.archive"
)

func stamp(at time.Time) string { return at.UTC().Format(stampFormat) }

// Archived is a tape in the archive.
type Archived struct {
	Name      string    `json:"name"` // of the file
	SessionID string    `json:"session_id"`
	Workspace string    `json:"workspace"`
	Title     string    `json:"title"`
	Size      int64     `json:"size"`
	At        time.Time `json:"archived_at"`
	// Needed says that forks read it: it is not removed while there are any.
	Needed bool `json:"needed"`
}

// away is the name of an archived tape, taken apart.
type away struct {
	name, tape string
	at         time.Time
	deleted    bool // only forks still need it
}

// archive returns the archived tapes, the last one first.
func (m *Manager) inArchive() ([]away, error) {
	entries, err := m.cfg.FS.ReadDir(archiveDir)
	if err != nil {
		return nil, fmt.Errorf("archive of sessions: %w", err)
	}
	var out []away
	for _, e := range entries {
		tape, rest, ok := strings.Cut(e.Name(), ".jsonl.")
		text, deleted := strings.CutSuffix(rest, deletedSuffix)
		if !deleted {
			text, ok = strings.CutSuffix(rest, archiveSuffix)
		}
		at, err := time.Parse(stampFormat, text)
		if ok && err == nil && !e.IsDir() {
			out = append(out, away{e.Name(), tape, at, deleted})
		}
	}
	slices.SortFunc(out, func(a, b away) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return out, nil
}

// needed returns the names of the archived tapes that sessions read: forks, and forks
// of what these read.
func (m *Manager) needed(all []away) (map[string]bool, error) {
	if err := m.ensure(); err != nil {
		return nil, err
	}
	forks, err := m.index.forks()
	if err != nil {
		return nil, err
	}
	byTape := map[string][]string{}
	for _, a := range all {
		byTape[a.tape] = append(byTape[a.tape], a.name)
	}
	out := map[string]bool{}
	for _, f := range forks {
		at := f.Parent
		for range maxDepth {
			if at == nil {
				break
			}
			at = m.needs(*at, byTape, out)
		}
	}
	return out, nil
}

// needs notes the archived tape that a fork reads, and returns what that one reads. A
// tape that cannot be read may be the one.
func (m *Manager) needs(p parent, byTape map[string][]string, out map[string]bool) (next *parent) {
	if h, _, err := m.header(tapeFile(p.Tape)); err == nil && h.Epoch == p.Epoch {
		return h.Parent
	}
	for _, name := range byTape[p.Tape] {
		h, _, err := m.header(path.Join(archiveDir, name))
		if err != nil || h.Epoch == p.Epoch {
			out[name] = true
			if err == nil {
				next = h.Parent
			}
		}
	}
	return next
}

// Archives describes up to limit archived tapes, the last one first: those behind the
// one of that name, "" for the first.
func (m *Manager) Archives(after string, limit int) (out []Archived, more bool, err error) {
	all, err := m.inArchive()
	if err != nil {
		return nil, false, err
	}
	needed, err := m.needed(all)
	if err != nil {
		return nil, false, err
	}
	all = slices.DeleteFunc(all, func(a away) bool { return a.deleted })
	if after != "" {
		i := slices.IndexFunc(all, func(a away) bool { return a.name == after })
		all = all[i+1:]
	}
	out = []Archived{}
	for _, a := range all {
		if len(out) == limit {
			return out, true, nil
		}
		item := Archived{Name: a.name, At: a.at, Needed: needed[a.name]}
		name := path.Join(archiveDir, a.name)
		if h, title, err := m.header(name); err == nil { // a damaged one is listed by its name
			item.SessionID, item.Workspace, item.Title = h.SessionID, h.Workspace, title
		}
		if f, err := m.cfg.FS.Open(name, 0); err == nil {
			item.Size, err = f.Size()
			if err = errors.Join(err, f.Close()); err != nil {
				return nil, false, err
			}
		}
		out = append(out, item)
	}
	return out, false, nil
}

// PruneArchives removes the archived tapes and folders from before that time, except
// tapes that forks read, and returns how many tapes. Tapes of deleted sessions go as
// soon as no fork reads them.
func (m *Manager) PruneArchives(before time.Time) (n int, err error) {
	all, err := m.inArchive()
	if err != nil {
		return 0, err
	}
	needed, err := m.needed(all)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, a := range all {
		if needed[a.name] || (!a.deleted && !a.at.Before(before)) {
			continue
		}
		if err := m.cfg.FS.Remove(path.Join(archiveDir, a.name)); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	entries, err := m.cfg.FS.ReadDir(putAway)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		i := strings.LastIndexByte(e.Name(), '.')
		ms, err := strconv.ParseInt(e.Name()[i+1:], 10, 64)
		if err == nil && i > 0 && time.UnixMilli(ms).Before(before) {
			errs = append(errs, m.removeAll(path.Join(putAway, e.Name()), maxFolders))
		}
	}
	return n, errors.Join(errs...)
}

// Stale returns the ids of sessions that have not changed since then, without those of
// sub-agents, which go with theirs.
func (m *Manager) Stale(before time.Time) (out []Info, err error) {
	if err := m.exact(context.Background()); err != nil { // a row may be older than its tape
		return nil, err
	}
	all, _, err := m.Page(Place{Changed: before, ID: "\x00"}, maxListed, func(id, _ string) bool { return event.CheckClientSession(id) == nil })
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if s, open := m.Get(i.ID); open && s.inUse() {
			continue
		}
		out = append(out, i)
	}
	return out, nil
}

// inUse reports whether somebody works with the session or looks at it.
func (s *Session) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins > 0 || len(s.conns) > 0 || s.st.turn != "" || len(s.st.asks) > 0 || len(s.st.queue) > 0
}
