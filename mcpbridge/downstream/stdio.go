package downstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/intake"
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
		err = fmt.Errorf("%w %q; there are %s, and plugin.mcp_bridge.profiles configures others", ErrNoProfile, profile, s.profileNames(tool.LocalOwner))
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
		readErr <- ReadMessages(ctx, in, s.cfg.MaxMessage(), func(m Incoming) {
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
	held := in.Held
	defer func() { held.Release() }()
	msg, err := new(jsonrpc.Message), in.Err
	if err == nil {
		err = msg.Parse(in.Data)
	} else {
		msg.ID = in.ID
	}
	if errors.Is(err, jsonrpc.ErrBatch) {
		s.takeBatch(ctx, c, lw, work, slots, in.Data)
		return
	}
	if err != nil {
		code := jsonrpc.CodeInvalidRequest
		if errors.Is(err, jsonrpc.ErrSyntax) || in.Err != nil {
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
	mine := held
	held = nil
	run := func() {
		defer mine.Release()
		defer func() { <-slots }()
		defer finish(nil)
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
		_ = st.deliver(ctx, s.life, func(msg []byte) error {
			if !c.introduced() {
				return nil
			}
			return lw.write(msg)
		}) // a broken pipe ends the connection
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

// Incoming is a line that a client has sent, in memory of its own.
type Incoming struct {
	Data []byte
	// Held counts the line among the large messages in flight. Whoever is done with
	// it releases it.
	Held *intake.Share
	// Err says why the line was skipped, and ID what it asked for, if that shows.
	Err error
	ID  []byte
}

// ends of a line that is skipped, in which its id is looked for.
const glimpsed = 4 << 10

// ReadMessages calls f for every line that is not blank. A line of more than limit
// bytes is skipped. It returns nil at the end of the input; a line that the end cuts
// off is taken as it is.
func ReadMessages(ctx context.Context, in io.Reader, limit int, f func(Incoming)) error {
	br := bufio.NewReaderSize(in, 64<<10)
	for {
		m, head, err := readMessage(ctx, br, limit)
		switch {
		case m.Err != nil:
			m.ID, _ = jsonrpc.Glimpse(head, m.Data)
			m.Data = nil
			f(m)
		case len(m.Data) > 0:
			f(m)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readMessage reads one line. Of one that is skipped, it returns the head, and the tail
// as data.
func readMessage(ctx context.Context, br *bufio.Reader, limit int) (m Incoming, head []byte, err error) {
	var line []byte
	for {
		chunk, err := br.ReadSlice('\n')
		switch {
		case m.Err != nil:
			line = append(line[max(0, len(line)-glimpsed):], chunk...)
		case len(line)+len(chunk) > limit:
			m.Held.Release()
			m = Incoming{Err: errors.New(tooLong(limit))}
			head = bytes.Clone(line[:min(len(line), glimpsed)])
			line = append(bytes.Clone(line[max(0, len(line)-glimpsed):]), chunk...)
		default:
			if len(line)+len(chunk) > intake.Small && m.Held == nil {
				held, err := intake.Requests().Take(ctx, tool.Owner, int64(limit))
				if err != nil {
					return m, nil, err
				}
				m.Held = held
			}
			if need := len(line) + len(chunk); need > cap(line) && len(line) > 0 {
				line = slices.Grow(line, min(max(8*len(line), need), limit)-len(line))
			}
			line = append(line, chunk...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			m.Data = bytes.TrimSpace(line)
			if m.Err == nil && m.Held != nil {
				m.Held.Shrink(int64(len(line)))
			}
			return m, head, err
		}
	}
}
