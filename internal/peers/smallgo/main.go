// Command smallgo is a small MCP server on the official Go SDK: over stdio, or over
// HTTP at the port that the command line names. It stands behind yaya in tests, and is
// not shipped.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	none struct{}
	pair struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	sum struct {
		Sum int `json:"sum"`
	}
)

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds two numbers"}, func(_ context.Context, _ *mcp.CallToolRequest, p pair) (*mcp.CallToolResult, sum, error) {
		return nil, sum{p.A + p.B}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps", Description: "Reports three steps"}, func(ctx context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3}
			if err := r.Session.NotifyProgress(ctx, p); p.ProgressToken != nil && err != nil {
				return nil, nil, err
			}
		}
		return text("done"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "Asks for a name"}, func(ctx context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		question := &mcp.ElicitParams{Message: "Who are you?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
		}}
		if p := r.Session.InitializeParams(); p != nil && p.ProtocolVersion < "2026-07-28" {
			answer, err := r.Session.Elicit(ctx, question)
			if err != nil {
				return nil, nil, err
			}
			return text(fmt.Sprint("Hello ", answer.Content["name"])), nil, nil
		}
		answer, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": question}}, nil, nil
		}
		return text(fmt.Sprint("Hello ", answer.Content["name"])), nil, nil
	})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func main() {
	s := newServer()
	var err error
	if len(os.Args) > 1 {
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: false})
		err = (&http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: h, ReadHeaderTimeout: 5 * time.Second}).ListenAndServe()
	} else {
		err = s.Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
