package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/worded"
)

func memoryCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "memory", Short: "List and remove memories of agents", Args: cobra.NoArgs,
		Long: `List and remove memories of agents: what they keep of a session for later ones. They keep
something only if plugin.strategy_coder.memory or plugin.strategy_react.memory is "full".`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(memoryListCommand(g), memoryForgetCommand(g))
	return c
}

// memoryFilter adds the flags that select memories. The function that it returns reads them.
func memoryFilter(c *cobra.Command) func() (daemon.MemoryFilter, error) {
	var dir, session string
	c.Flags().StringVar(&dir, "folder", "", "those of sessions in this `folder`")
	c.Flags().StringVar(&session, "session", "", "those of this `session` and its sub-agents")
	return func() (f daemon.MemoryFilter, err error) {
		for _, name := range []string{"folder", "session"} { // of a variable that is not set, say: all would be selected
			if flag := c.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
				return f, &usageError{c.CommandPath(), fmt.Errorf("--%s is empty", name)}
			}
		}
		f.Session = session
		if dir != "" {
			if dir, err = filepath.Abs(dir); err != nil {
				return f, err
			}
			f.Folder = sandbox.Real(dir) // it may be gone
		}
		return f, nil
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
	filter := memoryFilter(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		const most = 1_000_000
		if limit < 1 || limit > most {
			return &usageError{c.CommandPath(), fmt.Errorf("--limit must be from 1 to %d", most)}
		}
		f, err := filter()
		if err != nil {
			return err
		}
		all, err := g.Memories(c.Context(), f, limit+1)
		if err != nil {
			return err
		}
		more := len(all) > limit
		all = all[:min(limit, len(all))]
		w := c.OutOrStdout()
		switch {
		case asJSON:
			err = printJSON(w, append([]daemon.Memory{}, all...))
		case len(all) == 0:
			_, err = fmt.Fprintln(w, map[bool]string{
				true:  `There are no memories. To have agents keep some: yaya config set plugin.strategy_coder.memory full`,
				false: "No memory is of this folder or session.",
			}[f.Folder+f.Session == ""])
		default:
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			fmt.Fprintln(tw, "MEMORY\tWRITTEN\tFOLDER\tSESSION\tTEXT")
			for _, m := range all {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", daemon.Printable(m.ID, 200), m.Written.Local().Format("2006-01-02 15:04"), daemon.Printable(cmp.Or(m.Folder, "-"), 200), daemon.Printable(cmp.Or(m.Session, "-"), 200), daemon.Title(strings.ReplaceAll(m.Text, "\n", " "), 80))
			}
			err = tw.Flush()
		}
		if err == nil && more {
			_, err = fmt.Fprintf(c.ErrOrStderr(), "There are more memories than these %d: --limit shows more.\n", limit)
		}
		return err
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the whole texts")
	c.Flags().IntVar(&limit, "limit", 50, "list at most `n` memories")
	return c
}

func memoryForgetCommand(g *daemon.Flags) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "forget [MEMORY...]", Short: "Remove memories", Args: cobra.ArbitraryArgs,
		Long: `Remove memories: those that are named, those of a folder or a session, or all. yaya memory
list shows their names. Sessions keep what was said in them: the one that a memory is of,
and those that were told it (yaya session delete). Backups keep the memory as it was, and
memory.db has bytes of it until others take their place.`,
		Example: `  yaya memory forget mem_3ZQ5S3CO4KBXJ2M7WDTAVLEYRH
  yaya memory forget --folder ~/old-project
  yaya memory forget --all`,
	}
	filter := memoryFilter(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := filter()
		if err != nil {
			return err
		}
		slices.Sort(args)
		f.IDs = slices.Compact(args)
		some := len(f.IDs) > 0 || f.Folder != "" || f.Session != ""
		if some && all || !some && !all {
			return &usageError{c.CommandPath(), errors.New("name memories, --folder or --session, or else --all")}
		}
		n, err := g.RemoveMemories(c.Context(), f)
		removed := worded.Count(n, "memory was", "memories were") + " removed"
		switch {
		case err != nil && n > 0:
			return fmt.Errorf("%s, and then: %w", removed, err)
		case err != nil:
			return err
		case n < len(f.IDs):
			return fmt.Errorf("%s of the %d that you have named: the others do not exist, or are of other sessions or folders (yaya memory list)", removed, len(f.IDs))
		case n == 0 && !all:
			return errors.New("no memory is of this folder or session (yaya memory list)")
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), removed+".")
		return err
	}
	c.Flags().BoolVar(&all, "all", false, "remove all memories")
	return c
}
