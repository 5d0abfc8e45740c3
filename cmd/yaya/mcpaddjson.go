package main

import (
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func mcpAddJSONCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "add-json [NAME] JSON",
		Short: "Add a server from JSON; - reads stdin",
		Long: `Add a server from JSON: its mcpServers entry, alone or, as READMEs show it, wrapped in
mcpServers or in the server's name. NAME is required if the JSON has no name. If the JSON
has several servers, NAME selects one; if it has one, NAME renames it. Without NAME, all
servers in the JSON are added.`,
		Example: `  yaya mcp add-json fs '{"command":"npx","args":["-y","some-server"]}'
  yaya mcp add-json '{"mcpServers":{"fs":{"command":"npx","args":["-y","some-server"]}}}'
  yaya mcp add-json fs - < entry.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			usage := func(err error) error { return &usageError{c.CommandPath(), err} }
			name, text := "", []byte(args[len(args)-1])
			if len(args) == 2 {
				if name = args[0]; manage.CheckName(name) != nil {
					return usage(manage.CheckName(name))
				}
			}
			if string(text) == "-" {
				var err error
				if text, err = io.ReadAll(io.LimitReader(c.InOrStdin(), servers.MaxFile)); err != nil { //nolint:forbidigo // bounded by the reader
					return err
				}
			}
			entries, err := manage.Entries(name, text)
			if err != nil {
				return usage(err)
			}
			var list []newServer
			for _, name := range slices.Sorted(maps.Keys(entries)) {
				s, notes, err := manage.Entry(name, entries[name])
				if err = errors.Join(manage.CheckName(name), err); err != nil {
					return usage(err)
				}
				list = append(list, newServer{s, notes})
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				return saveServers(c, b, list)
			})
		},
	}
}
