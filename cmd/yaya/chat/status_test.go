package chat

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/colorprofile"
)

// A folder that is not trusted is named so at the start and in the line below the input, until an answer
// changes that.
func TestRestrictedOnTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, a := asking(t, map[string]string{"GET /v1/sessions/sess_1": `{"id":"sess_1","restricted":true}`})
		x.p.Send(switched{session: Session{ID: "sess_1", Title: "Why the build fails", Workspace: "/home/ada/src/project", Restricted: true}})
		x.settle()
		golden(t, "80x24-restricted", x.text())
		a.put("GET /v1/sessions/sess_1", `{"id":"sess_1"}`)
		x.take(ev("approval_granted", "t1", `{"approval_id":"a1","tool_name":"folder_trust"}`))
		if got := x.m.facts(); strings.Contains(got, "restricted") {
			t.Errorf("after the trust the status is %q", got)
		}
		a.put("GET /v1/sessions/sess_1", `{"id":"sess_1","restricted":true}`)
		x.take(ev("turn_completed", "t1", `{}`)) // the agent has changed what the folder brings
		if got := x.m.facts(); !strings.Contains(got, "restricted") {
			t.Errorf("after a turn that changed the folder the status is %q, want restricted", got)
		}
	})
}

// A long title gives way to what can be done now.
func TestLongTitle(t *testing.T) {
	for _, width := range []int{80, 60, 40} {
		synctest.Test(t, func(t *testing.T) {
			x := start(t, width, 24, colorprofile.ASCII, func(x *terminal) { x.m.title = strings.Repeat("a long title ", 8) })
			x.take(ev("turn_started", "t1", `{"model":"m"}`), ev("queue_changed", "t1", `{"queue":[{"message_id":"m","text":"x"}]}`))
			for _, hint := range []string{"is working", "Esc stops"} {
				if got := x.m.status(); width >= 60 && !strings.Contains(got, hint) {
					t.Errorf("in %d columns the status is %q, want %q in it", width, got, hint)
				}
			}
			if width == 80 && !strings.Contains(x.text(), "a long") {
				t.Errorf("the screen is\n%s\nwant the beginning of the title", x.text())
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t.Context(), nil, "/w")
		m.title, m.errand = strings.Repeat("title ", 9), &errand{what: strings.Repeat("command ", 20)}
		if got := m.status(); !strings.Contains(got, "Esc stops") {
			t.Errorf("while a command runs the status is %q, want Esc stops in it", got)
		}
	})
}
