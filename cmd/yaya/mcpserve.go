package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

func mcpServeCommand(g *globals, mcpConfig *[]string) *cobra.Command {
	var profile string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over stdin and stdout",
		Long: `Serve MCP over stdin and stdout, for clients that start their servers themselves. If a daemon is running ('yaya serve'), this connects to it, so
that no server is started twice; else, or with --mcp-config, it runs the servers
itself.

--profile shows the client a part of everything: "search" has tools to find, describe
and call the others with; other profiles are configured with plugin.mcp_bridge.profiles.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := mcpServe(c.Context(), g, *mcpConfig, profile, c.InOrStdin(), c.OutOrStdout())
			if errors.Is(err, downstream.ErrNoProfile) {
				return &usageError{c.CommandPath(), err}
			}
			return err
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
			if err := b.checkProfile(ctx, profile); err != nil {
				return err
			}
			return proxyStdio(ctx, b.client, profile, in, out)
		}
	}
	// Standard output belongs to the protocol; everything else goes to stderr.
	return withApp(ctx, g, p, mcpConfig, g.newLog(os.Stderr), false, func(a *app) error {
		return a.mcp.ServeStdio(ctx, in, out, profile)
	})
}

// checkProfile reports that a daemon has no such profile, before a client relies on it.
func (b *backend) checkProfile(ctx context.Context, profile string) error {
	if profile == "" {
		return nil
	}
	_, err := b.rpcAt(ctx, "/mcp/"+url.PathEscape(profile), "server/discover", "", map[string]any{}, nil)
	if e, ok := errors.AsType[*httpRefusal](err); ok && e.status == http.StatusNotFound {
		if refused, ok := errors.AsType[*jsonrpc.Error](e.error); ok {
			return &noProfile{refused.Message}
		}
	}
	return nil // who cannot be reached now may be later: the proxy tries again
}

// noProfile is the daemon's word for [downstream.ErrNoProfile].
type noProfile struct{ text string }

func (e *noProfile) Error() string { return e.text }
func (e *noProfile) Unwrap() error { return downstream.ErrNoProfile }
