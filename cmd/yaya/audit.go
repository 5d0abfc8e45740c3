package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/journal"
)

func auditCommand(g *daemon.Flags) *cobra.Command {
	var since, until, actor, target, event string
	var limit int
	var before int64
	var asJSON bool
	c := &cobra.Command{
		Use: "audit", Short: "Show the audit log: who changed what",
		Long: `Show the audit log: who changed devices, keys, agents and capabilities, and when.
Entries come from the hash-chained control log and are verified before they are shown;
yaya verify checks those that are not shown, too.
The command works with or without a running daemon. If the log is damaged, truncated,
removed or replaced, the exit code is 1 and the remaining entries are still shown.
--event log_sealed shows the seals; yaya verify checks them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if limit < 1 {
				return &usageError{c.CommandPath(), errors.New("--limit must be at least 1")}
			}
			q := control.Query{Actor: actor, Target: target, Event: event, Limit: limit, Before: before}
			for name, at := range map[string]struct {
				text string
				to   *time.Time
			}{"since": {since, &q.Since}, "until": {until, &q.Until}} {
				if *at.to, err = moment(at.text, time.Now()); err != nil {
					return &usageError{c.CommandPath(), fmt.Errorf("--%s: %w", name, err)}
				}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			root, err := os.OpenRoot(p.Data)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is no data directory %s", p.Data)
			}
			if err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
			defer func() { err = errors.Join(err, root.Close()) }()
			out, err := local.AuditFile(c.Context(), journal.Root(root), q)
			if err != nil {
				return daemon.DamagedAt(root, err)
			}
			defer func() { err = cmp.Or(err, daemon.AuditDamage(root, false)) }()
			w := c.OutOrStdout()
			if asJSON {
				return printJSON(w, out)
			}
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, a := range out {
				fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\n", a.Index, a.Time, daemon.Printable(a.Actor, 64), a.Event, daemon.Printable(a.Target, 64), daemon.Printable(string(a.Payload), 160))
			}
			return tw.Flush()
		},
	}
	f := c.Flags()
	f.StringVar(&since, "since", "", "entries from this `time` on: RFC 3339, a date, or a duration ago such as 2h")
	f.StringVar(&until, "until", "", "entries before this `time`")
	f.StringVar(&actor, "actor", "", "entries by this `actor`: a device, a kernel, or owner")
	f.StringVar(&target, "target", "", "entries about this `target`")
	f.StringVar(&event, "event", "", "entries with this event `name`, or a pattern such as \"device_*\"")
	f.Int64Var(&before, "before", 0, "entries with a smaller `index`, to see what came before a page")
	f.IntVarP(&limit, "limit", "n", 100, "show at most the last `n` entries")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(auditExportCommand(g))
	return c
}

// moment parses a time as people write it. The empty string is the zero time.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: use 2006-01-02T15:04:05Z, 2006-01-02, or a duration such as 90m", s)
}
