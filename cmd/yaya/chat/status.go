package chat

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/yaya-ai/yaya/internal/screen"
	"github.com/yaya-ai/yaya/internal/worded"
)

// maxTitle bounds the title of the terminal's window, in characters.
const maxTitle = 60

// spin is the time between two pictures of the spinner.
const spin = 120 * time.Millisecond

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// spun turns the spinner.
type spun struct{}

// working reports whether the model, a tool or an errand is at work.
func (m *model) working() bool {
	return m.errand != nil || m.t.running && len(m.t.asks) == 0 && !m.lost
}

// turning starts the spinner, unless it turns. It stops by itself.
func (m *model) turning() tea.Cmd {
	if m.spins || !m.working() {
		return nil
	}
	m.spins = true
	return tea.Tick(spin, func(time.Time) tea.Msg { return spun{} })
}

// status renders the line above the input: the session, and what it does.
func (m *model) status() string {
	p := m.palette
	state := screen.Paint(p.Good, "idle")
	switch {
	case m.lost:
		state = screen.Paint(p.Bad, "connecting …")
	case len(m.t.asks) > 0:
		state = screen.Paint(p.Accent, "needs approval")
	case m.errand != nil:
		state = screen.Paint(p.Accent, spinner[m.turn%len(spinner)]+" "+ansi.Truncate(screen.Clean(m.errand.what, 60), max(m.width-40, 10), "…")) + screen.Paint(screen.Faint, "  Esc stops")
	case m.t.running:
		state = screen.Paint(p.Accent, spinner[m.turn%len(spinner)]+" is working") + screen.Paint(screen.Faint, "  Enter queues, Ctrl+S steers, Esc stops")
	case m.t.closed:
		state = screen.Paint(screen.Faint, "closed")
	case m.t.stopped:
		state = screen.Paint(screen.Faint, "stopped  /retry runs it again")
	case m.t.failed:
		state = screen.Paint(p.Bad, "the last turn failed") + screen.Paint(screen.Faint, "  /retry runs it again")
	}
	out := "  " + state
	if n := len(m.t.queue); n > 0 {
		out += fmt.Sprintf("  %d queued", n)
	}
	if n := len(m.ran[m.id]); n > 0 {
		out += screen.Paint(screen.Faint, "  + "+worded.Count(n, "output", "outputs"))
	}
	if m.up > 0 {
		out += screen.Paint(screen.Faint, "  (scrolled up)")
	}
	// A long title goes first: it stands elsewhere, too, and the hints do not.
	title := ansi.Truncate(screen.CleanProse(m.name(), 40), max(m.width-ansi.StringWidth(out), 0), "…")
	return ansi.Truncate(screen.Paint(screen.Bold, title)+out, m.width, "…")
}

// name returns the title of the session, or its id until it has one.
func (m *model) name() string {
	if m.title == "" {
		return m.id
	}
	return m.title
}

// facts renders the line below the input: folder, model, tokens, cost.
func (m *model) facts() string {
	parts := []string{screen.Clean(shortened(m.workspace, m.home), 200)}
	if m.t.mode == planMode || m.t.mode == editMode {
		parts = append(parts, m.t.mode)
	}
	if m.restricted {
		parts = append(parts, "restricted")
	}
	if name := m.shownModel(); name != "" {
		parts = append(parts, screen.Clean(name, 60))
	}
	if n := m.t.context; n > 0 {
		parts = append(parts, "context "+thousands(n))
	}
	if m.t.cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", m.t.cost))
	}
	right := strings.Join(parts[1:], " · ")
	// A long path loses its beginning: the end tells more.
	left := parts[0]
	if room := max(m.width-ansi.StringWidth(right)-4, 8); ansi.StringWidth(left) > room {
		left = ansi.TruncateLeft(left, ansi.StringWidth(left)-room+1, "…")
	}
	space := max(m.width-ansi.StringWidth(left)-ansi.StringWidth(right)-1, 1)
	return ansi.Truncate(screen.Paint(screen.Faint, left+strings.Repeat(" ", space)+right), m.width, "…")
}

// shownModel is the model that answers the running turn, which may be a fallback, and otherwise the one
// that answers next.
func (m *model) shownModel() string {
	if m.t.running && m.t.model != "" {
		return m.t.model
	}
	return cmp.Or(m.answering, m.t.model)
}

// shortened writes a path below the home folder with a tilde.
func shortened(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}

// thousands writes a number of tokens in a short form.
func thousands(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%dk", n/1000)
}

// window returns the title of the terminal's window.
func (m *model) window() string {
	mark := ""
	if len(m.t.asks) > 0 {
		mark = "? "
	}
	return mark + "yaya: " + screen.CleanProse(m.name(), maxTitle)
}
