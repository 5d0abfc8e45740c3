package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/internal/masked"
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
}

func newRoot() *cobra.Command {
	g := new(globals)
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
	pf.StringVar(&g.dataDir, "data-dir", "", "where yaya keeps its state (default $XDG_STATE_HOME/yaya)")
	pf.StringVar(&g.configDir, "config-dir", "", "where yaya finds its configuration (default $XDG_CONFIG_HOME/yaya)")
	pf.StringVar(&g.configFile, "config", "", "file with settings (default config.toml in the configuration directory)")
	pf.BoolVarP(&g.verbose, "verbose", "v", false, "log more")
	root.AddCommand(serveCommand(g), chatCommand(g), runCommand(g), mcpCommand(g), sessionCommand(g), clientCommand(g), trustCommand(g), providerCommand(g), configCommand(g), pluginCommand(g), deviceCommand(g), tokenCommand(g), connectCommand(g), auditCommand(g), trafficCommand(g), doctorCommand(g), reloadCommand(g), verifyCommand(g), versionCommand())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{c.CommandPath(), err} })
	wrapArgs(root)
	return root
}

// wrapArgs turns errors about arguments into usage errors, for every command.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "yaya %s %s/%s %s\n", yayaVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}
