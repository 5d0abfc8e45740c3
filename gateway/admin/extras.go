package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

type (
	// Hooks are those of the user, and of the folder that yaya runs in if it is trusted.
	Hooks struct {
		Hooks   []Hook   `json:"hooks"`
		Ignored []string `json:"ignored" doc:"hooks of Claude Code that yaya does not run"`
		Problem string   `json:"problem,omitempty" doc:"why a file cannot be read"`
		Denies  bool     `json:"denies" doc:"calls of tools are denied because of the problem"`
	}
	// Hook is a command that runs at an event.
	Hook struct {
		Name      string `json:"name"`
		Event     string `json:"event"`
		Tool      string `json:"tool,omitempty" doc:"which tools it is for; absent: all, or none at this event"`
		Command   string `json:"command"`
		TimeoutMS int64  `json:"timeout_ms"`
		File      string `json:"file"`
	}
	// Skills are those of the user, and of the folder that yaya runs in if it is trusted.
	Skills struct {
		Skills []Skill       `json:"skills"`
		Broken []BrokenSkill `json:"broken" doc:"folders that would be skills"`
	}
	// Skill is instructions that agents can use.
	Skill struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Folder      string   `json:"folder"`
		Project     bool     `json:"project" doc:"of the folder that yaya runs in"`
		Manual      bool     `json:"manual" doc:"only a person uses it: models do not see it"`
		ShadowedBy  string   `json:"shadowed_by,omitempty" doc:"the folder of the skill of its name that counts instead"`
		Tools       string   `json:"allowed_tools,omitempty" doc:"what it says of tools; it permits nothing"`
		Warnings    []string `json:"warnings"`
	}
	// BrokenSkill is a folder that would be a skill, but for the reason.
	BrokenSkill struct {
		Folder string `json:"folder"`
		Reason string `json:"reason"`
	}
)

// Package is how a plugin was installed, and what it may do.
type Package struct {
	Source      string    `json:"source" doc:"where it was installed from, with the exact version"`
	Resolved    string    `json:"resolved,omitempty" doc:"what the version was: a commit, or the digest of the package"`
	Editable    bool      `json:"editable" doc:"changes of its files run without another question"`
	Digest      string    `json:"digest,omitempty" doc:"of its files, which must not change; absent if it is editable"`
	Installed   time.Time `json:"installed"`
	Description string    `json:"description,omitempty" doc:"by its author"`
	Runs        []string  `json:"runs,omitempty" doc:"its program and arguments"`
	Requires    []string  `json:"requires,omitempty" doc:"plugins that are loaded before"`
	Gets        []string  `json:"gets,omitempty" doc:"kinds of events that it gets"`
	Permissions []string  `json:"permissions" doc:"its permissions, as sentences"`
	Parts       *Parts    `json:"parts,omitempty" doc:"of a package for agents, which has no program"`
	Problem     string    `json:"problem,omitempty" doc:"why its description cannot be read"`
}

// describe adds to the installed plugins how they were installed, and what they may do.
func (a *API) describe(all []Plugin) {
	if a.cfg.Installer == nil {
		return
	}
	packages := a.cfg.Installer.Packages()
	for i := range all {
		if of, ok := packages[all[i].Name]; ok && !all[i].Bundled {
			all[i].Package = &of
		}
	}
}

func (a *API) extraRoutes() {
	hooks := routes{a, "hooks", a.cfg.Hooks != nil, "hooks"}
	handle(hooks, "GET", "/api/hooks", "listHooks", api.For(auth.ConfigRead), "List the hooks, in the order in which they run", http.StatusOK, func(context.Context, *none) (*struct{ Body Hooks }, error) {
		return &struct{ Body Hooks }{a.cfg.Hooks()}, nil
	})
	skills := routes{a, "skills", a.cfg.Skills != nil, "skills"}
	handle(skills, "GET", "/api/skills", "listSkills", api.For(auth.ConfigRead), "List the skills", http.StatusOK, func(context.Context, *none) (*struct{ Body Skills }, error) {
		return &struct{ Body Skills }{a.cfg.Skills()}, nil
	})
}
