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

// drainTimeout bounds how long requests may run after the client closed its side: a script
// pipes a request in and expects its answer.
const drainTimeout = time.Second

// ErrNobody is returned by [Server.ServeStdio] for a caller without a principal.
var ErrNobody = errors.New("the principal of this client is not established")

// stdioConn is one client over standard streams.
type stdioConn struct {
	s     *Server
	c     *client
	who   tool.Caller
	lw    *lines
	send  func([]byte) error // of lw
	work  sync.WaitGroup
	slots chan struct{} // a place for each request that runs
}

// ServeStdio serves one client, which is who, over in and out, a message a line, until
// in ends or ctx does. Nothing but messages is written to out. It returns when
// every request has ended; the caller may have to close in to end a blocked
// read. The profile is named, or "".
func (s *Server) ServeStdio(ctx context.Context, who tool.Caller, in io.Reader, out io.Writer, profile string) error {
	if who.Principal == "" {
		return ErrNobody
	}
	p, err := s.profile(profile, who)
	if errors.Is(err, ErrNoProfile) {
		err = fmt.Errorf("%w %q; the profiles are %s, and plugin.mcp_bridge.profiles configures others", ErrNoProfile, profile, s.profileNames(who))
	}
	if err != nil {
		return err
	}
	stopping := ctx
	ctx, cut := context.WithCancelCause(context.WithoutCancel(ctx)) // so that requests have the cause below
	defer context.AfterFunc(stopping, func() { cut(tool.ErrStopping) })()
	cancel := func() { cut(nil) }
	defer cancel()
	sc := &stdioConn{
		s: s, c: newClient(who.Principal, "mcp_"+rand.Text(), p), who: who,
		lw: newLines(out, cancel), slots: make(chan struct{}, maxConcurrent),
	}
	sc.send = sc.lw.write
	defer s.ended(sc.c, errSessionEnded)
	defer sc.pushChanges(ctx)()

	readErr := make(chan error, 1)
	go func() {
		readErr <- ReadMessages(in, s.cfg.MaxMessage(), func(m Incoming) {
			sc.take(ctx, m)
		})
	}()
	select {
	case err = <-readErr:
	case <-ctx.Done():
	}
	done := make(chan struct{})
	go func() {
		sc.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(drainTimeout):
	}
	cancel()
	<-done
	return errors.Join(err, sc.lw.failure())
}

// take handles one line.
func (sc *stdioConn) take(ctx context.Context, in Incoming) {
	s, c, lw := sc.s, sc.c, sc.lw
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
		done = func() {} // the batch owns it
		sc.takeBatch(ctx, in)
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
		s.oneWay(c, c.profile, sc.who, msg)
		return
	}
	q := &lineRequest{sc: sc, in: in, request: request{exchange: exchange{c: c, profile: c.profile, caller: sc.who, origin: tool.OriginMCP, msg: msg, notify: sc.send, caps: c.capabilities()}}}
	if e := s.eraOf(&q.exchange); e != nil {
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, e))
		return
	}
	q.Begin(ctx)
	if !c.begin(&q.running, msg.ID) {
		q.finish(nil)
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInvalidRequest, "a request with this id is running")))
		return
	}
	select {
	case sc.slots <- struct{}{}:
	default:
		q.finish(nil)
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInternal, "more than %d requests are running", maxConcurrent)))
		return
	}
	q.ctx = &q.Context
	done = func() {} // the request owns it
	if msg.Method == "initialize" {
		q.run() // nothing overtakes the handshake
		return
	}
	sc.work.Go(q.run)
}

// lineRequest is the request of a line.
type lineRequest struct {
	request
	sc *stdioConn
	in Incoming
}

// run runs a request that has a slot, and writes its response.
func (q *lineRequest) run() {
	defer q.in.Release()
	defer func() { <-q.sc.slots }()
	defer q.finish(nil)
	if q.msg.Method != "initialize" && q.in.await(q.ctx) != nil {
		return // the client has cancelled the request, or is gone
	}
	if out := q.sc.s.answer(q.ctx, nil, &q.exchange); out != nil {
		_ = q.sc.lw.writeParts(out) // a broken pipe ends the whole connection
	}
	q.buf.Release()
}

// eraOf determines the era of a request on a connection that may carry both eras.
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

// pushChanges sends a legacy client the notifications that concern no request. The returned
// function stops it.
func (sc *stdioConn) pushChanges(ctx context.Context) (stop func()) {
	s, c := sc.s, sc.c
	st := s.newStream(c, sc.who, c.profile)
	if !s.attach(st) {
		return func() {}
	}
	c.mu.Lock()
	c.get = st
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = st.deliver(ctx, s.life, sc.lw.write) // a broken pipe ends the connection
	}()
	return func() {
		st.end()
		s.detach(st)
		<-done
	}
}

// together is how many bytes of messages one write takes.
const together = 64 << 10

// lines writes messages, one per line and one at a time. Messages that come during a write go out
// with the next one, which the same caller makes.
type lines struct {
	mu      sync.Mutex
	w       io.Writer
	err     error
	broken  func()
	writing bool
	free    sync.Cond // of mu: nobody writes, or there is room
	next    []byte    // lines for the next write
	spare   []byte    // memory for those after it
}

func newLines(w io.Writer, broken func()) *lines {
	l := &lines{w: w, broken: broken}
	l.free.L = &l.mu
	return l
}

func (l *lines) write(msg []byte) error { return l.writeParts(parts{msg}) }

// writeParts returns when the message is written, or when somebody else is about to write it:
// its failure ends the connection.
func (l *lines) writeParts(msg parts) error {
	msg = msg.line()
	small := msg.size() < together
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing && l.err == nil && (!small || len(l.next)+msg.size() >= together) {
		l.free.Wait()
	}
	if l.err != nil {
		return l.err
	}
	if small {
		for _, b := range msg {
			l.next = append(l.next, b...)
		}
		l.next = append(l.next, '\n')
		if l.writing {
			return nil
		}
	}
	l.writing = true
	defer func() {
		l.writing = false
		l.free.Broadcast()
	}()
	if !small {
		l.putLarge(msg)
	}
	for len(l.next) > 0 && l.err == nil {
		now := l.next
		l.next, l.spare = l.spare[:0], nil
		l.free.Broadcast()
		l.put(now)
		l.spare = now[:0]
	}
	return l.err
}

// putLarge writes a message that is not copied for it.
func (l *lines) putLarge(msg parts) {
	last := msg[len(msg)-1]
	for _, b := range msg[:len(msg)-1] {
		l.put(b)
	}
	if len(last) >= together {
		l.put(last)
		last = nil
	}
	l.put(append(slices.Clip(last), '\n'))
}

// put writes, without mu, which is held before and after.
func (l *lines) put(b []byte) {
	if l.err != nil {
		return
	}
	l.mu.Unlock()
	_, err := l.w.Write(b)
	l.mu.Lock()
	if err != nil && l.err == nil {
		l.err = err
		l.broken()
	}
}

func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
