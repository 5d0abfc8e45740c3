package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/kernel/session"
)

func sessionPruneCommand(g *daemon.Flags) *cobra.Command {
	var older string
	var archived, dry bool
	c := &cobra.Command{
		Use: "prune --older AGE", Short: "Delete sessions that have not changed for a while", Args: cobra.NoArgs,
		Long: `Delete sessions that have not changed for a while, for good; sessions that somebody works
with stay. With --archived, delete archived sessions instead, except those that forks
continue. The settings below retention do the same regularly.`,
		Example: `  yaya session prune --older 90d --dry-run
  yaya session prune --older 12h --archived`,
		RunE: func(c *cobra.Command, _ []string) error {
			if older == "" {
				return &usageError{c.CommandPath(), errors.New("--older is missing: give an age, such as 90d")}
			}
			age, err := parseAge(older)
			if err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--older: %w", err)}
			}
			req := daemon.PruneRequest{Before: time.Now().Add(-age), Archived: archived, DryRun: dry}
			var done daemon.PruneAnswer
			err = g.ChangeSessions(c.Context(), func(b *daemon.Backend) error {
				return b.API(c.Context(), http.MethodPost, "/cli/prune", req, &done)
			}, func(m *session.Manager, record daemon.Record) (err error) {
				done, err = daemon.Prune(c.Context(), m, req, record)
				return err
			})
			w := c.OutOrStdout()
			for _, name := range done.Names {
				fmt.Fprintln(w, daemon.Printable(name, 200))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, map[bool]string{false: "deleted: %d\n", true: "would be deleted: %d\n"}[dry], len(done.Names))
			return err
		},
	}
	c.Flags().StringVar(&older, "older", "", "`age` since the last change, such as 90d, 12h")
	c.Flags().BoolVar(&archived, "archived", false, "delete archived sessions instead")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be deleted")
	return c
}

// maxAge is the longest age that can be asked for, in days.
const maxAge = 36_500

// parseAge reads an age: days, or what Go takes for a duration.
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > maxAge {
			return 0, fmt.Errorf("%q is not a number of days from 1 to %d, such as 90d", s, maxAge)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not an age, such as 90d or 12h", s)
	}
	return d, nil
}

// listArchived prints the archived sessions.
func listArchived(w io.Writer, m *session.Manager, asJSON bool) error {
	list, _, err := m.Archives("", 1<<30)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "There are no archived sessions.")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "SESSION\tARCHIVED\tSIZE\tWORKSPACE\tFIRST MESSAGE")
	for _, a := range list {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", daemon.Printable(a.SessionID, 200), a.At.Local().Format("2006-01-02 15:04"), size(a.Size), daemon.Printable(a.Workspace, 60), daemon.Title(a.Title, 60))
	}
	return tw.Flush()
}
