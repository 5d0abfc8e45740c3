package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Limits of the connection.
const (
	maxLine    = 32 << 20 // bytes of a message; pictures arrive in them
	maxAtOnce  = 64       // requests of the editor that are worked on
	codeNoFind = -32002   // of the protocol: what a request names does not exist
	codeCancel = -32800   // of the protocol: the request was cancelled
)

// errWithdrawn is the cause of the end of a request that the editor has withdrawn. A request
// also ends with the connection, which cancels nothing in yaya.
var errWithdrawn = errors.New("the editor has withdrawn the request")

// handler takes requests and notifications in their order, on the goroutine that reads. A request
// begins there, so that a notification behind it finds it; the function that request returns
// answers it, on a goroutine of its own.
type handler interface {
	request(method string, params []byte) func(ctx context.Context) (any, error)
	notification(method string, params []byte)
	// answered is called when the editor has got the result of a request.
	answered(result any)
}

// conn is JSON-RPC 2.0 in lines, both ways. Its methods are safe for concurrent use.
type conn struct {
	h  handler
	wg sync.WaitGroup

	out  sync.Mutex // held while a line is written
	w    io.Writer
	dead error

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan reply
	running map[string]context.CancelCauseFunc // requests of the editor, by raw id
	over    bool                               // no request is taken any longer
}

type reply struct {
	result json.RawMessage
	err    error
}

func newConn(w io.Writer, h handler) *conn {
	return &conn{h: h, w: w, waiting: map[int64]chan reply{}, running: map[string]context.CancelCauseFunc{}}
}

// serve reads until r ends, and returns nil then, or until ctx does; it ends what runs and
// waits for it. A read that hangs when ctx ends is left to the end of the process.
func (c *conn) serve(ctx context.Context, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	read := make(chan error, 1)
	go func() { read <- c.read(ctx, r) }()
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
	}
	cancel()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.wg.Wait()
	return err
}

func (c *conn) read(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	room := make(chan struct{}, maxAtOnce)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var m jsonrpc.Message
		if err := m.Parse(line); err != nil {
			c.answer(jsonrpc.Waits(line), nil, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: err.Error()})
			continue
		}
		params := bytes.Clone(m.Params.Raw())
		switch {
		case m.IsResponse():
			c.answered(&m)
		case m.IsNotification() && m.Method == "$/cancel_request":
			c.withdrawn(params)
		case m.IsNotification():
			c.h.notification(m.Method, params)
		default:
			select {
			case room <- struct{}{}:
			default:
				c.answer(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("%d requests are being worked on: wait for one of them", maxAtOnce)})
				continue
			}
			c.handle(ctx, string(m.ID), m.Method, params, func() { <-room })
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("the editor sent a message of more than %d MiB", maxLine>>20)
	}
	return lines.Err()
}

func (c *conn) handle(ctx context.Context, id, method string, params []byte, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		cancel(nil)
		return
	}
	c.running[id] = cancel
	answer := c.h.request(method, params)
	c.wg.Go(func() {
		defer done()
		defer cancel(nil)
		result, err := answer(ctx)
		c.mu.Lock()
		delete(c.running, id)
		c.mu.Unlock()
		c.answer([]byte(id), result, err)
		if err == nil {
			c.h.answered(result)
		}
	})
}

// withdrawn cancels a request of the editor, which is still answered.
func (c *conn) withdrawn(params []byte) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return // it names nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[string(p.RequestID)]; cancel != nil {
		cancel(errWithdrawn)
	}
}

func (c *conn) answered(m *jsonrpc.Message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return // nobody waits for it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.waiting[id]
	delete(c.waiting, id)
	switch {
	case got == nil: // it was withdrawn
	case m.Err != nil:
		got <- reply{err: jsonrpc.ParseError(bytes.Clone(m.Err))}
	default:
		got <- reply{result: bytes.Clone(m.Result.Raw())}
	}
}

// call asks the editor and decodes its answer. When ctx ends first, the question is withdrawn.
func (c *conn) call(ctx context.Context, method string, params, out any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	got := make(chan reply, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = got
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}
	if err := c.write(jsonrpc.AppendRequest(nil, strconv.AppendInt(nil, id, 10), method, raw)); err != nil {
		forget()
		return err
	}
	select {
	case r := <-got:
		if r.err != nil {
			return r.err
		}
		return json.Unmarshal(r.result, out)
	case <-ctx.Done():
		forget()
		c.notify("$/cancel_request", map[string]int64{"requestId": id})
		return context.Cause(ctx)
	}
}

// notify sends a notification; an editor that is gone misses nothing.
func (c *conn) notify(method string, params any) {
	if raw, err := json.Marshal(params); err == nil {
		_ = c.write(jsonrpc.AppendRequest(nil, nil, method, raw))
	}
}

func (c *conn) answer(id []byte, result any, err error) {
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(result)
	}
	if err == nil {
		_ = c.write(jsonrpc.AppendResult(nil, id, raw)) // otherwise the editor is gone
		return
	}
	e, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled):
		e = &jsonrpc.Error{Code: codeCancel, Message: "the request was cancelled"}
	default:
		e = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
	}
	_ = c.write(jsonrpc.AppendError(nil, id, e))
}

func (c *conn) write(line []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	if c.dead == nil {
		_, c.dead = c.w.Write(append(jsonrpc.Line(line), '\n'))
	}
	return c.dead
}
