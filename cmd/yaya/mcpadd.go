package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// change proposes a change of a server, and applies it.
func (b *backend) change(ctx context.Context, method, path string, in any) (admin.Change, error) {
	var ch admin.Change
	err := b.api(ctx, method, path, in, &ch)
	if err == nil {
		err = b.apply(ctx, ch)
	}
	return ch, err
}

// apply applies a change that was proposed.
func (b *backend) apply(ctx context.Context, ch admin.Change) error {
	return b.api(ctx, http.MethodPost, "/api/mcp/changes/"+url.PathEscape(ch.ID)+"/apply", nil, nil)
}

// atServer is the path of a server in the API.
func atServer(name string) string { return "/api/mcp/servers/" + url.PathEscape(name) }

// newServer is a server to add, and what is to be said of it.
type newServer struct {
	servers.Server
	notes []string
}

// saveServers adds servers to yaya's own file: all of them, or none if one cannot be
// added, such as one whose name is taken.
func saveServers(c *cobra.Command, b *backend, list []newServer) error {
	ctx, w := c.Context(), c.OutOrStdout()
	var failed []error
	changes := make([]admin.Change, len(list))
	for i, s := range list {
		err := b.api(ctx, http.MethodPost, "/api/mcp/servers", map[string]any{"name": s.Name, "config": s.Server}, &changes[i])
		switch {
		case answeredWith(err, http.StatusConflict):
			err = fmt.Errorf("there is a server %q already: change it with yaya mcp edit %[1]s, or remove it first with yaya mcp remove %[1]s", s.Name)
		case answeredWith(err, http.StatusBadRequest) && strings.Contains(err.Error(), fmt.Sprintf("server %q: ", s.Name)): // its configuration is wrong
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
		if err := b.apply(ctx, changes[i]); err != nil {
			return fmt.Errorf("server %q: %w", s.Name, err)
		}
		fmt.Fprintf(w, "added %s: %s\n", printable(s.Name, 128), printable(s.Endpoint(), 300))
		lacking = lacking || len(changes[i].Notes) > 0
		changes[i].Notes = append(s.notes, changes[i].Notes...)
		showNotes(w, changes[i])
	}
	if lacking && b.remote {
		fmt.Fprintln(w, "yaya mcp list shows how it is")
		return nil
	}
	fmt.Fprintln(w, b.next())
	return nil
}

// showNotes says what is to be known of a change that was applied.
func showNotes(w io.Writer, ch admin.Change) {
	for _, note := range ch.Notes {
		fmt.Fprintf(w, "  note: %s\n", printable(note, 300))
	}
}

// next says what to do when servers were added.
func (b *backend) next() string {
	if b.remote {
		return "the running yaya uses it now: yaya mcp list"
	}
	return "start yaya with: yaya serve"
}

// serverEntry reads the configuration of one server, which goes the way of every file.
// The notes say what was left out of it, and what means something else here.
func serverEntry(name string, config any) (s servers.Server, notes []string, err error) {
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: config}})
	if err != nil {
		return servers.Server{}, nil, err
	}
	const source = "command line"
	cfg, err := servers.Parse(source, file, servers.FormatYaya)
	switch {
	case err != nil:
		return servers.Server{}, nil, err
	case len(cfg.Invalid) > 0:
		return servers.Server{}, nil, fmt.Errorf("server %q: %w", name, cfg.Invalid[0].Err)
	case len(cfg.Servers) != 1:
		return servers.Server{}, nil, fmt.Errorf("server %q: this is not the configuration of one server", name)
	}
	for _, w := range cfg.Warnings {
		notes = append(notes, strings.TrimPrefix(w, fmt.Sprintf("%s: server %q: ", source, name)))
	}
	for _, change := range cfg.Changes {
		notes = append(notes, change.Text)
	}
	return cfg.Servers[0], notes, nil
}

// addWords reads the command line of mcp add. Flags of yaya end where the server's
// command begins: from there on every word is the command's, with or without "--".
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
		if len(words) == 1 && (dashed || !isURL(args[0])) {
			return append(words, args...), nil
		}
		words, args = append(words, args[0]), args[1:]
	}
	return words, nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// serverName is a name that can be typed everywhere. Files may have others.
var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN][\pL\pN._-]{0,127}$`) }) // five megabytes

func checkName(name string) error {
	if !serverName().MatchString(name) {
		return fmt.Errorf("the name %q must begin with a letter or digit and have nothing but letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// scheme is how an address begins.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// checkCommand refuses what cannot be meant as the command of a server: an address at
// which nobody speaks MCP, and a command line that is quoted as one word.
func checkCommand(name, command string, more bool) error {
	if isURL(command) {
		if u, err := url.Parse(command); !strings.Contains(command, "${") && (err != nil || u.Host == "") {
			return fmt.Errorf("the URL %q names no host", command)
		}
		return nil
	}
	if s := scheme.FindString(command); s != "" {
		return fmt.Errorf("MCP is spoken over http:// and https://, not over %s: give the server's http address", s)
	}
	if more || !strings.ContainsAny(command, " \t") || strings.Contains(command, "${") {
		return nil
	}
	if _, err := exec.LookPath(command); err == nil { // a path with blanks
		return nil
	}
	return fmt.Errorf("the command %q is one word: give its words without quotes around all of them, such as yaya mcp add %s %s", command, name, command)
}

func mcpAddCommand(g *globals) *cobra.Command {
	var env, header []string
	var transport, cwd, session string
	c := &cobra.Command{
		Use:   "add NAME (URL | COMMAND [ARG …])",
		Short: "Add a server to yaya's own configuration",
		Long: `Add a server to yaya's own configuration. A running yaya uses it at once.

Flags stand before the command; what follows it belongs to it. "--" before the
command is not needed. A server that lacks its command or a variable is added, and
you are told what it lacks. A password or a token is better kept apart: set it with
yaya secret set NAME, and write '${secret:NAME}' in its place.

A server does not start in the current folder: a command such as ./server, and
arguments such as . and ./data that exist, are written as whole paths, unless --cwd
says where it starts.`,
		Example: `  yaya mcp add fs npx -y @modelcontextprotocol/server-filesystem ~
  yaya mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'`,
		Args:               cobra.ArbitraryArgs,
		DisableFlagParsing: true, // addWords does it
		RunE: func(c *cobra.Command, args []string) error {
			usage := func(format string, a ...any) error { return &usageError{c.CommandPath(), fmt.Errorf(format, a...)} }
			c.InheritedFlags() // makes those of the commands above known here
			args, err := addWords(c.Flags(), args)
			if help, herr := c.Flags().GetBool("help"); herr == nil && help {
				return c.Help()
			}
			switch {
			case err != nil:
				return usage("%w", flagMistake(err))
			case len(args) < 2:
				return usage("give a name, and a URL or a command: yaya mcp add NAME COMMAND [ARG …]")
			case len(args) > 2 && isURL(args[1]):
				return usage("%q follows the URL", args[2])
			}
			if err := errors.Join(checkName(args[0]), checkCommand(args[0], args[1], len(args) > 2)); err != nil {
				return usage("%w", err)
			}
			entry := map[string]any{}
			switch remote := isURL(args[1]); {
			case remote && (len(env) > 0 || cwd != ""):
				return usage("--env and --cwd are for a command, and %s is an address: leave them out, or give a --header", args[1])
			case !remote && len(header) > 0:
				return usage("--header is for an address, and %q is a command: leave it out, or give the command an --env", args[1])
			}
			var paths []string
			if isURL(args[1]) {
				entry["url"] = args[1]
			} else {
				var words []string
				if words, cwd, paths, err = wholePaths(args[1:], cwd); err != nil {
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
				entry["env"] = m
			}
			if m, err := pairs(header, ":"); err != nil {
				return usage("--header: %w", err)
			} else if len(m) > 0 {
				entry["headers"] = m
			}
			s, notes, err := serverEntry(args[0], entry)
			if err != nil {
				return usage("%w", err)
			}
			return withServers(c.Context(), g, func(b *backend) error {
				return saveServers(c, b, []newServer{{s, append(paths, notes...)}})
			})
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&env, "env", "e", nil, "environment variable KEY=value of the command (repeatable)")
	f.StringArrayVarP(&header, "header", "H", nil, "HTTP header 'Name: value' (repeatable)")
	f.StringVar(&transport, "transport", "", "stdio, http or sse, if it cannot be told")
	f.StringVar(&cwd, "cwd", "", "working directory of the command")
	f.StringVar(&session, "session", "", "who shares a connection: shared, per_principal, per_client, per_call or pool:N")
	return c
}

func pairs(in []string, sep string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range in {
		k, v, ok := strings.Cut(s, sep)
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, fmt.Errorf("%q is not of the form name%svalue", s, sep)
		}
		out[k] = strings.TrimSpace(v)
	}
	return out, nil
}

func mcpRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Stop a server and remove it from yaya's own configuration", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withServers(c.Context(), g, func(b *backend) error {
				if err := b.api(c.Context(), http.MethodDelete, atServer(args[0]), nil, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "removed %s\n", printable(args[0], 128))
				return err
			})
		},
	}
}
