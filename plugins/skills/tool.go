package skills

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/invisible"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// ToolName is the name of the tool with which models use skills.
const ToolName = "skill"

const (
	maxHits  = 20
	maxWords = 16
)

// Tool returns the plugin tool-skill.
func (p *Plugin) Tool() plugin.Plugin { return &toolPlugin{p} }

type toolPlugin struct{ p *Plugin }

// Manifest implements [plugin.Plugin].
func (*toolPlugin) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "tool-skill", Version: "0.1.0", Category: plugin.Tool, Requires: []string{"skills"}}
}

// Subscriptions implements [plugin.Plugin].
func (*toolPlugin) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*toolPlugin) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnUnload implements [plugin.Plugin].
func (*toolPlugin) OnUnload(context.Context, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin].
func (t *toolPlugin) OnLoad(_ context.Context, c plugin.Context) error {
	use, err := tool.New(tool.Definition{
		Name: ToolName, Title: "Skill", Kind: tool.KindRead, ForAgents: true,
		Description: "Loads the instructions of a skill by its name, or with file one of the skill's files. With find, it lists the skills whose names and descriptions have the words.",
	}, t.p.use)
	if err != nil {
		return err
	}
	return c.RegisterTool(use)
}

type useArgs struct {
	Name string `json:"name,omitempty" jsonschema:"the skill"`
	File string `json:"file,omitempty" jsonschema:"a file of the skill, relative to its folder"`
	Find string `json:"find,omitempty" jsonschema:"words to look for, instead of a name"`
}

func (p *Plugin) use(_ context.Context, call tool.Call, a useArgs) (tool.Result, error) {
	if (a.Name == "") == (a.Find == "") {
		return tool.Fail(tool.ErrValidation, "give either name or find"), nil
	}
	in, done := p.cfg.Open(call.SessionID)
	defer done()
	all := forModels(p.cfg.Library.Look(in))
	if a.Find != "" {
		return find(all, a.Find), nil
	}
	i := slices.IndexFunc(all, func(f agentskill.Found) bool { return f.Name == a.Name })
	if i < 0 {
		return tool.Fail(tool.ErrNotFound, "there is no skill %q; find lists those that there are", cut.Text(a.Name, 100)), nil
	}
	f := all[i]
	if a.File != "" {
		text, err := f.Text(a.File)
		if err != nil {
			return tool.Fail(tool.ErrTool, "skill %s: %v", f.Name, err), nil
		}
		return tool.OK(f.Name+": "+cut.Text(a.File, 60), tool.Text(text)), nil
	}
	text, err := p.Content(f)
	if err != nil {
		return tool.Fail(tool.ErrTool, "skill %s: %v", f.Name, err), nil
	}
	return tool.OK("skill "+f.Name, tool.Text(text)), nil
}

// Content returns the instructions of a skill as a model gets them: with its folder and the
// names of its files.
func (p *Plugin) Content(f agentskill.Found) (string, error) {
	body, err := f.Body()
	if err != nil {
		return "", err
	}
	files, unlisted, err := f.Files()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<skill_content name=%q>\n%s\n\n", f.Name, body)
	if f.Compatibility != "" {
		fmt.Fprintf(&b, "Needs: %s\n", cut.Line(invisible.Plain(f.Compatibility), agentskill.MaxCompatibility))
	}
	if p.cfg.Hidden(f.Dir) {
		b.WriteString("Commands cannot reach the files of this skill: read them with this tool (file).\n")
	} else {
		fmt.Fprintf(&b, "Folder of the skill: %s\nPaths in it are relative to this folder. Read its files with this tool (file).\n", invisible.Plain(f.Dir))
	}
	if len(files) > 0 {
		b.WriteString("<skill_resources>\n")
		for _, name := range files {
			fmt.Fprintf(&b, "<file>%s</file>\n", html.EscapeString(invisible.Plain(name)))
		}
		if unlisted {
			b.WriteString("<!-- there are more -->\n")
		}
		b.WriteString("</skill_resources>\n")
	}
	b.WriteString("</skill_content>")
	return b.String(), nil
}

// find ranks skills by how many of the words they have; a word in the name counts more.
func find(all []agentskill.Found, words string) tool.Result {
	wanted := strings.Fields(strings.ToLower(words))
	wanted = wanted[:min(len(wanted), maxWords)]
	type hit struct {
		f     agentskill.Found
		score int
	}
	var hits []hit
	for _, f := range all {
		h := hit{f: f}
		text := strings.ToLower(f.Description)
		for _, w := range wanted {
			if strings.Contains(f.Name, w) {
				h.score += 3
			}
			if strings.Contains(text, w) {
				h.score++
			}
		}
		if h.score > 0 {
			hits = append(hits, h)
		}
	}
	if len(hits) == 0 {
		return tool.OK("no skill", tool.Text(fmt.Sprintf("No skill has these words. There are %d skills.", len(all))))
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var b strings.Builder
	for i, h := range hits {
		if i == maxHits {
			fmt.Fprintf(&b, "… %d more: use other words\n", len(hits)-i)
			break
		}
		b.WriteString(line(h.f.Skill, agentskill.MaxDescription))
	}
	return tool.OK(fmt.Sprintf("%d skills", len(hits)), tool.Text(b.String()))
}
