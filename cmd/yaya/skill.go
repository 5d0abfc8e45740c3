package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/agentskill"
)

func skillCommand(g *daemon.Flags) *cobra.Command {
	c := &cobra.Command{
		Use: "skill", Short: "Manage the skills of agents",
		Long: `Manage the skills of agents. A skill is a folder with a file SKILL.md: instructions that an
agent loads when a task matches their description (agentskills.io).

yaya reads the skills in .yaya/skills, .agents/skills and .claude/skills of a trusted
folder, then those of the user: in skills of the configuration folder, ~/.agents/skills and
~/.claude/skills. Of several skills with the same name, the first counts. MCP clients get
skills as prompts.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(skillListCommand(g), skillShowCommand(g), skillAddCommand(g), skillNewCommand(g), skillCheckCommand(g))
	return c
}

// The states of skills in lists.
const (
	skillOK         = "ok"
	skillManual     = "manual"     // only people use it
	skillShadowed   = "shadowed"   // another of the same name counts
	skillRestricted = "restricted" // its folder is not trusted
	skillBroken     = "broken"
)

// skillRow is a skill in lists, and in JSON.
type skillRow struct {
	agentskill.Skill
	State   string `json:"state"`
	Dir     string `json:"dir"`
	Project bool   `json:"project"`
	// Reason is why the skill is not used.
	Reason string `json:"reason,omitempty"`
}

func skillRows(here daemon.SkillsHere) (out []skillRow) {
	add := func(set agentskill.Set, restricted bool) {
		for _, f := range set.Skills {
			r := skillRow{Skill: f.Skill, State: skillOK, Dir: f.Dir, Project: f.Project}
			switch {
			case restricted:
				r.State, r.Reason = skillRestricted, "the folder "+here.Folder+" is not trusted: yaya trust "+here.Folder
			case f.ShadowedBy != "":
				r.State, r.Reason = skillShadowed, f.ShadowedBy+" counts instead"
			case f.Manual:
				r.State, r.Reason = skillManual, "it has disable-model-invocation: models do not see it"
			}
			out = append(out, r)
		}
		for _, b := range set.Broken {
			out = append(out, skillRow{State: skillBroken, Dir: b.Dir, Project: b.Project, Reason: b.Reason})
		}
	}
	add(here.Withheld, true)
	add(here.Set, false)
	return out
}

func skillListCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the skills of the current folder and of the user", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return g.WithSkills(".", func(here daemon.SkillsHere) error {
				rows, w := skillRows(here), c.OutOrStdout()
				if asJSON {
					return printJSON(w, append([]skillRow{}, rows...))
				}
				if len(rows) == 0 {
					_, err := fmt.Fprintln(w, "There are no skills. To make one: yaya skill new NAME")
					return err
				}
				tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(tw, "NAME\tSTATE\tFOLDER\tDESCRIPTION")
				for _, r := range rows {
					text := r.Description
					if r.State != skillOK {
						text = r.Reason
					}
					fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", daemon.Printable(cmp.Or(r.Name, "-"), agentskill.MaxName*4), r.State, daemon.Printable(r.Dir, 300), daemon.Printable(text, 200))
				}
				return tw.Flush()
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func skillShowCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a skill: its fields, files and instructions", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return g.WithSkills(".", func(here daemon.SkillsHere) error {
				f, err := skillNamed(here, args[0])
				if err != nil {
					return err
				}
				body, err := f.Body()
				if err != nil {
					return fmt.Errorf("show the skill %s: %w", f.Name, err)
				}
				files, more, err := f.Files()
				if err != nil {
					return fmt.Errorf("show the skill %s: %w", f.Name, err)
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), struct {
						agentskill.Found
						Files     []string `json:"files"`
						MoreFiles bool     `json:"more_files,omitempty"`
						Body      string   `json:"body"`
					}{f, append([]string{}, files...), more, body})
				}
				return printSkill(c.OutOrStdout(), f, files, more, body)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// skillNamed returns the skill that counts under a name, or says why there is none.
func skillNamed(here daemon.SkillsHere, name string) (agentskill.Found, error) {
	if f, ok := here.Find(name); ok {
		return f, nil
	}
	for _, r := range skillRows(here) {
		if r.Reason != "" && (r.Name == name || r.Name == "" && strings.HasSuffix(r.Dir, "/"+name)) {
			return agentskill.Found{}, fmt.Errorf("the skill %s is %s: %s", daemon.Printable(name, 200), r.State, daemon.Printable(r.Reason, 600))
		}
	}
	return agentskill.Found{}, fmt.Errorf("there is no skill %q (yaya skill list shows all)", daemon.Printable(name, 200))
}

func printSkill(w io.Writer, f agentskill.Found, files []string, more bool, body string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, daemon.Printable(value, 2000))
		}
	}
	row("name", f.Name)
	row("description", f.Description)
	row("folder", f.Dir)
	row("license", f.License)
	row("compatibility", f.Compatibility)
	row("allowed-tools", f.AllowedTools)
	keys := make([]string, 0, len(f.Metadata))
	for k := range f.Metadata {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		row("metadata."+daemon.Printable(k, 100), f.Metadata[k])
	}
	for _, warning := range f.Warnings {
		row("warning", warning)
	}
	for _, name := range files {
		row("file", name)
	}
	if more {
		row("file", "… (more are not listed)")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", daemon.Multiline(body))
	return err
}

func skillCheckCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "check [DIR]", Short: "Check skills against the specification",
		Long: `Check skills against the specification. DIR is a skill or a folder of skills; by default,
yaya checks the skills of the current folder, trusted or not, and of the user. Warnings are
deviations with which a skill works. The exit code is 1 if a skill is broken.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			report := func(here daemon.SkillsHere) error { return printCheck(c.OutOrStdout(), skillRows(here), asJSON) }
			if len(args) == 0 {
				return g.WithSkills(".", report)
			}
			set, err := agentskill.NewLibrary().LookAt(args[0])
			if err != nil {
				return fmt.Errorf("check skills: %w", err)
			}
			if len(set.Skills)+len(set.Broken) == 0 {
				return fmt.Errorf("%s is not a skill, and has none: a skill is a folder with a file %s", daemon.Printable(args[0], 300), agentskill.FileName)
			}
			return report(daemon.SkillsHere{Set: set})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printCheck(w io.Writer, rows []skillRow, asJSON bool) error {
	broken := 0
	for _, r := range rows {
		if r.State == skillBroken {
			broken++
		}
	}
	if asJSON {
		if err := printJSON(w, append([]skillRow{}, rows...)); err != nil {
			return err
		}
	} else {
		for _, r := range rows {
			switch {
			case r.State == skillBroken:
				fmt.Fprintf(w, "%s: broken: %s\n", daemon.Printable(r.Dir, 300), daemon.Printable(r.Reason, 1000))
			case len(r.Warnings) == 0:
				fmt.Fprintf(w, "%s: ok\n", daemon.Printable(r.Dir, 300))
			}
			for _, warning := range r.Warnings {
				fmt.Fprintf(w, "%s: warning: %s\n", daemon.Printable(r.Dir, 300), daemon.Printable(warning, 300))
			}
		}
		if len(rows) == 0 {
			fmt.Fprintln(w, "There are no skills.")
		}
	}
	switch broken {
	case 0:
		return nil
	case 1:
		return errors.New("1 skill is broken")
	}
	return fmt.Errorf("%d skills are broken", broken)
}
