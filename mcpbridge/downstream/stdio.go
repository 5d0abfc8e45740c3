package downstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// drainTimeout is how long requests may finish after the client closed its
// side: a script pipes a request in and wants its answer.
const drainTimeout = time.Second

// ServeStdio serves one client over in and out, a message a line, until in ends
// or ctx does. Nothing but messages is written to out (DN-09). It returns when
// every request has ended; the caller may have to close in to end a blocked
// read. The profile is named, or "". The client is the owner: whoever else can
// start yaya on the owner's data is no other.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, profile string) error {
	p, err := s.profile(profile, tool.LocalOwner)
	if errors.Is(err, ErrNoProfile) {
		err = fmt.Errorf("%w %q; the profiles are %s, and plugin.mcp_bridge.profiles configures others", ErrNoProfile, profile, s.profileNames(tool.LocalOwner))
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newClient(tool.Owner, "mcp_"+rand.Text(), p)
	defer s.ended(c)
	lw := &lines{w: out, broken: cancel}
	defer s.pushChanges(ctx, c, lw)()

	var work sync.WaitGroup
	slots := make(chan struct{}, maxConcurrent)
	readErr := make(chan error, 1)
	go func() {
		readErr <- ReadMessages(in, s.cfg.MaxMessage(), func(m Incoming) {
			s.take(ctx, c, lw, &work, slots, m)
		})
	}()
	select {
	case err = <-readErr:
	case <-ctx.Done():
	}
	done := make(chan struct{})
	go func() {
		work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(drainTimeout):
	}
	cancel()
	<-done
	return errors.Join(err, lw.failure())
}

// take handles one line.
func (s *Server) take(ctx context.Context, c *client, lw *lines, work *sync.WaitGroup, slots chan struct{}, in Incoming) {
	done := in.Release
	defer func() { done() }()
	msg, err := new(jsonrpc.Message), in.Err
	if err == nil {
		if err = msg.Parse(in.Data); errors.Is(err, jsonrpc.ErrSyntax) {
			msg.ID = jsonrpc.Waits(in.Data)
		}
	} else {
		msg.ID = in.ID
	}
	if errors.Is(err, jsonrpc.ErrBatch) {
		done = func() {} // it is the batch's
		s.takeBatch(ctx, c, lw, work, slots, in)
		return
	}
	if err != nil {
		code := jsonrpc.CodeInvalidRequest
		switch {
		case errors.Is(err, errManyLarge):
			code = jsonrpc.CodeInternal
		case errors.Is(err, jsonrpc.ErrSyntax) || in.Err != nil:
			code = jsonrpc.CodeParse
		}
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, fail(code, "%v", err)))
		return
	}
	if !msg.IsRequest() {
		s.oneWay(c, c.profile, tool.LocalOwner, msg)
		return
	}
	x := &exchange{c: c, profile: c.profile, caller: tool.LocalOwner, origin: tool.OriginMCP, msg: msg, notify: lw.write, caps: c.capabilities()}
	if e := s.eraOf(x); e != nil {
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, e))
		return
	}
	rctx, finish, ok := c.begin(ctx, string(msg.ID))
	if !ok {
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInvalidRequest, "a request with this id is running")))
		return
	}
	select {
	case slots <- struct{}{}:
	default:
		finish(nil)
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInternal, "more than %d requests are running", maxConcurrent)))
		return
	}
	x.ctx = rctx
	done = func() {} // it is the request's
	run := func() {
		defer in.Release()
		defer func() { <-slots }()
		defer finish(nil)
		if msg.Method != "initialize" && in.await(rctx) != nil {
			return // the client has cancelled the request, or is gone
		}
		if out := s.answer(rctx, nil, x); out != nil {
			_ = lw.writeParts(out) // a broken pipe ends the whole connection
		}
		x.buf.Release()
	}
	if msg.Method == "initialize" {
		run() // nothing overtakes the handshake
		return
	}
	work.Go(run)
}

// eraOf settles the era of a request on a connection that may carry both.
func (s *Server) eraOf(x *exchange) *jsonrpc.Error {
	meta := openMeta(x.msg.Params)
	switch {
	case mcp.IsModernProtocol(meta.version):
		if !mcp.IsValidProtocolVersion(meta.version) {
			return unsupportedVersion(meta.version)
		}
		if meta.capabilities == nil {
			return fail(jsonrpc.CodeInvalidParams, "_meta has no %s", mcp.MetaKeyClientCapabilities)
		}
		x.modern, x.level, x.caps = true, meta.level, meta.open()
	case x.msg.Method == "server/discover":
		return fail(jsonrpc.CodeInvalidParams, "_meta has no %s", mcp.MetaKeyProtocolVersion)
	case x.msg.Method != "initialize" && x.msg.Method != "ping":
		if !x.c.introduced() {
			return fail(jsonrpc.CodeInvalidRequest, "send initialize first")
		}
	}
	return nil
}

// pushChanges tells a legacy client what concerns no request. The returned
// function ends it.
func (s *Server) pushChanges(ctx context.Context, c *client, lw *lines) (stop func()) {
	st := s.newStream(c, tool.LocalOwner, c.profile)
	if !s.attach(st) {
		return func() {}
	}
	c.mu.Lock()
	c.get = st
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = st.deliver(ctx, s.life, lw.write) // a broken pipe ends the connection
	}()
	return func() {
		st.end()
		s.detach(st)
		<-done
	}
}

// lines writes messages one a line, one at a time.
type lines struct {
	mu     sync.Mutex
	w      io.Writer
	err    error
	broken func()
}

func (l *lines) write(msg []byte) error { return l.writeParts(parts{msg}) }

func (l *lines) writeParts(msg parts) error {
	msg = msg.line()
	if len(msg) == 1 && len(msg[0]) < piece {
		msg = parts{append(msg[0][:len(msg[0]):len(msg[0])], '\n')} // in one write
	} else {
		msg = append(slices.Clip(msg), []byte{'\n'})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range msg {
		if l.err != nil {
			break
		}
		if _, l.err = l.w.Write(b); l.err != nil {
			l.broken()
		}
	}
	return l.err
}

func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
