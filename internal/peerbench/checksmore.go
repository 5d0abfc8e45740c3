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
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/sse"
)

// modernRequest posts one request of the modern era, which needs no session.
func modernRequest(ctx context.Context, to endpoint, method string, params map[string]any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modern,
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "peerbench", "version": "1"},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.base+to.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	to.authorize(req)
	req.Header.Set("Mcp-Protocol-Version", modern)
	req.Header.Set("Mcp-Method", method)
	if name, ok := params["name"].(string); ok {
		req.Header.Set("Mcp-Name", name)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var data []byte
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for r := sse.NewReader(resp.Body, maxMessage); ; {
			ev, err := r.Next()
			if err != nil {
				return nil, err
			}
			if bytes.Contains(ev.Data, []byte(`"id"`)) {
				data = ev.Data
				break
			}
		}
	} else if data, err = io.ReadAll(io.LimitReader(resp.Body, maxMessage)); err != nil {
		return nil, err
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: HTTP %s", method, resp.Status)
	}
	if m.Error != nil {
		return nil, fmt.Errorf("%s: %w", method, m.Error)
	}
	return m.Result, nil
}

func modernEra(ctx context.Context, s *subject) error {
	if s.to.sse {
		return errors.New("no streamable HTTP")
	}
	raw, err := modernRequest(ctx, s.to, "server/discover", map[string]any{})
	if err != nil {
		return err
	}
	if !bytes.Contains(raw, []byte(`"`+modern+`"`)) {
		return fmt.Errorf("server/discover does not offer %s: %.100s", modern, raw)
	}
	raw, err = modernRequest(ctx, s.to, "tools/list", map[string]any{})
	if err != nil {
		return err
	}
	if !bytes.Contains(raw, []byte(`"`+s.names["echo"]+`"`)) || !bytes.Contains(raw, []byte(`"resultType"`)) {
		return errors.New("tools/list has not the tool, or no resultType")
	}
	raw, err = modernRequest(ctx, s.to, "tools/call", map[string]any{"name": s.names["echo"], "arguments": map[string]any{"text": "hi"}})
	if err != nil {
		return err
	}
	var r called
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("tools/call: %w", err)
	}
	return got("tools/call", r.text(), "hi")
}

func progress(ctx context.Context, s *subject) error {
	from := s.c.mark()
	if _, err := s.call(ctx, s.c, "progress", nil, map[string]any{"_meta": map[string]any{"progressToken": "mine"}}); err != nil {
		return err
	}
	return s.c.noted(from, "notifications/progress", func(p json.RawMessage) bool {
		var n struct {
			Token    any     `json:"progressToken"`
			Progress float64 `json:"progress"`
		}
		return json.Unmarshal(p, &n) == nil && n.Token == "mine" && n.Progress == 3
	})
}

// counts asks the upstream how many calls of wait have begun and were cancelled.
func counts(ctx context.Context, s *subject) (begun, ended int, err error) {
	r, err := s.call(ctx, s.c, "counts", nil, nil)
	if err == nil {
		_, err = fmt.Sscan(r.text(), &begun, &ended)
	}
	return begun, ended, err
}

// until asks every 20 ms whether a count has been reached, for bound at most.
func until(ctx context.Context, what string, reached func() (bool, error)) error {
	deadline := time.Now().Add(bound)
	for {
		ok, err := reached()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.New(what)
		}
	}
}

func cancellation(ctx context.Context, s *subject) error {
	begun, ended, err := counts(ctx, s)
	if err != nil {
		return err
	}
	id := s.c.nextID()
	call, hangUp := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer hangUp()
	wg.Go(func() {
		_, _ = s.c.requestAs(call, id, "tools/call", map[string]any{"name": s.names["wait"], "arguments": map[string]any{}})
	})
	if err := until(ctx, "the call does not reach the upstream", func() (bool, error) {
		b, _, err := counts(ctx, s)
		return b > begun, err
	}); err != nil {
		return err
	}
	if err := s.c.notify(ctx, "notifications/cancelled", map[string]any{"requestId": id, "reason": "the user asked"}); err != nil {
		return err
	}
	return until(ctx, "the upstream did not learn of it", func() (bool, error) {
		_, e, err := counts(ctx, s)
		return e > ended, err
	})
}

func logging(ctx context.Context, s *subject) error {
	if _, err := s.c.request(ctx, "logging/setLevel", map[string]any{"level": "info"}); err != nil {
		return fmt.Errorf("logging/setLevel: %w", err)
	}
	from := s.c.mark()
	if _, err := s.call(ctx, s.c, "log", nil, nil); err != nil {
		return err
	}
	return s.c.noted(from, "notifications/message", func(p json.RawMessage) bool { return bytes.Contains(p, []byte("a warning")) })
}

// holds asks and looks for a text in the raw result.
func holds(ctx context.Context, c *client, method string, params map[string]any, text string) error {
	raw, err := c.request(ctx, method, params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if !bytes.Contains(raw, []byte(text)) {
		return fmt.Errorf("%s: %q is missing in %.80s", method, text, raw)
	}
	return nil
}

// uriOf is the URI under which a gateway lists one of the upstream: some put
// the server's name before it.
func uriOf(ctx context.Context, s *subject, method, list, member, uri string) (string, error) {
	raw, err := s.c.request(ctx, method, nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", method, err)
	}
	var lists map[string]json.RawMessage
	var all []map[string]any
	if err = json.Unmarshal(raw, &lists); err == nil && lists[list] != nil {
		err = json.Unmarshal(lists[list], &all)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", method, err)
	}
	for _, one := range all {
		if there, _ := one[member].(string); strings.HasSuffix(there, uri) {
			return there, nil
		}
	}
	return "", fmt.Errorf("%s: %s is missing", method, uri)
}

func resources(ctx context.Context, s *subject) error {
	uri, err := uriOf(ctx, s, "resources/list", "resources", "uri", resourceURI)
	if err != nil {
		return err
	}
	if err := holds(ctx, s.c, "resources/read", map[string]any{"uri": uri}, "content of "+resourceURI); err != nil {
		return err
	}
	template, err := uriOf(ctx, s, "resources/templates/list", "resourceTemplates", "uriTemplate", "bench://item/{id}")
	if err != nil {
		return err
	}
	return holds(ctx, s.c, "resources/read", map[string]any{"uri": strings.Replace(template, "{id}", "7", 1)}, "content of bench://item/7")
}

func prompts(ctx context.Context, s *subject) error {
	raw, err := s.c.request(ctx, "prompts/list", nil)
	if err != nil {
		return fmt.Errorf("prompts/list: %w", err)
	}
	var list struct {
		Prompts []struct {
			Name string `json:"name"`
		} `json:"prompts"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("prompts/list: %w", err)
	}
	name := ""
	for _, p := range list.Prompts {
		if ownName(p.Name) == "greet" {
			name = p.Name
		}
	}
	if name == "" {
		return errors.New("prompts/list: the prompt is missing")
	}
	if err := holds(ctx, s.c, "prompts/get", map[string]any{"name": name, "arguments": map[string]any{"name": "Ada"}}, "Hello Ada"); err != nil {
		return err
	}
	return holds(ctx, s.c, "completion/complete", map[string]any{
		"ref": map[string]any{"type": "ref/prompt", "name": name}, "argument": map[string]any{"name": "name", "value": "A"},
	}, "Adele")
}

// question calls a tool that asks, and looks for the answer in what it says.
func question(ctx context.Context, s *subject, tool, answer string) error {
	r, err := s.call(ctx, s.c, tool, nil, nil)
	if err != nil {
		return err
	}
	if !strings.Contains(r.text(), answer) {
		return fmt.Errorf("the tool got %.100s", r.text())
	}
	return nil
}

func elicitation(ctx context.Context, s *subject) error { return question(ctx, s, "elicit", "Ada") }

func sampling(ctx context.Context, s *subject) error { return question(ctx, s, "sample", "pong") }

func listChanges(ctx context.Context, s *subject) error {
	from := s.c.mark()
	if _, err := s.call(ctx, s.c, "change", nil, nil); err != nil {
		return err
	}
	if err := s.c.noted(from, "notifications/tools/list_changed", func(json.RawMessage) bool { return true }); err != nil {
		return err
	}
	return until(ctx, "the new tool is not listed", func() (bool, error) {
		err := s.list(ctx)
		return s.tools["added1"] != nil, err
	})
}

// sessionsApart has two new sessions, whose ids run alike, call at once.
func sessionsApart(ctx context.Context, s *subject) error {
	const rounds = 20
	var wg sync.WaitGroup
	failed := make([]error, 2)
	for i := range failed {
		wg.Go(func() {
			failed[i] = func() error {
				c, err := connect(ctx, s.to)
				if err != nil {
					return err
				}
				defer c.close()
				for n := range rounds {
					mine := fmt.Sprintf("client %d, call %d", i, n)
					r, err := s.call(ctx, c, "progress", map[string]any{"text": mine}, map[string]any{"_meta": map[string]any{"progressToken": n}})
					if err != nil {
						return err
					}
					if err := got("an answer", r.text(), mine); err != nil {
						return err
					}
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				for _, m := range c.notes {
					if m.Method == "notifications/progress" && !bytes.Contains(m.Params, fmt.Appendf(nil, "client %d,", i)) && bytes.Contains(m.Params, []byte("client ")) {
						return fmt.Errorf("progress of the other client arrived: %.100s", m.Params)
					}
				}
				return nil
			}()
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// recovery ends the upstream's process. An HTTP upstream is started again at its
// address by its owner.
func recovery(ctx context.Context, s *subject) error {
	_, _ = s.call(ctx, s.c, "crash", nil, nil) // it cannot succeed
	deadline := time.Now().Add(10 * time.Second)
	var last error
	for time.Now().Before(deadline) {
		r, err := s.call(ctx, s.c, "echo", map[string]any{"text": "back"}, nil)
		if err == nil && r.text() == "back" && !r.IsError {
			return nil
		}
		if last = err; err == nil {
			last = fmt.Errorf("a call returned %.80q", r.text())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	fresh, err := connect(ctx, s.to)
	if err != nil {
		return fmt.Errorf("neither the session nor a new one works: %w", last)
	}
	defer fresh.close()
	if r, err := s.call(ctx, fresh, "echo", map[string]any{"text": "back"}, nil); err != nil || r.text() != "back" {
		return fmt.Errorf("neither the session nor a new one works: %w", last)
	}
	return fmt.Errorf("only a new session works: %w", last)
}
