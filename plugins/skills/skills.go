// Package skills offers Agent Skills to models: folders with a SKILL.md, of the user and of
// trusted folders (see internal/agentskill).
//
// A model sees the names and descriptions in its system prompt, in at most one percent of its
// window ([Plugin.Catalogue]), and loads what it uses with the tool skill: the instructions,
// single files of a skill, and skills for which the catalogue has no room. Folders are read
// again for every turn and every call, so a change on the disk holds at the next one. Skills
// of a folder that is not trusted do not exist for a session. A skill grants nothing: its
// allowed-tools are not approved.
//
// The package has two plugins, since a plugin has one category: skills (skill), which follows
// the messages of users and announces the skills of a session when they change, and tool-skill.
// All methods are safe for concurrent use; the package starts no goroutine.
package skills

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

const (
	maxSessions = 4096 // whose last announcement is remembered
	maxDetails  = 20   // broken skills that one report names
)

// Found is announced when the skills of a session have changed since its last message.
type Found struct {
	Skills []string `json:"skills"`
	// Broken are folders that are not used, with the reasons.
	Broken []string `json:"broken,omitempty"`
}

// Changed is the event of [Found].
var Changed = event.DefineExtension[Found]("x.skills.changed", event.Reliable)

// Config assembles a [Plugin]. Library and Open are required.
type Config struct {
	Library *agentskill.Library
	// Open opens the folder that a session works in, if it is trusted; otherwise the folder
	// is nil. The session "" is yaya itself. close ends the use of the folder.
	Open func(session string) (in *agentskill.Folder, close func())
	// Look is Open for the catalogue, which a request of a model has, and for what is announced
	// beside it; nil means Open.
	Look func(session string) (in *agentskill.Folder, close func())
	// Hidden reports whether commands of agents cannot read a folder; nil means that they
	// read all.
	Hidden func(dir string) bool
}

// Plugin is the plugin skills.
type Plugin struct {
	cfg Config

	mu        sync.Mutex
	announced map[string]string // by session
}

// New returns the plugin.
func New(cfg Config) *Plugin {
	if cfg.Look == nil {
		cfg.Look = cfg.Open
	}
	if cfg.Hidden == nil {
		cfg.Hidden = func(string) bool { return false }
	}
	return &Plugin{cfg: cfg, announced: map[string]string{}}
}

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "skills", Version: "0.1.0", Category: plugin.Skill}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string { return []string{event.UserMessageReceived.Name()} }

// OnLoad implements [plugin.Plugin].
func (*Plugin) OnLoad(context.Context, plugin.Context) error { return nil }

// OnUnload implements [plugin.Plugin].
func (*Plugin) OnUnload(context.Context, plugin.Context) error { return nil }

// OnEvent implements [plugin.Plugin]: it announces the skills of a session if they have
// changed.
func (p *Plugin) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	in, done := p.cfg.Look(ev.SessionID)
	defer done()
	set := p.cfg.Library.Look(in)
	out := Found{Skills: []string{}}
	for _, f := range set.Counting() {
		out.Skills = append(out.Skills, f.Name)
	}
	for _, b := range set.Broken {
		if len(out.Broken) == maxDetails {
			break
		}
		out.Broken = append(out.Broken, fmt.Sprintf("%+q: %s", b.Dir, b.Reason))
	}
	if !p.news(ev.SessionID, strings.Join(out.Skills, "\n")+"\n\n"+strings.Join(out.Broken, "\n")) {
		return nil
	}
	for _, b := range out.Broken {
		c.Log().Warn().Str("session", ev.SessionID).Str("skill", b).Msg("a skill cannot be used: yaya skill check shows all")
	}
	return c.Emit(Changed.Name(), ev.SessionID, out)
}

// news reports whether a session has other skills than at its last message; the first
// message announces none.
func (p *Plugin) news(session, what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.announced[session]
	if len(p.announced) >= maxSessions && !known {
		clear(p.announced)
	}
	p.announced[session] = what
	return was != what && (known || what != "\n\n")
}

// HealthCheck implements [plugin.HealthChecker]: it names broken skills.
func (p *Plugin) HealthCheck(context.Context, plugin.Context) plugin.HealthReport {
	in, done := p.cfg.Open("")
	defer done()
	set := p.cfg.Library.Look(in)
	n := len(set.Counting())
	if len(set.Broken) == 0 {
		return plugin.HealthReport{Status: plugin.Healthy, Summary: fmt.Sprintf("skills that can be used: %d", n)}
	}
	r := plugin.HealthReport{Status: plugin.Degraded, Summary: fmt.Sprintf("skills that can be used: %d; broken: %d (yaya skill check)", n, len(set.Broken))}
	for i, b := range set.Broken {
		if i == maxDetails {
			break
		}
		r.Details = append(r.Details, plugin.HealthCheck{Name: fmt.Sprintf("%+q", b.Dir), Status: plugin.Degraded, Message: b.Reason})
	}
	return r
}

// forModels are the skills that count, and that models may use on their own: those of the
// folder first.
func forModels(set agentskill.Set) []agentskill.Found {
	all := slices.DeleteFunc(set.Counting(), func(f agentskill.Found) bool { return f.Manual })
	slices.SortStableFunc(all, func(a, b agentskill.Found) int {
		switch {
		case a.Project == b.Project:
			return 0
		case a.Project:
			return -1
		}
		return 1
	})
	return all
}
