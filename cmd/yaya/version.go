package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return printVersion(c) },
	}
}

func printVersion(c *cobra.Command) error {
	text := fmt.Sprintf("yaya %s %s/%s %s\n", daemon.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if digest, at := daemon.Commit(); digest != "" {
		text += fmt.Sprintf("commit %s of %s\n", digest, at)
	}
	_, err := fmt.Fprint(c.OutOrStdout(), text)
	return err
}
