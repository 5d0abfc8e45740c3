package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/session"
)

func verifyCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "verify [DIR]", Short: "Verify the integrity of a data directory",
		Long: `Verify the integrity of a data directory: every bit of every conversation, including
archived ones, and of the control log with its seals; that the secrets can be opened, and
that settings, approvals, the memory and all other files can be read. The command changes
nothing and can run alongside a daemon. If anything is damaged, or cannot be read, it names
the file and the entry, and the exit code is 1. yaya repair mends what is damaged.

The command prints the newest seal of the audit log. Keep that line elsewhere: it exposes
an attacker who replaces the whole directory with an older copy.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := g.Paths()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				p.Data = args[0]
			}
			if err := p.Answers(c.Context()); err != nil {
				return err
			}
			root, err := os.OpenRoot(p.Data)
			if err != nil {
				return fmt.Errorf("data directory: %w", err)
			}
			defer func() { _ = root.Close() }()
			files, findings, err := g.VerifyData(c.Context(), p, root)
			if err != nil {
				return err
			}
			n, audit, newest, err := daemon.VerifyControl(root)
			if err != nil {
				return err
			}
			if files+n+len(findings)+len(audit) == 0 && !daemon.HoldsData(root) {
				return fmt.Errorf("there is no yaya data in %s", p.Data)
			}
			return reportVerified(c.OutOrStdout(), asJSON, files+n, append(findings, audit...), newest)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func reportVerified(w io.Writer, asJSON bool, files int, findings []session.Finding, newest *daemon.Seal) error {
	bad := slices.ContainsFunc(findings, session.Finding.Bad)
	var err error
	if asJSON {
		if findings == nil {
			findings = []session.Finding{}
		}
		err = printJSON(w, struct {
			Files    int               `json:"files"`
			Findings []session.Finding `json:"findings"`
			Seal     *daemon.Seal      `json:"seal,omitempty"`
		}{files, findings, newest})
	} else {
		printFindings(w, findings)
		if newest != nil {
			fmt.Fprintln(w, newest)
		}
		_, err = fmt.Fprintf(w, "%s, %s\n", worded.Count(files, "file", "files"), worded.Count(len(findings), "finding", "findings"))
	}
	if err == nil && bad {
		err = &exitStatus{}
	}
	return err
}
