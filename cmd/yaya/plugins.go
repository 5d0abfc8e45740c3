package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

func pluginCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "plugin", Short: "Look at the plugins", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the plugins", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withAgents(c.Context(), g, func(b *backend) error {
				var got struct {
					Plugins []admin.Plugin `json:"plugins"`
				}
				if err := b.api(c.Context(), http.MethodGet, "/api/plugins", nil, &got); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), got.Plugins)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "PLUGIN\tCATEGORY\tVERSION\tSTATUS\t")
				for _, p := range got.Plugins {
					status := p.Status
					if !p.Enabled {
						status = "switched off"
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Category, p.Version, status, printable(p.Error, 200))
				}
				return tw.Flush()
			})
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list)
	return c
}

// doctor asks every plugin how it is, and looks at what concerns none of them.
func (a *app) doctor(ctx context.Context, timeout time.Duration) []plugin.Diagnosis {
	ds := a.kernel.Plugins.Doctor(ctx, timeout)
	for _, err := range unreadable(a.kernel.Settings, a.listening()) {
		ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}})
	}
	if os.Geteuid() == 0 {
		ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: asRoot}})
	}
	if a.certificates != nil {
		ds = append(ds, plugin.Diagnosis{Plugin: "certificates", HealthReport: certificateHealth(a.certificates(), time.Now())})
	}
	if d, sealed := secretsDiagnosis(ctx, a.vault, timeout); sealed {
		ds = append(ds, d)
	}
	return append(ds, sandboxDiagnosis(a.sandboxes.Standing(), a.running()))
}

// withDoctor runs f with the daemon, or with everything that a daemon has: what does not
// run cannot be asked how it is.
func withDoctor(ctx context.Context, g *globals, f func(*backend) error) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if g.configFile == "" {
		if done, err := beside(ctx, p, f); done {
			return err
		}
	}
	return withApp(ctx, g, p, nil, zerolog.Nop(), true, func(a *app) error {
		a.waitSettled(ctx, nil)
		return f(here(a.api()))
	}, func(c *appConfig) { c.lenient = true })
}

// failing names what has failed: the parts of a plugin, such as servers, or all of it.
func failing(ds []plugin.Diagnosis) (out []string) {
	for _, d := range ds {
		n := len(out)
		for _, check := range d.Details {
			if check.Status == plugin.Failing {
				out = append(out, printable(check.Name, 60))
			}
		}
		if d.Status == plugin.Failing && len(out) == n {
			out = append(out, d.Plugin)
		}
	}
	return out
}

func doctorCommand(g *globals) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Ask every plugin how it is",
		Long: `Ask every plugin how it is: those of the running yaya if there is one. Else the
configured MCP servers are started, looked at and stopped again. No tool or model is
called. The exit code is 1 if anything has failed, such as a server; degraded, such
as a provider without a key, is 0.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDoctor(c.Context(), g, func(b *backend) error {
				var ds []plugin.Diagnosis
				path := fmt.Sprintf("/api/doctor?timeout_ms=%d", max(1, timeout.Milliseconds()))
				if err := b.api(c.Context(), http.MethodGet, path, nil, &ds); err != nil {
					return err
				}
				var err error
				if asJSON {
					err = printJSON(c.OutOrStdout(), ds)
				} else {
					tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
					fmt.Fprintln(tw, "PLUGIN\tSTATUS\tSUMMARY")
					for _, d := range ds {
						fmt.Fprintf(tw, "%s\t%s\t%s\n", d.Plugin, d.Status, printable(d.Summary, 200))
						for _, check := range d.Details {
							if check.Status != plugin.Healthy {
								why, said, _ := strings.Cut(check.Message, "\n")
								fmt.Fprintf(tw, "\t%s\t%s: %s\n", check.Status, printable(check.Name, 60), printable(why, 300))
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
