package chat

import (
	"context"
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// errand is work that the user waits for besides the turn, and may stop: a command of theirs, or the
// reading of what a message mentions. There is one at a time.
type errand struct {
	what   string
	sends  bool // a message: others wait for its end
	cancel context.CancelFunc
}

// returned is the end of an errand, with what follows from it.
type returned struct {
	errand *errand
	then   func(*model)
}

// run starts an errand that the user asked for by typing a text. Its goroutine is waited for by [Run],
// and do obeys its context. If there is an errand already, the text goes back into the input.
func (m *model) run(what, typed string, sends bool, do func(ctx context.Context) (then func(*model))) action {
	if now, id := m.errand, m.id; now != nil {
		return func() error {
			m.send(unsent{session: id, text: typed, command: !sends, err: fmt.Errorf("%s: wait for its end, or stop it with Esc", now.what)})
			return nil
		}
	}
	ctx, cancel := context.WithCancel(m.ctx)
	e := &errand{what, sends, cancel}
	m.errand = e
	m.work.Go(func() {
		defer cancel()
		guarded(m.send, func() { m.send(returned{e, do(ctx)}) })
	})
	return nil
}

// stopErrand reports whether there is an errand, and ends it.
func (m *model) stopErrand() bool {
	if m.errand == nil {
		return false
	}
	m.errand.cancel()
	m.errand.what = "stopping"
	return true
}

// guarded runs what a goroutine of the chat does. If that panics, the program ends with the panic: a
// goroutine that ends the process by itself would leave the terminal in raw mode.
func guarded(send func(tea.Msg), do func()) {
	defer func() {
		if r := recover(); r != nil {
			send(broken{fmt.Sprintf("%v\n%s", r, debug.Stack())})
		}
	}()
	do()
}
