package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/internal/sse"
)

func mcpLogsCommand(g *globals) *cobra.Command {
	var follow, asJSON bool
	var limit int
	c := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server says: standard error and log messages",
		Long: `Show what a server of the running daemon has said lately, secrets masked: its
standard error, the log messages that it has sent, and the states that it came
to.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 || limit > 2000 {
				return &usageError{c.CommandPath(), errors.New("--limit must be from 1 to 2000")}
			}
			p, err := g.paths()
			if err != nil {
				return err
			}
			b, ok := daemon(c.Context(), p)
			if !ok {
				return errors.New("yaya is not running, and only a running yaya has logs of its servers: start it with yaya serve")
			}
			defer b.client.CloseIdleConnections()
			print := func(l *linelog.Line) error {
				var err error
				if asJSON {
					err = printLine(c.OutOrStdout(), l)
				} else {
					level := ""
					if l.Level != "" {
						level = " " + printable(l.Level, 16)
					}
					_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s%s  %s\n", l.Time.Local().Format("15:04:05.000"), l.Stream, level, printable(l.Text, 4<<10))
				}
				return err
			}
			path := "/api/mcp/servers/" + url.PathEscape(args[0]) + "/logs"
			q := fmt.Sprintf("?limit=%d", limit)
			if !follow {
				var lines []linelog.Line
				if err := b.api(c.Context(), http.MethodGet, path+q, nil, &lines); err != nil {
					return whyNoLogs(c.Context(), b, args[0], err)
				}
				for i := range lines {
					if err := print(&lines[i]); err != nil {
						return err
					}
				}
				return nil
			}
			err = b.events(c.Context(), path+"/events"+q, func() error { return nil }, func(ev sse.Event) error {
				var l linelog.Line
				if err := json.Unmarshal(ev.Data, &l); err != nil {
					return fmt.Errorf("yaya sent what is not a line: %w", err)
				}
				return print(&l)
			})
			return whyNoLogs(c.Context(), b, args[0], err)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what it says")
	c.Flags().IntVarP(&limit, "limit", "n", 200, "at most the last `n` lines")
	c.Flags().IntVar(&limit, "lines", 200, "")
	if err := c.Flags().MarkHidden("lines"); err != nil { // the name of before
		panic(err) // cannot be: it was added above
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each")
	return c
}

// whyNoLogs says of a server that was never started why, and of a name that is nobody's
// that it is.
func whyNoLogs(ctx context.Context, b *backend, name string, err error) error {
	var r report
	if !answeredWith(err, http.StatusNotFound) || b.getJSON(ctx, "/status", &r) != nil {
		return err
	}
	for _, x := range r.Invalid {
		if x.Name == name {
			return fmt.Errorf("server %q has said nothing: it cannot be started: %s", name, printable(x.Error, 400))
		}
	}
	for _, x := range r.Disabled {
		if x.Name == name {
			return fmt.Errorf("server %q has said nothing: it is disabled; start it with: yaya mcp enable %s", name, name)
		}
	}
	for _, x := range r.Servers {
		if x.ID == name {
			return err
		}
	}
	return fmt.Errorf("there is no server %q; yaya mcp list shows those that there are", name)
}
