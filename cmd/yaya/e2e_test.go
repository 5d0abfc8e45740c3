package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

// peers is the folder in which make test installs real MCP servers and clients.
const peers = "../../internal/peers/npm/node_modules"

// needPeers skips a test where the npm peers are not installed; make test
// installs them, and fails without. make unit does without them.
func needPeers(t *testing.T) (node string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short does without the peers")
	}
	node, err := filepath.Abs(filepath.Join(peers, ".bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(node); err != nil {
		if os.Getenv("YAYA_PEERS_REQUIRED") != "" {
			t.Fatal("the npm peers are not installed")
		}
		t.Skip("the npm peers are not installed; run make peers")
	}
	return node
}

func peerPath(t *testing.T, elem ...string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join(append([]string{peers, "@modelcontextprotocol"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// box is a place for one yaya: directories of its own and an address.
type box struct {
	t    *testing.T
	bin  string
	dir  string
	addr string
	cwd  string   // of what goes on; "" for this one's
	env  []string // NAME=value, beside what this process has
	// token makes a device of who talks to /v1; without it the owner does.
	token string
}

func newBox(t *testing.T) *box {
	t.Helper()
	// t.TempDir can be too long for the path of a socket.
	dir, err := os.MkdirTemp("", "yy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &box{t: t, bin: binary(t), dir: dir, addr: freeport.Addr(t)}
}

// environ is the environment of the box's programs.
func (b *box) environ() []string {
	return append(append(os.Environ(), "HOME="+b.dir), b.env...)
}

func (b *box) args(args ...string) []string {
	return append([]string{"--data-dir", filepath.Join(b.dir, "d"), "--config-dir", filepath.Join(b.dir, "c")}, args...)
}

func (b *box) run(args ...string) (string, error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.bin, b.args(args...)...)
	cmd.Env = b.environ()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		return out.String() + errOut.String(), err
	}
	return out.String(), nil
}

// in runs yaya in a folder and returns both streams and the exit code.
func (b *box) in(dir string, args ...string) (string, string, int) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), b.bin, b.args(args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+b.dir, "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"), "YAYA_PASSPHRASE_FILE="+filepath.Join(b.dir, "phrase"))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		b.t.Fatalf("yaya %q = %v, want it to run", args, err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func (b *box) must(args ...string) string {
	b.t.Helper()
	out, err := b.run(args...)
	if err != nil {
		b.t.Fatalf("yaya %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// unasked runs a command that has to ask, without a terminal, and returns what it says.
func (b *box) unasked(args ...string) string {
	b.t.Helper()
	out, err := b.run(args...)
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 || !strings.Contains(out, "because there is no terminal to ask on: give --yes to ") {
		b.t.Errorf("yaya %s: %v, want the exit code 1 and the remedy:\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// output collects the output of a running process.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// started is a process that the box's end stops.
type started struct {
	*exec.Cmd
	said   *output
	exited chan struct{}
}

// daemon starts a command that goes on.
func (b *box) daemon(args ...string) started {
	b.t.Helper()
	cmd := exec.Command(b.bin, b.args(args...)...) //nolint:forbidigo,noctx // it is stopped at the box's end
	cmd.Env, cmd.Dir = b.environ(), b.cwd
	return b.background(cmd)
}

// background starts a program that goes on until the box's end.
func (b *box) background(cmd *exec.Cmd) started {
	b.t.Helper()
	p := started{Cmd: cmd, said: new(output), exited: make(chan struct{})}
	p.Stdout, p.Stderr = p.said, p.said
	if err := p.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.exited)
	}()
	b.t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(eventually.Limit):
			b.t.Errorf("yaya did not stop within %v of SIGTERM", eventually.Limit)
			_ = p.Process.Kill()
			<-p.exited
		}
		if b.t.Failed() {
			b.t.Logf("yaya said:\n%s", p.said)
		}
	})
	return p
}

// serve starts the daemon and waits until it is ready.
func (b *box) serve(args ...string) *exec.Cmd {
	b.t.Helper()
	p := b.daemon(append([]string{"serve", "--listen", b.addr}, args...)...)
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.exited:
			b.t.Fatalf("yaya serve ended:\n%s", p.said)
		default:
		}
		resp, err := http.Get("http://" + b.addr + "/health?ready=1") //nolint:forbidigo,noctx // test
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return p.Cmd
			}
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("yaya serve is not ready:\n%s", p.said)
		}
	}
}

func (b *box) url() string { return "http://" + b.addr + "/mcp" }

func (b *box) status() daemon.Report {
	b.t.Helper()
	var r daemon.Report
	if err := json.Unmarshal([]byte(b.must("mcp", "list", "--json")), &r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *box) pidOf(server string) int {
	b.t.Helper()
	for _, s := range b.status().Servers {
		if s.ID == server {
			return daemon.DetailOf(s).PID
		}
	}
	b.t.Fatalf("no server %s", server)
	return 0
}

// writeConfig writes a Claude-style file with the three reference servers.
func (b *box) writeConfig(node string, extra map[string]any) string {
	b.t.Helper()
	files := filepath.Join(b.dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "hello.txt"), []byte("hello from a file"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	m := map[string]any{
		"everything": map[string]any{"command": node, "args": []string{peerPath(b.t, "server-everything", "dist", "index.js"), "stdio"}},
		"fs":         map[string]any{"command": node, "args": []string{peerPath(b.t, "server-filesystem", "dist", "index.js"), files}},
		"memory":     map[string]any{"command": node, "args": []string{peerPath(b.t, "server-memory", "dist", "index.js")}, "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(b.dir, "memory.json")}},
	}
	for k, v := range extra {
		m[k] = v
	}
	data, err := json.Marshal(map[string]any{"mcpServers": m})
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.dir, "f.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// threeCalls are one call of each reference server and what it answers.
func threeCalls(b *box) []struct {
	name string
	args map[string]any
	want string
} {
	return []struct {
		name string
		args map[string]any
		want string
	}{
		{"everything__echo", map[string]any{"message": "hi"}, "Echo: hi"},
		{"fs__read_text_file", map[string]any{"path": filepath.Join(b.dir, "files", "hello.txt")}, "hello from a file"},
		{"memory__read_graph", map[string]any{}, "entities"},
	}
}

const referenceTools = 16 + 14 + 9

// toolsListed is how many tools a client gets with those: read_artifact, and from a daemon yaya_run.
func toolsListed(over string) int {
	if over == "stdio" { // of a yaya without agents
		return referenceTools + 1
	}
	return referenceTools + 2
}

// Unmodified clients list all tools and call one of each server, over HTTP and
// over stdio. On a busy machine servers start later than a client waits for a list.
func TestRealClients(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	config := b.writeConfig(node, nil)
	b.serve("--mcp-config", config)
	stdio := b.args("mcp", "serve", "--mcp-config", config)

	t.Run("official SDK", func(t *testing.T) {
		for name, transport := range map[string]sdk.Transport{
			"http":  &sdk.StreamableClientTransport{Endpoint: b.url()},
			"stdio": &sdk.CommandTransport{Command: exec.Command(b.bin, stdio...)}, //nolint:forbidigo,noctx // closed with the session
		} {
			c := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
			s, err := c.Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatalf("%s: Connect = %v, want no error", name, err)
			}
			eventually.True(t, name+": all tools are listed", func() bool {
				res, err := s.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatalf("%s: ListTools = %v, want no error", name, err)
				}
				return len(res.Tools) == toolsListed(name)
			})
			for _, call := range threeCalls(b) {
				res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: call.name, Arguments: call.args})
				if err != nil || len(res.Content) == 0 {
					t.Fatalf("%s: got %s: %v, want len(Content) not 0", name, call.name, err)
				}
				if got := res.Content[0].(*sdk.TextContent).Text; !strings.Contains(got, call.want) {
					t.Errorf("%s: got %s: %s, want %v in it", name, call.name, got, call.want)
				}
			}
			if err := s.Close(); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
	})
	t.Run("mcp-go", func(t *testing.T) {
		overHTTP, err := mcpclient.NewStreamableHttpClient(b.url())
		if err != nil {
			t.Fatal(err)
		}
		overStdio, err := mcpclient.NewStdioMCPClient(b.bin, nil, stdio...)
		if err != nil {
			t.Fatal(err)
		}
		legacy, err := mcpclient.NewStreamableHttpClient(b.url())
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]*mcpclient.Client{"http": overHTTP, "stdio": overStdio, "http legacy": legacy} {
			if err := c.Start(t.Context()); err != nil && name != "stdio" {
				t.Fatalf("%s: Start = %v, want no error", name, err)
			}
			req := mcpgo.InitializeRequest{}
			req.Params.ClientInfo = mcpgo.Implementation{Name: "e2e", Version: "1"}
			if name == "http legacy" {
				req.Params.ProtocolVersion = mcpgo.ProtocolVersion20250618
			}
			if _, err := c.Initialize(t.Context(), req); err != nil {
				t.Fatalf("%s: Initialize = %v, want no error", name, err)
			}
			eventually.True(t, name+": all tools are listed", func() bool {
				res, err := c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
				if err != nil {
					t.Fatalf("%s: ListTools = %v, want no error", name, err)
				}
				return len(res.Tools) == toolsListed(name)
			})
			for _, call := range threeCalls(b) {
				req := mcpgo.CallToolRequest{}
				req.Params.Name, req.Params.Arguments = call.name, call.args
				res, err := c.CallTool(t.Context(), req)
				if err != nil || len(res.Content) == 0 {
					t.Fatalf("%s: got %s: %v, want len(Content) not 0", name, call.name, err)
				}
				if got := res.Content[0].(mcpgo.TextContent).Text; !strings.Contains(got, call.want) {
					t.Errorf("%s: got %s: %s, want %v in it", name, call.name, got, call.want)
				}
			}
			if err := c.Close(); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
	})
	t.Run("inspector", func(t *testing.T) {
		inspector := peerPath(t, "inspector", "clients", "launcher", "build", "index.js")
		inspect := func(target []string, rest ...string) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// The Inspector wants a command that has flags of its own after "--".
			args := append([]string{inspector, "--cli"}, rest...)
			args = append(args, "--format", "json")
			args = append(args, target...)
			cmd := exec.CommandContext(ctx, node, args...)
			cmd.Env = append(os.Environ(), "MCP_STORAGE_DIR="+t.TempDir())
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			if err := cmd.Run(); err != nil {
				return "", fmt.Errorf("inspector %v: %w\n%s%s", args, err, out.String(), errOut.String())
			}
			return out.String(), nil
		}
		for name, target := range map[string][]string{
			"http":        {b.url(), "--transport", "http"},
			"http modern": {b.url(), "--transport", "http", "--protocol-era", "modern"},
			"stdio":       append([]string{"--", b.bin}, stdio...),
		} {
			eventually.True(t, name+": all tools are listed", func() bool {
				list, err := inspect(target, "--method", "tools/list")
				return err == nil && strings.Count(list, `"inputSchema"`) == toolsListed(name)
			})
			for _, call := range threeCalls(b) {
				args, err := json.Marshal(call.args)
				if err != nil {
					t.Fatal(err)
				}
				var got string
				for deadline := time.Now().Add(eventually.Limit); ; {
					got, err = inspect(target, "--method", "tools/call", "--tool-name", call.name, "--tool-args-json", string(args))
					if err == nil && strings.Contains(got, call.want) {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s: %s: %s, %v; want %q", name, call.name, got, err, call.want)
					}
				}
			}
		}
	})
}

// kill -9 of a stdio child and a restart of an HTTP upstream during a client's
// session: the next call succeeds on the same session, within 2 s of the server
// being back.
func TestClientSessionSurvives(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	upstreamAddr := freeport.Addr(t)
	_, port, _ := net.SplitHostPort(upstreamAddr)
	startUpstream := func() *exec.Cmd {
		t.Helper()
		for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); {
			cmd := exec.Command(node, peerPath(t, "server-everything", "dist", "index.js"), "streamableHttp") //nolint:forbidigo,noctx // killed below
			cmd.Env = append(os.Environ(), "PORT="+port)
			var out output
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for range 1000 { // a busy machine starts Node slowly
				if strings.Contains(out.String(), "EADDRINUSE") { // somebody connects from that port just now
					break
				}
				if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil { //nolint:noctx // test
					_ = c.Close()
					return cmd
				}
				time.Sleep(10 * time.Millisecond)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Logf("server-everything does not listen: %s", out.String())
		}
		t.Fatal("server-everything does not listen")
		return nil
	}
	up := startUpstream()
	stop := func() {
		_ = up.Process.Kill()
		_ = up.Wait()
	}
	defer func() { stop() }()
	b.serve("--mcp-config", b.writeConfig(node, map[string]any{"remote": map[string]any{"type": "http", "url": "http://127.0.0.1:" + port + "/mcp"}}))

	c := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	call := func(name string) (string, error) {
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"message": "hi"}})
		if err != nil {
			return "", err
		}
		text := res.Content[0].(*sdk.TextContent).Text
		if res.IsError {
			return "", fmt.Errorf("tool error: %s", text)
		}
		return text, nil
	}
	for range 3 {
		if got, err := call("everything__echo"); err != nil || got != "Echo: hi" {
			t.Fatalf(`got %v, %v, want got "Echo: hi"`, got, err)
		}
		pid := b.pidOf("everything")
		hosttest.Kill(t, pid)
		for hosttest.Alive(pid) {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		if got, err := call("everything__echo"); err != nil || got != "Echo: hi" {
			t.Fatalf("after the kill: %s %v", got, err)
		}
		t.Logf("after kill -9 the next call took %v", time.Since(start))
	}
	soonest := time.Hour
	for range 2 {
		if got, err := call("remote__echo"); err != nil || got != "Echo: hi" {
			t.Fatalf(`got %v, %v, want got "Echo: hi"`, got, err)
		}
		stop()
		if got, err := call("remote__echo"); err == nil {
			t.Fatalf("while it is down: %s", got)
		}
		up = startUpstream()
		start := time.Now()
		if got, err := call("remote__echo"); err != nil || got != "Echo: hi" {
			t.Fatalf("after the restart: %s %v", got, err)
		}
		d := time.Since(start)
		soonest = min(soonest, d)
		t.Logf("after the restart the next call took %v", d)
	}
	if soonest > 2*time.Second { // of two: the machine may have had other work
		t.Errorf("after each restart the next call took %v or more, want at most 2s", soonest)
	}
}

// marked finds the processes that carry a mark in their environment.
func marked(mark string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, path := range dirs {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte(mark)) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill -9 of yaya leaves no child or grandchild alive after 5 s, nor does SIGTERM.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		b := newBox(t)
		mark := fmt.Sprintf("E2E_MARK=%d-%d", os.Getpid(), time.Now().UnixNano())
		k, v, _ := strings.Cut(mark, "=")
		other := filepath.Join(b.dir, "other") // by its own name it would be left out, as its own client
		if err := os.Symlink(b.bin, other); err != nil {
			t.Fatal(err)
		}
		family := fmt.Sprintf("setsid sleep 1000 & sleep 1000 & exec %s mcp serve --data-dir %s", other, filepath.Join(b.dir, "inner"))
		data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"family": map[string]any{"command": "sh", "args": []string{"-c", family}, "env": map[string]string{k: v}}}})
		if err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(b.dir, "f.json")
		if err := os.WriteFile(config, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := b.serve("--mcp-config", config)
		if n := len(marked(mark)); n != 3 {
			t.Fatalf("%d processes of the family, want 3", n)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for len(marked(mark)) > 0 {
			if time.Since(start) > eventually.Limit {
				t.Fatalf("%v: alive after %v: %v", sig, eventually.Limit, marked(mark))
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%v: all gone after %v", sig, time.Since(start))
	}
}

// A stdio client of a daemon keeps its session when the daemon is restarted.
func TestStdioThroughTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	inner := newBox(t)
	b.must("mcp", "add", "inner", "--", b.bin, "--data-dir", filepath.Join(inner.dir, "d"), "--config-dir", filepath.Join(inner.dir, "c"), "mcp", "serve")
	running := b.serve()
	c := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &sdk.CommandTransport{Command: exec.Command(b.bin, b.args("mcp", "serve")...)}, &sdk.ClientSessionOptions{}) //nolint:forbidigo,noctx // closed with the session
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	names := func() string {
		t.Helper()
		res, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, tool := range res.Tools {
			out = append(out, tool.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	if got := names(); got != "inner__read_artifact read_artifact yaya_run" {
		t.Errorf("tools: %s", got)
	}
	if n := len(b.status().Servers); n != 1 {
		t.Errorf("%d servers", n)
	}
	_ = running.Process.Signal(syscall.SIGTERM)
	for i := 0; ; i++ {
		if _, err := s.ListTools(t.Context(), nil); err != nil {
			if !strings.Contains(err.Error(), "yaya serve") {
				t.Errorf("without a daemon: %v", err)
			}
			break
		}
		if i > 500 {
			t.Fatal("the daemon does not stop")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	b.serve()
	if got := names(); got != "inner__read_artifact read_artifact yaya_run" {
		t.Errorf("tools after the restart: %s", got)
	}
}

// DN-09: in stdio mode nothing but messages is printed, and the end of the
// input ends everything within 2 s.
func TestStdioIsClean(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	cmd := exec.CommandContext(t.Context(), b.bin, b.args("-v", "mcp", "serve")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	go func() {
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		fmt.Fprintln(in, "garbage")
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"big":"`+strings.Repeat("x", 70<<20)+`"}}}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		fmt.Fprint(in, `{"jsonrpc":"2.0","id":4,"method":"pi`)
		_ = in.Close()
	}()
	var got []string
	for line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a message: %.100s", line)
		}
		got = append(got, line)
	}
	_ = cmd.Wait()
	all := strings.Join(got, "\n")
	for _, want := range []string{`"id":1,"result"`, `"code":-32700`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32700,"message":"the message is larger than 64 MiB; raise the setting servers.max_message_bytes`, `"id":3,"result"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in:\n%.2000s", want, all)
		}
	}
}
