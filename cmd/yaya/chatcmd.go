package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
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
			client, end := serveHere(asOwner(chats))
			defer end()
			return chat.Run(ctx, client, o)
		}, func(c *appConfig) { c.workspace = o.Workspace })
	})
}

// serveHere serves an API to this process alone, in memory: what listens nowhere can
// be reached by no tool.
func serveHere(api http.Handler) (*chat.Client, func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: api}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // it ends when it is closed
	}()
	transport := &http.Transport{DialContext: l.dial}
	return &chat.Client{HTTP: &http.Client{Transport: transport}, Base: "http://yaya"}, func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		<-served
	}
}

// pipeListener is a listener for connections within this process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	its, ours := net.Pipe()
	select {
	case l.conns <- ours:
		return its, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
