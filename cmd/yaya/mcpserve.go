package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func mcpServeCommand(g *globals, mcpConfig *[]string) *cobra.Command {
	var profile string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server over standard input and output",
		Long: `Be an MCP server over standard input and output, for clients that start their
servers themselves. If a daemon is running ('yaya serve'), this connects to it, so
that no server is started twice; else, or with --mcp-config, it runs the servers
itself.

--profile shows the client a part of everything: "search" has tools to find, describe
and call the others with; other profiles are configured with plugin.mcp_bridge.profiles.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return mcpServe(c.Context(), g, *mcpConfig, profile, c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&profile, "profile", "", "what the client sees: all (default), search, or a configured profile")
	return c
}

func mcpServe(ctx context.Context, g *globals, mcpConfig []string, profile string, in io.Reader, out io.Writer) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if len(mcpConfig) == 0 {
		if b, ok := daemon(ctx, p); ok {
			defer b.client.CloseIdleConnections()
			return proxyStdio(ctx, b.client, profile, in, out)
		}
	}
	// Standard output belongs to the protocol; everything else goes to stderr.
	return withApp(ctx, g, p, mcpConfig, g.newLog(os.Stderr), false, func(a *app) error {
		return a.mcp.ServeStdio(ctx, in, out, profile)
	})
}
