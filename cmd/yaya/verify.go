package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/session"
)

func verifyCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "verify [DIR]", Short: "Check that a data directory is whole",
		Long: `Check that a data directory is whole: every bit of every conversation, archived
ones included, and of the control log with its seals. It changes nothing, and may run
beside a daemon. The exit code is 1 if anything is damaged; the file and the entry are
named.

The newest seal of the audit is printed. Keep that line elsewhere: an older copy of the
whole directory has an older one.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := g.paths()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				p.data = args[0]
			}
			root, err := os.OpenRoot(p.data)
			if err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
			defer func() { _ = root.Close() }()
			files, findings, err := session.Verify(journal.Root(root))
			if err != nil {
				return err
			}
			n, audit, newest, err := verifyControl(root)
			if err != nil {
				return err
			}
			if files+n+len(findings)+len(audit) == 0 && !holdsData(root) {
				return fmt.Errorf("there is no yaya data in %s", p.data)
			}
			return reportVerified(c.OutOrStdout(), asJSON, files+n, append(findings, audit...), newest)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// sealed is what yaya verify says of the seals of the audit.
type sealed struct {
	Entry    int64  `json:"entry"` // index of the newest seal
	Sum      string `json:"sum"`   // of that record: it stands for every entry before
	Time     string `json:"ts"`
	From     int64  `json:"from"`     // first entry that was sealed when it was written
	Unsealed int64  `json:"unsealed"` // entries behind the newest seal
}

func (s *sealed) String() string {
	text := fmt.Sprintf("audit: newest seal is entry %d, %s, of %s", s.Entry, s.Sum[:16], s.Time)
	if s.From > 1 {
		text += fmt.Sprintf("; entries 1 to %d were not sealed when they were written", s.From-1)
	}
	if s.Unsealed > 0 {
		text += fmt.Sprintf("; %d entries wait for the next seal", s.Unsealed)
	}
	return text
}

func reportVerified(w io.Writer, asJSON bool, files int, findings []session.Finding, newest *sealed) error {
	damaged := false
	for _, f := range findings {
		damaged = damaged || f.Damaged
	}
	var err error
	if asJSON {
		if findings == nil {
			findings = []session.Finding{}
		}
		err = printJSON(w, struct {
			Files    int               `json:"files"`
			Findings []session.Finding `json:"findings"`
			Seal     *sealed           `json:"seal,omitempty"`
		}{files, findings, newest})
	} else {
		for _, f := range findings {
			mark := "note"
			if f.Damaged {
				mark = "DAMAGED"
			}
			at := f.File
			if f.Entry > 0 {
				at += fmt.Sprintf(", entry %d", f.Entry)
			}
			fmt.Fprintf(w, "%s  %s: %s\n", mark, at, printable(f.Problem, 600))
		}
		if newest != nil {
			fmt.Fprintln(w, newest)
		}
		_, err = fmt.Fprintf(w, "%s, %s\n", counted(files, "file"), counted(len(findings), "finding"))
	}
	if err == nil && damaged {
		err = &exitStatus{}
	}
	return err
}

// verifyControl checks every bit of the control log, and its seals; without a log
// there are no files.
func verifyControl(data *os.Root) (files int, findings []session.Finding, newest *sealed, err error) {
	keys, err := data.OpenRoot("keys")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil, err
	}
	if keys != nil {
		defer func() { err = errors.Join(err, keys.Close()) }()
	}
	v, err := cluster.Verify(journal.Root(data), keys)
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		return 1, []session.Finding{{File: d.File, Entry: d.Entry, Problem: d.Reason + "; " + remedyDamaged, Damaged: true}}, newestSeal(&v), nil
	}
	if err != nil {
		return 0, nil, nil, err
	}
	if p := v.Problem; p != nil {
		findings = append(findings, session.Finding{File: p.File, Entry: p.Entry, Problem: p.Problem + "; " + p.Remedy, Damaged: true})
	}
	for _, entry := range v.Resumed {
		findings = append(findings, session.Finding{File: cluster.File, Entry: entry, Problem: "the head file was missing at this start: entries before it may have been cut off or appended"})
	}
	if !v.Found || v.Report.Size+v.Report.Torn == 0 {
		return 0, findings, nil, nil
	}
	if v.Report.Torn > 0 {
		findings = append(findings, session.Finding{File: cluster.File, Entry: v.Report.Last + 1, Problem: "it was cut short; the next start removes it"})
	}
	if !hasKey(keys, auth.ServerKeyFile) {
		findings = append(findings, session.Finding{File: "keys/" + auth.ServerKeyFile, Problem: "the key that this yaya is known by is missing: restore it from a backup", Damaged: true})
	}
	if newest = newestSeal(&v); newest == nil && v.Problem == nil {
		findings = append(findings, session.Finding{File: cluster.File, Problem: "it was never sealed: the next start of yaya seals it"})
	}
	return 1, findings, newest, nil
}

// newestSeal is the newest seal that is good, nil without one.
func newestSeal(v *cluster.Verdict) *sealed {
	if v.Newest.Entry == 0 {
		return nil
	}
	return &sealed{v.Newest.Entry, v.Newest.Sum, v.Newest.Time.UTC().Format(control.TimeFormat), v.From, v.Unsealed}
}

// auditDamage says why the audit of a data directory is not what yaya wrote, nil if it is.
// It looks at the file, whoever has it open, as far as the file goes.
func auditDamage(data *os.Root) (err error) {
	_, findings, _, err := verifyControl(data)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if !f.Damaged {
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

// remedyDamaged is what to do about a record that is not as it was written.
const remedyDamaged = "restore the file from a backup; the newest seal that yaya verify prints tells how far it can be trusted"

// damagedAt names the file of a damaged record with its whole path, and what to do.
func damagedAt(data *os.Root, err error) error {
	d, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		return err
	}
	whole := *d
	whole.File = filepath.Join(data.Name(), filepath.FromSlash(d.File))
	return fmt.Errorf("%w; %s", &whole, remedyDamaged)
}

// holdsData reports whether yaya has kept anything in a folder.
func holdsData(data *os.Root) bool {
	return slices.ContainsFunc([]string{"control", "keys", "tapes", "config.json"}, func(name string) bool {
		_, err := data.Lstat(name)
		return err == nil
	})
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func hasKey(keys *os.Root, name string) bool {
	if keys == nil {
		return false
	}
	_, err := keys.Lstat(name)
	return err == nil
}
