package daemon

import (
	"cmp"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

const maxExtra = 4 << 10 // characters of a text of an author's in the API

// Packages implements [admin.Installer].
func (t *thirdParty) Packages() map[string]admin.Package {
	entries, err := t.store.List()
	if err != nil {
		t.c.st.at.log.Warn().Err(err).Msg("not every installed plugin can be read")
	}
	out := map[string]admin.Package{}
	for _, e := range entries {
		p := admin.Package{Source: e.Source, Resolved: e.Resolved, Editable: e.Editable, Digest: e.Digest, Installed: e.Installed, Permissions: []string{}}
		d, parts, err := t.described(e)
		if err == nil && parts != nil {
			p.Parts = new(admin.Parts)
			*p.Parts, err = packageParts(e.Name, parts, t.c.st.sandboxes)
		}
		if err != nil {
			p.Problem = Printable(OneLine(err.Error()), maxExtra)
		} else {
			p.Description, p.Runs, p.Requires, p.Gets, p.Permissions = d.Description, d.Run, d.Requires, d.Subscriptions, d.Permissions.Lines()
		}
		out[e.Name] = p
	}
	return out
}

// described describes the present files of a plugin. A package that is loaded need not be read.
func (t *thirdParty) described(e installed.Entry) (d remote.Description, _ *agentpackage.Package, err error) {
	if of := t.c.packages.get(e.Name); of != nil && of.e.Digest == e.Digest && !e.Editable {
		return remote.Description{Description: of.parts.Description}, of.parts, nil
	}
	return e.Present()
}

// listHooks returns the hooks for the API.
func (c *core) listHooks() admin.Hooks {
	state, found := c.hooks.State(), c.hooks.Standing()
	out := admin.Hooks{Hooks: []admin.Hook{}, Ignored: append([]string{}, state.Ignored...), Denies: state.Denies}
	if err := cmp.Or(state.Err, found.Err); err != nil {
		out.Problem = Printable(err.Error(), maxExtra)
	}
	conceal := c.st.at.secrets.String
	for _, h := range found.Hooks {
		out.Hooks = append(out.Hooks, admin.Hook{Name: h.Name, Event: string(h.Event), Tool: h.Tool, Command: conceal(h.Command), TimeoutMS: h.Timeout.Milliseconds(), File: h.File})
	}
	return out
}

// listSkills returns the skills for the API.
func (c *core) listSkills() admin.Skills {
	in, done := c.openSkills("")
	defer done()
	set := c.library.Look(in)
	out := admin.Skills{Skills: []admin.Skill{}, Broken: []admin.BrokenSkill{}}
	for _, s := range set.Skills {
		out.Skills = append(out.Skills, admin.Skill{
			Name: s.Name, Description: s.Description, Folder: s.Dir, Project: s.Project, Manual: s.Manual, ShadowedBy: s.ShadowedBy, Tools: s.AllowedTools, Warnings: append([]string{}, s.Warnings...),
		})
	}
	for _, b := range set.Broken {
		out.Broken = append(out.Broken, admin.BrokenSkill{Folder: b.Dir, Reason: Printable(b.Reason, maxExtra)})
	}
	return out
}
