package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/journal"
)

// Info describes a session without opening it.
type Info struct {
	ID        string    `json:"id"`
	Workspace string    `json:"workspace"`
	Tape      string    `json:"tape"`
	ParentID  string    `json:"parent_id,omitempty"`
	Title     string    `json:"title"` // the first message, cut
	Size      int64     `json:"size"`  // bytes of the tape
	Modified  time.Time `json:"modified"`

	stat fs.FileInfo
}

// headSize is how much of a tape is read to describe it.
const headSize = 8 << 10

var errEmpty = errors.New("the tape is empty")

// tapes visits the names of the tape files.
func (m *Manager) tapes(visit func(name string) error) error {
	entries, err := m.cfg.FS.ReadDir(tapesDir)
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".jsonl") {
			if err := visit(path.Join(tapesDir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// header reads the first anchor of a tape, and the first message if it is near.
func (m *Manager) header(name string) (h start, title string, err error) {
	f, err := m.cfg.FS.Open(name, journal.ReadOnly)
	if err != nil {
		return start{}, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return start{}, "", err
	}
	head := make([]byte, min(size, headSize))
	if _, err := f.ReadAt(head, 0); err != nil {
		return start{}, "", err
	}
	line, rest, whole := bytes.Cut(head, []byte("\n"))
	if !whole {
		return start{}, "", fmt.Errorf("%s: %w", name, errEmpty)
	}
	e, err := decodeEntry(line)
	if err != nil {
		return start{}, "", fmt.Errorf("%s: %w", name, err)
	}
	var a Anchor
	if err := json.Unmarshal(e.Payload, &a); err != nil || a.Name != anchorStart {
		return start{}, "", fmt.Errorf("%s does not start like a tape", name)
	}
	if err := json.Unmarshal(a.State, &h); err != nil {
		return start{}, "", fmt.Errorf("%s: %w", name, err)
	}
	for title == "" && whole {
		line, rest, whole = bytes.Cut(rest, []byte("\n"))
		var msg Message
		if e, err := decodeEntry(line); whole && err == nil && e.Kind == KindMessage && json.Unmarshal(e.Payload, &msg) == nil {
			title = cut(msg.Content, 60)
		}
	}
	return h, title, nil
}

func cut(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// List describes every session, the one changed last first. Tapes that cannot be
// read are left to [Verify].
func (m *Manager) List() ([]Info, error) {
	var out []Info
	entries, err := m.cfg.FS.ReadDir(tapesDir)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".jsonl") {
			continue
		}
		stat, err := e.Info()
		var i Info
		if err == nil {
			i, err = m.describe(e.Name(), stat)
		}
		if err != nil {
			m.cfg.Log.Debug().Err(err).Str("tape", e.Name()).Msg("a tape is not listed")
			continue
		}
		out = append(out, i)
	}
	m.mu.Lock()
	if len(m.infos) > len(entries) { // of tapes that are gone
		clear(m.infos)
	}
	m.mu.Unlock()
	slices.SortFunc(out, func(a, b Info) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// describe describes the session of a tape. What a tape's beginning says does not
// change while the file is the same one, and is remembered.
func (m *Manager) describe(name string, stat fs.FileInfo) (Info, error) {
	m.mu.Lock()
	i, known := m.infos[name]
	m.mu.Unlock()
	whole := known && i.Title != "" && i.Size <= stat.Size() && os.SameFile(i.stat, stat)
	if !whole && (!known || i.Size != stat.Size() || !i.Modified.Equal(stat.ModTime())) {
		h, title, err := m.header(path.Join(tapesDir, name))
		if err != nil {
			return Info{}, err
		}
		i = Info{ID: h.SessionID, Workspace: h.Workspace, Tape: strings.TrimSuffix(name, ".jsonl"), Title: title}
		if h.Parent != nil {
			i.ParentID = h.Parent.SessionID
		}
	}
	i.Size, i.Modified, i.stat = stat.Size(), stat.ModTime().UTC(), stat
	m.mu.Lock()
	defer m.mu.Unlock()
	m.infos[name] = i
	return i, nil
}

// maxDepth bounds how many parents a fork may have.
const maxDepth = 16

// parentFile finds the file that a fork branched off, which may have been
// archived since.
func (m *Manager) parentFile(p parent) (string, start, error) {
	name := tapeFile(p.Tape)
	if h, _, err := m.header(name); err == nil && h.Epoch == p.Epoch {
		return name, h, nil
	}
	entries, err := m.cfg.FS.ReadDir(archiveDir)
	if err != nil {
		return "", start{}, err
	}
	for _, e := range entries {
		if name := path.Join(archiveDir, e.Name()); strings.HasPrefix(e.Name(), p.Tape+".") {
			if h, _, err := m.header(name); err == nil && h.Epoch == p.Epoch {
				return name, h, nil
			}
		}
	}
	return "", start{}, fmt.Errorf("the tape of session %s, of which this is a fork, is not there: %w", p.SessionID, fs.ErrNotExist)
}

var errStop = errors.New("stop")

// history computes what a fork's parent had said up to the fork.
func (m *Manager) history(p parent, depth int) (Projection, error) {
	if depth > maxDepth {
		return Projection{}, fmt.Errorf("more than %d generations of forks", maxDepth)
	}
	name, h, err := m.parentFile(p)
	if err != nil {
		return Projection{}, err
	}
	var o outline
	rep, err := journal.Scan(m.cfg.FS, name, func(id int64, line []byte) error {
		if id > p.Entry {
			return errStop
		}
		return o.visit(id, line)
	})
	if err != nil && !errors.Is(err, errStop) {
		return Projection{}, err
	}
	var proj Projection
	if h.Parent != nil && o.from == rep.First {
		if proj, err = m.history(*h.Parent, depth+1); err != nil {
			return Projection{}, err
		}
	}
	_, err = journal.Scan(m.cfg.FS, name, func(id int64, line []byte) error {
		if id > p.Entry {
			return errStop
		}
		if id < o.from {
			return nil
		}
		e, err := decodeEntry(line)
		if err == nil {
			proj.Apply(e)
		}
		return err
	})
	if err != nil && !errors.Is(err, errStop) {
		return Projection{}, err
	}
	return proj, nil
}

// inherited visits the entries of a fork's parents from id on.
func (m *Manager) inherited(p parent, from int64, visit func(Entry) error) error {
	var chain []parent
	for at := &p; at != nil; {
		if len(chain) > maxDepth {
			return fmt.Errorf("more than %d generations of forks", maxDepth)
		}
		chain = append(chain, *at)
		_, h, err := m.parentFile(*at)
		if err != nil {
			return err
		}
		at = h.Parent
	}
	for _, p := range slices.Backward(chain) {
		name, _, err := m.parentFile(p)
		if err != nil {
			return err
		}
		_, err = journal.Scan(m.cfg.FS, name, func(id int64, line []byte) error {
			if id > p.Entry {
				return errStop
			}
			if id < from {
				return nil
			}
			e, err := decodeEntry(line)
			if err != nil {
				return err
			}
			return visit(e)
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	return nil
}

// View visits the entries of a session from id on without opening it, so that a
// tape can be read that another process works on. The parent's entries are
// included for a fork. A damaged entry ends it with a [*journal.DamageError].
func (m *Manager) View(id, workspace string, from int64, visit func(Entry) error) error {
	ws, err := absWorkspace(workspace)
	if err != nil {
		return err
	}
	h, found, err := m.locate(id, ws)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	if h.Parent != nil && from <= h.Parent.Entry {
		if err := m.inherited(*h.Parent, from, visit); err != nil {
			return err
		}
	}
	_, err = journal.Scan(m.cfg.FS, tapeFile(TapeName(h.Workspace, id)), func(id int64, line []byte) error {
		if id < from {
			return nil
		}
		e, err := decodeEntry(line)
		if err != nil {
			return err
		}
		return visit(e)
	})
	return err
}

// Finding is something that [Verify] has to say about a file.
type Finding struct {
	File    string `json:"file"`
	Entry   int64  `json:"entry,omitempty"`
	Problem string `json:"problem"`
	// Damaged is false for what the next start mends by itself.
	Damaged bool `json:"damaged"`
}

// Verify reads every tape of a data directory, archived ones included, and
// reports each that is not what was written. It changes nothing and may run
// beside a daemon.
func Verify(fsys journal.FS) (files int, findings []Finding, err error) {
	for _, dir := range []string{tapesDir, archiveDir} {
		entries, err := fsys.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, findings, err
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			files++
			name := path.Join(dir, e.Name())
			var o outline
			rep, err := journal.Scan(fsys, name, o.visit)
			switch d, damaged := errors.AsType[*journal.DamageError](err); {
			case damaged:
				findings = append(findings, Finding{name, d.Entry, d.Reason, true})
			case err != nil:
				findings = append(findings, Finding{File: name, Problem: err.Error(), Damaged: true})
			case rep.Torn > 0:
				findings = append(findings, Finding{name, rep.Last + 1, fmt.Sprintf("%d bytes of an unfinished entry, which the next start cuts off", rep.Torn), false})
			case rep.Size > 0 && o.start.Epoch == "":
				findings = append(findings, Finding{name, rep.First, "it does not start like a tape", true})
			}
		}
	}
	return files, findings, nil
}
