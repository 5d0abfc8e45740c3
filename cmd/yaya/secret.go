package main

import (
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

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/internal/secrets"
)

func secretCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "secret", Short: "Manage the secrets of servers and settings",
		Long: `Manage the secrets of servers and settings. Write ${secret:NAME} in place of the value:
in env, headers and url of a server, or in a setting of a provider or a plugin. yaya inserts
the value when it starts the server or calls the provider, and never shows it. In args it
works, too, but other users of the machine can read the command lines of all programs.

yaya stores secrets sealed in the data folder. The key is in the system's keychain if there
is one, otherwise in the configuration folder. With YAYA_PASSPHRASE_FILE, yaya derives the
key from the passphrase in that file.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(secretSetCommand(g), secretListCommand(g), secretRemoveCommand(g), secretRekeyCommand(g))
	return c
}

func secretSetCommand(g *daemon.Flags) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "set NAME", Short: "Set a secret, from standard input or a file",
		Long: `Set a secret. On a terminal, yaya prompts for the value and does not show it. Otherwise
it reads the value from standard input, or from the file that --file names, without the
final line break. The value is never part of the command line, which other users can see.

Running programs get the new value: yaya restarts the servers that use the secret, and
uses the value in all further calls to providers.`,
		Example: `  yaya secret set github
  pass show work/openai | yaya secret set openai
  yaya secret set db --file /run/secrets/db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := secrets.CheckName(args[0]); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if file != "" && file != "-" && daemon.Missing(file) {
				return &usageError{c.CommandPath(), fmt.Errorf("--file: there is no file %s", file)}
			}
			value, err := readSecretValue(c, args[0], file)
			if err == nil {
				err = secrets.CheckValue(value)
			}
			if err != nil {
				return fmt.Errorf("the secret %s is not set: %w", args[0], err)
			}
			p, err := g.Paths()
			if err != nil {
				return err
			}
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				var out admin.SecretSet
				if err := b.API(c.Context(), http.MethodPut, "/api/secrets/"+url.PathEscape(args[0]), map[string]string{"value": value}, &out); err != nil {
					return err
				}
				w := c.OutOrStdout()
				word := "set"
				if out.Replaced {
					word = "replaced"
				}
				fmt.Fprintf(w, "%s is %s. Use it as ${secret:%[1]s}\n", args[0], word)
				if masked.OneWord(value) {
					fmt.Fprintln(c.ErrOrStderr(), "the value is a word that also occurs in other texts: yaya masks it as **** wherever a program, a model or yaya itself writes that word, which makes texts hard to read and the value easy to guess. A random value is better, such as one from: openssl rand -hex 16")
				}
				for _, s := range out.Restarted {
					fmt.Fprintf(w, "restarted with it: %s\n", daemon.Printable(s, 128))
				}
				if note := daemon.KeyInData(p); note != "" && strings.HasPrefix(out.Key, p.Config) {
					fmt.Fprintln(c.ErrOrStderr(), note)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&file, "file", "", "`file` that contains the value (can be a pipe); - is standard input")
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
		return readHidden(c.Context(), f, c.ErrOrStderr(), fmt.Sprintf("Value of %s (hidden): ", name))
	default:
		raw, err = io.ReadAll(io.LimitReader(in, secrets.Longest+3)) //nolint:forbidigo // bounded by the reader
	}
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(string(raw), "\n")
	return strings.TrimSuffix(value, "\r"), nil
}

func secretListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the secrets and their uses, never their values", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				var all admin.SecretList
				if err := b.API(c.Context(), http.MethodGet, "/api/secrets", nil, &all); err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, all)
				}
				if len(all.Secrets) == 0 {
					_, err := fmt.Fprintln(w, "No secrets are stored. To set one: yaya secret set NAME")
					return err
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "NAME\tSET\tUSED BY")
				for _, s := range all.Secrets {
					set := "not set: yaya secret set " + s.Name
					if !s.Set.IsZero() {
						set = s.Set.Local().Format("2006-01-02 15:04")
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\n", daemon.Printable(s.Name, 128), daemon.Printable(set, 200), useWords(s.Uses))
				}
				if err := tw.Flush(); err != nil || all.Key == "" {
					return err
				}
				_, err := fmt.Fprintf(w, "\n%s\n", daemon.Printable(secrets.SealedWith(all.Key), 300))
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
	return daemon.Printable(strings.Join(uses, ", "), 300)
}

func secretRemoveCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Delete a secret", Args: cobra.ExactArgs(1),
		Long: `Delete a secret. Servers and providers that use it do not work until you set it again;
the command lists them.`,
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				var out admin.SecretRemoved
				err := b.API(c.Context(), http.MethodDelete, "/api/secrets/"+url.PathEscape(args[0]), nil, &out)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "removed %s\n", args[0]); err != nil {
					return err
				}
				if len(out.Uses) > 0 {
					fmt.Fprintf(c.ErrOrStderr(), "still used by %s, which cannot work until it is set again\n", useWords(out.Uses))
				}
				return nil
			})
		},
	}
}

func secretRekeyCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "rekey", Short: "Change the key or passphrase that seals the secrets", Args: cobra.NoArgs,
		Long: `Change the key that seals the secrets. yaya derives the new key from the passphrase in
the file that YAYA_NEW_PASSPHRASE_FILE names; if the variable is not set, yaya creates a
new key in the keychain or the configuration folder. If a passphrase seals the secrets
now, YAYA_PASSPHRASE_FILE must name the file with the old one. yaya reads the new file back
before it removes the old key.

The new key protects only the new file: the old key still opens copies of the old file. If
somebody may have both, change the secrets themselves.`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			p, err := g.Paths()
			if err != nil {
				return err
			}
			data, _, err := g.Open(p, nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, data.Close()) }()
			file := os.Getenv(secrets.NewPassphraseVariable)
			left, err := g.Vault.Rekey(c.Context(), file)
			if err != nil {
				return fmt.Errorf("rekey: %w", err)
			}
			key, err := g.Vault.Kind()
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "the secrets are %s\n", daemon.Printable(secrets.SealedWith(key), 300))
			if left != "" {
				fmt.Fprintf(w, "the old key %s was kept, since other data folders may use it; delete it if none does\n", daemon.Printable(left, 300))
			}
			switch old := daemon.Passphrase(); {
			case file != "":
				fmt.Fprintf(w, "restart yaya with %s=%s\n", secrets.PassphraseVariable, daemon.Printable(file, 300))
			case old != "":
				fmt.Fprintf(w, "restart yaya without %s; otherwise the next change seals the secrets with that passphrase again\n", secrets.PassphraseVariable)
			}
			return nil
		},
	}
}
