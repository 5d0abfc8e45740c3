package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/internal/secrets"
)

func secretCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "secret", Short: "Keep secrets for servers and settings",
		Long: `Keep secrets for servers and settings. Write ${secret:NAME} where the value
belongs: in env, headers, args and url of a server, or in a setting of a provider
or a plugin. yaya puts the value in when it starts the server or asks the
provider, and shows it nowhere.

Secrets lie sealed in the data folder. The key is in the keychain of this system
if there is one, else in the configuration folder; with YAYA_PASSPHRASE_FILE it is
made of the passphrase in that file.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(secretSetCommand(g), secretListCommand(g), secretRemoveCommand(g), secretRekeyCommand(g))
	return c
}

// withSecrets is withServers with the secrets.
func withSecrets(ctx context.Context, g *globals, f func(*backend) error) error {
	return controlled(ctx, g, secretsAlone, f)
}

func secretSetCommand(g *globals) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "set NAME", Short: "Set a secret, read from standard input or a file",
		Long: `Set a secret. On a terminal you are asked for it and it is not shown; otherwise it
is read from standard input, or from the file that --file names, without the line
break at its end. It never stands on the command line, which other users can see.

What runs with the secret takes the new value over: servers are started again, and
providers are asked with it from then on.`,
		Example: `  yaya secret set github
  pass show work/openai | yaya secret set openai
  yaya secret set db --file /run/secrets/db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := secrets.CheckName(args[0]); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			value, err := readSecretValue(c, args[0], file)
			if err == nil {
				err = secrets.CheckValue(value)
			}
			if err != nil {
				return fmt.Errorf("the secret %s is not set: %w", args[0], err)
			}
			p, err := g.paths()
			if err != nil {
				return err
			}
			return withSecrets(c.Context(), g, func(b *backend) error {
				var out admin.SecretSet
				if err := b.api(c.Context(), http.MethodPut, "/api/secrets/"+url.PathEscape(args[0]), map[string]string{"value": value}, &out); err != nil {
					return err
				}
				w := c.OutOrStdout()
				word := "set"
				if out.Replaced {
					word = "replaced"
				}
				fmt.Fprintf(w, "%s is %s. Use it as ${secret:%[1]s}\n", args[0], word)
				for _, s := range out.Restarted {
					fmt.Fprintf(w, "started again with it: %s\n", printable(s, 128))
				}
				if note := keyInData(p); note != "" && strings.HasPrefix(out.Key, p.config) {
					fmt.Fprintln(c.ErrOrStderr(), note)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&file, "file", "", "`file` that has the value, which may be a pipe; - is standard input")
	return c
}

// readSecretValue reads the value of a secret.
func readSecretValue(c *cobra.Command, name, file string) (string, error) {
	var raw []byte
	var err error
	in := c.InOrStdin()
	f, isFile := in.(*os.File)
	switch {
	case file != "" && file != "-":
		raw, err = secretfile.Read(c.Context(), file, secrets.Longest+2)
	case file == "" && isFile && term.IsTerminal(int(f.Fd())): //nolint:gosec // a descriptor fits
		fmt.Fprintf(c.ErrOrStderr(), "Value of %s (it is not shown): ", name)
		raw, err = term.ReadPassword(int(f.Fd())) //nolint:gosec // a descriptor fits
		fmt.Fprintln(c.ErrOrStderr())
	default:
		raw, err = io.ReadAll(io.LimitReader(in, secrets.Longest+3)) //nolint:forbidigo // bounded by the reader
	}
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(string(raw), "\n")
	return strings.TrimSuffix(value, "\r"), nil
}

func secretListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the secrets and what uses them, never their values", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSecrets(c.Context(), g, func(b *backend) error {
				var all admin.SecretList
				if err := b.api(c.Context(), http.MethodGet, "/api/secrets", nil, &all); err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, all)
				}
				if len(all.Secrets) == 0 {
					_, err := fmt.Fprintln(w, "No secrets are stored. Set one: yaya secret set NAME")
					return err
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "NAME\tSET\tUSED BY")
				for _, s := range all.Secrets {
					set := "not set: yaya secret set " + s.Name
					if !s.Set.IsZero() {
						set = s.Set.Local().Format("2006-01-02 15:04")
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\n", printable(s.Name, 128), printable(set, 200), useWords(s.Uses))
				}
				if err := tw.Flush(); err != nil || all.Key == "" {
					return err
				}
				_, err := fmt.Fprintf(w, "\n%s\n", printable(secrets.SealedWith(all.Key), 300))
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func useWords(uses []string) string {
	if len(uses) == 0 {
		return "nothing"
	}
	return printable(strings.Join(uses, ", "), 300)
}

func secretRemoveCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Delete a secret", Args: cobra.ExactArgs(1),
		Long: `Delete a secret. What refers to it cannot start until it is set again: the command
says what that is.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withSecrets(c.Context(), g, func(b *backend) error {
				var out admin.SecretRemoved
				err := b.api(c.Context(), http.MethodDelete, "/api/secrets/"+url.PathEscape(args[0]), nil, &out)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "removed %s\n", args[0]); err != nil {
					return err
				}
				if len(out.Uses) > 0 {
					fmt.Fprintf(c.ErrOrStderr(), "still used by %s: what uses it does not work until it is set again\n", useWords(out.Uses))
				}
				return nil
			})
		},
	}
}

func secretRekeyCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "rekey", Short: "Seal the secrets with another key or passphrase", Args: cobra.NoArgs,
		Long: `Seal the secrets with another key: one made of the passphrase in the file that
YAYA_NEW_PASSPHRASE_FILE names, or a fresh one in the keychain or the configuration
folder if the variable is not set. Secrets that a passphrase seals need the old one in
YAYA_PASSPHRASE_FILE. The file is read back before the old key is removed.

The new key protects what is sealed from now on. Copies of the old file open with
the old key: if somebody may have both, change the secrets themselves.`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			p, err := g.paths()
			if err != nil {
				return err
			}
			data, _, err := g.open(p, nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, data.Close()) }()
			file := os.Getenv(secrets.NewPassphraseVariable)
			left, err := g.vault.Rekey(c.Context(), file)
			if err != nil {
				return fmt.Errorf("rekey the secrets: %w", err)
			}
			key, err := g.vault.Kind()
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "the secrets are %s\n", printable(secrets.SealedWith(key), 300))
			if left != "" {
				fmt.Fprintf(w, "the old key %s stays, since other data folders may use it: delete it if none does\n", printable(left, 300))
			}
			switch old := passphrase(); {
			case file != "":
				fmt.Fprintf(w, "start yaya again with %s=%s\n", secrets.PassphraseVariable, printable(file, 300))
			case old != "":
				fmt.Fprintf(w, "start yaya again without %s: with it the next change moves the secrets back to that passphrase\n", secrets.PassphraseVariable)
			}
			return nil
		},
	}
}
