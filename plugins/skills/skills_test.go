package skills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/skills"
)

type fakeContext struct {
	plugin.Context
	tool    tool.Tool
	emitted []skills.Found
}

func (*fakeContext) Log() *zerolog.Logger             { l := zerolog.Nop(); return &l }
func (c *fakeContext) RegisterTool(t tool.Tool) error { c.tool = t; return nil }
func (c *fakeContext) Emit(kind, _ string, payload any) error {
	if kind == skills.Changed.Name() {
		c.emitted = append(c.emitted, payload.(skills.Found))
	}
	return nil
}

type world struct {
	t             *testing.T
	project, user string
	trusted       bool
	p             *skills.Plugin
	c             *fakeContext
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, project: t.TempDir(), user: t.TempDir(), c: &fakeContext{}}
	w.p = skills.New(skills.Config{Library: agentskill.NewLibrary(w.user), Open: func(string) (*agentskill.Folder, func()) {
		if !w.trusted {
			return nil, func() {}
		}
		root, err := os.OpenRoot(w.project)
		if err != nil {
			t.Fatal(err)
		}
		return &agentskill.Folder{Root: root, Dir: w.project}, func() { _ = root.Close() }
	}, Hidden: func(dir string) bool { return strings.HasPrefix(dir, w.user) }})
	if err := w.p.Tool().OnLoad(t.Context(), w.c); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) skill(dir, name, description, body string) {
	w.t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		w.t.Fatal(err)
	}
	front, err := json.Marshal(description) // JSON is YAML
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: "+string(front)+"\n---\n"+body), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) use(args string) (string, bool) {
	w.t.Helper()
	r, err := w.c.tool.Invoke(w.t.Context(), tool.Call{SessionID: "s", Args: json.RawMessage(args)})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Text(), r.OK
}

// A folder's skills exist once it is trusted; the catalogue has them first; a change on the
// disk is seen by the next call.
func TestCatalogueAndTool(t *testing.T) {
	w := newWorld(t)
	if got := w.p.Catalogue("s", 128_000, nil); got != "" {
		t.Errorf("Catalogue() without skills = %q, want nothing", got)
	}
	w.skill(w.user, "mine", "Writes letters.", "Be polite.")
	w.skill(w.project+"/.agents/skills", "theirs", "Releases the \u202eproject\x1b[31m.\nNow.", "Run scripts/go.sh.")
	if err := os.WriteFile(w.project+"/.agents/skills/theirs/x.md", []byte("more"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := w.p.Catalogue("s", 128_000, nil)
	if !strings.Contains(got, "- mine: Writes letters.\n") || strings.Contains(got, "theirs") {
		t.Errorf("Catalogue() in a restricted folder = %q, want mine alone", got)
	}
	for _, args := range []string{`{"name":"theirs"}`, `{"name":"theirs","file":"x.md"}`} {
		if text, ok := w.use(args); ok || !strings.Contains(text, "there is no skill") {
			t.Errorf("%s in a restricted folder = %q, %v, want that there is none", args, text, ok)
		}
	}
	if text, _ := w.use(`{"find":"project"}`); strings.Contains(text, "theirs") {
		t.Errorf("find in a restricted folder = %q, want nothing of the folder", text)
	}
	w.trusted = true
	got = w.p.Catalogue("s", 128_000, nil)
	if !strings.HasSuffix(got, "\n- theirs: Releases the project[31m. Now.\n- mine: Writes letters.\n") {
		t.Errorf("Catalogue() = %q, want theirs first, on one line, without hidden characters", got)
	}
	if got := w.p.Catalogue("s", 128_000, []string{"read_file"}); got != "" {
		t.Errorf("Catalogue() without the tool = %q, want nothing", got)
	}
	for args, want := range map[string]string{
		`{"name":"theirs"}`:                          "Run scripts/go.sh.\n\nFolder of the skill: " + w.project + "/.agents/skills/theirs",
		`{"name":"theirs","file":"x.md"}`:            "more",
		`{"name":"mine"}`:                            "Commands cannot reach the files",
		`{"find":"PROJECT releases"}`:                "- theirs: ",
		`{"find":"nothing"}`:                         "There are 2 skills",
		`{"name":"theirs","file":"../../../x"}`:      "not a path inside",
		`{"name":"theirs","file":"/etc/passwd"}`:     "not a path inside",
		`{"name":"none"}`:                            "there is no skill",
		`{}`:                                         "give either name or find",
		`{"name":"mine","find":"x"}`:                 "give either name or find",
		`{"name":"theirs","file":"SKILL.md"}`:        "name: theirs",
		`{"name":"theirs","file":"no/such/file.md"}`: "no such file",
	} {
		if text, _ := w.use(args); !strings.Contains(text, want) {
			t.Errorf("skill %s = %q, want %q", args, text, want)
		}
	}
	w.skill(w.user, "mine", "Writes songs.", "Rhyme.")
	if text, _ := w.use(`{"name":"mine"}`); !strings.Contains(text, "Rhyme.") {
		t.Errorf("after a change the skill says %q, want its new text", text)
	}
}

// The catalogue takes at most one percent of the window, at three bytes a token, and finds the
// rest by the tool.
func TestCatalogueIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 400 {
		w.skill(w.user, fmt.Sprintf("skill-%03d", i), fmt.Sprintf("Number %d. %s", i, strings.Repeat("long ", 180)), "")
	}
	for _, window := range []int{0, 4_000, 16_000, 128_000, 2_000_000, 20_000_000} {
		got := w.p.Catalogue("s", window, nil)
		if room := window / 100 * 3; len(got) > room {
			t.Errorf("window %d: the catalogue has %d bytes, want at most %d", window, len(got), room)
		}
		listed := strings.Count(got, "\n- ")
		if window >= 16_000 && (listed == 0 || (listed < 400) != strings.Contains(got, fmt.Sprintf("%d more skills", 400-listed))) {
			t.Errorf("window %d: %d skills are listed, and the end is %q", window, listed, got[max(0, len(got)-100):])
		}
		if window >= 2_000_000 && listed != 400 {
			t.Errorf("window %d: %d skills are listed, want all", window, listed)
		}
	}
	if text, _ := w.use(`{"find":"skill-399"}`); !strings.HasPrefix(text, "- skill-399: ") {
		t.Errorf("find = %.60q, want the skill that is not listed", text)
	}
}

// Y-13: the plugin follows the messages of users, and announces what has changed.
func TestAnnouncements(t *testing.T) {
	w := newWorld(t)
	if m := w.p.Manifest(); m.Category != plugin.Skill || m.Check() != nil {
		t.Errorf("Manifest() = %+v, want category skill", m)
	}
	if got := w.p.Subscriptions(); len(got) != 1 || got[0] != event.UserMessageReceived.Name() {
		t.Errorf("Subscriptions() = %q, want user.message.received", got)
	}
	say := func() int {
		t.Helper()
		if err := w.p.OnEvent(context.Background(), event.Event{SessionID: "s", Kind: event.UserMessageReceived.Name()}, w.c); err != nil {
			t.Fatal(err)
		}
		return len(w.c.emitted)
	}
	if n := say(); n != 0 {
		t.Errorf("without skills: %d announcements, want none", n)
	}
	w.skill(w.user, "mine", "Writes letters.", "")
	w.skill(w.user, "Wrong", "x", "")
	for range 2 {
		if n := say(); n != 1 {
			t.Errorf("%d announcements, want one of the change", n)
		}
	}
	if f := w.c.emitted[0]; len(f.Skills) != 1 || len(f.Broken) != 1 || !strings.Contains(f.Broken[0], "is not lowercase") {
		t.Errorf("announced %+v, want mine, and Wrong with the reason", f)
	}
	h := w.p.HealthCheck(context.Background(), w.c)
	if h.Status != plugin.Degraded || len(h.Details) != 1 || !strings.Contains(h.Details[0].Message, "is not lowercase") {
		t.Errorf("HealthCheck() = %+v, want the broken skill with the reason", h)
	}
}
