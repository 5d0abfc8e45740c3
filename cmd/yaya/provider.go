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

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
)

func providerCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "provider", Short: "Manage the model providers that agents use", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(providerListCommand(g), providerAddCommand(g), providerUseCommand(g), providerTestCommand(g), providerModelsCommand(g), providerRefreshCommand(g), providerRemoveCommand(g))
	return c
}

func providers(ctx context.Context, b *daemon.Backend) (all []admin.Provider, err error) {
	return all, b.API(ctx, http.MethodGet, "/api/llm-providers", nil, &all)
}

func providerListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the providers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
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
					if r.Label == r.Plugin+" (default)" { // as yaya created it: one entry per kind
						r.Label = ""
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", map[bool]string{true: "*", false: ""}[r.Active], r.ID, daemon.Printable(r.Plugin, 40), daemon.Printable(text("model"), 40), daemon.Printable(text("base_url"), 60), daemon.Printable(r.Label, 60))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// maxKey bounds a typed or piped key, in bytes.
const maxKey = 16 << 10

// readKey reads a key from standard input; on a terminal, without echo.
func readKey(ctx context.Context, in io.Reader, out io.Writer) (string, error) {
	f, ok := in.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor fits
		line, err := readHidden(ctx, f, out, "Key (hidden): ")
		return strings.TrimSpace(line), err
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxKey)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// newProvider holds the flags of provider add.
type newProvider struct {
	plug, label, model, base, keyEnv string
	keyStdin                         bool
	fields                           []string
}

// config returns the fields of the provider.
func (n newProvider) config(ctx context.Context, id string, in io.Reader, out io.Writer) (map[string]json.RawMessage, error) {
	values := map[string]string{"model": n.model, "base_url": n.base}
	for _, f := range n.fields {
		k, v, ok := strings.Cut(f, "=")
		if !ok || k == "plugin" || k == "label" {
			return nil, fmt.Errorf("--set %q is not field=value", f)
		}
		if bare := config.Literals(k, config.ParseValue("providers."+id+"."+k, v)); len(bare) > 0 {
			return nil, fmt.Errorf("--set %s: a secret is never an argument, which other users of this machine can see: use --api-key-stdin, or store it (yaya secret set NAME) and pass --set '%s=${secret:NAME}'", k, k)
		}
		values[k] = v
	}
	switch {
	case n.keyStdin && n.keyEnv != "":
		return nil, errors.New("use either --api-key-env or --api-key-stdin, not both")
	case n.keyEnv != "":
		if values["api_key"] = os.Getenv(n.keyEnv); values["api_key"] == "" {
			return nil, fmt.Errorf("the environment variable %s is empty", n.keyEnv)
		}
	case n.keyStdin:
		key, err := readKey(ctx, in, out)
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

func providerAddCommand(g *daemon.Flags) *cobra.Command {
	var n newProvider
	var use bool
	c := &cobra.Command{
		Use: "add ID", Short: "Add a provider", Args: cobra.ExactArgs(1),
		Long: `Add a provider. yaya reads its key from an environment variable or from standard input,
never from the command line, which other users can see. Without a key, the plugin uses the
one in yaya's environment, such as OPENAI_API_KEY or ANTHROPIC_API_KEY.

With one of these names as ID, and without --base-url or another --plugin, plugin and
address are those of the service or program:
` + presetHelp() + `.
The key of a service whose API is like OpenAI's is then copied from its usual variable, such
as GROQ_API_KEY, if it is set. Any other ID means OpenAI, unless --plugin or --base-url say
otherwise.`,
		Example: `  yaya provider add openai --model gpt-5-mini --api-key-stdin --use   # asks for the key
  yaya provider add anthropic --model claude-sonnet-4-5 --api-key-stdin --use
  yaya provider add groq --model openai/gpt-oss-120b --use            # GROQ_API_KEY, if it is set
  yaya provider add ollama --model gpt-oss:20b --use
  yaya provider add second --plugin llm-gemini --model gemini-3.5-flash --api-key-stdin
  pass show work | yaya provider add work --base-url https://llm.example.com/v1 --model m --api-key-stdin`,
		RunE: func(c *cobra.Command, args []string) error {
			id, w := args[0], c.OutOrStdout()
			if !config.ValidInstanceID(id) {
				return &usageError{c.CommandPath(), fmt.Errorf("invalid provider id %q: use 3 to 64 lower-case letters, digits and dashes, without a dash at either end", id)}
			}
			n, preset, known := n.preset(id)
			fields, err := n.config(c.Context(), id, c.InOrStdin(), c.ErrOrStderr())
			if errors.Is(err, errNotTyped) {
				return err
			}
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if u, err := url.Parse(n.base); n.base != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
				return &usageError{c.CommandPath(), fmt.Errorf("--base-url %q is not an http or https URL, such as http://127.0.0.1:11434/v1", n.base)}
			}
			if script := fields["script"]; n.plug == llm_echo.Name && script != nil {
				if _, err := llm_echo.ParseScript(script); err != nil {
					return &usageError{c.CommandPath(), fmt.Errorf("--set: %w", err)}
				}
			}
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				if err := n.checkModel(c.Context(), b, id); err != nil {
					return &usageError{c.CommandPath(), err}
				}
				var made admin.Provider
				err := b.API(c.Context(), http.MethodPost, "/api/llm-providers", n.request(id, fields), &made)
				if daemon.AnsweredWith(err, http.StatusBadRequest) {
					return &usageError{c.CommandPath(), err}
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "added %s: %s\n", id, described(made))
				if known {
					if err := tellPreset(w, preset, made, n.keyEnv); err != nil {
						return err
					}
				}
				n.tellKeyless(c.ErrOrStderr(), b, made)
				if use {
					return useProvider(c.Context(), b, w, id)
				}
				_, err = fmt.Fprintf(w, "to use it: yaya provider use %s\n", id)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&n.plug, "plugin", "", "`plugin` that connects to the provider (default that of the ID, or "+openAIPlugin+")")
	f.StringVar(&n.label, "label", "", "display `name`")
	f.StringVar(&n.model, "model", "", "`model` to use")
	f.StringVar(&n.base, "base-url", "", "base `URL` of the service")
	f.StringVar(&n.keyEnv, "api-key-env", "", "environment `variable` from which to copy the key now")
	f.BoolVar(&n.keyStdin, "api-key-stdin", false, "read the key from standard input; prompts on a terminal")
	f.StringArrayVar(&n.fields, "set", nil, "additional `field=value` (repeatable)")
	f.BoolVar(&use, "use", false, "make it the active provider")
	return c
}

// described describes a provider on one line.
func described(p admin.Provider) string {
	text := config.Instance{Config: p.Config}.Text
	out := []string{p.Plugin}
	for _, x := range []struct{ before, value, without string }{
		{"model ", text("model"), "no model chosen (yaya config set providers." + p.ID + ".model NAME)"}, {"at ", text("base_url"), ""},
	} {
		switch {
		case x.value != "":
			out = append(out, x.before+daemon.Printable(x.value, 100))
		case x.without != "" && p.Plugin == "llm-openai":
			out = append(out, x.without)
		}
	}
	if text("api_key") != "" {
		out = append(out, "with its own key")
	}
	return strings.Join(out, ", ")
}

func useProvider(ctx context.Context, b *daemon.Backend, w io.Writer, id string) error {
	if err := b.API(ctx, http.MethodPatch, "/api/llm-providers/active", map[string]string{"name": id}, nil); err != nil {
		return noProvider(err, id)
	}
	now, err := settingOf(ctx, b, "provider")
	switch {
	case err != nil:
		return err
	case now.Origin == string(config.FromEnv):
		_, err = fmt.Fprintf(w, "%s is set but has no effect: %s\n", id, lastWord(now))
	default:
		_, err = fmt.Fprintf(w, "%s is the active provider\n", id)
	}
	return err
}

// noProvider turns a 404 response into an error that names the remedy.
func noProvider(err error, id string) error {
	if daemon.AnsweredWith(err, http.StatusNotFound) {
		return fmt.Errorf("there is no provider %q (see: yaya provider list)", id)
	}
	return err
}

func providerUseCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "use ID", Short: "Select the active provider", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error { return useProvider(c.Context(), b, c.OutOrStdout(), args[0]) })
		},
	}
}

func providerRemoveCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Remove a provider", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), http.MethodDelete, "/api/llm-providers/"+url.PathEscape(args[0]), nil, nil); err != nil {
					return noProvider(err, args[0])
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "removed %s\n", args[0])
				return err
			})
		},
	}
}

func providerTestCommand(g *daemon.Flags) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "test [ID]", Short: "Send a test prompt to a provider", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithAgents(c.Context(), g, func(b *daemon.Backend) error {
				id, err := oneProvider(c.Context(), b, args)
				if err != nil {
					return err
				}
				var got admin.Tested
				path := fmt.Sprintf("/api/llm-providers/%s/test?timeout_ms=%d", url.PathEscape(id), max(1, timeout.Milliseconds()))
				if err := b.API(c.Context(), http.MethodPost, path, nil, &got); err != nil {
					return noProvider(err, id)
				}
				switch {
				case got.OK:
					_, err := fmt.Fprintf(c.OutOrStdout(), "%s answered after %v\n", id, time.Duration(got.LatencyMS)*time.Millisecond)
					return err
				case got.Error == "timeout":
					return fmt.Errorf("%s: timeout after %v", id, timeout)
				}
				return fmt.Errorf("%s: %s", id, daemon.Printable(got.Error, 500))
			})
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait")
	return c
}

// oneProvider returns the named provider, or the active one.
func oneProvider(ctx context.Context, b *daemon.Backend, args []string) (string, error) {
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
	return "", errors.New("no provider is active (to select one: yaya provider use ID)")
}
