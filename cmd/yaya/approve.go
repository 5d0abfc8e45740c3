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

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

// projectFile is where a project configures MCP servers for whoever works on it.
const projectFile = ".mcp.json"

var errNotTrusted = errors.New("you have not trusted that folder")

// pending is a server of a folder that nobody has trusted.
type pending struct {
	server servers.Server
	folder folder.Status
}

// project adds the servers that dir brings, if the folder is trusted. The others are
// not started (UP-21).
func (l *loaded) project(dir string, store *folder.Store) error {
	dir, err := folder.Resolve(dir)
	if err != nil {
		return err
	}
	w, err := (*workspace.Guard)(nil).Open(dir) // the store's guard decides what is trusted
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	cfg, err := projectServers(w)
	if err != nil {
		// A project's mistake does not keep the user from working.
		l.warnings = append(l.warnings, fmt.Sprintf("the project's %v", err))
		return nil
	}
	if len(cfg.Servers)+len(cfg.Invalid)+len(cfg.Warnings) == 0 {
		return nil
	}
	l.warnings = append(l.warnings, cfg.Warnings...)
	l.brought = map[string]string{}
	st, err := store.Status(dir)
	if err != nil { // such as in a folder that yaya keeps its own files in
		for _, s := range cfg.Servers {
			l.invalid = append(l.invalid, servers.Invalid{Name: s.Name, File: s.File, Err: fmt.Errorf("the folder that brings it cannot be trusted: %w", err)})
		}
		return nil
	}
	l.invalid = append(l.invalid, cfg.Invalid...)
	for _, s := range cfg.Servers {
		if slices.ContainsFunc(l.servers, func(o servers.Server) bool { return o.Name == s.Name }) {
			l.warnings = append(l.warnings, fmt.Sprintf("%s: server %q is left out: you have one of that name", s.File, s.Name))
			continue
		}
		if i := slices.IndexFunc(st.Items, func(i folder.Item) bool { return i.Kind == folder.Server && i.Name == servers.Shown(s.Name) }); i >= 0 {
			l.brought[s.Name] = st.Items[i].Digest + " " + st.Items[i].Runs // where paths lead, too
		}
		if _, same := agreed(st, dir, s); st.Trusted && same { // as it was read here, too
			l.servers = append(l.servers, s)
			continue
		}
		l.pending = append(l.pending, pending{s, st})
		l.invalid = append(l.invalid, servers.Invalid{Name: s.Name, File: s.File, Err: fmt.Errorf("the folder %s brings it, and %w: yaya trust %s (the server would use %s)", dir, errNotTrusted, dir, s.Endpoint())})
	}
	return nil
}

func mcpApproveCommand(g *globals) *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "approve [SERVER [TOOL …]]",
		Short: "Look at what waits for approval, and approve it",
		Long: `Look at what waits for approval, and approve it.

A server's tools and instructions are pinned when they are seen first. A tool that
appears later, or takes or returns something else, is neither listed nor called until you
approve it; one that is only described differently goes on with the description that
you have approved, and so do instructions. Here you see what has changed.

Servers that a project's .mcp.json brings are not started until you trust its folder
(yaya trust). "trust": "always" in a server's configuration leaves the server alone.

Without arguments everything that waits is shown. With a server's name it is shown
and approved, all of it or the named tools.`,
		RunE: func(c *cobra.Command, args []string) error {
			return approve(c, g, args, yes, asJSON)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print what waits as JSON")
	return c
}

func approve(c *cobra.Command, g *globals, args []string, yes, asJSON bool) (err error) {
	p, err := g.paths()
	if err != nil {
		return err
	}
	data, settings, err := g.open(p, nil)
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
	own, err := loadServers(p, nil)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	known, err := p.folders(data, settings)
	if err != nil {
		return err
	}
	if err := own.project(dir, known); err != nil {
		return err
	}
	if len(args) > 0 {
		waiting = slices.DeleteFunc(waiting, func(w trust.Waiting) bool { return w.Server != args[0] })
		own.pending = slices.DeleteFunc(own.pending, func(x pending) bool { return x.server.Name != args[0] })
	}
	w := c.OutOrStdout()
	if asJSON {
		return approveJSON(w, waiting, own.pending)
	}
	if len(waiting)+len(own.pending) == 0 && len(args) > 0 {
		return fmt.Errorf("nothing of %q waits for approval", args[0])
	}
	showWaiting(w, waiting, own.pending)
	switch {
	case len(own.pending) > 0 && len(waiting) == 0 && len(args) > 0:
		return fmt.Errorf("the server %q comes with a folder: trust the folder with yaya trust %s", args[0], own.pending[0].folder.Folder)
	case len(waiting) == 0 || len(args) == 0:
		return nil
	case !yes && !confirm(c.Context(), c.InOrStdin(), w, "Approve this?"):
		_, err := fmt.Fprintln(w, "Nothing was approved; --yes approves without asking.")
		return err
	}
	return withServers(c.Context(), g, func(b *backend) error {
		for _, x := range waiting {
			in := map[string]any{"digest": x.Digest()}
			if len(args) > 1 {
				in["tools"] = args[1:]
			}
			if err := b.api(c.Context(), http.MethodPost, "/api/mcp/quarantine/"+url.PathEscape(x.Server)+"/approve", in, nil); err != nil {
				return err
			}
			fmt.Fprintf(w, "approved %s\n", printable(x.Server, 128))
		}
		return nil
	})
}

// thereNow leaves out what waits for servers that a running yaya does not have, such as
// one that was taken out of its file by hand.
func thereNow(ctx context.Context, p paths, waiting []trust.Waiting) ([]trust.Waiting, error) {
	if len(waiting) == 0 {
		return nil, nil
	}
	_, err := beside(ctx, p, func(b *backend) error {
		var all []admin.Server
		err := b.api(ctx, http.MethodGet, "/api/mcp/servers", nil, &all)
		if err == nil {
			waiting = slices.DeleteFunc(waiting, func(w trust.Waiting) bool {
				return !slices.ContainsFunc(all, func(s admin.Server) bool { return s.Name == w.Server })
			})
		}
		return err
	})
	return waiting, err
}

func approveJSON(w io.Writer, waiting []trust.Waiting, projects []pending) error {
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
		raw, err := json.Marshal(x.server)
		if err != nil {
			return err
		}
		out.Projects = append(out.Projects, project{x.server.Name, x.server.File, raw})
	}
	return printJSON(w, out)
}

// maxWhole is how many new tools of a server are shown whole; more are shown in a line
// each.
const maxWhole = 3

// showWaiting writes what waits, made safe for a terminal.
func showWaiting(w io.Writer, waiting []trust.Waiting, projects []pending) {
	var b strings.Builder
	for _, x := range projects {
		fmt.Fprintf(&b, "%s: not started, because you have not trusted the folder %s, which brings it\n  it would run: %s\n  show the folder and trust it: yaya trust %s\n\n", servers.Shown(x.server.Name), x.folder.Folder, brings(x.server), x.folder.Folder)
	}
	for _, x := range waiting {
		fmt.Fprintf(&b, "%s:", x.Server)
		if x.Reason != "" {
			fmt.Fprintf(&b, " all of it waits: %s", x.Reason)
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
			what := "has changed, and cannot be called"
			switch {
			case t.New:
				what = "is new, and cannot be called"
			case t.Wording && x.Reason == "":
				what = "has another description, and goes on with the approved one"
			}
			fmt.Fprintf(&b, "  tool %s %s\n", t.Name, what)
			for line := range strings.Lines(t.Diff) {
				fmt.Fprintf(&b, "    %s", line)
			}
		}
		if fresh > maxWhole {
			fmt.Fprintf(&b, "  new tools cannot be called; this shows the whole of them: yaya mcp approve %s --json\n", x.Server)
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
	_, _ = io.WriteString(w, feature.Clean(b.String(), 4<<20)) // nobody may be reading
}
