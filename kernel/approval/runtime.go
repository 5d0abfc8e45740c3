package approval

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// DefaultTimeout is how long an ask waits.
const DefaultTimeout = time.Minute

const (
	maxFeedback = 4 << 10 // bytes
	maxRecent   = 1024    // decisions that are remembered for late answers
)

// The ways in which an ask ends without an answer. Their text carries the reason
// word of the contract.
var (
	ErrTimeout  = errors.New("cancelled (timeout): nobody answered in time")
	ErrShutdown = errors.New("cancelled (shutdown): yaya is shutting down")
	// ErrUnknown reports an ask that does not exist.
	ErrUnknown = errors.New("approval request not found")
	// ErrAnswered reports that an ask already has an answer; the decision is the
	// recorded one.
	ErrAnswered = errors.New("the request was answered already")
)

// Ledger records asks and answers with a session. It returns nil for a session that
// has no tape.
type Ledger interface {
	Note(session string, ev event.Event, data any) error
}

// Ask sends a request to somebody who can answer it.
type Ask func(ctx context.Context, req Request) (answer event.ApprovalAnswer, feedback string, err error)

// Config adjusts a runtime; Bus is required.
type Config struct {
	Bus    *bus.Bus
	Ledger Ledger // default: none
	// Secrets are concealed in asks, but not in the arguments that they bind.
	// Optional.
	Secrets *masked.Secrets
	// Audience reports whether anybody can be asked about a session. Default:
	// somebody subscribes to approval.request.
	Audience func(session string) bool
	// Asker returns a function that asks the maker of a call, or nil if the maker
	// cannot be asked. The runtime calls it with the request once that is recorded,
	// and its answer counts if it is the first; it obeys its context. Optional.
	Asker func(call tool.Call) Ask
	// Audit is called with every answer before it counts; its error turns the answer
	// into a rejection. Optional.
	Audit func(Request, Decision) error
	// Timeout returns how long an ask of a session waits. Default [DefaultTimeout].
	Timeout func(session string) time.Duration
	Log     zerolog.Logger
}

// Runtime asks people. It implements [tool.Approver].
type Runtime struct {
	cfg    Config
	kernel *bus.Emitter
	sub    *bus.Subscription

	mu      sync.Mutex
	closed  bool
	pending map[string]*pending
	grants  map[string]map[[32]byte]struct{} // by originating session
	recent  map[string]Decision
	order   []string
	ended   []Ended // oldest first

	onChange atomic.Pointer[func()]
}

// OnChange makes the runtime call f whenever an ask is put, answered or withdrawn. f
// must not block. Unlike a subscriber to approval.request, an observer does not count
// as somebody who can answer.
func (r *Runtime) OnChange(f func()) { r.onChange.Store(&f) }

func (r *Runtime) changed() {
	if f := r.onChange.Load(); f != nil {
		(*f)()
	}
}

type pending struct {
	req    Request
	key    [32]byte
	answer chan Decision // closed on shutdown
}

// New returns a runtime that listens for answers.
func New(cfg Config) (*Runtime, error) {
	if cfg.Timeout == nil {
		cfg.Timeout = func(string) time.Duration { return DefaultTimeout }
	}
	if cfg.Audience == nil {
		cfg.Audience = func(string) bool { return cfg.Bus.Wanted(event.ApprovalRequested.Name()) }
	}
	r := &Runtime{cfg: cfg, kernel: cfg.Bus.Kernel(), pending: map[string]*pending{}, grants: map[string]map[[32]byte]struct{}{}, recent: map[string]Decision{}}
	var err error
	r.sub, err = bus.On(cfg.Bus, bus.SubscribeOptions{Name: "approval"}, event.ApprovalAnswered, func(_ context.Context, ev event.Event, a event.ApprovalResponse) error {
		_, err := r.resolve(Decision{ApprovalResponse: a, By: ev.Source})
		if errors.Is(err, ErrAnswered) || errors.Is(err, ErrUnknown) {
			return nil // late, or for an ask that never existed: nothing depends on it
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Close ends every pending ask with reason shutdown, at once, and refuses new
// ones.
func (r *Runtime) Close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	for _, p := range r.pending {
		close(p.answer)
	}
	r.mu.Unlock()
	r.sub.Close()
}

// Approve implements [tool.Approver]. It returns when there is an answer, the
// timeout has passed, ctx ends, or the runtime closes; ctx ends when the call is
// no longer wanted.
func (r *Runtime) Approve(ctx context.Context, call tool.Call, def tool.Definition, brief string) error {
	key, err := bind(call, def)
	if err != nil {
		return err
	}
	if r.granted(call.SessionID, key) {
		return nil
	}
	d, err := r.put(ctx, key, call, def, brief)
	if err != nil {
		return err
	}
	return verdict(d)
}

// Ask puts a question that does not concern the run of a tool, such as whether to
// trust a folder, and returns the recorded answer. It waits as [Runtime.Approve] does;
// earlier answers do not count.
func (r *Runtime) Ask(ctx context.Context, call tool.Call, def tool.Definition, brief string) (Decision, error) {
	key, err := bind(call, def)
	if err != nil {
		return Decision{}, err
	}
	return r.put(ctx, key, call, def, brief)
}

// put puts an ask and waits for its answer.
func (r *Runtime) put(ctx context.Context, key [32]byte, call tool.Call, def tool.Definition, brief string) (Decision, error) {
	var caller Ask
	if r.cfg.Asker != nil {
		caller = r.cfg.Asker(call)
	}
	others := r.cfg.Audience(call.SessionID)
	if !others && caller == nil {
		return Decision{}, &tool.RejectedError{Feedback: "it needs approval and nobody is there to ask"}
	}
	wait := cmp.Or(r.cfg.Timeout(call.SessionID), DefaultTimeout)
	if call.Prepared != nil {
		wait = max(wait, call.Prepared.Wait)
	}
	p := &pending{key: key, answer: make(chan Decision, 1), req: Request{
		CallID: call.ID, ApprovalRequest: event.ApprovalRequest{ID: "appr_" + rand.Text(), ToolName: def.Name, Params: r.cfg.Secrets.ConcealJSON(bytes.Clone(call.Bound())), Brief: tool.Brief(r.cfg.Secrets.ConcealString(brief))},
		SessionID: call.SessionID, Deadline: time.Now().Add(wait).UTC().Truncate(time.Millisecond),
		Decisions: []event.ApprovalAnswer{event.Approve, event.ApproveForSession, event.Reject},
		Digest:    fmt.Sprintf("%x", key),
		Def:       def, Why: r.cfg.Secrets.ConcealString(call.Why),
	}}
	if prepared := call.Prepared; prepared != nil {
		p.req.Sandbox = prepared.Sandbox
		for _, w := range prepared.Weaker {
			p.req.Weaker = append(p.req.Weaker, r.cfg.Secrets.ConcealString(w))
		}
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return Decision{}, ErrShutdown
	}
	r.pending[p.req.ID] = p
	r.mu.Unlock()

	if err := r.ask(p); err != nil {
		r.take(p.req.ID)
		return Decision{}, fmt.Errorf("the request could not be put: %w", err)
	}
	r.changed()
	defer r.changed()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	if caller != nil {
		defer r.askCaller(ctx, caller, p.req, others)()
	}
	select {
	case d, ok := <-p.answer:
		if !ok {
			r.take(p.req.ID)
			return Decision{}, r.withdraw(p, "shutdown", ErrShutdown)
		}
		return d, nil
	case <-timer.C:
		return r.giveUp(p, "timeout", ErrTimeout)
	case <-ctx.Done():
		// The call has ended, so there is nothing left to decide.
		return r.giveUp(p, "shutdown", context.Cause(ctx))
	}
}

// askCaller asks the maker of the call. An answer that cannot be understood counts
// as a refusal if nobody else can answer. The returned function ends the question
// and waits.
func (r *Runtime) askCaller(ctx context.Context, ask Ask, req Request, others bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		answer, feedback, err := ask(ctx, req)
		switch {
		case ctx.Err() != nil: // another answer came first, or the call has ended
			return
		case err != nil && others:
			return
		case err != nil:
			answer, feedback = event.Reject, "the client could not be asked: "+err.Error()
		}
		_, err = r.Answer(req.ID, answer, feedback, "caller")
		if err != nil && !errors.Is(err, ErrAnswered) && !errors.Is(err, ErrUnknown) {
			r.cfg.Log.Warn().Err(err).Str("id", req.ID).Msg("the answer of a caller could not be taken")
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// ask makes a request durable, and then announces it.
func (r *Runtime) ask(p *pending) error {
	ev := r.envelope(event.ApprovalRequested.Name(), p.req.ApprovalRequest)
	if err := r.note(p.req.SessionID, ev, p.req); err != nil {
		return err
	}
	_, err := bus.Publish(r.kernel, event.ApprovalRequested, event.KernelSession, p.req.ApprovalRequest)
	return err
}

func (r *Runtime) envelope(kind string, payload any) event.Event {
	return event.Event{ID: uuid.NewString(), Kind: kind, SessionID: event.KernelSession, Time: time.Now(), Source: event.KernelSource, Payload: payload}
}

// note writes to the tape of the asking session and to that of its root session,
// which may have the only reader.
func (r *Runtime) note(session string, ev event.Event, data any) error {
	if r.cfg.Ledger == nil {
		return nil
	}
	if err := r.cfg.Ledger.Note(session, ev, data); err != nil {
		return err
	}
	if root := event.Root(session); root != session {
		return r.cfg.Ledger.Note(root, ev, data)
	}
	return nil
}

func verdict(d Decision) error {
	if d.Response == event.Reject {
		return &tool.RejectedError{Feedback: d.Feedback}
	}
	return nil
}

// take removes a pending ask; false means that it was already taken.
func (r *Runtime) take(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.pending[id]
	delete(r.pending, id)
	return ok
}

// giveUp ends an ask without an answer, unless one came at the same moment.
func (r *Runtime) giveUp(p *pending, reason string, why error) (Decision, error) {
	if !r.take(p.req.ID) {
		if d, ok := <-p.answer; ok {
			return d, nil
		}
	}
	return Decision{}, r.withdraw(p, reason, why)
}

func (r *Runtime) withdraw(p *pending, reason string, why error) error {
	c := event.ApprovalCancelled{ID: p.req.ID, Reason: reason}
	r.end(p.req, Decision{}, reason)
	if err := r.note(p.req.SessionID, r.envelope(event.ApprovalWithdrawn.Name(), c), Withdrawal{c, p.req.ToolName, p.req.CallID}); err != nil {
		r.cfg.Log.Warn().Err(err).Str("id", p.req.ID).Msg("the end of an approval request could not be recorded")
	}
	if _, err := bus.Publish(r.kernel, event.ApprovalWithdrawn, event.KernelSession, c); err != nil && !errors.Is(err, bus.ErrClosed) {
		r.cfg.Log.Warn().Err(err).Str("id", p.req.ID).Msg("the end of an approval request could not be announced")
	}
	return why
}

// Answer answers a request on behalf of by. The first answer counts; a later one
// gets the recorded decision and [ErrAnswered].
func (r *Runtime) Answer(id string, answer event.ApprovalAnswer, feedback, by string) (Decision, error) {
	return r.resolve(Decision{ApprovalResponse: event.ApprovalResponse{ID: id, Response: answer, Feedback: feedback}, By: by})
}

func (r *Runtime) resolve(d Decision) (Decision, error) {
	switch d.Response {
	case event.Approve, event.ApproveForSession, event.Reject:
	default:
		return Decision{}, fmt.Errorf("%q is none of approve, approve_for_session and reject", d.Response)
	}
	d.Feedback = cut.Text(d.Feedback, maxFeedback)
	r.mu.Lock()
	p, ok := r.pending[d.ID]
	if !ok || r.closed {
		was, known := r.recent[d.ID]
		r.mu.Unlock()
		if known {
			return was, ErrAnswered
		}
		return Decision{}, ErrUnknown
	}
	delete(r.pending, d.ID)
	r.remember(d)
	r.mu.Unlock()
	// The answer is recorded before it takes effect.
	d.ToolName, d.CallID = p.req.ToolName, p.req.CallID
	err := r.note(p.req.SessionID, r.envelope(event.ApprovalAnswered.Name(), d.ApprovalResponse), d)
	if err == nil && r.cfg.Audit != nil {
		err = r.cfg.Audit(p.req, d)
	}
	if err != nil {
		d.Response, d.Feedback = event.Reject, "the answer could not be recorded: "+err.Error()
	}
	if d.Response == event.ApproveForSession {
		r.grant(p)
	}
	r.end(p.req, d, "")
	p.answer <- d
	return d, err
}

// grant lets calls like this one run from now on.
func (r *Runtime) grant(p *pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.grants[p.req.SessionID]
	if g == nil {
		g = map[[32]byte]struct{}{}
		r.grants[p.req.SessionID] = g
	}
	g[p.key] = struct{}{}
}

// remember keeps a decision for late answers; mu is held.
func (r *Runtime) remember(d Decision) {
	r.recent[d.ID] = d
	r.order = append(r.order, d.ID)
	if len(r.order) > maxRecent {
		delete(r.recent, r.order[0])
		r.order = r.order[1:]
	}
}

// Knows reports whether a request waits here, or was answered here of late.
func (r *Runtime) Knows(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waits := r.pending[id]
	_, answered := r.recent[id]
	return waits || answered
}

// Pending returns the asks that wait.
func (r *Runtime) Pending() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Request, 0, len(r.pending))
	for _, p := range r.pending {
		out = append(out, p.req)
	}
	return out
}

// granted looks for an approve_for_session of exactly this call, in the session and
// in its parents.
func (r *Runtime) granted(session string, key [32]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if _, ok := r.grants[session][key]; ok {
			return true
		}
		i := strings.LastIndex(session, event.AgentSeparator)
		if i < 0 {
			return false
		}
		session = session[:i]
	}
}

// bind returns the digest that an approval is for. A tool with a changed definition
// is a different tool.
func bind(call tool.Call, def tool.Definition) (key [32]byte, err error) {
	args, err := jsonrpc.Canonical(call.Args)
	if err != nil {
		return key, fmt.Errorf("arguments: %w", err)
	}
	h := sha256.New()
	put := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, s := range []string{def.Identity.Provider, def.Identity.Tool, def.Name, def.Description, string(def.Kind), fmt.Sprint(def.RequiresApproval)} {
		put([]byte(s))
	}
	for _, b := range [][]byte{def.InputSchema, def.OutputSchema, def.Annotations, def.Native, args} {
		put(b)
	}
	if p := call.Prepared; p != nil {
		shown, err := jsonrpc.Canonical(p.Shown)
		if err != nil {
			return key, fmt.Errorf("what is shown of the call: %w", err)
		}
		put(shown)
		put(p.Binds)
	}
	h.Sum(key[:0])
	return key, nil
}
