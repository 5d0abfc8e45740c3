package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/config"
)

// shortly bounds what a command does on its way out.
func shortly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}

// withSettings runs f with the settings of the daemon, or with those of this process if
// none runs or if --config names others.
func withSettings(ctx context.Context, g *globals, f func(*backend) error) error {
	return withStore(ctx, g, f, func(_ paths, _ *os.Root, settings *config.Store) (admin.Config, error) {
		return admin.Config{Settings: settings, CheckSetting: checkers(profileChecker(settings), func() []string { return nil })}, nil
	})
}

// withStore runs f with the daemon, or with what alone makes of the settings if none
// runs or if --config names others.
func withStore(ctx context.Context, g *globals, f func(*backend) error, alone func(paths, *os.Root, *config.Store) (admin.Config, error)) (err error) {
	p, err := g.paths()
	if err != nil {
		return err
	}
	if g.configFile == "" {
		if done, err := beside(ctx, p, f); done {
			return err
		}
	}
	data, settings, err := g.open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	c, err := alone(p, data, settings)
	if err != nil {
		return err
	}
	c.Version, c.Log = yayaVersion(), zerolog.Nop()
	return f(here(admin.New(c)))
}

func profileChecker(s *config.Store) func(string, json.RawMessage) error {
	return func(key string, v json.RawMessage) error { return checkProfile(s, key, v) }
}

// valued returns the settings below a prefix that have a value.
func valued(ctx context.Context, b *backend, prefix string) (out []admin.Setting, err error) {
	var all []admin.Setting
	if err := b.api(ctx, http.MethodGet, "/api/settings", nil, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s admin.Setting) bool { return s.Value == nil || !strings.HasPrefix(s.Key, prefix) }), nil
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
			return withSettings(c.Context(), g, func(b *backend) error {
				all, err := valued(c.Context(), b, strings.Join(args, ""))
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "KEY\tVALUE\tFROM")
				for _, v := range all {
					from := v.Origin
					if v.Waits {
						from += ", " + fromNextStart
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Key, printable(string(v.Value), 80), from)
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
			return withSettings(c.Context(), g, func(b *backend) error {
				path := "/api/config/" + url.PathEscape(args[0])
				if show {
					path += "?show=true"
				}
				var got struct {
					Value json.RawMessage `json:"value"`
				}
				err := b.api(c.Context(), http.MethodGet, path, nil, &got)
				if answeredWith(err, http.StatusNotFound) {
					return notSet(args[0])
				}
				if err != nil {
					return err
				}
				if err := printLine(c.OutOrStdout(), got.Value); err != nil {
					return err
				}
				return sayWaits(c, b, args[0])
			})
		},
	}
	c.Flags().BoolVar(&show, "show", false, "do not mask secrets")
	return c
}

// sayWaits says on stderr if the value of a key is not in force yet.
func sayWaits(c *cobra.Command, b *backend, key string) error {
	all, err := valued(c.Context(), b, key)
	for _, v := range all {
		if v.Key == key && v.Waits {
			fmt.Fprintf(c.ErrOrStderr(), "%s holds %s\n", key, fromNextStart)
		}
	}
	return err
}

// notSet says what a key is that has neither a value nor a fixed default.
func notSet(key string) error {
	for _, k := range config.Keys {
		if k.Name == key {
			return fmt.Errorf("%s is not set and has no fixed default (%s)", key, k.Doc)
		}
	}
	return fmt.Errorf("%s is not set", key)
}

func configSetCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting; VALUE is JSON, or text", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return withSettings(c.Context(), g, func(b *backend) error {
				in := map[string]json.RawMessage{"value": config.ParseValue(args[0], args[1])}
				err := b.api(c.Context(), http.MethodPatch, "/api/config/"+url.PathEscape(args[0]), in, nil)
				if answeredWith(err, http.StatusBadRequest) {
					return &usageError{c.CommandPath(), err}
				}
				if err != nil {
					return err
				}
				all, err := valued(c.Context(), b, args[0])
				for _, v := range all {
					if v.Key == args[0] && v.Origin != string(config.FromStore) {
						fmt.Fprintf(c.ErrOrStderr(), "it is set, and does not count: the %s has the last word\n", v.Origin)
					}
				}
				if err != nil {
					return err
				}
				if err := g.sayMissing(c, b, in["value"]); err != nil {
					return err
				}
				if args[0] == serversEnvKey {
					fmt.Fprintf(c.ErrOrStderr(), "%s holds %s\n", serversEnvKey, fromServerStart)
				}
				return sayWaits(c, b, args[0])
			})
		},
	}
}

// sayMissing says on stderr which secrets a value refers to that are not stored.
func (g *globals) sayMissing(c *cobra.Command, b *backend, value json.RawMessage) error {
	names := config.SecretsIn(value)
	if len(names) == 0 {
		return nil
	}
	stored := map[string]bool{}
	if b.remote {
		var all admin.SecretList
		if err := b.api(c.Context(), http.MethodGet, "/api/secrets", nil, &all); err != nil {
			return fmt.Errorf("it is set; whether its secrets are stored is not known: %w", err)
		}
		for _, s := range all.Secrets {
			stored[s.Name] = !s.Set.IsZero()
		}
	} else {
		all, err := g.vault.List()
		if err != nil {
			return fmt.Errorf("it is set; whether its secrets are stored is not known: %w", err)
		}
		for _, s := range all {
			stored[s.Name] = true
		}
	}
	for _, name := range names {
		if !stored[name] {
			fmt.Fprintf(c.ErrOrStderr(), "it is set, and the secret %s is not stored: yaya secret set %[1]s\n", name)
		}
	}
	return nil
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
func unreadable(s *config.Store, listens []string) (out []error) {
	for _, m := range mistakes(s, listens) {
		out = append(out, m.err)
	}
	return out
}

// mistake is one in a setting.
type mistake struct {
	key string
	err error
}

// mistakes returns those of a yaya that listens at these addresses.
func mistakes(s *config.Store, listens []string) (out []mistake) {
	for _, key := range []string{commandHosts, commandWrite} {
		value, _, ok := s.Get(key)
		if !ok {
			continue
		}
		if err := commandSetting(listens, key, value); err != nil {
			out = append(out, mistake{key, err})
		}
	}
	before := len(out)
	for _, v := range s.All(config.GroupsPrefix) {
		if err := kernel.CheckSetting(s, auth.ScopeNames(), v.Key, v.Value); err != nil {
			out = append(out, mistake{v.Key, err})
		}
	}
	if len(out) > before { // rules and profiles only repeat them
		return out
	}
	if rules, _, ok := s.Get("approval.rules"); ok {
		if err := kernel.CheckSetting(s, auth.ScopeNames(), "approval.rules", rules); err != nil {
			out = append(out, mistake{"approval.rules", err})
		}
	}
	if _, err := profiles(s); err != nil {
		m := mistake{profilesKey, err}
		for _, v := range s.All(profilesKey) {
			if checkProfile(s, v.Key, v.Value) != nil {
				m.key = v.Key
				break
			}
		}
		out = append(out, m)
	}
	return out
}

func configUnsetCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "unset KEY", Short: "Take a change back; KEY.* takes back all below", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withSettings(c.Context(), g, func(b *backend) error {
				var got struct {
					Removed bool `json:"removed"`
				}
				key, below := strings.CutSuffix(args[0], ".*")
				path := "/api/config/" + url.PathEscape(key)
				if below {
					path += "?below=true"
				}
				err := b.api(c.Context(), http.MethodDelete, path, nil, &got)
				if err == nil && !got.Removed {
					fmt.Fprintf(c.ErrOrStderr(), "%s was not set\n", args[0])
				}
				return err
			})
		},
	}
}
