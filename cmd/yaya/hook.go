package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/hooks"
	"github.com/yaya-ai/yaya/internal/hookconf"
)

func hookCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "hook", Short: "Inspect and test hooks",
		Long: `Inspect and test hooks: commands that yaya runs when something happens, and that can deny
it. They are in hooks.toml of the configuration folder and in .yaya/hooks.toml of trusted
folders. With the setting hooks.claude, yaya runs the hooks in .claude/settings.json of both
places as well. A hook can only make things stricter: it lifts no rule and no approval.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(hookListCommand(g), hookTestCommand(g))
	return c
}

// hookRow is a hook in lists, and in JSON.
type hookRow struct {
	hookconf.Hook
	State string `json:"state"`
}

func hookRows(here daemon.HooksHere) (rows []hookRow, err error) {
	add := func(f hooks.Found, state string) {
		for _, h := range f.Hooks {
			rows = append(rows, hookRow{h, state})
		}
		for _, name := range f.Ignored {
			rows = append(rows, hookRow{hookconf.Hook{Name: name, Claude: true}, "ignored: yaya does not run it"})
		}
		err = errors.Join(err, f.Err)
	}
	add(here.User, "ok")
	state := "ok"
	if !here.Trusted {
		state = "restricted: the folder is not trusted"
	}
	add(here.Project, state)
	return rows, err
}

func hookListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the hooks of the user and of the current folder", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			here, err := g.Hooks(".")
			if err != nil {
				return err
			}
			rows, broken := hookRows(here)
			w := c.OutOrStdout()
			switch {
			case asJSON:
				err = printJSON(w, append([]hookRow{}, rows...))
			case len(rows) == 0 && broken == nil:
				_, err = fmt.Fprintln(w, "There are no hooks.")
			case len(rows) > 0:
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "NAME\tEVENT\tTOOLS\tSTATE\tCOMMAND")
				for _, r := range rows {
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", daemon.Printable(r.Name, 100), cmp.Or(string(r.Event), "-"), daemon.Printable(cmp.Or(r.Tool, "all"), 60), r.State, daemon.Printable(r.Command, 200))
				}
				err = tw.Flush()
			}
			if broken != nil {
				return fmt.Errorf("calls of tools are denied, since hooks cannot be read: %w", broken)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func hookTestCommand(g *daemon.Flags) *cobra.Command {
	var toolName, prompt, input string
	var asJSON bool
	c := &cobra.Command{
		Use: "test NAME", Short: "Run a hook as its event would, and print its answer",
		Long: `Run a hook of the user or of the current folder as its event would, in its sandbox, and
print its answer. The exit code is 1 if the hook denies or fails.`,
		Example: `  yaya hook test no-push --tool shell --input '{"command":"git push"}'
  yaya hook test house-rules --prompt "hello"`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if input != "" && !json.Valid([]byte(input)) {
				return &usageError{c.CommandPath(), errors.New("--input is not JSON")}
			}
			here, err := g.Hooks(".")
			if err != nil {
				return err
			}
			rows, broken := hookRows(here)
			for _, r := range rows {
				if r.Name != args[0] || r.Event == "" {
					continue
				}
				if r.State != "ok" {
					return fmt.Errorf("the hook %q does not run: %s", r.Name, r.State)
				}
				return daemon.WithoutDaemon(c.Context(), g, daemon.TestOptions(zerolog.Nop()), func(a *daemon.App) error {
					got, err := a.TestHook(c.Context(), r.Hook, toolName, prompt, json.RawMessage(input))
					return printAnswer(c, r.Hook, got, err, asJSON)
				})
			}
			if broken != nil {
				return broken
			}
			return fmt.Errorf("there is no hook %q (yaya hook list shows all)", daemon.Printable(args[0], 200))
		},
	}
	c.Flags().StringVar(&toolName, "tool", "", "tool of the call")
	c.Flags().StringVar(&input, "input", "", "arguments of the call, as JSON")
	c.Flags().StringVar(&prompt, "prompt", "", "message of the user")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printAnswer(c *cobra.Command, h hookconf.Hook, a hookconf.Answer, err error, asJSON bool) error {
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	a.Decision = hookconf.Decision(cmp.Or(string(a.Decision), string(hookconf.Allow)))
	if asJSON {
		if err := printJSON(w, a); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "%s\n", a.Decision)
		for _, row := range [][2]string{{"reason", a.Reason}, {"context", a.Context}} {
			if row[1] != "" {
				fmt.Fprintf(w, "%s: %s\n", row[0], daemon.Multiline(row[1]))
			}
		}
		if a.Result != nil {
			fmt.Fprintf(w, "result: %s\n", daemon.Multiline(*a.Result))
		}
	}
	if a.Decision == hookconf.Deny {
		return fmt.Errorf("the hook %q denies", h.Name)
	}
	return nil
}
