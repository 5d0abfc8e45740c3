package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// sandboxes returns the sandboxes as the settings want them.
func sandboxes(c appConfig) *sandbox.Sandboxes {
	s := &sandbox.Sandboxes{
		Home: c.home, Cache: sandboxCaches(c.home),
		Settings: func() sandbox.Settings {
			return sandbox.Settings{
				Mode: sandbox.Mode(c.settings.Text("sandbox.mode")), Backend: c.settings.Text("sandbox.backend"),
				ModeFrom: variable(c.settings, "sandbox.mode"), BackendFrom: variable(c.settings, "sandbox.backend"),
			}
		},
	}
	s.Own, s.Files = hidden(c.own), c.outside.now
	return s
}

// sandboxCaches is the folder of the caches of sandboxes.
func sandboxCaches(home string) string {
	return filepath.Join(xdg("XDG_CACHE_HOME", home, ".cache"), "yaya", "sandbox")
}

// variable names the variable of the environment that decides a setting, "" if none does.
func variable(settings *config.Store, key string) string {
	if _, from, _ := settings.Get(key); from == config.FromEnv {
		return config.EnvName(key)
	}
	return ""
}

// sandboxHealth is how it stands with the sandboxes.
func sandboxHealth(s sandbox.Standing) plugin.Health {
	switch {
	case s.Refused != "":
		return plugin.Failing
	case len(s.Lacks) > 0:
		return plugin.Degraded
	}
	return plugin.Healthy
}

// sandboxReport is what the API says of sandboxes.
func sandboxReport(boxes *sandbox.Sandboxes, programs []admin.SandboxProgram) admin.Sandbox {
	s, denials := boxes.Standing(), boxes.Denials()
	out := admin.Sandbox{
		Status: sandboxHealth(s), Summary: s.Summary(), Mode: string(s.Mode), Setting: s.Setting, Backend: s.Best, Why: s.Why, Fix: s.Fix,
		System: s.System, User: s.User, Landlock: s.Landlock, HostProc: s.HostProc,
		Backends: []admin.SandboxBackend{}, Profiles: []admin.SandboxProfile{}, Programs: programs, Gaps: []admin.SandboxGap{}, Breaks: []admin.SandboxGap{},
	}
	for i := range programs {
		programs[i].Note = otherwise(s, programs[i])
	}
	for _, b := range s.Backends {
		out.Backends = append(out.Backends, admin.SandboxBackend(b))
	}
	for _, e := range s.Profiles {
		out.Profiles = append(out.Profiles, admin.SandboxProfile{
			Profile: e.Profile, About: sandbox.About(e.Profile), Backend: e.Backend, Enforced: e.Has.Names(), Lacks: s.Lacks[e.Profile].Names(),
			Missing: append([]string{}, e.Missing...), Breaks: append([]string{}, e.Breaks...), Denials: denials[e.Profile],
		})
	}
	for _, g := range s.Gaps() {
		out.Gaps = append(out.Gaps, admin.SandboxGap(g))
	}
	for _, g := range s.Breaks() {
		out.Breaks = append(out.Breaks, admin.SandboxGap(g))
	}
	return out
}

// sandboxDiagnosis is the doctor's line about sandboxes, what is not enforced, and which
// servers do not run as the settings want.
func sandboxDiagnosis(s sandbox.Standing, running map[string]admin.SandboxProgram) plugin.Diagnosis {
	d := plugin.Diagnosis{Plugin: "sandbox", HealthReport: plugin.HealthReport{Status: sandboxHealth(s), Summary: s.Summary()}}
	if s.Fix != "" { // not in the summary, which a terminal has less room for
		d.Details = append(d.Details, plugin.HealthCheck{Name: "to change that, run", Status: plugin.Degraded, Message: s.Fix})
	}
	for _, g := range s.Lacking() {
		if s.Best == sandbox.None {
			break // the summary says it
		}
		d.Details = append(d.Details, plugin.HealthCheck{Name: "profiles " + strings.Join(g.Profiles, ", "), Status: plugin.Degraded, Message: g.What})
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		note := otherwise(s, running[name])
		if note == "" {
			continue
		}
		if d.Status == plugin.Healthy {
			d.Status = plugin.Degraded
		}
		d.Details = append(d.Details, plugin.HealthCheck{Name: "server " + name, Status: plugin.Degraded, Message: note})
	}
	return d
}

// programs says what runs in which profile: agents' commands and checks, and servers.
func programs(all iter.Seq[servers.Server]) []admin.SandboxProgram {
	out := []admin.SandboxProgram{
		{Kind: "commands", Name: "agents' commands", Profile: "command"},
		{Kind: "checks", Name: "checks of agents' work", Profile: "check"},
	}
	for x := range all {
		profile := x.SandboxProfile()
		switch {
		case x.Disabled, profile == "": // it does not run, or not here
			continue
		case profile == servers.SandboxOff:
			profile = ""
		case profile == servers.SandboxServer && x.Sandbox != nil && x.Sandbox.Browser:
			profile = "browser"
		}
		out = append(out, admin.SandboxProgram{Kind: "server", Name: x.Name, Profile: profile})
	}
	slices.SortFunc(out[2:], func(a, b admin.SandboxProgram) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// programs says what runs in which profile now, and with what its sandbox was made.
func (s *serverAdmin) programs() []admin.SandboxProgram {
	running := s.a.running()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := programs(maps.Values(s.list))
	for i, p := range out {
		if p.Kind == "server" {
			out[i].Backend = running[p.Name].Backend
		}
	}
	return out
}

// tellSandbox finds out what sandboxes enforce, and logs it unless that is everything.
// It takes a moment, which nothing at the start has to wait for.
func (a *app) tellSandbox() {
	s := a.sandboxes.Standing()
	switch e := a.log.Warn(); sandboxHealth(s) {
	case plugin.Failing:
		a.log.Error().Str("fix", s.Fix).Msg("sandbox: " + s.Summary())
	case plugin.Degraded:
		if s.Fix != "" {
			e = e.Str("fix", s.Fix)
		}
		e.Msg("sandbox: " + s.Summary())
	case plugin.Healthy:
	}
}

// sandboxGauges are what /metrics shows of sandboxes: the back end in use, once it is
// known, and denials.
func (a *app) sandboxGauges() {
	a.metrics.Gauges("yaya_sandbox_backend", "The back end that sandboxes are made with; off enforces nothing.", "backend", func() map[string]float64 {
		if !sandbox.Known() {
			return nil
		}
		s := a.sandboxes.Standing()
		if s.Refused != "" {
			return nil
		}
		return map[string]float64{s.Best: 1}
	})
	a.metrics.Counters("yaya_sandbox_denials_total", "Connections that sandboxes have refused, by profile.", "profile", func() map[string]float64 {
		out := map[string]float64{}
		for _, profile := range sandbox.Profiles() {
			out[profile] = 0
		}
		for profile, n := range a.sandboxes.Denials() {
			out[profile] = float64(n)
		}
		return out
	})
}

// withSandbox runs f with the daemon, whose environment counts, or with what the
// settings and this machine say if none runs.
func withSandbox(ctx context.Context, g *globals, f func(*backend) error) error {
	return withStore(ctx, g, f, func(p paths, data *os.Root, settings *config.Store) (admin.Config, error) {
		l, err := loadServers(p, nil)
		if err != nil {
			return admin.Config{}, err
		}
		known, err := p.folders(data, settings)
		if err != nil {
			return admin.Config{}, err
		}
		if err := l.here(nil, "", known); err != nil {
			return admin.Config{}, err
		}
		boxes, all := sandboxes(appConfig{home: p.home, own: p.own(), outside: g.ownFiles(p, nil), settings: settings}), programs(slices.Values(l.servers))
		return admin.Config{Sandbox: func() admin.Sandbox { return sandboxReport(boxes, all) }}, nil
	})
}

func sandboxCommand(g *globals) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "sandbox", Short: "Show what runs in which sandbox, and what that enforces",
		Long: `Show what runs in which sandbox, what is enforced on this machine and what is not,
and the command that would change it: of the running yaya if there is one. It is
found out by starting a sandbox with each back end.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withSandbox(c.Context(), g, func(b *backend) error {
				var r admin.Sandbox
				if err := b.api(c.Context(), http.MethodGet, "/api/sandbox", nil, &r); err != nil {
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

// printSandbox writes what a person wants to know first first: whether it works, who
// has what, what is open, what to do.
func printSandbox(w io.Writer, r admin.Sandbox) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Sandbox: %s\n", printable(r.Summary, 600))
	if r.Fix != "" {
		fmt.Fprintf(&b, "To change that, run:\n  %s\n", printable(r.Fix, 600))
	}
	if len(r.Profiles) > 0 {
		b.WriteString("\n")
		tw := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
		fmt.Fprintln(tw, "PROFILE\tPROGRAMS\tTHEY HAVE")
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
			b.WriteString("\nOtherwise than the profiles say:\n")
		}
		fmt.Fprintf(&b, "  server %s %s\n", printable(p.Name, 40), printable(p.Note, 600))
	}
	if r.Backend != sandbox.None {
		printGaps(&b, "Not enforced here, or in part", r.Gaps, r.Profiles)
		printGaps(&b, "Does not work here, though the profile allows it", r.Breaks, r.Profiles)
	}
	fmt.Fprintf(&b, "\nSystem: %s, %s\nSettings: sandbox.mode %s, sandbox.backend %s\nBack ends: ", printable(r.System, 100), r.User, r.Mode, r.Setting)
	for i, s := range r.Backends {
		if i > 0 {
			b.WriteString("; ")
		}
		switch {
		case !s.Works:
			fmt.Fprintf(&b, "%s does not work (%s)", s.Name, printable(s.Why, 300))
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
		fmt.Fprintf(w, "  %s: %s\n", someProfiles(g.Profiles, all), printable(g.What, 600))
	}
}

// namedPrograms is how many servers a profile names on the terminal.
const namedPrograms = 6

// programsIn names what runs in a profile.
func programsIn(all []admin.SandboxProgram, profile string) string {
	var servers, out []string
	for _, p := range all {
		switch {
		case p.Profile != profile:
		case p.Kind == "server":
			servers = append(servers, printable(p.Name, 40))
		default:
			out = append(out, p.Name)
		}
	}
	if n := len(servers); n > 0 {
		word := "server "
		if n > 1 {
			word = "servers "
		}
		if n > namedPrograms {
			servers = append(servers[:namedPrograms:namedPrograms], fmt.Sprintf("%d more", n-namedPrograms))
		}
		out = slices.Insert(out, 0, word+strings.Join(servers, ", "))
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, "; ")
}

// someProfiles names profiles among all of them.
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
