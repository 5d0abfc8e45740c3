package feature

import (
	"context"
	"errors"
	"time"
)

// drainTimeout is how long the calls of a provider that has to reconnect may
// continue: no server can keep a right that a setting revoked by never answering.
const drainTimeout = 5 * time.Minute

// outdatedError ends a connection that has to be replaced.
type outdatedError struct{ why string }

func (e *outdatedError) Error() string { return e.why }

// Reconsider asks every [Outdated] provider whether it has to reconnect, and
// reconnects those that have: they finish the calls in flight, and later ones wait.
// It returns at once.
func (h *Host) Reconsider() {
	for _, s := range h.supervisors() {
		select {
		case s.again <- struct{}{}:
		default: // it is about to be asked
		}
	}
}

// outdated returns why the provider has to reconnect, "" if it need not.
func (s *supervisor) outdated() (why string) {
	o, ok := s.p.(Outdated)
	if !ok {
		return ""
	}
	if err := s.guard("outdated", func() error {
		why = o.Outdated()
		return nil
	}); err != nil {
		return err.Error()
	}
	return why
}

// untilOutdated returns the context of an attempt, which ends when the provider has to
// reconnect: the attempt began with outdated settings.
func (s *supervisor) untilOutdated() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.again:
			}
			why := s.outdated()
			if why == "" {
				continue
			}
			cancel(&outdatedError{why})
			if _, ok := isOutdated(ctx); !ok { // the attempt was over first
				select {
				case s.again <- struct{}{}:
				default:
				}
			}
			return
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}

// drain blocks new calls and waits for those in flight, if the provider has to
// reconnect. It returns why the connection ends, nil if it continues: there is no reason
// to end it, or the reason has disappeared.
func (s *supervisor) drain(failed chan error) error {
	why := s.outdated()
	if why == "" {
		return nil
	}
	s.usable.Store(false)
	limit := time.NewTimer(drainTimeout)
	defer limit.Stop()
	s.mu.Lock()
	state, reason := s.st.State, s.st.Reason
	s.renewing = true
	s.mu.Unlock()
	s.move(Draining, why, func(now State) bool { return now.Usable() })
	waited := false
	for over := false; s.calls.Load() > 0 && !over; {
		waited = true
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case err := <-failed:
			return err
		case <-s.idle: // or it was, before somebody came to ask
		case <-s.again:
			over = s.outdated() == ""
		case <-limit.C:
			over = true
		}
	}
	if waited { // else it has just been asked
		why = s.outdated()
	}
	if why != "" {
		return &outdatedError{why}
	}
	s.renewed()
	s.usable.Store(true)
	s.set(state, reason) // for calls, too, that have waited since before it was draining
	return nil
}

// renew records that the provider reconnects because it was outdated.
func (s *supervisor) renew(e *outdatedError) {
	s.host.cfg.Log.Info().Str("provider", s.info.ID).Str("why", e.why).Msg("provider is started again")
	s.addDiagnostic("it was started again: " + e.why)
	s.mu.Lock()
	s.st.Restarts++
	s.renewing = true
	s.mu.Unlock()
}

// renewed records that the new connection exists, or has failed.
func (s *supervisor) renewed() {
	s.mu.Lock()
	s.renewing = false
	s.mu.Unlock()
}

// isOutdated returns why an attempt has ended, if the reason is that the provider has
// to reconnect.
func isOutdated(ctx context.Context) (*outdatedError, bool) {
	return errors.AsType[*outdatedError](context.Cause(ctx))
}

// begin waits until a call can reach the provider, and counts it as in flight: unless it
// fails, the caller must call leave.
func (s *supervisor) begin(ctx context.Context) error {
	if s.enter() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	for {
		if err := s.await(ctx); err != nil {
			return err
		}
		if s.enter() {
			return nil
		}
	}
}

// enter counts a call if it can reach the provider now.
func (s *supervisor) enter() bool {
	s.calls.Add(1) // before the check: drain checks in the other order
	if s.usable.Load() {
		return true
	}
	s.leave()
	return false
}

func (s *supervisor) leave() {
	if s.calls.Add(-1) == 0 && !s.usable.Load() {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}
