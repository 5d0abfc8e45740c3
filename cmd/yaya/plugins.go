package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

func pluginCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "plugin", Short: "Install and inspect plugins", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the plugins", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				var got struct {
					Plugins []admin.Plugin `json:"plugins"`
				}
				if err := b.API(c.Context(), http.MethodGet, "/api/plugins", nil, &got); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), got.Plugins)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "PLUGIN\tCATEGORY\tVERSION\tSTATUS\tSOURCE\t")
				for _, p := range got.Plugins {
					if len(p.Guards) > 0 {
						p.Category += ", guards " + strings.Join(p.Guards, " and ")
					}
					status := p.Status
					if !p.Enabled {
						status = "switched off"
					}
					source := ""
					if p.Package != nil {
						if p.Package.Parts != nil {
							p.Category = "package"
						}
						source = p.Package.Source
						if p.Package.Editable {
							source += " (editable)"
						}
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Category, p.Version, status, daemon.Printable(source, 200), daemon.Printable(p.Error, 200))
				}
				return tw.Flush()
			})
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list, pluginNewCommand(), pluginInstallCommand(g), pluginUpdateCommand(g), pluginAcceptCommand(g), pluginReloadCommand(g), pluginRemoveCommand(g), pluginSwitchCommand(g, true), pluginSwitchCommand(g, false), pluginTestCommand(g))
	return c
}

// failing names the failed parts of a plugin, such as servers, or the whole plugin.
func failing(ds []plugin.Diagnosis) (out []string) {
	for _, d := range ds {
		n := len(out)
		for _, check := range d.Details {
			if check.Status == plugin.Failing {
				out = append(out, daemon.Printable(check.Name, 60))
			}
		}
		if d.Status == plugin.Failing && len(out) == n {
			out = append(out, d.Plugin)
		}
	}
	return out
}

func doctorCommand(g *daemon.Flags) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check the health of every plugin",
		Long: `Check the health of every plugin of the running yaya. If none runs, yaya starts the
configured MCP servers, checks them, and stops them again. No tools or models are called.
The exit code is 1 if anything failed, such as a server, and 0 if something is only
degraded, such as a provider without a key. In a folder that you trust, the folder's files
of sub-agents are checked, too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithDoctor(c.Context(), g, func(b *daemon.Backend) error {
				var ds []plugin.Diagnosis
				path := fmt.Sprintf("/api/doctor?timeout_ms=%d", max(1, timeout.Milliseconds()))
				if here, err := os.Getwd(); err == nil { // the running yaya works in another folder
					path += "&folder=" + url.QueryEscape(here)
				}
				if err := b.API(c.Context(), http.MethodGet, path, nil, &ds); err != nil {
					return err
				}
				var err error
				if asJSON {
					err = printJSON(c.OutOrStdout(), ds)
				} else {
					shown := map[string]string{plugin.NoChecks: "loaded"}
					tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
					fmt.Fprintln(tw, "PLUGIN\tSTATUS\tSUMMARY")
					for _, d := range ds {
						fmt.Fprintf(tw, "%s\t%s\t%s\n", d.Plugin, d.Status, daemon.Printable(cmp.Or(shown[d.Summary], d.Summary), 200))
						for _, check := range d.Details {
							if check.Status != plugin.Healthy && check.Message != d.Summary {
								why, said, _ := strings.Cut(check.Message, "\n")
								fmt.Fprintf(tw, "\t%s\t%s: %s\n", check.Status, daemon.Printable(check.Name, 60), daemon.Printable(why, 600))
								for _, line := range lastLines(said) {
									fmt.Fprintf(tw, "\t\t  %s\n", line)
								}
							}
						}
					}
					err = tw.Flush()
				}
				if err == nil && plugin.Worst(ds) == plugin.Failing {
					err = errors.New("failed: " + strings.Join(failing(ds), ", "))
				}
				return err
			})
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", plugin.DefaultCheckTimeout, "how long to wait for each plugin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
