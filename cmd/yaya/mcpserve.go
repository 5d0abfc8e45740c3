package main

import (
	"context"
	"errors"
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

func mcpServe(ctx context.Context, g *globals, mcpConfig []string, in io.Reader, out io.Writer) (err error) {
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
	l, err := loadServers(p, mcpConfig)
	if err != nil {
		return err
	}
	data, err := p.openData()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	// Standard output belongs to the protocol; everything else goes to stderr.
	a, err := newApp(data, p.home, g.newLog(os.Stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	a.start(ctx, l)
	return a.mcp.ServeStdio(ctx, in, out)
}
