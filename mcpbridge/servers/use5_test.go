package servers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// one parses a file with one server in it.
func one(t *testing.T, file, data string, format servers.Format) servers.Server {
	t.Helper()
	cfg, err := servers.Parse(file, []byte(data), format)
	if err != nil || len(cfg.Servers) != 1 || len(cfg.Invalid) > 0 {
		t.Fatalf("Parse(%s) = %+v, %v, want one server", data, cfg, err)
	}
	return cfg.Servers[0]
}

// USE-5, each row: what other clients' files say is taken over as it is meant, or
// refused with the reason.
func TestImportTakesOverWhatFilesMean(t *testing.T) {
	t.Run("crush counts its timeout in seconds", func(t *testing.T) {
		s := one(t, "crush.json", `{"mcp":{"a":{"type":"stdio","command":"x","timeout":120}}}`, servers.Detect("crush.json", nil))
		if s.StartTimeout != 2*time.Minute {
			t.Errorf("start timeout: got %v, want 2m", s.StartTimeout)
		}
	})
	t.Run("crush writes variables as $VAR", func(t *testing.T) {
		s := one(t, "crush.json", `{"mcp":{"a":{"type":"stdio","command":"x","env":{"K":"$TOKEN"}}}}`, servers.FormatCrush)
		if s.Env["K"] != "${TOKEN:-}" {
			t.Errorf("K: got %q, want ${TOKEN:-}", s.Env["K"])
		}
	})
	t.Run("crush's commands are never run", func(t *testing.T) {
		for _, v := range []string{"$(touch /tmp/x)", "`id`", "a $(id) b"} {
			cfg, err := servers.Parse("crush.json", []byte(`{"mcp":{"a":{"type":"stdio","command":"x","env":{"K":"`+v+`"}}}}`), servers.FormatCrush)
			if err != nil || len(cfg.Servers) != 0 || len(cfg.Invalid) != 1 || !strings.Contains(cfg.Invalid[0].Err.Error(), "yaya runs no commands") {
				t.Errorf("%s: got %+v, %v, want it refused with the reason", v, cfg, err)
			}
		}
	})
	t.Run("kimi says auth oauth", func(t *testing.T) {
		s := one(t, "mcp.json", `{"mcpServers":{"a":{"url":"https://x.example/mcp","transport":"http","auth":"oauth"}}}`, servers.FormatKimi)
		if s.NoOAuth || s.Transport != servers.HTTP {
			t.Errorf("got %+v, want OAuth to be found out", s)
		}
	})
	t.Run("Copilot CLI offers the named tools alone", func(t *testing.T) {
		for _, c := range []struct {
			tools string
			want  map[string]bool
		}{
			{`["echo"]`, map[string]bool{"echo": true, "add": false}},
			{`["*"]`, map[string]bool{"echo": true, "add": true}},
			{`[]`, map[string]bool{"echo": false, "add": false}},
		} {
			s := one(t, "mcp-config.json", `{"mcpServers":{"a":{"type":"local","command":"x","tools":`+c.tools+`}}}`, servers.FormatCopilotCLI)
			for tool, want := range c.want {
				if got := s.Allows(tool); got != want {
					t.Errorf("tools %s: Allows(%s) = %v, want %v", c.tools, tool, got, want)
				}
			}
		}
	})
	t.Run("opencode blocks tools by patterns", func(t *testing.T) {
		for _, c := range []struct {
			name, doc string
			want      map[string]bool
		}{
			{"all of a server", `"tools":{"x*":false}`, map[string]bool{"a": false, "b": false}},
			{"one", `"tools":{"x_a":false,"y_b":false}`, map[string]bool{"a": false, "b": true}},
			{"those with a beginning", `"tools":{"x_a*":false}`, map[string]bool{"a": false, "ab": false, "ba": true}},
			{"those with an end, of every server", `"tools":{"*_now":false}`, map[string]bool{"delete_now": false, "delete": true}},
			{"all but one", `"tools":{"x*":false,"x_a":true}`, map[string]bool{"a": true, "b": false}},
			{"none after all", `"tools":{"*":false,"x_*":true,"x_b":false}`, map[string]bool{"a": true, "b": false}},
			{"denied by a permission", `"permission":{"x_b":"deny","x_a":"ask"}`, map[string]bool{"a": true, "b": false}},
			{"not its own", `"tools":{"bash":false,"xy_a":false}`, map[string]bool{"a": true, "b": true}},
		} {
			s := one(t, "opencode.json", `{"mcp":{"x":{"type":"local","command":["x"]}},`+c.doc+`}`, servers.FormatOpencode)
			for tool, want := range c.want {
				if got := s.Allows(tool); got != want {
					t.Errorf("%s: Allows(%s) = %v, want %v (%v, %v)", c.name, tool, got, want, s.IncludeTools, s.ExcludeTools)
				}
			}
		}
		cfg, err := servers.Parse("opencode.json", []byte(`{"mcp":{"x":{"type":"local","command":["x"]}},"tools":{"x_r*":false,"x_read":true}}`), servers.FormatOpencode)
		if err != nil || len(cfg.Invalid) != 1 || !strings.Contains(cfg.Invalid[0].Err.Error(), `"x_read"`) {
			t.Errorf("what lists cannot say: got %+v, %v, want it refused with the pattern", cfg, err)
		}
	})
	t.Run("opencode's patterns are bounded", func(t *testing.T) {
		for _, tools := range []string{`"x_` + strings.Repeat("a*", 200) + `":false`, many(1001)} {
			cfg, err := servers.Parse("opencode.json", []byte(`{"mcp":{"x":{"type":"local","command":["x"]}},"tools":{`+tools+`}}`), servers.FormatOpencode)
			if err != nil || len(cfg.Invalid) != 1 || !strings.Contains(cfg.Invalid[0].Err.Error(), "the limit is") {
				t.Errorf("got %+v, %v, want the limit", cfg, err)
			}
		}
	})
	t.Run("JetBrains nests headers in requestInit", func(t *testing.T) {
		s := one(t, "mcp.json", `{"servers":{"a":{"url":"https://x.example/mcp","requestInit":{"headers":{"Authorization":"Bearer t"}}}}}`, servers.FormatJetBrains)
		if s.Headers["Authorization"] != "Bearer t" {
			t.Errorf("headers: got %v", s.Headers)
		}
	})
	t.Run("Zed's command was an object", func(t *testing.T) {
		s := one(t, "settings.json", `{"context_servers":{"a":{"command":{"path":"x","args":["y"],"env":{"K":"v"}}}}}`, servers.FormatZed)
		if s.Command != "x" || !slices.Equal(s.Args, []string{"y"}) || s.Env["K"] != "v" {
			t.Errorf("got %+v, want the command x with the argument y and K=v", s)
		}
	})
	t.Run("Continue has a list", func(t *testing.T) {
		s := one(t, "config.yaml", "mcpServers:\n  - name: a\n    command: x\n    env: {K: '${{ secrets.TOKEN }}'}\n", servers.Detect("config.yaml", []byte("mcpServers: []")))
		if s.Name != "a" || s.Env["K"] != "${TOKEN}" {
			t.Errorf("got %+v; want the server a, with K as ${TOKEN}", s)
		}
	})
	t.Run("Warp has a bare map", func(t *testing.T) {
		data := `{"a":{"command":"x","working_directory":"/w"}}`
		s := one(t, "x.json", data, servers.Detect("x.json", []byte(data)))
		if s.Name != "a" || s.Dir != "/w" {
			t.Errorf("got %+v; want the server a, in the folder /w", s)
		}
	})
	t.Run("Claude Code keeps servers by project", func(t *testing.T) {
		cfg, err := servers.Parse(".claude.json", []byte(`{"mcpServers":{"u":{"command":"u"}},"projects":{"/p":{"mcpServers":{"a":{"command":"x"}}}}}`), servers.FormatClaudeCode)
		if err != nil || len(cfg.Servers) != 1 || len(cfg.Projects) != 1 || cfg.Projects[0].Dir != "/p" || len(cfg.Projects[0].Config.Servers) != 1 {
			t.Fatalf("got %+v, %v, want one server of the user and one of /p", cfg, err)
		}
		if s := cfg.Projects[0].Config.Servers[0]; s.Name != "a" || s.Dir != "/p" {
			t.Errorf("got %+v, want it to run in /p", s)
		}
	})
	t.Run("what is not known is said", func(t *testing.T) {
		for _, f := range servers.Formats {
			if f == servers.FormatYaya {
				continue
			}
			cfg, err := servers.Parse("f.json", []byte(`{"a":{"command":"x","surprise":1}}`), f)
			if err != nil || len(cfg.Servers) != 1 || len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], `"surprise"`) {
				t.Errorf("%s: got %+v, %v, want a warning of the unknown key", f, cfg, err)
			}
		}
	})
}

// A server that its client has switched off, in whatever file, is not switched on here.
func TestSwitchedOff(t *testing.T) {
	for name, c := range map[string]struct {
		format servers.Format
		file   string
		data   string
	}{
		"a list":          {servers.FormatCopilotCLI, "/h/.copilot/settings.json", `{"disabledMcpServers":["off"]}`},
		"an object each":  {servers.FormatGemini, "/h/.gemini/mcp-server-enablement.json", `{"off":{"enabled":false},"on":{"enabled":true}}`},
		"in another case": {servers.FormatGemini, "/h/.gemini/mcp-server-enablement.json", `{"OFF":{"enabled":false}}`},
	} {
		i := slices.IndexFunc(servers.Locations("/h", "linux", func(string) string { return "" }), func(l servers.Location) bool { return l.Switches() == c.file })
		cfg, err := servers.Parse("f.json", []byte(`{"mcpServers":{"off":{"command":"x"},"on":{"command":"y"}}}`), c.format)
		if err != nil || i < 0 {
			t.Fatalf("%s: %v, no location has %s", name, err, c.file)
		}
		if err := cfg.SwitchOff(c.file, []byte(c.data)); err != nil || !cfg.Servers[0].Disabled || cfg.Servers[1].Disabled {
			t.Errorf("%s: got %+v, %v, want off switched off alone", name, cfg.Servers, err)
		}
	}
}

// A file that has yaya in it does not make yaya its own client.
func TestItselfIsNoServer(t *testing.T) {
	for name, c := range map[string]struct {
		entry string
		want  bool
	}{
		"by its path":              {`"x":{"command":"/usr/local/bin/yaya","args":["mcp","serve"]}`, true},
		"with flags":               {`"x":{"command":"yaya","args":["--data-dir","/d","mcp","serve","--profile","p"]}`, true},
		"in a shell":               {`"x":{"command":"sh","args":["-c","exec yaya mcp serve"]}`, true},
		"at this machine":          {`"yaya":{"url":"http://127.0.0.1:7420/mcp"}`, true},
		"another command of it":    {`"x":{"command":"yaya","args":["mcp","list"]}`, false},
		"another program":          {`"x":{"command":"yaya-tools","args":["mcp","serve"]}`, false},
		"another server next door": {`"x":{"url":"http://127.0.0.1:7420/mcp"}`, false},
	} {
		cfg, err := servers.Parse("f.json", []byte(`{"mcpServers":{`+c.entry+`}}`), servers.FormatCursor)
		if err != nil || (len(cfg.Own) == 1) != c.want || (len(cfg.Servers) == 0) != c.want || (len(cfg.Warnings) > 0) != c.want {
			t.Errorf("%s: got %+v, %v, want itself %v", name, cfg, err, c.want)
		}
	}
}

func TestMerge(t *testing.T) {
	run := func(name, command string) servers.Server {
		return servers.Server{Name: name, Transport: servers.Stdio, Command: command}
	}
	source := func(short string, list ...servers.Server) servers.Source {
		return servers.Source{From: "the " + short, Short: short, Config: servers.Config{Servers: list}}
	}
	limited := run("b", "x")
	limited.ExcludeTools = []string{"rm"}
	off := run("a", "x")
	off.Disabled = true
	for _, c := range []struct {
		name    string
		have    []servers.Server
		sources []servers.Source
		decide  servers.Conflict
		want    []string // name=command
		left    []string // name: part of the reason
	}{
		{"an identical server of two clients is taken once", nil, []servers.Source{source("one", run("a", "x")), source("two", run("a", "x"))}, servers.Rename, []string{"a=x"}, []string{"a: same server as a of the one"}},
		{"an identical server under two names is taken once", nil, []servers.Source{source("one", run("a", "x"), run("b", "x"))}, servers.Rename, []string{"a=x"}, []string{"b: same server as a"}},
		{"with other tools it is another server", nil, []servers.Source{source("one", run("a", "x"), limited)}, servers.Rename, []string{"a=x", "b=x"}, nil},
		{"one that is configured is not taken again", []servers.Server{run("mine", "x")}, []servers.Source{source("one", run("a", "x"))}, servers.Rename, nil, []string{"a: configured already, as mine"}},
		{"two servers of one name are both taken", nil, []servers.Source{source("one", run("a", "x")), source("two", run("a", "y"))}, servers.Rename, []string{"a=x", "a-two=y"}, nil},
		{"a new name that is taken gets a number", []servers.Server{run("a-two", "z")}, []servers.Source{source("one", run("a", "x")), source("two", run("a", "y"))}, servers.Rename, []string{"a=x", "a-two-2=y"}, nil},
		{"the first is kept", nil, []servers.Source{source("one", run("a", "x")), source("two", run("a", "y"))}, servers.Keep, []string{"a=x"}, []string{"a: the one has another server of this name"}},
		{"the second replaces the first", nil, []servers.Source{source("one", run("a", "x")), source("two", run("a", "y"))}, servers.Replace, []string{"a=y"}, []string{"a: the one from the two replaces it"}},
		{"it replaces one that is configured", []servers.Server{run("a", "x")}, []servers.Source{source("one", run("a", "y"))}, servers.Replace, []string{"a=y"}, nil},
		{"one that is off in one client and on in another is on", nil, []servers.Source{source("one", off), source("two", run("a", "x"))}, servers.Rename, []string{"a=x"}, []string{"a: same server"}},
		{"a yaya elsewhere may be this one", nil, []servers.Source{source("one", servers.Server{Name: "yaya", Transport: servers.HTTP, URL: "https://y.example/mcp"})}, servers.Rename, nil, []string{"yaya: may be yaya itself"}},
	} {
		taken, left := servers.Merge(c.have, c.sources, func(servers.Clash) servers.Conflict { return c.decide })
		var got, why []string
		for _, x := range taken {
			got = append(got, x.Server.Name+"="+x.Server.Command)
			if x.Server.Disabled {
				t.Errorf("%s: %s is switched off", c.name, x.Server.Name)
			}
		}
		for _, x := range left {
			why = append(why, x.Name+": "+x.Why)
		}
		if !slices.Equal(got, c.want) || len(why) != len(c.left) {
			t.Errorf("%s: took %v and left %v, want %v and %v", c.name, got, why, c.want, c.left)
			continue
		}
		for i, want := range c.left {
			name, part, _ := strings.Cut(want, ": ")
			if left[i].Name != name || !strings.Contains(left[i].Why, part) {
				t.Errorf("%s: left %s, want %s", c.name, why[i], want)
			}
		}
	}
}
