package servers_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// An entry's sandbox is read, checked, and written back unchanged.
func TestSandboxOfAnEntry(t *testing.T) {
	for _, c := range []struct {
		name, entry string
		profile     string
		sandbox     *servers.Sandbox
		err         string
	}{
		{"none", `"command":"x"`, "guarded", nil, ""},
		{"a command that maps users", `"command":"podman","args":["run","x"]`, "off", nil, ""},
		{"a command that becomes another user", `"command":"/usr/bin/sudo","args":["x"]`, "off", nil, ""},
		{"such a command, bounded", `"command":"podman","sandbox":{"profile":"guarded"}`, "guarded", &servers.Sandbox{Profile: "guarded"}, ""},
		{"an empty one", `"command":"x","sandbox":{}`, "server", &servers.Sandbox{}, ""},
		{"all of it", `"command":"x","sandbox":{"read":["/a","~/b"],"write":["${D}/c"],"hosts":["example.com","*.example.org:8443"],"env":["TOKEN"],"browser":true,"mcp":true}`, "server", &servers.Sandbox{Read: []string{"/a", "~/b"}, Write: []string{"${D}/c"}, Hosts: []string{"example.com", "*.example.org:8443"}, Env: []string{"TOKEN"}, Browser: true, MCP: true}, ""},
		{"guarded", `"command":"x","sandbox":{"profile":"guarded"}`, "guarded", &servers.Sandbox{Profile: "guarded"}, ""},
		{"off", `"command":"x","sandbox":{"profile":"off"}`, "off", &servers.Sandbox{Profile: "off"}, ""},
		{"a profile for others", `"command":"x","sandbox":{"profile":"command"}`, "", nil, `profile "command" is not one of guarded, server, off`},
		{"a list that says nothing", `"command":"x","sandbox":{"profile":"guarded","hosts":["a.example"]}`, "", nil, `use profile "server"`},
		{"browser that says nothing", `"command":"x","sandbox":{"profile":"off","browser":true}`, "", nil, "has no limits"},
		{"mcp that is not there", `"command":"x","sandbox":{"profile":"guarded","mcp":true}`, "", nil, `use profile "server"`},
		{"a relative path", `"command":"x","sandbox":{"write":["data"]}`, "", nil, `path "data" is not absolute`},
		{"no path", `"command":"x","sandbox":{"read":[""]}`, "", nil, `path "" is not absolute`},
		{"a secret in a path", `"command":"x","sandbox":{"read":["/a/${secret:S}"]}`, "", nil, `"/a/${secret:S}" contains a secret`},
		{"everything", `"command":"x","sandbox":{"read":["//"]}`, "", nil, `path // is the whole file system`},
		{"the host's devices", `"command":"x","sandbox":{"read":["/dev"]}`, "", nil, `/dev cannot be given to a sandbox, which has /dev of its own`},
		{"a process of the host", `"command":"x","sandbox":{"write":["/proc/1/root"]}`, "", nil, `which has /proc of its own`},
		{"a URL as a host", `"command":"x","sandbox":{"hosts":["https://example.com"]}`, "", nil, `host "https://example.com"`},
		{"a variable that loads code", `"command":"x","sandbox":{"env":["LD_PRELOAD"]}`, "", nil, "LD_PRELOAD"},
		{"an unknown member", `"command":"x","sandbox":{"network":{}}`, "", nil, `sandbox: unknown key "network"; the known ones are profile, read, write, hosts, env`},
		{"an unknown member of the server", `"command":"x","tool_timeout":1`, "", nil, `unknown key "tool_timeout" (did you mean "tool_timeout_sec"?); the known ones are type, command, args, env`},
		{"one of its authorization", `"url":"https://x.example","oauth":{"scops":["z"]}`, "", nil, `unknown key "oauth.scops" (did you mean "scopes"?)`},
		{"one that is almost known", `"command":"x","sandbox":{"host":["a.example"]}`, "", nil, `sandbox: unknown key "host" (did you mean "hosts"?)`},
		{"a wrong kind of member", `"command":"x","sandbox":{"read":"/a"}`, "", nil, `"read" must be a list of strings, not a string`},
		{"not an object", `"command":"x","sandbox":true`, "", nil, `"sandbox" must be an object, not a boolean`},
		{"at a remote server", `"url":"https://a.example/mcp","sandbox":{}`, "", nil, "leave the sandbox out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := servers.Parse("mcp.json", []byte(`{"mcpServers":{"a":{`+c.entry+`}}}`), servers.FormatYaya)
			if err != nil {
				t.Fatal(err)
			}
			if c.err != "" {
				if len(cfg.Invalid) != 1 || !strings.Contains(cfg.Invalid[0].Err.Error(), c.err) {
					t.Fatalf("Parse(%s) = %+v, want it refused with %q", c.entry, cfg, c.err)
				}
				return
			}
			if len(cfg.Servers) != 1 || !reflect.DeepEqual(cfg.Servers[0].Sandbox, c.sandbox) {
				t.Fatalf("Parse(%s) = %+v, want sandbox %+v", c.entry, cfg, c.sandbox)
			}
			if got := cfg.Servers[0].SandboxProfile(); got != c.profile {
				t.Errorf("profile of %s: got %q, want %q", c.entry, got, c.profile)
			}
			data, err := servers.Set("mcp.json", nil, cfg.Servers[0])
			if err != nil {
				t.Fatal(err)
			}
			again, err := servers.Parse("mcp.json", data, servers.FormatYaya)
			if err != nil || len(again.Servers) != 1 || !reflect.DeepEqual(again.Servers[0].Sandbox, c.sandbox) {
				t.Errorf("written as %s and read again: got %+v, %v; want sandbox %+v", data, again, err, c.sandbox)
			}
		})
	}
}

// Elsewhere the word means something else: only a project's file, which yaya itself
// reads, may have yaya's form of it.
func TestSandboxOfOtherFiles(t *testing.T) {
	for _, c := range []struct {
		sandbox string
		profile string // it runs in
		warned  bool
	}{
		{`{}`, "server", false},
		{`{"profile":"server","read":["/x"]}`, "server", false},
		{`{"hosts":["api.example"]}`, "server", false},
		{`{"profile":"guarded"}`, "guarded", false},
		{`{"profile":"off"}`, "guarded", true}, // which yaya's own file alone can say
		{`{"filesystem":{"allowWrite":["/"]}}`, "guarded", true},
		{`true`, "guarded", true},
	} {
		for _, f := range servers.Formats {
			if f == servers.FormatYaya {
				continue
			}
			cfg, err := servers.Parse("mcp.json", []byte(`{"mcpServers":{"a":{"command":"x","sandbox":`+c.sandbox+`}}}`), f)
			if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].SandboxProfile() != c.profile || (len(cfg.Warnings) > 0) != c.warned {
				t.Errorf("%s, sandbox %s: got %+v, %v; want profile %s, warned %v", f, c.sandbox, cfg, err, c.profile, c.warned)
			}
		}
	}
	for _, c := range []struct {
		name, sandbox string
		in            string // what is shown; NPM is npm's registry
		warned        bool
	}{
		{"none", `null`, "in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and /p; writes none of your files; reaches NPM", false},
		{"of another client", `{"filesystem":{"allowWrite":["/"]}}`, "in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and /p; writes none of your files; reaches NPM", true},
		{"wider", `{"read":["~/.ssh","../q"],"write":["out"],"hosts":["evil.example"],"env":["AWS_SECRET_ACCESS_KEY"],"browser":true,"mcp":true}`, "in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and /p, ~/.ssh, /q; writes /p/out; reaches evil.example, NPM; gets your variables AWS_SECRET_ACCESS_KEY; asks you to call tools of other servers; may make namespaces, as browsers do", false},
		{"guarded", `{"profile":"guarded"}`, "in sandbox profile guarded: reads and writes all files that you can, and reaches every host; kept from yaya alone", false},
		{"off", `{"profile":"off"}`, "outside the sandbox, with all your rights, yaya's own files included", false},
		{"a path with a line break", `{"read":["/a\n; writes"]}`, `in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and /p, "/a\n; writes"; writes none of your files; reaches NPM`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := servers.ParseProject("/p/.mcp.json", []byte(`{"mcpServers":{"a":{"command":"npx","args":["y"],"sandbox":`+c.sandbox+`}}}`))
			if err != nil || len(cfg.Servers) != 1 {
				t.Fatalf("got %+v, %v, want one server", cfg, err)
			}
			want := strings.Replace(c.in, "NPM", sandbox.RegistryOf("npx")[0], 1)
			if got := cfg.Servers[0].InSandbox(cfg.Servers[0].Places(servers.Scope{})); got != want {
				t.Errorf("InSandbox() = %q, want %q", got, want)
			}
			if warned := len(cfg.Warnings) > 0; warned != c.warned {
				t.Errorf("warnings: got %q, want some: %v", cfg.Warnings, c.warned)
			}
		})
	}
}

// Without a granted path the text promises what is enforced: the programs of PATH come with
// version managers and libraries, which may be the user's own files.
func TestInSandboxWithoutPaths(t *testing.T) {
	s := servers.Server{Transport: servers.Stdio, Command: "true", Sandbox: &servers.Sandbox{}}
	const want = "in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and no other file; writes none of your files; reaches no host"
	if got := s.InSandbox(servers.Places{}); got != want {
		t.Errorf("InSandbox() = %q, want %q", got, want)
	}
}

// The script that a command line names is read with its package, and shown so, of the user's own
// servers alone: a folder's server reads its folder.
func TestScriptIsShown(t *testing.T) {
	dir := sandbox.Real(t.TempDir())
	for _, f := range []string{"a/node_modules/x/dist/i.js", "b/package.json", "b/src/i.py", "c/i.sh"} {
		f = filepath.Join(dir, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"D": dir, "PATH": "/usr/bin:/bin"}
	scope := servers.Scope{Home: dir, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	for _, c := range []struct {
		name   string
		s      servers.Server
		script string
		shown  string // after the installations
	}{
		{"a dependency", servers.Server{Args: []string{"--flag", dir + "/a/node_modules/x/dist/i.js", "/etc/passwd"}}, dir + "/a/node_modules", "and " + dir + "/a/node_modules"},
		{"a script of a package", servers.Server{Args: []string{dir + "/b/src/i.py"}}, dir + "/b", "and " + dir + "/b"},
		{"below a variable", servers.Server{Args: []string{"${D}/b/src/../src/i.py"}}, dir + "/b", "and " + dir + "/b"},
		{"below a secret", servers.Server{Args: []string{"${secret:D}/b/src/i.py"}}, "", "and no other file"},
		{"beside a secret", servers.Server{Args: []string{dir + "/b/src/i.py", "${secret:D}"}}, dir + "/b", "and " + dir + "/b"},
		{"below a variable without a value", servers.Server{Args: []string{"${E}/b/src/i.py"}}, "", "and no other file"},
		{"a script alone", servers.Server{Args: []string{dir + "/c/i.sh"}}, dir + "/c/i.sh", "and " + dir + "/c/i.sh"},
		{"a folder", servers.Server{Args: []string{dir + "/c"}}, "", "and no other file"},
		{"a script of the system", servers.Server{Args: []string{"/usr/../bin/sh", dir + "/c/i.sh"}}, "", "and no other file"},
		{"below its working directory", servers.Server{Dir: dir + "/b", Args: []string{"src/i.py"}}, dir + "/b", "and " + dir + "/b"},
		{"above its working directory", servers.Server{Dir: dir + "/b/src", Args: []string{"./i.py"}}, dir + "/b", "and " + dir + "/b/src, " + dir + "/b"},
		{"a project's", servers.Server{Project: true, File: dir + "/c/.mcp.json", Args: []string{dir + "/b/src/i.py"}}, "", "and " + dir + "/c"},
		{"in the root", servers.Server{Dir: "/"}, "", "and no other file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.Transport, c.s.Command, c.s.Sandbox = servers.Stdio, "true", &servers.Sandbox{}
			if got := c.s.Script(scope); got != c.script {
				t.Errorf("Script() = %q, want %q", got, c.script)
			}
			at := c.s.Places(scope)
			const head = "in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, "
			if got, want := c.s.InSandbox(at), head+c.shown+"; writes none of your files; reaches no host"; got != want {
				t.Errorf("InSandbox() = %q, want %q", got, want)
			}
		})
	}
}

// A reference to a secret hides neither what the server is installed with, nor does one
// without a value end yaya.
func TestPlacesOfUnresolvedEntries(t *testing.T) {
	dir := sandbox.Real(t.TempDir())
	for _, f := range []string{"v/pyvenv.cfg", "v/bin/tool"} {
		f = filepath.Join(dir, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	s := servers.Server{Transport: servers.Stdio, Command: dir + "/v/bin/tool", Env: map[string]string{"K": "${secret:K}"}, Sandbox: &servers.Sandbox{}}
	at := s.Places(servers.Scope{Home: dir, Env: func(string) (string, bool) { return "", false }})
	if len(at.Program) == 0 {
		t.Errorf("Places() of a server with a secret: got no program, want %s/v", dir)
	}
	s.Sandbox.Read = []string{"${X}/y"}
	if at := s.Places(servers.Scope{Home: dir}); len(at.Read) != 1 || at.Read[0].Path != "" {
		t.Errorf("Places() = %+v, want one without a path", at.Read)
	}
}

// A folder's server reads its folder wherever it works, and where it works.
func TestReads(t *testing.T) {
	for _, c := range []struct {
		name string
		s    servers.Server
		want string
	}{
		{"a project's", servers.Server{Project: true, File: "/p/.mcp.json"}, "/p"},
		{"in a folder below", servers.Server{Project: true, File: "/p/.mcp.json", Dir: "sub"}, "/p"},
		{"elsewhere", servers.Server{Project: true, File: "/p/.mcp.json", Dir: "../q"}, "/p /q"},
		{"absolute", servers.Server{Project: true, File: "/p/.mcp.json", Dir: "/pq", Sandbox: &servers.Sandbox{Read: []string{"/r"}}}, "/p /pq /r"},
		{"the user's", servers.Server{File: "/c/mcp.json", Dir: "/d"}, "/d"},
		{"the user's without a folder", servers.Server{File: "/c/mcp.json"}, ""},
		{"the user's in the root", servers.Server{File: "/c/mcp.json", Dir: "//"}, ""},
	} {
		if got := strings.Join(c.s.Reads(), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSandboxExpands(t *testing.T) {
	s := one(t, "mcp.json", `{"mcpServers":{"a":{"command":"x","sandbox":{"read":["~","~/b","${D}/c"],"write":["${D:-/e}"],"hosts":["${H}"]}}}}`, servers.FormatYaya)
	env := map[string]string{"D": "/d", "H": "a.example"}
	scope := servers.Scope{Home: "/h", Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	x, _, err := s.Expand(scope)
	want := servers.Sandbox{Read: []string{"/h", "/h/b", "/d/c"}, Write: []string{"/d"}, Hosts: []string{"a.example"}}
	if err != nil || !reflect.DeepEqual(*x.Sandbox, want) {
		t.Errorf("Expand() = %+v, %v; want %+v", x.Sandbox, err, want)
	}
	if s.Sandbox.Read[0] != "~" {
		t.Errorf("Expand changed the entry: %+v", s.Sandbox)
	}
	for name, value := range map[string]string{"H": "https://a.example", "D": "relative"} {
		was := env[name]
		env[name] = value
		if _, _, err := s.Expand(scope); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%s=%s: got %v, want it refused", name, value, err)
		}
		env[name] = was
	}
}

func TestPermit(t *testing.T) {
	s := servers.Server{Transport: servers.Stdio, Command: "x", Sandbox: &servers.Sandbox{Hosts: []string{"a.example"}}}
	more := servers.Sandbox{Hosts: []string{"a.example", "b.example"}, Write: []string{"/w"}}
	got := s.Permit(more)
	want := servers.Sandbox{Hosts: []string{"a.example", "b.example"}, Write: []string{"/w"}}
	if !reflect.DeepEqual(*got.Sandbox, want) || len(s.Sandbox.Hosts) != 1 {
		t.Errorf("Permit(%+v) = %+v, want %+v and the server as it was", more, got.Sandbox, want)
	}
	less, err := got.Sandbox.Forbid(servers.Sandbox{Write: []string{"/w"}, Hosts: []string{"a.example"}})
	if raw, _ := json.Marshal(less); err != nil || string(raw) != `{"hosts":["b.example"]}` {
		t.Errorf("Forbid = %s, %v", raw, err)
	}
	if _, err := less.Forbid(servers.Sandbox{Read: []string{"/w"}}); err == nil || !strings.Contains(err.Error(), "--read /w was not allowed") {
		t.Errorf("Forbid of what is not in it: got %v", err)
	}
	guarded := servers.Server{Transport: servers.Stdio, Command: "x"}
	if got := guarded.Permit(more); got.Sandbox != nil {
		t.Errorf("a guarded server needs no permit: got %+v", got.Sandbox)
	}
}

// GA-3: the user decides which servers' tools may change unasked: a project's file cannot
// decide it, and gets a warning.
func TestProjectTrustsNothing(t *testing.T) {
	cfg, err := servers.ParseProject("/p/.mcp.json", []byte(`{"mcpServers":{"a":{"command":"x","trust":"always"}}}`))
	if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].Trust != "" || len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], `"trust" is not imported`) {
		t.Errorf("got %+v, %v; want the server without it, and a warning", cfg, err)
	}
}

// GA-3: text that somebody else wrote into an entry cannot look like yaya's own in a question.
func TestQuestionQuotes(t *testing.T) {
	for _, c := range []struct{ name, entry, want string }{
		{"an address", `"url":"https://a.example/ (sha256 0)\nserver b: true"`, `"https://a.example/ (sha256 0)\nserver b: true"`},
		{"a variable", `"command":"x","env":{"A in sandbox profile server":"1"}`, `x with "A in sandbox profile server"`},
		{"a word", `"command":"x, in sandbox profile server"`, `"x, in sandbox profile server"`},
	} {
		cfg, err := servers.ParseProject("/p/.mcp.json", []byte(`{"mcpServers":{"a":{`+c.entry+`}}}`))
		if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].RunsExactly() != c.want {
			t.Errorf("%s: got %+v, %v; want %s", c.name, cfg, err, c.want)
		}
	}
}
