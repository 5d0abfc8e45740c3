package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
)

func reloadCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "reload", Short: "Make the running yaya reload its configuration files",
		Long: `Make the running yaya reload its configuration files: mcp.json or the files given with
--mcp-config, and config.toml. yaya watches these files and reloads them itself. Some file
systems, such as network shares, do not report changes: use this command or SIGHUP there.
yaya rejects a file with a mistake as a whole and keeps its previous content in force; the
exit code is then 1. Only servers whose configuration changed restart. The log file is
opened again, for logrotate.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Paths()
			if err != nil {
				return err
			}
			b, ok := daemon.Reach(c.Context(), p)
			if !ok {
				return fmt.Errorf("no yaya runs on %s: nothing to reload, as yaya reads its files when it starts", p.Data)
			}
			defer b.Client.CloseIdleConnections()
			var out admin.Reloaded
			if err := b.API(c.Context(), "POST", "/api/reload", nil, &out); err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				if err := printJSON(w, out); err != nil || len(out.Refused) == 0 {
					return err
				}
				return &exitStatus{}
			}
			for _, x := range out.Changes {
				if _, err := fmt.Fprintf(w, "%s: %s %s: %s, %s\n", filepath.Base(x.File), x.Kind, daemon.Printable(x.Name, 200), x.Change, daemon.EffectWords(x)); err != nil {
					return err
				}
			}
			for _, key := range out.Waiting {
				if slices.ContainsFunc(out.Changes, func(x admin.FileChange) bool { return x.Kind == admin.KindSetting && x.Name == key }) {
					continue // reported above
				}
				if _, err := fmt.Fprintf(w, "setting %s: changed earlier, %s\n", daemon.Printable(key, 200), daemon.FromNextStart); err != nil {
					return err
				}
			}
			var errs []error
			for _, n := range out.Refused {
				errs = append(errs, fmt.Errorf("%s was not reloaded; its previous content stays in force: %s", n.File, daemon.Printable(n.Error, 1000)))
			}
			if len(out.Changes)+len(out.Waiting)+len(errs) == 0 {
				_, err = fmt.Fprintln(w, "Nothing has changed: a running yaya applies changes of its files by itself.")
				return err
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
