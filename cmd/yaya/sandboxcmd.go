package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

func sandboxCommand(g *daemon.Flags) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "sandbox", Short: "Show which programs run in which sandbox, and what is enforced",
		Long: `Show which programs run in which sandbox, what is enforced on this machine and what is
not, and the command that would change that. The report is about the running yaya, if
there is one. To find out, yaya starts a test sandbox with each back end.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return daemon.WithSandbox(c.Context(), g, func(b *daemon.Backend) error {
				var r admin.Sandbox
				if err := b.API(c.Context(), http.MethodGet, "/api/sandbox", nil, &r); err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), r)
				}
				return printSandbox(c.OutOrStdout(), r)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(sandboxRunCommand(g))
	return c
}

// printSandbox prints the most important facts first: whether sandboxes work, which program has
// which rights, what is not enforced, and what to do.
func printSandbox(w io.Writer, r admin.Sandbox) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Sandbox: %s\n", daemon.Printable(r.Summary, 600))
	if r.Fix != "" {
		fmt.Fprintf(&b, "To change that, run:\n  %s\n", daemon.Printable(r.Fix, 600))
	}
	if len(r.Profiles) > 0 {
		b.WriteString("\n")
		tw := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
		fmt.Fprintln(tw, "PROFILE\tPROGRAMS\tACCESS")
		for _, p := range r.Profiles {
			has := p.About
			switch {
			case p.Backend == sandbox.None:
				has = "all rights of your user"
			case p.Profile != "check" && slices.Contains(p.Lacks, sandbox.NeedHosts.String()):
				has += " (here: no network)"
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\n", p.Profile, programsIn(r.Programs, p.Profile), has)
		}
		outside := slices.DeleteFunc(slices.Clone(r.Programs), func(p admin.SandboxProgram) bool { return p.Note != "" && p.Backend == "" })
		if out := programsIn(outside, ""); out != "-" {
			fmt.Fprintf(tw, "OUTSIDE\t%s\tall rights of your user\n", out)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	for i, p := range slices.DeleteFunc(slices.Clone(r.Programs), func(p admin.SandboxProgram) bool { return p.Note == "" }) {
		if i == 0 {
			b.WriteString("\nDeviations from the profiles:\n")
		}
		fmt.Fprintf(&b, "  server %s %s\n", daemon.Printable(p.Name, 40), daemon.Printable(p.Note, 600))
	}
	if r.Backend != sandbox.None {
		printGaps(&b, "Not enforced here, or only in part", r.Gaps, r.Profiles)
		printGaps(&b, "Does not work here, although the profile allows it", r.Breaks, r.Profiles)
	}
	fmt.Fprintf(&b, "\nSystem: %s, %s\nSettings: sandbox.mode %s, sandbox.backend %s\nBack ends: ", daemon.Printable(r.System, 100), r.User, r.Mode, r.Setting)
	for i, s := range r.Backends {
		if i > 0 {
			b.WriteString("; ")
		}
		switch {
		case !s.Works:
			fmt.Fprintf(&b, "%s does not work (%s)", s.Name, daemon.Printable(s.Why, 300))
		case s.Name == r.Backend:
			fmt.Fprintf(&b, "%s is used", s.Name)
		case s.Name == sandbox.None:
			fmt.Fprintf(&b, "%s enforces nothing", s.Name)
		default:
			fmt.Fprintf(&b, "%s works", s.Name)
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func printGaps(w io.Writer, title string, gaps []admin.SandboxGap, all []admin.SandboxProfile) {
	if len(gaps) > 0 {
		fmt.Fprintf(w, "\n%s:\n", title)
	}
	for _, g := range gaps {
		fmt.Fprintf(w, "  %s: %s\n", someProfiles(g.Profiles, all), daemon.Printable(g.What, 600))
	}
}

// programsIn names the programs that run in a profile.
func programsIn(all []admin.SandboxProgram, profile string) string {
	var servers, out []string
	for _, p := range all {
		switch {
		case p.Profile != profile:
		case p.Kind == "server":
			servers = append(servers, daemon.Printable(p.Name, 40))
		default:
			out = append(out, p.Name)
		}
	}
	if n := len(servers); n > 0 {
		word := "server "
		if n > 1 {
			word = "servers "
		}
		if n > daemon.NamedPrograms {
			servers = append(servers[:daemon.NamedPrograms:daemon.NamedPrograms], fmt.Sprintf("%d more", n-daemon.NamedPrograms))
		}
		out = slices.Insert(out, 0, word+strings.Join(servers, ", "))
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, "; ")
}

// someProfiles names a subset of the profiles.
func someProfiles(some []string, all []admin.SandboxProfile) string {
	if len(some) == len(all) {
		return "all"
	}
	if len(some) <= len(all)/2 {
		return strings.Join(some, ", ")
	}
	var others []string
	for _, p := range all {
		if !slices.Contains(some, p.Profile) {
			others = append(others, p.Profile)
		}
	}
	return "all but " + strings.Join(others, ", ")
}
