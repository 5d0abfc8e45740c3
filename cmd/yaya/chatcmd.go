package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
)

func chatCommand(g *globals) *cobra.Command {
	var o chat.Options
	c := &cobra.Command{
		Use:   "chat",
		Short: "Converse with an agent on the terminal",
		Long: `Converse with an agent on the terminal: what it writes as it writes it, the tools
that it calls, the questions that it asks. A running daemon is used if there is
one, and goes on when you leave; else everything runs in this process.

Enter sends; while the agent works it queues, and Ctrl+S steers: the agent gets
it at its next step. Esc stops it. Alt+Y, Alt+S and Alt+N answer a question with
yes, yes for this session, and no. Ctrl+O chooses another session, Ctrl+N begins
one, /help shows the rest.`,
		Example: `  yaya chat
  yaya chat --session run_abc123
  yaya chat --workspace ~/src/project`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, isFile := c.InOrStdin().(*os.File)
			if !isFile || !term.IsTerminal(int(in.Fd())) { //nolint:gosec // a descriptor fits
				return errors.New("yaya chat needs a terminal; without one use yaya run")
			}
			dir, err := filepath.Abs(o.Workspace)
			if err != nil {
				return err
			}
			o.Workspace, o.In, o.Out = dir, in, c.OutOrStdout()
			return converse(c.Context(), g, o)
		},
	}
	c.Flags().StringVar(&o.Session, "session", "", "id of the session to go on with (default a new one)")
	c.Flags().StringVar(&o.Workspace, "workspace", ".", "folder that the agent works in")
	return c
}

// converse talks to the daemon, or to an API of this process's own.
func converse(ctx context.Context, g *globals, o chat.Options) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if b, ok := daemon(ctx, p); ok {
		defer b.client.CloseIdleConnections()
		return chat.Run(ctx, &chat.Client{HTTP: b.client, Base: "http://yaya"}, o)
	}
	return withLock(p, func(data *os.Root) error {
		return withApp(ctx, g, p, nil, zerolog.Nop(), true, func(a *app) error {
			chats, err := a.chats(data)
			if err != nil {
				return err
			}
			defer chats.Close()
			client, end, err := serveHere(ctx, asOwner(chats))
			if err != nil {
				return err
			}
			defer end()
			return chat.Run(ctx, client, o)
		}, func(c *appConfig) { c.workspace = o.Workspace })
	})
}

// serveHere serves an API to this process alone: over a socket in a folder that
// nobody else can enter.
func serveHere(ctx context.Context, api http.Handler) (*chat.Client, func(), error) {
	dir, err := os.MkdirTemp("", "yaya")
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "s")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a socket for the terminal: %w", err), os.RemoveAll(dir)) //nolint:forbidigo // made above
	}
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: api}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // it ends when it is closed
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	return &chat.Client{HTTP: &http.Client{Transport: transport}, Base: "http://yaya"}, func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		<-served
		_ = os.RemoveAll(dir) //nolint:forbidigo // made above
	}, nil
}
