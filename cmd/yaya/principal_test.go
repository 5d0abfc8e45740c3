package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// device enrolls a device and returns what it signs in with.
func (b *box) device(id string, scopes ...string) client.Credentials {
	b.t.Helper()
	creds, err := client.New("http://"+b.addr, id, "")
	if err != nil {
		b.t.Fatal(err)
	}
	if err := creds.Enroll(b.t.Context(), nil, b.invite(scopes...)); err != nil {
		b.t.Fatal(err)
	}
	return creds
}

func bearer(creds client.Credentials) func(*rawClient) {
	return func(c *rawClient) {
		c.header = http.Header{"Authorization": {"Bearer " + creds.Token}}
		c.caps = map[string]any{}
	}
}

// overSocket sends a request over the daemon's socket: its user's.
func (b *box) overSocket(path, body string) []byte {
	b.t.Helper()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(b.dir, "d", "yaya.sock"))
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://yaya"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// set sets a setting of the running daemon.
func (b *box) set(key, value string) {
	b.t.Helper()
	b.admin("PATCH", "/config/"+key, `{"value":`+value+`}`, 200, nil)
}

// TW-24, MIS-7: one call, over every path that there is. A rule that forbids it to
// somebody forbids it on all of that principal's paths, with its reason, and on
// nobody else's.
func TestRulesOnEveryPath(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"tool_calls":[{"name":"fx__echo","args":{"text":"ran"}}]},{"text":"done"}]}`)
	b.must("config", "set", "wire.export", `["fx__echo"]`)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy"}}))
	phone := b.device("phone", "tools:call", "approvals:answer", "skills:invoke", "agents:read", "kernel:attach")
	ws := client.Start(client.Options{Credentials: phone})
	defer ws.Close()
	if _, _, err := ws.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	kernel := ws.Join("kernel:phone", client.Join{})

	overMCP := func(modern bool, edit ...func(*rawClient)) func() string {
		return func() string {
			got, err := newRawClient(t, b.url(), modern, edit...).text("fx__echo", map[string]any{"text": "ran"})
			return fmt.Sprint(got, err)
		}
	}
	api := func(header ...string) func() string {
		return func() string {
			_, raw, _ := b.raw("POST", "/api/tools/fx__echo/call", `{"arguments":{"text":"ran"}}`, append(header, "Content-Type", "application/json")...)
			return string(raw)
		}
	}
	const invoke = `{"jsonrpc":"2.0","id":1,"method":"skill.invoke","params":{"skill":"fx__echo","payload":{"text":"ran"}}}`
	workspace := t.TempDir()
	paths := []struct {
		principal, name string
		call            func() string
	}{
		{"owner", "/mcp, legacy", overMCP(false)},
		{"owner", "/mcp, modern", overMCP(true)},
		{"owner", "yaya mcp serve", func() string {
			c := b.stdioClient()
			c.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			<-c.lines
			c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fx__echo","arguments":{"text":"ran"}}}`)
			return <-c.lines
		}},
		{"owner", "/api", api()},
		{"owner", "yaya mcp call", func() string {
			out, err := b.run("mcp", "call", "fx__echo", "text=ran")
			return out + fmt.Sprint(err)
		}},
		{"owner", "/rpc", func() string { return string(b.overSocket("/rpc", invoke)) }},
		{"device:phone", "/mcp, legacy", overMCP(false, bearer(phone))},
		{"device:phone", "/mcp, modern", overMCP(true, bearer(phone))},
		{"device:phone", "/api", api("Authorization", "Bearer "+phone.Token)},
		{"device:phone", "/rpc", func() string {
			_, raw, _ := b.raw("POST", "/rpc", invoke, "Authorization", "Bearer "+phone.Token, "Content-Type", "application/json")
			return string(raw)
		}},
		{"device:phone", "/ws", func() string {
			out, err := ws.Invoke(t.Context(), kernel, "fx__echo", map[string]string{"text": "ran"}, eventually.Limit)
			return string(out) + fmt.Sprint(err)
		}},
		{"agent:coder", "a turn", func() string {
			_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, workspace))
			id, _ := out["session_id"].(string)
			if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"go"}]}`); status != 202 {
				t.Fatalf("got %v, %v, want status 202", status, out)
			}
			events, _ := b.until(id, "", "turn_completed")
			var all bytes.Buffer
			for _, ev := range events {
				if strings.HasPrefix(ev.Name, "tool_call_") && ev.Name != "tool_call_started" && ev.Name != "tool_call_requested" {
					all.WriteString(ev.Name)
					all.Write(ev.Data)
				}
			}
			return all.String()
		}},
	}
	const reason = "this is not for you"
	for _, denied := range []struct {
		who   string // the rule
		whose []string
	}{
		{`"principal":"owner"`, []string{"owner"}},
		{`"principal":"device:phone"`, []string{"device:phone"}},
		{`"principal":"device:*"`, []string{"device:phone"}},
		{`"principal":"agent:*"`, []string{"agent:coder"}},
		{`"group":"others"`, []string{"device:phone", "agent:coder"}},
		{`"scope":"skills:invoke"`, []string{"owner", "device:phone"}},
		{`"principal":"*"`, []string{"owner", "device:phone", "agent:coder"}},
		{`"principal":"device:tablet"`, nil},
	} {
		t.Run(denied.who, func(t *testing.T) {
			b.set("approval.groups.others", `["device:phone","agent:coder"]`)
			b.set("approval.rules", `[{"tool":"fx__echo","decision":"allow"},{`+denied.who+`,"tool":"fx__*","decision":"deny","reason":"`+reason+`"}]`)
			for _, p := range paths {
				want := ""
				for _, who := range denied.whose {
					if who == p.principal {
						want = reason
					}
				}
				got := p.call()
				if refused := strings.Contains(got, reason); refused != (want != "") || strings.Contains(strings.ReplaceAll(got, `"args":{"text":"ran"}`, ""), "ran") == refused {
					t.Errorf("%s over %s: got %s; want a refusal: %v", p.principal, p.name, got, want != "")
				}
			}
		})
	}
	// A rule that cannot be meant is not kept, and the kept rules are the ones that hold.
	for _, bad := range []string{`[{"principal":"devices:phone","decision":"deny"}]`, `[{"scope":"tool:call","decision":"deny"}]`, `[{"group":"nobody","decision":"deny"}]`, `[{"principals":"owner","decision":"deny"}]`} {
		b.admin("PATCH", "/config/approval.rules", `{"value":`+bad+`}`, 400, nil)
		if out, err := b.run("config", "set", "approval.rules", bad); err == nil {
			t.Errorf("config set keeps %s: %s", bad, out)
		}
	}
	b.admin("PATCH", "/config/approval.groups.others", `{"value":["phone"]}`, 400, nil)
}

// MIS-7: the example of the manual: the phone may only read. It is shown nothing else,
// has no way round, and the owner has everything.
func TestPhoneMayOnlyRead(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy"}}))
	phone, tablet := b.device("phone", "tools:call"), b.device("tablet", "tools:call")
	b.set("plugin.mcp_bridge.profiles", `{"phones":{"principal":["device:phone"],"tools":["fx__echo"]},"desk":{"principal":["owner"]}}`)
	tools := func(path string, edit ...func(*rawClient)) string {
		c := newRawClient(t, b.url()+path, true, edit...)
		r, err := c.try("tools/list", map[string]any{})
		raw, merr := json.Marshal(r["tools"])
		return string(raw) + fmt.Sprint(errors.Join(err, merr))
	}
	for _, c := range []struct {
		who, path string
		edit      []func(*rawClient)
		has, lack string
	}{
		{"the owner", "", nil, "fx__wait", "\x00"},
		{"the owner, a phone's", "/phones", nil, "fx__echo", "fx__wait"},
		{"the phone", "", []func(*rawClient){bearer(phone)}, "fx__echo", "fx__wait"},
		{"the phone, all", "/all", []func(*rawClient){bearer(phone)}, "not for device:phone", "fx__"},
		{"the phone, search", "/search", []func(*rawClient){bearer(phone)}, "not for device:phone", "search_tools"},
		{"the phone, the owner's", "/desk", []func(*rawClient){bearer(phone)}, "not for device:phone", "fx__"},
		{"another device", "", []func(*rawClient){bearer(tablet)}, "fx__wait", "\x00"},
		{"another device, the phone's", "/phones", []func(*rawClient){bearer(tablet)}, "not for device:tablet", "fx__"},
	} {
		if got := tools(c.path, c.edit...); !strings.Contains(got, c.has) || strings.Contains(got, c.lack) {
			t.Errorf("%s: got %s; want %s and not %s", c.who, got, c.has, c.lack)
		}
	}
	if got, err := newRawClient(t, b.url(), true, bearer(phone)).text("fx__waits", nil); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a tool that the phone is not shown: got %q, %v", got, err)
	}
	// UP-38: it has a process of its own, and what it has there, the owner has not.
	pid := b.pidOf("fx")
	if got, err := newRawClient(t, b.url(), true, bearer(phone)).text("fx__echo", map[string]any{"text": "x"}); err != nil || got != "x" {
		t.Errorf("the phone's echo: got %q, %v", got, err)
	}
	if now := b.pidOf("fx"); now != pid {
		t.Errorf("the owner's process: got %d, want %d", now, pid)
	}
}
