package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/backup"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/session"
)

func backupCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	var recipients []string
	c := &cobra.Command{
		Use: "backup FILE|DIR", Short: "Back up the data directory and the configuration",
		Long: `Back up the data directory and the configuration into one file: conversations, the
control log with its keys, memory, secrets, settings and the list of servers. In a folder,
each backup gets a name with its time. The command can run alongside a daemon.

The backup holds private keys, so keep it where only you can read it, or encrypt it with
--recipient. Only an encrypted backup holds the key of the stored secrets.

The command verifies what it backs up. If anything is damaged, the backup holds it as it
is, the command names it, and the exit code is 1.`,
		Example: `  yaya backup /backups
  yaya backup yaya.tar.gz.age --recipient age1…`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			to, err := backup.Recipients(recipients)
			if err != nil {
				return &usageError{c.CommandPath(), fmt.Errorf("--recipient: %w", err)}
			}
			b, err := g.Backup(c.Context(), daemon.BackupOptions{To: args[0], Recipients: to})
			if err != nil {
				return err
			}
			if asJSON {
				b.Notes, b.Findings = append([]string{}, b.Notes...), append([]session.Finding{}, b.Findings...)
				if err := printJSON(c.OutOrStdout(), b); err != nil {
					return err
				}
			} else if err := printBackup(c.OutOrStdout(), c.ErrOrStderr(), b); err != nil {
				return err
			}
			for _, f := range b.Findings {
				if f.Bad() {
					return &exitStatus{}
				}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&recipients, "recipient", nil, "encrypt for this `recipient` of age (age1…), or for those in this file; repeat for more")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printBackup(w, notes io.Writer, b daemon.Backup) error {
	printFindings(notes, b.Findings)
	for _, n := range b.Notes {
		fmt.Fprintln(notes, "note:", daemon.Printable(n, 600))
	}
	size := ""
	if st, err := os.Stat(b.File); err == nil {
		size = fmt.Sprintf(", %d KiB", (st.Size()+1023)>>10)
	}
	how := "not encrypted"
	if b.Encrypted {
		how = "encrypted"
	}
	_, err := fmt.Fprintf(w, "%s: %s%s, %s\n", b.File, worded.Count(b.Files, "file", "files"), size, how)
	return err
}

// printFindings prints what verification has found, a line for each.
func printFindings(w io.Writer, findings []session.Finding) {
	for _, f := range findings {
		mark := "note"
		if f.Damaged {
			mark = "DAMAGED"
		} else if f.Unread {
			mark = "UNREAD"
		}
		at := f.File
		if f.Entry > 0 {
			at += fmt.Sprintf(", entry %d", f.Entry)
		}
		fmt.Fprintf(w, "%s  %s: %s\n", mark, at, daemon.Printable(f.Problem, 600))
	}
}

func restoreCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	var identities []string
	var o daemon.RestoreOptions
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into an empty data directory",
		Long: `Restore a backup into an empty data directory, and the configuration into the
configuration folder. The command overwrites nothing: it refuses a data directory that is
not empty, and a configuration that differs from that of the backup.

The command verifies everything before yaya can start with it, and refuses a backup that is
incomplete, changed or damaged. If it is interrupted, run it again.

The restored yaya is as it was at the time of the backup: devices, tokens and permissions
that were revoked later are valid again. Look at yaya device list and yaya token list.`,
		Example: `  yaya restore /backups/yaya-20261123T150405Z.tar.gz
  yaya restore yaya.tar.gz.age --identity key.txt --data-dir /srv/yaya`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			o.File = args[0]
			if o.Identities, err = backup.Identities(c.Context(), identities); err != nil {
				return fmt.Errorf("--identity: %w", err)
			}
			r, err := g.Restore(c.Context(), o)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				r.Config, r.Damaged = append([]string{}, r.Config...), append([]session.Finding{}, r.Damaged...)
				return printJSON(w, r)
			}
			printFindings(c.ErrOrStderr(), r.Damaged)
			if len(r.Damaged) > 0 {
				fmt.Fprintln(c.ErrOrStderr(), "yaya repair mends what can be mended")
			}
			_, err = fmt.Fprintf(w, "%s: %s of the backup of %s, verified\n", r.Data, worded.Count(r.Files, "file", "files"), r.Backup.Created.Local().Format("2006-01-02 15:04:05"))
			for _, file := range r.Config {
				fmt.Fprintln(w, "written:", daemon.Printable(file, 300))
			}
			if r.Node != "" {
				fmt.Fprintf(c.ErrOrStderr(), "note: this is the node %s of a cluster, and no backup has the folder of its server. If other nodes run, remove it there (yaya cluster remove %s) and join again here (yaya cluster join --again). If none is left: yaya cluster init --from-copy\n", r.Node, r.Node)
			}
			return err
		},
	}
	c.Flags().StringArrayVar(&identities, "identity", nil, "`file` with the age key that opens the backup (can be a pipe); repeat for more")
	c.Flags().BoolVar(&o.DataOnly, "data-only", false, "leave the configuration folder unchanged")
	c.Flags().BoolVar(&o.Damaged, "damaged", false, "restore files that were damaged when they were backed up")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
