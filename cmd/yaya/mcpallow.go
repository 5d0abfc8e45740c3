package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func mcpAllowCommand(g *daemon.Flags) *cobra.Command {
	var what admin.ServerPermit
	var remove bool
	c := &cobra.Command{
		Use: "allow NAME", Short: "Give a sandboxed server more access",
		Long: `Allow a server whose sandbox profile is "server" to reach a host, to read or write a path,
or to get a variable of yaya's environment. The server restarts with the new permit. A path
is an existing file, or a folder with everything in it; yaya resolves symbolic links before
it saves the path.

For a server in yaya's own file, the command changes its entry. For a server that a folder
brings, the permit is stored with your own settings: the folder's file stays unchanged, and
if its entry changes, the permits no longer apply. yaya mcp get NAME shows the permits of a
server. --remove revokes a permit.`,
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
					if err := manage.AbsoluteFlag(flag, name); err != nil {
						return &usageError{c.CommandPath(), err}
					}
				}
			}
			asked := servers.Sandbox{Read: what.Read, Write: what.Write, Hosts: what.Hosts, Env: what.Env}
			if err := asked.Check(); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				was, err := serverNamed(c.Context(), b, args[0])
				if err != nil {
					return err
				}
				body := struct {
					admin.ServerPermit
					Remove bool `json:"remove,omitempty"`
				}{what, remove}
				ch, err := proposeChange(c.Context(), b, http.MethodPost, atServer(args[0])+"/sandbox", body)
				unset := func(name string) bool { _, ok := os.LookupEnv(name); return !ok }
				if daemon.AnsweredWith(err, http.StatusBadRequest) && (slices.ContainsFunc(slices.Concat(what.Read, what.Write), daemon.Missing) || slices.ContainsFunc(what.Env, unset)) {
					return &usageError{c.CommandPath(), err} // the error says what to name instead
				}
				if err != nil {
					return err
				}
				is, err := serverNamed(c.Context(), b, args[0])
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if was.Sandbox != nil && is.Sandbox != nil && was.Sandbox.Allowed == is.Sandbox.Allowed {
					fmt.Fprintf(w, "%s: nothing changed: %s\n", daemon.Printable(args[0], 128), daemon.Printable(is.Sandbox.Allowed, 2000))
					return nil
				}
				if was.Sandbox != nil && is.Sandbox != nil {
					fmt.Fprintf(w, "- %s: %s\n+ %s: %s\n", daemon.Printable(args[0], 128), daemon.Printable(was.Sandbox.Allowed, 2000), daemon.Printable(args[0], 128), daemon.Printable(is.Sandbox.Allowed, 2000))
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
	f.BoolVar(&remove, "remove", false, "revoke the permit")
	return c
}
