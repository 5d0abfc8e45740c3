package upstream

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// guardedServer is a modern server that wants a token. It answers after a time,
// which may differ per method.
type guardedServer struct {
	token atomic.Value // string
	slow  map[string]time.Duration

	mu    sync.Mutex
	asked []string // methods of requests that had the token
}

func (g *guardedServer) methods() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.asked, " ")
}

func (g *guardedServer) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := func(code int, text string) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(text)),
			Body: io.NopCloser(strings.NewReader(text)), Request: req,
		}, nil
	}
	if req.Header.Get("Authorization") != g.token.Load() {
		return answer(http.StatusUnauthorized, "")
	}
	if req.Method != http.MethodPost {
		return answer(http.StatusMethodNotAllowed, "")
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
	if m.ID != nil { // notifications are sent beside other things
		g.mu.Lock()
		g.asked = append(g.asked, m.Method)
		g.mu.Unlock()
	}
	select {
	case <-time.After(g.slow[m.Method]):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	result := map[string]string{
		methodDiscover:   `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
		methodInitialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
		methodListTools:  `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
		methodCallTool:   `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`,
	}[m.Method]
	if result == "" {
		return answer(http.StatusAccepted, "")
	}
	return answer(http.StatusOK, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+`}`)
}

// USE-9: a server has a limited time to answer, and the requests to its
// authorization server in between do not count. A server that is itself slow still
// runs into its limit.
func TestAuthorizingIsNoTimeOfTheServers(t *testing.T) {
	for name, c := range map[string]struct {
		authorizing time.Duration
		slow        map[string]time.Duration
		session     string // policy
		era         servers.Era
		asked       string
		call        bool // succeeds
	}{
		"at once":                   {0, nil, servers.Shared, servers.EraModern, "server/discover tools/list tools/call", true},
		"slow authorization server": {5 * time.Second, nil, servers.Shared, servers.EraModern, "server/discover tools/list tools/call", true},
		"a session for each call":   {5 * time.Second, nil, servers.PerCall, servers.EraModern, "server/discover tools/list server/discover tools/call", true},
		"slow server":               {5 * time.Second, map[string]time.Duration{methodDiscover: time.Minute}, servers.Shared, servers.EraModern, "server/discover tools/list tools/call", true},
		"slow call":                 {5 * time.Second, map[string]time.Duration{methodCallTool: time.Minute}, servers.Shared, servers.EraModern, "server/discover tools/list tools/call", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := &guardedServer{slow: c.slow}
				srv.token.Store("first")
				var have atomic.Value
				have.Store("none")
				authorize := func(next http.RoundTripper) http.RoundTripper {
					return roundTripper(func(req *http.Request) (*http.Response, error) {
						for again := false; ; again = true {
							r := req.Clone(req.Context())
							r.Header.Set("Authorization", have.Load().(string))
							if req.GetBody != nil {
								var err error
								if r.Body, err = req.GetBody(); err != nil {
									return nil, err
								}
							}
							resp, err := next.RoundTrip(r)
							if err != nil || again || resp.StatusCode != http.StatusUnauthorized {
								return resp, err
							}
							select { // the authorization server is asked
							case <-time.After(c.authorizing):
							case <-req.Context().Done():
								return nil, req.Context().Err()
							}
							have.Store(srv.token.Load())
						}
					})
				}
				p := New(Config{
					Server: servers.Server{Name: "s", Transport: servers.HTTP, URL: "http://server.example/mcp", Session: c.session, CallTimeout: time.Second},
					HTTP:   srv, Authorize: authorize, Name: "yaya", Version: "1",
				})
				if err := p.Start(t.Context(), feature.Signals{Changed: func() {}, Failed: func(error) {}}); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := p.Stop(t.Context()); err != nil {
						t.Errorf("Stop = %v, want no error", err)
					}
				}()
				tools, _, err := p.Discover(t.Context())
				if err != nil || len(tools) != 1 {
					t.Fatalf("Discover = %v, %v, want one tool", tools, err)
				}
				srv.token.Store("second") // the first has ended
				res, err := tools[0].Invoke(t.Context(), tool.Call{Args: []byte(`{}`)})
				if err != nil || res.OK != c.call || (!c.call && res.ErrorKind != tool.ErrTimeout) {
					t.Errorf("Invoke = %+v, %v, want OK %v, else a timeout", res, err, c.call)
				}
				if got := p.main.peer.Era; got != c.era || !strings.HasPrefix(srv.methods(), c.asked) {
					t.Errorf("era %q and requests %q, want %q and %q", got, srv.methods(), c.era, c.asked)
				}
			})
		})
	}
}
