package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// watchPlugin is a guard in plain Python, which denies calls that say so.
const watchPlugin = `import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m or "method" not in m:
        continue
    reply = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        with open(os.path.join(m["params"]["state_dir"], "pid"), "w") as out:
            out.write(str(os.stat("/proc/self").st_ctime_ns))
        reply["result"] = {"abi": 1, "name": "watch", "version": "1.0.0", "category": "skill", "guards": ["pre_tool"]}
    elif m["method"] == "guard" and m["params"]["point"] == "pre_tool":
        deny = "forbidden" in json.dumps(m["params"]["call"]["args"])
        reply["result"] = {"decision": "deny", "reason": "watched"} if deny else {"decision": "allow"}
    elif m["method"] == "health":
        reply["result"] = {"status": "ok", "summary": "watching"}
    elif m["method"] == "shutdown":
        reply["result"] = {}
    else:
        reply["error"] = {"code": -32601, "message": "unknown method"}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
`

// watch makes the folder of the guard.
func (b *box) watch() string {
	b.t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		b.t.Skip("python3 is not here")
	}
	dir := filepath.Join(b.dir, "watch")
	toml := `name = "watch"
version = "1.0.0"
category = "skill"
description = "Watches calls."
run = ["python3", "main.py"]
[permissions]
network = ["api.example.com"]
guards = ["pre_tool"]
`
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "plugin.toml"), []byte(toml), 0o600), os.WriteFile(filepath.Join(dir, "main.py"), []byte(watchPlugin), 0o600)); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// The page shows plugins, hooks and skills, and reloads a plugin.
func TestPagePlugins(t *testing.T) {
	t.Parallel()
	needPeers(t)
	b := newBox(t)
	from := b.watch()
	skill := filepath.Join(b.dir, "c", "skills", "notes")
	hooks := "[[hooks]]\nname = \"no-push\"\nevent = \"pre_tool\"\ntool = \"shell\"\ncommand = \"if grep -q push; then exit 2; fi\"\n"
	if err := errors.Join(
		os.MkdirAll(skill, 0o700), os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte("---\nname: notes\ndescription: Writes release notes.\n---\nList what has changed.\n"), 0o600),
		os.WriteFile(filepath.Join(b.dir, "c", "hooks.toml"), []byte(hooks), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.must("plugin", "install", "--yes", "--editable", from)
	write := func(text string) error { return os.WriteFile(filepath.Join(from, "main.py"), []byte(text), 0o600) }
	b.scenario("plugins", map[string]any{"source": from}, map[string]func(string) (any, error){
		"break": func(string) (any, error) {
			return nil, write("import sys\nprint('no license', file=sys.stderr)\nsys.exit(1)\n")
		},
		"mend": func(string) (any, error) { return nil, write(watchPlugin) },
		"pid": func(string) (any, error) {
			raw, err := os.ReadFile(filepath.Join(b.dir, "d", "plugins", "watch", "state", "pid"))
			return string(raw), err
		},
		"reloads": func(string) (any, error) { return strings.Count(b.must("audit", "--json"), "plugin_reloaded"), nil },
	})
}

// R26, PL-03: a guard is seen before its installation, and guards calls of agents, of the command
// line and of MCP clients, with a daemon and without. It denies while it does not start.
func TestGuardingPlugin(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	from := b.watch()
	if out := b.unasked("plugin", "install", from); !strings.Contains(out, "guards calls of tools: it sees each with its arguments") {
		t.Errorf("plugin install says\n%swant that it guards", out)
	}
	if out := b.must("plugin", "test", from); strings.Contains(out, "FAIL") || !strings.Contains(out, "decides as a guard") {
		t.Errorf("plugin test says\n%swant its guard checked, and no failures", out)
	}
	b.must("plugin", "install", "--yes", from)
	if out := b.must("plugin", "list"); !strings.Contains(out, "skill, guards pre_tool") {
		t.Errorf("plugin list says\n%swant that it guards", out)
	}
	free, forbidden := `/tool read_artifact {"id":"free"}`, `/tool read_artifact {"id":"forbidden"}`
	if out := b.must("run", free); strings.Contains(out, "denied") {
		t.Errorf("run says\n%swant no denial", out)
	}
	if out := b.must("run", forbidden); !strings.Contains(out, "denied: plugin watch: watched") {
		t.Errorf("run says\n%swant the denial", out)
	}
	// A process without agents has it as well.
	config := b.config(map[string]any{"s": map[string]any{"command": buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")}})
	serve := func(text string) string {
		t.Helper()
		c := b.stdioClient("--mcp-config", config)
		c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		c.next()
		c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__echo","arguments":{"text":%q}}}`, text)
		return c.next()
	}
	if out := serve("free"); strings.Contains(out, "denied") {
		t.Errorf("mcp serve says %s, want no denial", out)
	}
	if out := serve("forbidden"); !strings.Contains(out, "plugin watch: watched") {
		t.Errorf("mcp serve says %s, want the denial", out)
	}
	// Its files are changed behind yaya's back, so that it would guard nothing: it does not
	// start, and denies.
	for name, text := range map[string]string{"main.py": strings.Replace(watchPlugin, `, "guards": ["pre_tool"]`, "", 1), "plugin.toml": "name = \"watch\"\nversion = \"1.0.0\"\ncategory = \"skill\"\nrun = [\"python3\", \"main.py\"]\n"} {
		if err := os.WriteFile(filepath.Join(b.dir, "d", "plugins", "watch", "1.0.0", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := b.must("run", free); !strings.Contains(out, "plugin watch guards calls of tools, and it is not running: its files have changed") {
		t.Errorf("run says\n%swant the call denied", out)
	}
	if out := serve("free"); !strings.Contains(out, "its files have changed") {
		t.Errorf("mcp serve says %s, want the call denied", out)
	}
	// Not even its installation can be read: it is listed, and denies until it is installed again.
	if err := os.WriteFile(filepath.Join(b.dir, "d", "plugins", "watch", "plugin.lock"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.must("run", free); !strings.Contains(out, "plugin watch guards calls of tools, and it is not running: it has guarded, and its installation cannot be read") {
		t.Errorf("run says\n%swant the call denied", out)
	}
	if out := b.must("plugin", "list"); !strings.Contains(out, "install it again") {
		t.Errorf("plugin list says\n%swant how to go on", out)
	}
	b.must("plugin", "install", "--yes", from)
	if out := b.must("run", free); strings.Contains(out, "denied") {
		t.Errorf("run says\n%swant no denial", out)
	}
	b.must("plugin", "remove", "watch")
	if out := b.must("run", free); strings.Contains(out, "watch") {
		t.Errorf("run says\n%swant no guard", out)
	}
	b.serve()
	b.must("plugin", "install", "--yes", from)
	if out := b.must("run", forbidden); !strings.Contains(out, "denied: plugin watch: watched") {
		t.Errorf("run says\n%swant the denial", out)
	}
	if out := b.must("audit", "--json"); !strings.Contains(out, "guard_denied") || !strings.Contains(out, "plugin watch: watched") {
		t.Errorf("the audit has\n%swant the denial", out)
	}
}
