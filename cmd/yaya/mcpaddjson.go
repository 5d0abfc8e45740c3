package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func mcpAddJSONCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "add-json [NAME] JSON",
		Short: "Add a server by its JSON; - reads it from stdin",
		Long: `Add a server by its JSON: its entry of mcpServers, or what READMEs show, with
mcpServers or the server's name around it. NAME is needed where the JSON has none,
chooses one of several servers, and renames a single one. Without NAME all servers
of the JSON are added.`,
		Example: `  yaya mcp add-json fs '{"command":"npx","args":["-y","some-server"]}'
  yaya mcp add-json '{"mcpServers":{"fs":{"command":"npx","args":["-y","some-server"]}}}'
  yaya mcp add-json fs - < entry.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			usage := func(err error) error { return &usageError{c.CommandPath(), err} }
			name, text := "", []byte(args[len(args)-1])
			if len(args) == 2 {
				if name = args[0]; checkName(name) != nil {
					return usage(checkName(name))
				}
			}
			if string(text) == "-" {
				var err error
				if text, err = io.ReadAll(io.LimitReader(c.InOrStdin(), servers.MaxFile)); err != nil { //nolint:forbidigo // bounded by the reader
					return err
				}
			}
			entries, err := entriesOf(name, text)
			if err != nil {
				return usage(err)
			}
			var list []newServer
			for _, name := range slices.Sorted(maps.Keys(entries)) {
				s, notes, err := serverEntry(name, entries[name])
				if err = errors.Join(checkName(name), err); err != nil {
					return usage(err)
				}
				list = append(list, newServer{s, notes})
			}
			return withServers(c.Context(), g, func(b *backend) error {
				return saveServers(c, b, list)
			})
		},
	}
}

// entriesOf reads the entries of servers, by name, from JSON as people have it: an entry,
// an object of them, a whole file, or a piece of one without its outer braces.
func entriesOf(name string, text []byte) (map[string]any, error) {
	const file = "the JSON"
	doc, err := servers.Decode(file, text)
	if err != nil && strings.HasPrefix(strings.TrimSpace(string(text)), `"`) {
		if inner, ierr := servers.Decode(file, []byte("{"+string(text)+"}")); ierr == nil {
			doc, err = inner, nil
		}
	}
	if err != nil {
		return nil, err
	}
	isEntry := func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && (m["command"] != nil || m["url"] != nil || m["serverUrl"] != nil || m["httpUrl"] != nil)
	}
	if isEntry(doc) {
		if name == "" {
			return nil, errors.New("the JSON has no name for the server: yaya mcp add-json NAME JSON")
		}
		return map[string]any{name: doc}, nil
	}
	for _, key := range []string{"mcp", "mcpServers", "servers", "mcp_servers", "context_servers"} { // VS Code nests
		if inner, ok := doc[key].(map[string]any); ok && !isEntry(inner) {
			doc = inner
		}
	}
	for n, v := range doc {
		if !isEntry(v) {
			return nil, fmt.Errorf("%q is not the entry of a server: it has neither a command nor a url", n)
		}
	}
	switch {
	case len(doc) == 0:
		return nil, errors.New("the JSON has no server: an entry has a command or a url")
	case name == "":
		return doc, nil
	case doc[name] != nil:
		return map[string]any{name: doc[name]}, nil
	case len(doc) > 1:
		return nil, fmt.Errorf("the JSON has several servers, and none is called %q: name one of %s, or leave NAME out to add all", name, strings.Join(slices.Sorted(maps.Keys(doc)), ", "))
	}
	for _, v := range doc {
		return map[string]any{name: v}, nil
	}
	return nil, nil
}
