package downstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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
	if errors.Is(err, errNoProfile) {
		err = fmt.Errorf("there is no profile %q; configure it with plugin.mcp_bridge.profiles", profile)
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
		readErr <- ReadMessages(in, func(data []byte, err error) {
			s.take(ctx, c, lw, &work, slots, data, err)
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
func (s *Server) take(ctx context.Context, c *client, lw *lines, work *sync.WaitGroup, slots chan struct{}, data []byte, err error) {
	msg := new(jsonrpc.Message)
	if err == nil {
		err = msg.Parse(data)
	}
	if errors.Is(err, jsonrpc.ErrBatch) {
		s.takeBatch(ctx, c, lw, work, slots, data)
		return
	}
	if err != nil {
		code := jsonrpc.CodeInvalidRequest
		if errors.Is(err, jsonrpc.ErrSyntax) || errors.Is(err, errLineTooLong) {
			code = jsonrpc.CodeParse
		}
		_ = lw.write(jsonrpc.AppendError(nil, msg.ID, fail(code, "%v", err)))
		return
	}
	if !msg.IsRequest() {
		s.oneWay(c, msg)
		return
	}
	x := &exchange{c: c, profile: c.profile, caller: tool.LocalOwner, msg: msg, notify: lw.write, caps: c.capabilities()}
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
	run := func() {
		defer func() { <-slots }()
		defer finish(nil)
		if out := s.answer(rctx, nil, x); out != nil {
			_ = lw.write(out) // a broken pipe ends the whole connection
		}
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
	st := newStream(c)
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

func (l *lines) write(msg []byte) error {
	msg = jsonrpc.Line(msg)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if _, l.err = l.w.Write(append(msg[:len(msg):len(msg)], '\n')); l.err != nil {
		l.broken()
	}
	return l.err
}

func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

var errLineTooLong = errors.New("the message is larger than 4 MiB")

// ReadMessages calls f for every line that is not blank, with memory of its own,
// or with the error of a line longer than [MaxBody], which is skipped. It returns nil
// at the end of the input; a line that the end cuts off is taken as it is.
func ReadMessages(in io.Reader, f func(data []byte, err error)) error {
	br := bufio.NewReaderSize(in, 64<<10)
	for {
		var line []byte
		var long bool
		chunk, err := br.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			if !long {
				line = append(line, chunk...)
			}
			if len(line) > MaxBody {
				long, line = true, nil
			}
			chunk, err = br.ReadSlice('\n')
		}
		if !long {
			line = append(line, chunk...)
		}
		switch line = bytes.TrimSpace(line); {
		case long || len(line) > MaxBody:
			f(nil, errLineTooLong)
		case len(line) > 0:
			f(line, nil)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
