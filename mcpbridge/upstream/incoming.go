package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// incoming handles messages that a server sends on its own. Its methods run on a reading
// goroutine and do not block. req is the request on whose stream the message arrived, nil for
// other streams. buf holds a request; its memory counts until the request is answered or
// dropped.
type incoming interface {
	note(req *request, method string, params []byte)
	asked(req *request, msg *jsonrpc.Message, buf *bufpool.Buffer, answer func(msg []byte))
	// unread handles input that is not a message, or that answers no request. The bytes are
	// invalid after it returns.
	unread(line []byte, why error)
	// panicked returns the error of a panic in the handling of a server's messages, and reports it.
	panicked(v any) error
	// conceal returns a message without secrets, in the same memory. It is called for
	// each message before anything in it is looked at.
	conceal(msg []byte) []byte
	// concealed returns text that the server sent elsewhere, without secrets.
	concealed(text string) string
}

// Bounds of a server's questions.
const (
	maxAsks    = 32  // at a time, per session
	maxAsksReq = 100 // during one request
)

// note implements [incoming].
func (s *session) note(req *request, method string, params []byte) {
	switch method {
	case noteMessage:
		params = s.concealLog(params)
		s.p.logMessage(params) // the client gets it, too
	case noteToolsChanged:
		s.p.toolsChanged()
		return
	case relay.Prompts.Note:
		s.p.listChanged(relay.Prompts)
		return
	case relay.Resources.Note:
		s.p.listChanged(relay.Resources)
		return
	case noteUpdated:
		s.p.updated(params)
		return
	case noteAcknowledged:
		s.acknowledged()
		return
	case noteCancelled:
		s.withdraw(params)
		return
	}
	n := note{method, params}
	if req != nil {
		if req.listens() {
			req.took(n)
			return
		}
	} else if method != noteProgress {
		sole, many := s.sole()
		switch {
		case sole != nil && s.offer(sole.id, n):
			return
		case !many: // it concerns whomever the session belongs to
			s.p.message(s.of, n.passedOn())
			return
		}
	}
	s.p.stats.dropped.Add(1)
}

// offer hands a note to the goroutine that waits for the answer to a request, where that
// does not read the answer itself. It reports false when there is none.
func (s *session) offer(id int64, n note) bool {
	t, ok := s.t.(interface{ offer(id int64, n note) bool })
	return ok && t.offer(id, n)
}

// unread implements [incoming]. It keeps the first line for the error of a start. The readers
// pass on only some lines, so the log is not flooded.
func (s *session) unread(line []byte, why error) {
	s.mu.Lock()
	if s.oddLines == nil {
		s.oddLines = s.p.cfg.Secrets.Joint()
	}
	text := s.p.shown([]byte(nextLine(s.oddLines, string(line[:min(len(line), maxShownLine)]))))
	if s.odd == "" {
		s.odd = text
	}
	s.mu.Unlock()
	if s.p.cfg.Log != nil {
		s.p.cfg.Log("yaya", "", fmt.Sprintf("the server wrote output that is not MCP (%v): %s", why, text))
	}
}

// panicked implements [incoming]. It is the last resort: a message that triggers a bug of ours
// ends only its own connection.
func (s *session) panicked(v any) error {
	err := fmt.Errorf("panic while handling a message of the server: %v", v)
	if s.p.cfg.Log != nil {
		s.p.cfg.Log("yaya", "error", err.Error())
		for line := range strings.Lines(string(debug.Stack())) { // each line is cut separately
			s.p.cfg.Log("yaya", "error", line)
		}
	}
	return err
}

// wroteOddly adds to the error of a start the server's output that is not MCP.
func (s *session) wroteOddly(err error) error {
	s.mu.Lock()
	odd := s.odd
	s.mu.Unlock()
	if _, ok := s.t.(*stdio); !ok || odd == "" {
		return err
	}
	return fmt.Errorf("%w; its standard output is not MCP and begins with %s; if it is an MCP server over standard input and output that only needs more time, raise startup_timeout_sec in its configuration", err, odd)
}

// sole returns a request in flight if all of them belong to one client, and reports whether
// several clients have requests in flight.
func (s *session) sole() (r *request, many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := s.flights; f != nil; f = f.next {
		if f.peer.Client() != s.flights.peer.Client() {
			return nil, true
		}
	}
	return s.flights, false
}

// tell forwards a notification to the client whose request it belongs to, if the client wants
// it.
func (s *session) tell(p relay.Peer, n note) {
	if n.method == noteMessage {
		var m struct {
			Level string `json:"level"`
		}
		want := relay.Severity(p.LogLevel())
		if (want == 0 && p.Modern()) || json.Unmarshal(n.params, &m) != nil || relay.Severity(m.Level) < want {
			return
		}
	}
	p.Notify(n.method, n.params)
}

// asked implements [incoming].
func (s *session) asked(req *request, msg *jsonrpc.Message, buf *bufpool.Buffer, answer func([]byte)) {
	begun := false
	defer func() {
		if !begun {
			buf.Forget()
		}
	}()
	if msg.Method == "ping" {
		answer(jsonrpc.AppendResult(nil, msg.ID, []byte("{}")))
		return
	}
	refuse := func(code int, format string, args ...any) {
		answer(jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}))
	}
	switch msg.Method {
	case relay.Sampling, relay.Elicitation, relay.Roots:
	default:
		if !relay.Core(msg.Method) && relay.Extensions(s.peer.caps).Len() > 0 {
			break
		}
		refuse(jsonrpc.CodeMethodNotFound, "the client does not offer %q", cut.Text(msg.Method, 64))
		return
	}
	ctx, cancel := context.WithCancelCause(s.life)
	s.mu.Lock()
	id := string(msg.ID)
	_, twice := s.asks[id]
	full := len(s.asks) >= maxAsks
	if !twice && !full {
		s.asks[id] = cancel
	}
	s.mu.Unlock()
	if twice || full {
		cancel(nil)
		refuse(jsonrpc.CodeInvalidRequest, "the request's id is in use, or more than %d requests wait for answers", maxAsks)
		return
	}
	begun = s.work.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.asks, id)
			s.mu.Unlock()
			cancel(nil)
			buf.Forget()
		}()
		r, err := s.question(ctx, req, msg.Method, msg.Params)
		switch {
		case ctx.Err() != nil && context.Cause(ctx) == errWithdrawn: //nolint:errorlint // our own error
		case err != nil:
			refuse(jsonrpc.CodeInternal, "the client did not answer: %v", err)
		case r.Err != nil:
			answer(jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{Raw: r.Err}))
		default:
			answer(jsonrpc.AppendResult(nil, msg.ID, answered(r.Result)))
		}
	})
	if !begun {
		cancel(nil)
	}
}

var errWithdrawn = errors.New("the server cancelled its request")

// withdraw ends a request that the server has cancelled.
func (s *session) withdraw(params []byte) {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return
	}
	s.mu.Lock()
	cancel := s.asks[string(obj.Get("requestId"))]
	s.mu.Unlock()
	if cancel != nil {
		cancel(errWithdrawn)
	}
}

// question finds the client that has to answer a server's request, and gets its answer: the
// client whose request made the server ask, or the one that the session belongs to.
func (s *session) question(ctx context.Context, req *request, method string, params jsonrpc.Object) (relay.Reply, error) {
	if req == nil {
		var many bool
		if req, many = s.sole(); many {
			return relay.Refusal(jsonrpc.CodeInternal, `several clients share this connection, and yaya cannot tell which one is meant; with "session": "per_client", each client gets its own connection`), nil
		}
	}
	s.mu.Lock()
	p := s.first
	s.mu.Unlock()
	if req != nil && req.peer != nil {
		p = req.peer
	} else if p == nil && s.of.client != "" {
		p = s.p.standing(s.of.client)
	}
	if req != nil {
		if req.asked.Add(1) > maxAsksReq {
			return relay.Refusal(jsonrpc.CodeInternal, fmt.Sprintf("the server asked more than %d times during one request", maxAsksReq)), nil
		}
		if req.limit != nil {
			req.limit.pause()
			defer req.limit.resume()
		}
	}
	if token := progressToken(params); token != nil {
		report, stop := s.progressTo(ctx, token)
		defer stop()
		ctx = relay.WithProgress(ctx, report)
	}
	return s.p.put(ctx, p, method, params)
}

// put asks a client. Without a client, or if it cannot be asked, yaya can only answer with the
// roots of the configuration.
func (p *Provider) put(ctx context.Context, to relay.Peer, method string, params jsonrpc.Object) (relay.Reply, error) {
	able := to != nil && relay.Supports(to.Capabilities(), method, params)
	if !able && to != nil && !to.Modern() && !relay.Core(method) {
		able = len(relay.Shared(to.Capabilities(), p.Capabilities())) > 0
	}
	if method == relay.Roots && !able && len(p.cfg.Server.Roots) > 0 {
		obj, err := jsonrpc.ParseObject(p.cfg.Server.RootsResult())
		return relay.Reply{Result: obj}, err
	}
	if to == nil {
		return relay.Refusal(jsonrpc.CodeMethodNotFound, "no client is connected to ask for "+method), nil
	}
	if !able {
		return relay.Refusal(jsonrpc.CodeMethodNotFound, "the client does not support "+method), nil
	}
	return to.Ask(ctx, method, p.attributed(method, params))
}

// MetaServer is the key of the server that asks, in the _meta of its question.
const MetaServer = "io.github.yaya-ai/server"

// attributed names the server in its question, since the client only knows yaya. The question
// of a server without a prefix stays unchanged: such a server acts under its own name.
func (p *Provider) attributed(method string, params jsonrpc.Object) []byte {
	meta := withoutHop(params.Get("_meta"))
	edits := []jsonrpc.Edit{{Name: "_meta", Value: meta}}
	if _, bare := p.Prefix(); !bare {
		obj, _ := jsonrpc.ParseObject(meta) // unreadable counts as absent
		edits[0].Value = obj.Append(nil, jsonrpc.Edit{Name: MetaServer, Value: jsonrpc.AppendString(nil, p.cfg.Server.Name)})
		if message, ok := params.String("message"); ok && method == relay.Elicitation {
			edits = append(edits, jsonrpc.Edit{Name: "message", Value: jsonrpc.AppendString(nil, "["+p.cfg.Server.Name+"] "+message)})
		}
	}
	if params.IsZero() {
		params = emptyObject
	}
	return params.Append(nil, edits...)
}

var emptyObject = func() jsonrpc.Object {
	o, err := jsonrpc.ParseObject([]byte("{}"))
	if err != nil {
		panic(err)
	}
	return o
}()
