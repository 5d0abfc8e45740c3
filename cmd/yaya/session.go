package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"text/tabwriter"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

func sessionCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "session", Short: "Manage conversations: list, show, export, fork, delete", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var workspace string
	c.PersistentFlags().StringVar(&workspace, "workspace", "", "`workspace` of the session, if several have a session with this id")
	c.AddCommand(
		sessionListCommand(g), sessionShowCommand(g, &workspace), sessionExportCommand(g, &workspace),
		sessionForkCommand(g), sessionResetCommand(g, &workspace), sessionArchiveCommand(g, &workspace),
		sessionDeleteCommand(g, &workspace), sessionPruneCommand(g), sessionUndoCommand(g),
	)
	return c
}

func sessionListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON, archived bool
	c := &cobra.Command{
		Use: "list", Short: "List the sessions, most recently used first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithSessions(g, func(m *session.Manager) error {
				w := c.OutOrStdout()
				if archived {
					return listArchived(w, m, asJSON)
				}
				list, err := m.List()
				if err != nil {
					return err
				}
				if asJSON {
					if list == nil {
						list = []session.Info{}
					}
					return printJSON(w, list)
				}
				if len(list) == 0 {
					_, err := fmt.Fprintln(w, `There are no sessions yet. Start one with: yaya run "hello"`)
					return err
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "SESSION\tUSED\tSIZE\tWORKSPACE\tFIRST MESSAGE")
				for _, s := range list {
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", daemon.Printable(s.ID, 200), s.Modified.Local().Format("2006-01-02 15:04"), size(s.Size), daemon.Printable(s.Workspace, 60), daemon.Title(s.Title, 60))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&archived, "archived", false, "list archived sessions instead")
	return c
}

func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func sessionShowCommand(g *daemon.Flags, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "show SESSION", Short: "Show a conversation", Args: cobra.ExactArgs(1),
		Long: `Show a conversation: what was said, the calls of tools, and the beginning of their results.
yaya session export has everything.`,
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithSessions(g, func(m *session.Manager) error {
				w := c.OutOrStdout()
				return m.View(args[0], *workspace, 0, func(e session.Entry) error { return showEntry(w, e) })
			})
		},
	}
}

func sessionExportCommand(g *daemon.Flags, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "export SESSION", Short: "Export a session as JSON, one entry per line", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithSessions(g, func(m *session.Manager) error {
				return m.View(args[0], *workspace, 0, func(e session.Entry) error { return printLine(c.OutOrStdout(), e) })
			})
		},
	}
}

// sessionChanged lets the running yaya change a session; without one, it calls alone.
func sessionChanged(c *cobra.Command, g *daemon.Flags, id, what string, req daemon.SessionRequest, alone func(*session.Manager) (daemon.SessionAnswer, error)) (done daemon.SessionAnswer, err error) {
	p, err := g.Paths()
	if err != nil {
		return done, err
	}
	if req.Workspace != "" {
		if req.Workspace, err = filepath.Abs(req.Workspace); err != nil {
			return done, err
		}
	}
	asked, err := daemon.WithDaemon(c.Context(), p, func(b *daemon.Backend) error {
		return b.API(c.Context(), http.MethodPost, "/cli/sessions/"+url.PathEscape(id)+"/"+what, req, &done)
	})
	if asked {
		return done, err
	}
	err = daemon.WithSessions(g, func(m *session.Manager) (err error) {
		done, err = alone(m)
		return err
	})
	return done, err
}

func sessionForkCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "fork SESSION [NEW]", Short: "Branch a session off", Args: cobra.RangeArgs(1, 2),
		Long: `Branch a session off: the new session starts with the whole conversation of the old
one, and both continue separately.`,
		RunE: func(c *cobra.Command, args []string) error {
			child := "fork_" + uuid.NewString()[:13]
			if len(args) == 2 {
				child = args[1]
			}
			if err := event.CheckClientSession(child); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			_, err := sessionChanged(c, g, args[0], "fork", daemon.SessionRequest{Child: child}, func(m *session.Manager) (daemon.SessionAnswer, error) {
				_, err := m.Fork(args[0], child)
				return daemon.SessionAnswer{}, err
			})
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), child)
			}
			return err
		},
	}
}

func sessionResetCommand(g *daemon.Flags, workspace *string) *cobra.Command {
	var discard bool
	c := &cobra.Command{
		Use: "reset SESSION", Short: "Clear a session; its conversation moves to the archive", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := sessionChanged(c, g, args[0], "reset", daemon.SessionRequest{Workspace: *workspace, Discard: discard}, func(m *session.Manager) (done daemon.SessionAnswer, err error) {
				s, err := m.Find(args[0], *workspace)
				if err == nil {
					done.Path, err = s.Reset(!discard)
				}
				return done, err
			})
			if err == nil {
				_, err = fmt.Fprintf(c.OutOrStdout(), "archived: %s\n", cmp.Or(done.Path, "nowhere: it was deleted"))
			}
			return err
		},
	}
	c.Flags().BoolVar(&discard, "discard", false, "delete the conversation instead of archiving it (unless forks need it)")
	return c
}

func sessionArchiveCommand(g *daemon.Flags, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "archive SESSION", Short: "Archive a session", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := sessionChanged(c, g, args[0], "archive", daemon.SessionRequest{Workspace: *workspace}, func(m *session.Manager) (done daemon.SessionAnswer, err error) {
				done.Path, err = m.Archive(args[0], *workspace)
				return done, err
			})
			if err == nil {
				_, err = fmt.Fprintf(c.OutOrStdout(), "archived: %s\n", done.Path)
			}
			return err
		},
	}
}
