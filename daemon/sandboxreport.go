package daemon

import (
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// sandboxes returns the sandboxes as the settings want them.
func sandboxes(p Paths, settings *config.Store, outside ownFiles, listens []string) *sandbox.Sandboxes {
	return &sandbox.Sandboxes{
		Home: p.Home, Cache: SandboxCaches(p.Home), Settings: sandboxSettings(settings),
		Own: Hidden(p.Own()), Files: outside.all, Listens: func() []string { return listens },
	}
}

// Sandboxes are those of a command that starts nothing in them, and says what they enforce.
func (p Paths) Sandboxes(settings *config.Store) *sandbox.Sandboxes {
	return &sandbox.Sandboxes{Home: p.Home, Settings: sandboxSettings(settings)}
}

// sandboxSettings returns a function that reads the settings of sandboxes.
func sandboxSettings(settings *config.Store) func() sandbox.Settings {
	return func() sandbox.Settings {
		return sandbox.Settings{
			Mode: sandbox.Mode(settings.Text("sandbox.mode")), Backend: settings.Text("sandbox.backend"),
			ModeFrom: Variable(settings, "sandbox.mode"), BackendFrom: Variable(settings, "sandbox.backend"),
		}
	}
}

// SandboxCaches is the folder of the caches of sandboxes.
func SandboxCaches(home string) string {
	return filepath.Join(xdg("XDG_CACHE_HOME", home, ".cache"), "yaya", "sandbox")
}

// Variable names the variable of the environment that decides a setting, "" if none does.
func Variable(settings *config.Store, key string) string {
	if _, from, _ := settings.Get(key); from == config.FromEnv {
		return config.EnvName(key)
	}
	return ""
}

// sandboxHealth returns the health of the sandboxes.
func sandboxHealth(s sandbox.Standing) plugin.Health {
	switch {
	case s.Refused != "", s.Mode == sandbox.Require && len(s.Lacks) > 0: // programs do not start
		return plugin.Failing
	case len(s.Lacks) > 0:
		return plugin.Degraded
	}
	return plugin.Healthy
}

// sandboxReport returns the API's report on sandboxes.
func sandboxReport(boxes *sandbox.Sandboxes, programs []sandboxed) admin.Sandbox {
	s, denials := boxes.Standing(), boxes.Denials()
	out := admin.Sandbox{
		Status: sandboxHealth(s), Summary: s.Summary(), Mode: string(s.Mode), Setting: s.Setting, Backend: s.Best, Why: s.Why, Fix: s.Fix,
		System: s.System, User: s.User, Landlock: s.Landlock, HostProc: s.HostProc,
		Backends: []admin.SandboxBackend{}, Profiles: []admin.SandboxProfile{}, Programs: []admin.SandboxProgram{}, Gaps: []admin.SandboxGap{}, Breaks: []admin.SandboxGap{},
	}
	for _, p := range programs {
		p.Refused = p.refused(s)
		p.Note = otherwise(s, p)
		out.Programs = append(out.Programs, p.SandboxProgram)
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
func sandboxDiagnosis(s sandbox.Standing, started map[string]admin.SandboxProgram) plugin.Diagnosis {
	d := plugin.Diagnosis{Plugin: "sandbox", HealthReport: plugin.HealthReport{Status: sandboxHealth(s), Summary: s.Summary()}}
	if s.Fix != "" { // not in the summary, which a terminal has less room for
		d.Details = append(d.Details, plugin.HealthCheck{Name: "to change that, run", Status: plugin.Degraded, Message: s.Fix})
	}
	if len(s.Lacks) > 0 && s.Mode == sandbox.Require {
		d.Details = append(d.Details, plugin.HealthCheck{Name: "to have programs run with what there is", Status: plugin.Failing, Message: s.Prefer})
	}
	for _, g := range s.Lacking() {
		if s.Best == sandbox.None {
			break // the summary says it
		}
		d.Details = append(d.Details, plugin.HealthCheck{Name: "profiles " + strings.Join(g.Profiles, ", "), Status: plugin.Degraded, Message: g.What + way(s.Lacks[g.Profiles[0]].Way())})
	}
	for _, name := range slices.Sorted(maps.Keys(started)) {
		p := sandboxed{SandboxProgram: started[name]}
		p.Refused = p.refused(s)
		note := otherwise(s, p)
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

// way appends what a person can do.
func way(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// sandboxed is something that yaya starts.
type sandboxed struct {
	admin.SandboxProgram
	needs sandbox.Need // what it is not started without, whatever the mode is
}

// programs says what runs in which profile: agents' commands and checks, and servers.
func programs(all iter.Seq[servers.Server]) []sandboxed {
	out := []sandboxed{
		{SandboxProgram: admin.SandboxProgram{Kind: "commands", Name: "agents' commands", Profile: "command"}},
		{admin.SandboxProgram{Kind: "checks", Name: "checks of agents' work", Profile: "check"}, tool_shell.CheckNeeds},
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
		out = append(out, sandboxed{admin.SandboxProgram{Kind: "server", Name: x.Name, Profile: profile}, mcpbridge.Needs(x, os.LookupEnv, true)})
	}
	slices.SortFunc(out[2:], func(a, b sandboxed) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// programsNow says what runs in which profile now, and with what its sandbox was made.
func (b *bridge) programsNow(all []servers.Server) []sandboxed {
	run := b.serverPrograms()
	out := programs(slices.Values(all))
	for i, p := range out {
		if p.Kind == "server" {
			out[i].Backend = run[p.Name].Backend
		}
	}
	return out
}

// tellSandbox finds out what sandboxes enforce, and logs it unless that is everything.
// It takes a moment, which nothing at the start has to wait for.
func (st *stores) tellSandbox() {
	s := st.sandboxes.Standing()
	switch e := st.at.log.Warn(); sandboxHealth(s) {
	case plugin.Failing:
		st.at.log.Error().Str("fix", s.Fix).Msg("sandbox: " + s.Summary())
	case plugin.Degraded:
		if s.Fix != "" {
			e = e.Str("fix", s.Fix)
		}
		e.Msg("sandbox: " + s.Summary())
	case plugin.Healthy:
	}
}

// sandboxGauges registers the metrics of sandboxes: the back end in use, once it is
// known, and denials.
func (c *core) sandboxGauges() {
	boxes := c.st.sandboxes
	c.metrics.Gauges("yaya_sandbox_backend", "The back end that sandboxes are made with; off enforces nothing.", "backend", func() map[string]float64 {
		if !sandbox.Known() {
			return nil
		}
		s := boxes.Standing()
		if s.Refused != "" {
			return nil
		}
		return map[string]float64{s.Best: 1}
	})
	c.metrics.Counters("yaya_sandbox_denials_total", "Connections that sandboxes have refused, by profile.", "profile", func() map[string]float64 {
		out := map[string]float64{}
		for _, profile := range sandbox.Profiles() {
			out[profile] = 0
		}
		for profile, n := range boxes.Denials() {
			out[profile] = float64(n)
		}
		return out
	})
}

// SandboxAlone returns the report on sandboxes from the settings and this machine, without a daemon.
func (g *Flags) SandboxAlone(p Paths, data *os.Root, settings *config.Store) (admin.Config, error) {
	l, err := manage.Load(p.Servers(), nil)
	if err != nil {
		return admin.Config{}, err
	}
	known, err := p.Folders(data, settings)
	if err != nil {
		return admin.Config{}, err
	}
	if err := l.Here(nil, "", known); err != nil {
		return admin.Config{}, err
	}
	boxes, all := sandboxes(p, settings, g.OwnFiles(p, nil), nil), programs(slices.Values(l.Servers))
	return admin.Config{Sandbox: func() admin.Sandbox { return sandboxReport(boxes, all) }}, nil
}

// NamedPrograms is how many servers a profile names on the terminal.
const NamedPrograms = 6
