package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentfile"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/installed"
)

// maxSkillItems is how many skills the question about a folder names one by one, of each
// folder of skills, and how many sub-agents.
const maxSkillItems = 40

// UserSkills are the folders of the user's skills; the first counts most.
func (p Paths) UserSkills() []string {
	return []string{
		filepath.Join(p.Config, "skills"),
		p.SharedSkills(),
		filepath.Join(p.Home, ".claude", "skills"),
	}
}

// UserAgents is the folder of the user's files that describe sub-agents.
func (p Paths) UserAgents() string { return filepath.Join(p.Config, "agents") }

// SharedSkills is the folder of the user's skills that all agents read.
func (p Paths) SharedSkills() string { return filepath.Join(p.Home, ".agents", "skills") }

// inside reports whether a path lies in a folder.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// skillFolder is an open workspace as the library of skills reads it.
func skillFolder(w *workspace.Workspace) *agentskill.Folder {
	return &agentskill.Folder{Root: w.Root(), Dir: w.Dir(), Check: w.Check}
}

// SkillsHere are the skills of the user and of a folder.
type SkillsHere struct {
	agentskill.Set
	// Folder is the folder, "" if agents cannot work in it.
	Folder string
	// Withheld are the folder's skills and broken ones while it is not trusted: no model
	// sees them.
	Withheld agentskill.Set
}

// WithSkills runs f with the skills of a folder, which are open until f returns.
func (g *Flags) WithSkills(dir string, f func(SkillsHere) error) error {
	return g.withFolder(dir, func(p Paths, settings *config.Store, w *workspace.Workspace, st folder.Status) error {
		l, here := agentskill.NewLibrary(p.UserSkills()...), SkillsHere{Folder: st.Folder}
		l.Also(func() []string { return installedSkills(p, settings) })
		switch {
		case w == nil:
			here.Set = l.Look(nil)
		case st.Trusted:
			here.Set = l.Look(skillFolder(w))
		default:
			here.Set, here.Withheld = l.Look(nil), agentskill.NewLibrary().Look(skillFolder(w))
		}
		return f(here)
	})
}

// Agents returns the files of sub-agents of the user and, if a folder is trusted, of that.
func (g *Flags) Agents(dir string) (set agentfile.Set, err error) {
	err = g.withFolder(dir, func(p Paths, _ *config.Store, w *workspace.Workspace, st folder.Status) error {
		var in *agentskill.Folder
		if w != nil && st.Trusted {
			in = skillFolder(w)
		}
		set = agentfile.Look(in, p.UserAgents())
		return nil
	})
	return set, err
}

// installedSkills are the folders of skills of the installed packages that are switched on.
func installedSkills(p Paths, settings *config.Store) (out []string) {
	p.eachPackage(settings, func(e installed.Entry, parts *agentpackage.Package) {
		out = append(out, skillFolders(e.Folder(), parts)...)
	})
	return out
}

// eachPackage visits the installed packages for agents that are switched on, without a daemon. Those
// that cannot be read are left out: yaya plugin list says why.
func (p Paths) eachPackage(settings *config.Store, visit func(installed.Entry, *agentpackage.Package)) {
	data, err := os.OpenRoot(p.Data)
	if err != nil {
		return // there are none
	}
	defer func() { _ = data.Close() }()
	entries, _ := installed.NewStore(data).List() // those that can be read
	for _, e := range entries {
		if !switchedOn(settings, e.Name) {
			continue
		}
		if _, parts, err := e.Describe(); parts != nil && err == nil {
			visit(e, parts)
		}
	}
}

// withFolder runs f with a folder, which is open until f returns, and its status. The workspace
// is nil if agents cannot work in it, as in the home folder.
func (g *Flags) withFolder(dir string, f func(p Paths, settings *config.Store, w *workspace.Workspace, st folder.Status) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	p, err := g.Paths()
	if err != nil {
		return err
	}
	data, settings, err := g.Open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	known, err := p.Folders(data, settings)
	if err != nil {
		return err
	}
	w, st, err := known.Open(dir)
	if w != nil {
		defer func() { _ = w.Close() }()
	}
	if errors.Is(err, workspace.ErrOwn) {
		return f(p, settings, nil, folder.Status{})
	}
	if err != nil {
		return err
	}
	return f(p, settings, w, st)
}

// openSkills is openTrusted for the library of skills.
func (c *core) openSkills(session string) (in *agentskill.Folder, done func()) {
	w, done := c.openTrusted(session)
	return skillsOf(w, done)
}

// lookAtSkills is openSkills for what a model is told in a request.
func (c *core) lookAtSkills(session string) (in *agentskill.Folder, done func()) {
	w, done := trusted(c.gate.Look(session))
	return skillsOf(w, done)
}

// restrictedAgent says why the file of a session's folder that describes a sub-agent is not read; ""
// for a folder that is trusted, or that has no such file.
func (c *core) restrictedAgent(session, name string) string {
	w, trusted, err := c.gate.Open(session)
	if w == nil {
		return ""
	}
	defer func() { _ = w.Close() }() // nothing was written
	if err != nil || trusted {
		return ""
	}
	set := agentfile.Look(skillFolder(w), "")
	has := slices.ContainsFunc(set.Files, func(f agentfile.File) bool { return f.Name == name })
	if !has && !slices.ContainsFunc(set.Broken, func(b agentfile.Broken) bool { return b.Name == name }) {
		return ""
	}
	return c.gate.Restricted(session)
}

// agentsOf says which files of a folder that describe sub-agents cannot be used, if the folder is
// trusted; nothing of the folder that yaya works in, whose files the health check has.
func (c *core) agentsOf(dir string) []plugin.Diagnosis {
	w, st, err := c.st.folders.Open(dir)
	w, done := trusted(w, st.Trusted, err)
	defer done()
	if own, err := folder.Resolve(c.st.workspace); w == nil || err == nil && own == st.Folder {
		return nil
	}
	h := c.helpers.Folder(skillFolder(w))
	if h.Status == plugin.Healthy {
		return nil
	}
	h.Summary = "in " + st.Folder + ": " + h.Summary
	return []plugin.Diagnosis{{Plugin: c.helpers.Manifest().Name, HealthReport: h}}
}

func skillsOf(w *workspace.Workspace, done func()) (*agentskill.Folder, func()) {
	if w == nil {
		return nil, done
	}
	return skillFolder(w), done
}

// openTrusted opens the folder that a session works in, if it is trusted; otherwise the
// workspace is nil. The session "" works where yaya does.
func (c *core) openTrusted(session string) (w *workspace.Workspace, done func()) {
	if session == "" {
		w, st, err := c.st.folders.Open(c.st.workspace)
		return trusted(w, st.Trusted, err)
	}
	return trusted(c.gate.Open(session))
}

// trusted returns an open folder if it is trusted.
func trusted(w *workspace.Workspace, is bool, err error) (_ *workspace.Workspace, done func()) {
	if w == nil {
		return nil, func() {}
	}
	done = func() { _ = w.Close() } // nothing was written
	if err != nil || !is {
		done()
		return nil, func() {}
	}
	return w, done
}

// skillItems are the skills of a folder, as the question about it shows them. Broken ones
// count: they can be mended after the answer.
func skillItems(l *agentskill.Library, w *workspace.Workspace) (out []folder.Item) {
	set := l.Look(skillFolder(w))
	by := map[string][]string{} // folder of skills → names
	add := func(dir string) {
		if rel, err := filepath.Rel(w.Dir(), dir); err == nil {
			at := filepath.Dir(rel)
			by[at] = append(by[at], rel)
		}
	}
	for _, f := range set.Skills {
		add(f.Dir)
	}
	for _, b := range set.Broken {
		add(b.Dir)
	}
	for at, names := range by {
		if len(names) > maxSkillItems {
			sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
			out = append(out, folder.Item{Kind: folder.Skill, Name: at, Runs: fmt.Sprintf("%d skills", len(names)), Digest: hex.EncodeToString(sum[:])})
			continue
		}
		for _, name := range names {
			out = append(out, folder.Item{Kind: folder.Skill, Name: name})
		}
	}
	return out
}

// agentItems are the files of a folder that describe sub-agents. Broken ones count: they can be mended
// after the answer.
func agentItems(w *workspace.Workspace) (out []folder.Item) {
	set := agentfile.Look(skillFolder(w), "")
	var names []string
	add := func(name string) {
		if rel, err := filepath.Rel(w.Dir(), name); err == nil {
			names = append(names, rel)
		}
	}
	for _, f := range set.Files {
		add(f.Path)
	}
	for _, b := range set.Broken {
		add(b.Path)
	}
	if len(names) > maxSkillItems {
		sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
		return []folder.Item{{Kind: folder.Agent, Name: agentfile.ProjectFolder, Runs: fmt.Sprintf("%d sub-agents", len(names)), Digest: hex.EncodeToString(sum[:])}}
	}
	for _, name := range names {
		out = append(out, folder.Item{Kind: folder.Agent, Name: name})
	}
	return out
}
