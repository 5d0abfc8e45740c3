package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func catalogCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "catalog", Short: "Find MCP servers, and add them",
		Long: `Find MCP servers in registries and in a list that comes with yaya, and add them.
The setting catalog.registries names the registries. Anybody can publish a server in a
registry: look at who did, and at what would run.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(catalogSearchCommand(g), catalogShowCommand(g), catalogInstallCommand(g), catalogUpdatesCommand(g), catalogUpdateCommand(g))
	return c
}

func catalogSearchCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	var cursor string
	c := &cobra.Command{
		Use: "search [WORD …]", Short: "Find servers by words, or list all",
		Long: `Find servers by words: names, titles, descriptions and packages, best first. A registry
compares words with names alone; words of descriptions find servers of yaya's own list and
those that were seen before. Without words, list all servers, page by page.`,
		Example: `  yaya catalog search github
  yaya catalog search query a database`,
		RunE: func(c *cobra.Command, args []string) error {
			query := url.Values{}
			if len(args) > 0 {
				query.Set("q", strings.Join(args, " "))
			}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				var page admin.CatalogPage
				if err := b.API(c.Context(), http.MethodGet, "/api/catalogue?"+query.Encode(), nil, &page); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), page)
				}
				return showPage(c, page)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&cursor, "cursor", "", "`cursor` of a page, as the page before prints it")
	return c
}

func showPage(c *cobra.Command, page admin.CatalogPage) error {
	for _, r := range page.Registries {
		if r.Error != "" {
			fmt.Fprintf(c.ErrOrStderr(), "the registry %s gave no usable answer, so its servers are missing or old: %s\n", r.Name, daemon.Printable(r.Error, 300))
		}
	}
	if len(page.Servers) == 0 {
		if _, err := fmt.Fprintln(c.OutOrStdout(), "No server fits."); err != nil {
			return err
		}
		return showNext(c, page)
	}
	tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tVERSION\tREGISTRY\tBY\tDESCRIPTION")
	for _, s := range page.Servers {
		note := ""
		switch {
		case s.Installed != "":
			note = "[added as " + s.Installed + "] "
		case s.Deprecated:
			note = "[deprecated] "
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Version, s.Registry, strings.Join(s.Kinds, ", "), daemon.Printable(note+s.Description, 80))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return showNext(c, page)
}

// showNext names the next page. A page without servers has one, too: that of the next registry.
func showNext(c *cobra.Command, page admin.CatalogPage) error {
	if page.Next == "" {
		return nil
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "to see more: yaya catalog search --cursor '%s'\n", daemon.Printable(page.Next, 2048))
	return err
}

// fromRegistry are the flags that say which entry is meant.
type fromRegistry struct{ registry, version string }

func (f *fromRegistry) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.registry, "registry", "", "`name` of the registry, if several have the server")
	c.Flags().StringVar(&f.version, "version", "", "exact `version` (default the newest)")
}

// entry asks for a server of the catalogue; option is one whose bundle is needed, or "".
func (f *fromRegistry) entry(c *cobra.Command, b *daemon.Backend, name, option string) (s admin.CatalogServer, err error) {
	query := url.Values{}
	for key, value := range map[string]string{"registry": f.registry, "version": f.version, "option": option} {
		if value != "" {
			query.Set(key, value)
		}
	}
	err = b.API(c.Context(), http.MethodGet, atEntry(name)+"?"+query.Encode(), nil, &s)
	return s, err
}

func atEntry(name string) string { return "/api/catalogue/" + url.PathEscape(name) }

func catalogShowCommand(g *daemon.Flags) *cobra.Command {
	var from fromRegistry
	var asJSON bool
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a server of the catalogue, and what it asks for",
		Example: `  yaya catalog show github
  yaya catalog show io.github.owner/server --registry official`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				s, err := from.entry(c, b, args[0], "")
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), s)
				}
				return showCatalogServer(c.OutOrStdout(), s)
			})
		},
	}
	from.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// showCatalogServer prints a server. The texts are its publisher's.
func showCatalogServer(w io.Writer, s admin.CatalogServer) error {
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-12s %s\n", what, daemon.Printable(text, 1000))
		}
	}
	fmt.Fprintf(w, "%s %s\n", s.Name, s.Version)
	line("title", s.Title)
	line("description", s.Description)
	line("registry", s.Registry)
	line("website", s.Website)
	line("source", s.Repository)
	if s.Deprecated {
		line("deprecated", s.Message+" (its publisher no longer maintains it)")
	}
	line("added as", s.Installed)
	if s.Stale != "" {
		line("old", fmt.Sprintf("as of %s: the registry gave no usable answer (%s)", s.Seen.Local().Format("2006-01-02 15:04"), s.Stale))
	}
	for _, o := range s.Options {
		mark := ""
		if o.ID == s.Chosen && len(s.Options) > 1 {
			mark = " (used unless you name another one with --use)"
		}
		fmt.Fprintf(w, "\n%s: %s %s%s\n", o.ID, daemon.Printable(o.Identifier, 300), daemon.Printable(o.Version, 128), mark)
		line("not usable", o.Refused)
		if o.Needs != "" {
			line("needs", fmt.Sprintf("%s, which is not here: %s", o.Needs, o.Install))
		}
		if o.Fetch {
			line("asks for", "what its bundle says: yaya catalog install downloads and shows it")
		}
		for _, in := range o.Inputs {
			line(in.Name, describe(in))
		}
	}
	if s.Refused != "" {
		fmt.Fprintf(w, "\n%s\n", daemon.Printable(s.Refused, 500))
		return nil
	}
	_, err := fmt.Fprintf(w, "\nTo add it: yaya catalog install %s\n", s.Name)
	return err
}

// describe says what an input takes.
func describe(in admin.CatalogInput) string {
	var words []string
	add := func(when bool, text string) {
		if when {
			words = append(words, text)
		}
	}
	add(in.Required, "required")
	add(in.Secret, "secret")
	add(in.Format != "string", in.Format)
	add(in.Repeated, "several")
	add(len(in.Choices) > 0, "one of "+strings.Join(in.Choices, ", "))
	add(in.Default != "", "default "+in.Default)
	out := in.Description
	if len(words) > 0 {
		out = strings.TrimSpace(out + " (" + strings.Join(words, "; ") + ")")
	}
	if out == "" {
		out = in.Use
	}
	return out
}

func catalogUpdatesCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "updates", Short: "List newer versions of servers that were added from the catalogue", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				var all []admin.CatalogUpdate
				if err := b.API(c.Context(), http.MethodGet, "/api/mcp/updates", nil, &all); err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, all)
				}
				if len(all) == 0 {
					_, err := fmt.Fprintln(w, "No server was added from the catalogue.")
					return err
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "SERVER\tENTRY\tVERSION\tNEWEST\tNOTE")
				for _, u := range all {
					newest := u.Newest
					switch {
					case newest != "" || u.Error != "":
					case u.Differs != "":
						newest = "another"
					default:
						newest = "the same"
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", daemon.Printable(u.Server, 128), daemon.Printable(u.Name, 200), daemon.Printable(u.Version, 128), newest, daemon.Printable(noteOf(u), 500))
				}
				if err := tw.Flush(); err != nil {
					return err
				}
				if slices.ContainsFunc(all, func(u admin.CatalogUpdate) bool { return u.Newest != "" }) {
					_, err := fmt.Fprintln(w, "to take one: yaya catalog update SERVER")
					return err
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// noteOf joins what is known about a server beside its version.
func noteOf(u admin.CatalogUpdate) string {
	return strings.Join(slices.DeleteFunc([]string{u.Differs, u.Message, u.Error}, func(s string) bool { return s == "" }), "; ")
}

func catalogUpdateCommand(g *daemon.Flags) *cobra.Command {
	var agreed bool
	var version string
	c := &cobra.Command{
		Use: "update SERVER", Short: "Change a server to the newest version of its entry",
		Long: `Change a server that was added from the catalogue to the newest version of its entry. yaya
shows what would run, and asks. Your values stay. If the entry has become another
one, yaya refuses, and says how to add it again.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if agreed && version == "" {
				return &usageError{c.CommandPath(), errors.New("--yes agrees to one version: name it with --version")}
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				var ch admin.Change
				if err := b.API(c.Context(), http.MethodPost, atServer(args[0])+"/update", nil, &ch); err != nil {
					return err
				}
				if err := madeFrom(ch, version); err != nil {
					return errors.Join(err, b.API(c.Context(), http.MethodDelete, "/api/mcp/changes/"+url.PathEscape(ch.ID), nil, nil))
				}
				return agreeToChange(c, b, ch, agreed, "Update it?", "updated")
			})
		},
	}
	c.Flags().BoolVarP(&agreed, "yes", "y", false, "update without asking; needs --version")
	c.Flags().StringVar(&version, "version", "", "exact `version`: another one is refused (default the newest)")
	return c
}

// madeFrom refuses a change to another version of an entry than one that is named.
func madeFrom(ch admin.Change, version string) error {
	newest, err := versionIn(ch)
	if err == nil && version != "" && newest != version {
		err = fmt.Errorf("the newest version of %s is %s, not %s: yaya catalog updates lists it", ch.Server, daemon.Printable(newest, 128), daemon.Printable(version, 128))
	}
	return err
}

// versionIn returns the version of the entry that a change comes from.
func versionIn(ch admin.Change) (string, error) {
	var config struct {
		Catalog servers.Origin `json:"catalog"`
	}
	err := json.Unmarshal(ch.Config, &config)
	return config.Catalog.Version, err
}

// agreeToChange shows a change whole, asks about it, and applies it after a yes.
func agreeToChange(c *cobra.Command, b *daemon.Backend, ch admin.Change, agreed bool, question, done string) error {
	w := c.OutOrStdout()
	const escaped = 10 // bytes at most that one becomes
	fmt.Fprintf(w, "\nThis would run as %s:\n  %s\n", daemon.Printable(ch.Server, 128), daemon.Printable(ch.Runs, escaped*len(ch.Runs)))
	for _, n := range ch.Notes {
		fmt.Fprintf(w, "  note: %s\n", daemon.Printable(n, escaped*len(n)))
	}
	if !agreed && !confirm(c.Context(), c.InOrStdin(), w, question) {
		err := b.API(c.Context(), http.MethodDelete, "/api/mcp/changes/"+url.PathEscape(ch.ID), nil, nil)
		version, verr := versionIn(ch)
		return errors.Join(err, verr, notDone(c.Context(), c.InOrStdin(), done, "give --yes --version "+daemon.Printable(version, 128)+" to agree without a question"))
	}
	if err := applyChange(c.Context(), b, ch); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s %s\n%s\n", done, daemon.Printable(ch.Server, 128), fromWhen(b))
	return err
}
