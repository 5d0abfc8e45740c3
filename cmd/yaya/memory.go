package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/folder"
)

func memoryCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "memory", Short: "See what agents remember, and have them forget it", Args: cobra.NoArgs,
		Long: `See what agents remember of earlier sessions, and have them forget it. The settings
plugin.strategy_coder.memory and plugin.strategy_react.memory say whether they remember
anything.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(memoryListCommand(g), memoryForgetCommand(g))
	return c
}

// memoryFlags adds the flags that select memories. The function that it returns reads them.
func memoryFlags(c *cobra.Command) func() (daemon.Which, error) {
	var dir, session string
	c.Flags().StringVar(&dir, "folder", "", "of sessions in this `folder`")
	c.Flags().StringVar(&session, "session", "", "of this `session` and its sub-agents")
	return func() (q daemon.Which, err error) {
		q.Session = session
		if dir == "" {
			return q, nil
		}
		if q.Folder, err = folder.Resolve(dir); err != nil { // it may be gone
			q.Folder, err = filepath.Abs(dir)
		}
		return q, err
	}
}

func memoryListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List memories, the newest first", Args: cobra.NoArgs,
		Example: `  yaya memory list --folder .
  yaya memory list --limit 1000 --json`,
	}
	which := memoryFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit < 1 {
			return &usageError{c.CommandPath(), errors.New("--limit must be at least 1")}
		}
		q, err := which()
		if err != nil {
			return err
		}
		all, err := g.Memories(c.Context(), q, limit)
		if err != nil {
			return err
		}
		w := c.OutOrStdout()
		if asJSON {
			return printJSON(w, append([]daemon.Memory{}, all...))
		}
		if len(all) == 0 {
			_, err := fmt.Fprintln(w, "Agents remember nothing like that.")
			return err
		}
		tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(tw, "MEMORY\tWRITTEN\tFOLDER\tSESSION\tTEXT")
		for _, m := range all {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", daemon.Printable(m.ID, 60), m.Written.Local().Format("2006-01-02 15:04"), daemon.Printable(cmp.Or(m.Folder, "-"), 60), daemon.Printable(cmp.Or(m.Session, "-"), 60), daemon.Printable(strings.ReplaceAll(m.Text, "\n", " "), 80))
		}
		return tw.Flush()
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&limit, "limit", 50, "list at most `n` memories")
	return c
}

func memoryForgetCommand(g *daemon.Flags) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "forget [MEMORY...]", Short: "Remove memories, for good", Args: cobra.ArbitraryArgs,
		Long: `Remove memories, for good: those that are named, those of a folder or a session, or all.
yaya memory list shows their names. The file has bytes of them until others take their
place; to have nothing of them on the disk, stop yaya and remove memory.db and the files
beside it that begin with this name.`,
		Example: `  yaya memory forget mem_VQ5S3CO4
  yaya memory forget --folder ~/old-project
  yaya memory forget --all`,
	}
	which := memoryFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := which()
		if err != nil {
			return err
		}
		q.IDs = args
		narrow := len(args) > 0 || q.Folder != "" || q.Session != ""
		if narrow == all {
			return &usageError{c.CommandPath(), errors.New("name memories, --folder or --session, or else --all")}
		}
		n, err := g.Forget(c.Context(), q)
		if err != nil {
			return err
		}
		if n < len(args) && q.Folder == "" && q.Session == "" {
			return fmt.Errorf("%s forgotten, but not all that you have named were there (yaya memory list)", worded.Count(n, "memory was", "memories were"))
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s forgotten.\n", worded.Count(n, "memory was", "memories were"))
		return err
	}
	c.Flags().BoolVar(&all, "all", false, "remove all memories")
	return c
}
