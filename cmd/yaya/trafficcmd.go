package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/traffic"
)

func trafficCommand(g *daemon.Flags) *cobra.Command {
	var follow, asJSON bool
	var f traffic.Filter
	var since string
	c := &cobra.Command{
		Use: "traffic", Short: "Show the calls that pass through yaya",
		Long: `Show the calls that pass through yaya: who called which tool of which server, the
arguments, the result, and the duration. yaya keeps calls for 7 days or up to 256 MiB,
with secrets masked: see traffic.days, traffic.max_bytes and traffic.bodies (yaya config
list). The command works with or without a running daemon.`,
		Example: `  yaya traffic -f
  yaya traffic --errors --since 1h
  yaya traffic show 1234`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.Limit < 1 || f.Limit > traffic.MaxLimit {
				return &usageError{c.CommandPath(), fmt.Errorf("-n must be between 1 and %d", traffic.MaxLimit)}
			}
			if f.Since, err = moment(since, time.Now()); err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--since: %w", err)}
			}
			f.Bodies = true
			return withCalls(c.Context(), g, func(src callSource) error {
				w := c.OutOrStdout()
				if !follow {
					page, err := src.list(c.Context(), f)
					if err != nil {
						return err
					}
					return printCalls(c, page, asJSON)
				}
				return src.follow(c.Context(), f, func(r *traffic.Record) error {
					if asJSON {
						return printLine(w, r)
					}
					_, err := io.WriteString(w, callLine(r))
					return err
				})
			})
		},
	}
	fl := c.Flags()
	fl.BoolVarP(&follow, "follow", "f", false, "print new calls as they end")
	fl.StringVar(&f.Server, "server", "", "calls of the server `name`")
	fl.StringVar(&f.Tool, "tool", "", "calls of the tool `name`, by either of its names")
	fl.StringVar(&f.Client, "client", "", "calls of the client that reports this `name`")
	fl.BoolVar(&f.Errors, "errors", false, "only calls that failed")
	fl.StringVar(&since, "since", "", "calls since a `time`: RFC 3339, a date, or a duration ago such as 1h")
	fl.IntVarP(&f.Limit, "limit", "n", 50, "show at most the last `n` calls")
	fl.BoolVar(&asJSON, "json", false, "print JSON; with -f, one line per call")
	c.AddCommand(trafficShowCommand(g))
	return c
}

func trafficShowCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show ID", Short: "Show the full record of one call", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(strings.TrimPrefix(args[0], "#"), 10, 64)
			if err != nil || id < 1 {
				return &usageError{c.CommandPath(), fmt.Errorf("%q is not a call id (see: yaya traffic)", args[0])}
			}
			return withCalls(c.Context(), g, func(src callSource) error {
				page, err := src.list(c.Context(), traffic.Filter{After: id - 1, Before: id + 1, Limit: 1, Bodies: true})
				if err != nil {
					return err
				}
				if len(page.Calls) == 0 {
					return fmt.Errorf("call %d is not in the record: it never was, or it was removed because of its age (see: yaya traffic)", id)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), page.Calls[0])
				}
				_, err = io.WriteString(c.OutOrStdout(), callDetails(&page.Calls[0]))
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
