package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// The scenarios in which a server asks its client something, in each era's way.
var (
	legacyQuestions = []string{"tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"}
	modernQuestions = "input-required-"
)

// listening runs a server that listens at an address of its own, until the test
// ends, and returns the address.
func listening(t *testing.T, command func(ctx context.Context, addr string) *exec.Cmd) string {
	t.Helper()
	addr := freeport.Addr(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := command(ctx, addr)
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	waitFor(t, addr)
	return addr
}

// readsOn lets a reverse proxy read a request's body while it writes the response. A
// server that answers fast does so before the proxy's transport has seen the end of the
// body; net/http then closes the body, which the transport takes for an error, and
// closes the connection in the middle of the response.
func readsOn(t *testing.T, proxy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 {
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				t.Errorf("the proxy cannot read and write at a time: %v", err)
			}
		}
		proxy.ServeHTTP(w, r)
	})
}

// bothEras is one server of the official Go SDK that speaks both eras: its handler
// serves one, so the version of a request decides which of two gets it.
func bothEras(t *testing.T, everything string) string {
	t.Helper()
	proxy := func(stateless string) *httputil.ReverseProxy {
		addr := listening(t, func(ctx context.Context, addr string) *exec.Cmd {
			return exec.CommandContext(ctx, everything, "-http", addr, stateless)
		})
		p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
		p.FlushInterval = -1
		return p
	}
	legacy, modern := proxy("-stateless=false"), proxy("-stateless=true")
	srv := httptest.NewServer(readsOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})))
	t.Cleanup(srv.CloseClientConnections)
	return srv.URL + "/mcp"
}

// FID-2: a server that speaks both eras is met in the era of the client that calls,
// so a client of either loses nothing behind yaya. Every scenario of both suites
// that passes directly passes through yaya, with one yaya and one server for both:
// over HTTP and stdio in the default configuration, but for what a shared process cannot
// pass.
func TestConformanceOfBothEras(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	everything := buildTool(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	url := bothEras(t, everything)
	for name, way := range map[string]struct {
		server map[string]any
		except []string
	}{
		"http": {server: map[string]any{"url": url, "prefix": ""}},
		// A process that clients of both eras share asks as legacy servers do; one that
		// is a client's own, as that client's era does.
		"stdio":             {map[string]any{"command": everything, "prefix": ""}, sharedGo},
		"stdio, per client": {server: map[string]any{"command": everything, "prefix": "", "session": "per_client"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.serve("--mcp-config", b.config(map[string]any{"fixture": way.server}))
			eventually.True(t, "the server is ready", func() bool { return b.status().Servers[0].State == "ready" })
			for _, run := range []struct {
				suite, what string
				asks        []string
			}{
				{suiteStable, "--suite all", legacyQuestions},
				{suiteNext, "--requirements 2025-11-25", legacyQuestions},
				{suiteNext, "--requirements 2026-07-28", []string{modernQuestions}},
			} {
				t.Run(run.suite+" "+run.what, func(t *testing.T) {
					args := strings.Fields(run.what)
					direct, _ := suite(t, node, run.suite, nil, append([]string{"server", "--url", url}, args...)...)
					got, out := suite(t, node, run.suite, nil, append([]string{"server", "--url", b.url()}, args...)...)
					asked := 0
					for scenario, d := range direct {
						if slices.Contains(way.except, scenario) {
							continue
						}
						if g := got[scenario]; g.failed > d.failed {
							t.Errorf("%s: %d checks fail, directly %d\n%s", scenario, g.failed, d.failed, out)
						}
						for _, q := range run.asks {
							if !strings.HasPrefix(scenario, q) || d == (outcome{}) {
								continue
							}
							if asked++; d.failed == 0 && got[scenario] != d && way.except == nil {
								t.Errorf("%s: %+v, directly %+v\n%s", scenario, got[scenario], d, out)
							}
						}
					}
					if asked < len(legacyQuestions) {
						t.Errorf("%d scenarios in which the server asks, want at least %d", asked, len(legacyQuestions))
					}
				})
			}
		})
	}
}

// pinning is a server that is held to the era of the first message that it reads, as
// those on the Python SDK are, or to $ERA from the start. It writes what it reads
// into $LOG.
const pinning = `
era=$ERA
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  [ -z "$LOG" ] || printf '%s\n' "$line" >>"$LOG"
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\),.*/\1/p')
  case "$line" in
  *'"method":"server/discover"'*)
    if [ "$era" = legacy ]; then
      say '"error":{"code":-32601,"message":"method not found"}'
    else
      era=modern; say '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
    fi ;;
  *'"method":"initialize"'*)
    if [ "$era" = modern ]; then
      say '"error":{"code":-32022,"message":"connection is serving the 2026-07-28 protocol","data":{"supported":["2026-07-28"]}}'
    else
      era=legacy; say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}'
    fi ;;
  *'"method":"tools/list"'*) say '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
  esac
done`

// FID-1: silence decides nothing. A server that reads its first message after three
// seconds, and is held by it, is ready at its first start.
func TestServerThatReadsLate(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"late": map[string]any{"command": "sh", "args": []string{"-c", "sleep 3" + pinning}}}))
	eventually.True(t, "the server is ready", func() bool { return b.status().Servers[0].State == "ready" })
	st := b.status().Servers[0]
	if d := daemon.DetailOf(st); st.Restarts != 0 || d.Peer == nil || d.Peer.Era != servers.EraLegacy {
		t.Errorf("%d restarts, peer %+v; want none, in the legacy era", st.Restarts, d.Peer)
	}
}

// FID-9: a server that computes for longer than a start may be silent is ready at its
// first start, as on a machine that has little time for it.
func TestServerThatComputesLong(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	const compute = `end=$(($(date +%s) + 23)); while [ "$(date +%s)" -lt $end ]; do :; done`
	b.serve("--mcp-config", b.config(map[string]any{"slow": map[string]any{"command": "sh", "args": []string{"-c", compute + pinning}}}))
	eventually.True(t, "the server is ready", func() bool { return b.status().Servers[0].State == "ready" })
	if st := b.status().Servers[0]; st.Restarts != 0 || st.StartTook < 20*time.Second {
		t.Errorf("%d restarts, ready after %v; want none, after more than 20 s", st.Restarts, st.StartTook)
	}
}

// FID-1: a server that speaks one era alone is refused at no later start: what it
// speaks is remembered, and forgotten when the server says otherwise.
func TestErasAreRemembered(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	log := filepath.Join(b.dir, "read")
	for i, start := range []struct{ era, want string }{
		{"modern", "initialize server/discover"},
		{"modern", "server/discover"},
		{"legacy", "server/discover initialize"},
		{"legacy", "initialize"},
	} {
		config := b.config(map[string]any{"s": map[string]any{
			"command": "sh", "args": []string{"-c", pinning}, "env": map[string]string{"ERA": start.era, "LOG": log},
		}})
		b.must("mcp", "tools", "--mcp-config", config)
		data, err := os.ReadFile(log) //nolint:gosec // the test's own
		if err == nil {
			err = os.Remove(log)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			for _, m := range []string{"initialize", "server/discover"} {
				if strings.Contains(line, `"method":"`+m+`"`) {
					got = append(got, m)
				}
			}
		}
		if got := strings.Join(got, " "); got != start.want {
			t.Errorf("start %d, of a server of the %s era: asked %q, want %q", i, start.era, got, start.want)
		}
	}
}

// FID-1, FID-2: servers on the TypeScript SDK, which speak both eras or the modern
// one alone, are met in the era of the client, or of the pipe that clients share.
func TestErasOfTypeScriptServers(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	script, err := filepath.Abs(filepath.Join("testdata", "eras", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	remote := func(legacy string) map[string]any {
		addr := listening(t, func(ctx context.Context, addr string) *exec.Cmd {
			_, port, _ := net.SplitHostPort(addr) // the listener's own
			return exec.CommandContext(ctx, node, script, npmModule(t), legacy, port)
		})
		return map[string]any{"url": "http://" + addr + "/mcp"}
	}
	local := func(legacy, session string) map[string]any {
		return map[string]any{"command": node, "args": []string{script, npmModule(t), legacy}, "session": session}
	}
	want := map[string]struct{ legacy, modern string }{
		"shared": {"legacy", "legacy"}, "own": {"legacy", "modern"}, "alone": {"modern", "modern"},
		"http": {"legacy", "modern"}, "httpshared": {"legacy", "modern"}, "httpalone": {"modern", "modern"},
	}
	shared := remote("both")
	shared["session"] = "shared"
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{
		"shared": local("both", "per_principal"), "own": local("both", "per_client"), "alone": local("reject", "per_principal"),
		"http": remote("both"), "httpshared": shared, "httpalone": remote("reject"),
	}))
	old, recent := newRawClient(t, b.url(), false), newRawClient(t, b.url(), true)
	for name, w := range want {
		for _, c := range []struct {
			client *rawClient
			want   string
		}{{old, w.legacy}, {recent, w.modern}} {
			if got, err := c.client.text(name+"__era", map[string]any{}); err != nil || got != c.want {
				t.Errorf("%s, a modern client: %v: called in the era %q, %v; want %q", name, c.client.modern, got, err, c.want)
			}
		}
	}
}
