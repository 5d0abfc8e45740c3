package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func clientCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "client", Short: "Configure your MCP clients to use yaya", Args: cobra.NoArgs,
		Long: `Add yaya to the configuration of your MCP clients, or remove it. Each change is shown
first. yaya backs up the file next to the original and changes only its own entry.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(clientAddCommand(g), clientListCommand(g), clientRemoveCommand(g))
	return c
}

// folded wraps a text for a terminal of 80 columns.
func folded(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > 79:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// clientNames returns the names of the clients as people type them.
func clientNames() []string {
	var out []string
	for _, c := range clients.All(nil) {
		out = append(out, c.ID)
	}
	return out
}

func clientAddCommand(g *daemon.Flags) *cobra.Command {
	var yes bool
	var url, tokenFile, tokenEnv string
	c := &cobra.Command{
		Use: "add CLIENT …", Short: "Add yaya to the configuration of clients",
		Long: `Add yaya to the configuration of clients. They then run "yaya mcp serve", or
connect to the address that --url names. A client of a yaya on another machine
needs a token, which yaya token create makes there.

` + folded("Clients: "+strings.Join(clientNames(), ", ")+"."),
		Example: `  yaya client add claude-code cursor
  yaya client add zed --url https://yaya.example.com/mcp --token-file token`,
		Args: cobra.MinimumNArgs(1), ValidArgs: clientNames(),
		RunE: func(c *cobra.Command, args []string) error {
			spec := clients.Spec{URL: url}
			if tokenFile != "" && tokenEnv != "" {
				return &usageError{c.CommandPath(), errors.New("use either --token-file or --token-env, not both")}
			}
			err := clients.CheckAddress(url)
			if url != "" && err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--url: %w", err)}
			}
			if spec.Token, err = clientToken(c.InOrStdin(), tokenFile, tokenEnv); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			switch {
			case spec.URL == "" && spec.Token != "":
				return &usageError{c.CommandPath(), errors.New("a token needs an address: add --url")}
			case spec.URL == "":
				if spec.Command, spec.Args, err = g.StdioCommand(); err != nil {
					return err
				}
			case spec.Token == "" && !servers.Loopback(url):
				fmt.Fprintln(c.ErrOrStderr(), "The entry has no token, so the client has to sign in itself. To create a lasting token, run this on that yaya's machine: yaya token create NAME")
			}
			files, err := clientFiles(g, c, args, false)
			if err != nil {
				return err
			}
			return changeClients(c, files, yes, "wrote", func(f clients.File) (clients.Edit, error) { return f.Add(f.Data, spec) })
		},
	}
	f := c.Flags()
	f.StringVar(&url, "url", "", "`address` of a running yaya's MCP endpoint")
	f.StringVar(&tokenFile, "token-file", "", "`file` that contains the token; - is standard input")
	f.StringVar(&tokenEnv, "token-env", "", "environment `variable` that contains the token")
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func clientRemoveCommand(g *daemon.Flags) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove CLIENT …", Short: "Remove yaya from the configuration of clients",
		Args: cobra.MinimumNArgs(1), ValidArgs: clientNames(),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := clientFiles(g, c, args, true)
			if err != nil {
				return err
			}
			return changeClients(c, files, yes, "removed yaya from", func(f clients.File) (clients.Edit, error) {
				before, err := f.Original()
				if err != nil {
					return clients.Edit{}, err
				}
				return f.Remove(f.Data, before)
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func clientListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the clients, and which of them use yaya", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.Paths()
			if err != nil {
				return err
			}
			rows := clientRows(p)
			w := c.OutOrStdout()
			if asJSON {
				return printJSON(w, rows)
			}
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			fmt.Fprintln(tw, "CLIENT\tYAYA\tFILE")
			var missing []string
			for _, r := range rows {
				if !r.Found {
					missing = append(missing, r.Client)
					continue
				}
				state := "no"
				switch {
				case r.Error != "":
					state = "cannot be read: " + r.Error
				case r.Other != "":
					state = "no, another program uses the name: " + r.Other
				case r.Yaya != "":
					state = "yes: " + r.Yaya
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Client, daemon.Printable(state, 120), daemon.Printable(r.File, 200))
			}
			if err := tw.Flush(); err != nil {
				return err
			}
			if len(missing) > 0 {
				fmt.Fprintln(w, folded("not found: "+strings.Join(slices.Compact(missing), ", ")))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type clientRow struct {
	Client string `json:"client"`
	Name   string `json:"name"`
	File   string `json:"file"`
	Found  bool   `json:"found"`
	Yaya   string `json:"yaya,omitempty"`  // the command or the address of yaya's entry
	Other  string `json:"other,omitempty"` // the command of another program that is called yaya there
	Error  string `json:"error,omitempty"`
}

// clientRows looks at the files of each client; one that has several shows those that
// there are.
func clientRows(p daemon.Paths) []clientRow {
	var out []clientRow
	for _, c := range clients.All(manage.Places(p.Home)) {
		for _, s := range c.States(p.Home) {
			r := clientRow{Client: c.ID, Name: c.Name, File: s.Path, Found: s.Found, Yaya: s.Yaya, Other: s.Other}
			if s.Err != nil {
				r.Error = s.Err.Error()
			}
			out = append(out, r)
		}
	}
	return out
}

// clientFiles reads the files of the named clients: those that there are, or the one
// that the client would write.
func clientFiles(g *daemon.Flags, c *cobra.Command, names []string, all bool) ([]clients.File, error) {
	p, err := g.Paths()
	if err != nil {
		return nil, err
	}
	known := clients.All(manage.Places(p.Home))
	var out []clients.File
	for _, name := range names {
		client, there := clients.Named(known, name)
		if !there {
			return nil, &usageError{c.CommandPath(), fmt.Errorf("unknown client %q; the clients are %s", name, strings.Join(clientNames(), ", "))}
		}
		if slices.ContainsFunc(out, func(f clients.File) bool { return f.ID == client.ID }) {
			continue
		}
		files, err := client.Files(all)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

// clientToken reads the token from the file or the variable that the flags name.
func clientToken(in io.Reader, file, env string) (string, error) {
	const limit = 16 << 10
	var raw []byte
	var err error
	switch {
	case file == "-":
		raw, err = io.ReadAll(io.LimitReader(in, limit)) //nolint:forbidigo // bounded by the reader
	case file != "":
		var found bool
		if raw, found, err = userfile.Read(file); err == nil && !found {
			err = fmt.Errorf("there is no file %s", file)
		}
	case env != "":
		raw = []byte(os.Getenv(env))
	default:
		return "", nil
	}
	token := strings.TrimSpace(string(raw))
	if err == nil && token == "" {
		err = errors.New("the token is empty")
	}
	return token, err
}
