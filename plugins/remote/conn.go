package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// lostError is why a process is no longer there.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// incoming handles the messages of a process, on the goroutine that reads them, in their
// order. lost is called once, when the process is gone; told says that an event was waiting
// for it, whose failure counts.
type incoming interface {
	request(c *conn, m *jsonrpc.Message)
	log(level, text string)
	lost(c *conn, err error, told bool)
}

// conn is a running process of a plugin.
type conn struct {
	p   *proc.Process
	run *sandbox.Run // nil without
	w   writer
	in  incoming

	emits  *rate.Limiter
	strays int // lines that are not messages, or answer nothing; the reader's
	room   chan struct{}

	life   context.Context // a base context: of what runs for the process
	end    context.CancelFunc
	work   sync.WaitGroup // requests of the plugin that run
	reader chan struct{}  // closed when the reader has returned
	gone   chan struct{}  // closed when nothing is answered any longer

	mu       sync.Mutex
	last     int64 // id
	pending  map[int64]waiter
	late     map[int64]bool                 // requests that were cancelled
	calls    map[int64]func(ProgressParams) // tool calls that run, with who wants their progress, or nil
	quiet    *sync.Cond                     // signals that a call has ended
	given    delivered
	stopping bool
	err      error // set before gone is closed
}

type waiter struct {
	got   chan answer
	event bool
}

type answer struct {
	result json.RawMessage
	err    error
}

// maxLate bounds the remembered ids of cancelled requests.
const maxLate = 4096

func newConn(p *proc.Process, run *sandbox.Run, in incoming) *conn {
	c := &conn{
		p: p, run: run, w: newWriter(p.Stdin), in: in, emits: rate.NewLimiter(EmitRate, EmitBurst), room: make(chan struct{}, MaxPending),
		reader: make(chan struct{}), gone: make(chan struct{}), pending: map[int64]waiter{}, late: map[int64]bool{}, calls: map[int64]func(ProgressParams){},
	}
	c.quiet = sync.NewCond(&c.mu)
	c.life, c.end = context.WithCancel(context.Background())
	go c.read()
	return c
}

// call sends a request and waits for its answer. An error is a [jsonrpc.Error] that the
// plugin sent, a lostError, errNotReading, or the cause of ctx.
func (c *conn) call(ctx context.Context, method string, params any, began func(id int64)) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxBacklog {
		return nil, fmt.Errorf("%s: %d MiB are more than a plugin gets in one message", method, len(raw)>>20)
	}
	got := make(chan answer, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, &lostError{c.err}
	}
	c.last++
	id := c.last
	c.pending[id] = waiter{got, method == MethodEvent}
	c.mu.Unlock()
	if began != nil {
		began(id)
	}
	line := make([]byte, 0, len(raw)+64)
	line = jsonrpc.AppendRequest(line, strconv.AppendInt(nil, id, 10), method, raw)
	if err := c.w.write(line); err != nil {
		c.forget(id, false)
		if errors.Is(err, errNotReading) {
			return nil, err
		}
		select { // the reader is about to learn why
		case <-c.gone:
		case <-ctx.Done():
		}
		return nil, c.failure(err)
	}
	select {
	case a := <-got:
		return a.result, a.err
	case <-c.gone:
		select {
		case a := <-got:
			return a.result, a.err
		default:
		}
		return nil, c.failure(nil)
	case <-ctx.Done():
		c.forget(id, true)
		c.notify(MethodCancel, CancelParams{ID: id})
		return nil, context.Cause(ctx)
	}
}

// notify sends a notification; one that cannot be sent is not missed.
func (c *conn) notify(method string, params any) {
	if raw, err := json.Marshal(params); err == nil {
		_ = c.w.write(jsonrpc.AppendRequest(nil, nil, method, raw))
	}
}

func (c *conn) forget(id int64, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	if sent {
		if len(c.late) >= maxLate {
			clear(c.late)
		}
		c.late[id] = true
	}
}

// failure returns why the process is gone.
func (c *conn) failure(otherwise error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return &lostError{c.err}
	}
	return &lostError{otherwise}
}

// alive reports whether the process answers.
func (c *conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.stopping
}

var (
	errLong   = fmt.Errorf("it sent a line of more than %d MiB", MaxLine>>20)
	errStrays = fmt.Errorf("it sent more than %d lines on standard output that are not messages, or answer no request: standard output is for the protocol, and standard error for people", MaxStrays)
)

func (c *conn) read() {
	defer close(c.reader)
	err := c.lines()
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		select { // the exit status says more
		case <-c.p.Done():
		case <-time.After(500 * time.Millisecond):
		}
		c.p.Kill()
		err = fmt.Errorf("its process %w", c.p.Err())
	} else {
		c.p.Kill()
	}
	if said := lastWords(c.p.Stderr()); said != "" {
		err = fmt.Errorf("%w; it last said: %s", err, said)
	}
	c.mu.Lock()
	c.err = err
	told := false
	for _, w := range c.pending {
		told = told || w.event
	}
	stopping := c.stopping
	c.mu.Unlock()
	close(c.gone)
	c.end()
	c.quiet.Broadcast()
	if !stopping {
		c.in.lost(c, err, told)
	}
}

// lines reads until an error, which it returns.
func (c *conn) lines() error {
	br := bufio.NewReaderSize(c.p.Stdout, 64<<10)
	var long []byte
	for {
		piece, err := br.ReadSlice('\n')
		line := piece
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			if len(long)+len(piece) > MaxLine {
				return errLong
			}
			long = append(long, piece...)
			line = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := c.message(line); err != nil {
				return err
			}
		}
		if long = long[:0]; cap(long) > 1<<20 {
			long = nil
		}
	}
}

// message handles one line.
func (c *conn) message(line []byte) error {
	var m jsonrpc.Message
	if err := m.Parse(line); err != nil {
		if id := jsonrpc.Waits(line); id != nil {
			c.reply(id, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()})
		}
		return c.stray(fmt.Sprintf("not a message: %v: %s", err, cut.Line(cut.Bytes(string(line[:min(len(line), 400)]), 400), 200)))
	}
	if m.IsResponse() {
		return c.answered(&m)
	}
	c.in.request(c, &m)
	return nil
}

func (c *conn) answered(m *jsonrpc.Message) error {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	c.mu.Lock()
	w, waits := c.pending[id]
	late := c.late[id]
	delete(c.pending, id)
	delete(c.late, id)
	c.mu.Unlock()
	switch {
	case err != nil || !waits && !late:
		return c.stray(fmt.Sprintf("an answer to the request %s, which nobody waits for", cut.Text(string(m.ID), 40)))
	case late:
		return nil
	}
	if m.Err != nil {
		w.got <- answer{err: jsonrpc.ParseError(bytes.Clone(m.Err))}
	} else {
		w.got <- answer{result: bytes.Clone(m.Result.Raw())}
	}
	return nil
}

// stray counts a line that does not belong to the protocol.
func (c *conn) stray(what string) error {
	c.in.log("warn", what)
	if c.strays++; c.strays > MaxStrays {
		return errStrays
	}
	return nil
}

// reply answers a request of the plugin.
func (c *conn) reply(id []byte, result any, failed *jsonrpc.Error) {
	if id == nil {
		return
	}
	if failed == nil {
		raw, err := json.Marshal(result)
		if err == nil {
			_ = c.w.write(jsonrpc.AppendResult(nil, id, raw)) // otherwise it is gone
			return
		}
		failed = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
	}
	_ = c.w.write(jsonrpc.AppendError(nil, id, failed))
}

// begin notes that a tool call runs, until ended.
func (c *conn) begin(id int64, progress func(ProgressParams)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = progress
}

func (c *conn) ended(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
	c.quiet.Broadcast()
}

// busy reports whether tool calls run.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls) > 0 && c.err == nil
}

// settle waits until no tool call runs.
func (c *conn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.calls) > 0 && c.err == nil {
		c.quiet.Wait()
	}
}

// stop asks the process to end, makes it, and waits for all that belongs to it. ctx shortens
// the patience.
func (c *conn) stop(ctx context.Context) {
	c.mu.Lock()
	first := !c.stopping
	c.stopping = true
	c.mu.Unlock()
	if first {
		asked, cancel := context.WithTimeout(ctx, ShutdownTime)
		_, _ = c.call(asked, MethodShutdown, Nothing{}, nil) // whatever it says, it ends
		cancel()
	}
	c.finish(ctx)
}

// kill ends the process at once.
func (c *conn) kill() {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	c.p.Kill()
	c.finish(context.Background())
}

func (c *conn) finish(ctx context.Context) {
	c.end()
	c.w.close()
	c.p.Stop(ctx)
	<-c.reader
	c.work.Wait()
}

// pid returns the process id of the program.
func (c *conn) pid() int {
	if c.run != nil {
		if pid := c.run.PID(); pid != 0 {
			return pid
		}
	}
	return c.p.PID()
}
