package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
)

func providerCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "provider", Short: "Choose the models that agents work with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(providerListCommand(g), providerAddCommand(g), providerUseCommand(g), providerTestCommand(g), providerRemoveCommand(g))
	return c
}

// withAgents runs f with the daemon, or with the agents' plugins in this process and no
// MCP server.
func withAgents(ctx context.Context, g *globals, f func(*backend) error) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if g.configFile == "" {
		if done, err := beside(ctx, p, f); done {
			return err
		}
	}
	return withApp(ctx, g, p, nil, zerolog.Nop(), true, func(a *app) error { return f(here(a.api())) }, func(c *appConfig) { c.bare = true })
}

// api is the admin API of a process that serves nobody else.
func (a *app) api() *admin.API {
	k := a.kernel
	return admin.New(admin.Config{
		Bus: k.Bus, Settings: k.Settings, Plugins: k.Plugins, Approvals: k.Approvals, Doctor: a.doctor, CheckSetting: profileChecker(k.Settings), Version: yayaVersion(), Log: a.log,
	})
}

func providers(ctx context.Context, b *backend) (all []admin.Provider, err error) {
	return all, b.api(ctx, http.MethodGet, "/api/llm-providers", nil, &all)
}

func providerListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the providers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withAgents(c.Context(), g, func(b *backend) error {
				rows, err := providers(c.Context(), b)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), rows)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "\tPROVIDER\tPLUGIN\tMODEL\tADDRESS\tLABEL")
				for _, r := range rows {
					text := func(field string) string { return config.Instance{Config: r.Config}.Text(field) }
					if r.Label == r.Plugin+" (default)" { // as yaya has made it, each kind once
						r.Label = ""
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", map[bool]string{true: "*", false: ""}[r.Active], r.ID, printable(r.Plugin, 40), printable(text("model"), 40), printable(text("base_url"), 60), printable(r.Label, 60))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// maxKey bounds a key that is typed or piped in, in bytes.
const maxKey = 16 << 10

// readKey reads a key from standard input, and from a terminal without showing it.
func readKey(in io.Reader, out io.Writer) (string, error) {
	f, ok := in.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
		fmt.Fprint(out, "Key (it is not shown): ")
		raw, err := term.ReadPassword(int(f.Fd())) //nolint:gosec // a descriptor fits
		fmt.Fprintln(out)
		return strings.TrimSpace(string(raw)), err
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxKey)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// newProvider is what provider add is given.
type newProvider struct {
	plug, label, model, base, keyEnv string
	keyStdin                         bool
	fields                           []string
}

// config returns the fields of the provider.
func (n newProvider) config(id string, in io.Reader, out io.Writer) (map[string]json.RawMessage, error) {
	values := map[string]string{"model": n.model, "base_url": n.base}
	for _, f := range n.fields {
		k, v, ok := strings.Cut(f, "=")
		if !ok || k == "plugin" || k == "label" {
			return nil, fmt.Errorf("--set %q is not field=value of the provider", f)
		}
		values[k] = v
	}
	switch {
	case n.keyStdin && n.keyEnv != "":
		return nil, errors.New("the key comes from --api-key-env or from --api-key-stdin, not from both")
	case n.keyEnv != "":
		if values["api_key"] = os.Getenv(n.keyEnv); values["api_key"] == "" {
			return nil, fmt.Errorf("the environment variable %s is empty", n.keyEnv)
		}
	case n.keyStdin:
		key, err := readKey(in, out)
		if err != nil {
			return nil, fmt.Errorf("the key: %w", err)
		}
		if values["api_key"] = key; key == "" {
			return nil, errors.New("the key is empty")
		}
	}
	fields := map[string]json.RawMessage{}
	for k, v := range values {
		if v != "" {
			fields[k] = config.ParseValue("providers."+id+"."+k, v)
		}
	}
	return fields, nil
}

func providerAddCommand(g *globals) *cobra.Command {
	var n newProvider
	var use bool
	c := &cobra.Command{
		Use: "add ID", Short: "Add a provider", Args: cobra.ExactArgs(1),
		Long: `Add a provider. Its key is read from an environment variable or from standard
input, never from the command line, which other users can see. Without a key the
plugin uses that of yaya's environment, such as OPENAI_API_KEY.`,
		Example: `  yaya provider add openai --model gpt-5-mini --api-key-stdin --use   # asks for the key
  yaya provider add local --base-url http://127.0.0.1:11434/v1 --model llama3.2 --use
  pass show work | yaya provider add work --base-url https://llm.example.com/v1 --model m --api-key-stdin`,
		RunE: func(c *cobra.Command, args []string) error {
			id, w := args[0], c.OutOrStdout()
			if !config.ValidInstanceID(id) {
				return &usageError{c.CommandPath(), fmt.Errorf("%q cannot be an id: 3 to 64 lower-case letters, digits and dashes, no dash at either end", id)}
			}
			fields, err := n.config(id, c.InOrStdin(), c.ErrOrStderr())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			in := map[string]any{"id": id, "plugin": n.plug, "config": fields}
			if n.label != "" {
				in["label"] = n.label
			}
			return withAgents(c.Context(), g, func(b *backend) error {
				var made admin.Provider
				if err := b.api(c.Context(), http.MethodPost, "/api/llm-providers", in, &made); err != nil {
					return err
				}
				fmt.Fprintf(w, "added %s: %s\n", id, described(made))
				if use {
					return useProvider(c.Context(), b, w, id)
				}
				_, err := fmt.Fprintf(w, "use it with: yaya provider use %s\n", id)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&n.plug, "plugin", "llm-openai", "plugin that speaks to it")
	f.StringVar(&n.label, "label", "", "name to show")
	f.StringVar(&n.model, "model", "", "model to ask")
	f.StringVar(&n.base, "base-url", "", "address of the service")
	f.StringVar(&n.keyEnv, "api-key-env", "", "environment variable to take the key from, now")
	f.BoolVar(&n.keyStdin, "api-key-stdin", false, "read the key from standard input; a terminal is asked for it")
	f.StringArrayVar(&n.fields, "set", nil, "another field=value (repeatable)")
	f.BoolVar(&use, "use", false, "make it the active one")
	return c
}

// described says what a provider is, on one line.
func described(p admin.Provider) string {
	text := config.Instance{Config: p.Config}.Text
	out := []string{p.Plugin}
	for _, x := range []struct{ before, value, without string }{
		{"model ", text("model"), "no model (yaya config set providers." + p.ID + ".model NAME)"}, {"at ", text("base_url"), ""},
	} {
		switch {
		case x.value != "":
			out = append(out, x.before+printable(x.value, 100))
		case x.without != "" && p.Plugin == "llm-openai":
			out = append(out, x.without)
		}
	}
	if text("api_key") != "" {
		out = append(out, "with a key of its own")
	}
	return strings.Join(out, ", ")
}

func useProvider(ctx context.Context, b *backend, w io.Writer, id string) error {
	if err := b.api(ctx, http.MethodPatch, "/api/llm-providers/active", map[string]string{"name": id}, nil); err != nil {
		return noProvider(err, id)
	}
	_, err := fmt.Fprintf(w, "%s is the active provider\n", id)
	return err
}

// noProvider turns a 404 into an error that names the remedy.
func noProvider(err error, id string) error {
	if answeredWith(err, http.StatusNotFound) {
		return fmt.Errorf("there is no provider %q: yaya provider list shows those that there are", id)
	}
	return err
}

func providerUseCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "use ID", Short: "Make a provider the active one", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withAgents(c.Context(), g, func(b *backend) error { return useProvider(c.Context(), b, c.OutOrStdout(), args[0]) })
		},
	}
}

func providerRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Remove a provider", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withAgents(c.Context(), g, func(b *backend) error {
				if err := b.api(c.Context(), http.MethodDelete, "/api/llm-providers/"+url.PathEscape(args[0]), nil, nil); err != nil {
					return noProvider(err, args[0])
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "removed %s\n", args[0])
				return err
			})
		},
	}
}

func providerTestCommand(g *globals) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "test [ID]", Short: "Ask a provider for a word", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withAgents(c.Context(), g, func(b *backend) error {
				id, err := oneProvider(c.Context(), b, args)
				if err != nil {
					return err
				}
				var got admin.Tested
				path := fmt.Sprintf("/api/llm-providers/%s/test?timeout_ms=%d", url.PathEscape(id), max(1, timeout.Milliseconds()))
				if err := b.api(c.Context(), http.MethodPost, path, nil, &got); err != nil {
					return noProvider(err, id)
				}
				switch {
				case got.OK:
					_, err := fmt.Fprintf(c.OutOrStdout(), "%s answers, after %v\n", id, time.Duration(got.LatencyMS)*time.Millisecond)
					return err
				case got.Error == "timeout":
					return fmt.Errorf("%s: timeout after %v", id, timeout)
				}
				return fmt.Errorf("%s: %s", id, printable(got.Error, 500))
			})
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait")
	return c
}

// oneProvider is the provider that is named, or the active one.
func oneProvider(ctx context.Context, b *backend, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	all, err := providers(ctx, b)
	if err != nil {
		return "", err
	}
	for _, p := range all {
		if p.Active {
			return p.ID, nil
		}
	}
	return "", errors.New("no provider is active: yaya provider use ID")
}
