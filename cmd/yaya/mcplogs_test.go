package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/linelog"
)

// A server that floods its standard error loses lines of its log: the log says how many.
func TestLogsSayWhatTheyDropped(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	program := `i=0; while [ $i -lt 2500 ]; do i=$((i+1)); echo "flood $i" >&2; done
while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}' ;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done
`
	b.serve("--mcp-config", b.config(map[string]any{"loud": map[string]any{"command": "sh", "args": []string{"-c", program}}}))
	const dropped = "lines that came before this were dropped: yaya keeps the last 2000 lines of a server"
	var out string
	eventually.True(t, "the whole flood is in the log", func() bool {
		out = b.must("mcp", "logs", "loud", "-n", "2000", "--json")
		return strings.Contains(out, `"flood 2500"`)
	})
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var first, second linelog.Line
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[1]), &second); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2001 || first.Stream != "yaya" || !strings.Contains(first.Text, dropped) || first.ID+1 != second.ID || !strings.HasPrefix(second.Text, "flood ") {
		t.Errorf("got %d lines from %+v, %+v on, want 2001, the first of them about %q", len(lines), first, second, dropped)
	}
	if out := b.must("mcp", "logs", "loud", "-n", "5"); strings.Contains(out, dropped) {
		t.Errorf("the last 5 lines: got %q, want nothing about lines that nobody asked for", out)
	}
	follow := b.daemon("mcp", "logs", "-f", "loud", "-n", "2000")
	eventually.True(t, "a follower is told, too", func() bool { return strings.Contains(follow.said.String(), dropped) })
}
