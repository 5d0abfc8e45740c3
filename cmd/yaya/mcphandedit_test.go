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

func (b *box) mcpFile() string {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "c", "mcp.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

// A command that changes the file keeps the user's edits by hand that yaya has not taken
// over because of a mistake elsewhere in the file.
func TestHandEditsAreNotLost(t *testing.T) {
	b := newBox(t)
	command, _ := b.recorded("one")
	b.must(append([]string{"mcp", "add", "one"}, command...)...)
	b.serve()
	b.waitState("one", "ready")
	edited := func(disabled string) string {
		return fmt.Sprintf("{\n  \"mcpServers\": {\n    // mine\n    \"one\": {\"command\": \"sh\",   \"args\": [%q, %q], \"env\": {\"EDITED\": \"1\"}%s},\n    \"two\": {\"command\": 5}, // not yet\n  }\n}\n", command[1], command[2], disabled)
	}
	b.edit("mcp.json", edited(""))
	eventually.True(t, "the file is refused", func() bool {
		var notices []admin.Notice
		b.admin("GET", "/notices", "", 200, &notices)
		return len(notices) == 1
	})

	var ch admin.Change
	b.admin("PUT", "/mcp/servers/one", `{"config":{"command":"sh","args":["-c","true"]}}`, 202, &ch)
	if status, raw, _ := b.raw("POST", "/api/mcp/changes/"+ch.ID+"/apply", ""); status != 409 || !strings.Contains(string(raw), "yaya reload") {
		t.Errorf("a change over an edit by hand: got %d %s, want 409 and yaya reload", status, raw)
	}
	b.admin("POST", "/mcp/servers", `{"name":"two","config":{"command":"sh"}}`, 202, &ch)
	if status, raw, _ := b.raw("POST", "/api/mcp/changes/"+ch.ID+"/apply", ""); status != 409 || !strings.Contains(string(raw), "yaya reload") {
		t.Errorf("a new server over one that was added by hand: got %d %s, want 409 and yaya reload", status, raw)
	}
	if got := b.mcpFile(); got != edited("") {
		t.Fatalf("the file is\n%s\nwant\n%s", got, edited(""))
	}

	b.must("mcp", "disable", "one")
	if got, want := b.mcpFile(), edited(`, "disabled": true`); got != want {
		t.Errorf("after disable the file is\n%s\nwant\n%s", got, want)
	}
	b.must("mcp", "enable", "one")
	if got, want := b.mcpFile(), edited(`, "disabled": false`); got != want {
		t.Errorf("after enable the file is\n%s\nwant\n%s", got, want)
	}
	b.waitState("one", "ready")
	if out := b.must("mcp", "get", "one"); !strings.Contains(out, "EDITED") {
		t.Errorf("the server does not run as it is in the file: %s", out)
	}
	if out, err := b.run("mcp", "disable", "two"); exitCode(err) != 1 || !strings.Contains(out, "two") {
		t.Errorf("an entry that cannot be read was switched: %v, %s", err, out)
	}
}
