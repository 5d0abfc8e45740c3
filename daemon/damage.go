package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/unread"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Seal is the finding of yaya verify about the seals of the audit.
type Seal struct {
	Entry    int64  `json:"entry"` // index of the newest seal
	Sum      string `json:"sum"`   // of that record: it stands for every entry before
	Time     string `json:"ts"`
	From     int64  `json:"from"`     // first entry that was sealed when it was written
	Unsealed int64  `json:"unsealed"` // entries behind the newest seal
}

// String is the seal for people: its number, and when it was made.
func (s *Seal) String() string {
	text := fmt.Sprintf("audit: newest seal is entry %d, %s, of %s", s.Entry, s.Sum[:16], s.Time)
	if s.From > 1 {
		text += fmt.Sprintf("; entries 1 to %d were not sealed when they were written", s.From-1)
	}
	if s.Unsealed > 0 {
		text += "; " + worded.Count(s.Unsealed, "entry waits", "entries wait") + " for the next seal"
	}
	return text
}

// VerifyControl checks every bit of the control log, and its seals; without a log
// there are no files.
func VerifyControl(data *os.Root) (files int, findings []session.Finding, newest *Seal, err error) {
	return lookAtControl(data, local.Verify)
}

func lookAtControl(data *os.Root, look func(journal.FS, *os.Root) (local.Verdict, error)) (files int, findings []session.Finding, newest *Seal, err error) {
	keys, err := data.OpenRoot("keys")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, []session.Finding{session.FindingOf("keys", err)}, nil, nil
	}
	if keys != nil {
		defer func() { err = errors.Join(err, keys.Close()) }()
	}
	node, err := nodeOf(keys)
	if err != nil {
		findings = append(findings, session.FindingOf("keys/"+nodes.File, err))
	}
	if node != nil {
		look = func(data journal.FS, _ *os.Root) (local.Verdict, error) { return local.VerifyReplica(data) }
	}
	v, err := look(journal.Root(data), keys)
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		return max(v.Files, 1), []session.Finding{{File: d.File, Entry: d.Entry, Problem: d.Reason + "; " + remedyDamaged, Damaged: true}}, newestSeal(&v), nil
	}
	if unread.Is(err) {
		return max(v.Files, 1), []session.Finding{session.FindingOf(unreadFile(data, err), err)}, nil, nil
	}
	if err != nil {
		return 0, nil, nil, err
	}
	if p := v.Problem; p != nil {
		findings = append(findings, session.Finding{File: p.File, Entry: p.Entry, Problem: p.Problem + "; " + p.Remedy, Damaged: true})
	}
	for _, entry := range v.Resumed {
		findings = append(findings, session.Finding{File: local.File, Entry: entry, Problem: "the head file was missing at this start: entries before it may have been cut off or appended"})
	}
	if !v.Found || v.Report.Size+v.Report.Torn == 0 {
		return 0, findings, nil, nil
	}
	if v.Report.Torn > 0 {
		findings = append(findings, session.Finding{File: local.File, Entry: v.Report.Last + 1, Problem: "it was cut short; the next start removes it"})
	}
	if !holds(keys, auth.ServerKeyFile) {
		findings = append(findings, session.Finding{File: "keys/" + auth.ServerKeyFile, Problem: "the key that this yaya is known by is missing: restore it from a backup", Damaged: true})
	}
	if newest = newestSeal(&v); newest == nil && v.Problem == nil && node == nil {
		findings = append(findings, session.Finding{File: local.File, Problem: "it was never sealed: the next start of yaya seals it"})
	}
	return v.Files, findings, newest, nil
}

// nodeOf returns the node that the keys make a yaya, nil if it is alone.
func nodeOf(keys *os.Root) (*nodes.Node, error) {
	if keys == nil {
		return nil, nil //nolint:nilnil // alone
	}
	return nodes.Read(keys)
}

// unreadFile returns the file of the control log or of its keys that an error is about, or
// the folder if it does not tell.
func unreadFile(data *os.Root, err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		for _, name := range []string{e.Path, path.Join("keys", e.Path)} {
			if _, err := data.Lstat(name); err == nil && name != "keys" {
				return name
			}
		}
	}
	return path.Dir(local.File)
}

// newestSeal is the newest seal that is good, nil without one.
func newestSeal(v *local.Verdict) *Seal {
	if v.Newest.Entry == 0 {
		return nil
	}
	return &Seal{v.Newest.Entry, v.Newest.Sum, control.Stamp(v.Newest.Time), v.From, v.Unsealed}
}

// AuditDamage says why the audit of a data directory is not what yaya wrote, nil if it is.
// It looks at the files, whoever has them open, as far as they go. Unless whole is set it
// reads no segments: yaya verify does.
func AuditDamage(data *os.Root, whole bool) (err error) {
	look := local.Check
	if whole {
		look = local.Verify
	}
	_, findings, _, err := lookAtControl(data, look)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if !f.Bad() {
			continue
		}
		at := filepath.Join(data.Name(), filepath.FromSlash(f.File))
		if f.Entry > 0 {
			at += fmt.Sprintf(", entry %d", f.Entry)
		}
		return fmt.Errorf("%s: %s", at, f.Problem)
	}
	return nil
}

// remedyDamaged says what to do about a damaged record.
const remedyDamaged = "restore the file from a backup, or begin again without one (yaya repair --control); the newest seal that yaya verify prints tells how far it can be trusted"

// DamagedAt names the file of a damaged record with its whole path, and what to do.
func DamagedAt(data *os.Root, err error) error {
	d, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		return err
	}
	whole := *d
	whole.File = filepath.Join(data.Name(), filepath.FromSlash(d.File))
	return fmt.Errorf("%w; %s", &whole, remedyDamaged)
}

// HoldsData reports whether yaya has kept anything in a folder.
func HoldsData(data *os.Root) bool {
	return slices.ContainsFunc([]string{"control", "keys", "tapes", "config.json"}, func(name string) bool {
		_, err := data.Lstat(name)
		return err == nil
	})
}

func holds(dir *os.Root, name string) bool {
	if dir == nil {
		return false
	}
	_, err := dir.Lstat(name)
	return err == nil
}
