package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// inspect calls a tool with the Inspector, as its users do.
func (b *box) inspect(node, name, args string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, peerPath(b.t, "inspector", "clients", "launcher", "build", "index.js"), "--cli",
		"--method", "tools/call", "--tool-name", name, "--tool-args-json", args, "--format", "json", b.url(), "--transport", "http")
	cmd.Env = append(os.Environ(), "MCP_STORAGE_DIR="+b.t.TempDir())
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run() // a tool that fails fails the command
	return out.String() + errOut.String()
}

// calls returns what is recorded, as somebody may see it; header is who.
func (b *box) calls(query string, header ...string) admin.CallPage {
	b.t.Helper()
	code, raw, _ := b.raw("GET", "/api/traffic?full=true&"+query, "", header...)
	var page admin.CallPage
	if code != http.StatusOK || json.Unmarshal(raw, &page) != nil {
		b.t.Fatalf("GET /api/traffic?%s: %d %s", query, code, raw)
	}
	return page
}

// call calls a tool with the command line, which may fail.
func (b *box) call(name, args string) { _, _ = b.run("mcp", "call", name, "--args", args) }

// USE-3: the calls of a real client are seen as they end, with what was sent and what
// came back, and how long it took; later with filters, and without a daemon; and what
// a server says is seen, too. No secret of the server is in either.
func TestTraffic(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	const secret = "a-secret-that-nobody-sees"
	everything := []string{peerPath(t, "server-everything", "dist", "index.js"), "stdio"}
	config := b.writeConfig(node, map[string]any{"everything": map[string]any{"command": node, "args": everything, "env": map[string]string{"WEATHER_TOKEN": secret}}})
	serve := b.serve("--mcp-config", config)
	follow := b.daemon("traffic", "-f", "--server", "everything")
	logs := b.daemon("mcp", "logs", "-f", "everything")
	if got := b.inspect(node, "everything__echo", `{"message":"hi there"}`); !strings.Contains(got, "Echo: hi there") {
		t.Fatalf("the Inspector says %s", got)
	}
	var line string
	eventually.True(t, "the call is shown", func() bool {
		for l := range strings.Lines(follow.said.String()) {
			if strings.Contains(l, "everything/echo") {
				line = l
			}
		}
		return line != ""
	})
	for _, want := range []string{"#1 ", "inspector", " ok ", "ms ", `{"message":"hi there"}`, "→ Echo: hi there"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in the line of the call: %s", want, line)
		}
	}
	b.call("everything__get-env", "{}")
	b.call("fs__read_text_file", `{"path":"/nowhere\u001b[31m"}`)
	b.call("everything__nothing", "{}")
	eventually.True(t, "all calls are recorded", func() bool { return len(b.calls("").Calls) == 4 })

	errors := b.must("traffic", "--errors")
	if n := strings.Count(errors, "\n"); n != 2 || !strings.Contains(errors, "fs/read_text_file") || !strings.Contains(errors, "not_found") || strings.Contains(errors, "\x1b") {
		t.Errorf("yaya traffic --errors: %q", errors)
	}
	for query, want := range map[string]int{
		"--server everything": 2, "--tool echo": 1, "--tool everything__echo": 1, "--client yaya-cli": 3, "--since 1h": 4, "--since 2000-01-01 -n 2": 2, "--server none": 0,
	} {
		var out []traffic.Record
		if err := json.Unmarshal([]byte(b.must(append([]string{"traffic", "--json"}, strings.Fields(query)...)...)), &out); err != nil || len(out) != want {
			t.Errorf("yaya traffic %s: %d calls, want %d (%v)", query, len(out), want, err)
		}
	}
	env := b.calls("tool=get-env").Calls[0]
	if !strings.Contains(env.Result, `WEATHER_TOKEN\": \"****`) {
		t.Errorf("the token of the server is not masked, or not there: %s", env.Result)
	}
	shown := b.must("traffic", "show", "1")
	for _, want := range []string{"everything__echo", "inspector", "owner", "tools/call", `"message": "hi there"`, `"text": "Echo: hi there"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in yaya traffic show 1:\n%s", want, shown)
		}
	}
	var days []traffic.Day
	b.admin("GET", "/traffic/daily?by=client", "", 200, &days)
	if len(days) != 1 || len(days[0].Rows) != 2 || days[0].Rows[1].Client != "yaya-cli" || days[0].Rows[1].Calls != 3 || days[0].Rows[1].Errors != 2 {
		t.Errorf("the sums of the day are %+v", days)
	}
	var series traffic.Series
	b.admin("GET", "/traffic/series?by=client&step=3600&slices=2", "", 200, &series)
	if len(series.Slices) != 2 || series.Total.Calls != 4 || series.Total.Errors != 2 || len(series.Groups) != 2 || series.Groups[0].Name != "yaya-cli" || series.Groups[0].Calls != 3 || series.Partial {
		t.Errorf("the series is %+v, want 2 slices, 4 calls, 2 errors, and 3 calls of yaya-cli first", series)
	}
	for _, q := range []string{"slices=241", "slices=0", "step=0", "step=10801", "by=session"} {
		b.admin("GET", "/traffic/series?"+q, "", 400, nil)
	}
	eventually.True(t, "the server's standard error is shown", func() bool {
		return strings.Contains(logs.said.String(), "stderr  Starting default (STDIO) server") && strings.Contains(logs.said.String(), "yaya  ready")
	})
	if got := b.must("mcp", "logs", "everything", "-n", "1"); strings.Count(got, "\n") != 1 {
		t.Errorf("yaya mcp logs -n 1: %q", got)
	}
	if out, err := b.run("mcp", "logs", "nobody"); err == nil || !strings.Contains(out, `there is no server "nobody"`) {
		t.Errorf("the logs of no server: %v %s", err, out)
	}

	_ = serve.Process.Kill() // what was written stays
	<-follow.exited
	if got := b.must("traffic", "--server", "everything"); !strings.Contains(got, "Echo: hi there") {
		t.Errorf("without a daemon: %s", got)
	}
	if out, err := b.run("mcp", "logs", "everything"); err == nil || !strings.Contains(out, "yaya is not running") {
		t.Errorf("logs without a daemon: %v %s", err, out)
	}
	err := filepath.Walk(b.file("traffic"), func(path string, st os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[st.IsDir()]; st.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, st.Mode().Perm(), want)
		}
		if st.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Errorf("Walk of the traffic folder = %v, want no error", err)
	}
	b.serve("--mcp-config", config)
	b.call("everything__echo", `{"message":"again"}`)
	eventually.True(t, "ids go on after kill -9", func() bool {
		calls := b.calls("after=4").Calls
		return len(calls) == 1 && calls[0].ID == 5 && calls[0].Tool == "echo"
	})
}

// USE-3: once somebody else may call, arguments and results are recorded only if that
// is wanted, and nobody but the owner sees any.
func TestTrafficOfSeveralPrincipals(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	config := b.config(map[string]any{"fx": map[string]any{"command": fixture}})
	b.serve("--mcp-config", config)
	const tool, args = "fx__echo", `{"text":"hi"}`
	record := func(want int) traffic.Record {
		t.Helper()
		b.call(tool, args)
		var page admin.CallPage
		eventually.True(t, "the call is recorded", func() bool { page = b.calls(""); return len(page.Calls) == want })
		return page.Calls[want-1]
	}
	if r := record(1); r.Arguments != args || r.Result == "" {
		t.Errorf("the owner alone: %+v", r)
	}
	reader := b.device("reader", "audit:read")
	other := b.device("other", "tools:call")
	if r := record(2); r.Arguments != "" || r.Result != "" || r.ArgumentsBytes != int64(len(args)) {
		t.Errorf("with devices: %+v", r)
	}
	if page := b.calls(""); page.Bodies != "off" || !strings.HasPrefix(page.Why, "devices are enrolled") {
		t.Errorf("bodies are %q, because %q", page.Bodies, page.Why)
	}
	b.set("traffic.bodies", `"all"`)
	if r := record(3); r.Arguments != args {
		t.Errorf("when it is wanted: %+v", r)
	}
	seen := b.calls("", "Authorization", "Bearer "+reader.Token).Calls
	for _, r := range seen {
		if r.Arguments != "" || r.Result != "" || r.Tool == "" {
			t.Errorf("a device with audit:read sees %+v", r)
		}
	}
	if len(seen) != 3 {
		t.Errorf("a device with audit:read sees %d calls, want 3", len(seen))
	}
	for _, path := range []string{"", "/1", "/daily", "/events"} {
		if code, raw, _ := b.raw("GET", "/api/traffic"+path, "", "Authorization", "Bearer "+other.Token); code != http.StatusForbidden {
			t.Errorf("GET /api/traffic%s with tools:call: %d %s", path, code, raw)
		}
	}
	var page admin.CallPage
	b.admin("GET", "/traffic/1", "", 200, &traffic.Record{})
	b.admin("GET", "/traffic?limit=1", "", 200, &page)
	if !page.More || len(page.Calls) != 1 {
		t.Errorf("the last call: %+v", page)
	}
	b.admin("GET", "/traffic/1000", "", 404, nil)
	b.admin("GET", "/traffic?limit=5000", "", 400, nil)
	b.admin("PATCH", "/config/traffic.bodies", `{"value":"some"}`, 400, nil)
	b.admin("PATCH", "/config/traffic.days", `{"value":-1}`, 400, nil)
	b.set("traffic.days", `0`)
	b.call(tool, args)
	b.set("traffic.days", `7`)
	if r := record(4); r.ID != 4 {
		t.Errorf("switched off and on: %+v", r)
	}
}

// USE-3: a record that cannot be written costs no call, and is reported once.
func TestTrafficWithoutDisk(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	if err := os.MkdirAll(b.file(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.file("traffic"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := b.daemon("serve", "--listen", b.addr, "--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture}}))
	eventually.True(t, "yaya is ready", func() bool {
		resp, err := http.Get("http://" + b.addr + "/health?ready=1") //nolint:forbidigo,noctx // test
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	const tool, args = "fx__echo", `{"text":"hi"}`
	for range 3 {
		b.must("mcp", "call", tool, "--args", args)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if n := strings.Count(p.said.String(), "calls cannot be recorded"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, p.said)
	}
}
