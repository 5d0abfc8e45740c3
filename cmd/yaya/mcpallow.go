package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/admin"
)

func mcpAllowCommand(g *globals) *cobra.Command {
	var what admin.ServerPermit
	var remove bool
	c := &cobra.Command{
		Use: "allow NAME", Short: "Let a server in the sandbox do more",
		Long: `Let a server whose sandbox profile is "server" reach a host, read or write a path, or
have a variable of yaya's environment. The server is started again with it. A path is
a file that is there, or a folder with all that is in it; one with a symbolic link is
kept as the path that it leads to.

For a server of yaya's own file its entry changes. For one that a folder brings, the
permit is yours: its file stays as it is, and an entry that changes has no permits.
yaya mcp get NAME shows what a server may do. --remove takes a permit back.`,
		Example: `  yaya mcp allow fetch --host example.com
  yaya mcp allow notes --write ~/notes --read ~/pictures
  yaya mcp allow fetch --host example.com --remove`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(what.Read)+len(what.Write)+len(what.Hosts)+len(what.Env) == 0 {
				return &usageError{c.CommandPath(), errors.New("say what to allow: --host, --read, --write or --env")}
			}
			for flag, list := range map[string][]string{"--read": what.Read, "--write": what.Write} {
				for _, name := range list {
					if err := absoluteFlag(flag, name); err != nil {
						return &usageError{c.CommandPath(), err}
					}
				}
			}
			return withServers(c.Context(), g, func(b *backend) error {
				was, err := b.server(c.Context(), args[0])
				if err != nil {
					return err
				}
				body := struct {
					admin.ServerPermit
					Remove bool `json:"remove,omitempty"`
				}{what, remove}
				ch, err := b.change(c.Context(), http.MethodPost, atServer(args[0])+"/sandbox", body)
				if err != nil {
					return err
				}
				is, err := b.server(c.Context(), args[0])
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if was.Sandbox != nil && is.Sandbox != nil && was.Sandbox.Allowed == is.Sandbox.Allowed {
					fmt.Fprintf(w, "%s: nothing changed: %s\n", printable(args[0], 128), printable(is.Sandbox.Allowed, 2000))
					return nil
				}
				if was.Sandbox != nil && is.Sandbox != nil {
					fmt.Fprintf(w, "- %s: %s\n+ %s: %s\n", printable(args[0], 128), printable(was.Sandbox.Allowed, 2000), printable(args[0], 128), printable(is.Sandbox.Allowed, 2000))
				}
				showNotes(w, ch)
				return nil
			})
		},
	}
	f := c.Flags()
	f.StringArrayVar(&what.Hosts, "host", nil, "`host` to reach: example.com, *.example.com or example.com:8443 (repeatable)")
	f.StringArrayVar(&what.Read, "read", nil, "`path` to read (repeatable)")
	f.StringArrayVar(&what.Write, "write", nil, "`path` to read and write (repeatable)")
	f.StringArrayVar(&what.Env, "env", nil, "`name` of a variable of yaya's environment (repeatable)")
	f.BoolVar(&remove, "remove", false, "take it back")
	return c
}
