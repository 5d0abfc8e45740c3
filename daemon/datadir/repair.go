package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Mended is one file that was repaired.
type Mended struct {
	File   string `json:"file"`
	Reason string `json:"reason"`          // what was wrong with it
	Aside  string `json:"aside,omitempty"` // where the damaged file is now
	Lost   string `json:"lost"`            // what is gone, for people
	// Tape is set for the tape of a session.
	Tape *session.Mended `json:"tape,omitempty"`
}

// Report lists the changes of a repair.
type Report struct {
	Time   time.Time `json:"time"`
	Folder string    `json:"folder,omitempty"` // of the damaged files, below the data directory
	Mended []Mended  `json:"mended"`
	// Left are files that could not be repaired.
	Left []session.Finding `json:"left,omitempty"`
	// Unaudited is the reason why the audit has no entry about it.
	Unaudited string `json:"unaudited,omitempty"`
}

// reportFile is the name of a repair's report, beside the damaged files.
const reportFile = "report.json"

// NewReport returns the report of a repair that begins now.
func NewReport() Report {
	now := time.Now().UTC()
	return Report{Time: now, Folder: path.Join(Aside, now.Format("20060102T150405.000000Z")), Mended: []Mended{}}
}

// maxPasses bounds how often the tapes are looked at: a fork can have parents upon parents.
const maxPasses = 20

// Repair mends every file that it has read and found damaged, but the control log and its keys. m is of the same
// data directory, which no other process may use meanwhile.
func Repair(ctx context.Context, root *os.Root, m *session.Manager, o Options) (Report, error) {
	r := NewReport()
	d := &dir{root: root, o: o, now: r.Time}
	known := d.known() // before a session.json is moved
	_, findings, err := Verify(ctx, root, o)
	if err != nil {
		return r, err
	}
	for range maxPasses {
		mended := len(r.Mended)
		for _, f := range findings {
			if !f.Bad() || slices.ContainsFunc(r.Left, func(l session.Finding) bool { return l.File == f.File }) {
				continue
			}
			if f.Unread {
				r.Left = append(r.Left, f)
				continue
			}
			done, err := d.mend(ctx, m, f, r.Folder, known)
			if err != nil {
				f.Problem = fmt.Sprintf("%s; it could not be repaired: %v", f.Problem, err)
				r.Left = append(r.Left, f)
				continue
			}
			if done != nil {
				r.Mended = append(r.Mended, *done)
			}
		}
		if len(r.Mended) == mended {
			break
		}
		// Forks of a tape that is gone now have lost their parent.
		if _, findings, err = session.VerifyKnown(journal.Root(root), known); err != nil {
			return r, errors.Join(err, r.Write(root))
		}
	}
	return r, r.Write(root)
}

// RepairSession mends the tapes of one session, if they are damaged. It may run beside a
// daemon that has not opened them.
func RepairSession(root *os.Root, m *session.Manager, id, workspace string) (Report, error) {
	r := NewReport()
	d := &dir{root: root, now: r.Time}
	files, err := m.Tapes(id, workspace)
	if err != nil {
		return r, err
	}
	known := d.known()
	for _, file := range files {
		done, err := d.mendTape(m, file, r.Folder, known)
		if err != nil {
			return r, errors.Join(err, r.Write(root))
		}
		if done != nil {
			r.Mended = append(r.Mended, *done)
		}
	}
	return r, r.Write(root)
}

// mend mends one file that has been found damaged.
func (d *dir) mend(ctx context.Context, m *session.Manager, f session.Finding, folder string, known map[string]session.Known) (*Mended, error) {
	k := kindOf(f.File)
	if k == nil {
		return d.mendTape(m, f.File, folder, known)
	}
	if k.left != "" {
		return nil, errors.New(k.left)
	}
	if st, err := d.root.Lstat(f.File); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(notRegular(), err)
	}
	aside := path.Join(folder, f.File)
	if err := d.move(f.File, aside); err != nil {
		return nil, err
	}
	done := &Mended{File: f.File, Reason: f.Problem, Aside: aside, Lost: k.lost}
	if k.instead == nil {
		return done, nil
	}
	said, err := k.instead(ctx, d, f.File, aside)
	if err == nil && said != "" {
		done.Lost = said
	}
	return done, err
}

func (d *dir) mendTape(m *session.Manager, file, folder string, known map[string]session.Known) (*Mended, error) {
	tape := strings.TrimSuffix(path.Base(file), ".jsonl")
	k := known[tape]
	t, err := m.Mend(file, folder, k)
	if err != nil || t == nil {
		return nil, err
	}
	k.Size, k.Settled, k.Counted = 0, false, session.Cursor{} // the tape is another one now
	known[tape] = k
	lost := fmt.Sprintf("%s, %d bytes", worded.Count(t.Lost, "entry", "entries"), t.Bytes)
	switch {
	case t.Bytes == 0:
		lost = worded.Count(t.Lost, "entry", "entries")
	case t.Lost == 0: // nobody knows how many entries they were
		lost = fmt.Sprintf("%d bytes", t.Bytes)
	}
	lost += "; " + worded.Count(t.Kept, "entry is", "entries are") + " left"
	if len(t.Forks) > 0 {
		lost += "; these forks lost what they had inherited of it: " + strings.Join(t.Forks, ", ")
	}
	return &Mended{File: t.File, Reason: t.Reason, Aside: t.Aside, Lost: lost, Tape: t}, nil
}

// Write keeps the report of a repair that has done something.
func (r *Report) Write(root *os.Root) (err error) {
	if len(r.Mended)+len(r.Left) == 0 {
		r.Folder = ""
		return nil
	}
	if err := root.MkdirAll(r.Folder, 0o700); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	at, err := root.OpenRoot(r.Folder)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(at, reportFile, append(raw, '\n'))
	return errors.Join(err, at.Close())
}
