package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// USE-12: a chat shows servers, tools, skills, sub-agents and the cost, and trusts a folder, with a daemon and
// without one. The audit has the trust.
func TestChatOverviews(t *testing.T) {
	t.Parallel()
	for name, serves := range map[string]bool{"with a daemon": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
			raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"docs": map[string]any{"command": "sh", "args": []string{"-c", hostileLibrary}}}})
			if err != nil {
				t.Fatal(err)
			}
			b.edit("mcp.json", string(raw))
			b.must("config", "set", "budget.session_cents", "200")
			ws := filepath.Join(b.dir, "ws")
			for file, content := range map[string]string{
				".yaya/agents/reviewer.md":   "---\ndescription: Reviews changes.\n---\nReview.\n",
				".yaya/agents/bad.md":        "---\ndescription: Bad.\ntools: Bash\n---\nBad.\n",
				".yaya/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies up.\n---\nTidy.\n",
			} {
				at := filepath.Join(ws, file)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if serves {
				b.serve()
			}
			p := b.pty("chat", "--workspace", ws)
			p.wait("idle")
			p.say("/skills")
			p.wait("tidy  not used: the folder")
			p.say("/trust")
			p.wait("skill .yaya/skills/tidy")
			p.wait("/trust yes trusts the folder")
			p.say("/trust yes")
			p.wait("is trusted")
			p.say("/skills")
			p.wait("tidy  Tidies up.")
			p.say("/agents")
			p.wait("reviewer  Reviews changes.")
			p.wait(`bad       not used: tools has "Bash"`)
			p.say("/mcp")
			p.wait("1 MCP server")
			p.wait("docs  ready")
			p.say("/tools")
			p.wait("yaya: agent*, apply_patch*")
			p.say("/cost")
			p.wait("of $2.00 (budget.session_cents)")
			p.wait("all sessions today (UTC): $0.0000 without a limit")
			p.say("/trust no")
			p.wait("is restricted")
			p.keys("\x03")
			p.keys("\x03")
			p.end()
			if out := b.must("audit"); !strings.Contains(out, "folder_trusted") || !strings.Contains(out, "folder_revoked") {
				t.Errorf("the audit is\n%s\nwant that the folder was trusted, and revoked", out)
			}
		})
	}
}
