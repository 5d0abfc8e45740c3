package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// SEC-3, R18: a server that a folder brings is started only as it was trusted: when its script
// changes it is not started again, and when the folder is trusted with another one, that
// one runs instead.
func TestChangedProjectServer(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.cwd = filepath.Join(b.dir, "ws")
	if err := os.MkdirAll(b.cwd, 0o755); err != nil {
		t.Fatal(err)
	}
	script := func(name string) {
		t.Helper()
		const server = `echo $$ > %s
while read -r line; do
id=$(printf '%%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}' ;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done
`
		if err := os.WriteFile(filepath.Join(b.cwd, "srv.sh"), fmt.Appendf(nil, server, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"ours":{"command":"sh","args":["srv.sh"],"protocolEra":"legacy","sandbox":{"write":["."]}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	script("first")
	b.must("trust", "--yes", b.cwd)
	b.serve()
	state := func(want string) admin.Server {
		t.Helper()
		var all []admin.Server
		eventually.True(t, "the server is "+want, func() bool {
			b.admin("GET", "/mcp/servers", "", 200, &all)
			return len(all) == 1 && all[0].State == want
		})
		return all[0]
	}
	runs := func(file string) bool { return there(t, filepath.Join(b.cwd, file)) }
	state("ready")
	script("second")
	b.admin("POST", "/mcp/servers/ours/restart", "", 204, nil)
	if got := state("failed"); !strings.Contains(got.Reason+got.LastError, "yaya trust "+b.cwd) || runs("second") {
		t.Errorf("state %q, want the remedy; the changed script has run: %v", got.Reason+got.LastError, runs("second"))
	}
	b.must("trust", "--yes", b.cwd)
	eventually.True(t, "the script that was trusted runs", func() bool { return runs("second") })
	state("ready")
	b.must("trust", "revoke", b.cwd)
	state("waiting")
	if out := b.must("audit", "--json"); !strings.Contains(out, "folder_revoked") {
		t.Errorf("the audit is %s, want folder_revoked in it", out)
	}
}
