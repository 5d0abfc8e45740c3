package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// shortly bounds what a command does on its way out.
func shortly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}

// withSettings runs f with the settings. A running daemon takes over what f
// changes within a second.
func withSettings(g *globals, f func(*config.Store) error) (err error) {
	p, err := g.paths()
	if err != nil {
		return err
	}
	data, settings, err := g.open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	return f(settings)
}

func configCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Look at settings, and change them", Args: cobra.NoArgs,
		Long: `Look at settings, and change them. A setting comes from a flag, else from the
environment (YAYA_LOOP__MAX_ITERATIONS for loop.max_iterations), else from what
was set here, else from config.toml, else it has its default.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(configListCommand(g), configGetCommand(g), configSetCommand(g), configUnsetCommand(g))
	return c
}

func configListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list [PREFIX]", Short: "List the settings in force; secrets are masked", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSettings(g, func(s *config.Store) error {
				prefix := ""
				if len(args) == 1 {
					prefix = args[0]
				}
				all := s.All(prefix)
				for i := range all {
					all[i].Value = config.Mask(all[i].Key, all[i].Value)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "KEY\tVALUE\tFROM")
				for _, v := range all {
					fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Key, printable(string(v.Value), 80), v.Origin)
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func configGetCommand(g *globals) *cobra.Command {
	var show bool
	c := &cobra.Command{
		Use: "get KEY", Short: "Print one setting as JSON", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSettings(g, func(s *config.Store) error {
				v, _, ok := s.Get(args[0])
				if !ok {
					return fmt.Errorf("%s is not set", args[0])
				}
				if !show {
					v = config.Mask(args[0], v)
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n", v)
				return err
			})
		},
	}
	c.Flags().BoolVar(&show, "show", false, "do not mask secrets")
	return c
}

func configSetCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting; VALUE is JSON, or text", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return withSettings(g, func(s *config.Store) error {
				v := config.ParseValue(args[0], args[1])
				if err := errors.Join(kernel.CheckSetting(s, auth.ScopeNames(), args[0], v), checkProfile(s, args[0], v)); err != nil {
					return &usageError{c.CommandPath(), err}
				}
				if err := s.Set(args[0], v); err != nil {
					return &usageError{c.CommandPath(), err}
				}
				if _, from, _ := s.Get(args[0]); from != config.FromStore {
					fmt.Fprintf(c.ErrOrStderr(), "it is set, and does not count: the %s has the last word\n", from)
				}
				return nil
			})
		},
	}
}

// checkProfile refuses a value in the profiles that would keep all of them from being
// read. It looks at that value alone, so that of several mistakes each can be corrected.
func checkProfile(s *config.Store, key string, v json.RawMessage) error {
	below, ok := strings.CutPrefix(key, profilesKey)
	if !ok || (below != "" && below[0] != '.') {
		return nil
	}
	groups, err := s.Groups()
	if err != nil {
		return err
	}
	if below != "" {
		name, field, nested := strings.Cut(below[1:], ".")
		if nested {
			if v, err = json.Marshal(map[string]json.RawMessage{field: v}); err != nil {
				return err
			}
		}
		if v, err = json.Marshal(map[string]json.RawMessage{name: v}); err != nil {
			return err
		}
	}
	_, err = parseProfiles(v, groups)
	return err
}

// unreadable returns the mistakes in the settings that say who may do what. Meanwhile
// what they would allow is refused.
func unreadable(s *config.Store) (mistakes []error) {
	for _, v := range s.All(config.GroupsPrefix) {
		if err := kernel.CheckSetting(s, auth.ScopeNames(), v.Key, v.Value); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if len(mistakes) > 0 { // rules and profiles only repeat them
		return mistakes
	}
	if rules, _, ok := s.Get("approval.rules"); ok {
		if err := kernel.CheckSetting(s, auth.ScopeNames(), "approval.rules", rules); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if _, err := profiles(s); err != nil {
		mistakes = append(mistakes, err)
	}
	return mistakes
}

func configUnsetCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "unset KEY", Short: "Take a change back; KEY.* takes back all below", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSettings(g, func(s *config.Store) error {
				removed, err := s.Unset(args[0])
				if err == nil && !removed {
					fmt.Fprintf(c.ErrOrStderr(), "%s was not set\n", args[0])
				}
				return err
			})
		},
	}
}

func providerCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "provider", Short: "Choose the models that agents work with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(providerListCommand(g), providerAddCommand(g), providerUseCommand(g), providerTestCommand(g), providerRemoveCommand(g))
	return c
}

// withAgents runs f with the agents' plugins loaded, and no MCP server.
func withAgents(ctx context.Context, g *globals, f func(*app) error) error {
	p, err := g.paths()
	if err != nil {
		return err
	}
	log := zerolog.Nop()
	return withApp(ctx, g, p, nil, log, true, f, func(c *appConfig) { c.servers = loaded{} })
}

func providerListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the providers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withAgents(c.Context(), g, func(a *app) error {
				view := a.kernel.Settings.Providers()
				type row struct {
					ID     string                     `json:"id"`
					Plugin string                     `json:"plugin"`
					Label  string                     `json:"label"`
					Active bool                       `json:"active"`
					Config map[string]json.RawMessage `json:"config"`
				}
				rows := []row{}
				for _, i := range view.ListInstances() {
					for k, v := range i.Config {
						i.Config[k] = config.Mask(k, v)
					}
					rows = append(rows, row{i.ID, i.Plugin, i.Label, i.ID == view.ActiveID(), i.Config})
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), rows)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "\tPROVIDER\tPLUGIN\tMODEL\tADDRESS\tLABEL")
				for _, r := range rows {
					text := func(field string) string { return config.Instance{Config: r.Config}.Text(field) }
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", map[bool]string{true: "*", false: ""}[r.Active], r.ID, printable(r.Plugin, 40), printable(text("model"), 40), printable(text("base_url"), 60), printable(r.Label, 60))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func providerAddCommand(g *globals) *cobra.Command {
	var plug, label, model, base, keyEnv string
	var fields []string
	var use bool
	c := &cobra.Command{
		Use: "add ID", Short: "Add a provider", Args: cobra.ExactArgs(1),
		Example: `  yaya provider add openai --model gpt-5-mini --use            # with OPENAI_API_KEY in yaya's environment
  yaya provider add local --base-url http://127.0.0.1:11434/v1 --model llama3.2 --use
  MY_KEY=… yaya provider add work --base-url https://llm.example.com/v1 --api-key-env MY_KEY`,
		RunE: func(c *cobra.Command, args []string) error {
			id := args[0]
			if !config.ValidInstanceID(id) {
				return &usageError{c.CommandPath(), fmt.Errorf("%q cannot be an id: 3 to 64 lower-case letters, digits and dashes, no dash at either end", id)}
			}
			values := map[string]string{"label": label, "model": model, "base_url": base}
			if keyEnv != "" {
				if values["api_key"] = os.Getenv(keyEnv); values["api_key"] == "" {
					return fmt.Errorf("the environment variable %s is empty", keyEnv)
				}
			}
			for _, f := range fields {
				k, v, ok := strings.Cut(f, "=")
				if !ok || k == "plugin" {
					return &usageError{c.CommandPath(), fmt.Errorf("--set %q is not field=value", f)}
				}
				values[k] = v
			}
			return withAgents(c.Context(), g, func(a *app) error { return addProvider(a, id, plug, values, use) })
		},
	}
	f := c.Flags()
	f.StringVar(&plug, "plugin", "llm-openai", "plugin that speaks to it")
	f.StringVar(&label, "label", "", "name to show")
	f.StringVar(&model, "model", "", "model to ask")
	f.StringVar(&base, "base-url", "", "address of the service")
	f.StringVar(&keyEnv, "api-key-env", "", "environment variable to take the key from, now")
	f.StringArrayVar(&fields, "set", nil, "another field=value (repeatable)")
	f.BoolVar(&use, "use", false, "make it the active one")
	return c
}

// addProvider writes an instance; what was written so far is taken back when a
// step fails.
func addProvider(a *app, id, plug string, values map[string]string, use bool) error {
	s := a.kernel.Settings
	if s.Providers().GetInstance(id) != nil {
		return fmt.Errorf("there is a provider %s already", id)
	}
	if !slices.ContainsFunc(a.kernel.Plugins.Snapshot(), func(p plugin.Status) bool {
		return p.Name == plug && p.Category == plugin.LLMProvider && p.Status == plugin.Loaded
	}) {
		return fmt.Errorf("%s is no loaded plugin for providers: yaya plugin list", plug)
	}
	set := func(field, v string) error {
		key := "providers." + id + "." + field
		return s.Set(key, config.ParseValue(key, v))
	}
	err := set("plugin", plug)
	for field, v := range values {
		if err == nil && v != "" {
			err = set(field, v)
		}
	}
	if err == nil && use {
		err = s.Set(config.ActiveKey, config.ParseValue(config.ActiveKey, id))
	}
	if err != nil {
		if _, uerr := s.Unset("providers." + id + ".*"); uerr != nil {
			return fmt.Errorf("%w; a part of it was written: yaya config unset 'providers.%s.*' (%w)", err, id, uerr)
		}
	}
	return err
}

func providerUseCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "use ID", Short: "Make a provider the active one", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withAgents(c.Context(), g, func(a *app) error {
				s := a.kernel.Settings
				if s.Providers().GetInstance(args[0]) == nil {
					return fmt.Errorf("there is no provider %q: yaya provider list shows those that there are", args[0])
				}
				return s.Set(config.ActiveKey, config.ParseValue(config.ActiveKey, args[0]))
			})
		},
	}
}

func providerRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Remove a provider", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withAgents(c.Context(), g, func(a *app) error {
				s := a.kernel.Settings
				switch {
				case s.Providers().GetInstance(args[0]) == nil:
					return fmt.Errorf("there is no provider %q", args[0])
				case s.Providers().ActiveID() == args[0]:
					return fmt.Errorf("%s is the active provider: choose another first, with yaya provider use", args[0])
				}
				_, err := s.Unset("providers." + args[0] + ".*")
				if err == nil && s.Providers().GetInstance(args[0]) != nil {
					err = fmt.Errorf("%s stands in config.toml or in the environment, too", args[0])
				}
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
			return withAgents(c.Context(), g, func(a *app) error {
				view := a.kernel.Settings.Providers()
				id := view.ActiveID()
				if len(args) == 1 {
					id = args[0]
				}
				i := view.GetInstance(id)
				if i == nil {
					return fmt.Errorf("there is no provider %q: yaya provider list shows those that there are", id)
				}
				ctx, cancel := context.WithTimeout(c.Context(), timeout)
				defer cancel()
				start := time.Now()
				ev, err := bus.Request(ctx, a.kernel.Bus.Kernel(), event.LLMCallRequest, event.BridgePrefix+"provider-test:"+uuid.NewString(), event.LLMRequest{
					Provider: id, Model: i.Text("model"), Messages: []event.Message{{Role: "user", Content: "Answer with the word: pong"}}, Params: json.RawMessage("{}"),
				}, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
				if err != nil {
					return fmt.Errorf("%s: timeout after %v", id, timeout)
				}
				if e, failed := ev.Payload.(event.LLMError); failed {
					return fmt.Errorf("%s: %s: %s", id, e.EffectiveKind(), printable(e.Error, 500))
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s answers, after %v\n", id, time.Since(start).Round(time.Millisecond))
				return err
			})
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Second, "how long to wait")
	return c
}
