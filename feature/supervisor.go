package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// State is the state of a provider.
type State string

// The states.
const (
	Declared State = "declared"
	Starting State = "starting"
	// Installing is a start that downloads its program; the reason is the last line of
	// progress.
	Installing State = "installing"
	Ready      State = "ready"
	Degraded   State = "degraded" // works, with a diagnostic
	// Draining is between an outdated connection and the next: the calls in flight
	// continue, and others wait; the reason says why.
	Draining State = "draining"
	Failed   State = "failed" // waits for its next attempt
	Stopped  State = "stopped"
)

// Usable reports whether calls reach the provider in this state.
func (s State) Usable() bool { return s == Ready || s == Degraded }

// Status is a provider's state for people.
type Status struct {
	ID          string        `json:"id"`
	State       State         `json:"state"`
	Reason      string        `json:"reason,omitempty"` // why it is degraded, draining or failed, why it failed before it starts again, or how its installation goes
	Since       time.Time     `json:"since"`
	Tools       int           `json:"tools"`
	Restarts    int           `json:"restarts"`
	StartTook   time.Duration `json:"start_took_ns"`
	LastError   string        `json:"last_error,omitempty"`
	Diagnostics []string      `json:"diagnostics,omitempty"`
	Detail      any           `json:"detail,omitempty"`
}

// supervisor owns one provider.
type supervisor struct {
	host *Host
	p    Provider
	info Info
	born time.Time

	ctx    context.Context // a base context: of the provider's life; calls and signals ask whether it is over
	cancel context.CancelFunc
	done   chan struct{}

	usable atomic.Bool   // mirror of st.State for the path of every call
	calls  atomic.Int64  // in flight
	idle   chan struct{} // signals that the last of them has ended while the provider was not usable
	again  chan struct{} // it may have to be connected again

	mu       sync.Mutex
	st       Status
	tools    []tool.Provided
	byTool   map[Tool]*provided
	dirty    bool
	lastList time.Time
	epoch    int           // counts attempts; signals of older ones are ignored
	failed   chan error    // of the current attempt
	kick     chan struct{} // a call wants an attempt now
	poke     chan struct{} // dirty was set
	moved    chan struct{} // closed and replaced at every change of state
	started  bool          // the first start is over
	renewing bool          // it reconnects because it was outdated

	listing sync.Mutex // one discovery at a time
}

func newSupervisor(h *Host, p Provider) *supervisor {
	s := &supervisor{
		host: h, p: p, info: p.Info(), born: time.Now(), done: make(chan struct{}),
		byTool: map[Tool]*provided{}, kick: make(chan struct{}, 1), poke: make(chan struct{}, 1), moved: make(chan struct{}),
		idle: make(chan struct{}, 1), again: make(chan struct{}, 1),
	}
	s.st = Status{ID: s.info.ID, State: Declared, Since: s.born}
	s.ctx, s.cancel = context.WithCancel(h.ctx)
	return s
}

// run is the life of the provider.
func (s *supervisor) run() {
	defer close(s.done)
	defer s.set(Stopped, "")
	for failures := 0; ; {
		begun := time.Now()
		failed, err := s.attempt()
		worked := err == nil
		if worked {
			s.host.changed()
			err = s.serve(failed)
		}
		s.usable.Store(false)
		s.end()
		if s.ctx.Err() != nil {
			return
		}
		if worked && time.Since(begun) >= healthyReset {
			failures = 0
		}
		if e, ok := errors.AsType[*outdatedError](err); ok {
			s.renew(e)
			continue
		}
		s.logFailure(err)
		if isFinal(err) {
			s.fail(err)
			if !s.pause(begun, 0) {
				return
			}
		} else if wait := max(pauseAfter(failures, worked), asked(err)); wait > 0 {
			s.fail(err)
			if !s.pause(begun, wait) {
				return
			}
		} else {
			s.note(err)
		}
		failures++
		s.mu.Lock()
		s.st.Restarts++
		s.mu.Unlock()
	}
}

// logFailure warns of a failure once, however often it repeats.
func (s *supervisor) logFailure(err error) {
	s.mu.Lock()
	again := s.st.LastError == s.host.clean(err.Error())
	s.mu.Unlock()
	level := zerolog.WarnLevel
	if again {
		level = zerolog.DebugLevel
	}
	s.host.cfg.Log.WithLevel(level).Str("provider", s.info.ID).Err(err).Msg("provider failed")
}

// pauseAfter returns the pause before the next attempt: none after the first
// failure of a provider that worked, else 1 s doubling to 60 s, with up to a
// fifth of jitter either way.
func pauseAfter(failures int, worked bool) time.Duration {
	if failures == 0 && worked {
		return 0
	}
	return min(backoff.Spread(backoff.Pause(backoffFirst, backoffMax, failures), 0.8, 1.2), backoffMax)
}

// asked returns how long a failure asks to be left alone: an error may have a
// method RetryAfter.
func asked(err error) time.Duration {
	type patient interface {
		error
		RetryAfter() time.Duration
	}
	if p, ok := errors.AsType[patient](err); ok {
		return p.RetryAfter()
	}
	return 0
}

// RefusedError is a start that the user's own settings forbid: a retry cannot succeed. A
// provider that fails with it stays failed until it is [Outdated], or until a call asks for
// it.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

func isFinal(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is
}

// pause waits for the next attempt, or less if a call or another reason asks for one;
// without a duration, until then. It reports false if the provider has to stop.
func (s *supervisor) pause(begun time.Time, wait time.Duration) bool {
	var over <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	for kicked := false; !kicked; {
		select {
		case <-s.ctx.Done():
			return false
		case <-over:
			return true
		case <-s.again:
			if s.outdated() != "" {
				return true
			}
		case <-s.kick:
			kicked = true
		}
	}
	if rest := demandFloor - time.Since(begun); rest > 0 {
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(rest):
		}
	}
	return true
}

// attempt starts the provider and discovers its tools.
func (s *supervisor) attempt() (chan error, error) {
	for _, answered := range []chan struct{}{s.kick, s.again} { // by this attempt
		select {
		case <-answered:
		default:
		}
	}
	begun := time.Now()
	failed := make(chan error, 1)
	s.mu.Lock()
	s.epoch++
	epoch := s.epoch
	s.failed = failed
	reason := ""
	if s.st.State == Failed {
		reason = s.st.Reason
	}
	s.mu.Unlock()
	s.set(Starting, reason)

	whole, end := s.untilOutdated()
	degraded, err := s.connect(whole, epoch)
	end()
	if e, ok := isOutdated(whole); ok {
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.st.StartTook = time.Since(begun)
	s.started = true
	s.renewing = false
	s.mu.Unlock()
	s.usable.Store(true)
	if degraded != "" {
		s.set(Degraded, degraded)
	} else {
		s.set(Ready, "")
	}
	return failed, nil
}

// connect starts the provider and discovers its tools, as [supervisor.discover] does.
func (s *supervisor) connect(whole context.Context, epoch int) (degraded string, err error) {
	var ctx context.Context
	var cancel context.CancelFunc
	if limit := cmp.Or(s.info.InstallTimeout, s.info.StartTimeout); limit > 0 {
		ctx, cancel = within(whole, limit)
	} else {
		ctx, cancel = s.whileWorking(whole)
	}
	defer func() { cancel() }()
	if err := s.guard("start", func() error { return s.p.Start(ctx, s.signals(epoch)) }); err != nil {
		return "", late(ctx, err)
	}
	if s.info.InstallTimeout > 0 { // it is registered, and answers like any other
		s.move(Starting, "", func(now State) bool { return now == Installing })
		cancel()
		ctx, cancel = s.whileWorking(whole)
	}
	if degraded, err = s.discover(ctx, false); err != nil {
		return "", late(ctx, fmt.Errorf("list tools: %w", err))
	}
	return degraded, nil
}

// guard turns a panic of a provider into an error.
func (s *supervisor) guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.host.cfg.Log.Error().Str("provider", s.info.ID).Interface("panic", r).Bytes("stack", debug.Stack()).Msg("a provider panicked")
			err = fmt.Errorf("panic in %s: %v", what, r)
		}
	}()
	return f()
}

// serve waits while the provider works. It passes on reports of changes, whether or
// not the list turns out to differ: at once, or when the interval since the last
// discovery or announcement is over.
func (s *supervisor) serve(failed chan error) error {
	var later <-chan time.Time
	var told time.Time
	tell := func() {
		later, told = nil, time.Now()
		s.host.announce(s.info.ID)
	}
	for {
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case err := <-failed:
			return err
		case <-s.again:
			if err := s.drain(failed); err != nil {
				return err
			}
		case <-s.poke:
			s.mu.Lock()
			last := s.lastList
			s.mu.Unlock()
			if told.After(last) {
				last = told
			}
			if wait := discoverInterval - time.Since(last); wait <= 0 {
				tell()
			} else if later == nil {
				later = time.After(wait)
			}
		case <-later:
			tell()
		}
	}
}

// end disconnects the current attempt: exactly one Stop for its Start.
func (s *supervisor) end() {
	s.mu.Lock()
	s.epoch++
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stopTimeout)
	defer cancel()
	if err := s.guard("stop", func() error { return s.p.Stop(ctx) }); err != nil {
		s.addDiagnostic(fmt.Sprintf("stop: %v", err))
	}
}

// stop ends the supervision and waits for it; stopTimeout bounds the wait.
func (s *supervisor) stop() {
	s.cancel()
	<-s.done
}

// note records a failure that the next attempt follows at once; the tools stay
// on offer meanwhile.
func (s *supervisor) note(err error) {
	s.mu.Lock()
	s.st.LastError = s.host.clean(err.Error())
	s.mu.Unlock()
	s.addDiagnostic(err.Error())
}

// fail enters the failed state: the tools are no longer offered, but calls still
// find them, and get the reason.
func (s *supervisor) fail(err error) {
	s.note(err)
	s.mu.Lock()
	s.started = true
	s.renewing = false
	hidden := slices.Clone(s.tools)
	s.mu.Unlock()
	for i := range hidden {
		hidden[i].Hidden = true
	}
	s.host.cfg.Registry.Replace(s.info.ID, hidden)
	s.set(Failed, err.Error())
	s.host.changed()
}

func (s *supervisor) set(state State, reason string) {
	s.move(state, reason, func(now State) bool { return now != Stopped })
}

// adjust moves between the states in which the provider works. The provider may
// have failed since the caller looked at it.
func (s *supervisor) adjust(state State, reason string) {
	s.move(state, reason, func(now State) bool {
		same := now == state && s.st.Reason == s.host.clean(reason)
		return now.Usable() && s.usable.Load() && !same
	})
}

func (s *supervisor) move(state State, reason string, from func(State) bool) {
	s.mu.Lock()
	if !from(s.st.State) {
		s.mu.Unlock()
		return
	}
	if s.st.State != state {
		s.st.Since = time.Now()
	}
	s.st.State, s.st.Reason = state, s.host.clean(reason)
	st := s.st
	st.Diagnostics = slices.Clone(st.Diagnostics)
	close(s.moved)
	s.moved = make(chan struct{})
	s.mu.Unlock()
	if s.host.cfg.OnStatus != nil {
		s.host.cfg.OnStatus(st)
	}
}

func (s *supervisor) addDiagnostic(msg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := append(s.st.Diagnostics, s.host.clean(msg))
	s.st.Diagnostics = slices.Clone(d[max(0, len(d)-maxDiagnostics):])
}

func (s *supervisor) status() Status {
	s.mu.Lock()
	st := s.st
	st.Diagnostics = slices.Clone(st.Diagnostics)
	s.mu.Unlock()
	if d, ok := s.p.(Detailer); ok {
		st.Detail = d.Detail()
	}
	return st
}
