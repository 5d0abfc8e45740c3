// Package echoserver is an MCP server on standard input and output with one tool, echo, which returns
// its arguments. It is for the programs that measure and attack yaya, and not shipped.
package echoserver

import (
	"bufio"
	"encoding/json"
	"io"
)

// Serve answers until the input ends.
func Serve(in io.Reader, out io.Writer) error {
	from, to := bufio.NewReaderSize(in, 1<<20), json.NewEncoder(out)
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // the end of the input is the end
		}
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(line, &msg); err != nil {
			return err
		}
		if msg.ID == nil {
			continue
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": msg.ID}
		switch msg.Method {
		case "initialize":
			reply["result"] = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`)
		case "tools/list":
			reply["result"] = json.RawMessage(`{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`)
		case "tools/call":
			reply["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": string(msg.Params.Arguments)}}}
		default:
			reply["error"] = json.RawMessage(`{"code":-32601,"message":"unknown method"}`)
		}
		if err := to.Encode(reply); err != nil {
			return err
		}
	}
}
