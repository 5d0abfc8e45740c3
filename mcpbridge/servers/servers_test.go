package servers_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func scope() servers.Scope {
	env := map[string]string{
		"HOME": "/home/u", "PATH": "/bin", "TOKEN": "tok", "BASE": "https://base.example", "INPUT_API_KEY": "from-input",
		"YAYA_JWT_KEY": "secret", "UNRELATED": "x", "PATH_LIKE": "pl",
	}
	return servers.Scope{
		Env:  func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		Home: "/home/u", Workspace: "/srv/space",
	}
}

// golden holds the servers of a file, before and after expansion.
type golden struct {
	Servers  map[string]goldenServer `json:"servers"`
	Invalid  map[string]string       `json:"invalid,omitempty"`
	Warnings []string                `json:"warnings,omitempty"`
	Changes  []string                `json:"changes,omitempty"`
	Own      []string                `json:"own,omitempty"`
}

type goldenServer struct {
	Imported servers.Server  `json:"imported"`
	Policy   string          `json:"policy"`
	Expanded *servers.Server `json:"expanded,omitempty"`
	Error    string          `json:"error,omitempty"`
	Environ  []string        `json:"environ,omitempty"`
}

func TestGoldenFiles(t *testing.T) {
	for _, file := range []string{
		"claude-desktop.json", "claude-code.json", "vscode.json", "cursor.json", "codex.toml", "gemini.json",
		"opencode.json", "goose.yaml", "cline.json", "yaya.json", "windsurf.json", "zed.json", "roo.json", "lm-studio.json",
		"amazon-q.json", "kiro.json", "junie.json", "jetbrains.json", "qwen.json", "crush.json", "kimi.json", "copilot-cli.json",
		"warp.json", "continue.yaml",
	} {
		t.Run(file, func(t *testing.T) {
			name, _, _ := strings.Cut(file, ".")
			data, err := os.ReadFile(filepath.Join("testdata", file)) //nolint:forbidigo // test data
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := servers.Parse(file, data, servers.Format(name))
			if err != nil {
				t.Fatal(err)
			}
			got := golden{Servers: map[string]goldenServer{}, Invalid: map[string]string{}, Warnings: cfg.Warnings}
			for _, p := range cfg.Projects {
				for _, s := range p.Config.Servers {
					s.Name += " of " + p.Dir
					cfg.Servers = append(cfg.Servers, s)
				}
			}
			slices.SortFunc(cfg.Servers, func(a, b servers.Server) int { return strings.Compare(a.Name, b.Name) })
			for _, c := range cfg.Changes {
				got.Changes = append(got.Changes, c.Server+": "+c.Text)
			}
			for _, s := range cfg.Own {
				got.Own = append(got.Own, s.Name)
			}
			for _, s := range cfg.Servers {
				policy, n := s.SessionPolicy()
				g := goldenServer{Imported: s, Policy: fmt.Sprint(policy, n)}
				x, warnings, err := s.Expand(scope())
				got.Warnings = append(got.Warnings, warnings...)
				if err != nil {
					g.Error = err.Error()
				} else {
					g.Expanded = &x
					if x.Transport == servers.Stdio {
						g.Environ = x.Environ(scope().Env)
					}
				}
				got.Servers[s.Name] = g
			}
			for _, inv := range cfg.Invalid {
				got.Invalid[inv.Name] = inv.Err.Error()
			}
			out, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil { //nolint:forbidigo,gosec // golden file
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path) //nolint:forbidigo // golden file
			if err != nil || !bytes.Equal(bytes.TrimSpace(want), out) {
				t.Errorf("differs from %s (%v); got\n%s", path, err, out)
			}
			// Imported servers can be written to yaya's own file and read back.
			own := []byte(nil)
			for _, s := range cfg.Servers {
				if own, err = servers.Set("mcp.json", own, s); err != nil {
					t.Fatal(err)
				}
			}
			back, err := servers.Parse("mcp.json", own, servers.FormatYaya)
			if err != nil || len(back.Invalid) > 0 || len(back.Servers) != len(cfg.Servers) {
				t.Fatalf("written and read back: %v %v\n%s", err, back.Invalid, own)
			}
			for i, s := range back.Servers {
				a, _ := json.Marshal(s)
				b, _ := json.Marshal(cfg.Servers[i])
				if !bytes.Equal(a, b) {
					t.Errorf("came back as %s, was %s", a, b)
				}
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for _, tc := range []struct {
		file, data string
		want       servers.Format
	}{
		{"/h/.config/Claude/claude_desktop_config.json", "{}", servers.FormatClaudeDesktop},
		{"/p/.mcp.json", "{}", servers.FormatClaudeCode},
		{"/h/.cursor/mcp.json", "{}", servers.FormatCursor},
		{"/p/.vscode/mcp.json", "{}", servers.FormatVSCode},
		{"/h/.codex/config.toml", "", servers.FormatCodex},
		{"/h/.gemini/settings.json", "{}", servers.FormatGemini},
		{"/h/.config/opencode/opencode.json", "{}", servers.FormatOpencode},
		{"/h/.config/goose/config.yaml", "", servers.FormatGoose},
		{"x.json", `{"servers":{"a":{"command":"x"}}}`, servers.FormatVSCode},
		{"x.json", `{"mcp":{"a":{"type":"local"}}}`, servers.FormatOpencode},
		{"x.json", `{"mcpServers":{}}`, servers.FormatClaudeCode},
	} {
		if got := servers.Detect(tc.file, []byte(tc.data)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.file, got, tc.want)
		}
	}
}

// R31: broken files are errors that name the file, and never half a
// configuration.
func TestBrokenFiles(t *testing.T) {
	for _, tc := range []struct{ name, file, data, want string }{
		{"no JSON", "f.json", `{"mcpServers":`, "f.json"},
		{"member twice", "f.json", `{"mcpServers":{"a":{"command":"x","command":"y"}}}`, "twice"},
		{"servers no object", "f.json", `{"mcpServers":[]}`, "must be an object"},
		{"too many servers", "f.json", `{"mcpServers":{` + strings.Repeat(`"a%":{},`, 0) + many(201) + `}}`, "201 servers"},
		{"too large", "f.json", `{"mcpServers":{}}` + strings.Repeat(" ", servers.MaxFile), "limit"},
		{"unknown key in our own file", "f.json", `{"mcpServers":{},"mcpServer":{}}`, `"mcpServer"`},
		{"no TOML", "f.toml", `a = `, "f.toml"},
		{"no YAML", "f.yaml", "a: [", "f.yaml"},
	} {
		if _, err := servers.Parse(tc.file, []byte(tc.data), servers.FormatYaya); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	if cfg, err := servers.Parse("f.json", nil, servers.FormatYaya); err != nil || len(cfg.Servers)+len(cfg.Warnings) != 0 {
		t.Errorf("an empty file: %+v, %v", cfg, err)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"s%d":{"command":"x"},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestEditsKeepTheRest(t *testing.T) {
	in := []byte("{\n  // mine\n  \"mcpServers\": {\n    \"a/b\": {\"command\": \"x\"}, // first\n  },\n}\n")
	out, err := servers.Set("f", in, servers.Server{Name: "n~w", Transport: servers.Stdio, Command: "y"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// mine", "// first", `"n~w"`, `"y"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is gone:\n%s", want, out)
		}
	}
	out, found, err := servers.Unset("f", out, "a/b")
	if err != nil || !found || strings.Contains(string(out), "a/b") || !strings.Contains(string(out), "// mine") {
		t.Errorf("found=%v %v\n%s", found, err, out)
	}
	if _, found, err := servers.Unset("f", out, "nope"); found || err != nil {
		t.Errorf("found=%v %v", found, err)
	}
	if _, err := servers.Set("f", []byte("{"), servers.Server{Name: "x"}); err == nil {
		t.Error("a broken file was edited")
	}
}

// UP-20, R20: a configuration cannot make a program load something else.
func TestLoaderVariables(t *testing.T) {
	for _, key := range []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "ENV",
		"PERL5OPT", "PERL5LIB", "RUBYOPT", "GIT_SSH_COMMAND", "GIT_SSH", "JAVA_TOOL_OPTIONS", "ld_preload", "Node_Options",
	} {
		raw := fmt.Sprintf(`{"mcpServers":{"a":{"command":"x","env":{%q:"y"}},"b":{"command":"x","env":{"MY_%s":"y"}}}}`, key, key)
		cfg, err := servers.Parse("f", []byte(raw), servers.FormatYaya)
		if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].Name != "b" || len(cfg.Invalid) != 1 || !strings.Contains(cfg.Invalid[0].Err.Error(), key) {
			t.Errorf(`%s: got %+v %v, want len(Servers) 1, Servers[0].Name "b", len(Invalid) 1, Invalid[0].Err with %v`, key, cfg, err, key)
		}
	}
}

func TestEnvFile(t *testing.T) {
	got, err := servers.ParseEnvFile([]byte("# c\r\nA=1\nexport B = \"x y\"\n\nC='z'\nD=\n"))
	if err != nil || got["A"] != "1" || got["B"] != "x y" || got["C"] != "z" || got["D"] != "" || len(got) != 4 {
		t.Errorf(`got %v, %v; want 4 variables: A is 1, B is "x y", C is z, D is empty`, got, err)
	}
	for _, bad := range []string{"nonsense", "=x", "LD_PRELOAD=x"} {
		if _, err := servers.ParseEnvFile([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAllowsAndEndpoint(t *testing.T) {
	s := servers.Server{IncludeTools: []string{"a", "b"}, ExcludeTools: []string{"b"}}
	if !s.Allows("a") || s.Allows("b") || s.Allows("c") {
		t.Error("exclusion must win, inclusion must limit")
	}
	r := servers.Server{Transport: servers.HTTP, URL: "https://user:pw@x.example/mcp?key=secret"}
	if got := r.Endpoint(); got != "https://x.example/mcp" {
		t.Errorf("endpoint: %s", got)
	}
	if locs := servers.Locations("/h", "linux", func(string) string { return "" }); len(locs) < 30 || !slices.ContainsFunc(locs, func(l servers.Location) bool { return l.Path == "/h/.config/Claude/claude_desktop_config.json" }) {
		t.Errorf("locations: %v", locs)
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"claude-code.json", "codex.toml", "goose.yaml", "gemini.json", "crush.json", "zed.json", "continue.yaml", "opencode.json", "cline.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", file)) //nolint:forbidigo // test data
		if err != nil {
			f.Fatal(err)
		}
		for i, format := range servers.Formats {
			f.Add(data, filepath.Ext(file), i)
			_ = format
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, ext string, format int) {
		if len(data) > 1<<16 {
			return
		}
		cfg, err := servers.Parse("f"+ext, data, servers.Formats[uint(format)%uint(len(servers.Formats))])
		if err != nil {
			return
		}
		for _, s := range cfg.Servers {
			x, _, err := s.Expand(scope())
			if err != nil {
				continue
			}
			if x.Command == "" && x.URL == "" {
				t.Fatalf("an unusable server passed: %+v", x)
			}
			for _, kv := range x.Environ(scope().Env) {
				if strings.HasPrefix(kv, "LD_") || strings.HasPrefix(kv, "UNRELATED=") || strings.Contains(kv, "=secret") {
					t.Fatalf("the child would get %q", kv)
				}
			}
		}
	})
}

// USE-2: an error names the place of the mistake.
func TestLine(t *testing.T) {
	data := []byte("{\n  // mine\n  \"mcpServers\": {\n    \"a/b\": {\"command\": \"x\"},\n    \"c\":\n      {\"command\": 5}\n  }\n}\n")
	for name, want := range map[string]int{"a/b": 4, "c": 6, "none": 0} {
		if got := servers.Line("mcp.json", data, servers.FormatYaya, name); got != want {
			t.Errorf("Line(%q) = %d, want %d", name, got, want)
		}
	}
	if got := servers.Line("x.toml", data, servers.FormatCodex, "c"); got != 0 {
		t.Errorf("Line in TOML = %d, want 0", got)
	}
	for text, want := range map[string]string{
		"{\n\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}": "line 4",
		"{\n\"mcpServers\": {\n": "line 3",
	} {
		if _, err := servers.Parse("mcp.json", []byte(text), servers.FormatYaya); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
