package kernel

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// later holds the registrations of parts of the program that are made after the kernel, and
// register with it. The zero value holds none. Methods are safe for concurrent use.
type later struct {
	mu       sync.Mutex
	turns    []func(ctx context.Context)
	answerer []func() bool
	timeout  func(session string) time.Duration
	prepare  []func(session string)
	admit    func(ctx context.Context, session, prompt string) (string, error)
	notes    []func(session string, window int, tools []string) string
	standing []func(session string) event.TurnNote
	look     func(session string) (done func())
	bundled  []func(ctx context.Context)
	client   func(session string) (Client, bool)
}

// Client is the MCP client that has begun a session and gives its agent tasks. The agent must not
// be a way around what holds for the client.
type Client struct {
	// Principal is who the client is, as rules name it.
	Principal string
	// Has reports whether it has a scope; nil means none.
	Has func(scope string) bool
	// Sees reports whether it may use a tool, by the profile that it has come through; nil means
	// none of them.
	Sees func(*tool.Definition) bool
}

// SetClients registers which client has begun a session, if one has. Register before
// [Kernel.Start].
func (k *Kernel) SetClients(of func(session string) (Client, bool)) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.client = of
}

// clientOf returns the client behind a session and its sub-agents.
func (l *later) clientOf(id string) (Client, bool) {
	l.mu.Lock()
	of := l.client
	l.mu.Unlock()
	if of == nil {
		return Client{}, false
	}
	return of(event.Root(id))
}

// view returns which tools the agent of a session may use, nil for all.
func (l *later) view(id string) func(*tool.Definition) bool {
	c, is := l.clientOf(id)
	switch {
	case !is:
		return nil
	case c.Sees == nil:
		return func(*tool.Definition) bool { return false }
	}
	return c.Sees
}

// OnBoundary has f called before each turn. Register before [Kernel.Start].
func (k *Kernel) OnBoundary(f func(ctx context.Context)) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.turns = append(k.later.turns[:len(k.later.turns):len(k.later.turns)], f)
}

// AddAudience registers an adapter whose users may answer asks without reading a session
// of their own, such as in an inbox; there reports whether one is there now. Register
// before [Kernel.Start].
func (k *Kernel) AddAudience(there func() bool) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.answerer = append(k.later.answerer[:len(k.later.answerer):len(k.later.answerer)], there)
}

// SetApprovalTimeout registers how long asks of a session wait; 0 is as long as the
// setting approval.timeout says. Register before the first turn.
func (k *Kernel) SetApprovalTimeout(of func(session string) time.Duration) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.timeout = of
}

// OnUndriven has f called before a turn of a session that has no strategy of its own, with
// the session's id; f may set one. Register before [Kernel.Start].
func (k *Kernel) OnUndriven(f func(session string)) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.prepare = append(k.later.prepare[:len(k.later.prepare):len(k.later.prepare)], f)
}

// SetAdmit registers what is asked before a model gets messages of the user; see [loop.Config]. Register before
// [Kernel.Start].
func (k *Kernel) SetAdmit(f func(ctx context.Context, session, prompt string) (string, error)) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.admit = f
}

func (l *later) admitted(ctx context.Context, session, prompt string) (string, error) {
	l.mu.Lock()
	f := l.admit
	l.mu.Unlock()
	if f == nil {
		return "", nil
	}
	return f(ctx, session, prompt)
}

// AddNotes registers a part of the system prompts of all sessions; see [loop.Config]. Register
// before [Kernel.Start].
func (k *Kernel) AddNotes(f func(session string, window int, tools []string) string) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.notes = append(k.later.notes[:len(k.later.notes):len(k.later.notes)], f)
}

func (l *later) note(session string, window int, tools []string) string {
	l.mu.Lock()
	all := l.notes
	l.mu.Unlock()
	var out []string
	for _, f := range all {
		if text := f(session, window, tools); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

// AddStanding registers a note about what lasts beyond a turn; see [loop.Config]. Register before
// [Kernel.Start].
func (k *Kernel) AddStanding(f func(session string) event.TurnNote) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.standing = append(k.later.standing[:len(k.later.standing):len(k.later.standing)], f)
}

func (l *later) stands(session string) (out []event.TurnNote) {
	l.mu.Lock()
	all := l.standing
	l.mu.Unlock()
	for _, f := range all {
		out = append(out, f(session))
	}
	return out
}

// SetLook registers f, which has the readers of a session's folder share one opening of it until done
// is called; see [loop.Config]. Register before [Kernel.Start].
func (k *Kernel) SetLook(f func(session string) (done func())) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.look = f
}

func (l *later) looks(session string) (done func()) {
	l.mu.Lock()
	f := l.look
	l.mu.Unlock()
	if f == nil {
		return func() {}
	}
	return f(session)
}

// OnBundled has f called in [Kernel.Start] once the bundled plugins are loaded, before the
// kernel is ready: f loads others. Register before [Kernel.Start].
func (k *Kernel) OnBundled(f func(ctx context.Context)) {
	k.later.mu.Lock()
	defer k.later.mu.Unlock()
	k.later.bundled = append(k.later.bundled[:len(k.later.bundled):len(k.later.bundled)], f)
}

func (l *later) loaded(ctx context.Context) {
	l.mu.Lock()
	all := l.bundled
	l.mu.Unlock()
	for _, f := range all {
		f(ctx)
	}
}

func (l *later) undriven(session string) {
	l.mu.Lock()
	all := l.prepare
	l.mu.Unlock()
	for _, f := range all {
		f(session)
	}
}

func (l *later) boundary(ctx context.Context) {
	l.mu.Lock()
	turns := l.turns
	l.mu.Unlock()
	for _, f := range turns {
		f(ctx)
	}
}

func (l *later) answers() bool {
	l.mu.Lock()
	all := l.answerer
	l.mu.Unlock()
	for _, there := range all {
		if there() {
			return true
		}
	}
	return false
}

func (l *later) approvalTimeout(session string) time.Duration {
	l.mu.Lock()
	of := l.timeout
	l.mu.Unlock()
	if of == nil {
		return 0
	}
	return of(session)
}
