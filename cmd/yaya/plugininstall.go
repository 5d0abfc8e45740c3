package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/plugins/conform"
	"github.com/yaya-ai/yaya/plugins/installed"
)

// atPlugin is the path of a plugin in the API.
func atPlugin(name string) string { return "/api/plugins/" + url.PathEscape(name) }

// showPackage prints what a person has to know before a plugin is installed. The texts are
// its author's.
func showPackage(w io.Writer, p *installed.Package, editable bool) {
	d := &p.Description
	show := func(what, text string) { fmt.Fprintf(w, "  %-12s %s\n", what, daemon.Printable(text, 2000)) }
	fmt.Fprintf(w, "Plugin %s %s\n", daemon.Printable(d.Name, 80), daemon.Printable(d.Version, 80))
	if d.Description != "" {
		show("description", d.Description)
	}
	show("source", p.Source)
	show("digest", p.Digest)
	show("category", d.Category)
	show("runs", strings.Join(d.Run, " "))
	if len(d.Requires) > 0 {
		show("requires", strings.Join(d.Requires, ", "))
	}
	if len(d.Subscriptions) > 0 {
		show("gets events", strings.Join(d.Subscriptions, ", "))
	}
	for i, line := range d.Permissions.Lines() {
		what := ""
		if i == 0 {
			what = "permissions"
		}
		show(what, line)
	}
	if editable {
		show("editable", "changes of its files run without another question")
	}
}

func pluginInstallCommand(g *daemon.Flags) *cobra.Command {
	var editable, agreed bool
	c := &cobra.Command{
		Use: "install FOLDER|FILE.tar.gz", Short: "Install a plugin",
		Long: `Install a plugin from a folder or a .tar.gz. yaya shows the source, version, digest,
category, permissions and what will run, and asks; nothing of the plugin runs before the
answer. It copies the files and pins their digest: files that change later do not run
until you accept them (yaya plugin accept).

With --editable the folder stays where it is, and yaya loads the plugin again whenever its
files change, without asking.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			p, err := installed.Inspect(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.Close()) }()
			out := c.OutOrStdout()
			showPackage(out, p, editable)
			if !agreed && !confirm(c.Context(), c.InOrStdin(), out, "Install it?") {
				return notDone(c.Context(), out, "installed", "Answer yes on a terminal, or give --yes.")
			}
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				body := map[string]any{"source": p.Source, "editable": editable, "digest": p.Digest}
				if err := b.API(c.Context(), http.MethodPost, "/api/plugins/install", body, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(out, "Installed %s %s.\n", p.Description.Name, p.Description.Version)
				return err
			})
		},
	}
	c.Flags().BoolVar(&editable, "editable", false, "leave the folder where it is, and load the plugin again when it changes")
	c.Flags().BoolVarP(&agreed, "yes", "y", false, "install without asking")
	return c
}

func pluginAcceptCommand(g *daemon.Flags) *cobra.Command {
	var agreed bool
	c := &cobra.Command{
		Use: "accept NAME", Short: "Accept the changed files of an installed plugin",
		Long: `Accept the files of an installed plugin that have changed since it was installed. yaya
shows what the plugin may do now, and asks.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			p, err := daemon.InstalledPackage(g, args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.Close()) }()
			out := c.OutOrStdout()
			showPackage(out, p, false)
			if !agreed && !confirm(c.Context(), c.InOrStdin(), out, "Accept these files?") {
				return notDone(c.Context(), out, "accepted", "Answer yes on a terminal, or give --yes.")
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
				fmt.Fprintf(out, "FAIL  %s\n      %s\n", r.Check, daemon.Printable(r.Err.Error(), 2000))
			})
			if err == nil && failed > 0 {
				err = errors.New(worded.Count(failed, "check failed", "checks failed"))
			}
			return err
		},
	}
}
