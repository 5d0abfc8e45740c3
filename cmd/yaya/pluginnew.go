package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/plugins/scaffold"
)

func pluginNewCommand() *cobra.Command {
	var lang, category string
	var pack bool
	c := &cobra.Command{
		Use: "new NAME --lang go|python|typescript", Short: "Begin a plugin that works at once, or a package",
		Long: `Begin a plugin: a folder of that name with a program, its plugin.toml and the SDK of the
language. It needs no network. A program in Go is built with the go command, and has to be
built again after each change: cd NAME && go build -o NAME .

The category says what the plugin brings: a tool, an llm-provider, a memory, a strategy, an
adapter or a skill.

With --package it is a package for agents instead (Agent Plugins 1.0.0), which has no
program: a skill, and a place for MCP servers. Other agents can install it, too.`,
		Example: `  yaya plugin new hello --lang python
  yaya plugin test ./hello
  yaya plugin install --editable ./hello
  yaya run '/tool hello_greet {"who":"Ada"}'   # with the provider llm-echo`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if pack {
				return newPackage(c, name, lang != "" || c.Flags().Changed("category"))
			}
			if lang == "" {
				return &usageError{c.CommandPath(), errors.New("--lang is missing: it is one of " + strings.Join(scaffold.Languages(), ", "))}
			}
			files, err := scaffold.Files(name, lang, category)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if err := scaffold.Write(name, files); err != nil {
				return err
			}
			out := c.OutOrStdout()
			if lang == "go" {
				if err := buildNew(c.Context(), name); err != nil {
					return fmt.Errorf("%s was made, and is not built yet: %w; then: cd %s && go build -o %s", name, err, name, name)
				}
			}
			return made(out, "plugin", name)
		},
	}
	c.Flags().StringVar(&lang, "lang", "", "language: "+strings.Join(scaffold.Languages(), ", "))
	c.Flags().StringVar(&category, "category", "tool", "category of the plugin")
	c.Flags().BoolVar(&pack, "package", false, "begin a package for agents")
	return c
}

// newPackage begins a package for agents.
func newPackage(c *cobra.Command, name string, more bool) error {
	if more {
		return &usageError{c.CommandPath(), errors.New("--package has no program: leave out --lang and --category")}
	}
	files, err := scaffold.PackageFiles(name)
	if err != nil {
		return &usageError{c.CommandPath(), err}
	}
	if err := scaffold.Write(name, files); err != nil {
		return err
	}
	return made(c.OutOrStdout(), "package", name)
}

// made says what to do next.
func made(out io.Writer, what, name string) error {
	_, err := fmt.Fprintf(out, "Made the %s %s in ./%s\n\n  yaya plugin test ./%s\n  yaya plugin install ./%s\n", what, name, name, name, name)
	return err
}

// buildNew builds a program that consists of a template and the SDK. It fetches nothing: neither
// needs another module, and an older Go says that it is too old.
func buildNew(ctx context.Context, name string) error {
	program, err := exec.LookPath("go")
	if err != nil {
		return errors.New("the command go is not in PATH: install Go (https://go.dev/dl)")
	}
	cmd := exec.CommandContext(ctx, program, "build", "-buildvcs=false", "-o", name, ".") //nolint:gosec // the name is a plugin's
	cmd.Dir, err = filepath.Abs(name)
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local", "GO111MODULE=on")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, daemon.Printable(strings.TrimSpace(string(said)), 2000))
	}
	return nil
}
