package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// proposeChange proposes a change of a server, and applies it.
func proposeChange(ctx context.Context, b *daemon.Backend, method, path string, in any) (admin.Change, error) {
	var ch admin.Change
	err := b.API(ctx, method, path, in, &ch)
	if err == nil {
		err = applyChange(ctx, b, ch)
	}
	return ch, err
}

// applyChange applies a change that was proposed.
func applyChange(ctx context.Context, b *daemon.Backend, ch admin.Change) error {
	return b.API(ctx, http.MethodPost, "/api/mcp/changes/"+url.PathEscape(ch.ID)+"/apply", nil, nil)
}

// atServer is the path of a server in the API.
func atServer(name string) string { return "/api/mcp/servers/" + url.PathEscape(name) }

// newServer is a server to add, with notes for the user.
type newServer struct {
	servers.Server
	notes []string
}

// saveServers adds servers to yaya's own file: all of them, or none if one cannot be added, for
// example because its name is taken.
func saveServers(c *cobra.Command, b *daemon.Backend, list []newServer) error {
	ctx, w := c.Context(), c.OutOrStdout()
	var failed []error
	changes := make([]admin.Change, len(list))
	for i, s := range list {
		err := b.API(ctx, http.MethodPost, "/api/mcp/servers", map[string]any{"name": s.Name, "config": s.Server}, &changes[i])
		switch {
		case daemon.AnsweredWith(err, http.StatusConflict):
			err = fmt.Errorf("the server %q exists already: change it with yaya mcp edit %[1]s, or remove it first with yaya mcp remove %[1]s", s.Name)
		case daemon.AnsweredWith(err, http.StatusBadRequest) && strings.Contains(err.Error(), fmt.Sprintf("server %q: ", s.Name)): // its configuration is wrong
			err = &usageError{c.CommandPath(), err}
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		if len(list) > 1 {
			failed = append(failed, errors.New("nothing was added"))
		}
		return errors.Join(failed...)
	}
	lacking := false
	for i, s := range list {
		if err := applyChange(ctx, b, changes[i]); err != nil {
			return err // it names the server
		}
		fmt.Fprintf(w, "added %s: %s\n", daemon.Printable(s.Name, 128), daemon.Printable(s.Endpoint(), 300))
		lacking = lacking || len(changes[i].Notes) > 0
		for _, note := range changes[i].Notes { // those of the entry come from the daemon, too
			if !slices.Contains(s.notes, note) {
				s.notes = append(s.notes, note)
			}
		}
		changes[i].Notes = s.notes
		showNotes(w, changes[i])
	}
	if lacking && b.Remote {
		fmt.Fprintln(w, "to see its state: yaya mcp list")
		return nil
	}
	fmt.Fprintln(w, fromWhen(b))
	return nil
}

// showNotes prints the notes about an applied change.
func showNotes(w io.Writer, ch admin.Change) {
	for _, note := range ch.Notes {
		fmt.Fprintf(w, "  note: %s\n", daemon.Printable(note, 300))
	}
}

// fromWhen tells what to do after servers were added.
func fromWhen(b *daemon.Backend) string {
	if b.Remote {
		return "the running yaya uses it now: yaya mcp list"
	}
	return "start yaya with: yaya serve"
}

// addWords parses the command line of mcp add. yaya's flags end where the server's command
// begins: all further words belong to the command, with or without "--".
func addWords(f *pflag.FlagSet, args []string) (words []string, err error) {
	f.SetInterspersed(false)
	for dashed := false; len(args) > 0; {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		dashed = dashed || f.ArgsLenAtDash() >= 0
		args = f.Args()
		if len(args) == 0 {
			break
		}
		if len(words) == 1 && (dashed || !manage.IsURL(args[0])) {
			return append(words, args...), nil
		}
		words, args = append(words, args[0]), args[1:]
	}
	return words, nil
}

func mcpAddCommand(g *daemon.Flags) *cobra.Command {
	var env, header []string
	var transport, cwd, session string
	c := &cobra.Command{
		Use:   "add NAME (URL | COMMAND [ARG …])",
		Short: "Add a server to yaya's own configuration",
		Long: `Add a server to yaya's own configuration. A running yaya uses it at once.

Put flags before the command: everything after it belongs to the command. "--" before the
command is not needed. If the command or a variable is missing, yaya still adds the server
and tells you what is missing. Do not write a password or token into the entry: set it with
yaya secret set NAME, and write '${secret:NAME}' in its place, in --env or --header.

A server does not start in the current folder. So yaya saves a command such as
./server, and existing arguments such as . and ./data, or data after --dir or --repository,
as absolute paths, unless --cwd sets the working directory. Other words that name a file or
folder here stay unchanged, and a note says so.`,
		Example: `  yaya mcp add fs npx -y @modelcontextprotocol/server-filesystem ~
  yaya mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'`,
		Args:               cobra.ArbitraryArgs,
		DisableFlagParsing: true, // addWords does it
		RunE: func(c *cobra.Command, args []string) error {
			usage := func(format string, a ...any) error { return &usageError{c.CommandPath(), fmt.Errorf(format, a...)} }
			c.InheritedFlags() // makes the flags of the parent commands known here
			args, err := addWords(c.Flags(), args)
			if help, herr := c.Flags().GetBool("help"); herr == nil && help {
				return c.Help()
			}
			switch {
			case err != nil:
				return usage("%w", flagMistake(err))
			case len(args) < 2:
				return usage("missing a name, a URL or a command (usage: yaya mcp add NAME COMMAND [ARG …])")
			case len(args) > 2 && manage.IsURL(args[1]):
				return usage("unexpected argument %q after the URL", args[2])
			}
			if err := errors.Join(manage.CheckName(args[0]), manage.CheckCommand(args[0], args[1], len(args) > 2)); err != nil {
				return usage("%w", err)
			}
			entry := map[string]any{}
			switch remote := manage.IsURL(args[1]); {
			case remote && (len(env) > 0 || cwd != ""):
				return usage("--env and --cwd need a command, but %s is an address: omit them, or use --header", args[1])
			case !remote && len(header) > 0:
				return usage("--header needs an address, but %q is a command: omit it, or use --env", args[1])
			}
			var paths []string
			if manage.IsURL(args[1]) {
				entry["url"] = args[1]
			} else {
				var words []string
				if words, cwd, paths, err = manage.WholePaths(args[1:], cwd); err != nil {
					return err
				}
				entry["command"] = words[0]
				if len(words) > 1 {
					entry["args"] = words[1:]
				}
			}
			for flag, value := range map[string]string{"type": transport, "cwd": cwd, "session": session} {
				if value != "" {
					entry[flag] = value
				}
			}
			if m, err := pairs(env, "="); err != nil {
				return usage("--env: %w", err)
			} else if len(m) > 0 {
				if cwd == "" {
					more, err := manage.WholeVariables(m)
					if err != nil {
						return err
					}
					paths = append(paths, more...)
				}
				entry["env"] = m
			}
			if m, err := pairs(header, ":"); err != nil {
				return usage("--header: %w", err)
			} else if len(m) > 0 {
				entry["headers"] = m
			}
			s, notes, err := manage.Entry(args[0], entry)
			if err != nil {
				return usage("%w", err)
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				return saveServers(c, b, []newServer{{s, append(paths, notes...)}})
			})
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&env, "env", "e", nil, "environment variable `KEY=value` of the command (repeatable)")
	f.StringArrayVarP(&header, "header", "H", nil, "HTTP `header`, such as 'Name: value' (repeatable)")
	f.StringVar(&transport, "transport", "", "`transport` if it cannot be detected: stdio, http or sse")
	f.StringVar(&cwd, "cwd", "", "working `directory` of the command")
	f.StringVar(&session, "session", "", "`policy` for sharing connections: shared, per_principal, per_client, per_call or pool:N")
	return c
}

func pairs(in []string, sep string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range in {
		k, v, ok := strings.Cut(s, sep)
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, fmt.Errorf("%q does not have the form name%svalue", s, sep)
		}
		out[k] = strings.TrimSpace(v)
	}
	return out, nil
}

func mcpRemoveCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Stop a server and remove it from yaya's own configuration", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				used := usedSecrets(c.Context(), b)
				if err := b.API(c.Context(), http.MethodDelete, atServer(args[0]), nil, nil); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "removed %s\n", daemon.Printable(args[0], 128)); err != nil {
					return err
				}
				still := usedSecrets(c.Context(), b)
				for _, name := range slices.Sorted(maps.Keys(used)) {
					if uses, known := still[name]; known && used[name] && !uses {
						fmt.Fprintf(c.ErrOrStderr(), "nothing uses the secret %s now. To delete it: yaya secret remove %[1]s\n", daemon.Printable(name, 128))
					}
				}
				return nil
			})
		},
	}
}

// usedSecrets returns the secrets that are set, and whether something uses them; nil if they cannot be listed here.
func usedSecrets(ctx context.Context, b *daemon.Backend) map[string]bool {
	var all admin.SecretList
	if b.API(ctx, http.MethodGet, "/api/secrets", nil, &all) != nil {
		return nil // the server can be removed without that
	}
	out := map[string]bool{}
	for _, s := range all.Secrets {
		if !s.Set.IsZero() {
			out[s.Name] = len(s.Uses) > 0
		}
	}
	return out
}
