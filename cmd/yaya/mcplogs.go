package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/internal/sse"
)

func mcpLogsCommand(g *daemon.Flags) *cobra.Command {
	var follow, asJSON bool
	var limit int
	c := &cobra.Command{
		Use: "logs NAME", Short: "Show a server's log: standard error and log messages",
		Long: `Show the recent log of a server of the running daemon: its standard error, the log
messages that it sent, and its changes of state. Secrets are masked. yaya keeps the last
2000 lines, and 256 KiB; a line of yaya's own says how many it has dropped.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 || limit > 2000 {
				return &usageError{c.CommandPath(), errors.New("--limit must be between 1 and 2000")}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			b, ok := daemon.Reach(c.Context(), p)
			if !ok {
				return errors.New("yaya is not running, and only a running yaya has server logs: start it with yaya serve")
			}
			defer b.Client.CloseIdleConnections()
			print := func(l *linelog.Line) error {
				var err error
				if asJSON {
					err = printLine(c.OutOrStdout(), l)
				} else {
					level := ""
					if l.Level != "" {
						level = " " + daemon.Printable(l.Level, 16)
					}
					_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s%s  %s\n", l.Time.Local().Format("15:04:05.000"), l.Stream, level, daemon.Printable(l.Text, 4<<10))
				}
				return err
			}
			path := "/api/mcp/servers/" + url.PathEscape(args[0]) + "/logs"
			q := fmt.Sprintf("?limit=%d", limit)
			if !follow {
				var lines []linelog.Line
				if err := b.API(c.Context(), http.MethodGet, path+q, nil, &lines); err != nil {
					return whyNoLogs(c.Context(), b, args[0], err)
				}
				for i := range lines {
					if err := print(&lines[i]); err != nil {
						return err
					}
				}
				return nil
			}
			err = followEvents(c.Context(), b, path+"/events"+q, func() error { return nil }, func(ev sse.Event) error {
				var l linelog.Line
				if err := json.Unmarshal(ev.Data, &l); err != nil {
					return fmt.Errorf("malformed log line from yaya: %w", err)
				}
				return print(&l)
			})
			return whyNoLogs(c.Context(), b, args[0], err)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print new lines as they arrive")
	c.Flags().IntVarP(&limit, "limit", "n", 200, "show at most the last `n` lines")
	c.Flags().IntVar(&limit, "lines", 200, "")
	if err := c.Flags().MarkHidden("lines"); err != nil { // the former name of the flag
		panic(err) // cannot happen: the flag was added above
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print each line as JSON")
	return c
}

// whyNoLogs explains why a server without logs was never started, or that no server has the
// name.
func whyNoLogs(ctx context.Context, b *daemon.Backend, name string, err error) error {
	var r daemon.Report
	if !daemon.AnsweredWith(err, http.StatusNotFound) || b.GetJSON(ctx, "/status", &r) != nil {
		return err
	}
	for _, x := range r.Invalid {
		if x.Name == name {
			return fmt.Errorf("server %q has no log, because it cannot start: %s", name, daemon.Printable(x.Error, 400))
		}
	}
	for _, x := range r.Disabled {
		if x.Name == name {
			return fmt.Errorf("server %q has no log, because it is disabled (to start it: yaya mcp enable %s)", name, name)
		}
	}
	for _, x := range r.Servers {
		if x.ID == name {
			return err
		}
	}
	return fmt.Errorf("there is no server %q (see: yaya mcp list)", name)
}
