package acp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
)

// command is an errand that yaya does itself, for a prompt of a slash and its name. do returns what the
// editor shows.
type command struct {
	name, description, hint string
	do                      func(ctx context.Context, s *session, arg string) (string, error)
}

func commands() []command {
	return []command{
		{"compact", "Sum up the earlier part of the conversation, to make room", "what the summary must keep", func(ctx context.Context, s *session, keep string) (string, error) {
			done, err := s.a.api.Compact(ctx, s.id, keep)
			if err != nil {
				return "", err
			}
			return done.String(), nil
		}},
		{"undo", "Undo the agent's last change of files", "", func(ctx context.Context, s *session, _ string) (string, error) {
			done, err := s.a.api.Undo(ctx, s.id)
			if err != nil {
				return "", err
			}
			return chat.Undone(done), nil
		}},
	}
}

// commandOf returns what a prompt asks yaya itself to do, nil if it is for the model.
func commandOf(content []block) func(context.Context, *session) (string, error) {
	if len(content) != 1 || content[0].Type != "text" {
		return nil
	}
	word, arg, _ := strings.Cut(strings.TrimSpace(content[0].Text), " ")
	for _, c := range commands() {
		if word == "/"+c.name {
			return func(ctx context.Context, s *session) (string, error) { return c.do(ctx, s, strings.TrimSpace(arg)) }
		}
	}
	return nil
}

// do answers a prompt that is a command; it ends with the request, and with life, which session/cancel and
// the end of the session end.
func (s *session) do(ctx, life context.Context, t *turn, run func(context.Context, *session) (string, error)) (any, error) {
	defer context.AfterFunc(ctx, t.stop)()
	defer t.stop()
	said, err := run(life, s)
	stop := life.Err() != nil
	s.finish(func(x *turn) bool { return x == t }, outcome{})
	if refused, ok := errors.AsType[*chat.Error](err); ok && refused.Status < http.StatusInternalServerError {
		said, err = refused.Message+".", nil
	}
	switch {
	case stop:
		return stopped{"cancelled"}, nil
	case err != nil:
		return nil, fault(err)
	}
	s.update(chunk{Kind: "agent_message_chunk", Message: "yaya", Content: text(said + "\n")})
	return stopped{"end_turn"}, nil
}

// answered implements [handler]: an editor that knows a session gets the commands of its prompts, and its
// events.
func (a *agent) answered(result any) {
	opened, ok := result.(interface{ opened() *session })
	if !ok {
		return
	}
	s := opened.opened()
	defer s.start()
	if s.ctx.Err() != nil {
		return // it is closed again
	}
	out := offered{Kind: "available_commands_update"}
	for _, c := range commands() {
		one := offer{Name: c.name, Description: c.description}
		if c.hint != "" {
			one.Input = &hint{c.hint}
		}
		out.Commands = append(out.Commands, one)
	}
	s.update(out)
}
