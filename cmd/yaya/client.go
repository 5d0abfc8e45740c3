package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func clientCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "client", Short: "Connect your MCP clients to yaya", Args: cobra.NoArgs,
		Long: `Write yaya into the configuration of your MCP clients, and take it out again.
Each change is shown first. The file is backed up beside itself, and everything
in it that is not yaya's stays as it is.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(clientAddCommand(g), clientListCommand(g), clientRemoveCommand(g))
	return c
}

// folded is a text in lines that fit on a terminal of 80 columns.
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

// clientNames are the words for the clients.
func clientNames() []string {
	var out []string
	for _, c := range clients.All(nil) {
		out = append(out, c.ID)
	}
	return out
}

func clientAddCommand(g *globals) *cobra.Command {
	var yes bool
	var url, tokenFile, tokenEnv string
	c := &cobra.Command{
		Use: "add CLIENT …", Short: "Write yaya into the configuration of clients",
		Long: `Write yaya into the configuration of clients. They run "yaya mcp serve", or
connect to the address that --url names. A client of a yaya on another machine
needs a token, which yaya token create makes there.

` + folded("Clients: "+strings.Join(clientNames(), ", ")+"."),
		Example: `  yaya client add claude-code cursor
  yaya client add zed --url https://yaya.example.com/mcp --token-file token`,
		Args: cobra.MinimumNArgs(1), ValidArgs: clientNames(),
		RunE: func(c *cobra.Command, args []string) error {
			spec := clients.Spec{URL: url}
			if tokenFile != "" && tokenEnv != "" {
				return &usageError{c.CommandPath(), errors.New("give the token by --token-file or by --token-env, not by both")}
			}
			err := clients.CheckAddress(url)
			if url != "" && err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--url: %w", err)}
			}
			if spec.Token, err = clientToken(c.InOrStdin(), tokenFile, tokenEnv); err != nil {
				return err
			}
			switch {
			case spec.URL == "" && spec.Token != "":
				return &usageError{c.CommandPath(), errors.New("a token is for an address: give --url, too")}
			case spec.URL == "":
				if spec.Command, spec.Args, err = g.serveCommand(); err != nil {
					return err
				}
			case spec.Token == "" && !servers.Loopback(url):
				fmt.Fprintln(c.ErrOrStderr(), "The entry has no token, so the client has to sign in itself. To make a lasting token, run on the machine of that yaya: yaya token create NAME")
			}
			files, err := clientFiles(g, c, args, false)
			if err != nil {
				return err
			}
			return changeClients(c, files, yes, "wrote", func(f clientFile) (clients.Edit, error) { return f.Add(f.data, spec) })
		},
	}
	f := c.Flags()
	f.StringVar(&url, "url", "", "`address` of the MCP endpoint of a yaya that runs")
	f.StringVar(&tokenFile, "token-file", "", "`file` with the token; - is standard input")
	f.StringVar(&tokenEnv, "token-env", "", "environment `variable` with the token")
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func clientRemoveCommand(g *globals) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove CLIENT …", Short: "Take yaya out of the configuration of clients",
		Args: cobra.MinimumNArgs(1), ValidArgs: clientNames(),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := clientFiles(g, c, args, true)
			if err != nil {
				return err
			}
			return changeClients(c, files, yes, "removed yaya from", func(f clientFile) (clients.Edit, error) {
				before, err := original(f)
				if err != nil {
					return clients.Edit{}, err
				}
				return f.Remove(f.data, before)
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func clientListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "Show which clients there are, and whether yaya is in", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := g.paths()
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
					state = "no, another program has the name: " + r.Other
				case r.Yaya != "":
					state = "yes: " + r.Yaya
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Client, printable(state, 120), printable(r.File, 200))
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

// word is a name as people type it: "Copilot CLI" is copilot-cli.
func word(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// clientToken reads a token from where the flags say.
func clientToken(in io.Reader, file, env string) (string, error) {
	const limit = 16 << 10
	var raw []byte
	var err error
	switch {
	case file == "-":
		raw, err = io.ReadAll(io.LimitReader(in, limit)) //nolint:forbidigo // bounded by the reader
	case file != "":
		var found bool
		if raw, found, err = readFile(file); err == nil && !found {
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

// program is the absolute path of this binary, by which clients start it without the
// user's PATH.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the path of yaya: %w", err)
	}
	// The name on PATH lasts when what it points to is replaced by an update.
	if onPath, err := exec.LookPath("yaya"); err == nil && filepath.IsAbs(onPath) && sameFile(onPath, self) {
		self = onPath
	}
	return self, nil
}

// serveCommand is the command line by which clients run this yaya.
func (g *globals) serveCommand() (string, []string, error) {
	self, err := program()
	if err != nil {
		return "", nil, err
	}
	args := []string{"mcp", "serve"}
	for _, f := range []struct{ flag, value string }{{"--data-dir", g.dataDir}, {"--config-dir", g.configDir}, {"--config", g.configFile}} {
		if f.value == "" {
			continue
		}
		abs, err := filepath.Abs(f.value)
		if err != nil {
			return "", nil, err
		}
		args = append(args, f.flag, abs)
	}
	return self, args, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
