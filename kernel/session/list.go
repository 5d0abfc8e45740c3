package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/unread"
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
	Mark      string    `json:"-"` // see [Manager.Mark]
}

// headSize is how much of a tape is read to describe it.
const headSize = 8 << 10

var errEmpty = errors.New("the tape is empty")

// beginning reads the first bytes of a tape. Between its look at the size and the read, the
// opening of the tape elsewhere may cut a torn tail off: then the size is another.
func beginning(f journal.File) ([]byte, error) {
	for try := 0; ; try++ {
		size, err := f.Size()
		if err != nil {
			return nil, err
		}
		head := make([]byte, min(size, headSize))
		if _, err = f.ReadAt(head, 0); err == nil || try == 3 || !errors.Is(err, io.EOF) {
			return head, err
		}
	}
}

// header reads the first anchor of a tape, and the first message if it is near.
func (m *Manager) header(name string) (h start, title string, err error) {
	f, err := m.cfg.FS.Open(name, journal.ReadOnly)
	if err != nil {
		return start{}, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head, err := beginning(f)
	if err != nil {
		return start{}, "", err
	}
	line, rest, whole := bytes.Cut(head, []byte("\n"))
	if !whole {
		if _, err := journal.Scan(m.cfg.FS, name, nil); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // a torn tail may be cut off meanwhile
			return start{}, "", err
		}
		return start{}, "", fmt.Errorf("%s: %w", name, errEmpty)
	}
	if err := journal.CheckFirst(name, line); err != nil {
		return start{}, "", err
	}
	e, err := decodeEntry(line)
	if err != nil {
		return start{}, "", fmt.Errorf("%s: %w", name, err)
	}
	var a Anchor
	if err := json.Unmarshal(e.Payload, &a); err != nil || a.Name != anchorStart || json.Unmarshal(a.State, &h) != nil || h.Epoch == "" {
		return start{}, "", &journal.DamageError{File: name, Entry: e.ID, Reason: noStart}
	}
	for title == "" && whole {
		line, rest, whole = bytes.Cut(rest, []byte("\n"))
		if e, err := decodeEntry(line); whole && err == nil {
			title = titleOf(e)
		}
	}
	return h, title, nil
}

// titleOf is the title that an entry gives its session, "" if none.
func titleOf(e Entry) string {
	var msg Message
	if e.Kind != KindMessage || json.Unmarshal(e.Payload, &msg) != nil {
		return ""
	}
	return cut.Line(msg.Content, 60)
}

// maxDepth bounds how many parents a fork may have.
const maxDepth = 16

// parentFile finds the file that a fork branched off, which may have been
// archived since.
func (m *Manager) parentFile(p parent) (string, start, error) {
	name := tapeFile(p.Tape)
	h, _, herr := m.header(name)
	if herr == nil && h.Epoch == p.Epoch {
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
	if herr != nil && !errors.Is(herr, fs.ErrNotExist) { // that file may be the parent's
		return "", start{}, &damagedError{p.SessionID, herr}
	}
	return "", start{}, parentLost(p)
}

var errStop = errors.New("stop")

// inheritable visits the entries of a tape that a fork sees: those up to the place
// where it branched off, and none behind a cut that the tape has got since.
func (m *Manager) inheritable(name string, p parent, visit journal.Visit) (journal.Report, error) {
	var o outline
	rep, err := journal.Scan(m.cfg.FS, name, func(id int64, line []byte) error {
		if id > p.Entry {
			return errStop
		}
		if err := o.visit(id, line); err != nil {
			return err
		}
		if o.cuts > p.Cuts {
			return errStop
		}
		return visit(id, line)
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return rep, damagedOf(p.SessionID, err)
}

// history computes the history of a fork's parent up to the fork.
func (m *Manager) history(p parent, depth int) (Projection, error) {
	if depth > maxDepth {
		return Projection{}, fmt.Errorf("more than %d generations of forks", maxDepth)
	}
	name, h, err := m.parentFile(p)
	if err != nil {
		return Projection{}, err
	}
	var o outline
	rep, err := m.inheritable(name, p, o.visit)
	if err != nil {
		return Projection{}, err
	}
	var proj Projection
	if h.Parent != nil && o.from == rep.First {
		proj, err = m.history(*h.Parent, depth+1)
		if err != nil && (!errors.Is(err, errLost) || !m.orphaned(name)) {
			return Projection{}, err
		}
	}
	from := o.from
	if o.turn > 0 { // a fork says of open calls what its parent's turn makes of them
		from = min(from, o.turn)
	}
	_, err = m.inheritable(name, p, func(id int64, line []byte) error {
		if id < from {
			return nil
		}
		e, err := decodeEntry(line)
		if err == nil {
			proj.Apply(e)
		}
		return err
	})
	return proj, err
}

// inherited visits the entries of a fork's parents from id on.
func (m *Manager) inherited(p parent, from int64, visit func(Entry) error) error {
	var chain []parent
	for at := &p; at != nil; {
		if len(chain) > maxDepth {
			return fmt.Errorf("more than %d generations of forks", maxDepth)
		}
		_, h, err := m.parentFile(*at)
		if err != nil {
			if len(chain) > 0 && errors.Is(err, errLost) && m.orphan(chain[len(chain)-1]) {
				break
			}
			return err
		}
		chain = append(chain, *at)
		at = h.Parent
	}
	for _, p := range slices.Backward(chain) {
		name, _, err := m.parentFile(p)
		if err != nil {
			return err
		}
		_, err = m.inheritable(name, p, func(id int64, line []byte) error {
			if id < from {
				return nil
			}
			e, err := decodeEntry(line)
			if err != nil {
				return err
			}
			return visit(e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// orphan reports whether a repair has given up the parent of the tape that p names.
func (m *Manager) orphan(p parent) bool {
	name, _, err := m.parentFile(p)
	return err == nil && m.orphaned(name)
}

// orphaned reports whether a repair has given up the parent of a tape.
func (m *Manager) orphaned(name string) bool {
	var o outline
	_, err := journal.Scan(m.cfg.FS, name, o.visit)
	return err == nil && o.orphan
}

// View visits the entries of a session from id on without opening it, so that it
// can read a tape that another process has open. The parent's entries are included
// for a fork. A damaged entry ends it with [ErrDamaged].
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
		return notFound(id)
	}
	name := tapeFile(TapeName(h.Workspace, id))
	if h.Parent != nil && from <= h.Parent.Entry {
		err := m.inherited(*h.Parent, from, visit)
		if err != nil && (!errors.Is(err, errLost) || !m.orphaned(name)) {
			return damagedOf(id, err)
		}
	}
	_, err = journal.Scan(m.cfg.FS, name, func(id int64, line []byte) error {
		if id < from {
			return nil
		}
		e, err := decodeEntry(line)
		if err != nil {
			return err
		}
		return visit(e)
	})
	return damagedOf(id, err)
}

// Finding is one observation of [Verify] about a file.
type Finding struct {
	File    string `json:"file"`
	Entry   int64  `json:"entry,omitempty"`
	Problem string `json:"problem"`
	// Damaged is false for findings that the next start repairs.
	Damaged bool `json:"damaged"`
	// Unread is set for a file that could not be read, and may be whole.
	Unread bool `json:"unread,omitempty"`
}

// Bad reports whether somebody has to act on the finding.
func (f Finding) Bad() bool { return f.Damaged || f.Unread }

func damagedAt(file string, entry int64, problem string) Finding {
	return Finding{File: file, Entry: entry, Problem: problem, Damaged: true}
}

// FindingOf returns the finding about a file whose check failed.
func FindingOf(file string, err error) Finding {
	if unread.Is(err) {
		return Finding{File: file, Problem: unread.Problem(err), Unread: true}
	}
	return damagedAt(file, 0, err.Error())
}

// Verify reads every tape of a data directory, archived ones included, and reports
// each that differs from what was written. It changes nothing and may run beside a
// daemon.
func Verify(fsys journal.FS) (files int, findings []Finding, err error) {
	return VerifyKnown(fsys, nil)
}

// VerifyKnown is Verify, and reports the tapes, too, that have lost an entry which is
// known by the name of the tape.
func VerifyKnown(fsys journal.FS, known map[string]Known) (files int, findings []Finding, err error) {
	m := &Manager{cfg: Config{FS: fsys}}
	for _, dir := range []string{tapesDir, archiveDir} {
		entries, err := fsys.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, findings, err
		}
		for _, e := range entries {
			name, tape := e.Name(), ""
			if dir == tapesDir {
				var ok bool
				if tape, ok = strings.CutSuffix(name, ".jsonl"); !ok {
					continue // none of ours, or what a crash has left
				}
			}
			if e.IsDir() {
				continue
			}
			files++
			findings = append(findings, m.verify(path.Join(dir, name), known[tape])...)
		}
	}
	return files, findings, nil
}

// verify reads one tape.
func (m *Manager) verify(name string, known Known) []Finding {
	var o outline
	rep, err := journal.Scan(m.cfg.FS, name, o.visit)
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		return []Finding{damagedAt(name, d.Entry, d.Reason)}
	}
	if err != nil {
		return []Finding{FindingOf(name, err)}
	}
	switch {
	case rep.Size == 0 && known.something():
		return []Finding{damagedAt(name, 0, "it was emptied: it had "+known.had())}
	case rep.Size > 0 && o.start.Epoch == "":
		return []Finding{damagedAt(name, rep.First, noStart)}
	case rep.Size > 0 && known.cut(rep, o.epoch):
		return []Finding{damagedAt(name, rep.Last+1, "it was cut: it had "+known.had())}
	}
	if o.start.Parent != nil && !o.orphan {
		if _, _, err := m.parentFile(*o.start.Parent); errors.Is(err, errLost) {
			return []Finding{damagedAt(name, 0, err.Error())}
		}
	}
	if rep.Torn > 0 {
		return []Finding{{File: name, Entry: rep.Last + 1, Problem: fmt.Sprintf("%d bytes of an unfinished entry, which the next start cuts off", rep.Torn)}}
	}
	return nil
}
