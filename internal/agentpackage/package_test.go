package agentpackage

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// skill is a skill of that name.
func skill(name string) string {
	return "---\nname: " + name + "\ndescription: Does it. Use it always.\n---\nDo it.\n"
}

const schemaPart = `"$schema":"` + pluginSchema + `"`

// reads reads a package of these files.
func reads(files map[string]string) (Package, error) {
	wanted := map[string][]byte{}
	for name, text := range files {
		if Wanted(name) {
			wanted[name] = []byte(text)
		}
	}
	return Read(slices.Sorted(maps.Keys(files)), wanted)
}

func serverNames(p Package) (out []string) {
	for _, s := range p.Servers {
		out = append(out, s.Name)
	}
	return out
}

// entry returns the entry of a server of a package in /p that writes in /d.
func entry(t *testing.T, p Package, name string) (out map[string]any) {
	t.Helper()
	i := slices.IndexFunc(p.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no server %s in %v; faults: %q", name, serverNames(p), p.Faults)
	}
	raw, err := p.Servers[i].Entry("/p", "/d")
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Agent Plugins 1.0.0: fixed places, the two variables and no others, what is broken left out alone.
func TestPortable(t *testing.T) {
	p, err := reads(map[string]string{
		"plugin.json": `{` + schemaPart + `,"name":"acme.tools","version":"1.2.0","description":"Tools","keywords":["a"],"author":{"name":"A"},"mine":1,
			"extensions":{"com.yaya.agent":{"sandbox":{"local":{"hosts":["api.example.com"]}}},"com.other":7}}`,
		"mcp.json": `{"$schema":"` + mcpSchema + `","mcpServers":{
			"local":{"type":"stdio","command":"./bin/server","args":["${PLUGIN_ROOT}/a","${HOME}","$PLUGIN_DATA"],"env":{"X":"${PLUGIN_DATA}/x"},"cwd":"./data"},
			"named":{"type":"stdio","command":"node"},
			"far":{"type":"streamable-http","url":"https://example.com/mcp","headers":{"X-A":"${HOME}"}},
			"old":{"type":"sse","url":"http://localhost:1/sse"},
			"plain":{"type":"streamable-http","url":"http://example.com/mcp"},
			"outside":{"type":"stdio","command":"../x"},
			"dir":{"type":"stdio","command":"x","cwd":"data"},
			"climbs":{"type":"stdio","command":"x","cwd":"${PLUGIN_DATA}/../y"},
			"mine":{"type":"stdio","command":"x","sandbox":{"profile":"off"}},
			"sets":{"type":"stdio","command":"x","env":{"PLUGIN_ROOT":"/"}},
			"user":{"type":"sse","url":"https://a@example.com/"},
			"untyped":{"command":"x"}}}`,
		"skills/deploy/SKILL.md":       skill("deploy"),
		"skills/other/SKILL.md":        skill("another"),
		"skills/deep/er/SKILL.md":      skill("er"),
		"com.yaya.agent/hooks.toml":    "[[hooks]]\nevent = \"pre_tool\"\ncommand = \"true\"\n",
		"hooks/hooks.json":             `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"false"}]}]}}`,
		"node_modules/x/package.json":  `{`,
		"node_modules/x/skills/a.json": `{`,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.Format != AgentPlugins || p.Name != "acme-tools" || p.Version != "1.2.0" || p.Description != "Tools" {
		t.Errorf("it is %s %s %s %q", p.Format, p.Name, p.Version, p.Description)
	}
	if got, want := serverNames(p), []string{"far", "local", "named", "old"}; !slices.Equal(got, want) {
		t.Errorf("servers %q, want %q", got, want)
	}
	if len(p.Faults) != 9 { // eight servers and a skill with another name than its folder
		t.Errorf("%d faults: %q", len(p.Faults), p.Faults)
	}
	if !slices.Equal(p.Skills, []string{"deploy"}) || !slices.Equal(p.SkillFolders, []string{"skills"}) {
		t.Errorf("skills %q in %q, want deploy in skills", p.Skills, p.SkillFolders)
	}
	if len(p.Hooks) != 1 || p.Hooks[0].Command != "true" {
		t.Errorf("hooks %+v, want that of yaya's own folder", p.Hooks)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, `"mine"`) || !strings.Contains(notes, "acme-tools") {
		t.Errorf("notes %q, want the unknown member and the name", notes)
	}
	env := map[string]any{"PLUGIN_ROOT": "/p", "PLUGIN_DATA": "/d", "CLAUDE_PLUGIN_ROOT": "/p", "CLAUDE_PLUGIN_DATA": "/d", "X": "/d/x"}
	want := map[string]any{"type": "stdio", "command": "/p/bin/server", "args": []any{"/p/a", "${HOME}", "$PLUGIN_DATA"}, "env": env, "cwd": "/p/data", "sandbox": map[string]any{"hosts": []any{"api.example.com"}}}
	if got := entry(t, p, "local"); !reflect.DeepEqual(got, want) {
		t.Errorf("local is %v, want %v", got, want)
	}
	if got := entry(t, p, "named"); got["command"] != "node" || got["cwd"] != "/p" {
		t.Errorf("named is %v, want node in /p", got)
	}
	if got := entry(t, p, "far"); got["type"] != "http" || got["headers"].(map[string]any)["X-A"] != "${HOME}" {
		t.Errorf("far is %v, want http with the header as it is", got)
	}
}

// Nothing that was put in is looked at again (section 9.2).
func TestPortableExpandsOnce(t *testing.T) {
	s := Server{kind: "stdio", command: "x", args: []string{rootRef}, literal: true}
	raw, err := s.Entry("/"+dataRef, "/d")
	if err != nil || !strings.Contains(string(raw), `"args":["/${PLUGIN_DATA}"]`) {
		t.Errorf("%s, %v: the folder's name was expanded", raw, err)
	}
}

func TestPortableRefuses(t *testing.T) {
	for name, manifest := range map[string]string{
		"no name":         `{` + schemaPart + `}`,
		"capitals":        `{` + schemaPart + `,"name":"Acme"}`,
		"two dashes":      `{` + schemaPart + `,"name":"a--b"}`,
		"two dots":        `{` + schemaPart + `,"name":"a..b"}`,
		"long":            `{` + schemaPart + `,"name":"` + strings.Repeat("a", 65) + `"}`,
		"a newer version": `{"$schema":"` + schemas + `1.1.0/plugin.schema.json","name":"a"}`,
		"no schema":       `{"name":"a"}`,
		"a number":        `{` + schemaPart + `,"name":"a","version":1}`,
		"author":          `{` + schemaPart + `,"name":"a","author":{"phone":"1"}}`,
		"keywords":        `{` + schemaPart + `,"name":"a","keywords":[1]}`,
		"a list":          `[]`,
		"null":            `null`,
		"not JSON":        `{`,
	} {
		if p, err := reads(map[string]string{"plugin.json": manifest}); err == nil || !strings.HasPrefix(err.Error(), "plugin.json") {
			t.Errorf("%s: %+v, %v, want an error that names plugin.json", name, p, err)
		}
	}
}

// Section 7.2.2: a broken mcp.json costs the servers, not the skills.
func TestPortableServersAlone(t *testing.T) {
	for name, mcp := range map[string]string{
		"not JSON":        `{`,
		"no schema":       `{"mcpServers":{}}`,
		"another version": `{"$schema":"` + schemas + `1.1.0/mcp.schema.json","mcpServers":{}}`,
		"more members":    `{"$schema":"` + mcpSchema + `","mcpServers":{},"x":1}`,
	} {
		p, err := reads(map[string]string{"plugin.json": `{` + schemaPart + `,"name":"a"}`, "mcp.json": mcp, "skills/b/SKILL.md": skill("b")})
		if err != nil || len(p.Faults) != 1 || len(p.Skills) != 1 {
			t.Errorf("%s: %+v, %v, want a fault and the skill", name, p, err)
		}
	}
}

func TestClients(t *testing.T) {
	files := map[string]string{
		".claude-plugin/plugin.json": `{"name":"acme","version":"v1","mcpServers":{"inline":{"command":"${CLAUDE_PLUGIN_ROOT}/run","args":["${TOKEN}"]}},"skills":["./more/","../out"],"hooks":"./extra.json"}`,
		".mcp.json":                  `{"bare":{"command":"./x","cwd":"sub"},"far":{"type":"http","url":"https://example.com"},"steals":{"command":"x","args":["${secret:mine}"]},"asks":{"command":"x","env":{"K":"${user_config.key}"}}}`,
		"skills/one/SKILL.md":        skill("one"),
		"more/two/SKILL.md":          skill("two"),
		"hooks/hooks.json":           `{"description":"d","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/guard"}]}]}}`,
		"extra.json":                 `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"b"}]}],"Later":[{"hooks":[{"type":"command","command":"c"}]}]}}`,
		"commands/a.md":              "", "commands/b.md": "", "agents/c.md": "", ".lsp.json": "{}",
	}
	p, err := reads(files)
	if err != nil {
		t.Fatal(err)
	}
	if p.Format != ClaudeCode || p.Name != "acme" || p.Version != "0.0.0" {
		t.Errorf("it is %s %s %s", p.Format, p.Name, p.Version)
	}
	if got, want := serverNames(p), []string{"bare", "far", "inline"}; !slices.Equal(got, want) {
		t.Errorf("servers %q, want %q; faults %q", got, want, p.Faults)
	}
	if got := entry(t, p, "inline"); got["command"] != "/p/run" || got["cwd"] != "/p" || got["args"].([]any)[0] != "${TOKEN}" {
		t.Errorf("inline is %v", got)
	}
	if got := entry(t, p, "bare"); got["command"] != "/p/x" || got["cwd"] != "/p/sub" {
		t.Errorf("bare is %v", got)
	}
	if got := entry(t, p, "far"); got["cwd"] != nil || got["env"] != nil {
		t.Errorf("far is %v, want it as it is", got)
	}
	if !slices.Equal(p.Skills, []string{"one", "two"}) || !slices.Equal(p.SkillFolders, []string{"skills", "more"}) {
		t.Errorf("skills %q in %q", p.Skills, p.SkillFolders)
	}
	if len(p.Hooks) != 2 || !p.Hooks[0].Claude {
		t.Errorf("hooks %+v, want those of both files", p.Hooks)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"commands, which yaya does not use: 2", "agents, which yaya does not use: 1", ".lsp.json", "Later"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q have no %q", p.Notes, want)
		}
	}
	if faults := strings.Join(p.Faults, "\n"); !strings.Contains(faults, "secrets") || !strings.Contains(faults, "userConfig") || !strings.Contains(faults, "../out") {
		t.Errorf("faults %q", p.Faults)
	}

	delete(files, ".claude-plugin/plugin.json")
	files[".codex-plugin/plugin.json"] = `{"name":"acme","skills":"./skills/","mcpServers":"./.mcp.json"}`
	if p, err = reads(files); err != nil || p.Format != Codex || len(p.Skills) != 1 || len(p.Servers) != 2 {
		t.Errorf("for Codex it is %+v, %v", p, err)
	}

	// Portable parts come from plugin.json, and its hooks from the client's.
	files["plugin.json"] = `{` + schemaPart + `,"name":"both"}`
	if p, err = reads(files); err != nil || p.Format != AgentPlugins || p.Name != "both" || len(p.Servers) != 0 || len(p.Hooks) != 1 {
		t.Errorf("with plugin.json it is %+v, %v", p, err)
	}
}

// A guard that is left out guards nothing.
func TestHooksRefuse(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"not JSON":        {".claude-plugin/plugin.json": `{"name":"a"}`, "hooks/hooks.json": `{`},
		"another type":    {".claude-plugin/plugin.json": `{"name":"a"}`, "hooks/hooks.json": `{"hooks":{"PreToolUse":[{"hooks":[{"type":"prompt"}]}]}}`},
		"not there":       {".claude-plugin/plugin.json": `{"name":"a","hooks":"./h.json"}`},
		"a list of hooks": {".claude-plugin/plugin.json": `{"name":"a","hooks":[{"PreToolUse":[]}]}`},
		"a number":        {".claude-plugin/plugin.json": `{"name":"a","hooks":5}`},
		"outside":         {".claude-plugin/plugin.json": `{"name":"a","hooks":"../h.json"}`},
		"without hooks":   {".claude-plugin/plugin.json": `{"name":"a"}`, "hooks/hooks.json": `{"PreToolUse":[]}`},
		"switched off":    {".claude-plugin/plugin.json": `{"name":"a"}`, "hooks/hooks.json": `{"disableAllHooks":true,"hooks":{}}`},
		"yaya's":          {"plugin.json": `{` + schemaPart + `,"name":"a"}`, "com.yaya.agent/hooks.toml": "[[hooks]]\n"},
		"beside portable": {"plugin.json": `{` + schemaPart + `,"name":"a"}`, ".claude-plugin/plugin.json": `{"name":"a"}`, "hooks/hooks.json": `{`},
	} {
		if p, err := reads(files); err == nil {
			t.Errorf("%s: it was read, with the hooks %+v", name, p.Hooks)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{`+schemaPart+`,"name":"a"}`), []byte(`{"$schema":"`+mcpSchema+`","mcpServers":{"a":{"type":"stdio","command":"./a","cwd":"./b"}}}`), []byte(`{}`))
	f.Add([]byte(`{"name":"a","mcpServers":{"a":{"command":"x","env":{}}}}`), []byte(`{}`), []byte(`{"hooks":{}}`))
	f.Fuzz(func(t *testing.T, manifest, mcp, hooks []byte) {
		for _, at := range Manifests {
			files := map[string][]byte{at: manifest, "mcp.json": mcp, ".mcp.json": mcp, "hooks/hooks.json": hooks}
			p, err := Read(slices.Sorted(maps.Keys(files)), files)
			if err != nil {
				continue
			}
			for _, s := range p.Servers {
				raw, err := s.Entry("/p", "/d")
				var e struct{ Command, Cwd string }
				if err != nil || json.Unmarshal(raw, &e) != nil {
					continue // whoever reads the entry says what is wrong with it
				}
				if s.literal && strings.HasPrefix(s.command, "./") && !strings.HasPrefix(e.Command, "/p") {
					t.Fatalf("%s leads out of the package: %s", s.command, raw)
				}
				if s.literal && e.Cwd != "" && !strings.HasPrefix(e.Cwd, "/p") && !strings.HasPrefix(e.Cwd, "/d") {
					t.Fatalf("%s leads out of the package: %s", s.dir, raw)
				}
			}
		}
	})
}

// Paths of other clients' entries that lead out of the package are refused.
func TestClientPaths(t *testing.T) {
	for at, want := range map[string]bool{
		"": true, "./x": true, "sub/x": true, "${CLAUDE_PLUGIN_ROOT}": true, "${PLUGIN_DATA}/x": true, "/usr/bin/x": true,
		"../x": false, "./../x": false, "a/../../x": false, "${CLAUDE_PLUGIN_ROOT}/../x": false, "${PLUGIN_DATA}x": false,
	} {
		if got := inside(at, true); got != want {
			t.Errorf("inside(%q) = %v, want %v", at, got, want)
		}
	}
	if !inside("node", false) || inside("../node", false) {
		t.Error("the name of a program is inside, and a path above is not")
	}
}
