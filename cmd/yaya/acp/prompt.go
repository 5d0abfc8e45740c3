package acp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
)

// begin makes room for a prompt, of which a session has one at a time.
func (s *session) begin() (*turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, fault(s.err)
	}
	if s.prompt != nil {
		return nil, wrong("a prompt of this session is being worked on: it ends, or session/cancel ends it")
	}
	s.prompt = &turn{message: "msg_" + strings.ToLower(rand.Text()), sent: make(chan struct{}), over: make(chan outcome, 1)}
	return s.prompt, nil
}

// send sends the message of a prompt.
func (s *session) send(ctx context.Context, t *turn, content []block) error {
	defer close(t.sent)
	parts, err := s.parts(ctx, content)
	if err != nil {
		return err
	}
	s.mu.Lock()
	told := s.servers
	s.servers = nil
	s.mu.Unlock()
	if len(told) > 0 {
		s.update(chunk{Kind: "agent_message_chunk", Message: "yaya", Content: text(fmt.Sprintf("yaya starts no MCP servers that an editor names (%s). Its own are in use; `yaya mcp add` or `yaya mcp import` adds these.\n\n", strings.Join(told, ", ")))})
	}
	// A turn that somebody else has started ends first. The message does not end with the request:
	// yaya may have taken it, and then there is a turn to cancel.
	return fault(s.a.api.Say(s.ctx, s.id, t.message, parts, "queue"))
}

// answer sends the message of a prompt, and returns when its turn is over.
func (s *session) answer(ctx context.Context, t *turn, content []block) (any, error) {
	if err := s.send(ctx, t, content); err != nil {
		s.finish(func(x *turn) bool { return x == t }, outcome{})
		return nil, err
	}
	select {
	case out := <-t.over:
		if out.err != nil {
			return nil, fault(out.err)
		}
		return stopped{out.reason}, nil
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), errWithdrawn) {
			return nil, ctx.Err() // the editor is gone, and the turn goes on
		}
		s.cancel(t) // as session/cancel does
		out := <-t.over
		if out.err != nil {
			return nil, ctx.Err()
		}
		return stopped{out.reason}, nil
	}
}

// running returns the prompt that is being worked on, or nil.
func (s *session) running() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompt
}

// cancel ends what a prompt of this editor has started. The answer of the prompt is the end of the turn.
func (s *session) cancel(t *turn) {
	s.a.work.Go(func() {
		if err := s.abandon(s.ctx, t); err != nil && s.ctx.Err() == nil {
			s.a.o.Log.Warn().Err(err).Str("session", s.id).Msg("a turn cannot be cancelled")
		}
	})
}

// abandon cancels the turn of a prompt, or takes the prompt out of the queue; without one it does
// nothing. A message that is on its way arrives first: until then, a running turn would be somebody else's.
func (s *session) abandon(ctx context.Context, t *turn) error {
	switch {
	case t == nil:
		return nil
	case t.stop != nil:
		t.stop()
		return nil
	}
	select {
	case <-t.sent:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	over, begun := s.prompt != t, t.id != ""
	s.mu.Unlock()
	if over {
		return nil
	}
	if !begun {
		gone, err := s.a.api.Withdraw(ctx, s.id, t.message)
		if err != nil {
			return err
		}
		if gone {
			s.finish(func(x *turn) bool { return x == t }, outcome{reason: "cancelled"})
			return nil
		}
	}
	err := s.a.api.Cancel(ctx, s.id)
	if refused, ok := errors.AsType[*chat.Error](err); ok && refused.Code == "no_active_turn" {
		return nil // it has just ended
	}
	return err
}

// finish ends the prompt, if it is the one that is meant.
func (s *session) finish(meant func(*turn) bool, out outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.prompt; t != nil && meant(t) {
		s.prompt = nil
		t.over <- out
	}
}

// Limits of what the editor adds to a prompt.
const maxEmbedded = 256 << 10 // bytes of a text

// parts translates the content of a prompt. Pictures and files become attachments.
func (s *session) parts(ctx context.Context, content []block) ([]chat.Part, error) {
	var out []chat.Part
	for _, b := range content {
		switch {
		case b.Type == "text":
			out = append(out, chat.Part{Type: "text", Text: b.Text})
		case b.Type == "resource_link":
			out = append(out, chat.Part{Type: "text", Text: s.link(b.URI)})
		case b.Type == "resource" && b.Resource != nil && b.Resource.Blob == "":
			body := b.Resource.Text
			if len(body) > maxEmbedded {
				return nil, wrong(fmt.Sprintf("%s has %d bytes; a prompt takes texts of at most %d: name it, and the agent reads what it needs", b.Resource.URI, len(body), maxEmbedded))
			}
			out = append(out, chat.Part{Type: "text", Text: s.link(b.Resource.URI) + ":\n" + fenced(body)})
		case b.Type == "resource" && b.Resource != nil:
			p, err := s.upload(ctx, path.Base(b.Resource.URI), b.Resource.Blob)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		case b.Type == "image":
			p, err := s.upload(ctx, "picture", b.Data)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		default:
			return nil, wrong(fmt.Sprintf("yaya takes texts, pictures, links and resources, not %q", b.Type))
		}
	}
	if len(out) == 0 {
		return nil, wrong("the prompt is empty")
	}
	return out, nil
}

func (s *session) upload(ctx context.Context, name, data string) (chat.Part, error) {
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return chat.Part{}, wrong("the data of a picture or file is not base64")
	}
	p, err := s.a.api.Attach(ctx, s.id, name, data)
	if err != nil {
		return p, fault(err)
	}
	return p, nil
}

// link names a file as the tools of the agent do: relative to the folder, if it is in it.
func (s *session) link(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	at := u.Path
	if in, ok := strings.CutPrefix(at, strings.TrimSuffix(s.folder, "/")+"/"); ok {
		at = in
	}
	if u.Fragment != "" {
		at += "#" + u.Fragment
	}
	return at
}

// fenced puts a text into a block of code that it cannot leave.
func fenced(body string) string {
	longest, n := 2, 0 // backticks in a row
	for _, c := range []byte(body) {
		if n++; c != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimSuffix(body, "\n") + "\n" + fence
}
