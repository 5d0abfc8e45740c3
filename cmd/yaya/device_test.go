package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// The whole way of another device, as a user would go it (W-1…W-5, W-25, W-59,
// W-64, AU-16): examples/remote-device, with the real binary.
func TestExampleRemoteDevice(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../../examples/remote-device/run.sh")
	cmd.Env = append(os.Environ(), "YAYA="+binary(t))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "thrown out after") || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Errorf("got %v, want \"thrown out after\" in it, \"done\" at its end\n%s", err, out)
	}
}

// gone waits until a process has ended; whoever has started it waits for it, too.
func gone(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	for deadline := time.Now().Add(eventually.Limit); cmd.Process.Signal(syscall.Signal(0)) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
}

// invite makes a code with scopes.
func (b *box) invite(scopes ...string) string {
	b.t.Helper()
	var inv auth.Invitation
	if err := json.Unmarshal([]byte(b.must("device", "invite", "--json", "--scopes", strings.Join(scopes, ","))), &inv); err != nil {
		b.t.Fatal(err)
	}
	return inv.Code
}

func npmModule(t *testing.T, elem ...string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join(append([]string{peers}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// line is one line that the example prints.
type line struct {
	Did    string
	Event  string
	ID     string
	Seq    int64
	Text   string
	Status string
	Resync *string
	Code   int
}

// W-3, W-75, WS-25, WS-28: the npm client, unmodified, with a key that it cannot
// read and no header of its own, joins, pushes, gets replies,
// survives a restart of the server and goes on without a gap.
func TestPhoenixClient(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	for _, version := range []string{"phoenix-1-8-15", "phoenix-1-8-16"} {
		t.Run(version, func(t *testing.T) {
			b := newBox(t)
			daemon := b.serve()
			cmd := exec.CommandContext(t.Context(), node, "../../examples/phoenix/watch.mjs", "http://"+b.addr, b.invite("default"), npmModule(t, version, "priv", "static", "phoenix.mjs"))
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			var seqs []int64
			var text strings.Builder
			until := func(what string, f func(line) bool) line {
				t.Helper()
				for lines.Scan() {
					var l line
					if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
						t.Fatalf("watch.mjs prints %q, %v; want JSON", lines.Text(), err)
					}
					if l.Seq > 0 {
						seqs = append(seqs, l.Seq)
					}
					text.WriteString(l.Text)
					if l.Did == "refused" || l.Did == "timeout" || l.Did == "closed" {
						t.Fatalf(`got %v, want Did not "refused", Did not "timeout", Did not "closed"`, lines.Text())
					}
					if f(l) {
						return l
					}
				}
				t.Fatalf("%s does not come", what)
				return line{}
			}
			did := func(what string) func(line) bool { return func(l line) bool { return l.Did == what } }
			until("joined", did("joined"))
			say := func(s string) {
				t.Helper()
				if _, err := io.WriteString(in, s+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			turn := func(s string) {
				t.Helper()
				text.Reset()
				say(s)
				until("the end of the turn", func(l line) bool { return l.Event == "turn.completed" })
				if text.String() != "echo: "+s {
					t.Errorf("the stream says %q", text.String())
				}
			}
			turn("one")
			if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if l := until("the close", did("close")); l.Code != 1012 {
				t.Errorf("closed with %d", l.Code)
			}
			gone(t, daemon)
			b.serve()
			if l := until("joined again", did("joined")); l.Resync != nil {
				t.Errorf("resync: %s", *l.Resync)
			}
			turn("two")
			for i := 1; i < len(seqs); i++ {
				if seqs[i] <= seqs[i-1] {
					t.Errorf("%d comes after %d", seqs[i], seqs[i-1])
				}
			}
			say("quit")
			for lines.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("watch.mjs ends with %v, want no error", err)
			}
		})
	}
}

// W-2: another implementation of MessagePack reads our frames, and we read its.
func TestForeignMsgpack(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	b.serve()
	cmd := exec.CommandContext(t.Context(), node, "../../examples/phoenix/msgpack.mjs", "http://"+b.addr, b.invite("default"), npmModule(t, "@msgpack", "msgpack", "dist.esm", "index.mjs"))
	out, err := cmd.CombinedOutput()
	if want := "echo: größe ✓ " + strings.Repeat("x", 300); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("got %v, %s, want %s", err, out, want)
	}
}

// AU-15, R28: a device that was revoked stays revoked, though the daemon is killed
// in the moment in which it has said so.
func TestRevocationSurvivesAKill(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	daemon := b.serve()
	dir := filepath.Join(b.dir, "phone")
	code := b.invite("default")
	phone := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), b.bin, append([]string{"--data-dir", dir, "--config-dir", dir + "c"}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := phone("connect", "http://"+b.addr, "--code", code, "--device", "phone"); err != nil {
		t.Fatalf("connect with a code: got %v, %s; want no error", err, out)
	}
	if out, err := phone("connect"); err != nil || !strings.Contains(out, "as phone") {
		t.Errorf(`got %v, %v, want "as phone" in it`, err, out)
	}
	b.must("device", "revoke", "phone")
	_ = daemon.Process.Kill()
	gone(t, daemon)
	b.serve()
	if out := b.must("device", "list"); !strings.Contains(out, "revoked") {
		t.Errorf(`got %v, want "revoked" in it`, out)
	}
	if out := b.must("verify"); !strings.Contains(out, "0 findings") {
		t.Errorf(`got %v, want "0 findings" in it`, out)
	}
	// A device that nobody approves waits; Ctrl-C ends that.
	cmd := exec.CommandContext(t.Context(), b.bin, "--data-dir", dir, "--config-dir", dir+"c", "connect", "http://"+b.addr)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(pipe)
	if !s.Scan() || !strings.Contains(s.Text(), "yaya device approve req_") {
		t.Fatalf("got %q, want the command that approves the request", s.Text())
	}
	request := s.Text()[strings.Index(s.Text(), "req_"):]
	if out := b.must("device", "list"); !strings.Contains(out, request) {
		t.Errorf("got %v, want %v in it", out, request)
	}
	b.must("device", "approve", request, "--scopes", "agents:read")
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("connect of the approved device ends with %v, want no error", err)
		}
	case <-time.After(eventually.Limit):
		t.Error("it still waits")
	}
}

// W-67…W-71: a kernel attached to another gateway reports its agents there, and
// goes on when that is gone.
func TestUpstream(t *testing.T) {
	t.Parallel()
	gw, k := newBox(t), newBox(t)
	daemon := gw.serve()
	code := gw.invite("kernel:attach", "agents:read")
	k.must("connect", "http://"+gw.addr, "--code", code, "--device", "kernel2")
	k.serve("--upstream", "http://"+gw.addr)
	code2 := k.invite("default")
	node := needPeers(t)
	talk := func() {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, "../../examples/phoenix/msgpack.mjs", "http://"+k.addr, code2, npmModule(t, "@msgpack", "msgpack", "dist.esm", "index.mjs"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("msgpack.mjs = %v, %s; want no error", err, out)
		}
	}
	talk()
	seen := func(b *box, pattern string) bool {
		return strings.Contains(b.must("audit", "--event", "agent_*", "--json"), pattern)
	}
	for deadline := time.Now().Add(eventually.Limit); !seen(gw, `"actor": "kernel2"`); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got the audit\n%s\nwant an entry by kernel2", gw.must("audit"))
		}
	}
	_ = daemon.Process.Kill()
	gone(t, daemon)
	code2 = k.invite("default")
	talk() // alone
}

// AU-41: a device's credentials for yaya never reach a server.
func TestTokensStayHere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []http.Header
	upstream := sdk.NewServer(&sdk.Implementation{Name: "up", Version: "1"}, nil)
	sdk.AddTool(upstream, &sdk.Tool{Name: "t"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return upstream }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Clone())
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close) // when the daemon, which is connected, has gone
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"up": map[string]any{"type": "http", "url": srv.URL}}))
	dir := filepath.Join(b.dir, "phone")
	cmd := exec.CommandContext(t.Context(), b.bin, "--data-dir", dir, "--config-dir", dir+"c", "connect", "http://"+b.addr, "--code", b.invite("tools:call"), "--device", "phone")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("connect with a code: got %v, %s; want no error", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "keys", "remotes", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want len(files) 1", files, err)
	}
	var creds struct {
		Token string `json:"device_token"`
	}
	data, err := os.ReadFile(files[0])
	if err != nil || json.Unmarshal(data, &creds) != nil || creds.Token == "" {
		t.Fatalf("got the credentials %+v, %v, want a token", creds, err)
	}
	c := newRawClient(t, b.url(), true, func(c *rawClient) {
		c.header = http.Header{"Authorization": {"Bearer " + creds.Token}, "Cookie": {"c=" + creds.Token}}
	})
	if text, err := c.text("up__t", nil); err != nil || text != "done" {
		t.Fatalf(`got %v, %v, want text "done"`, text, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 {
		t.Fatal("the server was not asked")
	}
	for _, h := range seen {
		for name, values := range h {
			if strings.Contains(strings.Join(values, " "), creds.Token[:40]) || name == "Authorization" {
				t.Errorf(`%s: got %.40q, want values without %v, name not "Authorization"`, name, values, creds.Token[:40])
			}
		}
	}
	// AU-38, R8: nor is it anywhere in what yaya keeps.
	err = filepath.WalkDir(filepath.Join(b.dir, "d"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(creds.Token[len(creds.Token)-60:])) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})
	if err != nil {
		t.Errorf("WalkDir of the data folder = %v, want no error", err)
	}
}

// GF-3: a browser without a camera gets in by the link, which has the code and, without an
// authority, the key.
func TestInviteTellsTheLink(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const at = "https://yaya.example:8443"
	out := b.must("device", "invite", "--url", at+"/", "--no-qr")
	_, code, _ := strings.Cut(out, "Code ")
	code = strings.Fields(code)[0]
	if want := "Link    " + at + "/#code=" + code + "\n"; !strings.Contains(out, want) {
		t.Errorf("got %q, want %q in it", out, want)
	}
	var inv struct{ Code, Link string }
	if err := json.Unmarshal([]byte(b.must("device", "invite", "--json", "--url", at)), &inv); err != nil {
		t.Fatal(err)
	}
	if want := at + "/#code=" + inv.Code; inv.Code == "" || inv.Link != want {
		t.Errorf("the link in JSON is %q, want %q", inv.Link, want)
	}
	if out = b.must("device", "invite", "--json"); strings.Contains(out, `"link"`) {
		t.Errorf("without an address it prints %s, want no link", out)
	}
}
