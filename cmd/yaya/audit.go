package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/internal/journal"
)

func auditCommand(g *globals) *cobra.Command {
	var since, until, actor, target, event string
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use: "audit", Short: "Show who has changed what",
		Long: `Show who has changed what: devices, keys, agents, capabilities. Entries come from
the control log, which is chained: every bit of what is shown has been checked. It
works beside a daemon and without one. The exit code is 1 if the log is damaged, was
cut, removed or replaced: what is there is shown all the same. Seals are shown with --event log_sealed; yaya
verify checks them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if limit < 1 {
				return &usageError{c.CommandPath(), errors.New("--limit must be at least 1")}
			}
			q := cluster.Query{Actor: actor, Target: target, Event: event, Limit: limit}
			for name, at := range map[string]struct {
				text string
				to   *time.Time
			}{"since": {since, &q.Since}, "until": {until, &q.Until}} {
				if *at.to, err = moment(at.text, time.Now()); err != nil {
					return &usageError{c.CommandPath(), fmt.Errorf("--%s: %w", name, err)}
				}
			}
			p, err := g.paths()
			if err != nil {
				return err
			}
			root, err := os.OpenRoot(p.data)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("there is no data directory %s", p.data)
			}
			if err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
			defer func() { err = errors.Join(err, root.Close()) }()
			out, err := cluster.AuditFile(journal.Root(root), q)
			if err != nil {
				return damagedAt(root, err)
			}
			defer func() { err = cmp.Or(err, auditDamage(root)) }()
			w := c.OutOrStdout()
			if asJSON {
				return printJSON(w, out)
			}
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, a := range out {
				fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\n", a.Index, a.Time, printable(a.Actor, 64), a.Event, printable(a.Target, 64), printable(string(a.Payload), 160))
			}
			return tw.Flush()
		},
	}
	f := c.Flags()
	f.StringVar(&since, "since", "", "from then on: RFC 3339, a date, or a duration ago such as 2h")
	f.StringVar(&until, "until", "", "before then")
	f.StringVar(&actor, "actor", "", "what that one has done: a device, a kernel, or owner")
	f.StringVar(&target, "target", "", "what was done to that")
	f.StringVar(&event, "event", "", `events of that name, or of a pattern such as "device_*"`)
	f.IntVarP(&limit, "limit", "n", 100, "at most the last so many")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(auditExportCommand(g))
	return c
}

// moment reads a time as people write it; "" is none.
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
	return time.Time{}, fmt.Errorf("%q is not a time: write 2006-01-02T15:04:05Z, 2006-01-02, or a duration such as 90m", s)
}
