package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/daemon"
)

// foundAgain founds the cluster of this node again, from its copy of the log.
func foundAgain(c *cobra.Command, g *daemon.Flags, route string, yes bool) error {
	for _, flag := range []string{"name", "nats", "creds", "ca", "replicas"} {
		if c.Flags().Changed(flag) {
			return &usageError{c.CommandPath(), fmt.Errorf("--from-copy and --%s exclude each other: the node stays the one that it is", flag)}
		}
	}
	if route != "" {
		if _, _, err := nodes.SplitRoute(route); err != nil {
			return &usageError{c.CommandPath(), err}
		}
	}
	n, err := g.FoundAgain(c.Context(), route, func(others []string) error {
		if yes {
			return nil
		}
		gone := "No other node is known."
		if len(others) > 0 {
			gone = fmt.Sprintf("The nodes %s will be removed; a majority of them that still runs would go on as another cluster.", strings.Join(others, ", "))
		}
		return errors.New(gone + " Changes that this node has no copy of are lost: devices and tokens that were revoked since are valid again. Say --yes if the other nodes are gone for good")
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "The node %s is the only one of its cluster, at %s.\nStart it: yaya serve\nThen look at yaya device list and yaya token list, and have other nodes join: yaya cluster invite --url URL\n", n.Name, n.Route)
	return err
}

func clusterMoveCommand(g *daemon.Flags) *cobra.Command {
	route := ""
	c := &cobra.Command{
		Use: "move --listen HOST:PORT", Short: "Change the address of this node for the others",
		Long: `Change the address at which the other nodes reach this machine, if the nodes keep the log. Stop a
running yaya first. The node tells the others when it starts: move one node after the other, and
wait until yaya cluster status shows the new address.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if route == "" {
				return &usageError{c.CommandPath(), errors.New("missing flag --listen: HOST:PORT, where the other nodes reach this machine")}
			}
			if _, _, err := nodes.SplitRoute(route); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			n, err := g.MoveNode(route)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "The node %s is at %s from its next start on: yaya serve\n", n.Name, n.Route)
			return err
		},
	}
	c.Flags().StringVar(&route, "listen", "", "`address` HOST:PORT of this machine for the other nodes")
	return c
}
