package sessions_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/gateway/api/openapitest"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Requests made from the OpenAPI document, good ones and bad ones, are answered as it
// says: never with an error of the server's, never with a status or a body that it
// does not have.
func TestOpenAPIFuzz(t *testing.T) {
	w := newWorld(t, "", func(c *sessions.Config) { c.Servers = &library{read: tool.OK("", tool.Text("a text"))} })
	rounds := 150
	if testing.Short() {
		rounds = 10
	}
	openapitest.Fuzz(t, openapitest.API{
		Document: "/v1/openapi.json", Do: w.raw, ID: func() string { return w.create() }, Named: []string{"session_id"},
		Skip: func(r *rand.Rand, op string) bool {
			return op == "streamEvents" || (op == "archiveSession" && r.IntN(5) > 0) || (op == "deleteSession" && r.IntN(10) > 0) // or few are left for the others
		},
		Whole: func(r *rand.Rand, op string) string {
			if op == "postMessage" && r.IntN(3) == 0 {
				return `{"role":"user","parts":[{"type":"text","text":"hello"}],"on_busy":"interrupt"}`
			}
			return ""
		},
		Body: func(r *rand.Rand, _ string, o map[string]any) {
			if _, has := o["workspace_path"]; has && r.IntN(3) > 0 {
				o["workspace_path"] = os.TempDir()
			}
			if _, has := o["parts"]; has && r.IntN(2) == 0 {
				o["parts"], o["role"] = []any{map[string]any{"type": "text", "text": "hello"}}, "user"
			}
			if _, has := o["message_ids"]; has && r.IntN(2) == 0 {
				o["message_ids"] = []any{}
			}
		},
		After: func(ids []string) {
			for _, id := range ids { // what runs has to end some time
				_, _, _ = w.raw("POST", "/v1/sessions/"+id+"/cancel", "")
			}
		},
		Rare: []string{"decide", "getAttachment", "getArtifact", "retryTurn", "attach", "cancelTurn", "undo", "compactSession"},
	}, rounds)
	if entries, err := os.ReadDir(filepath.Dir(w.dir)); err != nil || len(entries) > 3 {
		t.Errorf("something lies where it should not: %v %v", entries, err)
	}
}
