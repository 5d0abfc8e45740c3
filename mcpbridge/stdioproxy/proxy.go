package stdioproxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// Config says where a proxy carries its client's messages to.
type Config struct {
	// Client reaches the daemon, and URL is that of its MCP endpoint.
	Client *http.Client
	URL    string
	// Refusal returns the words of an answer that does not come from the endpoint but
	// from what stands before it and refuses the request; false for any other answer.
	Refusal func(*http.Response) (text string, refused bool)
}

// proxy carries one stdio client to the daemon's HTTP endpoint. When the daemon
// is restarted, it introduces its client again, so that the client's session
// goes on.
type proxy struct {
	cfg   Config
	out   io.Writer
	outMu sync.Mutex

	mu      sync.Mutex
	session string
	hello   []byte        // the client's initialize request
	joining chan struct{} // holds a value while the client is introduced again

	work    workgroup.Group // what the client waits for
	streams workgroup.Group // what the daemon sends unasked, until the proxy ends
}

// Serve carries the messages of a client to a daemon, one on each line of in, and what
// the daemon says to out, until in ends or ctx does. A read of in that is under way when
// ctx ends goes on until in ends.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &proxy{cfg: cfg, out: out, joining: make(chan struct{}, 1)}
	readErr := make(chan error, 1)
	go func() { readErr <- p.read(ctx, in) }()
	var err error
	select {
	case err = <-readErr:
	case <-ctx.Done():
	}
	// Requests may still be answered for a moment; then everything ends.
	done := make(chan struct{})
	go func() {
		p.work.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	cancel()
	<-done
	p.streams.Close()
	p.goodbye()
	return err
}

func (p *proxy) read(ctx context.Context, in io.Reader) error {
	return downstream.ReadMessages(in, downstream.MaxMessage, func(m downstream.Incoming) {
		var msg jsonrpc.Message
		line, err := m.Data, m.Err
		if msg.ID = m.ID; err == nil {
			err = msg.Parse(line)
		}
		switch {
		case errors.Is(err, jsonrpc.ErrBatch): // the daemon knows whether its client may
			p.begin(&p.work, m, func() { p.forwardBatch(ctx, line) })
		case err != nil:
			code := jsonrpc.CodeParse
			switch {
			case errors.Is(err, jsonrpc.ErrSyntax):
				msg.ID = jsonrpc.Waits(line)
			case line != nil:
				code = jsonrpc.CodeInvalidRequest
			}
			m.Release()
			p.fail(msg.ID, code, fmt.Sprintf("the message cannot be read: %v", err))
		case msg.Method == "ping" && msg.IsRequest() && p.stranger() && modern(&msg) == "":
			// The daemon knows no client before its handshake, which a ping may precede.
			m.Release()
			p.write(jsonrpc.AppendResult(nil, msg.ID, []byte("{}")))
		case msg.Method == "subscriptions/listen": // it is answered for as long as the client is there
			p.begin(&p.streams, m, func() { p.forward(ctx, &msg, line) })
		case msg.Method == "initialize": // nothing overtakes the handshake
			p.mu.Lock()
			p.hello, p.session = line, ""
			p.mu.Unlock()
			p.forward(ctx, &msg, line)
			m.Release()
		default:
			p.begin(&p.work, m, func() { p.forward(ctx, &msg, line) })
		}
	})
}

// stranger reports whether the client has not been introduced to the daemon.
func (p *proxy) stranger() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hello == nil
}

// modern returns the protocol version of a message of the era without a handshake, "" for
// others.
func modern(msg *jsonrpc.Message) string {
	meta, err := jsonrpc.ParseObject(msg.Params.Get("_meta"))
	if err != nil {
		return ""
	}
	if v, _ := meta.String(mcp.MetaKeyProtocolVersion); mcp.IsModernProtocol(v) {
		return v
	}
	return ""
}

// begin serves a message in a group, unless the proxy ends.
func (p *proxy) begin(group *workgroup.Group, m downstream.Incoming, serve func()) {
	if !group.Go(func() {
		defer m.Release()
		serve()
	}) {
		m.Release()
	}
}

func (p *proxy) write(msg []byte) {
	msg = jsonrpc.Line(msg)
	p.outMu.Lock()
	defer p.outMu.Unlock()
	_, _ = p.out.Write(append(msg[:len(msg):len(msg)], '\n')) // a client that is gone ends our input too
}

func (p *proxy) fail(id []byte, code int, msg string) {
	p.write(jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: code, Message: msg}))
}

// errNoSession says that the daemon does not know our session.
var errNoSession = errors.New("the daemon has forgotten the session")

// forward sends one message and writes what comes back.
func (p *proxy) forward(ctx context.Context, msg *jsonrpc.Message, line []byte) {
	err := p.send(ctx, msg, line)
	if errors.Is(err, errNoSession) && msg.Method != "initialize" {
		if err = p.rejoin(ctx); err == nil {
			err = p.send(ctx, msg, line)
		}
	}
	if err != nil && ctx.Err() == nil && msg.IsRequest() {
		p.fail(msg.ID, jsonrpc.CodeInternal, unanswered(err, hasEffects(msg.Method)))
	}
}

// notSentError means that a message was not sent.
type notSentError struct{ error }

func (e *notSentError) Unwrap() error { return e.error }

// unanswered says that a request has no answer, and what that means for whoever would
// repeat it: a daemon that was reached may have done it before it ended.
func unanswered(err error, effects bool) string {
	_, kept := errors.AsType[*notSentError](err)
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case kept || ok && dial.Op == "dial" || errors.Is(err, errNoSession):
		return fmt.Sprintf("yaya's daemon cannot be reached: %v; start it with 'yaya serve'", err)
	case effects:
		return fmt.Sprintf("yaya's daemon broke off before it answered: %v; the call may or may not have taken effect, so look before you repeat it; if the daemon has ended, start it with 'yaya serve'", err)
	}
	return fmt.Sprintf("yaya's daemon broke off before it answered: %v; if it has ended, start it with 'yaya serve'", err)
}

// hasEffects reports whether a request may change something outside yaya. Methods of
// extensions may.
func hasEffects(method string) bool {
	switch method {
	case "initialize", "ping", "server/discover", "completion/complete", "logging/setLevel", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "tasks/get", "tasks/result":
		return false
	}
	return !strings.HasSuffix(method, "/list")
}

// forwardBatch sends an array of messages and writes what comes back.
func (p *proxy) forwardBatch(ctx context.Context, line []byte) {
	err := p.post(ctx, line, nil, nil, p.write, p.pass)
	if errors.Is(err, errNoSession) {
		if err = p.rejoin(ctx); err == nil {
			err = p.post(ctx, line, nil, nil, p.write, p.pass)
		}
	}
	if err != nil && ctx.Err() == nil {
		p.fail(nil, jsonrpc.CodeInternal, unanswered(err, true))
	}
}

// rejoin introduces the client to a daemon that does not know it. Until the daemon has
// given a new session, requests go with the old one: they are refused, and wait here.
func (p *proxy) rejoin(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = &notSentError{err}
		}
	}()
	select {
	case p.joining <- struct{}{}:
		defer func() { <-p.joining }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	hello, session := p.hello, p.session
	p.mu.Unlock()
	if hello == nil {
		return errNoSession
	}
	if session != "" {
		// Somebody may have rejoined while we waited.
		if err := p.post(ctx, []byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`), nil, nil, func([]byte) {}, nil); err == nil {
			return nil
		}
	}
	if err := p.post(ctx, hello, http.Header{mcp.HeaderSessionID: nil}, nil, func([]byte) {}, nil); err != nil {
		return err
	}
	p.listen(ctx)
	return p.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil, nil, func([]byte) {}, nil)
}

func (p *proxy) send(ctx context.Context, msg *jsonrpc.Message, line []byte) error {
	header := http.Header{}
	if v := modern(msg); v != "" {
		header.Set(mcp.HeaderProtocolVersion, v)
		header.Set(mcp.HeaderMethod, msg.Method)
		if name, ok := mcp.ExtractHeaderName(mcp.MCPMethod(msg.Method), msg.Params.Raw()); ok {
			if enc, ok := mcp.EncodeHeaderValue(name); ok {
				header.Set(mcp.HeaderName, enc)
			}
		}
	}
	var id []byte
	if msg.IsRequest() {
		id = msg.ID
	}
	err := p.post(ctx, line, header, id, p.write, p.pass)
	if err == nil && msg.Method == "initialize" {
		p.listen(ctx)
	}
	return err
}

// post sends a message and hands every message of the answer to each, or the answer to
// whole (see eachMessage). A name of header without values is left out of the request. If
// the daemon refuses the message, the error answers id, unless that is nil.
func (p *proxy) post(ctx context.Context, body []byte, header http.Header, id []byte, each func([]byte), whole func(io.Reader) error) error {
	req, err := p.request(ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		req.Header[k] = v
	}
	if header.Get(mcp.HeaderProtocolVersion) != "" {
		req.Header.Del(mcp.HeaderSessionID)
	}
	resp, err := p.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get(mcp.HeaderSessionID); id != "" {
		p.mu.Lock()
		p.session = id
		p.mu.Unlock()
	}
	if resp.StatusCode == http.StatusNotFound && req.Header.Get(mcp.HeaderSessionID) != "" {
		return errNoSession
	}
	if resp.StatusCode >= http.StatusBadRequest && id != nil && resp.ContentLength <= intake.Small {
		return p.refused(resp, id)
	}
	return p.eachMessage(ctx, resp, each, whole)
}

// refused answers a request that the daemon has refused. The daemon may not have read
// so much of it that its error names the id, which the client waits for.
func (p *proxy) refused(resp *http.Response, id []byte) error {
	if text, refused := p.cfg.Refusal(resp); refused {
		p.fail(id, jsonrpc.CodeInternal, cmp.Or(text, "yaya's daemon has refused the message: "+resp.Status))
		return nil
	}
	buf, err := bufpool.ReadAll(resp.Body, maxPassed)
	if err != nil {
		return err
	}
	defer buf.Release()
	var m jsonrpc.Message
	switch err := m.Parse(buf.B); {
	case err == nil:
		p.write(buf.B)
	case m.Err != nil:
		p.write(jsonrpc.AppendError(nil, id, &jsonrpc.Error{Raw: m.Err}))
	default:
		p.fail(id, jsonrpc.CodeInternal, "yaya's daemon has refused the message: "+resp.Status)
	}
	return nil
}

// maxPassed bounds a message of the daemon, with what the daemon wraps it in.
const maxPassed = downstream.MaxMessage + 4<<10

func (p *proxy) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != "" {
		req.Header.Set(mcp.HeaderSessionID, p.session)
	}
	return req, nil
}

// eachMessage hands every message of an answer to each. A large one that is the whole
// answer goes to whole instead, if that is set.
func (p *proxy) eachMessage(ctx context.Context, resp *http.Response, each func([]byte), whole func(io.Reader) error) error {
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt == "text/event-stream" {
		var share *intake.Share
		r := sse.NewReader(resp.Body, maxPassed)
		r.Grow = func(data []byte, n int) ([]byte, error) {
			if len(data)+n > intake.Small && share == nil {
				var err error
				if share, err = intake.Answers().Take(ctx, "", intake.Answers().Total()/4); err != nil {
					return data, err
				}
			}
			return slices.Grow(data, max(7*len(data), n)), nil
		}
		for {
			ev, err := r.Next()
			if err == nil && len(ev.Data) > 0 { // else it only brings an id to resume from
				each(ev.Data)
			}
			share.Release()
			share = nil
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	if resp.ContentLength > intake.Small && whole != nil {
		return whole(resp.Body)
	}
	buf, err := bufpool.ReadAll(resp.Body, maxPassed)
	if err != nil {
		return err
	}
	defer buf.Release()
	if data := bytes.TrimSpace(buf.B); len(data) > 0 {
		each(data)
	}
	return nil
}

// pass writes a large message while it comes. If it breaks off, its line is ended, so
// that the messages after it can be read.
func (p *proxy) pass(body io.Reader) error {
	buf := bufpool.Get(256 << 10)
	defer buf.Release()
	b := buf.B[:cap(buf.B)]
	p.outMu.Lock()
	defer p.outMu.Unlock()
	for {
		n, err := body.Read(b)
		for i, c := range b[:n] {
			if c == '\n' || c == '\r' { // between tokens, as in [jsonrpc.Line]
				b[i] = ' '
			}
		}
		if err != nil {
			_, _ = p.out.Write(append(b[:n:n], '\n')) // a client that is gone ends our input too
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		_, _ = p.out.Write(b[:n])
	}
}

// listen carries what the daemon says unasked. The stream of a daemon that went
// away is opened again with the next session.
func (p *proxy) listen(ctx context.Context) {
	p.streams.Go(func() {
		req, err := p.request(ctx, http.MethodGet, nil)
		if err != nil {
			return
		}
		req.Header.Set("Accept", "text/event-stream")
		resp, err := p.cfg.Client.Do(req)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode == http.StatusOK {
			_ = p.eachMessage(ctx, resp, p.write, nil) // its end is the daemon's
		}
	})
}

// goodbye ends the session with the daemon.
func (p *proxy) goodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := p.request(ctx, http.MethodDelete, nil)
	if err != nil || req.Header.Get(mcp.HeaderSessionID) == "" {
		return
	}
	if resp, err := p.cfg.Client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}
