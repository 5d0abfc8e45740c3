package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
)

// valued returns the settings under a prefix that have a value.
func valued(ctx context.Context, b *daemon.Backend, prefix string) ([]admin.Setting, error) {
	all, err := listed(ctx, b, prefix)
	return slices.DeleteFunc(all, func(s admin.Setting) bool { return s.Value == nil }), err
}

// listed returns the settings under a prefix by key, including keys of the kernel without a
// value.
func listed(ctx context.Context, b *daemon.Backend, prefix string) ([]admin.Setting, error) {
	var all []admin.Setting
	if err := b.API(ctx, http.MethodGet, "/api/settings", nil, &all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b admin.Setting) int { return strings.Compare(a.Key, b.Key) })
	return slices.DeleteFunc(all, func(s admin.Setting) bool { return !strings.HasPrefix(s.Key, prefix) }), nil
}

// unsetWords describes what holds for a key without a value.
func unsetWords(key string) string {
	words := "none"
	for _, k := range config.Keys {
		if k.Name == key {
			words = cmp.Or(k.Unset(), words)
		}
	}
	return "(" + words + ")"
}

func configCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Show and change settings", Args: cobra.NoArgs,
		Long: `Show and change settings. A setting takes its value from the first of these that has
one: a flag, the environment (YAYA_LOOP__MAX_ITERATIONS for loop.max_iterations), yaya
config set, config.toml, and the default.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(configListCommand(g), configGetCommand(g), configSetCommand(g), configUnsetCommand(g))
	return c
}

func configListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list [PREFIX]", Short: "List all settings and their sources, secrets masked", Args: cobra.MaximumNArgs(1),
		Long: `List all settings whose keys begin with PREFIX, or all settings, and the source of each
value. A value in parentheses describes the default of a setting that has no fixed one.
Secrets are masked. --json also prints what each setting does.`,
		Example: `  yaya config list
  yaya config list traffic`,
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithSettings(c.Context(), g, func(b *daemon.Backend) error {
				all, err := listed(c.Context(), b, strings.Join(args, ""))
				if err != nil {
					return err
				}
				if prefix := strings.Join(args, ""); len(all) == 0 && prefix != "" {
					return fmt.Errorf("no key begins with %q (all keys: yaya config list)", prefix)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), all)
				}
				tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "KEY\tVALUE\tFROM")
				for _, v := range all {
					value, from := string(v.Value), v.Origin
					if v.Value == nil {
						value, from = unsetWords(v.Key), string(config.FromDefault)
					}
					if v.Waits {
						from += ", " + daemon.FromNextStart
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Key, daemon.Printable(value, 80), from)
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func configGetCommand(g *daemon.Flags) *cobra.Command {
	var show bool
	c := &cobra.Command{
		Use: "get KEY", Short: "Print one setting as JSON", Args: cobra.ExactArgs(1),
		Long: `Print the value of one setting as JSON. yaya config list shows all keys. The exit code is
1 if the setting has neither a value nor a fixed default.`,
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithSettings(c.Context(), g, func(b *daemon.Backend) error {
				path := "/api/config/" + url.PathEscape(args[0])
				if show {
					path += "?show=true"
				}
				var got struct {
					Value json.RawMessage `json:"value"`
				}
				err := b.API(c.Context(), http.MethodGet, path, nil, &got)
				if daemon.AnsweredWith(err, http.StatusNotFound) {
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

// sayWaits tells on stderr if the value of a key is not in force yet.
func sayWaits(c *cobra.Command, b *daemon.Backend, key string) error {
	all, err := valued(c.Context(), b, key)
	for _, v := range all {
		if v.Key == key && v.Waits {
			fmt.Fprintf(c.ErrOrStderr(), "%s holds %s\n", key, daemon.FromNextStart)
		}
	}
	return err
}

// notSet describes a key that has neither a value nor a fixed default.
func notSet(key string) error {
	for _, k := range config.Keys {
		if k.Name == key {
			return fmt.Errorf("%s is not set and has no fixed default (%s)", key, k.Doc)
		}
	}
	return cmp.Or(config.CheckKey(key), fmt.Errorf("%s is not set", key))
}

func configSetCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting; VALUE is JSON or text", Args: cobra.ExactArgs(2),
		Long: `Change a setting. VALUE is JSON, or text, which needs no quotes of its own; with - yaya
reads it from standard input. A key, token or password is never an argument, which other
users can see: use -, or a reference to a stored secret (yaya secret set). A running yaya
applies the change within a second; the command tells you if a restart is needed. yaya
config list shows all keys. The exit code is 2 if the setting cannot have the value.`,
		Example: `  yaya config set approval.timeout 2m
  yaya config set loop.max_iterations 30
  yaya config set workspace.roots '["/home/me/work"]'
  yaya config set providers.work.api_key '${secret:work}'`,
		RunE: func(c *cobra.Command, args []string) error {
			value, err := settingValue(c, args[0], args[1])
			if err != nil {
				return err
			}
			with, ofSandboxes := daemon.WithSettings, args[0] == daemon.SandboxMode || args[0] == daemon.SandboxBackend
			if ofSandboxes {
				with = withSandboxSettings
			}
			return with(c.Context(), g, func(b *daemon.Backend) error {
				was, err := settingOf(c.Context(), b, args[0])
				if err != nil {
					return err
				}
				boxes, err := sandboxesNow(c.Context(), b, args[0])
				if err != nil {
					return err
				}
				in := map[string]json.RawMessage{"value": value}
				err = b.API(c.Context(), http.MethodPatch, "/api/config/"+url.PathEscape(args[0]), in, nil)
				if daemon.AnsweredWith(err, http.StatusBadRequest) {
					return &usageError{c.CommandPath(), err}
				}
				if err != nil {
					return err
				}
				now, err := settingOf(c.Context(), b, args[0])
				switch {
				case err != nil:
					return err
				case now.Origin != "" && now.Origin != string(config.FromStore):
					fmt.Fprintln(c.ErrOrStderr(), "the setting is saved but has no effect: "+lastWord(now))
				case ofSandboxes:
					if err := sayRefused(c, b, was); err != nil {
						return err
					}
				}
				if err := errors.Join(sayRestarts(c, b, args[0], boxes), sayMissing(g, c, b, in["value"]), sayNameless(c, b, args[0], value)); err != nil {
					return err
				}
				if args[0] == daemon.ServersEnvKey {
					fmt.Fprintf(c.ErrOrStderr(), "%s holds %s\n", daemon.ServersEnvKey, daemon.FromServerStart)
				}
				return sayWaits(c, b, args[0])
			})
		},
	}
}

// maxSetting bounds the value of a setting on standard input, in bytes.
const maxSetting = 1 << 20

// settingValue returns the value of a setting that a command line gives. It refuses a secret,
// because other users can see command lines.
func settingValue(c *cobra.Command, key, word string) (json.RawMessage, error) {
	if word != "-" {
		v := config.ParseValue(key, word)
		if bare := config.Literals(key, v); len(bare) > 0 {
			return nil, &usageError{c.CommandPath(), fmt.Errorf("%s is a secret, and other users of this machine can see the command line: pass - in place of the value, which yaya then reads from standard input, or store it (yaya secret set NAME) and pass '${secret:NAME}'", strings.Join(bare, ", "))}
		}
		return v, nil
	}
	if config.IsSecret(key) {
		text, err := readSecretValue(c, key, "")
		if err == nil && text == "" {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("the value of %s: %w", key, err)
		}
		return config.ParseValue(key, text), nil
	}
	raw, err := io.ReadAll(io.LimitReader(c.InOrStdin(), maxSetting+1)) //nolint:forbidigo // bounded by the reader
	if err == nil && len(raw) > maxSetting {
		err = fmt.Errorf("it has more than %d bytes", maxSetting)
	}
	if err != nil {
		return nil, fmt.Errorf("the value of %s: %w", key, err)
	}
	return config.ParseValue(key, strings.TrimSuffix(string(raw), "\n")), nil
}

// lastWord names the source that overrides a setting that was set.
func lastWord(s admin.Setting) string {
	if s.Origin == string(config.FromEnv) {
		return fmt.Sprintf("the environment overrides it; unset %s and restart yaya", config.EnvName(s.Key))
	}
	return "the " + s.Origin + " overrides it"
}

// sayMissing lists on stderr the secrets that a value refers to but that are not stored.
func sayMissing(g *daemon.Flags, c *cobra.Command, b *daemon.Backend, value json.RawMessage) error {
	names := config.SecretsIn(value)
	if len(names) == 0 {
		return nil
	}
	stored := map[string]bool{}
	if b.Remote {
		var all admin.SecretList
		if err := b.API(c.Context(), http.MethodGet, "/api/secrets", nil, &all); err != nil {
			return fmt.Errorf("the setting is set, but yaya cannot tell whether its secrets are stored: %w", err)
		}
		for _, s := range all.Secrets {
			stored[s.Name] = !s.Set.IsZero()
		}
	} else {
		all, err := g.Vault.List()
		if err != nil {
			return fmt.Errorf("the setting is set, but yaya cannot tell whether its secrets are stored: %w", err)
		}
		for _, s := range all {
			stored[s.Name] = true
		}
	}
	for _, name := range names {
		if !stored[name] {
			fmt.Fprintf(c.ErrOrStderr(), "the setting is saved, but the secret %s is not stored: yaya secret set %[1]s\n", name)
		}
	}
	return nil
}

func configUnsetCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "unset KEY", Short: "Revert a setting; KEY.* reverts all settings below KEY", Args: cobra.ExactArgs(1),
		Long: `Undo yaya config set: the setting takes its value from config.toml again, or is the
default. KEY.* does so for all settings below KEY.`,
		Example: `  yaya config unset approval.timeout
  yaya config unset 'providers.work.*'`,
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithSettings(c.Context(), g, func(b *daemon.Backend) error {
				var got struct {
					Removed bool `json:"removed"`
				}
				key, below := strings.CutSuffix(args[0], ".*")
				path := "/api/config/" + url.PathEscape(key)
				if below {
					path += "?below=true"
				}
				boxes, err := sandboxesNow(c.Context(), b, key)
				if err != nil {
					return err
				}
				if err := b.API(c.Context(), http.MethodDelete, path, nil, &got); err != nil {
					return err
				}
				if !got.Removed {
					if err := config.CheckKey(key); err != nil && !below {
						return err
					}
					fmt.Fprintf(c.ErrOrStderr(), "%s was not set\n", args[0])
				}
				return sayRestarts(c, b, key, boxes)
			})
		},
	}
}
