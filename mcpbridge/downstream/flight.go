package downstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// flight is work that outlives the request that began it: a server asks a question, the client
// gets it as the response input_required, and sends another request with the answer (SEP-2322).
// In between, the work is parked, and only the state that the client received finds it.
type flight struct {
	s      *Server
	owner  string          // the principal that it is counted for when it is parked
	bound  [32]byte        // which client and request may continue it
	ctx    context.Context // a base context: of work that outlives the request that began it
	cancel context.CancelCauseFunc
	done   chan landing
	fresh  chan struct{} // a question was asked

	mu    sync.Mutex
	alone bool               // no request waits for the outcome
	gone  bool               // nobody will request it
	held  intake.Held        // the memory of the request that began it, until the end
	send  func([]byte) error // to the client; nil while no request is there
	seq   int
	open  map[string]*asked
	timer *time.Timer
}

type asked struct {
	relay.Question
	reply chan relay.Reply
}

const statePrefix = "yaya."

// nodePrefix is that of the state of a call which another node has passed on: to its client, that is
// the state of a server, and not one of a call that waits on the node it reaches.
const nodePrefix = "yaya-node."

func (x *exchange) statePrefix() string {
	if x.origin == tool.OriginNode {
		return nodePrefix
	}
	return statePrefix
}

var errParkedTooLong = errors.New("nobody answered in time")

// canPark reports whether the client of a request accepts questions as a response.
func (x *exchange) canPark() bool { return x.modern && relay.Asks(x.caps) }

// bind digests the parts that a request with another's state must share with it: the client,
// and the request without the answers.
func bind(x *exchange) [32]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(x.c.session), []byte(x.profile.name), []byte(x.msg.Method), x.msg.Params.Get("name"), x.msg.Params.Get("uri"), x.msg.Params.Get("arguments")} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

// fly runs work that may have to ask the client something.
func (s *Server) fly(ctx context.Context, x *exchange, work func(context.Context, *exchange) ([]byte, error)) ([]byte, error) {
	state, _ := x.msg.Params.String("requestState")
	if strings.HasPrefix(state, x.statePrefix()) {
		f, err := s.unpark(state, x)
		if err != nil {
			return nil, err
		}
		return f.wait(ctx, x)
	}
	if !x.canPark() && !x.canBecomeTask() {
		return work(ctx, x)
	}
	f := &flight{s: s, owner: x.c.owner, bound: bind(x), held: x.held.Move(), done: make(chan landing, 1), fresh: make(chan struct{}, 1), open: map[string]*asked{}, send: x.tell}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	mine := *x
	mine.ctx, mine.flight, mine.stream, mine.notify = f.ctx, f, nil, f.deliver
	if !s.work.Begin() {
		f.cancel(nil)
		f.held.Release()
		return nil, errNoAnswer
	}
	x.keep = true // the work keeps using the request's memory
	go func() {
		defer s.work.End()
		stop := context.AfterFunc(s.life, func() { f.cancel(errSessionEnded) })
		defer stop()
		result, err := work(f.ctx, &mine)
		f.end(landing{result: result, err: err, buf: mine.buf})
		f.cancel(nil)
	}()
	return f.wait(ctx, x)
}

// wait waits, on behalf of a client's request, for the outcome or for a question.
func (f *flight) wait(ctx context.Context, x *exchange) ([]byte, error) {
	var long <-chan time.Time
	if x.canBecomeTask() {
		t := time.NewTimer(f.s.cfg.TaskAfter)
		defer t.Stop()
		long = t.C
	}
	select {
	case <-long:
		return f.becomeTask(x)
	case l := <-f.done:
		return x.land(l)
	case <-f.fresh:
		select {
		case l := <-f.done: // it did not wait for the answer
			return x.land(l)
		default:
		}
		return f.park(x)
	case <-ctx.Done():
		f.cancel(errNoAnswer)
		l := <-f.done
		l.drop()
		return nil, errNoAnswer
	}
}

// park answers the request with the open questions.
func (f *flight) park(x *exchange) ([]byte, error) {
	state := f.s.marked(x.statePrefix() + rand.Text())
	f.mu.Lock()
	questions := f.questions()
	if len(questions) == 0 { // withdrawn in the meantime
		f.mu.Unlock()
		return f.wait(x.ctx, x)
	}
	f.leave()
	// The client may have to send the same amount again with its answer.
	fits := f.held.Park()
	f.mu.Unlock()
	if !fits {
		f.abandon(errTooMany)
		return nil, fail(jsonrpc.CodeInternal, "%v, and together with this one they exceed %d MiB: answer those first, or send less than %d MiB", errTooMany, intake.Parked().Total()>>20, intake.Small>>20)
	}
	f.s.mu.Lock()
	full := !f.s.shares.flights.Take(f.owner, f.owner == tool.Owner)
	if !full {
		f.s.flights[state] = f
	}
	f.s.mu.Unlock()
	if full {
		f.abandon(errTooMany)
		return nil, fail(jsonrpc.CodeInternal, "%v: answer those first", errTooMany)
	}
	f.mu.Lock()
	f.timer = time.AfterFunc(maxParked, func() {
		if f.s.forget(state) { // otherwise its client was faster
			f.abandon(errParkedTooLong)
		}
	})
	f.mu.Unlock()
	return json.Marshal(struct {
		ResultType    string                    `json:"resultType"`
		InputRequests map[string]relay.Question `json:"inputRequests"`
		RequestState  string                    `json:"requestState"`
	}{"input_required", questions, state})
}

// questions returns the open questions; the caller holds mu.
func (f *flight) questions() map[string]relay.Question {
	out := make(map[string]relay.Question, len(f.open))
	for key, q := range f.open {
		out[key] = q.Question
	}
	return out
}

// forget removes a parked flight; it reports false if the flight was gone already.
func (s *Server) forget(state string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.flights[state]
	if ok {
		delete(s.flights, state)
		s.shares.flights.Give(f.owner)
	}
	return ok
}

// unpark finds the work that a request continues, and gives it the answers. A state can be used
// once.
func (s *Server) unpark(state string, x *exchange) (*flight, error) {
	unknown := fail(jsonrpc.CodeInvalidParams, "requestState is unknown, used, or has expired")
	s.mu.Lock()
	f := s.flights[state]
	s.mu.Unlock()
	if f == nil || f.bound != bind(x) {
		return nil, unknown
	}
	replies, err := inputResponses(x)
	if err != nil {
		return nil, err
	}
	if !s.forget(state) {
		return nil, unknown // another request was faster
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	f.send, f.alone = x.tell, false
	if f.answer(replies); len(f.open) > 0 { // unanswered questions are asked again
		f.wake()
	}
	return f, nil
}

// answer hands the answers to their questions; the caller holds mu.
func (f *flight) answer(replies map[string]relay.Reply) {
	for key, r := range replies {
		if q := f.open[key]; q != nil {
			q.reply <- r
			delete(f.open, key)
		}
	}
}

func (f *flight) wake() {
	select {
	case f.fresh <- struct{}{}:
	default:
	}
}

// ask asks the client and waits for a request with the answer.
func (f *flight) ask(ctx context.Context, method string, params []byte) (relay.Reply, error) {
	q := &asked{relay.Question{Method: method, Params: bytes.Clone(params)}, make(chan relay.Reply, 1)}
	f.mu.Lock()
	if len(f.open) >= maxAsked {
		f.mu.Unlock()
		return relay.Refusal(jsonrpc.CodeInternal, "too many questions at a time"), nil
	}
	f.seq++
	key := fmt.Sprintf("q%d", f.seq)
	f.open[key] = q
	f.wake()
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.open, key)
		f.mu.Unlock()
	}()
	select {
	case r := <-q.reply:
		return r, nil
	case <-ctx.Done():
		return relay.Reply{}, context.Cause(ctx)
	case <-f.ctx.Done():
		return relay.Reply{}, context.Cause(f.ctx)
	}
}

// deliver sends a message with the current request, if there is one.
func (f *flight) deliver(msg []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.send == nil {
		return nil // the client sees the end
	}
	return f.send(msg)
}

func (f *flight) notify(msg []byte) { _ = f.deliver(msg) }
