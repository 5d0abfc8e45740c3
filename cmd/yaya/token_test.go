package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// remote is how a client on another machine reaches a yaya behind a proxy: with a token
// that its user has put into its configuration, and nothing else.
type remote struct{ token string }

func (r remote) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Host = "yaya.example"
	req.Header.Set("X-Forwarded-For", "192.0.2.7")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// do sends a request and returns what came back.
func (r remote) do(b *box, method, path, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.addr+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(out)
}

// client connects the official SDK's client.
func (r remote) client(b *box) *sdk.ClientSession {
	b.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "remote", Version: "1"}, nil)
	s, err := c.Connect(b.t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url(), HTTPClient: &http.Client{Transport: r}, MaxRetries: -1}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() }) // it may be out
	return s
}

// lasting makes a lasting token.
func (b *box) lasting(args ...string) string {
	b.t.Helper()
	var made admin.NewToken
	if err := json.Unmarshal([]byte(b.must(append([]string{"token", "create", "--json"}, args...)...)), &made); err != nil {
		b.t.Fatal(err)
	}
	return made.Token
}

func toolNames(t *testing.T, s *sdk.ClientSession) (names string) {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Tools {
		names += x.Name + " "
	}
	return names
}

// USE-8: a client on another machine, unmodified, works with a token that lasts; each of
// its calls has the token's name; what the token is not for it neither sees nor calls,
// by any way; revoked it is out, with all that it has open.
func TestRemoteClientWithLastingToken(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	before := b.lasting("before") // made without a daemon
	p := b.daemon("serve", "--listen", b.addr, "--behind-proxy", "--host", "yaya.example", "--no-open", "--mcp-config", b.config(map[string]any{
		"one": map[string]any{"command": fixture, "args": []string{"-name", "one"}, "session": "shared"}, "two": map[string]any{"command": fixture, "args": []string{"-name", "two"}, "session": "shared"},
	}))
	eventually.True(t, "both servers are ready", func() bool {
		r := b.status()
		return len(r.Servers) == 2 && r.Servers[0].State.Usable() && r.Servers[1].State.Usable()
	})
	if !strings.Contains(p.said.String(), `--header "Authorization: Bearer YAYA_TOKEN"`) || !strings.Contains(p.said.String(), "yaya token create") {
		t.Errorf("serve does not say how a remote client gets in:\n%s", p.said)
	}
	if status, body := (remote{}).do(b, "POST", "/mcp", `{}`); status != 401 {
		t.Errorf("without a token: got %d %s, want 401", status, body)
	}

	// All servers, by the token that was made first.
	everything := remote{before}.client(b)
	if got := toolNames(t, everything); !strings.Contains(got, "one__echo") || !strings.Contains(got, "two__echo") {
		t.Errorf("a token for all servers sees %s", got)
	}
	// One server: lists, calls, resources, prompts, completion, subscriptions.
	one := b.lasting("ci", "--server", "one", "--expires", "1d")
	s := remote{one}.client(b)
	ctx := t.Context()
	if got := toolNames(t, s); !strings.Contains(got, "one__echo") || strings.Contains(got, "two__") {
		t.Errorf("a token for one sees %s", got)
	}
	res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "one__echo", Arguments: map[string]any{"text": "hi"}})
	if err != nil || res.IsError {
		t.Errorf("its own server's tool: %+v, %v", res, err)
	}
	resources := func(s *sdk.ClientSession) (uris []string) {
		list, err := s.ListResources(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Resources {
			uris = append(uris, r.URI)
		}
		return uris
	}
	prompts := func(s *sdk.ClientSession) string {
		list, err := s.ListPrompts(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, p := range list.Prompts {
			names += p.Name + " "
		}
		return names
	}
	if got := prompts(s); !strings.Contains(got, "one__greet") || strings.Contains(got, "two__") {
		t.Errorf("its prompts: got %s", got)
	}
	if all, its := resources(everything), resources(s); len(all) == 0 || len(its) >= len(all) {
		t.Errorf("its resources: got %v of %v", its, all)
	}
	theirs := relay.Qualify("two", "two://text")
	for name, call := range map[string]func(s *sdk.ClientSession) error{
		"a tool": func(s *sdk.ClientSession) error {
			_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "two__echo", Arguments: map[string]any{"text": "hi"}})
			return err
		},
		"a resource": func(s *sdk.ClientSession) error {
			_, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: theirs})
			return err
		},
		"a prompt": func(s *sdk.ClientSession) error {
			_, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "two__greet"})
			return err
		},
		"a completion": func(s *sdk.ClientSession) error {
			_, err := s.Complete(ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "two__greet"}, Argument: sdk.CompleteParamsArgument{Name: "name", Value: "a"}})
			return err
		},
	} {
		if err := call(everything); err != nil {
			t.Errorf("%s, for a token that may: %v", name, err)
		}
		if err := call(s); err == nil {
			t.Errorf("%s of another server than the token's is not refused", name)
		}
	}
	// Scopes: a request beyond the token's scopes is refused, and so is an invalid token.
	for _, c := range []struct {
		name, token, method, path string
		want                      int
	}{
		{"the API without its scope", one, "GET", "/api/config", 403},
		{"sessions without their scope", one, "GET", "/v1/sessions", 403},
		{"making tokens", one, "POST", "/api/tokens", 403},
		{"a tool through the API", one, "POST", "/api/tools/one__echo/call", 403},
		{"what is for devices alone", b.lasting("agents", "--scope", "agents:read"), "POST", "/rpc", 403},
		{"the API with its scope", b.lasting("reader", "--scope", "config:read"), "GET", "/api/config", 200},
		{"a bundle without the scope to add servers", b.lasting("looker", "--scope", "config:read"), "GET", "/api/catalogue/bundled%2Ffilesystem?option=npm", 403},
		{"sessions with their scope", b.lasting("sessions", "--scope", "sessions:read,metrics:read"), "GET", "/v1/sessions", 200},
		{"MCP without its scope", b.lasting("metrics", "--scope", "metrics:read"), "POST", "/mcp", 403},
		{"a wrong checksum", one[:len(one)-1] + string(one[len(one)-1]^1), "POST", "/mcp", 401},
		{"nobody's", auth.LastingPrefix + strings.Repeat("0", 59), "POST", "/mcp", 401},
	} {
		if status, body := (remote{c.token}).do(b, c.method, c.path, `{"arguments":{}}`); status != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, status, body, c.want)
		}
	}
	// Guessing is limited, and costs nobody anything who has a token, from the same
	// address, nor the owner.
	status := 0
	for range 30 {
		status, _ = (remote{auth.LastingPrefix + strings.Repeat("1", 59)}).do(b, "POST", "/mcp", `{}`)
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after 30 wrong tokens: got %d, want 429", status)
	}
	if res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "one__echo", Arguments: map[string]any{"text": "hi"}}); err != nil || res.IsError {
		t.Errorf("a good token from where others have guessed: %+v, %v", res, err)
	}
	// Every call carries the name: a rule for it holds, for nobody else.
	b.must("config", "set", "approval.rules", `[{"principal":"token:ci","tool":"one__echo","decision":"deny","reason":"not for ci"}]`)
	eventually.True(t, "the rule about token:ci holds", func() bool {
		res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "one__echo", Arguments: map[string]any{"text": "hi"}})
		return err == nil && res.IsError && strings.Contains(res.Content[0].(*sdk.TextContent).Text, "not for ci")
	})
	if res, err := everything.CallTool(ctx, &sdk.CallToolParams{Name: "one__echo", Arguments: map[string]any{"text": "hi"}}); err != nil || res.IsError {
		t.Errorf("another token's call: %+v, %v", res, err)
	}
	// The list and the audit log.
	if got := b.must("token", "list"); !strings.Contains(got, "ci") || !strings.Contains(got, "one") || strings.Contains(got, one) || !strings.Contains(got, time.Now().Format("2006-01-02")) {
		t.Errorf("token list says:\n%s", got)
	}
	// A call that is under way ends with its token, and its client is out.
	called := make(chan error, 1)
	go func() {
		_, err := everything.CallTool(context.WithoutCancel(ctx), &sdk.CallToolParams{Name: "one__wait", Arguments: map[string]any{}})
		called <- err
	}()
	eventually.True(t, "the call begins", func() bool { return strings.Contains(b.must("mcp", "call", "one__waits"), "1") })
	b.must("token", "revoke", "before")
	select {
	case err := <-called:
		if err == nil {
			t.Error("the call has succeeded")
		}
	case <-time.After(eventually.Limit):
		t.Fatal("the call goes on although its token was revoked")
	}
	if res, err := everything.CallTool(ctx, &sdk.CallToolParams{Name: "one__echo", Arguments: map[string]any{"text": "hi"}}); err == nil {
		t.Errorf("a client works with a revoked token: got %+v", res)
	}
	if status, body := (remote{before}).do(b, "POST", "/mcp", `{}`); status != 401 && status != 429 { // others have guessed from there
		t.Errorf("revoked: got %d %s, want 401 or 429", status, body)
	}
	if got := b.must("audit", "--event", "token_*"); !strings.Contains(got, "token_revoked") || !strings.Contains(got, "before") || strings.Contains(got, before) {
		t.Errorf("the audit says:\n%s", got)
	}
}

// The output of token create can be pasted: the address is the daemon's, and without a
// daemon no address is made up. It says what a first token changes: bodies of calls are
// no longer recorded. A token made again under a name is listed as another principal.
func TestTokenCreateSays(t *testing.T) {
	b := newBox(t)
	const bodies, remedy = "recorded without arguments and results", "yaya config set traffic.bodies all"
	alone := b.must("token", "create", "ci")
	if strings.Contains(alone, "URL") || !strings.Contains(alone, "yaya serve prints") || !strings.Contains(alone, bodies) || !strings.Contains(alone, remedy) {
		t.Errorf("token create without a daemon says:\n%s", alone)
	}
	b.serve()
	beside := b.must("token", "create", "laptop")
	if !strings.Contains(beside, "claude mcp add --transport http yaya "+b.url()+" --header") || !strings.Contains(beside, "other machines cannot reach") || !strings.Contains(beside, bodies) || !strings.Contains(beside, remedy) {
		t.Errorf("token create beside a daemon at %s says:\n%s", b.url(), beside)
	}
	b.must("token", "revoke", "ci")
	b.must("config", "set", "traffic.bodies", "errors")
	if got := b.must("token", "create", "ci"); strings.Contains(got, bodies) {
		t.Errorf("token create says what is not so, with traffic.bodies set:\n%s", got)
	}
	if got := b.must("token", "list"); !strings.Contains(got, "token:ci#2") {
		t.Errorf("token list does not tell the second token of a name from the first:\n%s", got)
	}
}

// USE-8, USE-2: the page makes and revokes tokens, and shows files that have a mistake.
func TestPageTokensAndNotices(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	edit := func(text string) func(string) (any, error) {
		return func(string) (any, error) {
			b.edit("mcp.json", text)
			return nil, nil
		}
	}
	b.scenario("tokens", nil, map[string]func(string) (any, error){
		"use": func(token string) (any, error) {
			token = strings.Trim(token, `"`)
			status, _, _ := b.raw("POST", "/mcp", `{}`, "Authorization", "Bearer "+token, "Content-Type", "application/json")
			return map[bool]string{true: "out", false: "in"}[status == http.StatusUnauthorized], nil
		},
		"break": edit(`{"mcpServers": {`), "mend": edit(`{"mcpServers": {}}`),
	})
}
