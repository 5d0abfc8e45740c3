package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
)

func trustCommand(g *daemon.Flags) *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a folder so that agents can work in it",
		Long: `Trust a folder so that agents can work in it. DIR is the current folder by default.

Until you trust a folder, it is restricted: agents can only read and search its files.
Nothing in the folder runs or instructs them. Its checks do not run, its AGENTS.md is an
ordinary file, and the MCP servers in its .mcp.json do not start.

yaya trust lists everything in the folder that would then be used, and asks whether you
trust it. Your answer covers exactly that content: if it changes later, the folder is
restricted again, and yaya trust shows the difference. In a trusted folder, an agent's own
changes and commands, and the agents that it starts, still need approval, from you or from
approval.rules.

Without a terminal, yaya trust asks nobody and trusts nothing, unless you pass --yes. To
read the list first, use --json, which changes nothing. The exit code is 0 if the folder
is trusted or --json was given, and 1 if it is not.`,
		Example: `  yaya trust                        # the current folder
  yaya trust ~/src/project
  yaya trust --json ~/src/project   # only show what would run
  yaya trust --yes ~/src/project    # in a script: do not ask
  yaya trust list
  yaya trust revoke ~/src/project   # restrict it again`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if dir == "" {
				return &usageError{c.CommandPath(), errors.New("the name of the folder is empty")}
			}
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				v, err := lookAt(c.Context(), b, dir)
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, v)
				}
				if v.Trusted {
					fmt.Fprintf(w, "The folder %s is trusted.\n", daemon.Whole(v.Folder))
					return whenStarted(c.Context(), b, v, w)
				}
				_, _ = io.WriteString(w, daemon.Explain(v.Question)) // confirm asks on the same terminal
				if !yes && !confirm(c.Context(), c.InOrStdin(), w, "Trust it?") {
					return notTrusted(c, v.Folder)
				}
				if err := trustIt(c.Context(), b, v); err != nil {
					return err
				}
				fmt.Fprintf(w, "The folder %s is trusted.\n", daemon.Whole(v.Folder))
				return whenStarted(c.Context(), b, v, w)
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "trust the folder without asking")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON what would run, and do not trust the folder")
	c.AddCommand(trustListCommand(g), trustRevokeCommand(g))
	return c
}

// notTrusted tells that the user did not trust a folder, or could not be asked.
func notTrusted(c *cobra.Command, dir string) error {
	switch err := c.Context().Err(); {
	case err != nil:
		return worded.Error(err, "cancelled: the folder %s was not trusted", daemon.Whole(dir))
	case !isTerminal(c.InOrStdin()):
		return fmt.Errorf("the folder %s was not trusted, because there is no terminal to ask on; to trust it without a question: yaya trust --yes %[1]s", daemon.Whole(dir))
	}
	return fmt.Errorf("the folder %s was not trusted", daemon.Whole(dir))
}

// view is a folder in the form of the API.
type view struct {
	folder.Question
	Trusted bool   `json:"trusted"`
	Digest  string `json:"digest"`
}

func lookAt(ctx context.Context, b *daemon.Backend, dir string) (view, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return view{}, err
	}
	var v view
	err = b.API(ctx, "GET", "/api/folders/look?path="+url.QueryEscape(abs), nil, &v)
	return v, err
}

func trustIt(ctx context.Context, b *daemon.Backend, v view) error {
	return b.API(ctx, "POST", "/api/folders", map[string]string{"path": v.Folder, "digest": v.Digest}, nil)
}

// whenStarted tells when the servers of a newly trusted folder start: yaya starts only the
// servers of the folder that it runs in.
func whenStarted(ctx context.Context, b *daemon.Backend, v view, w io.Writer) error {
	var names []string
	for _, i := range v.Items {
		if i.Kind == folder.Server {
			names = append(names, daemon.Whole(i.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	its := "Its servers (" + strings.Join(names, ", ") + ")"
	if !b.Remote {
		_, err := fmt.Fprintf(w, "%s start when you start yaya in that folder.\n", its)
		return err
	}
	var setup struct {
		Workspace string `json:"workspace"`
	}
	if err := b.API(ctx, "GET", "/api/setup", nil, &setup); err != nil {
		return fmt.Errorf("the folder is trusted, but the folder of the running yaya is unknown: %w", err)
	}
	if at, err := folder.Resolve(setup.Workspace); err == nil && at == v.Folder {
		_, err := fmt.Fprintf(w, "yaya runs in that folder. To see the state of its servers (%s): yaya mcp list\n", strings.Join(names, ", "))
		return err
	}
	_, err := fmt.Fprintf(w, "%s did not start, because yaya runs in %s. To start them, stop yaya and start it in %s.\n", its, daemon.Whole(setup.Workspace), daemon.Whole(v.Folder))
	return err
}

// trustFirst asks whether to trust the folder that an agent is about to work in, if the folder
// brings something and is not trusted. It asks before the agent starts, so that the folder's
// servers and instructions are available from the start. After a no, the run continues in a
// restricted folder, and the user is not asked again.
func trustFirst(ctx context.Context, g *daemon.Flags, o runOptions, tty bool, in io.Reader, errOut io.Writer) (declined bool, err error) {
	p, err := g.Paths()
	if err != nil {
		return false, err
	}
	data, settings, err := g.Open(p, nil)
	if err != nil {
		return false, err
	}
	known, err := p.Folders(data, settings)
	if err != nil {
		return false, errors.Join(err, data.Close())
	}
	st, err := known.Status(cmp.Or(o.workspace, "."))
	if err = errors.Join(err, data.Close()); errors.Is(err, workspace.ErrOwn) && o.workspace == "" {
		return false, nil // the agent works without a folder; its tools report the reason
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("there is no folder %s", o.workspace)
	}
	if err != nil {
		return false, err
	}
	if st.Trusted || (len(st.Items) == 0 && st.Was == nil) || o.asJSON {
		return false, nil
	}
	if !tty || o.approve != "ask" {
		_, err := fmt.Fprintf(errOut, "the folder %s is not trusted: the agent can only read and search it (to review and trust it: yaya trust)\n", daemon.Whole(st.Folder))
		return false, err
	}
	_, _ = io.WriteString(errOut, daemon.Explain(st.Question)) // confirm asks on the same terminal
	if !confirm(ctx, in, errOut, "Trust it?") {
		if err := ctx.Err(); err != nil {
			return true, worded.Error(err, "cancelled: the task was not started")
		}
		return true, nil
	}
	return false, daemon.WithControl(ctx, g, func(b *daemon.Backend) error {
		v := view{Question: st.Question, Digest: st.Digest()}
		return trustIt(ctx, b, v)
	})
}

func trustListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the trusted folders", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				var all []admin.TrustedFolder
				if err := b.API(c.Context(), "GET", "/api/folders", nil, &all); err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, all)
				}
				if len(all) == 0 {
					_, err := fmt.Fprintln(w, "No folder is trusted.")
					return err
				}
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(t, "FOLDER\tSTATE\tBRINGS\tTRUSTED BY\tSINCE")
				for _, r := range all {
					state := "trusted"
					if r.Changed {
						state = "changed: restricted"
					}
					fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", daemon.Printable(r.Folder, 300), state, len(r.Items), daemon.Printable(r.By, 60), r.At.Local().Format(time.DateTime))
				}
				return t.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func trustRevokeCommand(g *daemon.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "revoke DIR", Short: "Make a folder restricted again", Args: cobra.ExactArgs(1),
		Long: `Make a folder restricted again, at once: agents can only read and search it, and its
servers stop. Your permits for its servers (yaya mcp allow) are deleted.`,
		RunE: func(c *cobra.Command, args []string) error {
			abs, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return daemon.WithControl(c.Context(), g, func(b *daemon.Backend) error {
				if err := b.API(c.Context(), "DELETE", "/api/folders?path="+url.QueryEscape(abs), nil, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "The folder %s is restricted.\n", daemon.Whole(abs))
				return err
			})
		},
	}
}
