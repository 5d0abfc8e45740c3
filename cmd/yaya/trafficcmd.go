package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/internal/traffic"
)

func trafficCommand(g *globals) *cobra.Command {
	var follow, asJSON bool
	var f traffic.Filter
	var since string
	c := &cobra.Command{
		Use: "traffic", Short: "Show the calls that pass through yaya",
		Long: `Show the calls that pass through yaya: who called which tool of which server,
with what, what came back, and how long it took. Calls are recorded for 7 days
or 256 MiB, secrets masked: see traffic.days, traffic.max_bytes and
traffic.bodies (yaya config list). It works beside a daemon and without one.`,
		Example: `  yaya traffic -f
  yaya traffic --errors --since 1h
  yaya traffic show 1234`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.Limit < 1 || f.Limit > traffic.MaxLimit {
				return &usageError{c.CommandPath(), fmt.Errorf("-n must be from 1 to %d", traffic.MaxLimit)}
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
	fl.BoolVarP(&follow, "follow", "f", false, "go on with calls as they end")
	fl.StringVar(&f.Server, "server", "", "calls of the server `name`")
	fl.StringVar(&f.Tool, "tool", "", "calls of the tool `name`, by either of its names")
	fl.StringVar(&f.Client, "client", "", "calls by the client that says `name` of itself")
	fl.BoolVar(&f.Errors, "errors", false, "calls that failed")
	fl.StringVar(&since, "since", "", "calls since a `time`: RFC 3339, a date, or 1h, an hour ago")
	fl.IntVarP(&f.Limit, "limit", "n", 50, "at most the last `n`")
	fl.BoolVar(&asJSON, "json", false, "print JSON, with -f a line for each call")
	c.AddCommand(trafficShowCommand(g))
	return c
}

func trafficShowCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show ID", Short: "Show all that is recorded of one call", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(strings.TrimPrefix(args[0], "#"), 10, 64)
			if err != nil || id < 1 {
				return &usageError{c.CommandPath(), fmt.Errorf("%q is not the id of a call: yaya traffic shows them", args[0])}
			}
			return withCalls(c.Context(), g, func(src callSource) error {
				page, err := src.list(c.Context(), traffic.Filter{After: id - 1, Before: id + 1, Limit: 1, Bodies: true})
				if err != nil {
					return err
				}
				if len(page.Calls) == 0 {
					return fmt.Errorf("call %d is not in the record: yaya traffic shows those that are; the oldest are removed", id)
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
