package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Down says that the tools of a provider, a server to its users, cannot be called, why,
// and what to do. It is said in the same words wherever a call meets it.
func Down(id string, st State, reason string) string {
	if reason != "" {
		reason = ": " + Clean(reason, 400)
	}
	return fmt.Sprintf("server %q is %s, and its tools cannot be called%s; see: yaya mcp logs %s; start it again with: yaya mcp restart %s", id, st, reason, id, id)
}

// await waits until calls can reach the provider. One that has failed is made
// to try again, once per wait; an attempt that was under way already does not
// count, for it may have begun before the provider was back.
func (s *supervisor) await(ctx context.Context) error {
	kicked := false
	for {
		s.mu.Lock()
		st, moved := s.st, s.moved
		usable := s.usable.Load()
		s.mu.Unlock()
		switch {
		case usable:
			return nil
		case st.State == Stopped, s.ctx.Err() != nil:
			return errors.New(Down(s.info.ID, Stopped, ""))
		case st.State == Failed && kicked:
			return errors.New(Down(s.info.ID, st.State, st.Reason))
		case st.State == Failed:
			kicked = true
			select {
			case s.kick <- struct{}{}:
			default:
			}
			// The state to wait for is the one after the attempt.
			s.waitPast(ctx, moved)
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			if st.State == Draining {
				return fmt.Errorf("server %q is started again once the calls that are in flight have ended; call again (%s): %w", s.info.ID, st.Reason, ctx.Err())
			}
			if st.State == Installing {
				return fmt.Errorf("server %q is still installing; call again when it is ready (it last said: %s): %w", s.info.ID, st.Reason, ctx.Err())
			}
			return fmt.Errorf("server %q is %s: %w", s.info.ID, cmp.Or(st.State, Declared), ctx.Err())
		case <-s.done:
		}
	}
}

func (s *supervisor) waitPast(ctx context.Context, moved chan struct{}) {
	select {
	case <-moved:
	case <-ctx.Done():
	case <-s.done:
	}
}

// callWait bounds how long a call waits for its provider to come (back) up.
const callWait = startTimeout

// provided is a discovered tool in the registry.
type provided struct {
	s    *supervisor
	def  tool.Definition
	tool Tool

	withheld string // why it cannot be called
}

// Definition implements [tool.Tool].
func (p *provided) Definition() tool.Definition { return p.def }

// ObeysContext implements [tool.Obedient]: [Tool] demands it of providers.
func (p *provided) ObeysContext() {}

// Invoke implements [tool.Tool].
func (p *provided) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	for retried := false; ; retried = true {
		if err := p.s.begin(ctx); err != nil {
			return tool.Fail(tool.ErrUnavailable, "%s", err.Error()), nil
		}
		res, err := p.once(ctx, call)
		if err == nil || retried || !errors.Is(err, ErrNotSent) {
			return res, err
		}
	}
}

// once makes a call that has begun.
func (p *provided) once(ctx context.Context, call tool.Call) (tool.Result, error) {
	defer p.s.leave()
	return p.tool.Invoke(ctx, call)
}

// Do runs f when a provider can be reached, waiting for one that is starting and
// making one that has failed try again. f is run a second time if it says with
// [ErrNotSent] that nothing has reached the provider.
func (h *Host) Do(ctx context.Context, id string, f func() error) error {
	h.mu.Lock()
	s := h.providers[id]
	h.mu.Unlock()
	if s == nil {
		return fmt.Errorf("there is no provider %q", id)
	}
	for retried := false; ; retried = true {
		if err := s.begin(ctx); err != nil {
			return err
		}
		err := func() error {
			defer s.leave()
			return f()
		}()
		if err == nil || retried || !errors.Is(err, ErrNotSent) {
			return err
		}
	}
}
