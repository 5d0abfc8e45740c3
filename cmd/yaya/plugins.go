package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

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
			return withAgents(c.Context(), g, func(a *app) error {
				all := a.kernel.Plugins.Snapshot()
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "PLUGIN\tCATEGORY\tVERSION\tSTATUS\t")
				for _, p := range all {
					status := string(p.Status)
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

func doctorCommand(g *globals) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Ask every plugin how it is",
		Long: `Ask every plugin how it is. Nothing is called that costs money or leaves this
machine. The exit code is 1 if anything has failed; degraded, such as a provider
without a key, is 0.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withAgents(c.Context(), g, func(a *app) error {
				ds := a.kernel.Plugins.Doctor(c.Context(), timeout)
				for _, err := range unreadable(a.kernel.Settings) {
					ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}})
				}
				if os.Geteuid() == 0 {
					ds = append(ds, plugin.Diagnosis{Plugin: "yaya", HealthReport: plugin.HealthReport{Status: plugin.Degraded, Summary: asRoot}})
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
								fmt.Fprintf(tw, "\t%s\t%s: %s\n", check.Status, printable(check.Name, 60), printable(check.Message, 200))
							}
						}
					}
					err = tw.Flush()
				}
				if err == nil && plugin.Worst(ds) == plugin.Failing {
					err = &exitStatus{}
				}
				return err
			})
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", plugin.DefaultCheckTimeout, "how long to wait for each plugin")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
