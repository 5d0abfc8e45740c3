package main

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Metrics have windows of up to thirty days, and lead from each number to its calls.
func TestPageMetrics(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	at := changing(t, func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "good", Description: "Answers."}, answers("good"))
		sdk.AddTool(s, &sdk.Tool{Name: "bad", Description: "Fails."}, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no"}}}, nil, nil
		})
	})
	b.must("mcp", "add", "srv", at)
	b.serve()
	b.server("srv", "ready")
	b.scenario("metrics", nil, nil)
}
