package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// fakeRunners puts npx and uvx in front of PATH. npx downloads until the file go is
// there, and is a server with one tool then; uvx finds no package.
func (b *box) fakeRunners() {
	b.t.Helper()
	bin := filepath.Join(b.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for name, script := range map[string]string{
		"npx": `#!/bin/sh
echo run >> "%[1]s/runs"
env > "%[1]s/env"
echo "npm http fetch GET 200 left-pad" >&2
while [ ! -e "%[1]s/go" ]; do sleep 0.05; done
while read -r line; do
id=$(printf '%%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"called t"}]}}' ;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done
`,
		"uvx": `#!/bin/sh
echo "Downloading cpython-3.13" >&2
echo "error: no solution found for nope" >&2
echo "  hint: A complete log of this run can be found in: %[1]s/log" >&2
exit 1
`,
	} {
		writeProgram(b.t, filepath.Join(bin, name), fmt.Sprintf(strings.ReplaceAll(script, "%[1]s/log", "/log"), b.dir))
	}
	b.env = append(b.env, "PATH="+bin+":"+os.Getenv("PATH"))
	config := filepath.Join(b.dir, "c")
	if err := os.MkdirAll(config, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "mcp.json"), []byte(`{"mcpServers":{
		"bad":{"command":"uvx","args":["nope"]},
		"off":{"command":"uvx","args":["nope"],"disabled":true},
		"slow":{"command":"sh","args":["-c","exec npx -y left-pad"]}}}`), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// FID-9, USE-10: the page shows what installs as it goes, names the servers that do
// not work first, and says how many it does not name.
func TestPageStarts(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.fakeRunners()
	more := `{"mcpServers":{"slow":{"command":"npx"},"bad":{"command":"uvx"}`
	for i := range 8 {
		more += fmt.Sprintf(`,"off%d":{"command":"uvx","disabled":true}`, i)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "c", "mcp.json"), []byte(more+"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.server("slow", "installing")
	b.scenario("starts", nil, map[string]func(string) (any, error){"go": func(string) (any, error) {
		return nil, os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600)
	}})
}

func (b *box) write(name string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// server returns a server's row of the API when it is in a state.
func (b *box) server(name, state string) (s admin.Server) {
	b.t.Helper()
	eventually.True(b.t, name+" is "+state, func() bool {
		var all []admin.Server
		b.admin("GET", "/mcp/servers", "", 200, &all)
		i := slices.IndexFunc(all, func(s admin.Server) bool { return s.Name == name })
		if i >= 0 {
			s = all[i]
		}
		return s.State == state
	})
	return s
}

// FID-9, FID-10, USE-10: a server that has to be downloaded is shown as what it is, in
// the same words everywhere, and is there in the end without having been started
// twice; what was configured behind a proxy reaches it.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.fakeRunners()
	b.env = append(
		b.env, "HTTPS_PROXY=http://u:p@proxy.example:3128", "SSL_CERT_FILE=/etc/company.pem", "UV_DEFAULT_INDEX=https://u:p@pypi.example/simple",
		"NAMED=by pass_env", "UNNAMED=secret",
	)
	b.must("config", "set", "servers.pass_env", `["NAMED","LD_PRELOAD"]`)
	b.serve()

	if s := b.server("slow", "installing"); s.Reason != "npm http fetch GET 200 left-pad" || s.Tools != 0 {
		t.Errorf("slow has %d tools and says %q, want what npx said", s.Tools, s.Reason)
	}
	b.server("off", "disabled")
	bad := b.server("bad", "failed")
	if want := "it said: error: no solution found for nope"; !strings.HasSuffix(bad.Reason, want) {
		t.Errorf("bad is failed because of %q, want %q", bad.Reason, want)
	}
	if !strings.Contains(bad.Stderr, "Downloading cpython") || !strings.Contains(bad.Stderr, "A complete log") {
		t.Errorf("its standard error is %q, want all of it", bad.Stderr)
	}
	list := b.must("mcp", "list")
	for _, want := range []string{"slow is installing: npm http fetch GET 200 left-pad", "error: no solution found for nope", "    Downloading cpython-3.13"} {
		if !strings.Contains(list, want) {
			t.Errorf("mcp list does not say %q:\n%s", want, list)
		}
	}
	words := func(list, name string) []string {
		for line := range strings.Lines(list) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == name {
				return f
			}
		}
		t.Fatalf("mcp list has no %s:\n%s", name, list)
		return nil
	}
	if got := words(list, "off"); got[2] != "disabled" {
		t.Errorf("off is %s in mcp list, want disabled", got[2])
	}
	if got := words(list, "slow"); got[2] != "installing" {
		t.Errorf("slow is %s in mcp list, want installing", got[2])
	}

	b.write("go")
	if s := b.server("slow", "ready"); s.Restarts != 0 || s.Reason != "" || s.Tools != 1 {
		t.Errorf("slow is ready after %d restarts with %d tools and says %q, want 0, 1 and nothing", s.Restarts, s.Tools, s.Reason)
	}
	if list := b.must("mcp", "list"); strings.Contains(list, "slow is") {
		t.Errorf("mcp list goes on about slow:\n%s", list)
	}
	if out := b.must("mcp", "call", "slow__t"); !strings.Contains(out, "called t") {
		t.Errorf("a call: %s", out)
	}
	if runs := read(t, filepath.Join(b.dir, "runs")); runs != "run\n" {
		t.Errorf("npx was started as often as %q says, want once", runs)
	}
	env := read(t, filepath.Join(b.dir, "env"))
	for _, want := range []string{"HTTPS_PROXY=http://u:p@proxy.example:3128\n", "SSL_CERT_FILE=/etc/company.pem\n", "UV_DEFAULT_INDEX=https://u:p@pypi.example/simple\n", "NAMED=by pass_env\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	if strings.Contains(env, "UNNAMED=") {
		t.Error("the environment has what nobody named")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
