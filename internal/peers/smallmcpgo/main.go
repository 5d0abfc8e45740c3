// Command smallmcpgo is a small MCP server on mcp-go: over stdio, or over HTTP at the
// port that the command line names. It stands behind yaya in tests, and is not shipped.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type (
	pair struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	sum struct {
		Sum int `json:"sum"`
	}
)

func main() {
	s := server.NewMCPServer("mcp-go", "1", server.WithElicitation())
	s.AddTool(mcp.NewTool("add", mcp.WithDescription("Adds two numbers"), mcp.WithInputSchema[pair](), mcp.WithOutputSchema[sum]()),
		mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, p pair) (sum, error) { return sum{p.A + p.B}, nil }))
	s.AddTool(mcp.NewTool("steps", mcp.WithDescription("Reports three steps")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := 1; i <= 3 && r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil; i++ {
			if err := s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": i, "total": 3}); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("done"), nil
	})
	var err error
	if len(os.Args) > 1 {
		err = server.NewStreamableHTTPServer(s).Start("127.0.0.1:" + os.Args[1])
	} else {
		err = server.ServeStdio(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
