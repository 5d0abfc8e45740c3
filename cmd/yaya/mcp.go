package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/worded"
)

func mcpCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "mcp", Short: "Manage MCP servers, call their tools, and serve MCP", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var mcpConfig []string
	c.PersistentFlags().StringArrayVar(&mcpConfig, "mcp-config", nil, "`file` of MCP servers instead of yaya's own; repeatable")
	c.AddCommand( // those that read the files
		mcpServeCommand(g, &mcpConfig), mcpListCommand(g, &mcpConfig), mcpToolsCommand(g, &mcpConfig), mcpCallCommand(g, &mcpConfig),
		mcpGetCommand(g, &mcpConfig), mcpLoginCommand(g, &mcpConfig), mcpLogoutCommand(g, &mcpConfig),
	)
	for _, other := range []*cobra.Command{
		mcpAddCommand(g), mcpAddJSONCommand(g), mcpEditCommand(g), mcpAllowCommand(g), mcpEnableCommand(g), mcpDisableCommand(g), mcpRestartCommand(g), mcpLogsCommand(g), mcpRemoveCommand(g), mcpImportCommand(g), mcpApproveCommand(g),
	} {
		withoutFiles(other)
		c.AddCommand(other)
	}
	return c
}

// withoutFiles has a command refuse --mcp-config, which its help does not show: the command
// changes yaya's own file, or asks the running yaya.
func withoutFiles(c *cobra.Command) {
	c.Flags().Var(noFiles{}, "mcp-config", "")
	c.Flag("mcp-config").Hidden = true
}

// noFiles is the value of a flag --mcp-config that a command does not take.
type noFiles struct{}

func (noFiles) String() string { return "" }
func (noFiles) Type() string   { return "file" }
func (noFiles) Set(file string) error {
	return &misplacedFlag{fmt.Errorf("--mcp-config is for the commands that only read a file of servers: mcp serve, list, get, tools, call, login and logout. This one changes yaya's own file or the running yaya: omit the flag, or edit %s", file)}
}

// misplacedFlag is the reason why a command does not take a flag that others do.
type misplacedFlag struct{ error }

func mcpListCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "Show the servers: state, last error, restarts, latency",
		Long: `Show the servers of the running daemon. Without a daemon, yaya starts the configured
servers, checks them, and stops them again.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := listServers(c.Context(), g, *mcpConfig)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				return printJSON(w, r)
			}
			if len(r.Servers)+len(r.Invalid)+len(r.Disabled) == 0 {
				_, err := fmt.Fprintln(w, "No MCP servers are configured. Add one with 'yaya mcp add', or import those of other clients with 'yaya mcp import'.")
				troubles(w, r)
				return err
			}
			if err := serverTable(w, r); err != nil {
				return err
			}
			troubles(w, r)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// listServers asks the daemon, or starts the servers itself to check them.
func listServers(ctx context.Context, g *daemon.Flags, mcpConfig []string) (daemon.Report, error) {
	var r daemon.Report
	err := daemon.WithBackend(ctx, g, mcpConfig, func(b *daemon.Backend) error {
		return b.GetJSON(ctx, "/status", &r)
	})
	return r, err
}

func mcpToolsCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "tools [SERVER]", Short: "List all tools, or those of one server", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return daemon.WithBackend(c.Context(), g, *mcpConfig, func(b *daemon.Backend) error {
				tools, err := b.Tools(c.Context())
				if err != nil {
					return err
				}
				if len(args) == 1 {
					prefix := strings.SplitAfter(feature.QualifiedName(args[0], "x"), "__")[0]
					tools = slices.DeleteFunc(tools, func(t daemon.ToolInfo) bool { return !strings.HasPrefix(t.Name, prefix) })
					if len(tools) == 0 {
						if err := toolless(c.Context(), b, args[0]); err != nil {
							return err
						}
					}
				}
				w := c.OutOrStdout()
				if asJSON {
					raw := make([]json.RawMessage, len(tools))
					for i, t := range tools {
						raw[i] = t.Raw
					}
					return printJSON(w, raw)
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, t := range tools {
					fmt.Fprintf(tw, "%s\t%s\n", daemon.Printable(t.Name, 128), daemon.Printable(t.Description, 100))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the tool definitions as JSON")
	return c
}

// toolless explains why a server offers no tools. It returns nil if the server works and simply
// has none.
func toolless(ctx context.Context, b *daemon.Backend, name string) error {
	var r daemon.Report
	if err := b.GetJSON(ctx, "/status", &r); err != nil {
		return err
	}
	for _, st := range r.Servers {
		if st.ID != name || st.State.Usable() {
			continue
		}
		if why := cmp.Or(st.Reason, st.LastError); why != "" {
			return fmt.Errorf("server %q is %s: %s (see: yaya mcp logs %s)", name, st.State, daemon.Printable(why, 400), name)
		}
		return fmt.Errorf("server %q is %s (see: yaya mcp logs %s)", name, st.State, name)
	}
	for _, s := range r.Disabled {
		if s.Name == name {
			return fmt.Errorf("server %q is disabled (start it with: yaya mcp enable %s)", name, name)
		}
	}
	for _, s := range r.Invalid {
		if s.Name == name {
			return fmt.Errorf("server %q is %s: %s", name, s.State, daemon.Printable(s.Error, 400))
		}
	}
	if !slices.ContainsFunc(r.Servers, func(st feature.Status) bool { return st.ID == name }) {
		return fmt.Errorf("there is no server %q (see: yaya mcp list)", daemon.Printable(name, 64))
	}
	return nil
}

func mcpCallCommand(g *daemon.Flags, mcpConfig *[]string) *cobra.Command {
	var asJSON bool
	var args string
	c := &cobra.Command{
		Use:   "call TOOL [name=value …]",
		Short: "Call a tool",
		Long: `Call a tool by the name that 'yaya mcp tools' shows. Arguments are name=value.
A value that parses as JSON is sent as JSON (n=5, list=[1,2], flag=true), anything else
as a string. --args takes a whole JSON object instead.`,
		Example: `  yaya mcp call everything__echo message=hi
  yaya mcp call fs__read_file --args '{"path":"/tmp/x"}'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, a []string) error {
			params, err := callArguments(args, a[1:])
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return daemon.WithBackend(c.Context(), g, *mcpConfig, func(b *daemon.Backend) error {
				res, err := b.Call(c.Context(), a[0], params, func(msg string) { fmt.Fprintln(c.ErrOrStderr(), daemon.Printable(msg, 300)) })
				if err != nil {
					return err
				}
				return printResult(c.OutOrStdout(), res, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the raw result")
	c.Flags().StringVar(&args, "args", "", "arguments as a `JSON` object")
	return c
}

// callArguments builds the arguments object of a call.
func callArguments(object string, pairs []string) (json.RawMessage, error) {
	if object != "" {
		if len(pairs) > 0 {
			return nil, errors.New("use either --args or name=value arguments, not both")
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(object), &m); err != nil {
			return nil, fmt.Errorf("--args must be a JSON object: %w", err)
		}
		return json.RawMessage(object), nil
	}
	m := map[string]json.RawMessage{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("argument %q is not name=value", p)
		}
		if _, dup := m[k]; dup {
			return nil, fmt.Errorf("argument %q is given twice", k)
		}
		raw := json.RawMessage(v)
		if !json.Valid(raw) {
			var err error
			if raw, err = json.Marshal(v); err != nil {
				return nil, err
			}
		}
		m[k] = raw
	}
	return json.Marshal(m)
}

// printResult prints a result. If the result is an error, the command fails.
func printResult(w io.Writer, raw json.RawMessage, asJSON bool) error {
	var res struct {
		IsError           bool              `json:"isError"`
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return fmt.Errorf("the result is malformed: %w", err)
	}
	if asJSON {
		if err := printLine(w, raw); err != nil {
			return err
		}
	} else {
		for _, item := range res.Content {
			var c struct {
				Type     string `json:"type"`
				Text     string `json:"text"`
				MimeType string `json:"mimeType"`
				URI      string `json:"uri"`
				Data     string `json:"data"`
			}
			if err := json.Unmarshal(item, &c); err != nil {
				return fmt.Errorf("the result is malformed: %w", err)
			}
			line := string(item)
			switch c.Type {
			case "text":
				line = c.Text
			case "image", "audio":
				line = fmt.Sprintf("[%s, %s, %d bytes of base64; --json shows it]", c.Type, c.MimeType, len(c.Data))
			case "resource_link":
				line = "[resource " + c.URI + "]"
			}
			if _, err := fmt.Fprintln(w, feature.Clean(line, 1<<20)); err != nil {
				return err
			}
		}
		if len(res.Content) == 0 && len(res.StructuredContent) > 0 {
			if _, err := fmt.Fprintln(w, feature.Clean(string(res.StructuredContent), 1<<20)); err != nil {
				return err
			}
		}
	}
	if res.IsError {
		return &exitStatus{}
	}
	return nil
}

// confirm asks a yes-or-no question on a terminal. Without a terminal, and when ctx ends, the
// answer is no; [notDone] tells why.
func confirm(ctx context.Context, in io.Reader, out io.Writer, question string) bool {
	answer := askLine(ctx, in, out, question+" [y/N] ")
	return answer == "y" || answer == "yes"
}

// notDone is the error of a command that asked whether it may go on, and was told no, or was interrupted, or could
// not ask because in is not a terminal.
func notDone(ctx context.Context, in io.Reader, done, remedy string) error {
	if err := ctx.Err(); err != nil {
		return worded.Error(err, "cancelled: nothing was %s", done)
	}
	if !isTerminal(in) {
		return fmt.Errorf("nothing was %s, because there is no terminal to ask on: %s", done, remedy)
	}
	return fmt.Errorf("nothing was %s", done)
}

// askLine reads a word from a terminal and returns it in lower case. Without a terminal, after
// Ctrl-D, and when ctx ends, it returns "".
func askLine(ctx context.Context, in io.Reader, out io.Writer, question string) string {
	f, ok := in.(*os.File)
	if !ok || !isTerminal(f) {
		return ""
	}
	fmt.Fprint(out, question)
	answered := make(chan string, 1)
	go func() { // a read cannot be interrupted; when ctx ends, so does the program
		line, err := bufio.NewReader(f).ReadString('\n')
		if err != nil {
			fmt.Fprintln(out)
			line = ""
		}
		answered <- line
	}()
	select {
	case line := <-answered:
		return strings.ToLower(strings.TrimSpace(line))
	case <-ctx.Done():
		endPrompt(out, question)
		return ""
	}
}

// endPrompt ends the line of an interrupted question. On a terminal, it removes the "^C" that
// the terminal has added to the line.
func endPrompt(out io.Writer, question string) {
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		question = question[strings.LastIndexByte(question, '\n')+1:]
		fmt.Fprintf(out, "\r\x1b[K%s", question)
	}
	fmt.Fprintln(out)
}

func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor fits
}
