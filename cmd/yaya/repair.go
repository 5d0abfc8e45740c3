package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/internal/worded"
)

func repairCommand(g *daemon.Flags) *cobra.Command {
	var id, workspace string
	var asJSON, controlLog bool
	c := &cobra.Command{
		Use: "repair", Short: "Repair damaged files of the data directory",
		Long: `Repair damaged files of the data directory: those that yaya verify reports.

A conversation is cut to its last verified entry, and gets an entry that says so. Of the
memory, everything that can be read is kept. Other damaged files are moved away, so that
yaya works without them. Nothing is deleted: the damaged files are in a folder below
damaged/ in the data directory, with a report. The command says of each file what was lost.
It leaves a file that it cannot read, because of its owner or a missing key, and says why.

If you have a backup, compare first: yaya restore brings back what repair cannot.

With --control, a damaged control log begins again: it is not cut, because devices that
were revoked later would come back. Earlier devices, tokens and keys are no longer valid,
and the earlier log is kept in damaged/. Restore a backup instead if you have one.
A node of a cluster loses nothing: it fetches the log from the cluster again.

With --session, only the tape of that session is repaired, and yaya can go on running.
Otherwise stop yaya first.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if workspace != "" && id == "" {
				return &usageError{c.CommandPath(), errors.New("--workspace needs --session")}
			}
			var r datadir.Report
			switch {
			case controlLog && id != "":
				return &usageError{c.CommandPath(), errors.New("--session and --control exclude each other")}
			case controlLog:
				r, err = g.RepairControl(c.Context())
			case id != "":
				r, err = g.RepairSession(c.Context(), id, workspace)
			default:
				r, err = g.RepairData(c.Context())
			}
			w := c.OutOrStdout()
			if asJSON {
				err = errors.Join(err, printJSON(w, r))
			} else {
				err = errors.Join(reportRepaired(w, r), err)
			}
			if err == nil && len(r.Left) > 0 {
				err = &exitStatus{}
			}
			return err
		},
	}
	c.Flags().StringVar(&id, "session", "", "repair the tape of this `session` alone")
	c.Flags().BoolVar(&controlLog, "control", false, "begin the control log again, if it or one of its keys is damaged")
	c.Flags().StringVar(&workspace, "workspace", "", "`workspace` of the session, if several have a session with this id")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func reportRepaired(w io.Writer, r datadir.Report) (err error) {
	say := func(format string, args ...any) {
		_, werr := fmt.Fprintf(w, format, args...)
		err = errors.Join(err, werr)
	}
	for _, x := range r.Mended {
		what := x.File
		if x.Tape != nil && x.Tape.Session != "" {
			what += " (session " + daemon.Printable(x.Tape.Session, 200) + ")"
		}
		say("repaired  %s: %s\n    lost: %s\n", what, daemon.Printable(x.Reason, 600), daemon.Printable(x.Lost, 600))
		if x.Aside != "" {
			say("    the damaged file: %s\n", x.Aside)
		}
	}
	for _, f := range r.Left {
		mark := "DAMAGED"
		if f.Unread {
			mark = "UNREAD "
		}
		say("%s   %s: %s\n", mark, f.File, daemon.Printable(f.Problem, 600))
	}
	if r.Unaudited != "" {
		say("note: %s\n", daemon.Printable(r.Unaudited, 600))
	}
	say("%s repaired\n", worded.Count(len(r.Mended), "file", "files"))
	return err
}
