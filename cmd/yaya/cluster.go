package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/secretfile"
)

func clusterCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "cluster", Short: "Work as several yayas with one truth: init, join, status",
		Long: `Work as several yayas with one truth: devices, tokens, agents and the audit are the same on
every node, and a change on one is a change on all. The nodes keep them, or NATS servers with
JetStream that your team runs. docs/CLUSTER.md says what is shared, and what is not.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(clusterInitCommand(g), clusterInviteCommand(g), clusterJoinCommand(g), clusterStatusCommand(g), clusterDrainCommand(g), clusterMoveCommand(g), clusterRemoveCommand(g))
	return c
}

// withRunning runs f with the yaya that runs here.
func withRunning(c *cobra.Command, g *daemon.Flags, f func(*daemon.Backend) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	done, err := daemon.WithDaemon(c.Context(), p, f)
	if !done && err == nil {
		err = fmt.Errorf("no yaya runs on %s: start it with yaya serve", p.Data)
	}
	return err
}

// hostName is the name of this machine as the name of a node, "" if it cannot be one.
func hostName() string {
	name, err := os.Hostname()
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if err != nil || !nodes.ValidName(name) {
		return ""
	}
	return name
}

func clusterInitCommand(g *daemon.Flags) *cobra.Command {
	f := daemon.Founding{}
	var credentials, ca string
	var again, yes bool
	c := &cobra.Command{
		Use: "init --listen HOST:PORT | --nats URL | --from-copy", Short: "Make this yaya the first node of a cluster",
		Long: `Make this yaya the first node of a cluster. It begins with the devices, tokens, agents and the
audit of this yaya. Stop a running yaya first.

With --listen the nodes keep the log: of three nodes, one may fail. The address is where the
other nodes reach this machine; they connect with TLS, and nobody else can. With --nats, NATS
servers with JetStream keep the log.

With --from-copy, a node whose nodes kept the log founds the cluster again from its own copy,
as the only node. That is for when the majority is gone for good, or a node was restored from a
backup and no other is left: changes that the copy does not have are lost. The other nodes are
removed, and can no longer connect; have them join again with --again.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if again {
				return foundAgain(c, g, f.Node.Route, yes)
			}
			if err := whoKeeps(c, f.Node); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if !nodes.ValidName(f.Node.Name) {
				return &usageError{c.CommandPath(), fmt.Errorf("%q cannot be the name of a node: --name NAME takes lower-case letters, digits and hyphens", f.Node.Name)}
			}
			if f.Replicas != 0 && f.Replicas != 1 && f.Replicas != 3 && f.Replicas != 5 {
				return &usageError{c.CommandPath(), errors.New("--replicas takes 1, 3 or 5")}
			}
			for file, to := range map[string]*string{credentials: &f.Node.Servers.Credentials, ca: &f.Node.Servers.CA} {
				if file == "" {
					continue
				}
				raw, err := secretfile.Read(c.Context(), file, 64<<10)
				if err != nil {
					return err
				}
				*to = string(raw)
			}
			replicas, err := g.FoundCluster(c.Context(), f)
			if err != nil {
				return err
			}
			keeps := fmt.Sprintf("%d of the NATS servers keep the log", replicas)
			if f.Node.Route != "" {
				keeps = "keeps the log, on its own until others join"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "This yaya is the node %s, and %s.\nStart it: yaya serve\nThen invite others: yaya cluster invite --url URL\n", f.Node.Name, keeps)
			return err
		},
	}
	c.Flags().StringVar(&f.Node.Route, "listen", "", "`address` HOST:PORT of this machine for the other nodes, such as 10.0.0.1:6222")
	c.Flags().StringVar(&f.Node.Servers.URL, "nats", "", "`URL` of the NATS servers, separated by commas")
	c.Flags().StringVar(&f.Node.Name, "name", hostName(), "`name` of this node")
	c.Flags().StringVar(&credentials, "creds", "", "`file` of credentials for NATS")
	c.Flags().StringVar(&ca, "ca", "", "`file` with the certificate of the servers' authority, if it is your own")
	c.Flags().BoolVar(&again, "from-copy", false, "found the cluster of this node again, from its copy of the log")
	c.Flags().BoolVar(&yes, "yes", false, "with --from-copy: the other nodes are gone for good")
	c.Flags().IntVar(&f.Replicas, "replicas", 0, "how many servers keep the log: 1, 3 or 5 (default 3 if there are so many, else 1)")
	return c
}

// whoKeeps checks who is to keep the log.
func whoKeeps(c *cobra.Command, n nodes.Node) error {
	switch {
	case n.Route == "" && n.Servers.URL == "":
		return errors.New("missing flag --listen or --nats: with --listen HOST:PORT the nodes keep the log, and the others reach this one there; --nats has the URL of NATS servers with JetStream")
	case n.Route == "":
		return nil
	}
	for _, flag := range []string{"nats", "creds", "ca", "replicas"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--listen and --%s exclude each other: either the nodes keep the log, or NATS servers do", flag)
		}
	}
	_, _, err := nodes.SplitRoute(n.Route)
	return err
}

func clusterInviteCommand(g *daemon.Flags) *cobra.Command {
	var at string
	var asJSON bool
	c := &cobra.Command{
		Use: "invite --url URL", Short: "Invite one yaya into the cluster",
		Long: `Invite one yaya into the cluster. The invitation works once and expires after half an hour.
Whoever has it can become a node, which has all rights: pass it on as you would a
password. A yaya has to run here, at an address that the new node reaches.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withRunning(c, g, func(b *daemon.Backend) error {
				if at == "" {
					var s admin.Setup
					if b.API(c.Context(), "GET", "/api/setup", nil, &s) == nil {
						at = s.URL
					}
				}
				if at == "" {
					return &usageError{c.CommandPath(), errors.New("missing flag --url: where the new node reaches this yaya")}
				}
				var out admin.JoinInvitation
				if err := b.API(c.Context(), "POST", "/api/cluster/invite", map[string]any{"url": at}, &out); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), out)
				}
				listen := ""
				if i, err := nodes.ParseInvitation(out.Invitation); err == nil && i.Route {
					listen = " --listen HOST:PORT"
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "On the other machine, within %v:\n\n  yaya cluster join %s%s\n", time.Until(out.Expires).Round(time.Minute), out.Invitation, listen)
				return err
			})
		},
	}
	c.Flags().StringVar(&at, "url", "", "`URL` where the new node reaches this yaya (default the address that yaya knows)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func clusterJoinCommand(g *daemon.Flags) *cobra.Command {
	var j daemon.Joining
	var yes bool
	c := &cobra.Command{
		Use: "join INVITATION", Short: "Make this yaya a node of a cluster",
		Long: `Make this yaya a node of a cluster, with an invitation from yaya cluster invite. Its devices,
tokens and audit are those of the cluster from then on; what it had alone is kept in a
folder of its own. Sessions, servers and settings stay. Stop a running yaya first.

If the nodes keep the log, --listen says where the others reach this machine.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			i, err := nodes.ParseInvitation(args[0])
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if !nodes.ValidName(j.Name) {
				return &usageError{c.CommandPath(), fmt.Errorf("%q cannot be the name of a node: --name NAME takes lower-case letters, digits and hyphens", j.Name)}
			}
			if err := i.CheckRoute(j.Route); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			out, err := g.JoinCluster(c.Context(), i, j, func(devices int) error {
				if devices > 0 && !yes {
					return fmt.Errorf("%d devices and tokens of this yaya would no longer be valid: say --yes if that is all right", devices)
				}
				return nil
			})
			if err != nil {
				return err
			}
			text := fmt.Sprintf("This yaya is the node %s. Start it: yaya serve\n", out.Node)
			if out.Aside != "" {
				text += "Its former audit and keys are in " + out.Aside + " in the data directory.\n"
			}
			_, err = io.WriteString(c.OutOrStdout(), text)
			return err
		},
	}
	c.Flags().StringVar(&j.Name, "name", hostName(), "`name` of this node")
	c.Flags().StringVar(&j.Route, "listen", "", "`address` HOST:PORT of this machine for the other nodes, such as 10.0.0.2:6222")
	c.Flags().BoolVar(&j.Again, "again", false, "leave the cluster that this yaya is a node of")
	c.Flags().BoolVar(&yes, "yes", false, "give up the devices and tokens of this yaya")
	return c
}

func clusterStatusCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "Show the nodes, and the state of the log", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withRunning(c, g, func(b *daemon.Backend) error {
				var all admin.Cluster
				if err := b.API(c.Context(), "GET", "/api/cluster", nil, &all); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				if all.Node == "" {
					_, err := fmt.Fprintln(c.OutOrStdout(), "This yaya is alone. To make it the first node of a cluster: yaya cluster init --listen HOST:PORT")
					return err
				}
				s := all.Status
				state := "changes can be made"
				if !s.Quorum {
					state = "no change can be made: too few of the servers can be reached; what is shown may be old"
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintf(tw, "log\tentry %d, term %d\n", s.Index, s.Term)
				fmt.Fprintf(tw, "servers\t%d keep the log, %d of them may fail, led by %s\n", s.Nodes, (s.Nodes-1)/2, daemon.Printable(orNobody(s.Leader), 64))
				fmt.Fprintf(tw, "state\t%s\n", state)
				if err := tw.Flush(); err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout())
				return nodeTable(c.OutOrStdout(), all)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func orNobody(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func clusterRemoveCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "remove NODE", Short: "Remove a node from the cluster",
		Long: `Remove a node from the cluster. It stops when it hears of that, and cannot start again. It has
had the identity key of the cluster and the way into NATS: if you no longer trust it, change its
credentials for NATS, and run yaya device rotate-keys --drop-earlier.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !nodes.ValidName(args[0]) {
				return &usageError{c.CommandPath(), fmt.Errorf("%q is not the name of a node", args[0])}
			}
			return withRunning(c, g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), "POST", "/api/cluster/nodes/"+args[0]+"/remove", struct{}{}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s is no longer a node.\n", args[0])
				return err
			})
		},
	}
}
