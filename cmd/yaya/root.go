package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/daemon"
)

func newRoot() *cobra.Command { return rootOf(new(daemon.Flags)) }

func rootOf(g *daemon.Flags) *cobra.Command {
	root := &cobra.Command{
		Use:   "yaya",
		Short: "One door to all your MCP servers, and agents behind it",
		Long: `One door to all your MCP servers, and agents behind it.

yaya connects MCP servers and is one itself: configure your servers once, and
reach all of their tools from every client through one endpoint. Its own agents
work with the same tools: yaya run "what is in this folder?"`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	version := root.Flags().Bool("version", false, "version for yaya")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *version {
			return printVersion(c)
		}
		return c.Help()
	}
	pf := root.PersistentFlags()
	pf.StringVar(&g.DataDir, "data-dir", "", "`folder` of yaya's data (default $XDG_STATE_HOME/yaya)")
	pf.StringVar(&g.ConfigDir, "config-dir", "", "`folder` of mcp.json and config.toml (default $XDG_CONFIG_HOME/yaya)")
	pf.StringVar(&g.ConfigFile, "config", "", "`file` of settings (default config.toml in --config-dir)")
	pf.BoolVarP(&g.Verbose, "verbose", "v", false, "log more")
	root.AddCommand(serveCommand(g), chatCommand(g), acpCommand(g), runCommand(g), mcpCommand(g), catalogCommand(g), sessionCommand(g), memoryCommand(g), clientCommand(g), trustCommand(g), skillCommand(g), hookCommand(g), providerCommand(g), configCommand(g), pluginCommand(g), deviceCommand(g), tokenCommand(g), secretCommand(g), connectCommand(g), auditCommand(g), clusterCommand(g), trafficCommand(g), doctorCommand(g), reloadCommand(g), restartCommand(g), serviceCommand(g), verifyCommand(g), repairCommand(g), backupCommand(g), restoreCommand(g), sandboxCommand(g), versionCommand(), manCommand())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{c.CommandPath(), flagMistake(err)} })
	root.SetUsageFunc(usage)
	wrapArgs(root)
	completeNames(g, root)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long = wrapped(c.Long)
		help(c, args)
	})
	return root
}

// wrapArgs turns errors about arguments into usage errors, for every command.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usageError{c.CommandPath(), argsMistake(c, check, args)}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// argsMistake explains why the arguments do not fit a command.
func argsMistake(c *cobra.Command, check cobra.PositionalArgs, args []string) error {
	if c.HasSubCommands() && len(args) > 0 {
		text := fmt.Sprintf("unknown command %q", c.CommandPath()+" "+args[0])
		if c.SuggestionsMinimumDistance <= 0 {
			c.SuggestionsMinimumDistance = 2
		}
		if like := c.SuggestionsFor(args[0]); len(like) > 0 {
			text += fmt.Sprintf("; did you mean %s?", strings.Join(like, " or "))
		}
		return errors.New(text)
	}
	for n := len(args) - 1; n >= 0; n-- {
		if check(c, args[:n]) == nil {
			return fmt.Errorf("unexpected argument %q (usage: %s)", args[n], c.UseLine())
		}
	}
	return fmt.Errorf("missing argument (usage: %s)", c.UseLine())
}

// flagMistake explains what is wrong with a flag.
func flagMistake(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetSpecifiedName()
		}
		if c := e.GetSpecifiedName(); c >= "0" && c < ":" {
			return fmt.Errorf("unknown flag %s; for a negative number, put -- before the arguments", name)
		}
		return fmt.Errorf("unknown flag %s", name)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("flag --%s needs a value", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*misplacedFlag](err); ok {
		return e
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("flag --%s takes a value of type %s, not %q", e.GetFlag().Name, e.GetFlag().Value.Type(), e.GetValue())
	}
	return err
}
