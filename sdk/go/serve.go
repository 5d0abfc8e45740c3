package yaya

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// maxLine bounds a line from yaya, in bytes.
const maxLine = 64 << 20

// Main serves a plugin on standard input and output until yaya ends it, and exits.
func Main(p Plugin) {
	if err := Serve(p, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Serve serves a plugin until in ends. It returns when everything that it has begun has ended.
func Serve(p Plugin, in io.Reader, out io.Writer) error {
	c := &conn{p: p, out: out, pending: map[string]chan *incoming{}, running: map[string]context.CancelFunc{}, closed: make(chan struct{})}
	c.host = &Host{c: c}
	ctx, cancel := context.WithCancel(context.Background())
	lines, over := bufio.NewScanner(in), make(chan error, 1)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	c.work.Go(func() { c.read(ctx, lines, over) })
	err := <-over
	close(c.closed)
	cancel()
	c.work.Wait()
	return err
}

type conn struct {
	p    Plugin
	host *Host
	work sync.WaitGroup

	write sync.Mutex
	out   io.Writer

	mu      sync.Mutex
	last    int64
	pending map[string]chan *incoming
	running map[string]context.CancelFunc
	closed  chan struct{}
}

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// send writes one message.
func (c *conn) send(m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	_, err = c.out.Write(append(line, '\n'))
	return err
}

// handOver is how long a request may take before another goroutine goes on reading.
const handOver = 100 * time.Microsecond

// read handles what yaya sends. A request is handled on the goroutine that has read it, so that
// nobody has to be woken up for it; if it takes longer, another one goes on reading.
func (c *conn) read(ctx context.Context, lines *bufio.Scanner, over chan<- error) {
	for lines.Scan() {
		var m incoming
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			over <- fmt.Errorf("yaya sent a line that is not a message: %w", err)
			return
		}
		m.Params, m.Result, m.ID = slices.Clone(m.Params), slices.Clone(m.Result), slices.Clone(m.ID)
		switch {
		case m.Method == "":
			c.mu.Lock()
			got := c.pending[string(m.ID)]
			delete(c.pending, string(m.ID))
			c.mu.Unlock()
			if got != nil {
				got <- &m
			}
		case m.Method == "cancel":
			c.cancel(m.Params)
		case m.ID != nil:
			running, cancel := c.begin(ctx, &m)
			c.work.Add(1)
			next := time.AfterFunc(handOver, func() {
				defer c.work.Done()
				c.read(ctx, lines, over)
			})
			c.serve(running, cancel, &m)
			if !next.Stop() {
				return
			}
			c.work.Done()
		}
	}
	over <- lines.Err()
}

func (c *conn) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.running[string(p.ID)]; end != nil {
		end()
	}
}

// begin notes that a request runs: the next line may cancel it.
func (c *conn) begin(ctx context.Context, m *incoming) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[string(m.ID)] = cancel
	return ctx, cancel
}

// serve handles a request and answers it.
func (c *conn) serve(ctx context.Context, cancel context.CancelFunc, m *incoming) {
	defer func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, string(m.ID))
	}()
	result, err := c.handle(ctx, m)
	reply := message{ID: m.ID, Result: result}
	if err != nil {
		reply.Result = nil
		if !errors.As(err, &reply.Error) {
			reply.Error = &Error{Code: -32000, Message: err.Error()}
		}
	}
	_ = c.send(reply) // when it cannot be sent, yaya has gone
}

func (c *conn) handle(ctx context.Context, m *incoming) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Code: -32603, Message: fmt.Sprintf("panic: %v", v)}
		}
	}()
	nothing := struct{}{}
	switch m.Method {
	case "initialize":
		return c.initialize(ctx, m.Params)
	case "event":
		if c.p.OnEvent == nil {
			return nothing, nil
		}
		var p struct {
			Event      Event `json:"event"`
			DeadlineMS int64 `json:"deadline_ms"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, &Error{Code: -32602, Message: err.Error()}
		}
		ctx, cancel := within(ctx, p.DeadlineMS)
		defer cancel()
		return nothing, c.p.OnEvent(ctx, c.host, p.Event)
	case "tool.call":
		return c.runTool(ctx, m)
	case "guard":
		return c.guard(ctx, m.Params)
	case "health":
		if c.p.Health != nil {
			return c.p.Health(ctx), nil
		}
	case "shutdown":
		if c.p.OnShutdown != nil {
			c.p.OnShutdown(ctx)
		}
		return nothing, nil
	}
	return nil, &Error{Code: -32601, Message: "unknown method " + m.Method}
}

// within bounds a context by the deadline of a request.
func within(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	if ms <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
}

// runTool runs a tool.
func (c *conn) runTool(ctx context.Context, m *incoming) (any, error) {
	call := &Call{Host: c.host, id: m.ID}
	if err := json.Unmarshal(m.Params, call); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	i := slices.IndexFunc(c.p.Tools, func(t Tool) bool { return t.Name == call.Name })
	if i < 0 {
		return nil, &Error{Code: -32602, Message: "there is no tool " + call.Name}
	}
	ctx, cancel := within(ctx, call.DeadlineMS)
	defer cancel()
	res, err := c.p.Tools[i].Run(ctx, call)
	if err != nil {
		res = Fail("tool", err.Error())
	}
	return res, nil
}

func (c *conn) initialize(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		ABI    int `json:"abi"`
		Kernel struct {
			Version  string `json:"version"`
			Protocol string `json:"protocol"`
		} `json:"kernel"`
		Settings
		StateDir string `json:"state_dir"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	if p.ABI < ABI {
		return nil, &Error{Code: -32602, Message: fmt.Sprintf("yaya speaks version %d of the plugin protocol, and this plugin needs %d", p.ABI, ABI)}
	}
	c.host.Version, c.host.Protocol, c.host.StateDir, c.host.Started = p.Kernel.Version, p.Kernel.Protocol, p.StateDir, p.Settings
	if c.p.OnStart != nil {
		if err := c.p.OnStart(ctx, c.host); err != nil {
			return nil, err
		}
	}
	out := map[string]any{"abi": ABI, "name": c.p.Name, "version": c.p.Version, "category": c.p.Category, "tools": append([]Tool{}, c.p.Tools...)}
	if guards := c.p.guards(); len(guards) > 0 {
		out["guards"] = guards
	}
	return out, nil
}
