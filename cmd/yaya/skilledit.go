package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/agentskill"
)

// skillTarget returns the folder of skills that a command writes in.
func skillTarget(g *daemon.Flags, project bool) (string, error) {
	if project {
		return filepath.Abs(filepath.FromSlash(".agents/skills"))
	}
	p, err := g.Paths()
	return p.SharedSkills(), err
}

func skillAddCommand(g *daemon.Flags) *cobra.Command {
	var project bool
	c := &cobra.Command{
		Use: "add DIR", Short: "Copy a skill to your skills",
		Long: `Copy a skill to your skills, in ~/.agents/skills, which other agents read, too. yaya checks
the skill first, and copies nothing if it is broken or contains a link.

Agents follow the instructions of a skill. Read it before you add it: yaya skill check DIR.`,
		Example: `  yaya skill add ~/Downloads/pdf-processing
  yaya skill add --project ../skills/release   # to .agents/skills of the current folder`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			from, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			set, err := agentskill.NewLibrary().LookAt(from)
			if err != nil {
				return fmt.Errorf("add the skill: %w", err)
			}
			if len(set.Broken) == 1 && set.Broken[0].Dir == from {
				return fmt.Errorf("the skill %s is broken: %s", daemon.Printable(from, 300), daemon.Printable(set.Broken[0].Reason, 1000))
			}
			if len(set.Skills) != 1 || set.Skills[0].Dir != from {
				return fmt.Errorf("%s is not a skill: it has no file %s", daemon.Printable(from, 300), agentskill.FileName)
			}
			to, err := skillTarget(g, project)
			if err != nil {
				return err
			}
			to = filepath.Join(to, set.Skills[0].Name)
			if err := set.Skills[0].CopyTo(to); err != nil {
				return fmt.Errorf("the skill %s was not added: %w", set.Skills[0].Name, err)
			}
			for _, warning := range set.Skills[0].Warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", daemon.Printable(warning, 300))
			}
			return wrote(c, "added", to, project)
		},
	}
	c.Flags().BoolVar(&project, "project", false, "to .agents/skills of the current folder instead")
	return c
}

func skillNewCommand(g *daemon.Flags) *cobra.Command {
	var project bool
	var description string
	c := &cobra.Command{
		Use: "new NAME", Short: "Make a new skill from a template",
		Example: `  yaya skill new release-notes --description "Writes release notes. Use before a release."
  yaya skill new --project deploy   # in .agents/skills of the current folder`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := agentskill.CheckName(args[0]); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			text := agentskill.Template(args[0], description)
			if _, _, err := agentskill.Parse([]byte(text), args[0]); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			at, err := skillTarget(g, project)
			if err != nil {
				return err
			}
			to := filepath.Join(at, args[0])
			if err := os.MkdirAll(at, 0o755); err != nil { //nolint:forbidigo,gosec // the user's own folder, which other agents read, too
				return fmt.Errorf("make the skill %s: %w", args[0], err)
			}
			root, err := os.OpenRoot(at)
			if err != nil {
				return fmt.Errorf("make the skill %s: %w", args[0], err)
			}
			defer func() { _ = root.Close() }()
			if err := root.Mkdir(args[0], 0o755); errors.Is(err, os.ErrExist) {
				return fmt.Errorf("%s is there already", to)
			} else if err != nil {
				return fmt.Errorf("make the skill %s: %w", args[0], err)
			}
			if err := root.WriteFile(filepath.Join(args[0], agentskill.FileName), []byte(text), 0o644); err != nil {
				return fmt.Errorf("make the skill %s: %w", args[0], err)
			}
			return wrote(c, "made", filepath.Join(to, agentskill.FileName), project)
		},
	}
	c.Flags().BoolVar(&project, "project", false, "in .agents/skills of the current folder instead of your own")
	c.Flags().StringVar(&description, "description", "Say what the skill does, and when to use it.", "what the skill does, and when to use it")
	return c
}

// wrote tells where a skill is, and that a folder has to be trusted for it.
func wrote(c *cobra.Command, verb, at string, project bool) error {
	_, err := fmt.Fprintf(c.OutOrStdout(), "%s %s\n", verb, at)
	if err == nil && project {
		_, err = fmt.Fprintln(c.ErrOrStderr(), "agents see the skills of a folder once you trust it as it is now: yaya trust")
	}
	return err
}
