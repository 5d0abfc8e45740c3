package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/internal/leaky"
)

// captured holds yaya's output, by place.
type captured struct {
	mu  sync.Mutex
	out map[string][]byte
}

func (c *captured) add(where string, what any) {
	raw, ok := what.(string)
	if !ok {
		b, err := json.Marshal(what)
		if err != nil {
			b = fmt.Append(nil, what)
		}
		raw = string(b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[where] = append(append(c.out[where], raw...), '\n')
}

// breaks are line breaks, with or without escapes, and the ends of lines of standard error.
var breaks = strings.NewReplacer("\r", "", "\n", "", `\\n`, "", `\n`, "")

// canaryIn returns how a secret is in data, "" if it is not: in no spelling, over no line
// break, and with none of its halves. All that is compressed in data is decompressed.
func canaryIn(data []byte, secret string) string {
	joined := breaks.Replace(string(data))
	for _, how := range leaky.Spellings(secret) {
		half := how[:len(how)*2/3]
		if bytes.Contains(data, []byte(half)) || strings.Contains(joined, half) {
			return how
		}
	}
	for i := 0; ; i++ {
		at := bytes.Index(data[i:], []byte("\x1f\x8b\x08"))
		if at < 0 {
			return ""
		}
		i += at
		r, err := gzip.NewReader(bytes.NewReader(data[i:]))
		if err != nil {
			continue
		}
		plain, err := io.ReadAll(io.LimitReader(r, 64<<20)) // what comes before a failure
		if err != nil && len(plain) == 0 {
			continue
		}
		if how := canaryIn(plain, secret); how != "" {
			return how
		}
	}
}

// In a day's use, no output of yaya and no file that it writes has a secret that the user
// stored, in any spelling: servers repeat it in all that they send, a model in pieces,
// commands as output, and the test views and exports all of that.
func TestCanary(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	secret := `Cn4ry+/"&<=%zQ8t\K7-` + "wX2"
	b := newBox(t)
	web := httptest.NewServer(leaky.HTTP())
	defer web.Close()
	program := buildTool(t, "github.com/yaya-ai/yaya/internal/leaky/server")
	config := b.leakyConfig(program, web.URL)
	value := filepath.Join(b.dir, "value")
	if err := os.WriteFile(value, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Nothing refers to this one, and a server tells it after a restart.
	idle := "idle+/<" + strings.ToLower(secret[:4]) + "&0q-9Zt"
	idleFile := filepath.Join(b.dir, "idle")
	if err := os.WriteFile(idleFile, []byte(idle), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("secret", "set", "idle", "--file", idleFile)
	got := &captured{out: map[string][]byte{}}
	got.add("yaya secret set", b.must("secret", "set", "canary", "--file", value))
	if err := os.Remove(value); err != nil {
		t.Fatal(err)
	}

	var pieces []string
	for i := 1; i < len(secret); i++ {
		pieces = append(pieces, secret[:i], secret[i:], " ")
	}
	for _, how := range append(leaky.Spellings(secret), leaky.Block(secret)) {
		pieces = append(pieces, how[:len(how)/2], how[len(how)/2:], "\n")
	}
	args := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	script := filepath.Join(b.dir, "tell.sh")
	tell := "cat <<'END'\n" + strings.Join(leaky.Spellings(secret), "\n") + "\n" + leaky.Block(secret) + "\nEND\n"
	for i := range secret {
		if i > 0 {
			tell += fmt.Sprintf("printf %%s '%s'; sleep 0.02; printf '%%s\\n' '%s' >&2\n", secret[:i], secret[i:])
		}
	}
	writeProgram(t, script, "#!/bin/sh\n"+tell)
	model := fakellm.New(
		fakellm.Step{Text: "I know it: ", Pieces: pieces, ToolCalls: []fakellm.Call{
			{Name: "leaky__say", Args: `{}`}, {Name: "leaky__fail", Args: `{}`}, {Name: "leaky__refuse", Args: `{}`}, {Name: "leaky__pieces", Args: `{}`},
			{Name: "leaky__large", Args: `{}`}, {Name: "web__say", Args: args(map[string]string{"key": secret})},
			{Name: "shell", Args: args(map[string]string{"command": "sh " + script})},
			{Name: "shell", Args: args(map[string]string{"command": "echo " + secret})},
			{Name: "read_file", Args: args(map[string]string{"path": "note.txt"})},
		}},
		fakellm.Step{Text: "Done with " + secret + ".", Pieces: pieces},
	)
	defer model.Close()
	b.provider(model)
	got.add("yaya config set", b.must("config", "set", "providers.local.api_key", "${secret:canary}"))
	b.must("config", "set", "approval.rules", `[{"provider":"leaky","decision":"allow"},{"provider":"web","decision":"allow"},{"tool":"shell","decision":"allow"}]`)
	b.must("config", "set", "traffic.bodies", "all")
	b.cwd = filepath.Join(b.dir, "work")
	if err := os.Mkdir(b.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.cwd, "note.txt"), []byte("API_KEY="+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", b.cwd)

	serve := b.daemon(append([]string{"-v", "serve", "--listen", b.addr}, config...)...)
	eventually.True(t, "the servers are ready", func() bool {
		out, err := b.run("mcp", "list", "--json")
		return err == nil && strings.Count(out, `"ready"`) >= 2
	})
	logs := b.daemon("mcp", "logs", "-f", "leaky")
	follow := b.daemon("traffic", "-f")

	for _, server := range []string{"leaky", "web"} {
		client := sdk.NewClient(&sdk.Implementation{Name: "canary", Version: "1"}, &sdk.ClientOptions{
			LoggingMessageHandler:       func(_ context.Context, r *sdk.LoggingMessageRequest) { got.add("log messages", r.Params) }, //nolint:staticcheck // clients use it
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { got.add("progress", r.Params) },
		})
		s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got.add("initialize", s.InitializeResult())
		tools, err := s.ListTools(t.Context(), nil)
		got.add("lists", tools)
		got.add("lists", fmt.Sprint(err))
		for _, f := range []func() (any, error){
			func() (any, error) { return s.ListPrompts(t.Context(), nil) },
			func() (any, error) {
				return s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: server + "__p"})
			},
			func() (any, error) { return s.ListResources(t.Context(), nil) },
			func() (any, error) {
				return s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "leaky://r"})
			},
		} {
			res, err := f()
			got.add("prompts and resources", res)
			got.add("prompts and resources", fmt.Sprint(err))
		}
		for _, name := range []string{"say", "fail", "refuse", "pieces", "log", "large", "crash"} {
			p := &sdk.CallToolParams{Name: server + "__" + name, Arguments: map[string]any{}}
			p.Meta = sdk.Meta{"io.modelcontextprotocol/logLevel": "debug"}
			p.SetProgressToken(name)
			res, err := s.CallTool(t.Context(), p)
			got.add("results of "+server, res)
			got.add("errors of "+server, fmt.Sprint(err))
			if name == "say" {
				checkBlob(t, server, secret, res)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for _, list := range []string{"log messages", "progress", "results of leaky", "results of web"} {
		if !bytes.Contains(got.out[list], []byte("****")) {
			t.Errorf("nothing is masked in %s: %.500q", list, got.out[list])
		}
	}

	out, err := b.run("run", "--approve", "rules", "--json", "--workspace", b.cwd, "use "+secret+" please")
	got.add("yaya run", out)
	if err != nil || !strings.Contains(out, "turn.completed") {
		t.Errorf("yaya run: %v\n%.3000s", err, out)
	}
	for _, want := range []string{"exit code 0", "API_KEY", "I know it"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what yaya run says", want)
		}
	}
	status, made := b.v1("POST", "/sessions", args(map[string]any{"workspace_path": b.cwd, "title": secret, "system_prompt": "Sign in with " + secret + "."}))
	id, _ := made["session_id"].(string)
	if status != 201 || id == "" {
		t.Fatalf("POST /v1/sessions: %d %v", status, made)
	}
	got.add("POST /v1/sessions", made)
	message := args(map[string]any{"role": "user", "id": "m1", "parts": []any{map[string]any{"type": "text", "text": "The key is " + secret}}})
	for range 2 { // sent again, it is the same
		status, sent := b.v1("POST", "/sessions/"+id+"/messages", message)
		got.add("POST /v1/sessions/ID/messages", sent)
		if status != 202 {
			t.Fatalf("POST /v1/sessions/%s/messages: %d %v", id, status, sent)
		}
	}
	events, _ := b.until(id, "", "turn_completed")
	for _, ev := range events {
		got.add("GET /v1/sessions/ID/events", string(ev.Data))
	}
	if _, changed := b.v1("PATCH", "/sessions/"+id, args(map[string]any{"title": "now " + secret})); changed["title"] != "now ****" {
		t.Errorf("the title is %v, want it masked", changed["title"])
	}
	for _, r := range model.Requests() {
		if r.Authorization != "Bearer "+secret { // it is used
			t.Errorf("the model's service was sent %q", r.Authorization)
		}
		got.add("what the model is sent", r.Body)
	}
	if n := len(model.Requests()); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
	sessions := b.must("session", "list", "--json")
	got.add("session list", sessions)
	var list []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(sessions), &list); err != nil || len(list) == 0 {
		t.Errorf("yaya session list: %v %s", err, sessions)
	}
	commands := [][]string{
		{"mcp", "list"}, {"mcp", "list", "--json"}, {"mcp", "get", "leaky"}, {"mcp", "get", "web", "--json"}, {"mcp", "tools"}, {"mcp", "tools", "--json"},
		{"mcp", "logs", "leaky"}, {"mcp", "logs", "web"}, {"mcp", "call", "leaky__say"}, {"mcp", "call", "leaky__refuse"}, {"mcp", "call", "web__fail", "--json"}, {"mcp", "restart", "leaky"},
		{"traffic"}, {"traffic", "--json"}, {"traffic", "show", "1"}, {"audit"}, {"audit", "--json"}, {"audit", "export"}, {"audit", "export", "--format", "cef"},
		{"doctor"}, {"doctor", "--json"}, {"config", "list"}, {"config", "list", "--json"}, {"config", "get", "providers.local.base_url"}, {"provider", "list"}, {"provider", "list", "--json"}, {"provider", "test"},
		{"plugin", "doctor"}, {"client", "list"}, {"session", "export", "nothing"}, {"sandbox"}, {"secret", "list"}, {"secret", "list", "--json"}, {"config", "get", "providers.local.api_key"},
		{"token", "list"}, {"device", "list"}, {"trust", "list"}, {"sandbox", "--json"}, {"audit", "export", "--format", "jsonl"}, {"verify"}, {"service", "status"}, {"version"}, {"backup", filepath.Join(b.dir, "backup.tar.gz")},
	}
	for _, s := range list {
		commands = append(commands, []string{"session", "show", s.ID}, []string{"session", "export", s.ID})
	}
	for _, c := range commands {
		out, err := b.run(c...)
		got.add("yaya "+strings.Join(c, " "), out+fmt.Sprint(err))
	}
	for _, path := range []string{
		"/metrics", "/health", "/health?ready=1", "/api/me", "/api/status", "/api/mcp/servers", "/api/mcp/servers/leaky", "/api/mcp/servers/web", "/api/mcp/servers/leaky/logs", "/api/mcp/servers/web/logs",
		"/api/tools", "/api/traffic?full=true", "/api/audit", "/api/settings", "/api/config", "/api/doctor", "/api/providers", "/api/sessions", "/api/setup", "/v1/sessions", "/",
		"/api/approvals", "/api/approvals/answered", "/api/cluster", "/api/config/providers.local.api_key", "/api/config/approval.rules", "/api/devices", "/api/folders", "/api/llm-providers", "/api/llm-providers/local", "/api/mcp/changes", "/api/mcp/quarantine",
		"/api/mcp/servers/leaky/sandbox", "/api/clients", "/api/local-models", "/api/metrics", "/api/notices", "/api/plugins", "/api/sandbox", "/api/secrets", "/api/secrets/canary", "/api/tokens", "/api/traffic/daily", "/api/traffic/nodes", "/api/traffic/series", "/api/traffic/1", "/v1/archives",
	} {
		code, body, header := b.raw("GET", path, "")
		got.add("GET "+path, fmt.Sprint(code, header, string(body)))
	}
	for _, s := range list {
		_, body, _ := b.raw("GET", "/v1/sessions/"+s.ID, "")
		got.add("GET /v1/sessions/ID", string(body))
	}
	if info, err := os.Stat(filepath.Join(b.dir, "backup.tar.gz")); err != nil || info.Size() < 1000 {
		t.Errorf("the backup: %v, %v; want one, which is looked at below", info, err)
	}
	got.add("yaya mcp logs -f", logs.said.String())
	got.add("yaya traffic -f", follow.said.String())
	got.add("the daemon", serve.said.String())

	b.must("config", "unset", "providers.local.api_key") // this reads the secrets that the settings refer to
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-serve.exited
	again := b.daemon("-v", "serve", "--listen", b.addr, "--mcp-config", b.idleConfig(program, idleFile))
	eventually.True(t, "the server is ready", func() bool {
		out, err := b.run("mcp", "list", "--json")
		return err == nil && strings.Contains(out, `"ready"`)
	})
	for _, name := range []string{"say", "fail", "refuse"} {
		out, _ := b.run("mcp", "call", "idle__"+name)
		got.add("a restarted yaya", out)
		if !strings.Contains(out, "****") {
			t.Errorf("nothing is masked of a secret that nothing refers to: %.500q", out)
		}
	}
	got.add("a restarted yaya", b.must("mcp", "tools"))
	got.add("a restarted yaya", again.said.String())
	for where, what := range got.out {
		if how := canaryIn(what, idle); how != "" {
			t.Errorf("the secret that nothing refers to is in %s, as %q: %.300q", where, how, around(what, how))
		}
	}
	b.noCanary(idle, idleFile)

	for where, what := range got.out {
		if how := canaryIn(what, secret); how != "" {
			t.Errorf("the secret is in %s, as %q: %.300q", where, how, around(what, how))
		}
	}
	b.noCanary(secret, script, filepath.Join(b.cwd, "note.txt"))
}

// leakyConfig configures the two leaky servers and returns the arguments that say so.
func (b *box) leakyConfig(program, url string) []string {
	b.t.Helper()
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"leaky": map[string]any{"command": program, "env": map[string]string{"LEAKY_TOKEN": "${secret:canary}"}},
		"web":   map[string]any{"type": "http", "url": url, "headers": map[string]string{"X-Api-Key": "${secret:canary}"}},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.dir, "f.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return []string{"--mcp-config", path}
}

// idleConfig configures a leaky server that reads its secret from a file, and returns the
// path of the configuration.
func (b *box) idleConfig(program, file string) string {
	b.t.Helper()
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"idle": map[string]any{"command": "sh", "args": []string{"-c", "LEAKY_TOKEN=$(cat " + file + ") exec " + program}},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.dir, "idle.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// checkBlob checks that encoded data keeps its length and no longer contains the secret.
func checkBlob(t *testing.T, server, secret string, res *sdk.CallToolResult) {
	t.Helper()
	if res == nil || len(res.Content) < 2 {
		t.Errorf("%s__say: %v", server, res)
		return
	}
	image, ok := res.Content[1].(*sdk.ImageContent)
	want := "PNG.." + strings.Repeat("*", len(secret)) + "..IEND"
	if !ok || string(image.Data) != want {
		t.Errorf("%s__say: the image is %+v, want %q", server, res.Content[1], want)
	}
}

// around returns the text around the first occurrence of a spelling.
func around(data []byte, how string) []byte {
	i := bytes.Index(data, []byte(how[:len(how)*2/3]))
	if i < 0 {
		return nil
	}
	return data[max(0, i-150):min(len(data), i+150)]
}

// noCanary looks for a secret in every file below the box but those that are named,
// in their names too.
func (b *box) noCanary(secret string, but ...string) {
	b.t.Helper()
	files := 0
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		for _, p := range but {
			if p == path {
				return nil
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if how := canaryIn(append([]byte(path+"\n"), data...), secret); how != "" {
			b.t.Errorf("the secret is in %s, as %q: %.300q", path, how, around(data, how))
		}
		return nil
	})
	if err != nil || files < 10 {
		b.t.Errorf("%d files were looked at: %v", files, err)
	}
}

// A blob that the test itself makes is found: the test can fail.
func TestCanaryIn(t *testing.T) {
	secret := `Cn4ry+/"&<=%zQ8t\K7-wX2`
	for _, how := range leaky.Spellings(secret) {
		if canaryIn([]byte("x"+how+"y"), secret) == "" {
			t.Errorf("%q is not found", how)
		}
	}
	if canaryIn([]byte(leaky.Block(secret)), secret) == "" {
		t.Error("base64 in lines is not found")
	}
	var packed bytes.Buffer
	for _, text := range []string{"other", "the key is " + secret} {
		w := gzip.NewWriter(&packed)
		if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
			t.Fatalf("Write of %q to gzip = %v, want no error from it and from Close", text, err)
		}
		packed.WriteString(strings.Repeat("between", 100))
	}
	if canaryIn(packed.Bytes(), secret) == "" {
		t.Error("what is compressed amidst other bytes is not found")
	}
	if got := canaryIn([]byte(base64.StdEncoding.EncodeToString([]byte("PNG"+secret+"END"))), secret); got == "" {
		t.Error("base64 in other bytes is not found")
	}
	if got := canaryIn([]byte("Cn4ry and others, Q240cn and KioqKioq"), secret); got != "" {
		t.Errorf("%q is found where it is not", got)
	}
}
