package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/undo"
)

func sessionUndoCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "undo SESSION", Short: "Undo the last change of files by a session's agent", Args: cobra.ExactArgs(1),
		Long: `Undo the last change of files by a session's agent: a patch, an edit, or what a command
changed in the workspace. Every byte and the permissions of files and folders are as before;
run it again for the change before. If one of the files has changed since, or something that the
change does not cover is in its place, nothing is undone, and the error names it.

Files that .gitignore leaves out, Git's own, links, files with several names, files with
a secret that yaya masks, and files of more than 4 MiB are not covered.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withChat(c.Context(), g, func(client *chat.Client) error {
				done, err := client.Undo(c.Context(), args[0])
				if err != nil {
					return err
				}
				return showUndone(c.OutOrStdout(), done)
			})
		},
	}
}

// withChat runs f with a client of the running yaya, or without one, of an API of this process.
func withChat(ctx context.Context, g *daemon.Flags, f func(*chat.Client) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if b, ok := daemon.Reach(ctx, p); ok {
		defer b.Client.CloseIdleConnections()
		return f(&chat.Client{HTTP: b.Client, Base: "http://yaya"})
	}
	return daemon.WithChats(ctx, g, ".", func(chats http.Handler) error {
		client, end := serveHere(daemon.AsOwner(chats))
		defer end()
		return f(client)
	})
}

func showUndone(w io.Writer, done undo.Undone) error {
	_, err := fmt.Fprintf(w, "undone in %s:\n", daemon.Printable(done.Folder, 4096))
	for _, f := range done.Files {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %s\n", daemon.Printable(f, 4096))
		}
	}
	for _, f := range done.Without {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %s changed, too, and is not covered\n", daemon.Printable(f, 4096))
		}
	}
	if err == nil && done.More > 0 {
		_, err = fmt.Fprintf(w, "  and %d more\n", done.More)
	}
	for _, r := range done.Remaining {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %s is not as before: %s\n", daemon.Printable(r.Path, 4096), daemon.Printable(r.Why, 4096))
		}
	}
	if err == nil && done.Left > 0 {
		_, err = fmt.Fprintf(w, "earlier changes that can be undone: %d\n", done.Left)
	}
	return err
}
