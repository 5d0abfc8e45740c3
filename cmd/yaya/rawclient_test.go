package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sse"
)

// rawClient is an MCP client over HTTP that shows what is on the wire: it hides
// nothing, and speaks either era.
type rawClient struct {
	t      *testing.T
	url    string
	modern bool
	caps   map[string]any
	answer map[string]map[string]any // to questions, by method
	header http.Header               // of every request, besides what the protocol says

	mu      sync.Mutex
	session string
	ids     int
	notes   []rawMessage // all of them, in order
	asked   []string     // the server's questions
	wake    chan struct{}
	stop    context.CancelFunc
	done    sync.WaitGroup
}

type rawMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

var rawAnswers = map[string]map[string]any{
	"elicitation/create":     {"action": "accept", "content": map[string]any{"name": "Ada"}},
	"sampling/createMessage": {"role": "assistant", "model": "m", "content": map[string]any{"type": "text", "text": "pong"}},
	"roots/list":             {"roots": []any{map[string]any{"uri": "file:///r"}}},
}

func newRawClient(t *testing.T, url string, modern bool, edit ...func(*rawClient)) *rawClient {
	t.Helper()
	c := &rawClient{t: t, url: url, modern: modern, wake: make(chan struct{}, 1), answer: rawAnswers, caps: map[string]any{
		"elicitation": map[string]any{}, "sampling": map[string]any{}, "roots": map[string]any{},
	}}
	for _, f := range edit {
		f(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	t.Cleanup(func() {
		cancel()
		c.done.Wait()
	})
	if !modern {
		r := c.must("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": c.caps, "clientInfo": map[string]any{"name": "raw", "version": "1"}})
		if r["protocolVersion"] != "2025-11-25" {
			t.Fatalf("initialize: %v", r)
		}
		c.post(ctx, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}, "", "")
		c.listen(ctx, http.MethodGet, nil)
	}
	return c
}

// listen follows a stream in the background until the client ends.
func (c *rawClient) listen(ctx context.Context, method string, body map[string]any) {
	opened := make(chan struct{})
	c.done.Go(func() {
		resp, err := c.send(ctx, method, body, "subscriptions/listen", "")
		close(opened)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		r := sse.NewReader(resp.Body, 1<<20)
		for {
			ev, err := r.Next()
			if err != nil {
				return
			}
			if len(ev.Data) > 0 {
				c.take(ev.Data)
			}
		}
	})
	<-opened
}

func (c *rawClient) send(ctx context.Context, method string, body map[string]any, rpc, name string) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url, in)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, c.header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.modern {
		req.Header.Set(mcp.HeaderProtocolVersion, mcp.ProtocolVersion20260728)
		req.Header.Set(mcp.HeaderMethod, rpc)
		if name != "" {
			req.Header.Set(mcp.HeaderName, name)
		}
	}
	c.mu.Lock()
	if c.session != "" {
		req.Header.Set(mcp.HeaderSessionID, c.session)
	}
	c.mu.Unlock()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if id := resp.Header.Get(mcp.HeaderSessionID); id != "" {
		c.mu.Lock()
		c.session = id
		c.mu.Unlock()
	}
	return resp, nil
}

// take handles a message that is not an answer to a request of ours.
func (c *rawClient) take(data []byte) {
	var m rawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		c.t.Errorf("unreadable: %s", data)
		return
	}
	if m.ID != nil {
		c.mu.Lock()
		c.asked = append(c.asked, fmt.Sprint(m.Method, " ", m.Params))
		c.mu.Unlock()
		c.done.Go(func() {
			// Not in the context of the request whose stream asked, which may end
			// at once: a net/http connection whose request is cancelled as its
			// answer without a body arrives fails the next request on it.
			c.post(c.t.Context(), map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": c.answer[m.Method]}, "", "")
		})
		return
	}
	c.mu.Lock()
	c.notes = append(c.notes, m)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// post sends a message and returns the response to it, if it is a request.
func (c *rawClient) post(ctx context.Context, body map[string]any, rpc, name string) (rawMessage, error) {
	resp, err := c.send(ctx, http.MethodPost, body, rpc, name)
	if err != nil {
		return rawMessage{}, err
	}
	defer resp.Body.Close()
	var m rawMessage
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(resp.Body)
		if err != nil || len(data) == 0 {
			return m, err
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return m, fmt.Errorf("%s: %s", resp.Status, data)
		}
		return m, nil
	}
	r := sse.NewReader(resp.Body, 16<<20)
	for {
		ev, err := r.Next()
		if err != nil {
			return m, err
		}
		if len(ev.Data) == 0 {
			continue
		}
		if err := json.Unmarshal(ev.Data, &m); err != nil {
			return m, err
		}
		if m.Method == "" {
			return m, nil
		}
		if m.ID != nil && c.modern {
			return m, errors.New("a request on the stream of a modern client: " + m.Method)
		}
		c.take(ev.Data)
		m = rawMessage{}
	}
}

// requestID, in a context, is the id of the request sent with it.
type requestID struct{}

func (c *rawClient) nextID(ctx context.Context) any {
	if id := ctx.Value(requestID{}); id != nil {
		return id
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	return c.ids
}

// request sends a request; a modern client answers what it is asked by asking
// again.
func (c *rawClient) request(ctx context.Context, method string, params map[string]any) (rawMessage, error) {
	if params == nil {
		params = map[string]any{}
	}
	if c.modern {
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta[mcp.MetaKeyProtocolVersion] = mcp.ProtocolVersion20260728
		meta[mcp.MetaKeyClientCapabilities] = c.caps
		meta[mcp.MetaKeyClientInfo] = map[string]any{"name": "raw", "version": "1"}
		if meta[mcp.MetaKeyLogLevel] == nil {
			meta[mcp.MetaKeyLogLevel] = "info"
		}
		params["_meta"] = meta
	}
	name, _ := params["name"].(string)
	if uri, ok := params["uri"].(string); ok {
		name = uri
	}
	for range 5 {
		m, err := c.post(ctx, map[string]any{"jsonrpc": "2.0", "id": c.nextID(ctx), "method": method, "params": params}, method, name)
		if err != nil || m.Result["resultType"] != "input_required" {
			return m, err
		}
		questions, _ := m.Result["inputRequests"].(map[string]any)
		answers := map[string]any{}
		for key, q := range questions {
			asked := q.(map[string]any)["method"].(string)
			c.mu.Lock()
			c.asked = append(c.asked, fmt.Sprint(asked, " ", q.(map[string]any)["params"]))
			c.mu.Unlock()
			answers[key] = c.answer[asked]
		}
		params["inputResponses"] = answers
		delete(params, "requestState")
		if s, ok := m.Result["requestState"]; ok {
			params["requestState"] = s
		}
	}
	return rawMessage{}, errors.New("it never stops asking")
}

func (c *rawClient) must(method string, params map[string]any) map[string]any {
	c.t.Helper()
	m, err := c.try(method, params)
	if err != nil {
		c.t.Fatalf("%s = %v, want no error", method, err)
	}
	return m
}

func (c *rawClient) try(method string, params map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Limit)
	defer cancel()
	m, err := c.request(ctx, method, params)
	if err == nil && m.Error != nil {
		err = fmt.Errorf("%s (code %d, data %s)", m.Error.Message, m.Error.Code, m.Error.Data)
	}
	return m.Result, err
}

// text calls a tool and returns the text of its result.
func (c *rawClient) text(tool string, args map[string]any) (string, error) {
	if args == nil {
		args = map[string]any{}
	}
	r, err := c.try("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return "", err
	}
	content, _ := r["content"].([]any)
	if len(content) == 0 {
		return "", fmt.Errorf("no content: %v", r)
	}
	s, _ := content[0].(map[string]any)["text"].(string)
	if r["isError"] == true {
		return "", errors.New(s)
	}
	return s, nil
}

// noted waits for a notification that fits, among those from now on or from the
// given one.
func (c *rawClient) noted(from int, fits func(rawMessage) bool) error {
	deadline := time.After(eventually.Limit)
	for {
		c.mu.Lock()
		for _, m := range c.notes[from:] {
			if fits(m) {
				c.mu.Unlock()
				return nil
			}
		}
		c.mu.Unlock()
		select {
		case <-c.wake:
		case <-deadline:
			return errors.New("the notification did not come")
		}
	}
}

func (c *rawClient) mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.notes)
}

// heard has a modern client listen to changes of its lists and of a resource.
func (c *rawClient) heard(uri string) {
	c.t.Helper()
	c.listen(c.t.Context(), "POST", map[string]any{"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": map[string]any{
		"notifications": map[string]any{"promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": []string{uri}},
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": c.caps,
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "raw", "version": "1"},
		},
	}})
	if err := c.noted(0, func(m rawMessage) bool { return m.Method == "notifications/subscriptions/acknowledged" }); err != nil {
		c.t.Fatalf("subscriptions/listen: %v, want it acknowledged", err)
	}
}
