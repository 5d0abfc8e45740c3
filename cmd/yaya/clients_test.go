package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// clientReport holds the answers that a client got from the servers.
type clientReport struct {
	Tools   []string `json:"tools"`
	Servers map[string]struct {
		Sum    any       `json:"sum"`
		Steps  []float64 `json:"steps"`
		Answer string    `json:"answer"`
	} `json:"servers"`
}

// FID-2: unmodified clients on every SDK, over both transports, list tools, get
// structured output and progress and answer a question, of servers of either era.
func TestClients(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	all := smallServers(t, node)
	servers := map[string]any{}
	// The TypeScript SDK v1 is of the legacy era; the others speak both, over HTTP in
	// their client's.
	for _, name := range []string{"ts1", "ts1-http", "ts2", "ts2-http", "py", "py-http", "fastmcp", "go"} {
		servers[name] = all[name]
	}
	names := slices.Sorted(maps.Keys(servers))
	b.serve("--mcp-config", b.config(servers))
	b.firstStart(names)
	doors := map[string][]string{
		"http":  {b.url()},
		"stdio": append([]string{b.bin}, b.args("mcp", "serve")...), // which speaks to the daemon
	}
	asked := strings.Join(names, ",")
	for name, command := range map[string][]string{
		"TypeScript SDK v1":  {node, absolute(t, peersJS, "client.mjs"), "v1", asked},
		"TypeScript SDK v2":  {node, absolute(t, peersJS, "client.mjs"), "v2", asked},
		"Python SDK, legacy": {python(t, "python"), absolute(t, peersPython, "client.py"), "legacy", asked},
		"Python SDK, modern": {python(t, "python"), absolute(t, peersPython, "client.py"), "auto", asked},
	} {
		for door, target := range doors {
			t.Run(name+" over "+door, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*eventually.Limit)
				defer cancel()
				cmd := exec.CommandContext(ctx, command[0], append(slices.Clone(command[1:]), target...)...)
				cmd.Env = b.environ()
				var out, errOut bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errOut
				if err := cmd.Run(); err != nil {
					t.Fatalf("%s = %v, want no error\n%s%s", name, err, out.String(), errOut.String())
				}
				var got clientReport
				if err := json.Unmarshal(out.Bytes(), &got); err != nil {
					t.Fatalf("%s prints %q, %v; want a report in JSON", name, out.String(), err)
				}
				got.check(t, names)
			})
		}
	}
	for door := range doors {
		for _, version := range []string{"", "2025-11-25"} { // "" is its newest
			t.Run(strings.TrimSpace("Go SDK "+version)+" over "+door, func(t *testing.T) {
				var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: b.url()}
				if door == "stdio" {
					cmd := exec.CommandContext(t.Context(), b.bin, doors[door][1:]...)
					cmd.Env = b.environ()
					transport = &sdk.CommandTransport{Command: cmd}
				}
				reportOfSDK(t, transport, version, names).check(t, names)
			})
		}
	}
	for name, target := range map[string][]string{
		"http":        {b.url(), "--transport", "http"},
		"http modern": {b.url(), "--transport", "http", "--protocol-era", "modern"},
		"stdio":       append([]string{"--"}, doors["stdio"]...),
	} {
		t.Run("Inspector over "+name, func(t *testing.T) {
			inspectCLI(t, node, target, names)
		})
	}
	b.notRestarted()
}

func (r clientReport) check(t *testing.T, servers []string) {
	t.Helper()
	for _, name := range servers {
		for _, tool := range []string{"add", "steps", "ask"} {
			if !slices.Contains(r.Tools, name+"__"+tool) {
				t.Errorf("%s: no tool %s among %v", name, tool, r.Tools)
			}
		}
		got := r.Servers[name]
		if got.Sum != 5.0 {
			t.Errorf("%s: the structured sum is %v, want 5", name, got.Sum)
		}
		if !slices.Equal(got.Steps, []float64{1, 2, 3}) {
			t.Errorf("%s: progress %v, want 1, 2, 3", name, got.Steps)
		}
		if got.Answer != "Hello Ada" {
			t.Errorf("%s: asked, it said %q, want Hello Ada", name, got.Answer)
		}
	}
}

// reportOfSDK returns the report of a client on the Go SDK.
func reportOfSDK(t *testing.T, transport sdk.Transport, version string, servers []string) clientReport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*eventually.Limit)
	defer cancel()
	steps := make(chan float64, 16)
	client := sdk.NewClient(&sdk.Implementation{Name: "go", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { steps <- r.Params.Progress },
	})
	s, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	var report clientReport
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		report.Tools = append(report.Tools, tool.Name)
	}
	call := func(tool string, args map[string]any, token any) *sdk.CallToolResult {
		t.Helper()
		p := &sdk.CallToolParams{Name: tool, Arguments: args}
		if token != nil {
			p.SetProgressToken(token)
		}
		r, err := s.CallTool(ctx, p)
		if err != nil {
			t.Fatalf("CallTool(%s) = %v, want no error", tool, err)
		}
		return r
	}
	report.Servers = map[string]struct {
		Sum    any       `json:"sum"`
		Steps  []float64 `json:"steps"`
		Answer string    `json:"answer"`
	}{}
	for _, name := range servers {
		got := report.Servers[name]
		sum, _ := call(name+"__add", map[string]any{"a": 2, "b": 3}, nil).StructuredContent.(map[string]any)
		got.Sum = sum["sum"]
		call(name+"__steps", map[string]any{}, name)
		for len(got.Steps) < 3 { // the SDK may report them after the result
			select {
			case step := <-steps:
				got.Steps = append(got.Steps, step)
			case <-time.After(eventually.Limit):
				t.Fatalf("%s: progress %v, want three steps", name, got.Steps)
			}
		}
		slices.Sort(got.Steps) // it handles notifications side by side
		if text, ok := call(name+"__ask", map[string]any{}, nil).Content[0].(*sdk.TextContent); ok {
			got.Answer = text.Text
		}
		report.Servers[name] = got
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return report
}

// inspectCLI lists and calls with the Inspector, which answers no questions.
func inspectCLI(t *testing.T, node string, target, servers []string) {
	t.Helper()
	inspect := func(rest ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*eventually.Limit)
		defer cancel()
		args := append([]string{peerPath(t, "inspector", "clients", "launcher", "build", "index.js"), "--cli"}, rest...)
		cmd := exec.CommandContext(ctx, node, append(append(args, "--format", "json"), target...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MCP_STORAGE_DIR="+filepath.Join(t.TempDir(), "inspector"))
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			t.Fatalf("inspector %q = %v, want no error\n%s%s", rest, err, out.String(), errOut.String())
		}
		return out.String()
	}
	list := inspect("--method", "tools/list")
	for _, name := range servers {
		if !strings.Contains(list, `"`+name+`__add"`) {
			t.Errorf("%s: no tool add in %.500s", name, list)
		}
	}
	got := inspect("--method", "tools/call", "--tool-name", servers[0]+"__add", "--tool-args-json", `{"a":2,"b":3}`)
	var r struct {
		StructuredContent map[string]any `json:"structuredContent"`
		Result            struct {
			StructuredContent map[string]any `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(got), &r); err != nil || (r.StructuredContent["sum"] != 5.0 && r.Result.StructuredContent["sum"] != 5.0) {
		t.Errorf("add: %v, %s, want a structured sum of 5", err, got)
	}
}
