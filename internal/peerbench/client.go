//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/sse"
)

// bound is the time of everything that a check waits for.
const bound = 4 * time.Second

// message is a JSON-RPC message as it is on the wire.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("error %d: %.120s", e.Code, e.Message) }

// endpoint is where a gateway serves its clients.
type endpoint struct {
	base string // http://127.0.0.1:port
	path string
	sse  bool   // the transport HTTP+SSE of 2024-11-05, for want of streamable HTTP
	auth string // the Authorization header; "" for none
}

func (e endpoint) authorize(r *http.Request) {
	if e.auth != "" {
		r.Header.Set("Authorization", e.auth)
	}
}

// client is one MCP session with an endpoint. It answers the questions that a
// server may ask. Close ends it and waits for its goroutines.
type client struct {
	to   endpoint
	http *http.Client
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	post    string // the URL that messages go to
	session string
	ids     int
	waiting map[string]chan message
	notes   []message
	news    chan struct{} // closed, and made again, when notes grows
}

// connect opens a session in the legacy era, with its stream for what the
// server sends unasked.
func connect(ctx context.Context, to endpoint) (*client, error) {
	life, end := context.WithCancel(context.Background())
	c := &client{
		to: to, post: to.base + to.path, end: end, waiting: map[string]chan message{}, news: make(chan struct{}),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	err := func() error {
		if to.sse {
			if err := c.listen(ctx, life); err != nil {
				return err
			}
		}
		m, err := c.request(ctx, "initialize", map[string]any{
			"protocolVersion": legacy, "capabilities": map[string]any{"elicitation": map[string]any{}, "sampling": map[string]any{}},
			"clientInfo": map[string]any{"name": "peerbench", "version": "1"},
		})
		if err != nil {
			return fmt.Errorf("initialize: %w", err)
		}
		if !bytes.Contains(m, []byte(`"protocolVersion"`)) {
			return fmt.Errorf("initialize answered %.100s", m)
		}
		if err := c.notify(ctx, "notifications/initialized", nil); err != nil {
			return err
		}
		if !to.sse {
			// A server without such a stream answers 405, which is its right.
			_ = c.listen(ctx, life)
		}
		return nil
	}()
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *client) close() {
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if resp, err := c.do(ctx, http.MethodDelete, c.to.base+c.to.path, nil); err == nil {
			_ = resp.Body.Close()
		}
		cancel()
	}
	c.end()
	c.wg.Wait()
	c.http.CloseIdleConnections()
}

func (c *client) do(ctx context.Context, method, to string, body []byte) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, to, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.to.authorize(req)
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	c.mu.Lock()
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", legacy)
	}
	c.mu.Unlock()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.mu.Lock()
		c.session = id
		c.mu.Unlock()
	}
	return resp, nil
}

// listen opens the session's stream and follows it until life ends. Over
// HTTP+SSE it returns when the server has named its endpoint.
func (c *client) listen(ctx, life context.Context) error {
	type opened struct {
		resp *http.Response
		err  error
	}
	open := make(chan opened, 1)
	c.wg.Go(func() {
		resp, err := c.do(life, http.MethodGet, c.to.base+c.to.path, nil)
		open <- opened{resp, err}
	})
	var o opened
	select {
	case o = <-open:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(bound): // some send no header before the first message
		c.wg.Go(func() {
			if o := <-open; o.err == nil {
				c.follow(o.resp, nil)
			}
		})
		return nil
	}
	if o.err != nil {
		return o.err
	}
	if o.resp.StatusCode != http.StatusOK {
		_ = o.resp.Body.Close()
		return fmt.Errorf("GET answered %s", o.resp.Status)
	}
	if !c.to.sse {
		c.wg.Go(func() { c.follow(o.resp, nil) })
		return nil
	}
	named := make(chan string, 1)
	c.wg.Go(func() { c.follow(o.resp, named) })
	select {
	case path := <-named:
		u, err := url.Parse(c.post)
		if err != nil {
			return err
		}
		to, err := u.Parse(path)
		if err != nil || to.Host != u.Host {
			return fmt.Errorf("the server names the endpoint %q", path)
		}
		c.mu.Lock()
		c.post = to.String()
		c.mu.Unlock()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(bound):
		return errors.New("the server names no endpoint")
	}
}

// follow takes the events of a response until its end.
func (c *client) follow(resp *http.Response, named chan<- string) {
	defer func() { _ = resp.Body.Close() }()
	r := sse.NewReader(resp.Body, maxMessage)
	for {
		ev, err := r.Next()
		if err != nil {
			return
		}
		if ev.Name == "endpoint" && named != nil {
			select {
			case named <- string(ev.Data):
			default:
			}
			continue
		}
		if len(ev.Data) > 0 {
			c.take(ev.Data)
		}
	}
}

// take handles one message of the server.
func (c *client) take(data []byte) {
	var m message
	if json.Unmarshal(data, &m) != nil {
		return
	}
	if m.Method == "" {
		c.mu.Lock()
		got := c.waiting[string(m.ID)]
		delete(c.waiting, string(m.ID))
		c.mu.Unlock()
		if got != nil {
			got <- m
		}
		return
	}
	if len(m.ID) > 0 {
		c.wg.Go(func() { c.reply(m) })
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.notes) < 10_000 {
		c.notes = append(c.notes, m)
	}
	close(c.news)
	c.news = make(chan struct{})
}

// reply answers a question of the server.
func (c *client) reply(m message) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	switch m.Method {
	case "elicitation/create":
		answer["result"] = map[string]any{"action": "accept", "content": map[string]any{"name": "Ada"}}
	case "sampling/createMessage":
		answer["result"] = map[string]any{"role": "assistant", "model": "bench", "content": map[string]any{"type": "text", "text": "pong"}}
	case "ping":
		answer["result"] = map[string]any{}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "unknown method"}
	}
	_ = c.send(ctx, answer) // the server's own wait ends the check
}

func (c *client) notify(ctx context.Context, method string, params any) error {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	return c.send(ctx, m)
}

// send posts a message and takes what comes back.
func (c *client) send(ctx context.Context, m map[string]any) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	to := c.post
	c.mu.Unlock()
	resp, err := c.do(ctx, http.MethodPost, to, body)
	if err != nil {
		return err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		c.follow(resp, nil)
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if err != nil {
		return err
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		c.take(data) // an error may come with any status
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("HTTP %s: %.120s", resp.Status, bytes.TrimSpace(data))
	}
	return nil
}

// nextID reserves the id of a request.
func (c *client) nextID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	return c.ids
}

// request sends a request and waits for its raw result, for bound at most.
func (c *client) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.requestAs(ctx, c.nextID(), method, params)
}

func (c *client) requestAs(ctx context.Context, id int, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if params == nil {
		params = map[string]any{}
	}
	key := fmt.Sprint(id)
	got := make(chan message, 1)
	c.mu.Lock()
	c.waiting[key] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, key)
		c.mu.Unlock()
	}()
	sent := make(chan error, 1)
	c.wg.Go(func() {
		sent <- c.send(ctx, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	})
	result := func(m message) (json.RawMessage, error) {
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	}
	for {
		select {
		case m := <-got:
			return result(m)
		case err := <-sent:
			if err != nil {
				select {
				case m := <-got:
					return result(m)
				default:
					return nil, err
				}
			}
			sent = nil // the answer may come on the other stream
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: no answer in %v", method, bound)
		}
	}
}

// noted waits for a notification that fits, from a mark on.
func (c *client) noted(from int, method string, fits func(params json.RawMessage) bool) error {
	deadline := time.After(bound)
	for {
		c.mu.Lock()
		for _, m := range c.notes[from:] {
			if m.Method == method && fits(m.Params) {
				c.mu.Unlock()
				return nil
			}
		}
		news := c.news
		c.mu.Unlock()
		select {
		case <-news:
		case <-deadline:
			return fmt.Errorf("%s did not arrive", method)
		}
	}
}

// mark is the place in the notifications from which on a check looks.
func (c *client) mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.notes)
}
