package chat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/screen"
)

// arming is how long a new question ignores input: a key pressed before or while it appeared is
// not an answer to it.
const arming = 500 * time.Millisecond

// frame is the minimum time between two drawings.
const frame = 40 * time.Millisecond

// The messages to the program.
type (
	happened struct { // events of a session
		session string
		events  []Event
	}
	linked struct { // the connection broke, or, with nil, is back
		session string
		err     error
	}
	switched struct { // another session is shown
		session Session
		made    bool   // by this chat, and empty
		says    string // a message for the moment
	}
	listed struct{ sessions []Session }
	failed struct{ err error }
	told   struct{ text string }
	learnt struct{ session Session } // what yaya knows of the shown session now
	armed  struct{}
	// suspended is Ctrl+Z, or the signal that means the same.
	suspended struct{}
	broken    struct{ what string } // one of the chat's goroutines panicked
)

// model is the state of the program. Only the program's own goroutine uses it.
type model struct {
	ctx  context.Context // a base context: of the program, as bubbletea's Update has none
	api  *Client
	send func(tea.Msg)

	id, title, workspace string
	answering            string // the model that answers next, "" if there is none
	restricted           bool   // nobody has trusted its folder
	seen                 looked // the folder that /trust has shown last, and that was not answered
	local                Local
	t                    transcript
	lost                 bool
	follow               *follower
	made                 []Session   // that this chat has made, as they were then
	followers            []*follower // all followers so far, for [Run] to wait for

	input   textarea.Model
	history *history
	menu    *menu        // of completion; nil if it is closed
	killed  string       // the text that Ctrl+Y brings back
	leaving bool         // Ctrl+C was the last key
	suspend func() error // stops the program, as Ctrl+Z does elsewhere
	width   int
	height  int
	up      int // number of lines below the view
	details bool
	note    string // the last message outside the conversation
	isBad   bool
	asked   string    // the shown question
	since   time.Time // when it appeared
	answers bool      // the input was begun while the question took answers
	list    []Session // sessions to choose from; nil if the list is closed
	at      int
	quit    bool
	errand  *errand              // nil without one
	work    sync.WaitGroup       // of errands, for [Run] to wait for
	procs   *proc.Manager        // of the user's commands
	ran     map[string][]outcome // commands that the next message of a session tells of
	back    map[string]unsent    // messages of other sessions that were not sent
	first   action               // at the start
	sending []unsent             // messages on their way
	unsure  unsent               // the last message that may have arrived although its sending failed
	bang    bool                 // the input begins with a ! that the user has typed
	laid    *layout
	writing writing
	epoch   int // of what is rendered; see redraw
	palette screen.Palette
	home    string // the user's folder, "" if it is not known
	turn    int    // of the spinner
	spins   bool
	now     func() time.Time
}

func newModel(ctx context.Context, api *Client, workspace string) *model {
	return &model{ctx: ctx, api: api, workspace: workspace, input: newInput(), history: &history{}, procs: new(proc.Manager), ran: map[string][]outcome{}, back: map[string]unsent{}, palette: screen.Colours, width: 80, height: 24, now: time.Now}
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return m.do(m.first) }

// do runs an action in the background.
func (m *model) do(a action) tea.Cmd {
	if a == nil {
		return nil
	}
	return func() tea.Msg {
		if err := a(); err != nil && m.ctx.Err() == nil {
			return failed{err}
		}
		return nil
	}
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 2)
		m.redraw()
		m.input.SetWidth(m.width)
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case suspended:
		if err := m.suspend(); err != nil {
			m.complain(err)
		}
	case broken:
		panic(msg.what) // here it is caught, after which the terminal is as it was
	case tea.PasteMsg:
		m.paste(msg.Content)
	case offered:
		m.offer(msg)
	case happened:
		if msg.session == m.id {
			for _, ev := range msg.events {
				m.t.take(ev)
			}
			m.arrived(msg.events)
			cmd = m.do(m.learn(msg.events))
		}
	case linked:
		if msg.session == m.id {
			m.lost = msg.err != nil
			if refused, ok := errors.AsType[*Error](msg.err); ok {
				m.complain(refused)
			}
		}
	case switched:
		if msg.made {
			m.made = append(m.made, msg.session)
		}
		m.switchTo(msg.session)
		m.say1(msg.says)
	case listed:
		m.list, m.at = msg.sessions, 0
		if len(msg.sessions) == 0 {
			m.list = nil
			m.complain(errors.New("there are no sessions yet (to start one: /new)"))
		}
	case failed:
		m.complain(msg.err)
	case unsent:
		m.takeBack(msg)
	case delivered:
		m.sending = slices.DeleteFunc(m.sending, func(u unsent) bool { return u.key == msg.key })
	case returned:
		if m.errand == msg.errand {
			m.errand = nil
		}
		msg.then(m)
	case told:
		m.say0(msg.text)
	case looked:
		m.show(msg)
	case learnt:
		if msg.session.ID == m.id {
			m.restricted = msg.session.Restricted
			m.title = cmp.Or(m.title, msg.session.Title) // the user's own comes first
			m.answering = msg.session.Answering.name()
		}
	case armed:
	case spun:
		m.turn++
		m.spins = false
	default:
		m.input, cmd = m.input.Update(msg)
	}
	cmd = tea.Batch(cmd, m.watchAsk(), m.turning())
	if m.quit {
		return m, tea.Quit
	}
	return m, cmd
}

// watchAsk records when a question appears, and redraws it once it accepts input.
func (m *model) watchAsk() tea.Cmd {
	now := ""
	if len(m.t.asks) > 0 {
		now = m.t.asks[0].ID
	}
	if now == m.asked {
		return nil
	}
	m.asked, m.since, m.answers = now, m.now(), false
	if now == "" {
		return nil
	}
	return tea.Tick(arming, func(time.Time) tea.Msg { return armed{} })
}

// key handles a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	if m.list != nil {
		return m.keyInList(k)
	}
	key := k.String()
	if key == "ctrl+c" {
		m.menu = nil
		return m.interrupt()
	}
	warned := m.leaving
	m.leaving = false
	m.begins()
	if m.menu != nil && m.keyInMenu(key) {
		return nil
	}
	switch key {
	case "esc":
		if m.stopErrand() {
			return nil
		}
		if m.t.running {
			return m.do(m.cancel())
		}
		return nil
	case "ctrl+d":
		if m.input.Value() == "" && m.errand != nil && !warned {
			m.leaving = true
			m.say1(m.errand.what + " has not ended: press Ctrl+D again to leave without it")
			return nil
		}
		if m.input.Value() == "" {
			m.quit = true
			return nil
		}
	case "enter":
		if m.continued() {
			return nil
		}
		return m.enter("")
	case "ctrl+s":
		return m.enter("steer")
	case "tab":
		return m.complete()
	case "ctrl+r":
		if found := m.history.with(m.input.Value()); len(found) > 0 {
			m.menu = &menu{whole: true, choices: found}
		}
		return nil
	case "ctrl+z":
		return func() tea.Msg { return suspended{} }
	case "ctrl+l":
		return tea.ClearScreen
	case "ctrl+o":
		return m.do(m.choose())
	case "ctrl+t":
		m.details = !m.details
		m.redraw()
		return nil
	case "alt+y":
		return m.do(m.decide("approve", ""))
	case "alt+s":
		return m.do(m.decide(forSession, ""))
	case "alt+n":
		why := strings.TrimSpace(m.input.Value())
		a := m.decide("deny", why)
		if a != nil {
			m.input.Reset()
			m.bang = false
		}
		return m.do(a)
	case "pgup":
		m.up += m.page()
		return nil
	case "pgdown":
		m.up = max(0, m.up-m.page())
		return nil
	case "ctrl+end":
		m.up = 0
		return nil
	}
	m.note = ""
	return m.edit(k)
}

func (m *model) keyInList(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c", "esc", "q", "ctrl+o":
		m.list = nil
	case "up", "k":
		m.at = max(0, m.at-1)
	case "down", "j":
		m.at = min(len(m.list)-1, m.at+1)
	case "enter":
		id := m.list[m.at].ID
		m.list = nil
		return m.do(m.open(id))
	}
	return nil
}

// enter sends the input.
func (m *model) enter(delivery string) tea.Cmd {
	typed := m.input.Value()
	line := strings.TrimSpace(typed)
	if line == "" {
		return nil
	}
	if answer := typedAnswer[line]; answer != "" && delivery == "" && len(m.t.asks) > 0 {
		return m.answer(answer)
	}
	var a action
	var err error
	if delivery != "" {
		a = m.say(line, delivery)
	} else if a, err = m.parse(line); err != nil {
		m.complain(err)
		if _, unknown := errors.AsType[*unknownCommand](err); !unknown {
			return nil // the input stays
		}
	}
	m.history.at = len(m.history.entries)
	// Text that is typed while a question is open may be an answer to it, and a reason is one.
	own := m.bang || !strings.HasPrefix(line, "!") // a text that begins with ! would come back as a command
	if len(m.t.asks) == 0 && !strings.HasPrefix(line, "/reject ") && own {
		m.history.add(strings.TrimRight(typed, " \n"), func(err error) { m.send(failed{err}) })
	}
	m.input.Reset()
	m.bang, m.up = false, 0
	return m.do(a)
}

// say1 shows a message for the moment.
func (m *model) say1(text string) { m.note, m.isBad = text, false }

func (m *model) complain(err error) { m.note, m.isBad = err.Error(), true }

// say0 shows a message outside the conversation.
func (m *model) say0(text string) { m.t.add(block{kind: note, text: text}) }

func (m *model) switchTo(s Session) {
	if m.follow != nil {
		m.follow.cancel() // it may be waiting for this very goroutine
	}
	m.id, m.title, m.workspace, m.answering = s.ID, s.Title, s.Workspace, s.Answering.name()
	m.t, m.up, m.laid, m.lost, m.note = transcript{mode: s.Mode}, 0, nil, false, ""
	m.writing, m.restricted, m.seen = writing{}, s.Restricted, looked{}
	if u, ok := m.back[s.ID]; ok && m.input.Value() == "" {
		delete(m.back, s.ID)
		m.restore(u)
	}
	if s.Restricted {
		m.say0("this folder is not trusted: the agent only reads and searches (/trust)")
	}
	m.follow = follow(m.ctx, m.api, s.ID, m.send)
	m.followers = append(m.followers, m.follow)
}
