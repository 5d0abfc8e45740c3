package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/gateway/admin"
)

// The inbox shows what would run, takes answers by pointer and by keys, and says how questions
// have ended.
func TestPageApprovals(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	yes := true
	at := changing(t, func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "weather", Description: "Tells the weather.", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}}, answers("sunny"))
	})
	b.must("mcp", "add", "srv", at)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	b.must("config", "set", "approval.timeout", "5m")
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"ask","reason":"echoes ask"}]`)
	patch, err := json.Marshal("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one more line\n+ONE more line\n two\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n")
	if err != nil {
		t.Fatal(err)
	}
	b.script(fmt.Sprintf(`[
		{"match":"^command","steps":[{"tool_calls":[{"name":"shell","args":{"command":"echo \"a & b\" <x>"}}]}]},
		{"match":"^server","steps":[{"tool_calls":[{"name":"srv__weather","args":{"city":"Ulm & around"}}]}]},
		{"match":"^patch","steps":[{"tool_calls":[{"name":"apply_patch","args":{"patch":%s}}]}]}
	]`, patch))
	b.serve()
	b.server("srv", "ready")
	zh, err := filepath.Abs("../../gateway/dashboard/page/zh.json")
	if err != nil {
		t.Fatal(err)
	}
	ws := b.workspace()
	if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("one more line\ntwo\n"), 0o600); err != nil { // of which the patch is
		t.Fatal(err)
	}
	b.scenario("approvals", map[string]any{"workspace": ws, "zh": zh}, map[string]func(string) (any, error){
		"answer": func(string) (any, error) {
			var asks []admin.Ask
			b.admin("GET", "/approvals", "", http.StatusOK, &asks)
			b.admin("POST", "/approvals/"+asks[0].ID, `{"response":"approve_for_session"}`, http.StatusOK, nil)
			return nil, nil
		},
		"short": func(string) (any, error) {
			_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q,"approval_timeout_seconds":1}`, ws))
			if code, out := b.v1("POST", fmt.Sprintf("/sessions/%s/messages", out["session_id"]), `{"role":"user","parts":[{"type":"text","text":"command"}],"delivery":"queue"}`); code != http.StatusAccepted {
				return nil, fmt.Errorf("%d %v", code, out)
			}
			return nil, nil
		},
	})
}
