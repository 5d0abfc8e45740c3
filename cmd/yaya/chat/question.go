package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/callargs"
	"github.com/yaya-ai/yaya/internal/screen"
)

// question renders a question in full.
func (m *model) question() []string {
	if len(m.t.asks) == 0 {
		return nil
	}
	a := m.t.asks[0]
	what := heading(a)
	shown, folder := FolderQuestion(a)
	if folder {
		what = "do you trust this folder?"
	}
	plan, isPlan := planOf(a)
	if isPlan {
		what = screen.Clean(a.Brief, 200) + "?"
	}
	out := []string{screen.Paint(m.palette.Accent, strings.Repeat("═", m.width)), screen.Paint(screen.Bold+m.palette.Accent, "yaya asks: ") + what}
	switch {
	case isPlan:
		for _, l := range screen.Exactly(m.palette, plan, m.width-2) {
			out = append(out, "  "+l)
		}
	case folder:
		for _, l := range screen.Lines(shown, m.width-2) {
			out = append(out, "  "+l)
		}
	default:
		out = append(out, m.arguments(a.Tool, a.Input)...)
	}
	wait := ""
	if m.now().Sub(m.since) < arming {
		wait = screen.Faint
	}
	var more []string
	if n := len(m.t.asks) - 1; n > 0 {
		more = append(more, fmt.Sprintf("%d more", n))
	}
	if d, err := time.Parse(time.RFC3339, a.Deadline); err == nil {
		more = append(more, "until "+d.Local().Format(time.TimeOnly))
	}
	if len(more) > 0 {
		out = append(out, screen.Paint(screen.Faint, strings.Join(more, ", ")))
	}
	key := func(name string) string { return screen.Paint(wait+screen.Bold, name) }
	by := func(alt, typed, does string) string { return key(alt) + " or " + key(typed) + " " + does }
	keys := []string{by("Alt+Y", "y", "yes")}
	switch {
	case folder:
		keys = append(keys, by("Alt+S", "s", "yes, for this session"))
	case m.later(a):
		keys = append(keys, by("Alt+S", "s", "yes, and later edits, too"))
	case !isPlan: // each plan is another one
		keys = append(keys, by("Alt+S", "s", "yes, the same later, too"))
	}
	return append(out, m.flow(append(keys, by("Alt+N", "n", "no (input is the reason)")))...)
}

// flow puts parts on as few lines as hold them whole.
func (m *model) flow(parts []string) (out []string) {
	line := ""
	for _, p := range parts {
		if line != "" && ansi.StringWidth(line)+2+ansi.StringWidth(p) > m.width {
			out, line = append(out, line), ""
		}
		if line != "" {
			line += "  "
		}
		line += p
	}
	return append(out, strings.Split(ansi.Wrap(line, m.width, ""), "\n")...)
}

// later reports whether an answer for the session lets the agent make later edits. In a session that does
// so already yaya asks about files that configure something, each by itself.
func (m *model) later(a Ask) bool { return callargs.Changes(a.Tool) && m.t.mode != editMode }

// planTool is the tool that hands in a plan.
const planTool = "propose_plan"

// Plan is planOf with the invisible characters of the plan made visible.
func Plan(a Ask) (string, bool) {
	plan, ok := planOf(a)
	return screen.CleanText(plan), ok
}

// planOf returns the plan that a question is about, if its only argument is one: the rest of others is
// shown, too.
func planOf(a Ask) (string, bool) {
	if a.Tool != planTool || a.Brief == "" {
		return "", false
	}
	args := callargs.Read(a.Input)
	if len(args) != 1 || args[0].Name != "plan" {
		return "", false
	}
	return args[0].Text()
}

// arguments renders what a call would do: a patch as a patch, a command as sh receives it, other
// arguments by name. A line of a text of several lines stands behind a bar.
func (m *model) arguments(tool string, input json.RawMessage) (out []string) {
	for _, l := range callargs.Lines(tool, input) {
		indent := "  "
		if l.Inner {
			indent = "  │ "
		}
		style := m.signStyle(l.Sign)
		for _, text := range screen.Lines(l.Head+l.Text, m.width-len([]rune(indent))) {
			out = append(out, indent+screen.Paint(style, text))
		}
	}
	return out
}

// signStyle returns the style of a line of a patch by its first character.
func (m *model) signStyle(sign byte) string {
	return screen.DiffStyle(m.palette, string(rune(sign)))
}
