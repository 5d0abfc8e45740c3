package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/internal/racing"
)

// largeServers starts the server of large answers in each way, and returns the entries
// that reach them.
func largeServers(t *testing.T) map[string]any {
	t.Helper()
	bin := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/large")
	entries := map[string]any{"stdio": map[string]any{"command": bin}}
	for name, args := range map[string][]string{"http": {"-http"}, "json": {"-json", "-http"}, "sse": {"-sse"}} {
		addr := freeport.Addr(t)
		cmd := exec.Command(bin, append(args, addr)...) //nolint:forbidigo,noctx // killed below
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(10 * time.Millisecond) {
			c, err := net.Dial("tcp", addr) //nolint:noctx // test
			if err == nil {
				_ = c.Close()
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %v until the deadline, want an answer", err)
			}
		}
		kind := "http"
		if name == "sse" {
			kind = "sse"
		}
		entries[name] = map[string]any{"type": kind, "url": "http://" + addr}
	}
	return entries
}

// FID-3: a server's answer reaches a client whole, over every transport.
func TestWholeResults(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	config := b.config(largeServers(t))
	b.serve("--mcp-config", config)
	clients := map[string]sdk.Transport{
		"http":          &sdk.StreamableClientTransport{Endpoint: b.url()},
		"stdio, daemon": &sdk.CommandTransport{Command: exec.Command(b.bin, b.args("mcp", "serve")...)},                         //nolint:forbidigo,noctx // closed with the session
		"stdio, own":    &sdk.CommandTransport{Command: exec.Command(b.bin, b.args("mcp", "serve", "--mcp-config", config)...)}, //nolint:forbidigo,noctx // closed with the session
	}
	for name, transport := range clients {
		t.Run(name, func(t *testing.T) {
			s, err := sdk.NewClient(&sdk.Implementation{Name: "sizes", Version: "1"}, nil).Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			call := func(tool string, args any) *sdk.CallToolResult {
				t.Helper()
				res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
				if err != nil {
					t.Fatalf("CallTool(%s) = %v, want no error", tool, err)
				}
				if len(res.Content) == 0 || res.IsError || res.Meta["io.github.yaya-ai/truncated"] != nil {
					t.Fatalf("%s: %d items, error %v, meta %v", tool, len(res.Content), res.IsError, res.Meta)
				}
				return res
			}
			servers := []string{"stdio", "http", "json", "sse"}
			if racing.Enabled && name != "http" { // the servers do not depend on the client; make scale tests all pairs
				servers = servers[:1]
			}
			for _, server := range servers {
				if c, ok := call(server+"__text", map[string]int{"bytes": 1_500_000}).Content[0].(*sdk.TextContent); !ok || len(c.Text) != 1_500_000 {
					t.Errorf("%s: got a text of %d bytes, want 1500000", server, len(c.Text))
				}
				if c, ok := call(server+"__image", map[string]int{"bytes": 4 << 20}).Content[0].(*sdk.ImageContent); !ok || len(c.Data) != 4<<20 {
					t.Errorf("%s: the image is not one of 4 MiB", server)
				}
				res := call(server+"__structured", map[string]int{"bytes": 1 << 20})
				if m, ok := res.StructuredContent.(map[string]any); !ok || len(m["rows"].([]any))*54 < 1<<20 {
					t.Errorf("%s: the structured content is not whole", server)
				}
				n := 6_000_000
				if server != "stdio" {
					n = 3_000_000 // the SDK's own server takes no more over HTTP
				}
				if c, ok := call(server+"__length", map[string]string{"text": strings.Repeat("y", n)}).Content[0].(*sdk.TextContent); !ok || c.Text != strconv.Itoa(n) {
					t.Errorf("%s: of an argument of %d bytes arrived %v", server, n, c)
				}
			}
		})
	}
}

// FID-3: the TypeScript client refuses a result without the structured content that the
// tool's output schema promises. It gets that, whatever its size, also where the owner
// bounds results.
func TestStructuredContentForTypeScript(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	bin := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/large")
	b.serve("--mcp-config", b.config(map[string]any{
		"free": map[string]any{"command": bin}, "bounded": map[string]any{"command": bin, "max_result_bytes": 100_000},
	}))
	const script = `
const { Client } = await import(process.argv[1] + "/client/index.js");
const { StreamableHTTPClientTransport } = await import(process.argv[1] + "/client/streamableHttp.js");
const c = new Client({ name: "ts", version: "1" });
await c.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
await c.listTools();
for (const server of ["free", "bounded"]) {
  const r = await c.callTool({ name: server + "__structured", arguments: { bytes: 1 << 20 } });
  console.log(server, r.structuredContent.rows.length, !!r._meta?.["io.github.yaya-ai/truncated"]);
}
await c.close();
`
	out, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", script, peerPath(t, "sdk", "dist", "esm"), b.url()).CombinedOutput()
	const want = "free 19785 false\nbounded 19785 true\n"
	if err != nil || string(out) != want {
		t.Errorf("the client says %q, %v; want %q", out, err, want)
	}
}

// FID-4, FID-5: on the binary, a line of 100 MB fails its own call while another call
// on the same process goes on, which takes longer than tool_timeout_sec and reports
// progress.
func TestLongLineAndProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	bin := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/large")
	b.serve("--mcp-config", b.config(map[string]any{"large": map[string]any{"command": bin, "tool_timeout_sec": 40}})) // many times what a busy machine needs for 100 MB
	pid := b.pidOf("large")
	begun := make(chan struct{}, 1)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "sizes", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
			select {
			case begun <- struct{}{}:
			default:
			}
		},
	}).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		p := &sdk.CallToolParams{Name: "large__steps", Arguments: map[string]int{"steps": 430, "every_ms": 100}}
		p.SetProgressToken("p")
		if res, err := s.CallTool(t.Context(), p); err != nil || res.IsError {
			t.Errorf("the call with progress: %v, %v", res, err)
		}
	})
	<-begun
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "large__text", Arguments: map[string]int{"bytes": 100_000_000}})
	if err != nil || !res.IsError || len(res.Content) != 1 {
		t.Fatalf("the call of 100 MB: %v, want an error of the tool", err)
	}
	const want = "larger than 64 MiB; raise the setting servers.max_message_bytes"
	if c, ok := res.Content[0].(*sdk.TextContent); !ok || !strings.Contains(c.Text, want) {
		t.Errorf("the call of 100 MB: %v, want %q", res.Content[0], want)
	}
	wg.Wait()
	if got := b.pidOf("large"); got != pid {
		t.Errorf("the server's process is %d, want %d as before", got, pid)
	}
}

// peak returns the most memory that a process has had, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("there is no /proc here")
	}
	for l := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(l, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return kb >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// largeLine is the line that the server of large answers repeats.
const largeLine = "The quick brown fox \u2014 \"jumps\" <over> the lazy dog.\n"

// wholeText fails if a response is not one with a text of n unchanged bytes. It
// decodes one line and compares the rest with that: under the race detector to decode
// all takes minutes.
func wholeText(data []byte, n int) error {
	encode := func(text string) []byte {
		raw, _ := json.Marshal(text) // a string
		return raw[1 : len(raw)-1]
	}
	want := append(bytes.Repeat(encode(largeLine), n/len(largeLine)), encode(largeLine[:n%len(largeLine)])...)
	if bytes.Contains(data, []byte("<over>")) { // not every encoder escapes these
		want = bytes.ReplaceAll(bytes.ReplaceAll(want, []byte(`\u003c`), []byte("<")), []byte(`\u003e`), []byte(">"))
	}
	before, rest, found := bytes.Cut(data, []byte(`"text":"`))
	after, same := bytes.CutPrefix(rest, want)
	if !found || !same {
		return fmt.Errorf("got %d bytes that are not the text: %.300q", len(data), data)
	}
	var m struct {
		Result struct{ Content []struct{ Type, Text string } }
	}
	envelope := slices.Concat(before, []byte(`"text":"`), after)
	if err := json.Unmarshal(envelope, &m); err != nil || len(m.Result.Content) != 1 || m.Result.Content[0].Type != "text" || m.Result.Content[0].Text != "" {
		return fmt.Errorf("around the text: %q: %w", envelope, err)
	}
	return nil
}

// FID-3: 50 MB of text come through whole, eight at a time, and the memory of yaya stays
// within the budget of 256 MiB for answers.
func TestLargeResultsTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const size, together, allowed = 50_000_000, 8, 256
	b := newBox(t)
	entries := largeServers(t)
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			m["tool_timeout_sec"] = 600 // each waits for those before it, on whatever machine
		}
	}
	daemon := b.serve("--mcp-config", b.config(entries))
	hello := func(ctx context.Context) http.Header {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url(), strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return http.Header{"Mcp-Session-Id": resp.Header["Mcp-Session-Id"], "Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2025-06-18"}}
	}
	header := hello(t.Context())
	// call fails if not every byte of the text came.
	call := func(id int, tool string, bytesWanted int, modern bool) error {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"bytes":%d}}}`, id, tool, bytesWanted)
		h := header
		if modern {
			body = strings.Replace(body, `"arguments"`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"arguments"`, 1)
			h = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url(), strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header = h.Clone()
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body) //nolint:forbidigo // test
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", len(data), err)
		}
		data = bytes.TrimPrefix(data, []byte("event: message\n"))
		if bytes.HasPrefix(data, []byte("id: ")) {
			_, data, _ = bytes.Cut(data, []byte{'\n'})
		}
		data = bytes.TrimPrefix(data, []byte("data: "))
		return wholeText(data, bytesWanted)
	}
	for _, c := range []struct {
		server string
		modern bool
	}{{"stdio", false}, {"json", true}} {
		if err := call(1, c.server+"__text", 10, c.modern); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range together {
			wg.Go(func() {
				if err := call(100+i, c.server+"__text", size, c.modern); err != nil {
					t.Errorf("%s, modern %v: a text of %d bytes: %v", c.server, c.modern, size, err)
				}
			})
		}
		wg.Wait()
		t.Logf("%s, modern %v: %v, %d MiB at most", c.server, c.modern, time.Since(begun).Round(time.Millisecond), peak(t, daemon.Process.Pid))
	}
	if got := peak(t, daemon.Process.Pid); got > allowed {
		t.Errorf("yaya took %d MiB, want at most %d", got, allowed)
	}
}
