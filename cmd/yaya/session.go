package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

func sessionCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "session", Short: "Look at conversations, and manage them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var workspace string
	c.PersistentFlags().StringVar(&workspace, "workspace", "", "workspace of the session, if its id exists in several")
	c.AddCommand(
		sessionListCommand(g), sessionShowCommand(g, &workspace), sessionExportCommand(g, &workspace),
		sessionForkCommand(g), sessionResetCommand(g, &workspace), sessionArchiveCommand(g, &workspace),
	)
	return c
}

// withSessions runs f with the sessions of the data directory. A session that a
// daemon works on can be read, and not be changed.
func withSessions(g *globals, f func(*session.Manager) error) (err error) {
	p, err := g.paths()
	if err != nil {
		return err
	}
	data, err := p.openData()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("the current folder: %w", err)
	}
	m, err := session.NewManager(session.Config{FS: journal.Root(data), Workspace: dir, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	ctx, cancel := shortly()
	defer cancel()
	err = f(m)
	if errors.Is(err, journal.ErrLocked) {
		err = fmt.Errorf("%w; a running yaya has this session open", err)
	}
	return errors.Join(err, m.Close(ctx), b.Close(ctx))
}

func sessionListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the sessions, the one used last first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSessions(g, func(m *session.Manager) error {
				list, err := m.List()
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
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
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", printable(s.ID, 200), s.Modified.Local().Format("2006-01-02 15:04"), size(s.Size), printable(s.Workspace, 60), printable(s.Title, 60))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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

func sessionShowCommand(g *globals, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "show SESSION", Short: "Show a conversation", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSessions(g, func(m *session.Manager) error {
				w := c.OutOrStdout()
				return m.View(args[0], *workspace, 0, func(e session.Entry) error { return showEntry(w, e) })
			})
		},
	}
}

// showEntry writes what a person wants to see of an entry.
func showEntry(w io.Writer, e session.Entry) error {
	at := e.Date.Local().Format(time.TimeOnly)
	line := func(format string, args ...any) error {
		_, err := fmt.Fprintf(w, "%5d  %s  %s\n", e.ID, at, fmt.Sprintf(format, args...))
		return err
	}
	switch e.Kind {
	case session.KindMessage:
		var m session.Message
		if err := json.Unmarshal(e.Payload, &m); err != nil {
			return err
		}
		return line("%s: %s", printable(m.Role, 20), multiline(m.Content))
	case session.KindToolCall:
		var call event.ToolCall
		if err := json.Unmarshal(e.Payload, &call); err != nil {
			return err
		}
		return line("→ %s %s", printable(call.Name, 80), printable(string(call.Args), 500))
	case session.KindToolResult:
		var r session.ToolResult
		if err := json.Unmarshal(e.Payload, &r); err != nil {
			return err
		}
		return line("%s %s", map[bool]string{true: "✓", false: "✗"}[r.OK], printable(brief(event.ToolResult{Envelope: r.Envelope, Error: r.Error}), 200))
	case session.KindAnchor:
		var a session.Anchor
		if err := json.Unmarshal(e.Payload, &a); err != nil {
			return err
		}
		return line("⚓ %s %s", printable(a.Name, 80), printable(string(a.State), 300))
	}
	var n session.Note
	if err := json.Unmarshal(e.Payload, &n); err != nil {
		return err
	}
	switch n.Name {
	case event.ToolCallError.Name(), event.ApprovalRequested.Name(), event.ApprovalAnswered.Name(), event.ApprovalWithdrawn.Name(),
		event.TurnHasFailed.Name(), event.TurnWasCancelled.Name():
		return line("· %s %s", n.Name, printable(string(n.Data), 500))
	}
	return nil // the rest is for programs: export has it
}

func sessionExportCommand(g *globals, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "export SESSION", Short: "Print every entry of a session as a line of JSON", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSessions(g, func(m *session.Manager) error {
				return m.View(args[0], *workspace, 0, func(e session.Entry) error { return printLine(c.OutOrStdout(), e) })
			})
		},
	}
}

// sessionWish is how a command wants a session changed.
type sessionWish struct {
	Workspace string `json:"workspace,omitempty"` // if the id exists in several
	Child     string `json:"child,omitempty"`     // of a fork
	Discard   bool   `json:"discard,omitempty"`   // of a reset: keep nothing
}

// sessionDone is what came of it.
type sessionDone struct {
	Path string `json:"path,omitempty"` // of the tape in the archive
}

// changeSession forks, resets or archives a session of the running yaya.
func changeSession(ctx context.Context, v1 *sessions.Service, id, what string, wish sessionWish) (done sessionDone, err error) {
	switch what {
	case "fork":
		_, err = v1.Fork(ctx, id, wish.Child)
	case "reset":
		_, done.Path, err = v1.Reset(ctx, id, !wish.Discard)
	case "archive":
		done.Path, err = v1.Archive(id)
	default:
		err = fmt.Errorf("a session cannot be changed by %q", what)
	}
	return done, err
}

// sessionChanged has the running yaya change a session, or does it here with alone.
func sessionChanged(c *cobra.Command, g *globals, id, what string, wish sessionWish, alone func(*session.Manager) (string, error)) (done sessionDone, err error) {
	p, err := g.paths()
	if err != nil {
		return done, err
	}
	if wish.Workspace != "" {
		if wish.Workspace, err = filepath.Abs(wish.Workspace); err != nil {
			return done, err
		}
	}
	asked, err := beside(c.Context(), p, func(b *backend) error {
		return b.api(c.Context(), http.MethodPost, "/cli/sessions/"+url.PathEscape(id)+"/"+what, wish, &done)
	})
	if asked {
		return done, err
	}
	err = withSessions(g, func(m *session.Manager) (err error) {
		done.Path, err = alone(m)
		return err
	})
	return done, err
}

func sessionForkCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "fork SESSION [NEW]", Short: "Branch a session off", Args: cobra.RangeArgs(1, 2),
		Long: `Branch a session off: the new one has seen what the old one has, and goes its own
way from here.`,
		RunE: func(c *cobra.Command, args []string) error {
			child := "fork_" + uuid.NewString()[:13]
			if len(args) == 2 {
				child = args[1]
			}
			if err := event.CheckClientSession(child); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			_, err := sessionChanged(c, g, args[0], "fork", sessionWish{Child: child}, func(m *session.Manager) (string, error) {
				_, err := m.Fork(args[0], child)
				return "", err
			})
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), child)
			}
			return err
		},
	}
}

func sessionResetCommand(g *globals, workspace *string) *cobra.Command {
	var discard bool
	c := &cobra.Command{
		Use: "reset SESSION", Short: "Start a session from nothing; what was said goes to the archive", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := sessionChanged(c, g, args[0], "reset", sessionWish{Workspace: *workspace, Discard: discard}, func(m *session.Manager) (string, error) {
				s, err := m.Find(args[0], *workspace)
				if err != nil {
					return "", err
				}
				return s.Reset(!discard)
			})
			if err == nil {
				_, err = fmt.Fprintf(c.OutOrStdout(), "archived: %s\n", cmp.Or(done.Path, "nowhere: it is gone"))
			}
			return err
		},
	}
	c.Flags().BoolVar(&discard, "discard", false, "do not keep what was said (unless forks need it)")
	return c
}

func sessionArchiveCommand(g *globals, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "archive SESSION", Short: "Put a session away", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := sessionChanged(c, g, args[0], "archive", sessionWish{Workspace: *workspace}, func(m *session.Manager) (string, error) {
				return m.Archive(args[0], *workspace)
			})
			if err == nil {
				_, err = fmt.Fprintf(c.OutOrStdout(), "archived: %s\n", done.Path)
			}
			return err
		},
	}
}
