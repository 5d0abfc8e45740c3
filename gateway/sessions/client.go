package sessions

import (
	"context"
	"errors"

	"github.com/yaya-ai/yaya/kernel/loop"
)

// Client is the MCP client that has begun a session: who it is, and the profile that it has come
// through. Both limit the session's agent for good, whoever goes on with the session.
type Client struct {
	Principal string `json:"principal"`
	Profile   string `json:"profile,omitempty"`
}

// ErrNotBegun reports a session that the client has not begun through the same profile: for the
// client it does not exist.
var ErrNotBegun = errors.New("the client has begun no such session")

// Begin makes a session for a client that works in dir, which the caller has checked.
func (s *Service) Begin(dir string, c Client) (id string, err error) {
	made, err := s.make(made{workspace: dir, autoRun: true, client: &c})
	return made.ID, err
}

// ClientOf returns the client that has begun a session, nil if none has.
func (s *Service) ClientOf(id string) (*Client, error) {
	r, err := s.record(id)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Client, nil // it never changes
}

// Begun returns [ErrNotBegun] unless the client has begun the session.
func (s *Service) Begun(id string, c Client) error {
	of, err := s.ClientOf(id)
	if err == nil && (of == nil || *of != c) {
		err = ErrNotBegun
	}
	return err
}

// Run gives the agent of a session that the client has begun a message, and waits for the end of
// its turn. When ctx ends first, the turn is cancelled. may reports whether the client may still use
// the folder that the session works in.
func (s *Service) Run(ctx context.Context, id, text string, c Client, may func(dir string) error) (loop.Outcome, error) {
	if err := s.Begun(id, c); err != nil {
		return loop.Outcome{}, err
	}
	k, rec, err := s.find(id)
	if err != nil {
		return loop.Outcome{}, err
	}
	if rec.Status == Completed {
		return loop.Outcome{}, errors.New("the session is closed: begin another one")
	}
	if err := may(k.Workspace()); err != nil {
		return loop.Outcome{}, err
	}
	f, err := s.feed(id)
	if err != nil {
		return loop.Outcome{}, err
	}
	defer f.Leave()
	s.drive(rec)
	return s.cfg.Loop.Run(ctx, loop.Prompt{SessionID: id, Text: text, May: func() error { return s.open(id) }})
}
