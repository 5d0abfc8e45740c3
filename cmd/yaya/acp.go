package main

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/cmd/yaya/acp"
	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/daemon"
)

func acpCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "acp",
		Short: "Serve agents to an editor over stdin and stdout",
		Long: `Serve agents to an editor over stdin and stdout, with the Agent Client Protocol
(agentclientprotocol.com): Zed, JetBrains IDEs, Neovim and others start this command. You
chat with the agent in the editor, see what it does, and answer its questions there.

The command uses the running daemon (yaya serve), so the page and other clients see the
same sessions; without a daemon, everything runs in this process. The agent has yaya's
MCP servers; those that the editor names are not started.`,
		Example: `  # Zed, in settings.json:
  #   "agent_servers": {"yaya": {"command": "yaya", "args": ["acp"]}}
  yaya acp`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return serveACP(c.Context(), g, c.InOrStdin(), c.OutOrStdout())
		},
	}
}

func serveACP(ctx context.Context, g *daemon.Flags, in io.Reader, out io.Writer) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	// Stdout carries the protocol; everything else goes to stderr.
	o := acp.Options{Version: daemon.Version(), Log: g.NewLog(os.Stderr)}
	if b, ok := daemon.Reach(ctx, p); ok {
		defer b.Client.CloseIdleConnections()
		return acp.Serve(ctx, &chat.Client{HTTP: b.Client, Base: "http://yaya"}, o, in, out)
	}
	return daemon.WithChats(ctx, g, ".", func(chats http.Handler) error {
		client, end := serveHere(daemon.AsOwner(chats))
		defer end()
		return acp.Serve(ctx, client, o, in, out)
	})
}
