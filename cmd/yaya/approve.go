package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

func mcpApproveCommand(g *daemon.Flags) *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "approve [SERVER [TOOL …]]",
		Short: "Review changed tools and servers, and approve them",
		Long: `Review changed tools and servers, and approve them.

yaya pins a server's tools and instructions when it first sees them. A tool that appears
later, or whose parameters or results change, is neither listed nor called until you
approve it. If only a description changes, clients keep getting the approved one; the same
holds for instructions. This command shows the changes.

Servers from a project's .mcp.json do not start until you trust its folder
(yaya trust). With "trust": "always" in its configuration, a server's tools change without approval.

Without arguments, the command lists everything that waits for approval. With a
server's name, it shows that server's changes and approves all of them, or only the
named tools.`,
		RunE: func(c *cobra.Command, args []string) error {
			if yes && len(args) == 0 {
				return &usageError{c.CommandPath(), errors.New("--yes approves the changes of one server: name it")}
			}
			return approve(c, g, args, yes, asJSON)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "approve without asking; needs a server")
	c.Flags().BoolVar(&asJSON, "json", false, "print what waits as JSON")
	return c
}

func approve(c *cobra.Command, g *daemon.Flags, args []string, yes, asJSON bool) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	data, settings, err := g.Open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	store := trust.NewStore(data)
	waiting, err := store.Waiting()
	if err != nil {
		return err
	}
	if waiting, err = thereNow(c.Context(), p, waiting); err != nil {
		return err
	}
	own, err := manage.Load(p.Servers(), nil)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	known, err := p.Folders(data, settings)
	if err != nil {
		return err
	}
	if err := own.Project(dir, known); err != nil {
		return err
	}
	if len(args) > 0 {
		waiting = slices.DeleteFunc(waiting, func(w trust.Waiting) bool { return w.Server != args[0] })
		own.Pending = slices.DeleteFunc(own.Pending, func(x manage.Pending) bool { return x.Server.Name != args[0] })
	}
	w := c.OutOrStdout()
	if asJSON {
		return approveJSON(w, waiting, own.Pending)
	}
	if len(waiting)+len(own.Pending) == 0 && len(args) > 0 {
		return fmt.Errorf("no changes of server %q wait for approval", args[0])
	}
	showWaiting(w, p.Sandboxes(settings), waiting, own.Pending)
	switch {
	case len(own.Pending) > 0 && len(waiting) == 0 && len(args) > 0:
		return fmt.Errorf("a project folder brings the server %q: trust the folder with yaya trust %s", args[0], own.Pending[0].Folder.Folder)
	case len(waiting) == 0 || len(args) == 0:
		return nil
	case !yes && !confirm(c.Context(), c.InOrStdin(), w, "Approve this?"):
		return notDone(c.Context(), c.InOrStdin(), "approved", "give --yes to approve without a question")
	}
	return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
		for _, x := range waiting {
			in := map[string]any{"digest": x.Digest()}
			if len(args) > 1 {
				in["tools"] = args[1:]
			}
			if err := b.API(c.Context(), http.MethodPost, "/api/mcp/quarantine/"+url.PathEscape(x.Server)+"/approve", in, nil); err != nil {
				return err
			}
			fmt.Fprintf(w, "approved %s\n", daemon.Printable(x.Server, 128))
		}
		return nil
	})
}

// thereNow drops the entries of servers that a running yaya does not have, such as one that was
// removed from its file by hand.
func thereNow(ctx context.Context, p daemon.Paths, waiting []trust.Waiting) ([]trust.Waiting, error) {
	if len(waiting) == 0 {
		return nil, nil
	}
	_, err := daemon.WithDaemon(ctx, p, func(b *daemon.Backend) error {
		var all []admin.Server
		err := b.API(ctx, http.MethodGet, "/api/mcp/servers", nil, &all)
		if err == nil {
			waiting = slices.DeleteFunc(waiting, func(w trust.Waiting) bool {
				return !slices.ContainsFunc(all, func(s admin.Server) bool { return s.Name == w.Server })
			})
		}
		return err
	})
	return waiting, err
}

func approveJSON(w io.Writer, waiting []trust.Waiting, projects []manage.Pending) error {
	type project struct {
		Server string          `json:"server"`
		File   string          `json:"file"`
		Config json.RawMessage `json:"config"`
	}
	out := struct {
		Tools    []trust.Waiting `json:"tools"`
		Projects []project       `json:"projects"`
	}{waiting, []project{}}
	if out.Tools == nil {
		out.Tools = []trust.Waiting{}
	}
	for _, x := range projects {
		raw, err := json.Marshal(x.Server)
		if err != nil {
			return err
		}
		out.Projects = append(out.Projects, project{x.Server.Name, x.Server.File, raw})
	}
	return printJSON(w, out)
}

// maxWhole is how many new tools of a server are shown in full; if there are more, each gets
// one line.
const maxWhole = 3

// showWaiting writes the entries that wait for approval, made safe for a terminal.
func showWaiting(w io.Writer, boxes *sandbox.Sandboxes, waiting []trust.Waiting, projects []manage.Pending) {
	var b strings.Builder
	for _, x := range projects {
		fmt.Fprintf(&b, "%s: not started because %s: %s\n  it would run: %s\n  to review and trust the folder: yaya trust %s\n\n", servers.Shown(x.Server.Name), daemon.Whole(x.Cause.Error()), x.Folder.Folder, manage.Brings(x.Server, boxes), x.Folder.Folder)
	}
	for _, x := range waiting {
		fmt.Fprintf(&b, "%s:", x.Server)
		if x.Reason != "" {
			fmt.Fprintf(&b, " all of it: %s", x.Reason)
		}
		b.WriteString("\n")
		fresh := 0
		for _, t := range x.Tools {
			if t.New {
				fresh++
			}
		}
		for _, t := range x.Tools {
			if t.New && fresh > maxWhole {
				line, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
				fmt.Fprintf(&b, "  tool %s is new: %s\n", t.Name, line)
				continue
			}
			what := "has changed and cannot be called"
			switch {
			case t.New:
				what = "is new and cannot be called"
			case t.Wording && x.Reason == "":
				what = "has a new description; clients get the approved one"
			}
			fmt.Fprintf(&b, "  tool %s %s\n", t.Name, what)
			for line := range strings.Lines(t.Diff) {
				fmt.Fprintf(&b, "    %s", line)
			}
		}
		if fresh > maxWhole {
			fmt.Fprintf(&b, "  new tools cannot be called; to see them in full: yaya mcp approve %s --json\n", x.Server)
		}
		if x.Instructions != "" {
			b.WriteString("  its instructions have changed; clients get the approved ones\n")
			for line := range strings.Lines(x.Instructions) {
				fmt.Fprintf(&b, "    %s", line)
			}
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		b.WriteString("Nothing waits for approval.\n")
	}
	_, _ = io.WriteString(w, feature.Clean(b.String(), 4<<20)) // the reader may be gone
}
