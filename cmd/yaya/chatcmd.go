package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/daemon"
)

func chatCommand(g *daemon.Flags) *cobra.Command {
	var o chat.Options
	c := &cobra.Command{
		Use:   "chat [MESSAGE]",
		Short: "Chat with an agent in the terminal",
		Long: `Chat with an agent in the terminal. You see its text as it is written, the tools that it
calls, and the approvals that it needs. The chat uses the running daemon, which keeps
working when you leave; without a daemon, everything runs in this process.

Enter sends a message, and Alt+Enter adds a line. While the agent works, Enter queues the
message for after the turn, and Ctrl+S steers: the agent gets it at its next step. Esc or
Ctrl+C stops your command, or else the turn; Ctrl+C twice, or Ctrl+D, leaves. Alt+Y, Alt+S
and Alt+N answer a question with yes, with yes also to the same call later in this session,
and with no; so do y, s and n with Enter. Up and Down bring back earlier messages. Ctrl+O
opens another session, and /help lists the rest.

@FILE names a file, @SERVER:URI adds a resource of a connected MCP server to the message,
and /SERVER:PROMPT NAME=VALUE sends a prompt of one; Tab completes all of them. !COMMAND
runs a command in your shell, as you and without a sandbox, in the folder of the session;
its output goes with your next message.`,
		Example: `  yaya chat
  yaya chat 'why do the tests fail?'
  yaya chat --continue                # the last session of this folder
  yaya chat --session run_abc123
  yaya chat --workspace ~/src/project`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Message = strings.TrimSpace(args[0])
			}
			in, isFile := c.InOrStdin().(*os.File)
			if !isFile || !term.IsTerminal(int(in.Fd())) { //nolint:gosec // a descriptor fits
				return errors.New("yaya chat needs a terminal; use yaya run without one")
			}
			if out, isFile := c.OutOrStdout().(*os.File); !isFile || !term.IsTerminal(int(out.Fd())) { //nolint:gosec // a descriptor fits
				return errors.New("yaya chat needs a terminal, and its output is not one; use yaya run for a pipe or a file")
			}
			switch name, is := os.LookupEnv("TERM"); {
			case name == "dumb":
				return errors.New("yaya chat needs a terminal that can move its cursor, and TERM is dumb; use yaya run")
			case name == "" && runtime.GOOS != "windows": // where terminals set no TERM
				why := "not set"
				if is {
					why = "empty"
				}
				return fmt.Errorf("yaya chat needs a terminal that can move its cursor, and TERM is %s; use yaya run", why)
			}
			dir, err := filepath.Abs(o.Workspace)
			if err != nil {
				return err
			}
			o.Workspace, o.In, o.Out = dir, in, c.OutOrStdout()
			o.Home, _ = os.UserHomeDir() // without it, paths are shown whole
			return converse(c.Context(), g, o)
		},
	}
	c.Flags().StringVar(&o.Session, "session", "", "`id` of the session to continue (default a new one)")
	c.Flags().BoolVarP(&o.Last, "continue", "c", false, "continue the last session of the folder; without one, start it")
	c.MarkFlagsMutuallyExclusive("session", "continue")
	c.Flags().StringVar(&o.Workspace, "workspace", ".", "`folder` that the agent works in")
	return c
}

// converse runs the chat against the daemon, or against an API in this process.
func converse(ctx context.Context, g *daemon.Flags, o chat.Options) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	o.Data, o.AddModel, o.Local = p.Data, addCommand(), filesBeside(g, p)
	if b, ok := daemon.Reach(ctx, p); ok {
		defer b.Client.CloseIdleConnections()
		return chat.Run(ctx, &chat.Client{HTTP: b.Client, Base: "http://yaya"}, o)
	}
	return daemon.WithChats(ctx, g, o.Workspace, func(chats http.Handler) error {
		client, end := serveHere(daemon.AsOwner(chats))
		defer end()
		return chat.Run(ctx, client, o)
	})
}

// filesBeside are the files that a chat tells of, which no API has: what the running yaya knows of skills is
// about its own folder, and not that of each session.
func filesBeside(g *daemon.Flags, p daemon.Paths) chat.Local {
	return chat.Local{
		Skills: func(folder string) (out []chat.Entry, err error) {
			err = g.WithSkills(folder, func(here daemon.SkillsHere) error {
				for _, r := range skillRows(here) {
					e := chat.Entry{Name: r.Name, Says: r.Description, Path: r.Dir, Reason: r.Reason}
					if e.Name == "" {
						e.Name = filepath.Base(r.Dir)
					}
					out = append(out, e)
				}
				return nil
			})
			return out, err
		},
		Agents: func(folder string) (out []chat.Entry, err error) {
			set, err := g.Agents(folder)
			for _, f := range set.Files {
				out = append(out, chat.Entry{Name: f.Name, Says: f.Description, Path: f.Path})
			}
			for _, b := range set.Broken {
				out = append(out, chat.Entry{Name: cmp.Or(b.Name, b.Path), Path: b.Path, Reason: b.Reason})
			}
			return out, err
		},
		Today: p.SpentToday,
	}
}

// serveHere serves the API in memory to this process alone. Without a listening socket, no tool
// can reach it.
func serveHere(api http.Handler) (*chat.Client, func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: api}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // ends when the server is closed
	}()
	transport := &http.Transport{DialContext: l.dial}
	return &chat.Client{HTTP: &http.Client{Transport: transport}, Base: "http://yaya"}, func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		<-served
	}
}

// pipeListener is a [net.Listener] for connections within this process.
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
