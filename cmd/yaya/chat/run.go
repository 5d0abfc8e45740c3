package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Options are the initial settings of the chat.
type Options struct {
	Session   string // session to continue; "" starts one
	Last      bool   // continue the session of the folder that has changed last, if there is one
	Message   string // is sent at the start, unless it is ""
	Workspace string // of new sessions
	Home      string // the user's folder, "" if it is not known
	Data      string // the data directory, for the history
	AddModel  string // the command that adds a model, for a hint
	Local     Local
	In        io.Reader
	Out       io.Writer
}

// echoProvider is the provider that answers before a model is configured.
const echoProvider = "llm-echo"

// leaveTime is how long the chat waits at its end for the deletion of a session.
const leaveTime = 5 * time.Second

// idle is the state of a session that does nothing.
const idle = "idle"

// closed is the status of a session that takes no more messages.
const closed = "completed"

// last returns the session of a folder that has changed last, is not closed and has something in it: a turn,
// or as a fork a title. It returns "" if there is none.
func (c *Client) last(ctx context.Context, folder string) (string, error) {
	for cursor := ""; ; {
		all, next, err := c.Sessions(ctx, cursor)
		if err != nil {
			return "", err
		}
		for _, s := range all {
			if s.Status != closed && !s.empty() && filepath.Clean(s.Workspace) == filepath.Clean(folder) {
				return s.ID, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
}

// empty reports whether nothing was said in a session, which has no title then either.
func (s Session) empty() bool { return s.LastTurn == "" && s.Title == "" }

// leave deletes a session that this chat has made, if nobody has said or set anything in it, and reports
// whether it is gone. One that cannot be deleted stays, and is not continued later.
func (c *Client) leave(ctx context.Context, made Session) bool {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	now, err := c.Session(ctx, made.ID)
	if err != nil || !now.empty() || now.State != idle || len(now.Queue) > 0 || !now.Updated.Equal(made.Updated) {
		return false
	}
	return c.Delete(ctx, made.ID) == nil
}

// Run runs the chat in a terminal until its user leaves, or ctx ends.
func Run(ctx context.Context, api *Client, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := Session{ID: o.Session}
	var err error
	if first.ID == "" && o.Last {
		first.ID, err = api.last(ctx, o.Workspace)
	}
	isNew := err == nil && first.ID == ""
	if isNew {
		first.ID, err = api.New(ctx, o.Workspace)
	}
	if err == nil {
		first, err = api.Session(ctx, first.ID)
	}
	if err != nil {
		return err
	}
	m := newModel(ctx, api, o.Workspace)
	m.home, m.local = o.Home, o.Local
	m.history.dir = o.Data
	if err := m.history.load(); err != nil {
		m.complain(fmt.Errorf("the history of the chat cannot be read: %w", err))
	}
	defer m.history.writes.Wait()
	m.procs.Guard = true
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	m.send = p.Send
	m.suspend = func() error { return stop(p) }
	if isNew {
		m.made = append(m.made, first)
	}
	m.switchTo(first)
	if first.Answering.Provider == echoProvider {
		m.say0("no model is configured: the answers are echoes. To add one: " + o.AddModel + " (or another of yaya provider add --help)")
	}
	if o.Message != "" {
		m.first = m.say(o.Message, "")
	}
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
	gone := false
	for _, made := range m.made {
		if m.api.leave(context.WithoutCancel(ctx), made) && made.ID == m.id {
			gone = true
		}
	}
	if len(m.t.blocks) > 0 && !gone {
		_, _ = fmt.Fprintf(o.Out, "to continue: yaya chat --session %s\n", m.id) // the terminal may be gone
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) {
		err = nil // it was told to stop
	}
	return err
}
