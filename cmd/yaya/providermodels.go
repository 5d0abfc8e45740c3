package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
)

func providerModelsCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "models [WORD …]", Short: "List the models that yaya knows",
		Long: `List the models that yaya knows, with the size of their windows and answers in tokens, their
prices in US dollars for a million tokens (input, cached input, output), and what they can do.
With words, list the models whose service, id or name has all of them. Any other model works,
too: the settings of a provider say what yaya does not know.`,
		RunE: func(c *cobra.Command, words []string) error {
			return daemon.WithModels(c.Context(), g, c.ErrOrStderr(), func(b *daemon.Backend) error {
				var all admin.ModelList
				if err := b.API(c.Context(), http.MethodGet, "/api/models", nil, &all); err != nil {
					return err
				}
				all.Models = slices.DeleteFunc(all.Models, func(m admin.Model) bool {
					text := strings.ToLower(m.Service + " " + m.ID + " " + m.Name)
					return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
				})
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "SERVICE\tMODEL\tWINDOW\tANSWER\tINPUT\tCACHED\tOUTPUT\tABILITIES")
				for _, m := range all.Models {
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", daemon.Printable(m.Service, 20), daemon.Printable(m.ID, 60), tokenCount(m.Window), tokenCount(m.Output), price(m.Priced, m.InputUSD), price(m.CacheRead > 0, m.CacheRead), price(m.Priced, m.OutputUSD), abilities(m))
				}
				if err := tw.Flush(); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "from %s, %s\n", daemon.Printable(all.Source, 200), daemon.Printable(all.Date, 20))
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func providerRefreshCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "refresh", Short: "Get a newer list of models", Args: cobra.NoArgs,
		Long: `Get a newer list of models from its source (setting models.source), check it, and keep it in
the data directory. yaya never does so by itself.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithModels(c.Context(), g, c.ErrOrStderr(), func(b *daemon.Backend) error {
				var all admin.ModelList
				if err := b.API(c.Context(), http.MethodPost, "/api/models/refresh", nil, &all); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%d models from %s\n", len(all.Models), daemon.Printable(all.Source, 200))
				return err
			})
		},
	}
}

// tokenCount writes a number of tokens shortly.
func tokenCount(n int) string {
	switch {
	case n == 0:
		return ""
	case n >= 1_000_000:
		return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64), ".0") + "M"
	case n >= 1000:
		return strconv.Itoa((n+500)/1000) + "k"
	}
	return strconv.Itoa(n)
}

func price(known bool, usd float64) string {
	if !known {
		return ""
	}
	return strconv.FormatFloat(usd, 'f', -1, 64)
}

func abilities(m admin.Model) string {
	var out []string
	for _, a := range []struct {
		has  bool
		name string
	}{{m.Tools, "tools"}, {m.Images, "images"}, {m.Reasoning, "reasoning"}} {
		if a.has {
			out = append(out, a.name)
		}
	}
	return strings.Join(out, ", ")
}
