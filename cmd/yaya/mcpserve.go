package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func mcpServeCommand(g *globals, mcpConfig *[]string) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server over standard input and output",
		Long: `Be an MCP server over standard input and output, for clients that start their
servers themselves. If a daemon is running ('yaya serve'), this connects to it, so
that no server is started twice; else, or with --mcp-config, it runs the servers
itself.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return mcpServe(c.Context(), g, *mcpConfig, c.InOrStdin(), c.OutOrStdout())
		},
	}
}

func mcpServe(ctx context.Context, g *globals, mcpConfig []string, in io.Reader, out io.Writer) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if len(mcpConfig) == 0 {
		if b, ok := daemon(ctx, p); ok {
			defer b.client.CloseIdleConnections()
			return proxyStdio(ctx, b.client, in, out)
		}
	}
	// Standard output belongs to the protocol; everything else goes to stderr.
	return withApp(ctx, g, p, mcpConfig, g.newLog(os.Stderr), false, func(a *app) error {
		return a.mcp.ServeStdio(ctx, in, out)
	})
}
