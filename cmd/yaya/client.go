package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func clientCommand(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use: "client", Short: "Connect your MCP clients to yaya", Args: cobra.NoArgs,
		Long: `Write yaya into the configuration of your MCP clients, and take it out again.
Each change is shown first. The file is backed up beside itself, and everything in
it that is not yaya's stays as it is.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(clientAddCommand(g), clientListCommand(g), clientRemoveCommand(g))
	return c
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
		Long: `Write yaya into the configuration of clients. They run "yaya mcp serve", or connect
to the address that --url names. A client of a yaya on another machine needs a token,
which yaya token create makes there.

Clients: ` + strings.Join(clientNames(), ", ") + ".",
		Example: `  yaya client add claude-code cursor
  yaya client add zed --url https://yaya.example.com/mcp --token-file token`,
		Args: cobra.MinimumNArgs(1), ValidArgs: clientNames(),
		RunE: func(c *cobra.Command, args []string) error {
			spec := clients.Spec{URL: url}
			var err error
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
	f.StringVar(&url, "url", "", "address of yaya's MCP endpoint, for a yaya that runs already")
	f.StringVar(&tokenFile, "token-file", "", "file with the token for the address; - reads standard input")
	f.StringVar(&tokenEnv, "token-env", "", "environment variable to take the token from, now")
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
				before, err := lastBackup(f.path)
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
				case r.Yaya != "":
					state = "yes: " + r.Yaya
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\n", r.Client, printable(state, 120), printable(r.File, 200))
			}
			if err := tw.Flush(); err != nil {
				return err
			}
			if len(missing) > 0 {
				fmt.Fprintf(w, "not found: %s\n", strings.Join(slices.Compact(missing), ", "))
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
	Yaya   string `json:"yaya,omitempty"` // the command or the address of yaya's entry
	Error  string `json:"error,omitempty"`
}

// clientRows looks at the file of each client; one that has several shows those that
// there are.
func clientRows(p paths) []clientRow {
	var out []clientRow
	for _, c := range clients.All(places(p.home)) {
		n := len(out)
		for _, path := range c.Paths {
			r := clientRow{Client: c.ID, Name: c.Name, File: path}
			data, ok, err := readFile(path)
			if !ok && err == nil {
				continue
			}
			r.Found = true
			if err == nil {
				s, in, eerr := c.Entry(data)
				if err = eerr; in {
					r.Yaya = s.Endpoint()
				}
			}
			if err != nil {
				r.Error = err.Error()
			}
			out = append(out, r)
		}
		if len(out) == n {
			out = append(out, clientRow{Client: c.ID, Name: c.Name, File: c.Paths[0], Found: installed(p.home, c.Paths[0])})
		}
	}
	return out
}

// installed reports whether a client without its file has a folder of its own at least.
func installed(home, path string) bool {
	dir := filepath.Dir(path)
	if dir == home {
		dir = strings.TrimSuffix(path, filepath.Ext(path)) // .claude beside .claude.json
	}
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}

// places are where the clients of this user have their files.
func places(home string) []servers.Location {
	return servers.Locations(home, runtime.GOOS, os.Getenv)
}

// clientFile is the file of a client, as it is.
type clientFile struct {
	clients.Client
	path  string
	data  []byte
	found bool
}

// clientFiles reads the files of the named clients: those that there are, or the one
// that the client would write.
func clientFiles(g *globals, c *cobra.Command, names []string, all bool) ([]clientFile, error) {
	p, err := g.paths()
	if err != nil {
		return nil, err
	}
	known := clients.All(places(p.home))
	var out []clientFile
	for _, name := range names {
		i := slices.IndexFunc(known, func(c clients.Client) bool { return c.ID == word(name) || word(c.Name) == word(name) })
		if i < 0 {
			return nil, &usageError{c.CommandPath(), fmt.Errorf("there is no client %q; there are %s", name, strings.Join(clientNames(), ", "))}
		}
		if slices.ContainsFunc(out, func(f clientFile) bool { return f.ID == known[i].ID }) {
			continue
		}
		n := len(out)
		for _, path := range known[i].Paths {
			data, ok, err := readFile(path)
			if err != nil {
				return nil, err
			}
			if ok && (len(out) == n || all || known[i].Each) {
				out = append(out, clientFile{known[i], path, data, true})
			}
		}
		if len(out) == n {
			out = append(out, clientFile{Client: known[i], path: known[i].Paths[0]})
		}
	}
	return out, nil
}

// word is a name as people type it: "Copilot CLI" is copilot-cli.
func word(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// clientToken reads a token from where the flags say.
func clientToken(in io.Reader, file, env string) (string, error) {
	const limit = 16 << 10
	var raw []byte
	var err error
	switch {
	case file != "" && env != "":
		return "", errors.New("give the token by --token-file or by --token-env, not by both")
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

// changeClients shows what edit would change in the files, asks, and does it.
func changeClients(c *cobra.Command, files []clientFile, yes bool, done string, edit func(clientFile) (clients.Edit, error)) error {
	w := c.OutOrStdout()
	var failed []error
	var changes []clients.Edit
	var todo []clientFile
	for _, f := range files {
		e, err := edit(f)
		switch {
		case err != nil:
			failed = append(failed, err)
		case e.Was == e.Now:
			state := "yaya is in already"
			if e.Now == "" {
				state = "yaya is not in"
			}
			fmt.Fprintf(w, "%s: %s (%s)\n", f.Name, state, f.path)
		default:
			showEdit(w, f, e)
			todo, changes = append(todo, f), append(changes, e)
		}
	}
	if len(todo) == 0 {
		return errors.Join(failed...)
	}
	if !yes && !confirm(c.Context(), c.InOrStdin(), w, "Change "+count(len(todo), "file")+"?") {
		fmt.Fprintln(w, "Nothing was changed; --yes changes it.")
		return errors.Join(failed...)
	}
	for i, f := range todo {
		backup, err := changeFile(c.Context(), f, changes[i].Data)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		fmt.Fprintf(w, "%s %s", done, f.path)
		if backup != "" {
			fmt.Fprintf(w, " (as it was: %s)", filepath.Base(backup))
		}
		fmt.Fprintf(w, "; restart %s, which reads it at its start\n", f.Name)
	}
	return errors.Join(failed...)
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// credential is what a header brings that nobody else may read.
var credential = regexp.MustCompile(`(?i)(Bearer )[^"'\s]+`)

// showEdit shows a change of yaya's entry, and nothing of what is beside it.
func showEdit(w io.Writer, f clientFile, e clients.Edit) {
	which := f.path
	if !f.found {
		which += ", a new file"
	}
	fmt.Fprintf(w, "%s (%s)\n", f.Name, which)
	for _, side := range []struct{ sign, text string }{{"-", e.Was}, {"+", e.Now}} {
		for line := range strings.Lines(credential.ReplaceAllString(side.text, "${1}****")) {
			fmt.Fprintf(w, "  %s %s\n", side.sign, printable(strings.TrimRight(line, "\r\n"), 300))
		}
	}
}

// changeFile backs a client's file up and replaces it, unless it has been changed since
// it was read.
func changeFile(ctx context.Context, f clientFile, data []byte) (backup string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	now, found, err := readFile(f.path)
	switch {
	case err != nil:
		return "", err
	case found != f.found || string(now) != string(f.data):
		return "", fmt.Errorf("%s was changed meanwhile; try again", f.path)
	case !found:
		return "", atomicfile.Replace(f.path, data)
	}
	if backup, err = backUp(f.path, now); err != nil {
		return "", fmt.Errorf("a backup of %s: %w", f.path, err)
	}
	return backup, atomicfile.Replace(f.path, data)
}
