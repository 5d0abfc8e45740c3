package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/stdioproxy"
)

func mcpServeCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	var profile string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over stdin and stdout",
		Long: `Serve MCP over stdin and stdout, for clients that start their servers themselves. If a
daemon runs (yaya serve), this command connects to it, so no server starts twice. Without
a daemon, or with --mcp-config, the command runs the servers itself, without the tool
yaya_run and the resources yaya://sessions: they need yaya serve.

--profile limits what the client sees. The profile "search" offers a few tools to find,
describe and call all others. Configure more profiles with plugin.mcp_bridge.profiles.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := mcpServe(c.Context(), g, *mcpConfig, profile, c.InOrStdin(), c.OutOrStdout())
			if errors.Is(err, daemon.ErrNoProfile) {
				return &usageError{c.CommandPath(), err}
			}
			return err
		},
	}
	c.Flags().StringVar(&profile, "profile", "", "`profile` for the client: all (default), search, or a configured one")
	return c
}

func mcpServe(ctx context.Context, g *daemon.Flags, mcpConfig []string, profile string, in io.Reader, out io.Writer) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if len(mcpConfig) == 0 {
		if b, ok := daemon.Reach(ctx, p); ok {
			defer b.Client.CloseIdleConnections()
			if err := b.CheckProfile(ctx, profile); err != nil {
				return err
			}
			return stdioproxy.Serve(ctx, stdioproxy.Config{Client: b.Client, URL: "http://yaya" + daemon.MCPPath(profile), Refusal: daemon.Refusal}, in, out)
		}
	}
	// Stdout carries the protocol; everything else goes to stderr.
	return daemon.WithoutDaemon(ctx, g, daemon.AppOptions{MCPConfig: mcpConfig, Log: g.NewLog(os.Stderr)}, func(a *daemon.App) error {
		// The caller is the owner: nobody else can start yaya on the owner's data.
		return a.MCP.ServeStdio(ctx, tool.LocalOwner, in, out, profile)
	})
}
