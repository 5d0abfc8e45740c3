package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
)

func clusterDrainCommand(g *daemon.Flags) *cobra.Command {
	var over bool
	c := &cobra.Command{
		Use: "drain NODE", Short: "Have a node take no new MCP clients, before a restart",
		Long: `Have a node take no new MCP clients, before it is restarted for example. /health?ready=1 of that
node answers 503 with the reason "draining", so that load balancers send nobody there; new MCP
sessions that come nevertheless are passed on to another node. Its sessions go on.

The node takes clients again when it starts again, and after yaya cluster drain --end NODE.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !nodes.ValidName(args[0]) {
				return &usageError{c.CommandPath(), fmt.Errorf("%q is not the name of a node", args[0])}
			}
			return withRunning(c, g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), "POST", "/api/cluster/nodes/"+args[0]+"/drain", map[string]bool{"end": over}, nil); err != nil {
					return err
				}
				text := "%s takes no new MCP clients, until it starts again.\n"
				if over {
					text = "%s takes new MCP clients.\n"
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), text, args[0])
				return err
			})
		},
	}
	c.Flags().BoolVar(&over, "end", false, "have it take clients again")
	return c
}

// nodeTable prints the nodes of a cluster.
func nodeTable(w io.Writer, all admin.Cluster) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tSTATE\tJOINED\tSTARTED\tADDRESS")
	for _, m := range all.Members {
		started, mark := "not yet", ""
		if !m.Started.IsZero() {
			started = m.Started.Local().Format(time.DateTime)
		}
		if m.Name == all.Node {
			mark = " (this one)"
		}
		fmt.Fprintf(tw, "%s%s\t%s\t%s\t%s\t%s\n", daemon.Printable(m.Name, 63), mark, nodeState(all, m), m.Joined.Local().Format(time.DateTime), started, daemon.Printable(cmp.Or(m.Route, "-"), 260))
	}
	return tw.Flush()
}

// nodeState says how a node is, as far as the asked one knows.
func nodeState(all admin.Cluster, m admin.Member) string {
	there := m.Name == all.Node
	for _, k := range all.Kernels {
		there = there || k.ID == m.Kernel && k.Status == "connected"
	}
	switch {
	case !there:
		return "away"
	case !m.Drained.IsZero():
		return "draining"
	}
	return "running"
}
