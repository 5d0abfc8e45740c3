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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
)

func trustCommand(g *globals) *cobra.Command {
	var yes, asJSON bool
	c := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a folder, so that agents can work in it",
		Long: `Trust a folder, so that agents can work in it.

Until you trust a folder, it is restricted: agents can read and search its files,
and nothing in it runs or instructs them. Its checks do not run, its AGENTS.md is
a file like any other, and the MCP servers of its .mcp.json do not start.

yaya trust shows everything in the folder that would run without another question,
and asks. The answer holds for exactly that: if the folder brings something else
later, it is restricted again, and the question shows the difference. Commands and
changes of an agent are asked about in any case.`,
		Example: `  yaya trust                # the current folder
  yaya trust ~/src/project
  yaya trust list
  yaya trust revoke ~/src/project`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if dir == "" {
				return &usageError{c.CommandPath(), errors.New("the name of the folder is empty")}
			}
			return withControl(c.Context(), g, func(b *backend) error {
				v, err := lookAt(c.Context(), b, dir)
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				if asJSON {
					return printJSON(w, v)
				}
				if v.Trusted {
					_, err := fmt.Fprintf(w, "The folder %s is trusted.\n", whole(v.Folder))
					return err
				}
				_, _ = io.WriteString(w, explain(v.Question)) // confirm asks on the same terminal
				if !yes && !confirm(c.Context(), c.InOrStdin(), w, "Trust it?") {
					return errors.New("the folder was not trusted (without a terminal, --yes trusts it)")
				}
				if err := trustIt(c.Context(), b, v); err != nil {
					return err
				}
				_, err = fmt.Fprintf(w, "The folder %s is trusted.\n", whole(v.Folder))
				return err
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print what trusting the folder would let run, and trust nothing")
	c.AddCommand(trustListCommand(g), trustRevokeCommand(g))
	return c
}

// view is a folder as the API shows it.
type view struct {
	folder.Question
	Trusted bool   `json:"trusted"`
	Digest  string `json:"digest"`
}

func lookAt(ctx context.Context, b *backend, dir string) (view, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return view{}, err
	}
	var v view
	err = b.api(ctx, "GET", "/api/folders/look?path="+url.QueryEscape(abs), nil, &v)
	return v, err
}

func trustIt(ctx context.Context, b *backend, v view) error {
	return b.api(ctx, "POST", "/api/folders", map[string]string{"path": v.Folder, "digest": v.Digest}, nil)
}

// trustFirst asks about the folder that an agent is about to work in, if it brings
// something and is not trusted: before the agent begins, so that the folder's servers
// and instructions are there from the start. Whoever says no goes on in a restricted
// folder, and is not asked again.
func trustFirst(ctx context.Context, g *globals, o runOptions, tty bool, in io.Reader, errOut io.Writer) (declined bool, err error) {
	p, err := g.paths()
	if err != nil {
		return false, err
	}
	data, settings, err := g.open(p, nil)
	if err != nil {
		return false, err
	}
	known, err := p.folders(data, settings)
	if err != nil {
		return false, errors.Join(err, data.Close())
	}
	st, err := known.Status(cmp.Or(o.workspace, "."))
	if err = errors.Join(err, data.Close()); errors.Is(err, workspace.ErrOwn) && o.workspace == "" {
		return false, nil // the agent works without a folder; its tools say why
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
		_, err := fmt.Fprintf(errOut, "the folder %s is not trusted: the agent can only read and search it (yaya trust shows what it brings, and asks)\n", whole(st.Folder))
		return false, err
	}
	_, _ = io.WriteString(errOut, explain(st.Question)) // confirm asks on the same terminal
	if !confirm(ctx, in, errOut, "Trust it?") {
		return true, ctx.Err()
	}
	return false, withControl(ctx, g, func(b *backend) error {
		v := view{Question: st.Question, Digest: st.Digest()}
		return trustIt(ctx, b, v)
	})
}

func trustListCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the trusted folders", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withControl(c.Context(), g, func(b *backend) error {
				var all []admin.TrustedFolder
				if err := b.api(c.Context(), "GET", "/api/folders", nil, &all); err != nil {
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
					fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", printable(r.Folder, 300), state, len(r.Items), printable(r.By, 60), r.At.Local().Format(time.DateTime))
				}
				return t.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func trustRevokeCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "revoke DIR", Short: "Make a folder restricted again", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			abs, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return withControl(c.Context(), g, func(b *backend) error {
				if err := b.api(c.Context(), "DELETE", "/api/folders?path="+url.QueryEscape(abs), nil, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "The folder %s is restricted.\n", whole(abs))
				return err
			})
		},
	}
}
