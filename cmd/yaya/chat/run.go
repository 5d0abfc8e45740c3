package chat

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
)

// Options are the initial settings of the chat.
type Options struct {
	Session   string // session to continue; "" starts one
	Workspace string // of new sessions
	Home      string // the user's folder, "" if it is not known
	Data      string // the data directory, for the history
	In        io.Reader
	Out       io.Writer
}

// Run runs the chat in a terminal until its user leaves, or ctx ends.
func Run(ctx context.Context, api *Client, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := Session{ID: o.Session}
	var err error
	if o.Session == "" {
		first.ID, err = api.New(ctx, o.Workspace)
	}
	if err == nil {
		first, err = api.Session(ctx, first.ID)
	}
	if err != nil {
		return err
	}
	m := newModel(ctx, api, o.Workspace)
	m.home = o.Home
	m.history.dir = o.Data
	if err := m.history.load(); err != nil {
		m.complain(fmt.Errorf("the history of the chat cannot be read: %w", err))
	}
	defer m.history.writes.Wait()
	m.procs.Guard = true
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	m.send = p.Send
	m.suspend = func() error { return stop(p) }
	m.switchTo(first)
	end := watchStops(p.Send)
	_, err = p.Run()
	cancel()
	end()
	m.work.Wait()
	m.procs.Close(context.WithoutCancel(ctx))
	for _, f := range m.followers {
		f.done.Wait()
	}
	if errors.Is(err, tea.ErrProgramPanic) {
		return err
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		err = nil // it was told to stop
	}
	return err
}
