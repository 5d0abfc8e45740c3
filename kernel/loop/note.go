package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// The names of the loop's own notes.
const (
	noteMemories = "memories"
	noteHooks    = "hooks"
	noteSkills   = "skills"
	noteMode     = "mode"
	noteCalls    = "calls"
)

// Notes tell the model what changes during a session. They are part of the history. The system
// prompt stays as it is: services keep what they have computed of a request for the next one, as
// far as both begin with the same bytes.

// tell adds notes to the history, each unless the last one of its name says the same.
func (t *turn) tell(notes ...event.TurnNote) error {
	history, err := t.history()
	if err != nil {
		return err
	}
	history = slices.Clip(history) // which others may have
	for _, n := range notes {
		told, err := t.tellIn(history, n.Name, n.Text)
		if err != nil {
			return err
		}
		if told {
			history = append(history, event.Message{Role: session.NoteRole, Note: n.Name, Content: n.Text})
		}
	}
	return nil
}

// standing returns the notes about what lasts beyond a turn. A note takes
// back what the history says, if that no longer holds, such as after a restart.
func (t *turn) standing(history []event.Message) (out []event.TurnNote) {
	for _, n := range t.l.cfg.Standing(t.thread.id) {
		if _, told := lastNote(history, n.Name); told && n.Text == "" {
			n.Text = nothing
		}
		out = append(out, n)
	}
	return out
}

// tellIn adds one note to the history, which it is given as it is, and reports whether it was news.
func (t *turn) tellIn(history []event.Message, name, text string) (told bool, err error) {
	if text == "" {
		return false, nil
	}
	text = t.l.cfg.Secrets.ConcealString(text) // as it will be on the tape
	if last, ok := lastNote(history, name); ok && (last == text || t.told[name] == text) {
		return false, nil
	}
	ev, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.TurnNoted, t.thread.id, event.TurnNote{Name: name, Text: text})
	if err != nil {
		return false, &stepError{"storage", err}
	}
	t.observe(ev)
	if t.told == nil {
		t.told = map[string]string{}
	}
	t.told[name] = text
	return true, nil
}

// Notes about the mode of a session.
const (
	planning     = "This session plans. Until its user has approved a plan, tools that write, run commands or call out are refused. Read what the task needs, then hand in the plan with propose_plan; the work begins once it is approved."
	planningDeep = "This session plans: tools that write, run commands or call out are refused. Read what the task needs, and answer with what you have found."
	working      = "This session no longer plans: files may be changed and commands may run, as far as the user allows it."
)

// mode returns the note about the mode of the session. One that has always been at work needs none.
func (t *turn) mode(history []event.Message) ([]event.TurnNote, error) {
	if t.session == nil {
		return nil, nil
	}
	mode, err := t.l.cfg.Sessions.Mode(t.thread.id)
	if err != nil {
		return nil, &stepError{"storage", err}
	}
	text := working
	switch _, told := lastNote(history, noteMode); {
	case mode == session.Plan && event.Root(t.thread.id) != t.thread.id:
		text = planningDeep
	case mode == session.Plan:
		text = planning
	case !told:
		return nil, nil
	}
	return []event.TurnNote{{Name: noteMode, Text: text}}, nil
}

// lastNote returns the text of the last note of that name.
func lastNote(history []event.Message, name string) (text string, ok bool) {
	for i := len(history) - 1; i >= 0; i-- {
		if m := history[i]; m.Role == session.NoteRole && m.Note == name {
			return m.Content, true
		}
	}
	return "", false
}

// spoken returns a history as providers take it: with notes as messages of the user that say
// whose they are.
func spoken(history []event.Message) []event.Message {
	out := make([]event.Message, len(history))
	copy(out, history)
	for i, m := range out {
		if m.Role == session.NoteRole {
			out[i].Role, out[i].Content = "user", fmt.Sprintf("[note of yaya: %s]\n%s", m.Note, m.Content)
		}
	}
	return out
}

// notes returns the skills of a session for its system prompt. They stay as they were told
// first, unless the window or the tools change; what has changed since is told in a note.
func (t *turn) notes(d event.DecideResponse) (string, error) {
	window := t.measure(event.LLMRequest{Provider: d.Provider, Model: d.Model}).window
	key := fmt.Sprintf("%d %q", window, d.Tools)
	if t.noted != key {
		t.noted, t.note = key, strings.TrimSpace(t.l.cfg.Notes(t.thread.id, window, d.Tools))
	}
	t.l.mu.Lock()
	thread := t.thread
	if thread.noted != key {
		thread.noted, thread.note = key, t.note
	}
	first := thread.note
	t.l.mu.Unlock()
	history, err := t.history()
	if err != nil {
		return "", err
	}
	told, again := lastNote(history, noteSkills)
	now := ""
	switch {
	case again && t.note == first && told != same:
		now = same
	case t.note != first && t.note == "":
		now = none
	case t.note != first:
		now = "Instead of the skills that were listed at the beginning:\n" + t.note
	}
	_, err = t.tellIn(history, noteSkills, now)
	return first, err
}

const (
	same = "The skills are those that were listed at the beginning again."
	none = "There are no longer any skills."
	// nothing takes back a note about what lasts beyond a turn.
	nothing = "none"
)
