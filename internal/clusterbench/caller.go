//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
)

// caller is an MCP client of one node, which begins another session after a failure.
type caller struct {
	m       *machine
	token   string
	session string
}

func newCaller(m *machine, token string) *caller { return &caller{m: m, token: token} }

// call calls the tool, which returns the text.
func (c *caller) call(ctx context.Context, text string) error {
	if c.session == "" {
		a, err := c.post(ctx, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
			"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "clusterbench", "version": "1"},
		}})
		if err != nil {
			return fmt.Errorf("initialize: %w", err)
		}
		c.session = a.session
	}
	a, err := c.post(ctx, map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": "tool__echo", "arguments": map[string]any{"text": text}}})
	if err == nil && !bytes.Contains(a.body, []byte(text)) {
		err = fmt.Errorf("got %.300s, want %s", a.body, text)
	}
	if err != nil {
		c.session = ""
	}
	return err
}

func (c *caller) post(ctx context.Context, body any) (answer, error) {
	header := []string{"Accept", "application/json, text/event-stream"}
	if c.session != "" {
		header = append(header, "Mcp-Session-Id", c.session, "Mcp-Protocol-Version", "2025-11-25")
	}
	a, err := c.m.send(ctx, http.MethodPost, "/mcp", c.token, body, header...)
	if err == nil && a.status >= 300 {
		err = fmt.Errorf("%d %.300s", a.status, a.body)
	}
	return a, err
}
