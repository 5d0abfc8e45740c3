package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Down reports that the tools of a provider ("server" to users) cannot be called, with
// the reason and the remedy. Every path of a call uses the same words.
func Down(id string, st State, reason string) string {
	if reason != "" {
		reason = ": " + Clean(reason, 400)
	}
	if st == Installing || st == Starting { // which a restart would begin again
		return fmt.Sprintf("server %q is %s, and its tools cannot be called yet%s; call again when it is ready; see: yaya mcp logs %s", id, st, reason, id)
	}
	return fmt.Sprintf("server %q is %s, and its tools cannot be called%s; see: yaya mcp logs %s; start it again with: yaya mcp restart %s", id, st, reason, id, id)
}

// await waits until calls can reach the provider. It makes a failed provider try
// again, once per wait; an attempt already in progress does not count, because it
// may have begun before the provider was back.
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
			return worded.Error(ctx.Err(), "%s", s.waited(st))
		case <-s.done:
		}
	}
}

// waited returns the error of a call that has waited in vain.
func (s *supervisor) waited(st Status) string {
	if st.State == Draining {
		return fmt.Sprintf("server %q is started again once the calls that are in flight have ended; call again (%s)", s.info.ID, st.Reason)
	}
	if st.State == Installing {
		return fmt.Sprintf("server %q is still installing; call again when it is ready (it last said: %s)", s.info.ID, st.Reason)
	}
	return fmt.Sprintf("server %q is still %s; call again when it is ready (see: yaya mcp get %[1]s)", s.info.ID, cmp.Or(st.State, Declared))
}

func (s *supervisor) waitPast(ctx context.Context, moved chan struct{}) {
	select {
	case <-moved:
	case <-ctx.Done():
	case <-s.done:
	}
}

// callWait bounds how long a call waits for its provider to start, unless the provider
// reconnects because it was outdated: see [supervisor.patience].
const callWait = startTimeout

// patience returns how long a call waits for its provider. A provider that reconnects
// because it was outdated did work, so a call waits for the calls in flight and a
// complete start.
func (s *supervisor) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.renewing {
		return callWait
	}
	return drainTimeout + cmp.Or(s.info.InstallTimeout, s.info.StartTimeout, startMax) + startTimeout
}

// provided is a discovered tool in the registry.
type provided struct {
	s    *supervisor
	def  tool.Definition
	tool Tool

	withheld string // the reason why it cannot be called
}

// Definition implements [tool.Tool].
func (p *provided) Definition() tool.Definition { return p.def }

// ObeysContext implements [tool.Obedient]: [Tool] demands it of providers.
func (p *provided) ObeysContext() {}

// Invoke implements [tool.Tool].
func (p *provided) Invoke(ctx context.Context, call tool.Call) (tool.Result, error) {
	for retried := false; ; retried = true {
		if err := p.s.begin(ctx); err != nil {
			return tool.Fail(tool.ErrUnavailable, "%s", p.s.hinted(err.Error(), call.Caller)), nil
		}
		res, err := p.once(ctx, call)
		if err == nil || retried || !errors.Is(err, ErrNotSent) {
			return res, err
		}
	}
}

// hinted returns the reason why a provider is down, with its hint.
func (s *supervisor) hinted(why string, caller tool.Caller) string {
	if h, ok := s.p.(Hinter); ok && !caller.IsServer() {
		if hint := h.Hint(); hint != "" {
			why += "; " + hint
		}
	}
	return why
}

// once performs a call that has begun.
func (p *provided) once(ctx context.Context, call tool.Call) (tool.Result, error) {
	defer p.s.leave()
	return p.tool.Invoke(ctx, call)
}

// Do runs f when a provider can be reached; it waits for a starting provider and
// makes a failed one try again. It runs f a second time if f reports with
// [ErrNotSent] that nothing has reached the provider.
func (h *Host) Do(ctx context.Context, id string, f func() error) error {
	h.mu.Lock()
	s := h.providers[id]
	h.mu.Unlock()
	if s == nil {
		return fmt.Errorf("provider %q not found", id)
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
