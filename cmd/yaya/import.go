package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func mcpImportCommand(g *daemon.Flags) *cobra.Command {
	var yes bool
	var conflict string
	c := &cobra.Command{
		Use:   "import [CLIENT | FILE …]",
		Short: "Import servers from other MCP clients",
		Long: `Find the servers that your other MCP clients are configured with, and add them to
yaya's own configuration. Name clients (such as "cursor") or files to import only those.
Variables are copied unresolved: yaya reads and writes no secrets, and runs no command
from a file.

A server that several clients share is imported once. If two different servers have the
same name, the second is renamed, or skipped if the first is in yaya's own configuration;
on a terminal you are asked, and --conflict decides in advance. A server that cannot be
imported exactly is skipped, and the reason is shown.

Clients: ` + strings.Join(manage.ClientNames(), ", ") + `.

The command fails if a file cannot be read.`,
		RunE: func(c *cobra.Command, args []string) error {
			if conflict != "" && !slices.Contains(servers.Conflicts, servers.Conflict(conflict)) {
				return &usageError{c.CommandPath(), fmt.Errorf("--conflict must be rename, keep or replace, not %q", conflict)}
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			sources, err := manage.Sources(p.Home, args)
			if _, unknown := errors.AsType[*manage.UnknownSource](err); unknown {
				return &usageError{c.CommandPath(), err}
			}
			if err != nil {
				return err
			}
			i := importing{g: g, w: c.OutOrStdout(), in: c.InOrStdin(), yes: yes, conflict: servers.Conflict(conflict), own: p.Servers()}
			return i.run(c.Context(), sources)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().StringVar(&conflict, "conflict", "", "what to do if two servers have the same name: `rename`, keep or replace")
	return c
}

// importing is one import.
type importing struct {
	g        *daemon.Flags
	w        io.Writer
	in       io.Reader
	yes      bool
	conflict servers.Conflict
	own      string // yaya's own file
}

func (i importing) run(ctx context.Context, all []manage.Found) error {
	var failed []error
	var sources []servers.Source
	for _, f := range all {
		switch n := len(f.Config.Servers); {
		case f.Err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", f.Label, f.Err))
			continue
		case n+len(f.Config.Invalid)+len(f.Config.Own) == 0:
			continue
		case f.Project != "" && n > 0 && !i.yes && isTerminal(i.in):
			var names []string
			for _, s := range f.Config.Servers {
				names = append(names, daemon.Printable(s.Name, 128))
			}
			if !confirm(ctx, i.in, i.w, fmt.Sprintf("%s has %s only for the folder %s: %s. Import them for every folder?", f.Loc.Client, worded.Count(n, "server", "servers"), daemon.Printable(f.Project, 300), strings.Join(names, ", "))) {
				continue
			}
		}
		sources = append(sources, f.Source())
	}
	have, err := manage.Taken(i.own)
	if err != nil {
		return err
	}
	taken, left := servers.Merge(have, sources, func(c servers.Clash) servers.Conflict { return i.decide(ctx, c) })
	i.show(sources, taken, left)
	switch {
	case len(sources) == 0 && len(failed) == 0:
		fmt.Fprintln(i.w, "No servers were found.")
	case len(taken) == 0:
		fmt.Fprintf(i.w, "Nothing to add: %s skipped.\n", worded.Count(len(left), "server", "servers"))
	case !i.yes && !confirm(ctx, i.in, i.w, fmt.Sprintf("Add %s to %s?", worded.Count(len(taken), "server", "servers"), i.own)):
		failed = append(failed, notDone(ctx, i.in, "changed", "give --yes to add them without a question"))
	default:
		failed = append(failed, daemon.WithServers(ctx, i.g, func(b *daemon.Backend) error { return i.save(ctx, b, taken, len(left)) }))
	}
	return errors.Join(failed...)
}

// decide returns what to do with the second of two servers of the same name.
func (i importing) decide(ctx context.Context, c servers.Clash) servers.Conflict {
	usual := servers.Rename
	if c.OtherIsConfigured {
		usual = servers.Keep
	}
	if i.conflict != "" {
		return i.conflict
	}
	if i.yes || !isTerminal(i.in) {
		return usual
	}
	fmt.Fprintf(i.w, "Two servers are called %s:\n  %s: %s\n  %s: %s\n", daemon.Printable(c.Server.Name, 128),
		daemon.Printable(c.OtherFrom, 300), daemon.Printable(c.Other.Endpoint(), 300), daemon.Printable(c.From, 300), daemon.Printable(c.Server.Endpoint(), 300))
	answer := askLine(ctx, i.in, i.w, fmt.Sprintf("Rename the second to %s, keep only the first, or replace the first? [%s] ", daemon.Printable(c.Renamed, 150), usual))
	for _, x := range servers.Conflicts {
		if answer != "" && strings.HasPrefix(string(x), answer) {
			return x
		}
	}
	return usual
}

// show prints, for each source, the servers that are imported, how they change, and the ones
// that are skipped.
func (i importing) show(sources []servers.Source, taken []servers.Taken, left []servers.Left) {
	for _, src := range sources {
		fmt.Fprintln(i.w, daemon.Printable(src.From, 500))
		for _, t := range taken {
			if t.From != src.From {
				continue
			}
			fmt.Fprintf(i.w, "  %s: %s\n", daemon.Printable(t.Server.Name, 150), daemon.Printable(t.Server.Endpoint(), 200))
			for _, c := range t.Changes {
				fmt.Fprintf(i.w, "    changed: %s\n", daemon.Printable(c, 300))
			}
		}
		for _, l := range left {
			if l.From == src.From {
				fmt.Fprintf(i.w, "  %s: skipped: %s\n", daemon.Printable(l.Name, 128), daemon.Printable(l.Why, 500))
			}
		}
		for _, warning := range src.Config.Warnings {
			fmt.Fprintf(i.w, "  note: %s\n", daemon.Printable(warning, 300))
		}
	}
}

// save adds the imported servers to yaya's own file. If one cannot be added, the others still
// are.
func (i importing) save(ctx context.Context, b *daemon.Backend, taken []servers.Taken, left int) error {
	var failed []error
	n, changed := 0, 0
	for _, t := range taken {
		name, verb := t.Server.Name, "added"
		var ch admin.Change
		var err error
		if t.Replaces {
			verb = "replaced"
			ch, err = proposeChange(ctx, b, http.MethodPut, atServer(name), map[string]any{"config": t.Server})
		} else {
			ch, err = proposeChange(ctx, b, http.MethodPost, "/api/mcp/servers", map[string]any{"name": name, "config": t.Server})
		}
		if err != nil {
			failed = append(failed, worded.Error(err, "server %q of %s: %s", name, t.From, strings.TrimPrefix(err.Error(), fmt.Sprintf("server %q: ", name))))
			left++
			continue
		}
		n++
		if len(t.Changes) > 0 {
			changed++
		}
		fmt.Fprintf(i.w, "%s %s: %s\n", verb, daemon.Printable(name, 150), daemon.Printable(t.Server.Endpoint(), 300))
		showNotes(i.w, ch)
	}
	fmt.Fprintf(i.w, "Imported %s, %d of them changed; skipped %d.\n", worded.Count(n, "server", "servers"), changed, left)
	if n > 0 {
		fmt.Fprintln(i.w, fromWhen(b))
	}
	return errors.Join(failed...)
}
