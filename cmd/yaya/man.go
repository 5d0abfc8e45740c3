package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand prints the manual page that packages install. It is for them, and hidden.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page, in the format of man(7)", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), manual(c.Root()))
			return err
		},
	}
}

// manual is the page about all commands. It has no date and no version, so that it changes only
// with the commands.
func manual(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH YAYA 1 \"\" \"\" \"yaya\"\n.SH NAME\nyaya \\- %s\n.SH SYNOPSIS\n.B yaya\n.I command\n[flags]\n.SH DESCRIPTION\n", roff(root.Short))
	paragraphs(&b, root.Long)
	b.WriteString(".SH FLAGS OF ALL COMMANDS\n")
	manFlags(&b, root.PersistentFlags())
	b.WriteString(".SH COMMANDS\n")
	manCommands(&b, root)
	b.WriteString(".SH FILES\n.TP\n.I $XDG_CONFIG_HOME/yaya\nmcp.json and config.toml (~/.config/yaya)\n.TP\n.I $XDG_STATE_HOME/yaya\nsessions, keys and the audit (~/.local/state/yaya)\n")
	b.WriteString(".SH EXIT STATUS\n0 for success, 2 for wrong usage, 126 and 127 for a program that could not be run, 1 for every other failure.\n")
	return b.String()
}

func manCommands(b *strings.Builder, of *cobra.Command) {
	for _, c := range of.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		if c.Runnable() && !c.HasAvailableSubCommands() {
			flags := c.LocalNonPersistentFlags() // only from here on does UseLine know that there are flags
			fmt.Fprintf(b, ".SS %s\n", roff(c.UseLine()))
			text := c.Long
			if text == "" {
				text = c.Short + "."
			}
			paragraphs(b, text)
			manFlags(b, flags)
			if c.Example != "" {
				fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(strings.Trim(c.Example, "\n")))
			}
		}
		manCommands(b, c)
	}
}

func manFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(text))
	})
}

// paragraphs writes a text of the help: indented lines stay lines.
func paragraphs(b *strings.Builder, text string) {
	gap := ""
	for p := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(p, " ") {
			fmt.Fprintf(b, "%s.nf\n%s\n.fi\n", gap, roff(p))
		} else {
			fmt.Fprintf(b, "%s%s\n", gap, roff(p))
		}
		gap = ".PP\n"
	}
}

// roff is a text without what man would take for its own: backslashes, hyphens that must stay
// hyphens, and lines that begin like requests.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
