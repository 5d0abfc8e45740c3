package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/undo"
)

// The actions; each returns the request to yaya.

func (m *model) begin(folder string) action {
	folder = m.expanded(folder)
	return func() error {
		id, err := m.api.New(m.ctx, folder)
		if err != nil {
			return err
		}
		s, err := m.api.Session(m.ctx, id)
		if err == nil {
			m.send(switched{session: s, made: true})
		}
		return err
	}
}

// expanded returns the absolute path of a folder as it is typed in a shell: of the user's folder behind
// a tilde, and otherwise of the session's folder.
func (m *model) expanded(folder string) string {
	if rest, ok := strings.CutPrefix(folder, "~"); ok && m.home != "" && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		return filepath.Join(m.home, rest)
	}
	if filepath.IsAbs(folder) {
		return folder
	}
	return filepath.Join(m.workspace, folder)
}

func (m *model) open(id string) action {
	return func() error {
		s, err := m.api.Session(m.ctx, id)
		if err == nil {
			m.send(switched{session: s})
		}
		return err
	}
}

func (m *model) choose() action {
	return func() error {
		all, _, err := m.api.Sessions(m.ctx, "")
		if err == nil {
			m.send(listed{all})
		}
		return err
	}
}

// maxForked bounds the title of a session in that of its fork.
const maxForked = 180

func (m *model) fork() action {
	id, title := m.id, m.title
	return func() error {
		child, err := m.api.Fork(m.ctx, id)
		if err != nil {
			return err
		}
		if title != "" { // that of the fork is the same, and lists would show two alike
			err = m.api.Rename(m.ctx, child, cut.Text(title, maxForked)+" (fork)")
		}
		s, opened := m.api.Session(m.ctx, child)
		if opened == nil {
			m.send(switched{session: s, says: "you are in the fork " + child + "; the other session is " + id})
		}
		return errors.Join(err, opened)
	}
}

func (m *model) rename(title string) action {
	id := m.id
	m.title = title
	return func() error { return m.api.Rename(m.ctx, id, title) }
}

// learn asks for what events do not say: the title that yaya gives a session with its first message,
// the model of a provider that does not name one, or that answers after a change, and whether the folder
// is trusted, which an answer or a change of the agent's may have changed.
func (m *model) learn(events []Event) action {
	if !slices.ContainsFunc(events, func(ev Event) bool {
		switch ev.Type {
		case "approval_granted":
			return bytes.Contains(ev.Data, []byte(trustTool))
		case "model_changed", "turn_completed", "session_failed", "session_canceled":
			return true
		}
		return ev.Type == "turn_started" && (m.title == "" || m.t.model == "")
	}) {
		return nil
	}
	id := m.id
	return func() error {
		s, err := m.api.Session(m.ctx, id)
		if err == nil {
			m.send(learnt{s})
		}
		return err
	}
}

func (m *model) retry() action {
	id, turn := m.id, m.t.turn
	if turn == "" || m.t.running {
		return func() error { return errors.New("there is no turn to run again") }
	}
	return func() error { return m.api.Retry(m.ctx, id, turn) }
}

// undo undoes the last change of files, and says which they are.
func (m *model) undo() action {
	id := m.id
	return func() error {
		done, err := m.api.Undo(m.ctx, id)
		if err != nil {
			return err
		}
		m.send(told{Undone(done)})
		return nil
	}
}

// Undone says what was undone.
func Undone(done undo.Undone) string {
	text := "undone: " + cmp.Or(strings.Join(done.Files, ", "), "nothing")
	if len(done.Without) > 0 {
		text += "; changed, too, and not covered: " + strings.Join(done.Without, ", ")
		if done.More > 0 {
			text += fmt.Sprintf(" and %d more", done.More)
		}
	}
	for _, r := range done.Remaining {
		text += "; " + r.Path + " is not as before: " + r.Why
	}
	return fmt.Sprintf("%s (%d more can be undone)", text, done.Left)
}

// compact has the earlier part of the conversation summarized for the model. It is an errand, because
// it takes as long as an answer, and Esc stops it.
func (m *model) compact(keep string) action {
	id := m.id
	if now := m.errand; now != nil {
		return func() error { return fmt.Errorf("%s: wait for its end, or stop it with Esc", now.what) }
	}
	return m.run("summarizing the conversation", "", false, func(ctx context.Context) func(*model) {
		done, err := m.api.Compact(ctx, id, keep)
		if err != nil && ctx.Err() != nil {
			err = errors.New("stopped; the history is as it was")
		}
		return func(m *model) {
			switch {
			case err == nil && m.id == id: // an event tells of the summary, this says what is gained
				m.say0(done.String())
			case err != nil:
				m.complain(err)
			}
		}
	})
}

// mode sets a mode of the session, or ends it: the agent works then.
func (m *model) mode(command, mode, arg string) action {
	id, is, want := m.id, m.t.mode == mode, mode
	switch arg {
	case "":
	case "off":
		want = "work"
	default:
		return func() error { return fmt.Errorf("/%s takes nothing or off, not %q", command, arg) }
	}
	if is == (want == mode) { // without a change there is no event that tells it
		same := already[mode]
		if !is {
			same = notNow[mode]
			if m.t.mode == planMode { // which changes nothing, asked or not
				same = already[planMode]
			}
		}
		return func() error { m.send(told{same}); return nil }
	}
	return func() error { return m.api.SetMode(m.ctx, id, want) }
}

// The answers of commands about modes that change nothing.
var (
	already = map[string]string{
		planMode: "the agent plans already: it only reads until you approve its plan (/plan off ends that)",
		editMode: "the agent changes files without a question already (/edits off ends that)",
	}
	notNow = map[string]string{
		planMode: "the agent does not plan: it may work already",
		editMode: "the agent asks already before it changes files",
	}
)

// choice shows the model of the session and those that it can have, or chooses one.
func (m *model) choice(name string) action {
	id := m.id
	return func() error {
		if name != "" {
			return m.api.SetModel(m.ctx, id, name)
		}
		s, err := m.api.Session(m.ctx, id)
		if err != nil {
			return err
		}
		all, err := m.api.Models(m.ctx)
		if err != nil {
			return err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "the model of this session is %s", cmp.Or(s.Model, "the active one"))
		for _, c := range all {
			fmt.Fprintf(&b, "\n  %s", c.ID)
			if c.Model != "" && c.ID != c.Provider+"/"+c.Model {
				fmt.Fprintf(&b, " (%s)", c.Model)
			}
			if c.Active {
				b.WriteString(", active")
			}
		}
		fmt.Fprintf(&b, "\n/model %s takes the choice back", activeModel)
		m.send(told{b.String()})
		return nil
	}
}

func (m *model) cancel() action {
	id := m.id
	return func() error { return m.api.Cancel(m.ctx, id) }
}

// forSession is the answer that holds for the session.
const forSession = "approve_for_session"

var errTooSoon = errors.New("you typed that before the question appeared; please answer again")

// typedAnswer are the texts that answer a question.
var typedAnswer = map[string]string{"y": "approve", "yes": "approve", "n": "deny", "no": "deny", "s": forSession}

// begins notes, before something is added to an empty input, whether that can be an answer. A command of the
// shell it is only once a ! is typed.
func (m *model) begins() {
	if m.input.Value() == "" {
		m.bang = false
		m.answers = len(m.t.asks) > 0 && m.now().Sub(m.since) >= arming
	}
}

// answer answers the shown question with what was typed, which goes: it is nothing to be sent later.
func (m *model) answer(answer string) tea.Cmd {
	ready := m.answers
	m.input.Reset()
	m.bang, m.up, m.answers = false, 0, false
	if !ready {
		m.complain(errTooSoon)
		return nil
	}
	return m.do(m.decide(answer, ""))
}

// decide answers the shown question, once it has been visible for long enough.
func (m *model) decide(answer, why string) action {
	if len(m.t.asks) == 0 {
		m.complain(errors.New("there is no question to answer"))
		return nil
	}
	if m.now().Sub(m.since) < arming {
		m.complain(errTooSoon)
		return nil
	}
	m.note = ""
	id, first := m.id, m.t.asks[0]
	if first.Tool == planTool && answer == forSession {
		m.complain(errors.New("a plan is approved once: Alt+Y or y"))
		return nil
	}
	later := m.later(first)
	var same []Ask // one answer covers all identical questions
	for _, a := range m.t.asks {
		if a.Tool == first.Tool && string(a.Input) == string(first.Input) {
			same = append(same, a)
		}
	}
	return func() error {
		var errs []error
		for _, a := range same {
			if later {
				errs = append(errs, m.api.Answer(m.ctx, id, a, answer, why))
			} else {
				errs = append(errs, m.api.Decide(m.ctx, id, a.Call, answer, why))
			}
		}
		return errors.Join(errs...)
	}
}
