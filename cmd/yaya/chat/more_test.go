package chat

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/colorprofile"
)

// The list of commands tells how many more there are, and /help fits on a terminal of 80 columns.
func TestMoreCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := typing(t, "")
		x.keys("/")
		golden(t, "80x24-commands", x.text())
		x.keys(tab)
		if got := x.text(); !strings.Contains(got, "more: Tab or ↓") {
			t.Errorf("the open menu is\n%s\nwant how many more there are", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x, _ := mentioning(t)
		x.keys("/se", tab)
		if got := x.m.input.Value(); got != "/session" || x.m.menu == nil {
			t.Errorf("Tab makes %q of /se, and the menu is %v; want /session, and a menu", got, x.m.menu)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x := start(t, 80, 60, colorprofile.ASCII)
		x.keys("/help", enter)
		golden(t, "80x60-help", x.text())
	})
}

// A fork has a title of its own, and says that it is one.
func TestForkSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, a := asking(t, map[string]string{
			"POST /v1/sessions/sess_1/fork": `{"id":"sess_2"}`,
			"PATCH /v1/sessions/sess_2":     `{}`,
			"GET /v1/sessions/sess_2":       `{"id":"sess_2","title":"Why the build fails (fork)","workspace_path":"/w"}`,
		})
		x.keys("/fork", enter)
		if got := a.take(); !strings.Contains(got, `PATCH /v1/sessions/sess_2 {"title":"Why the build fails (fork)"}`) {
			t.Errorf("sent\n%s\nwant a title of the fork's own", got)
		}
		if got := x.text(); x.m.id != "sess_2" || !strings.Contains(got, "Why the build fails (fork)") || !strings.Contains(got, "you are in the fork sess_2; the other session is sess_1") {
			t.Errorf("the screen is\n%s\nwant that it is the fork", got)
		}
	})
}
