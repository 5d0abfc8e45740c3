package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// The conformance suites that are run, by the name that their package has here.
const (
	suiteStable = "conformance-0.1.16"
	suiteNext   = "conformance-0.2"
)

// outcome is a suite's result for a scenario.
type outcome struct{ passed, failed int }

var summaryLine = regexp.MustCompile(`(?m)^[✓✗] (\S+): (\d+) passed, (\d+) failed`)

// suite runs a conformance suite and returns its verdicts by scenario, and all
// that it said, under the checks that failed.
func suite(t *testing.T, node, version string, env []string, args ...string) (map[string]outcome, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	main, err := filepath.Abs(filepath.Join(peers, version, "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	cmd := exec.CommandContext(ctx, node, append(append([]string{main}, args...), "--output-dir", results)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput() // its status counts what is not scored, too
	got := map[string]outcome{}
	for _, m := range summaryLine.FindAllStringSubmatch(string(out), -1) {
		passed, _ := strconv.Atoi(m[2])
		failed, _ := strconv.Atoi(m[3])
		got[m[1]] = outcome{passed, failed}
	}
	if len(got) == 0 {
		t.Fatalf("%s %v said nothing: %v\n%s", version, args, err, out)
	}
	return got, failedChecks(t, results) + string(out)
}

// failedChecks reads what a suite wrote about its checks, and returns those that failed
// with the reason of each: its summary only counts them.
func failedChecks(t *testing.T, results string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(results, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // the test's own
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			return err
		}
		for _, c := range checks {
			if c.Status == "FAILURE" {
				fmt.Fprintf(&out, "%s: %s\n", c.ID, c.ErrorMessage)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("read the suite's checks: %v", err)
	}
	return out.String()
}

// failures names the scenarios that did not pass.
func failures(got map[string]outcome) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name].failed > 0 {
			out = append(out, fmt.Sprintf("%s (%d of %d)", name, got[name].failed, got[name].failed+got[name].passed))
		}
	}
	return out
}

// vacuous names the scenarios that checked nothing.
func vacuous(got map[string]outcome) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] == (outcome{}) {
			out = append(out, name)
		}
	}
	return out
}

// config writes a file with servers and returns its path.
func (b *box) config(servers map[string]any) string {
	b.t.Helper()
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.dir, "servers.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// legacyAsks are the tools whose server can ask its client only in the legacy era, as
// the fixture of the official SDK is written.
var legacyAsks = []string{"test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"}

// A yaya serves both eras, with every feature of the protocol and the Tasks extension:
// both suites, every scenario there is, scored or not. Each run has a yaya of its own,
// so that they run side by side: the suites wait most of their time.
func TestConformanceServer(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	everything := buildTool(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	servers := map[string]any{
		// It adds a tool while the suite runs, which is to be offered at once.
		"modern": map[string]any{"command": everything, "prefix": "", "protocolEra": "modern", "trust": "always", "disabled_tools": legacyAsks},
		"legacy": map[string]any{"command": everything, "prefix": "", "protocolEra": "legacy", "enabled_tools": legacyAsks},
		"tasks":  map[string]any{"command": buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/taskserver"), "prefix": ""},
	}
	for _, run := range []struct {
		suite, what string
		scenarios   int
		vacuous     []string
	}{
		{suiteStable, "--suite all", 32, []string{"server-sse-polling"}},
		// The suite leaves two scenarios unchecked: closing a stream in the middle of
		// a call is a server's choice, and the one for task notifications is empty.
		{suiteNext, "--suite all", 65, []string{"server-sse-polling", "tasks-status-notifications"}},
		{suiteNext, "--requirements 2025-11-25", 33, []string{"server-sse-polling"}},
		{suiteNext, "--requirements 2026-07-28", 50, []string{"tasks-status-notifications"}},
	} {
		t.Run(run.suite+" "+run.what, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.serve("--mcp-config", b.config(servers))
			got, out := suite(t, node, run.suite, nil, append([]string{"server", "--url", b.url()}, strings.Fields(run.what)...)...)
			if bad := failures(got); len(bad) > 0 {
				t.Errorf("failed: %v\n%s", bad, out)
			}
			if len(got) != run.scenarios {
				t.Errorf("%d scenarios, want %d", len(got), run.scenarios)
			}
			if v := vacuous(got); !slices.Equal(v, run.vacuous) {
				t.Errorf("scenarios that check nothing: %v, want %v", v, run.vacuous)
			}
		})
	}
}

// A foreign server behind yaya, its names untouched, is as conformant as it is
// when it is reached directly: the official SDK's own fixture, in both eras, over
// both transports.
func TestConformanceThroughTheGateway(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	everything := buildTool(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	for _, era := range []struct{ name, revision, stateless string }{
		{"legacy", "2025-11-25", "-stateless=false"}, {"modern", "2026-07-28", "-stateless=true"},
	} {
		t.Run(era.name, func(t *testing.T) {
			t.Parallel()
			url := "http://" + listening(t, func(ctx context.Context, addr string) *exec.Cmd {
				return exec.CommandContext(ctx, everything, "-http", addr, era.stateless)
			}) + "/mcp"
			direct, _ := suite(t, node, suiteNext, nil, "server", "--url", url, "--requirements", era.revision)
			for name, server := range map[string]map[string]any{
				"http":  {"url": url, "prefix": ""},
				"stdio": {"command": everything, "prefix": "", "protocolEra": era.name},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					b := newBox(t)
					b.serve("--mcp-config", b.config(map[string]any{"fixture": server}))
					got, out := suite(t, node, suiteNext, nil, "server", "--url", b.url(), "--requirements", era.revision)
					if len(got) != len(direct) {
						t.Errorf("%d scenarios, directly %d", len(got), len(direct))
					}
					for scenario, d := range direct {
						if g := got[scenario]; g.failed > d.failed {
							t.Errorf("%s: %d checks fail, directly %d\n%s", scenario, g.failed, d.failed, out)
						}
					}
				})
			}
		})
	}
}

// waitFor waits until something listens.
func waitFor(t *testing.T, addr string) {
	t.Helper()
	// It may be an interpreter that loads much, beside others that do: see firstStart.
	for deadline := time.Now().Add(3 * eventually.Limit); ; time.Sleep(10 * time.Millisecond) {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v until the deadline, want an answer", err)
		}
	}
}

// yaya as a client, as a person uses it: the binary is configured for the suite's
// server, logs in with a browser, and is reached through its own stdio face. Both
// suites, every scenario there is, scored or not.
//
// It runs alone: the suite starts dozens of them at once, and has limits of its own.
func TestConformanceClient(t *testing.T) {
	node := needPeers(t)
	driver := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/client")
	env := []string{"YAYA_CONFORMANCE_BINARY=" + binary(t)}
	// The suite has no checks in these: yaya reads no skills from servers.
	skills := []string{"sep-2640-client-no-prefetch", "sep-2640-client-verify-digest", "sep-2640-client-verify-frontmatter", "sep-2640-client-verify-size"}
	// Its authorization server says that it is another issuer than the one it was
	// found by; RFC 8414 §3.3 and the newer suite (auth/metadata-issuer-mismatch)
	// demand that this is refused.
	const wrongIssuer = "auth/2025-03-26-oauth-metadata-backcompat"
	for _, run := range []struct {
		suite, what string
		scenarios   int
		vacuous     []string
		refused     string
	}{
		{suiteStable, "--suite all", 26, nil, wrongIssuer},
		{suiteNext, "--suite all", 48, skills, ""},
		{suiteNext, "--requirements 2025-11-25", 25, nil, ""},
		{suiteNext, "--requirements 2026-07-28", 39, nil, ""},
	} {
		t.Run(run.suite+" "+run.what, func(t *testing.T) {
			got, out := suite(t, node, run.suite, env, append([]string{"client", "--command", driver, "--timeout", "300000"}, strings.Fields(run.what)...)...)
			if run.refused != "" {
				if !strings.Contains(out, "does not match issuer URL") {
					t.Errorf("%s was not refused for its issuer", run.refused)
				}
				got[run.refused] = outcome{passed: 1}
			}
			if bad := failures(got); len(bad) > 0 {
				t.Errorf("failed: %v\n%s", bad, out)
			}
			if len(got) != run.scenarios {
				t.Errorf("%d scenarios, want %d", len(got), run.scenarios)
			}
			if v := vacuous(got); !slices.Equal(v, run.vacuous) {
				t.Errorf("scenarios that check nothing: %v, want %v", v, run.vacuous)
			}
		})
	}
}
