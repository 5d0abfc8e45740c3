package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// maxRounds bounds how often a server may ask for more input before it answers
// one request.
const maxRounds = 10

// exchange sends a request on the session that the server's policy gives its client. It gets
// answers to the server's questions in the meantime, unless the client handles them itself
// (SEP-2322). ctx is the context of the request's limit.
func (p *Provider) exchange(ctx context.Context, client string, o outgoing, typed *mcp.Tool) (r reply, err error) {
	start := time.Now()
	breaker := p.breakerOf(o.by, o.peer)
	if err := breaker.allow(); err != nil {
		return reply{}, err
	}
	heard := false // the call fails after the server has answered
	defer func() {
		if heard {
			breaker.record(true, 0)
		} else {
			breaker.settle(ctx, err)
		}
	}()
	lease, err := p.session(ctx, client, o.by, o.peer)
	if err != nil {
		return reply{}, err
	}
	defer lease.end()
	s := lease.session
	place, err := s.gate.enter(ctx, partyOf(o, client))
	if err != nil {
		s.gate.holdBack(ctx, err)
		return reply{}, err
	}
	defer s.gate.leave(place)
	if typed != nil && s.peer.Era == servers.EraModern {
		o.header = http.Header{}
		for k, v := range mcp.GenerateParamHeaders(typed, o.params.Append(nil)) {
			o.header.Set(k, v)
		}
	}
	ctx, op := p.observe(ctx, s, &o)
	answered := ""
	defer func() { op.End(ctx, failureOf(err, answered)) }()
	o.withoutEra(s.peer.Era)
	s.wantLevel(ctx, o.peer)
	for round := 0; ; round++ {
		r, err := s.relay(ctx, o)
		if err == nil && r.err == nil && s.peer.Era == servers.EraModern && (o.peer == nil || !o.peer.Modern()) &&
			bytes.Equal(r.result.Get("resultType"), inputRequired) {
			if round == maxRounds {
				err = fmt.Errorf("the server asked for input %d times without answering", maxRounds)
			} else if o, err = p.answer(ctx, o, r); err == nil {
				r.buf.Release()
				continue
			}
			heard = true
		}
		if err == nil && r.err == nil && s.follows(o.peer) && bytes.Equal(r.result.Get("resultType"), isTask) {
			r, err = p.followTask(ctx, s, o, r)
		}
		p.stats.record(time.Since(start), err == nil && r.err == nil && string(r.result.Get("isError")) != "true")
		if err != nil {
			r.buf.Release()
			p.lostMain(s, err)
			return reply{}, err
		}
		answered = r.failure()
		return r.passedOn(s.peer.Era, o.peer), nil
	}
}

var inputRequired = []byte(`"input_required"`)

// answer returns the request again, with the answers to the server's questions.
func (p *Provider) answer(ctx context.Context, o outgoing, r reply) (outgoing, error) {
	var questions map[string]relay.Question
	if raw := r.result.Get("inputRequests"); raw != nil {
		if err := json.Unmarshal(raw, &questions); err != nil {
			return o, fmt.Errorf("the server's questions are malformed: %w", err)
		}
	}
	if len(questions) > maxAsks {
		return o, fmt.Errorf("the server has %d questions at a time, the limit is %d", len(questions), maxAsks)
	}
	if o.limit != nil {
		o.limit.pause()
		defer o.limit.resume()
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := make(map[string]json.RawMessage, len(questions))
	var failed error
	for key, q := range questions {
		wg.Go(func() {
			got, err := p.answerOne(ctx, o.peer, q.Method, q.Params)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = cmp.Or(failed, fmt.Errorf("the server asked for %s: %w", cut.Text(q.Method, 64), err))
				return
			}
			answers[key] = got
		})
	}
	wg.Wait()
	if failed != nil {
		return o, failed
	}
	raw, err := json.Marshal(answers)
	if err != nil {
		return o, err
	}
	edits := make([]jsonrpc.Edit, 0, len(o.edits)+2)
	for _, e := range o.edits {
		if !slices.Contains(hopOfRequests, e.Name) && e.Name != "_meta" {
			edits = append(edits, e)
		}
	}
	// The state belongs to the server: it comes back unchanged, or not at all.
	o.edits = append(edits, jsonrpc.Edit{Name: "inputResponses", Value: raw}, jsonrpc.Edit{Name: "requestState", Value: bytes.Clone(r.result.Get("requestState"))})
	return o, nil
}

func (p *Provider) answerOne(ctx context.Context, to relay.Peer, method string, params []byte) (json.RawMessage, error) {
	if len(params) == 0 {
		params = []byte("{}")
	}
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return nil, err
	}
	switch method {
	case relay.Sampling, relay.Elicitation, relay.Roots:
	default:
		return nil, fmt.Errorf("clients do not answer %q", cut.Text(method, 64))
	}
	got, err := p.put(ctx, to, method, obj)
	switch {
	case err != nil:
		return nil, err
	case got.Err != nil:
		return nil, jsonrpc.ParseError(got.Err)
	}
	return answered(got.Result), nil
}

// wantLevel makes a legacy server log at the level that the client wants. The level of a
// connection only ever becomes more verbose: clients may share it, and each gets only the
// messages that it asked for.
func (s *session) wantLevel(ctx context.Context, p relay.Peer) {
	if p == nil || s.peer.Era == servers.EraModern {
		return
	}
	level := p.LogLevel()
	want := relay.Severity(level)
	if want == 0 || !s.peer.has("logging", "") {
		return
	}
	s.mu.Lock()
	now := s.level
	if now == 0 || want < now {
		s.level = want
	}
	s.mu.Unlock()
	if now != 0 && want >= now {
		return
	}
	if _, err := s.ask(ctx, methodSetLevel, append(jsonrpc.AppendString([]byte(`{"level":`), level), '}')); err != nil {
		s.mu.Lock()
		s.level = now
		s.mu.Unlock()
	}
}

// Relay implements [relay.Server].
func (p *Provider) Relay(ctx context.Context, peer relay.Peer, method string, params jsonrpc.Object, edits ...jsonrpc.Edit) (relay.Reply, error) {
	limit := newLimit(ctx, p.times())
	defer limit.stop()
	var r reply
	err := p.guarded(limit, func() (err error) {
		who, origin := peer.Caller()
		o := outgoing{caller: who, origin: origin, method: method, params: params, edits: append([]jsonrpc.Edit(nil), edits...), by: who.Principal, peer: peer, limit: limit}
		if token := progressToken(params); token != nil {
			o.progress = func(n note) { forward(peer, token, n) }
		}
		r, err = p.exchange(limit, peer.Client(), o, nil)
		return err
	})
	if ctx.Err() != nil || limit.Err() != nil {
		r.buf.Release()
	}
	switch {
	case ctx.Err() != nil:
		return relay.Reply{}, ctx.Err()
	case limit.Err() != nil:
		return relay.Refusal(jsonrpc.CodeInternal, p.late(err, limit)), nil
	case err != nil:
		return relay.Refusal(jsonrpc.CodeInternal, fmt.Sprintf("server %q: %s", p.cfg.Server.Name, feature.Clean(p.cfg.Secrets.ConcealString(err.Error()), 600))), nil
	}
	return relay.Reply{Result: r.result, Err: r.err, Buffer: r.buf}, nil
}

// guarded calls f once the server is ready; Config.Guard waits for the server, and repeats a
// call that never reached it.
func (p *Provider) guarded(ctx context.Context, f func() error) error {
	if p.cfg.Guard == nil {
		return f()
	}
	return p.cfg.Guard(ctx, f)
}

func progressToken(params jsonrpc.Object) []byte {
	meta, err := jsonrpc.ParseObject(params.Get("_meta"))
	if err != nil {
		return nil
	}
	return meta.Get("progressToken")
}

// forward passes progress on under the client's own token.
func forward(to relay.Peer, token []byte, n note) {
	obj, err := jsonrpc.ParseObject(n.params)
	if err != nil {
		return
	}
	to.Notify(noteProgress, obj.Append(nil, jsonrpc.Edit{Name: "progressToken", Value: token}))
}

var errAway = errors.New("the server is not connected")
