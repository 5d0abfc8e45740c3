package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// A session's cost follows from its provider's prices.
func TestPrices(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	model := fakellm.New(fakellm.Step{Text: "hello"})
	t.Cleanup(model.Close)
	b.provider(model)
	b.must("config", "set", "providers.local.input_price", "10")
	b.must("config", "set", "providers.local.output_price", "1000")
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	b.serve()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"hi"}]}`); status != 202 {
		t.Fatalf("got %v, %v, want status 202", status, out)
	}
	b.until(id, "", "turn_completed")
	_, st := b.v1("GET", "/sessions/"+id, "")
	u, _ := st["usage"].(map[string]any)
	// 100 in and 7 out, as the model says.
	if u["input"] != 100.0 || u["output"] != 7.0 || u["cost_usd"] != (10*100.0+1000*7.0)/1e6 {
		t.Errorf("got %v, want input 100.0, output 7.0, cost_usd %v", u, (10*100.0+1000*7.0)/1e6)
	}
}
