package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// /plan has the session plan, /edits change files without a question; off ends that, and the transcript says which of them is so.
func TestPlanCommand(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(body)))
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	m := newModel(t.Context(), &Client{HTTP: srv.Client(), Base: srv.URL}, "/w")
	m.id = "sess_1"
	var told []string
	m.send = func(msg tea.Msg) { told = append(told, fmt.Sprint(msg)) }
	for _, c := range []struct{ mode, line, request, told string }{
		{"work", "/plan", "plan", ""},
		{"work", "/plan off", "", "may work already"},
		{"plan", "/plan", "", "plans already"},
		{"plan", "/edits off", "", "plans already"},
		{"plan", "/plan off", "work", ""},
		{"edits", "/plan off", "", "may work already"},
		{"edits", "/plan", "plan", ""},
		{"work", "/edits", "edits", ""},
		{"work", "/edits off", "", "asks already"},
		{"edits", "/edits", "", "without a question already"},
		{"edits", "/edits off", "work", ""},
		{"plan", "/edits", "edits", ""},
	} {
		m.t.mode, got, told = c.mode, nil, nil
		do, err := m.parse(c.line)
		if err == nil {
			err = do()
		}
		want := ""
		if c.request != "" {
			want = `PATCH /v1/sessions/sess_1 {"mode":"` + c.request + `"}`
		}
		if said := strings.Join(told, "\n"); err != nil || strings.Join(got, "\n") != want || !strings.Contains(said, c.told) || (said == "") != (c.told == "") {
			t.Errorf("in the mode %s, %s: %v, requests %q, answers %q, want %q and %q", c.mode, c.line, err, got, said, want, c.told)
		}
	}
	for _, line := range []string{"/plan soon", "/edits soon"} {
		do, err := m.parse(line)
		if err == nil {
			err = do()
		}
		if err == nil {
			t.Errorf("%s = nil error, want one", line)
		}
	}
	for mode, want := range map[string]string{"plan": "only reads until you approve its plan", "work": "the agent may work", "edits": "changes files without a question"} {
		var tr transcript
		tr.take(Event{Type: "mode_changed", Data: json.RawMessage(`{"mode":"` + mode + `"}`)})
		if len(tr.blocks) != 1 || !strings.Contains(tr.blocks[0].text, want) {
			t.Errorf("mode_changed to %s: %+v, want a note with %q", mode, tr.blocks, want)
		}
	}
}

// "Yes, and later edits" approves the edit and sets the mode of the session; of other calls it approves the
// same one. The mode stays if the edit cannot be approved, because somebody else has answered.
func TestLaterEditsAreAMode(t *testing.T) {
	var got []string
	refuse := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+strings.TrimSpace(string(body)))
		if refuse {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	m := newModel(t.Context(), &Client{HTTP: srv.Client(), Base: srv.URL}, "/w")
	m.id = "sess_1"
	m.now = func() time.Time { return m.since.Add(time.Hour) }
	for _, c := range []struct {
		tool, key string
		refuse    bool
		want      []string
	}{
		{"edit", "yes, the same later, too", false, []string{`POST {"action":"approve_for_session","tool_call_id":"c1"}`}},
		{"edit", "yes, and later edits, too", false, []string{`POST {"action":"approve","tool_call_id":"c1"}`, `PATCH {"mode":"edits"}`}},
		{"apply_patch", "yes, and later edits, too", true, []string{`POST {"action":"approve","tool_call_id":"c1"}`}},
		{"server__edit", "yes, the same later, too", false, []string{`POST {"action":"approve_for_session","tool_call_id":"c1"}`}},
	} {
		got, refuse, m.t.mode = nil, c.refuse, editMode
		if c.key != "yes, the same later, too" {
			m.t.mode = "work"
		}
		m.t.asks = []Ask{{ID: "a1", Call: "c1", Tool: c.tool, Input: json.RawMessage(`{}`)}}
		if shown := ansi.Strip(strings.Join(m.question(), "\n")); !strings.Contains(shown, c.key) {
			t.Errorf("%s: the question is\n%s\nwant %q in it", c.tool, shown, c.key)
		}
		if err := m.decide(forSession, "")(); (err != nil) != c.refuse || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, requests %q, want %q", c.tool, err, got, c.want)
		}
	}
}

// The line below the input says that the agent plans. The question about its plan shows it as markdown,
// and is answered for this plan alone.
func TestPlanIsVisible(t *testing.T) {
	m := newModel(t.Context(), nil, "/w")
	m.id = "sess_1"
	for mode, want := range map[string]bool{"plan": true, "work": false} {
		m.t.take(Event{Type: "mode_changed", Data: json.RawMessage(`{"mode":"` + mode + `"}`)})
		if got := strings.Contains(ansi.Strip(m.facts()), "plan"); got != want {
			t.Errorf("mode %s: the facts are %q, want plan in them: %v", mode, ansi.Strip(m.facts()), want)
		}
	}
	m.t.take(Event{Type: "mode_changed", Data: json.RawMessage(`{"mode":"plan"}`)})
	m.t.take(Event{Type: "resync", Data: json.RawMessage(`{"reason":"late"}`)})
	if !strings.Contains(m.facts(), "plan") {
		t.Errorf("after a resync the facts are %q, want the mode as before", m.facts())
	}
	ask := func(tool, input string) string {
		m.t.asks = []Ask{{ID: "a1", Call: "c1", Tool: tool, Brief: "begin the work with this plan", Input: json.RawMessage(input)}}
		return ansi.Strip(strings.Join(m.question(), "\n"))
	}
	got := ask("propose_plan", `{"plan":"1. change **one**\n2. look"}`)
	for _, want := range []string{"yaya asks: begin the work with this plan?", "1. change one\n", "Alt+Y"} {
		if !strings.Contains(got, want) {
			t.Errorf("the question is\n%s\nwant %q in it", got, want)
		}
	}
	if strings.Contains(got, "Alt+S") {
		t.Errorf("the question is\n%s\nwant no answer for the whole session", got)
	}
	m.now = func() time.Time { return m.since.Add(time.Hour) }
	if do := m.decide("approve_for_session", ""); do != nil || !strings.Contains(m.note, "approved once") {
		t.Errorf("an approval for the session does %t and says %q, want a refusal", do != nil, m.note)
	}
	if got := ask("propose_plan", `{"plan":"look","also":"rm"}`); !strings.Contains(got, "also") {
		t.Errorf("the question is\n%s\nwant all arguments of a call that has more than a plan", got)
	}
}

// The model is that of the running call, and otherwise the one that answers next: a change, and a
// provider that names no model, do not leave the old name.
func TestShownModel(t *testing.T) {
	m := newModel(t.Context(), nil, "/w")
	m.id, m.title = "sess_1", "x"
	shown := func(when, want string) {
		t.Helper()
		if got := m.shownModel(); got != want {
			t.Errorf("%s the model is %q, want %q", when, got, want)
		}
	}
	m.answering = modelRef{Provider: "llm-echo"}.name()
	shown("before the first turn", "llm-echo")
	take := func(typ, data string) action {
		events := []Event{{Type: typ, TurnID: "t1", Data: json.RawMessage(data)}}
		m.t.take(events[0])
		return m.learn(events)
	}
	if take("turn_started", `{"model":"gpt-5-mini"}`) != nil {
		t.Error("the session is asked for, want that the event is enough")
	}
	shown("in a turn", "gpt-5-mini")
	take("turn_completed", `{}`)
	if take("model_changed", `{"model":"local"}`) == nil {
		t.Error("after a change of the model the session is not asked for")
	}
	m.Update(learnt{Session{ID: "sess_1", Answering: modelRef{"local", "gpt-oss:20b"}}})
	shown("after a change", "gpt-oss:20b")
	if take("turn_started", `{}`) == nil {
		t.Error("in a turn of a provider that names no model the session is not asked for")
	}
	shown("without a name in the event", "gpt-oss:20b")
	take("model_output_completed", `{"text":"a","model":"gpt-5-nano"}`)
	shown("of a fallback", "gpt-5-nano")
}

// /new takes folders as a shell does. A long error wraps.
func TestNewFolderAndErrors(t *testing.T) {
	m := newModel(t.Context(), nil, filepath.FromSlash("/w/a"))
	m.home = filepath.FromSlash("/home/ada")
	for typed, want := range map[string]string{"": "/w/a", "~": "/home/ada", "~/pro": "/home/ada/pro", "sub": "/w/a/sub", "../b": "/w/b", "~b": "/w/a/~b"} {
		if got := filepath.ToSlash(m.expanded(typed)); got != want {
			t.Errorf("/new %s is in %s, want %s", typed, got, want)
		}
	}
	m.complain(errors.New(strings.Repeat("word ", 30) + "remedy"))
	if got := ansi.Strip(m.screen()); !strings.Contains(got, "remedy") {
		t.Errorf("the screen is\n%s\nwant the end of the error", got)
	}
	m.complain(errors.New(strings.Repeat("word ", 300)))
	if got := strings.Count(ansi.Strip(m.screen()), "\n"); got != m.height-1 {
		t.Errorf("the screen has %d lines, want %d", got+1, m.height)
	}
}
