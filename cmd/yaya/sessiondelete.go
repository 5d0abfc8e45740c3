package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/kernel/session"
)

func sessionDeleteCommand(g *daemon.Flags, workspace *string) *cobra.Command {
	return &cobra.Command{
		Use: "delete SESSION...", Short: "Delete sessions for good", Args: cobra.MinimumNArgs(1),
		Long: `Delete sessions for good: the conversation, its sub-agents, attachments, artifacts and
records. If forks continue a session, its conversation stays in the archive until they
are gone, too. To keep a conversation, archive or export it.`,
		RunE: func(c *cobra.Command, args []string) error {
			var failed error
			for _, id := range args {
				done, err := sessionDeleted(c, g, id, *workspace)
				if err != nil { // the others go all the same
					failed = errors.Join(failed, err)
					continue
				}
				note := ""
				if done.Kept {
					note = "; forks continue it, so its conversation stays in the archive until they are gone"
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "deleted: %s%s\n", daemon.Printable(id, 200), note); err != nil {
					return err
				}
			}
			return failed
		},
	}
}

// sessionDeleted lets the running yaya delete a session; without one, it deletes it itself.
func sessionDeleted(c *cobra.Command, g *daemon.Flags, id, workspace string) (done daemon.SessionAnswer, err error) {
	req := daemon.SessionRequest{Workspace: workspace}
	if workspace != "" {
		if req.Workspace, err = filepath.Abs(workspace); err != nil {
			return done, err
		}
	}
	err = g.ChangeSessions(c.Context(), func(b *daemon.Backend) error {
		return b.API(c.Context(), http.MethodPost, "/cli/sessions/"+url.PathEscape(id)+"/delete", req, &done)
	}, func(m *session.Manager, record daemon.Record) (err error) {
		done.Kept, err = m.Delete(id, req.Workspace, func() error { return record(c.Context(), "session_deleted", id, nil) })
		return err
	})
	return done, err
}
