package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// onePixel is a PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// An editor works with an agent of yaya, through the daemon and without one: the official client of the
// protocol, which holds every message to the published schema.
func TestACP(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	for _, name := range []string{"daemon", "alone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
			patch, err := json.Marshal("*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch")
			if err != nil {
				t.Fatal(err)
			}
			b.script(`[
				{"match":"^hello","steps":[{"text":"hello from yaya, to a client of the protocol"}]},
				{"match":"^what is","steps":[{"text":"that"}]},
				{"match":"^patch","steps":[{"tool_calls":[{"name":"apply_patch","args":{"patch":` + string(patch) + `}}]},{"text":"done"}]},
				{"match":"^run","steps":[{"tool_calls":[{"name":"shell","args":{"command":"touch made"}}]},{"text":"done"}]},
				{"match":"^read","steps":[{"tool_calls":[{"name":"read_file","args":{"path":"a.txt"}}]},{"text":"done"}]},
				{"match":"^edit","steps":[{"tool_calls":[{"name":"todo","args":{"steps":[{"text":"look","state":"done"},{"text":"edit","state":"doing"}]}}]},{"tool_calls":[{"name":"edit","args":{"path":"a.txt","old_text":"one","new_text":"eins"}}]},{"text":"done"}]},
				{"match":"^who","steps":[{"text":"the first model"}]},
				{"match":"^break","steps":[{"error":{"kind":"status","status_code":400,"message":"no such thing"}}]}]`)
			b.must("provider", "add", "second", "--plugin", "llm-echo", "--set", `script={"steps":[{"text":"the second model"}]}`)
			ws := b.workspace()
			base := ""
			if name == "daemon" {
				b.serve()
				base = "http://" + b.addr
			}
			raw, err := json.Marshal(map[string]any{"base": base, "yaya": b.bin, "args": b.args(), "workspace": ws, "modules": npmModule(t), "picture": onePixel})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "acp.mjs"))
			cmd.Env = append(b.environ(), "SCENARIO="+string(raw))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("acp.mjs = %v, want no error\n%s", err, out)
			}
		})
	}
}
