package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/secrets"
)

// version is set by the Makefile.
var version = ""

func yayaVersion() string {
	if version != "" {
		return version
	}
	info, _ := debug.ReadBuildInfo()
	return builtVersion(info)
}

// builtVersion is the version that go install and go build have written down: the
// module's, else the commit's.
func builtVersion(info *debug.BuildInfo) string {
	const unknown = "0.1.0-dev"
	if info == nil {
		return unknown
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 7 {
			return unknown + "-" + s.Value[:7]
		}
	}
	return unknown
}

// globals are the flags that every command has.
type globals struct {
	dataDir    string
	configDir  string
	configFile string
	verbose    bool
	secrets    masked.Secrets // that are shown nowhere
	vault      *secrets.Store // of the data folder that was opened last
}

func newRoot() *cobra.Command { return rootOf(new(globals)) }

func rootOf(g *globals) *cobra.Command {
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
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	pf := root.PersistentFlags()
	pf.StringVar(&g.dataDir, "data-dir", "", "`dir` of state (default $XDG_STATE_HOME/yaya)")
	pf.StringVar(&g.configDir, "config-dir", "", "`dir` of configuration (default $XDG_CONFIG_HOME/yaya)")
	pf.StringVar(&g.configFile, "config", "", "`file` of settings (default config.toml in --config-dir)")
	pf.BoolVarP(&g.verbose, "verbose", "v", false, "log more")
	root.AddCommand(serveCommand(g), chatCommand(g), runCommand(g), mcpCommand(g), sessionCommand(g), clientCommand(g), trustCommand(g), providerCommand(g), configCommand(g), pluginCommand(g), deviceCommand(g), tokenCommand(g), secretCommand(g), connectCommand(g), auditCommand(g), trafficCommand(g), doctorCommand(g), reloadCommand(g), verifyCommand(g), sandboxCommand(g), versionCommand())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{c.CommandPath(), flagMistake(err)} })
	root.Version = yayaVersion()
	root.SetVersionTemplate(versionLine())
	cobra.AddTemplateFunc("wrappedFlags", func(f *pflag.FlagSet) string { return f.FlagUsagesWrapped(helpWidth) })
	root.SetUsageTemplate(strings.NewReplacer(".LocalFlags.FlagUsages", "wrappedFlags .LocalFlags", ".InheritedFlags.FlagUsages", "wrappedFlags .InheritedFlags").Replace(root.UsageTemplate()))
	wrapArgs(root)
	wrapHelp(root)
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

// wrapHelp fits what a command says of itself to the width of a terminal. Indented lines
// stay as they are.
func wrapHelp(c *cobra.Command) {
	var out []string
	for paragraph := range strings.SplitSeq(c.Long, "\n\n") {
		line := ""
		end := func() {
			if line != "" {
				out = append(out, line)
			}
			line = ""
		}
		for l := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(l, " ") {
				end()
				out = append(out, l)
				continue
			}
			for word := range strings.FieldsSeq(l) {
				if line != "" && len(line)+1+len(word) > helpWidth {
					end()
				}
				if line != "" {
					line += " "
				}
				line += word
			}
		}
		end()
		out = append(out, "")
	}
	c.Long = strings.TrimSpace(strings.Join(out, "\n"))
	for _, sub := range c.Commands() {
		wrapHelp(sub)
	}
}

// helpWidth is how wide help may be: a terminal has 80 columns at least.
const helpWidth = 80

// argsMistake says in which way words do not fit a command.
func argsMistake(c *cobra.Command, check cobra.PositionalArgs, args []string) error {
	if c.HasSubCommands() && len(args) > 0 {
		text := fmt.Sprintf("there is no command %q", c.CommandPath()+" "+args[0])
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
			return fmt.Errorf("%q is one word too many: %s", args[n], c.UseLine())
		}
	}
	return fmt.Errorf("something is missing: %s", c.UseLine())
}

// flagMistake says what is wrong with a flag.
func flagMistake(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetSpecifiedName()
		}
		return fmt.Errorf("there is no flag %s", name)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("the flag --%s needs a value", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("the flag --%s takes a value of the type %s, not %q", e.GetFlag().Name, e.GetFlag().Value.Type(), e.GetValue())
	}
	return err
}

func versionLine() string {
	return fmt.Sprintf("yaya %s %s/%s %s\n", yayaVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), versionLine())
			return err
		},
	}
}
