// Command large is an MCP server on the official SDK whose answers are as large as its
// client wants them, and take as long. It stands behind yaya in tests and is not
// shipped.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type size struct {
	Bytes int `json:"bytes"`
}

type rows struct {
	Rows []string `json:"rows"`
}

type steps struct {
	Steps   int `json:"steps"`
	EveryMS int `json:"every_ms"`
}

const line = "The quick brown fox \u2014 \"jumps\" <over> the lazy dog.\n"

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "large", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "text", Description: "A text of so many bytes"}, func(_ context.Context, _ *mcp.CallToolRequest, a size) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.ToValidUTF8(strings.Repeat(line, a.Bytes/len(line)+1)[:a.Bytes], "?")}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "image", Description: "An image of so many bytes"}, func(_ context.Context, _ *mcp.CallToolRequest, a size) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: bytes.Repeat([]byte{0x89, 'P', 'N', 'G'}, a.Bytes/4)}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "structured", Description: "Structured content of so many bytes"}, func(_ context.Context, _ *mcp.CallToolRequest, a size) (*mcp.CallToolResult, rows, error) {
		var out rows
		for n := 0; n < a.Bytes; n += len(line) {
			out.Rows = append(out.Rows, line)
		}
		return nil, out, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "length", Description: "How long a text is"}, func(_ context.Context, _ *mcp.CallToolRequest, a struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(len(a.Text))}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps", Description: "Takes so many steps, with progress"}, func(ctx context.Context, r *mcp.CallToolRequest, a steps) (*mcp.CallToolResult, any, error) {
		for i := range a.Steps {
			select {
			case <-time.After(time.Duration(a.EveryMS) * time.Millisecond):
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
			if token := r.Params.GetProgressToken(); token != nil {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1)}); err != nil {
					return nil, nil, err
				}
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	return s
}

func main() {
	addr := flag.String("http", "", "serve streamable HTTP at this address instead of stdio")
	sse := flag.String("sse", "", "serve HTTP+SSE at this address instead of stdio")
	asJSON := flag.Bool("json", false, "over HTTP: answer with JSON instead of a stream")
	flag.Parse()
	s := newServer()
	get := func(*http.Request) *mcp.Server { return s }
	var err error
	switch {
	case *addr != "":
		err = serve(*addr, mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: *asJSON}))
	case *sse != "":
		err = serve(*sse, mcp.NewSSEHandler(get, nil))
	default:
		err = s.Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(addr string, h http.Handler) error {
	return (&http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 5 * time.Second}).ListenAndServe()
}
