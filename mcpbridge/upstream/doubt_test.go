package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// modernPeer is a client of the modern era that can be asked nothing.
type modernPeer struct{}

func (modernPeer) Client() string { return "c" }
func (modernPeer) Name() string   { return "" }
func (modernPeer) Caller() (tool.Caller, tool.Origin) {
	return tool.Caller{}, tool.OriginMCP
}
func (modernPeer) Modern() bool                 { return true }
func (modernPeer) Capabilities() jsonrpc.Object { return jsonrpc.Object{} }
func (modernPeer) LogLevel() string             { return "" }
func (modernPeer) Notify(string, []byte)        {}
func (modernPeer) Ask(context.Context, string, []byte) (relay.Reply, error) {
	return relay.Reply{}, errors.New("it cannot be asked")
}

// FID-2: a legacy server that refuses server/discover in a way of its own is asked once
// an hour, not with each call of a modern client; one that was out of reach or busy has
// not said anything about an era.
func TestOddRefusalsAreRemembered(t *testing.T) {
	answer := func(code int, kind, body string) func(*http.Request, string) (*http.Response, error) {
		return func(req *http.Request, id string) (*http.Response, error) {
			body := strings.ReplaceAll(body, "ID", id)
			return &http.Response{
				StatusCode: code, Header: http.Header{"Content-Type": {kind}}, ContentLength: int64(len(body)),
				Body: io.NopCloser(strings.NewReader(body)), Request: req,
			}, nil
		}
	}
	refusal := func(code, status string) func(*http.Request, string) (*http.Response, error) {
		n := map[string]int{"200": 200, "400": 400}[status]
		return answer(n, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":`+code+`,"message":"no"}}`)
	}
	for name, c := range map[string]struct {
		discover  func(*http.Request, string) (*http.Response, error)
		afterCall bool // it is asked again by the next calls
	}{
		"internal error":        {refusal("-32603", "200"), false},
		"the server's own code": {refusal("-32000", "400"), false},
		"HTTP 500":              {answer(500, "text/plain", "oops"), false},
		"HTTP 500, HTML":        {answer(500, "text/html", "<html>nothing here"), false},
		"HTTP 200, HTML":        {answer(200, "text/html", "<html>welcome"), false},
		"not JSON":              {answer(200, "application/json", "welcome"), false},
		"HTTP 503":              {answer(503, "text/plain", "busy"), true},
		"a broken connection":   {func(*http.Request, string) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				server := roundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method != http.MethodPost {
						return answer(http.StatusMethodNotAllowed, "text/plain", "")(req, "")
					}
					body, err := io.ReadAll(req.Body)
					if err != nil {
						return nil, err
					}
					var m struct {
						ID     json.RawMessage `json:"id"`
						Method string          `json:"method"`
					}
					if err := json.Unmarshal(body, &m); err != nil {
						return nil, err
					}
					var result string
					switch m.Method {
					case methodDiscover:
						asked.Add(1)
						return c.discover(req, string(m.ID))
					case methodInitialize:
						result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
					case methodGetPrompt:
						result = `{"messages":[]}`
					default:
						return answer(http.StatusAccepted, "text/plain", "")(req, "")
					}
					return answer(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":`+result+`}`)(req, string(m.ID))
				})
				p := New(Config{Server: servers.Server{Name: "s", Transport: servers.HTTP, URL: "http://server.example/mcp"}, HTTP: server, Name: "yaya", Version: "1"})
				if err := p.Start(t.Context(), feature.Signals{Changed: func() {}, Failed: func(error) {}}); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := p.Stop(context.Background()); err != nil {
						t.Errorf("Stop = %v, want no error", err)
					}
				}()
				calls := func() int64 {
					asked.Store(0)
					for range 3 {
						got, err := p.Relay(t.Context(), modernPeer{}, methodGetPrompt, jsonrpc.Object{})
						if err != nil || got.Err != nil {
							t.Fatalf("call: %v, %s; want a result", err, got.Err)
						}
					}
					return asked.Load()
				}
				if got := calls(); (got > 0) != c.afterCall {
					t.Errorf("3 calls asked for server/discover %d times, want that they ask: %v", got, c.afterCall)
				}
				time.Sleep(silentFor + time.Minute)
				if got := calls(); !c.afterCall && got != 1 {
					t.Errorf("3 calls after an hour asked for server/discover %d times, want once", got)
				}
			})
		})
	}
}
