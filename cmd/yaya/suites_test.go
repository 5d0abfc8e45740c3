package main

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The scenarios of the modern era that a process cannot pass that several clients share:
// yaya speaks the legacy era to it, so that it can ask the clients of both eras
// (docs/MCP.md). They pass with a process per client, and over HTTP.
var (
	// The SDK's server puts these questions to a legacy client one by one, or not at all
	// if it has no capability for them; and it learns capabilities but once, from yaya.
	sharedTypeScript = []string{
		"server-stateless", "input-required-result-basic-elicitation", "input-required-result-basic-list-roots",
		"input-required-result-capability-check", "input-required-result-multiple-input-requests",
	}
	// The SDK's server refuses to answer a legacy client with what else is needed.
	sharedPython = []string{
		"server-stateless", "input-required-result-basic-elicitation", "input-required-result-basic-list-roots", "input-required-result-basic-sampling",
		"input-required-result-capability-check", "input-required-result-multi-round", "input-required-result-multiple-input-requests",
		"input-required-result-non-tool-request", "input-required-result-request-state", "input-required-result-result-type", "input-required-result-tampered-state",
	}
	// The SDK's server asks a legacy client itself, in another way than the scenarios see.
	sharedGo = []string{
		"server-stateless", "input-required-result-basic-elicitation", "input-required-result-capability-check",
		"input-required-result-multi-round", "input-required-result-multiple-input-requests",
	}
	// The suite waits 600 ms for the first line of an answer. Each of its requests is a
	// client of its own, whose process takes longer to start.
	perClientStarts = []string{"server-stateless"}
)

// FID-2: servers on the TypeScript and Python SDKs with what the conformance suites want
// of them, over both transports, behind a yaya in its default configuration: no scenario
// fails that passes directly.
func TestConformanceOfForeignServers(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	var (
		stable = []string{suiteStable, "--suite", "all"}
		legacy = []string{suiteNext, "--requirements", "2025-11-25"}
		modern = []string{suiteNext, "--requirements", "2026-07-28"}
	)
	for _, server := range []struct {
		name    string
		command []string
		shared  []string
	}{
		{"TypeScript", []string{node, absolute(t, peersJS, "suite.mjs")}, sharedTypeScript},
		{"Python", []string{python(t, "python"), absolute(t, peersPython, "suite.py")}, sharedPython},
	} {
		// Two of them, so that no suite meets what another one changes.
		url, directly := overPort(t, server.command...), overPort(t, server.command...)
		var mu sync.Mutex
		outcomes := map[string]map[string]outcome{}
		direct := func(t *testing.T, run []string) map[string]outcome {
			mu.Lock()
			defer mu.Unlock()
			what := strings.Join(run, " ")
			if outcomes[what] == nil {
				outcomes[what], _ = suite(t, node, run[0], nil, append([]string{"server", "--url", directly}, run[1:]...)...)
			}
			return outcomes[what]
		}
		// It adds tools while a suite runs, which are to be offered at once.
		process := map[string]any{"command": server.command[0], "args": server.command[1:], "prefix": "", "trust": "always"}
		perClient := maps.Clone(process)
		perClient["session"] = "per_client"
		for _, way := range []struct {
			name   string
			server map[string]any
			runs   [][]string
			except []string
		}{
			{"HTTP", map[string]any{"url": url, "prefix": "", "trust": "always"}, [][]string{stable, legacy, modern}, nil},
			{"stdio", process, [][]string{stable, legacy, modern}, server.shared},
			{"stdio, per client", perClient, [][]string{modern}, perClientStarts},
		} {
			t.Run(server.name+" over "+way.name, func(t *testing.T) {
				t.Parallel()
				b := newBox(t)
				b.serve("--mcp-config", b.config(map[string]any{"suite": way.server}))
				b.firstStart([]string{"suite"})
				for _, run := range way.runs {
					what := strings.Join(run, " ")
					want := passing(direct(t, run), way.except)
					if len(want) < 20 {
						t.Errorf("%s: %d scenarios pass directly, want at least 20", what, len(want))
					}
					out := ""
					// The suite has limits of its own, of some 100 ms: on a busy machine it is
					// asked again about what it did not wait for.
					for range 3 {
						var got map[string]outcome
						got, out = suite(t, node, run[0], nil, append([]string{"server", "--url", b.url()}, run[1:]...)...)
						ok := passing(got, nil)
						want = slices.DeleteFunc(want, func(scenario string) bool { return slices.Contains(ok, scenario) })
						if len(want) == 0 {
							break
						}
					}
					if len(want) > 0 {
						t.Errorf("%s: fail, and pass directly: %v\n%s", what, want, out)
					}
				}
			})
		}
	}
}

// passing names the scenarios that pass and check something, without some.
func passing(got map[string]outcome, except []string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name].failed == 0 && got[name].passed > 0 && !slices.Contains(except, name) {
			out = append(out, name)
		}
	}
	return out
}
