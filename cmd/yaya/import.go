package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func mcpImportCommand(g *globals) *cobra.Command {
	var yes bool
	var conflict string
	c := &cobra.Command{
		Use:   "import [CLIENT | FILE …]",
		Short: "Take over the servers of other MCP clients",
		Long: `Look for the servers that other MCP clients have configured for you, and add them to
yaya's own configuration. Name clients (such as "cursor") or files to take just those.
Variables are copied as they are: no secret is resolved or written, and no command
of a file is run.

A server that several clients have is taken once. Of two different servers of one
name the second is renamed, or left if yaya's own configuration has the first;
--conflict decides otherwise, and on a terminal you are asked. A server that cannot
be taken over exactly is left, and the reason is shown.

Clients: ` + strings.Join(importNames(), ", ") + `.

The command fails if a file cannot be read.`,
		RunE: func(c *cobra.Command, args []string) error {
			if conflict != "" && !slices.Contains(servers.Conflicts, servers.Conflict(conflict)) {
				return &usageError{c.CommandPath(), fmt.Errorf("--conflict %q is not one of rename, keep, replace", conflict)}
			}
			p, err := g.paths()
			if err != nil {
				return err
			}
			sources, err := importSources(p, args)
			if _, unknown := errors.AsType[*unknownSource](err); unknown {
				return &usageError{c.CommandPath(), err}
			}
			if err != nil {
				return err
			}
			i := importing{g: g, w: c.OutOrStdout(), in: c.InOrStdin(), yes: yes, conflict: servers.Conflict(conflict), own: p.servers()}
			return i.run(c.Context(), sources)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().StringVar(&conflict, "conflict", "", "what becomes of a server whose name another one has: rename, keep or replace (the other one)")
	return c
}

// importNames are the words for the clients whose files are read.
func importNames() []string {
	var out []string
	for _, f := range servers.Formats {
		if f != servers.FormatYaya {
			out = append(out, string(f))
		}
	}
	return out
}

// found is the configuration of another client, or of one of its projects.
type found struct {
	loc     servers.Location
	label   string // who has it
	project string // the folder that it is for
	config  servers.Config
	err     error // it cannot be read
}

// from says where it comes from.
func (f found) from() string { return fmt.Sprintf("%s (%s)", f.label, f.loc.Path) }

func (f found) source() servers.Source {
	short := string(f.loc.Format)
	switch {
	case f.project != "":
		short = filepath.Base(f.project)
	case f.loc.Client == fromFile:
		short = strings.TrimSuffix(strings.TrimLeft(filepath.Base(f.loc.Path), "."), filepath.Ext(f.loc.Path))
	}
	return servers.Source{From: f.from(), Short: short, Config: f.config}
}

// fromFile is the client of a file that is named.
const fromFile = "file"

// discover looks for servers that other clients have configured.
func discover(home string) []found {
	var out []found
	for _, loc := range places(home) {
		out = append(out, readClient(loc)...)
	}
	return out
}

// readClient reads the file of a client, if there is one.
func readClient(loc servers.Location) []found {
	data, ok, err := readFile(loc.Path)
	if !ok && err == nil {
		return nil
	}
	f := found{loc: loc, label: loc.Client, err: err}
	if err == nil {
		f.config, f.err = servers.Parse(loc.Path, data, loc.Format)
	}
	if f.err == nil {
		f.err = readSwitches(loc, &f.config)
	}
	out := []found{f}
	for _, p := range f.config.Projects {
		out = append(out, found{loc: loc, label: fmt.Sprintf("%s in %s", loc.Client, p.Dir), project: p.Dir, config: p.Config})
	}
	return out
}

// readSwitches switches off the servers that a client has switched off in another file.
func readSwitches(loc servers.Location, cfg *servers.Config) error {
	file := loc.Switches()
	if file == "" {
		return nil
	}
	data, ok, err := readFile(file)
	if err != nil || !ok {
		return err
	}
	return cfg.SwitchOff(file, data)
}

// importSources finds the named clients and files, or everything.
func importSources(p paths, names []string) ([]found, error) {
	if len(names) == 0 {
		return discover(p.home), nil
	}
	var out []found
	for _, name := range names {
		var mine []servers.Location
		for _, l := range places(p.home) {
			if word(name) == string(l.Format) || word(name) == word(l.Client) || word(name) == word(l.Format.Client()) {
				mine = append(mine, l)
			}
		}
		n := len(out)
		for _, l := range mine {
			out = append(out, readClient(l)...)
		}
		if len(out) > n {
			continue
		}
		data, ok, err := readFile(name)
		switch {
		case err != nil:
			return nil, err
		case !ok && len(mine) > 0:
			return nil, fmt.Errorf("%s has no servers on this machine: there is no file %s", mine[0].Format.Client(), mine[0].Path)
		case !ok:
			return nil, &unknownSource{name}
		}
		format := servers.Detect(name, data)
		cfg, err := servers.Parse(name, data, format)
		if err != nil {
			return nil, err
		}
		loc := servers.Location{Client: fromFile, Path: name, Format: format}
		out = append(out, found{loc: loc, label: fromFile, config: cfg})
		for _, pr := range cfg.Projects {
			out = append(out, found{loc: loc, label: "file for " + pr.Dir, project: pr.Dir, config: pr.Config})
		}
	}
	return out, nil
}

// unknownSource is a word that names neither a client nor a file.
type unknownSource struct{ name string }

func (e *unknownSource) Error() string {
	return fmt.Sprintf("%q is neither a client nor a file; the clients are %s", e.name, strings.Join(importNames(), ", "))
}

// importing is one import.
type importing struct {
	g        *globals
	w        io.Writer
	in       io.Reader
	yes      bool
	conflict servers.Conflict
	own      string // yaya's own file
}

func (i importing) run(ctx context.Context, all []found) error {
	var failed []error
	var sources []servers.Source
	for _, f := range all {
		switch n := len(f.config.Servers); {
		case f.err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", f.label, f.err))
			continue
		case n+len(f.config.Invalid)+len(f.config.Own) == 0:
			continue
		case f.project != "" && n > 0 && !i.yes && isTerminal(i.in):
			var names []string
			for _, s := range f.config.Servers {
				names = append(names, printable(s.Name, 128))
			}
			if !confirm(ctx, i.in, i.w, fmt.Sprintf("%s has %s for the folder %s alone: %s. Take them for every folder?", f.loc.Client, count(n, "server"), printable(f.project, 300), strings.Join(names, ", "))) {
				continue
			}
		}
		sources = append(sources, f.source())
	}
	have, err := i.configured()
	if err != nil {
		return err
	}
	taken, left := servers.Merge(have, sources, func(c servers.Clash) servers.Conflict { return i.decide(ctx, c) })
	i.show(sources, taken, left)
	switch {
	case len(sources) == 0 && len(failed) == 0:
		fmt.Fprintln(i.w, "No servers were found.")
	case len(taken) == 0:
		fmt.Fprintf(i.w, "There is nothing to add: %s left.\n", count(len(left), "server"))
	case !i.yes && !confirm(ctx, i.in, i.w, fmt.Sprintf("Add %s to %s?", count(len(taken), "server"), i.own)):
		fmt.Fprintln(i.w, "Nothing was changed; --yes adds them.")
	default:
		failed = append(failed, withServers(ctx, i.g, func(b *backend) error { return i.save(ctx, b, taken, len(left)) }))
	}
	return errors.Join(failed...)
}

// configured are the servers of yaya's own file. One that cannot be used has its name,
// too.
func (i importing) configured() ([]servers.Server, error) {
	data, _, err := readFile(i.own)
	if err != nil {
		return nil, err
	}
	cfg, err := servers.Parse(i.own, data, servers.FormatYaya)
	for _, inv := range cfg.Invalid {
		cfg.Servers = append(cfg.Servers, servers.Server{Name: inv.Name})
	}
	return cfg.Servers, err
}

// decide says what becomes of the second of two servers of one name.
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
	fmt.Fprintf(i.w, "Two servers are called %s:\n  %s: %s\n  %s: %s\n", printable(c.Server.Name, 128),
		printable(c.OtherFrom, 300), printable(c.Other.Endpoint(), 300), printable(c.From, 300), printable(c.Server.Endpoint(), 300))
	answer := askLine(ctx, i.in, i.w, fmt.Sprintf("Rename the second to %s, keep the first, or replace it? [%s] ", printable(c.Renamed, 150), usual))
	for _, x := range servers.Conflicts {
		if answer != "" && strings.HasPrefix(string(x), answer) {
			return x
		}
	}
	return usual
}

// show says, source by source, what is taken, how it is changed, and what is left.
func (i importing) show(sources []servers.Source, taken []servers.Taken, left []servers.Left) {
	for _, src := range sources {
		fmt.Fprintln(i.w, printable(src.From, 500))
		for _, t := range taken {
			if t.From != src.From {
				continue
			}
			fmt.Fprintf(i.w, "  %s: %s\n", printable(t.Server.Name, 150), printable(t.Server.Endpoint(), 200))
			for _, c := range t.Changes {
				fmt.Fprintf(i.w, "    changed: %s\n", printable(c, 300))
			}
		}
		for _, l := range left {
			if l.From == src.From {
				fmt.Fprintf(i.w, "  %s: left out: %s\n", printable(l.Name, 128), printable(l.Why, 500))
			}
		}
		for _, warning := range src.Config.Warnings {
			fmt.Fprintf(i.w, "  note: %s\n", printable(warning, 300))
		}
	}
}

// save adds the servers that are taken to yaya's own file. One that cannot be added
// keeps no other from it.
func (i importing) save(ctx context.Context, b *backend, taken []servers.Taken, left int) error {
	var failed []error
	n, changed := 0, 0
	for _, t := range taken {
		name, verb := t.Server.Name, "added"
		var ch admin.Change
		var err error
		if t.Replaces {
			verb = "replaced"
			ch, err = b.change(ctx, http.MethodPut, atServer(name), map[string]any{"config": t.Server})
		} else {
			ch, err = b.change(ctx, http.MethodPost, "/api/mcp/servers", map[string]any{"name": name, "config": t.Server})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("server %q of %s: %w", name, t.From, err))
			left++
			continue
		}
		n++
		if len(t.Changes) > 0 {
			changed++
		}
		fmt.Fprintf(i.w, "%s %s: %s\n", verb, printable(name, 150), printable(t.Server.Endpoint(), 300))
		showNotes(i.w, ch)
	}
	fmt.Fprintf(i.w, "Took %s, %d of them changed; left %d.\n", count(n, "server"), changed, left)
	if n > 0 {
		fmt.Fprintln(i.w, b.next())
	}
	return errors.Join(failed...)
}
