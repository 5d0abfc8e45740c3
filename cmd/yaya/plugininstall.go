package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/plugins/conform"
	"github.com/yaya-ai/yaya/plugins/fetch"
)

// atPlugin is the path of a plugin in the API.
func atPlugin(name string) string { return "/api/plugins/" + url.PathEscape(name) }

// showPackage prints what a person has to know before a plugin is installed. The texts are
// its author's. No permission, change or command is cut: a long text would hide the rest.
func showPackage(w io.Writer, p *admin.PluginPackage) {
	const escaped = 10 // bytes at most that one becomes
	show := func(what, text string) {
		fmt.Fprintf(w, "  %-12s %s\n", what, daemon.Printable(text, escaped*len(text)))
	}
	all := func(what string, lines []string) {
		for _, line := range lines {
			show(what, line)
			what = ""
		}
	}
	kind := "Plugin"
	if p.Parts != nil {
		kind = "Package"
	}
	fmt.Fprintf(w, "%s %s %s\n", kind, daemon.Printable(p.Name, 80), daemon.Printable(p.Version, 80))
	if p.Description != "" {
		show("description", daemon.Printable(p.Description, 2000))
	}
	show("source", p.Source)
	if p.Resolved != "" {
		show("resolved", p.Resolved)
	}
	show("digest", p.Digest)
	if p.Parts != nil {
		showParts(show, all, p.Parts)
	} else {
		show("category", p.Category)
	}
	for _, id := range []struct{ what, id string }{{"adapter", p.AdapterID}, {"provider", p.ProviderID}, {"strategy", p.StrategyID}, {"memory", p.MemoryKind}} {
		if id.id != "" {
			show(id.what, id.id)
		}
	}
	if p.Builds != "" {
		show("builds", p.Builds)
	}
	if p.Runs != "" {
		show("runs", p.Runs)
	}
	if len(p.Requires) > 0 {
		show("requires", strings.Join(p.Requires, ", "))
	}
	if len(p.Subscriptions) > 0 {
		show("gets events", strings.Join(p.Subscriptions, ", "))
	}
	if p.Parts == nil {
		all("permissions", p.Permissions)
	}
	if p.Editable {
		show("editable", "changes of its files run without another question")
	}
	if p.Installed != "" {
		show("replaces", "version "+p.Installed)
	}
	all("changes", p.Changes)
}

// showParts prints what a package for agents brings.
func showParts(show func(what, text string), all func(what string, lines []string), parts *admin.Parts) {
	show("format", parts.Format)
	if len(parts.Skills) > 0 {
		show("skills", strings.Join(parts.Skills, ", "))
	}
	all("servers", parts.Servers)
	all("hooks", parts.Hooks)
	all("left out", parts.LeftOut)
	if len(parts.Skills)+len(parts.Servers)+len(parts.Hooks) == 0 {
		show("brings", "nothing that yaya uses")
	}
}

// agree shows a package and asks about it, and installs it after a yes.
func agree(c *cobra.Command, g *daemon.Flags, p *admin.PluginPackage, agreed bool, question, done string) error {
	out := c.OutOrStdout()
	showPackage(out, p)
	if !agreed && !confirm(c.Context(), c.InOrStdin(), out, question) {
		return notDone(c.Context(), c.InOrStdin(), strings.ToLower(done), "give --yes to agree without a question")
	}
	return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
		body := map[string]any{"source": p.Source, "editable": p.Editable, "digest": p.Digest}
		if err := b.API(c.Context(), http.MethodPost, "/api/plugins/install", body, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s %s %s.\n", done, p.Name, p.Version)
		return err
	})
}

func pluginInstallCommand(g *daemon.Flags) *cobra.Command {
	var editable, agreed bool
	c := &cobra.Command{
		Use: "install SOURCE", Short: "Install a plugin, or a package for agents",
		Long: `Install a plugin from a folder, a .tar.gz, a Git repository, or a package of npm, PyPI or Go.
A package for agents (Agent Plugins, or a plugin of Claude Code or Codex) is installed as what
it brings: its skills, MCP servers and hooks.
yaya shows the source, version, digest, category, permissions and what will run, and asks;
nothing of the plugin runs before the answer. It copies the files and pins their digest:
files that change later do not run until you accept them (yaya plugin accept).

Packages are fetched with git, npm, pip or go, and your settings of them, and only unpacked:
no script, hook or build of a package runs. yaya installs no dependencies of a package. A
module of Go is built after your answer, in a sandbox without a network. Without a version,
the newest is taken.

With --editable the folder stays where it is, and yaya loads the plugin again whenever its
files change, without asking.`,
		Example: `  yaya plugin install ./weather
  yaya plugin install git+https://example.com/weather@v1.2.0
  yaya plugin install npm:yaya-weather@1.2.0
  yaya plugin install pypi:yaya-weather
  yaya plugin install go:example.com/weather@v1.2.0`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			source := args[0]
			_, elsewhere, err := fetch.Parse(source)
			if err == nil && !elsewhere {
				source, err = filepath.Abs(source) // the daemon runs in another folder
			}
			if err != nil {
				return err
			}
			var told struct {
				Package admin.PluginPackage `json:"package"`
			}
			if err := daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				return b.API(c.Context(), http.MethodPost, "/api/plugins/install", map[string]any{"source": source, "editable": editable}, &told)
			}); err != nil {
				return err
			}
			return agree(c, g, &told.Package, agreed, "Install it?", "Installed")
		},
	}
	c.Flags().BoolVar(&editable, "editable", false, "leave the folder where it is, and load the plugin again when it changes")
	c.Flags().BoolVarP(&agreed, "yes", "y", false, "install without asking")
	return c
}

func pluginUpdateCommand(g *daemon.Flags) *cobra.Command {
	var version string
	var agreed bool
	c := &cobra.Command{
		Use: "update NAME", Short: "Install a newer version of a plugin",
		Long: `Install the newest version of a plugin, or the named one, from where it came from. yaya
shows it and what differs from the installed one, new permissions first, and asks.

The newest version of a Git repository is its highest tag such as v1.2.0; of a plugin that
was installed from a branch, it is the branch's newest commit.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var p admin.PluginPackage
			if err := daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				return b.API(c.Context(), http.MethodPost, atPlugin(args[0])+"/update", map[string]string{"version": version}, &p)
			}); err != nil {
				return err
			}
			if p.Same {
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s is what is installed.\n", p.Name, p.Version)
				return err
			}
			return agree(c, g, &p, agreed, "Update it?", "Updated")
		},
	}
	c.Flags().StringVar(&version, "version", "", "version, tag or commit instead of the newest")
	c.Flags().BoolVarP(&agreed, "yes", "y", false, "update without asking")
	return c
}

func pluginAcceptCommand(g *daemon.Flags) *cobra.Command {
	var agreed bool
	c := &cobra.Command{
		Use: "accept NAME", Short: "Accept the changed files of an installed plugin",
		Long: `Accept the files of an installed plugin that have changed since it was installed. yaya
shows which files have changed and what the plugin may do now, and asks.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := daemon.InstalledPackage(g, args[0])
			if err != nil {
				return err
			}
			out := c.OutOrStdout()
			showPackage(out, &p)
			if !agreed && !confirm(c.Context(), c.InOrStdin(), out, "Accept these files?") {
				return notDone(c.Context(), c.InOrStdin(), "accepted", "give --yes to agree without a question")
			}
			return reloadPlugin(c.Context(), g, out, args[0], p.Digest)
		},
	}
	c.Flags().BoolVarP(&agreed, "yes", "y", false, "accept without asking")
	return c
}

func reloadPlugin(ctx context.Context, g *daemon.Flags, out io.Writer, name, digest string) error {
	return daemon.WithAgents(ctx, g, func(b *daemon.Backend) error {
		if err := b.API(ctx, http.MethodPost, atPlugin(name)+"/reload", map[string]string{"digest": digest}, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "Loaded %s.\n", name)
		return err
	})
}

func pluginReloadCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "reload NAME", Short: "Start an installed plugin again", Args: cobra.ExactArgs(1),
		Long: "Start an installed plugin again, such as one that has failed. Calls that run end in the old process.",
		RunE: func(c *cobra.Command, args []string) error {
			return reloadPlugin(c.Context(), g, c.OutOrStdout(), args[0], "")
		},
	}
}

func pluginRemoveCommand(g *daemon.Flags) *cobra.Command {
	var purge bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove an installed plugin", Args: cobra.ExactArgs(1),
		Long: "Remove an installed plugin. Its state stays, unless --purge is given.",
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), http.MethodDelete, fmt.Sprintf("%s?purge=%v", atPlugin(args[0]), purge), nil, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "Removed %s.\n", args[0])
				return err
			})
		},
	}
	c.Flags().BoolVar(&purge, "purge", false, "remove its state as well")
	return c
}

// pluginSwitchCommand enables or disables a plugin.
func pluginSwitchCommand(g *daemon.Flags, on bool) *cobra.Command {
	use, short, done := "enable", "Enable a plugin", "Enabled"
	if !on {
		use, short, done = "disable", "Disable a plugin", "Disabled"
	}
	return &cobra.Command{
		Use: use + " NAME", Short: short, Long: short + " from the next start of yaya on.", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), http.MethodPatch, atPlugin(args[0]), map[string]bool{"enabled": on}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s from the next start on (yaya restart).\n", done, args[0])
				return err
			})
		},
	}
}

func pluginTestCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "test FOLDER", Short: "Check a plugin against the plugin protocol",
		Long: `Check a plugin against the plugin protocol (docs/PLUGINS.md): yaya starts its program in
the sandbox that its permissions describe, and speaks with it. No tool is called. The exit
code is 1 if a check fails.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			failed, out := 0, c.OutOrStdout()
			err := daemon.TestPlugin(c.Context(), g, args[0], func(r conform.Result) {
				if r.Err == nil {
					fmt.Fprintf(out, "ok    %s\n", r.Check)
					return
				}
				failed++
				fmt.Fprintf(out, "FAIL  %s\n", r.Check)
				for _, line := range failureLines(r.Err) {
					fmt.Fprintf(out, "      %s\n", line)
				}
			})
			if err == nil && failed > 0 {
				err = errors.New(worded.Count(failed, "check failed", "checks failed"))
			}
			return err
		},
	}
}

// failureLines are the lines of a failed check, without most of the middle of a long one: the
// reason begins it, and a program says at its end why it ended.
func failureLines(err error) (out []string) {
	const head, tail = 5, 20
	all := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, line := range all {
		switch {
		case i < head, i >= len(all)-tail:
			out = append(out, daemon.Printable(strings.TrimRight(line, "\r"), 500))
		case i == head:
			out = append(out, fmt.Sprintf("… (%s)", worded.Count(len(all)-head-tail, "line", "lines")))
		}
	}
	return out
}
