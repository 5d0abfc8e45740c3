package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

func (b *box) skill(dir, name, description, body string) {
	b.t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: "+description+"\n---\n"+body), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Y-13: a model sees the skills of the user, and those of the folder once it is trusted; it
// loads one by its name. MCP clients get the same skills as prompts.
func TestSkills(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	b.skill(filepath.Join(ws, ".agents", "skills"), "theirs", "Releases the project.", "Tag it.")
	b.skill(filepath.Join(b.dir, ".agents", "skills"), "mine", "Writes letters.", "Be polite.")
	b.skill(filepath.Join(b.dir, ".claude", "skills"), "by-hand", "For people.\ndisable-model-invocation: true", "By hand.")
	use, end := fakellm.Step{ToolCalls: []fakellm.Call{{Name: "skill", Args: `{"name":"theirs"}`}}}, fakellm.Step{Text: "done"}
	s := fakellm.New(use, end, use, end)
	defer s.Close()
	b.provider(s)
	b.cwd = ws
	b.serve()
	prompts := func(modern bool) string {
		t.Helper()
		return fmt.Sprint(newRawClient(t, b.url(), modern).must("prompts/list", nil)["prompts"])
	}
	session := fmt.Sprintf(`{"workspace_path":%q}`, ws)
	for _, modern := range []bool{false, true} {
		if got := prompts(modern); !strings.Contains(got, "skills__mine") || !strings.Contains(got, "skills__by-hand") || strings.Contains(got, "theirs") {
			t.Errorf("modern=%v: prompts in a restricted folder = %s, want those of the user alone", modern, got)
		}
		c := newRawClient(t, b.url(), modern)
		if r, err := c.try("prompts/get", map[string]any{"name": "skills__theirs"}); err == nil {
			t.Errorf("modern=%v: prompts/get of a restricted folder's skill = %v, want an error", modern, r)
		}
		if r, err := c.try("prompts/get", map[string]any{"name": "skills__mine"}); err != nil || !strings.Contains(fmt.Sprint(r), "Be polite.") {
			t.Errorf("modern=%v: prompts/get = %v, %v, want the instructions", modern, r, err)
		}
	}
	if all := b.say(session, "hello"); !strings.Contains(all, "there is no skill") {
		t.Errorf("the call of a restricted folder's skill gives %s, want that there is none", all)
	}
	for i, r := range s.Requests() {
		if said := fmt.Sprint(r.Body["messages"]); !strings.Contains(said, "- mine: Writes letters.") || strings.Contains(said, "Releases the project") || strings.Contains(said, "For people") {
			t.Errorf("request %d of a restricted folder: %s, want the user's skill for models alone", i, said)
		}
	}

	b.must("trust", "--yes", ws)
	if got := prompts(true); !strings.Contains(got, "skills__theirs") {
		t.Errorf("prompts in a trusted folder = %s, want its skill", got)
	}
	before := len(s.Requests())
	b.say(session, "hello")
	said := fmt.Sprint(s.Requests()[len(s.Requests())-1].Body["messages"])
	if len(s.Requests()) != before+2 || !strings.Contains(said, "- theirs: Releases the project.") || !strings.Contains(said, "Tag it.") {
		t.Errorf("the last of %d requests in a trusted folder: %s, want the skill and its instructions", len(s.Requests())-before, said)
	}
}

// MIS-6: clients are told when skills come, in both eras.
func TestSkillPromptsChange(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	legacy, modern := newRawClient(t, b.url(), false), newRawClient(t, b.url(), true)
	modern.heard("none://")
	b.skill(filepath.Join(b.dir, ".agents", "skills"), "late", "Comes late.", "Be late.")
	for name, c := range map[string]*rawClient{"legacy": legacy, "modern": modern} {
		if err := c.noted(0, func(m rawMessage) bool { return m.Method == "notifications/prompts/list_changed" }); err != nil {
			t.Errorf("%s: %v, want a notification about the skill", name, err)
		}
		if got := fmt.Sprint(c.must("prompts/list", nil)["prompts"]); !strings.Contains(got, "skills__late") {
			t.Errorf("%s: prompts are %s, want the skill", name, got)
		}
	}
}

// The skills of the examples are as the specification says.
func TestExampleSkills(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if out := b.must("skill", "check", filepath.Join("..", "..", "examples", "skills")); !strings.HasSuffix(out, "/release-notes: ok\n") || strings.Contains(out, "warning") {
		t.Errorf("yaya skill check examples/skills = %q, want one skill without warnings", out)
	}
}
