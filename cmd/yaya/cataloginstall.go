package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/secrets"
)

// values holds the values that the user gives for the inputs of an option.
type values struct {
	set       []string // NAME=VALUE
	secretEnv []string // NAME=VARIABLE
	stdin     string   // name of the secret that standard input has
	in        *bufio.Reader
}

func catalogInstallCommand(g *daemon.Flags) *cobra.Command {
	var from fromRegistry
	var given values
	var use, as, profile string
	var hosts []string
	var agreed bool
	c := &cobra.Command{
		Use: "install NAME", Short: "Add a server of the catalogue",
		Long: `Add a server of the catalogue. yaya asks for what the server needs, shows what would run
and in which sandbox, and asks; nothing runs before the answer. The version is written down:
a newer one runs only after yaya catalog update.

Secrets go to the store of yaya (yaya secret list); the configuration refers to them. Their
values are never part of the command line, which other users can see: on a terminal yaya
prompts for them, and otherwise reads them from a variable (--secret-env) or standard input
(--secret-stdin).

The process runs in the sandbox profile server, with the hosts and folders that the last
question shows. A container has bounds of its own.`,
		Example: `  yaya catalog install filesystem --set folder=$HOME/notes
  yaya catalog install brave-search --secret-stdin BRAVE_API_KEY
  yaya catalog install io.github.owner/server --version 1.2.0 --as server --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if agreed && from.version == "" {
				return &usageError{c.CommandPath(), errors.New("--yes agrees to one version: name it with --version")}
			}
			given.in = bufio.NewReader(c.InOrStdin())
			return daemon.WithServers(c.Context(), g, func(b *daemon.Backend) error {
				s, err := from.entry(c, b, args[0], use)
				if err != nil {
					return err
				}
				o, err := chosen(s, use)
				if err == nil && o.Fetch { // its bundle says what it asks for
					if s, err = from.entry(c, b, args[0], o.ID); err == nil {
						o, err = chosen(s, o.ID)
					}
				}
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				fmt.Fprintf(w, "%s %s of the registry %s, by %s %s\n", s.Name, s.Version, s.Registry, o.Kind, daemon.Printable(o.Identifier, 300))
				fmt.Fprintf(w, "  %s\n", daemon.Printable(s.Description, 1000))
				inputs, err := given.fill(c, o)
				if err != nil {
					return err
				}
				in := admin.CatalogInstall{Registry: s.Registry, Version: s.Version, Digest: s.Digest, Option: o.ID, As: as, Inputs: inputs, Profile: profile, Hosts: hosts}
				var ch admin.Change
				if err := b.API(c.Context(), http.MethodPost, atEntry(s.Name)+"/install", in, &ch); err != nil {
					if daemon.AnsweredWith(err, http.StatusConflict) && strings.Contains(err.Error(), "there is a server") {
						return fmt.Errorf("%w: give this one another name with --as", err)
					}
					return err
				}
				return agreeToChange(c, b, ch, agreed, "Add it?", "added")
			})
		},
	}
	from.flags(c)
	f := c.Flags()
	f.StringVar(&use, "use", "", "`option` of the entry: npm, pypi, oci, nuget, mcpb or remote, as yaya catalog show lists them")
	f.StringVar(&as, "as", "", "`name` of the server in yaya's configuration")
	f.StringArrayVar(&given.set, "set", nil, "value of an input, `NAME=VALUE` (repeatable)")
	f.StringArrayVar(&given.secretEnv, "secret-env", nil, "variable with the value of a secret, `NAME=VARIABLE` (repeatable)")
	f.StringVar(&given.stdin, "secret-stdin", "", "`name` of the secret whose value standard input has")
	f.StringVar(&profile, "sandbox", "", "`profile` of the process's sandbox: server or guarded")
	f.StringArrayVar(&hosts, "host", nil, "`host` that the server reaches beside the proposed ones (repeatable)")
	f.BoolVarP(&agreed, "yes", "y", false, "add without asking; needs --version")
	return c
}

// chosen returns an option by its id, or the one that is used without one.
func chosen(s admin.CatalogServer, id string) (admin.CatalogOption, error) {
	if id == "" {
		if s.Refused != "" {
			return admin.CatalogOption{}, errors.New(s.Refused)
		}
		id = s.Chosen
	}
	i := slices.IndexFunc(s.Options, func(o admin.CatalogOption) bool { return o.ID == id })
	if i < 0 {
		return admin.CatalogOption{}, fmt.Errorf("%s has no option %q: yaya catalog show %[1]s lists them", s.Name, id)
	}
	if o := s.Options[i]; o.Refused != "" {
		return o, fmt.Errorf("the option %s cannot be used: %s", id, o.Refused)
	}
	return s.Options[i], nil
}

// fill returns the values of all inputs: those of the flags, then those of the terminal. Without a
// terminal a required one that is missing is an error.
func (v *values) fill(c *cobra.Command, o admin.CatalogOption) (out []admin.CatalogValue, err error) {
	usage := func(format string, a ...any) error { return &usageError{c.CommandPath(), fmt.Errorf(format, a...)} }
	input := func(name string) (admin.CatalogInput, error) {
		i := slices.IndexFunc(o.Inputs, func(in admin.CatalogInput) bool { return in.Name == name })
		if i < 0 {
			return admin.CatalogInput{}, usage("it does not ask for %q", name)
		}
		return o.Inputs[i], nil
	}
	for _, s := range v.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, usage("--set: %q does not have the form NAME=VALUE", name)
		}
		in, err := input(name)
		if err != nil {
			return nil, err
		}
		if in.Secret && !strings.HasPrefix(value, "${secret:") {
			return nil, usage("--set %s: it is a secret, which other users can see in a command line: use --secret-env %[1]s=VARIABLE or --secret-stdin %[1]s", name)
		}
		out = append(out, admin.CatalogValue{Name: name, Value: whole(in, value)})
	}
	for _, s := range v.secretEnv {
		name, variable, ok := strings.Cut(s, "=")
		if !ok {
			variable = name
		}
		value := os.Getenv(variable)
		if _, err := input(name); err != nil {
			return nil, err
		}
		if value == "" {
			return nil, usage("--secret-env %s: the variable %s is not set", name, variable)
		}
		out = append(out, admin.CatalogValue{Name: name, Value: value})
	}
	if v.stdin != "" {
		if _, err := input(v.stdin); err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(io.LimitReader(v.in, secrets.Longest+3)) //nolint:forbidigo // bounded by the reader
		if err != nil {
			return nil, err
		}
		out = append(out, admin.CatalogValue{Name: v.stdin, Value: strings.TrimRight(string(raw), "\r\n")})
	}
	f, ok := c.InOrStdin().(*os.File)
	terminal := ok && isTerminal(f) && v.stdin == ""
	for _, in := range o.Inputs {
		if slices.ContainsFunc(out, func(x admin.CatalogValue) bool { return x.Name == in.Name }) {
			continue
		}
		if !terminal {
			if in.Required && in.Default == "" {
				how := "--set " + in.Name + "=VALUE"
				if in.Secret {
					how = "--secret-env " + in.Name + "=VARIABLE, or --secret-stdin " + in.Name
				}
				return nil, usage("%s is missing: %s (%s)", in.Name, daemon.Printable(describe(in), 300), how)
			}
			continue
		}
		more, err := v.ask(c, f, in)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// ask asks for an input on a terminal: a secret without showing it, and one that takes several
// values until an empty line.
func (v *values) ask(c *cobra.Command, f *os.File, in admin.CatalogInput) (out []admin.CatalogValue, err error) {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s: %s\n", in.Name, daemon.Printable(describe(in), 500))
	for {
		var line string
		if in.Secret {
			line, err = readHidden(c.Context(), f, w, "  value (hidden): ")
		} else {
			fmt.Fprint(w, "  value: ")
			line, err = v.in.ReadString('\n')
			line = strings.TrimSpace(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: no value was read: %w", in.Name, err)
		}
		if line != "" {
			out = append(out, admin.CatalogValue{Name: in.Name, Value: whole(in, line)})
		}
		switch {
		case line == "" && in.Required && in.Default == "" && len(out) == 0:
			fmt.Fprintln(w, "  the server needs it")
		case line == "" || !in.Repeated:
			return out, nil
		}
	}
}

// whole makes a path absolute: servers start in another folder.
func whole(in admin.CatalogInput, value string) string {
	if in.Format != "filepath" || value == "" || strings.HasPrefix(value, "${") {
		return value
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if abs, err := filepath.Abs(value); err == nil {
		return abs
	}
	return value
}
