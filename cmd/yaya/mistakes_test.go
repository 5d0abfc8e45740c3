package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

// Profiles that nobody can read are not kept: they would refuse everybody.
func TestMistakesInProfilesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	for _, tt := range []struct{ name, key, value, want string }{
		{"an unknown group", "plugin.mcp_bridge.profiles.x.group", `["others"]`, "others"},
		{"an unknown scope", "plugin.mcp_bridge.profiles.x.scope", `["tool:call"]`, "tool:call"},
		{"a device without its kind", "plugin.mcp_bridge.profiles.x.principal", `["phone"]`, "did you mean device:phone?"},
		{"one text for a list", "plugin.mcp_bridge.profiles.x.tools", `"fs__*"`, "tools must be a JSON list of strings"},
		{"a broken pattern", "plugin.mcp_bridge.profiles.x.servers", `["["]`, "pattern"},
		{"an unknown field", "plugin.mcp_bridge.profiles.x.server", `["fs"]`, "server"},
		{"a name that is taken", "plugin.mcp_bridge.profiles.all.servers", `["fs"]`, "cannot be the name"},
		{"a profile", "plugin.mcp_bridge.profiles.x", `{"tool":[]}`, "tool"},
		{"a list for a profile", "plugin.mcp_bridge.profiles.x", `[]`, "a profile must be a JSON object"},
		{"all profiles", "plugin.mcp_bridge.profiles", `{"x":{"group":["others"]}}`, "others"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, err := b.run("config", "set", tt.key, tt.value); exitCode(err) != 2 || !strings.Contains(out, tt.want) || !strings.Contains(out, "plugin.mcp_bridge.profiles") {
				t.Errorf("config set: got %v, %s; want exit code 2, the key, and %q", err, out, tt.want)
			}
			if status, raw, _ := b.raw("PATCH", "/api/config/"+tt.key, `{"value":`+tt.value+`}`, "Content-Type", "application/json"); status != 400 {
				t.Errorf("the API: got %d %s, want 400", status, raw)
			}
		})
	}
	b.must("config", "set", "plugin.mcp_bridge.profiles.x.tools", `["fs__*"]`)
	b.must("config", "set", "plugin.mcp_bridge.profilesque", `1`)
}

// Mistakes in config.toml, because of which every call is refused, are reported at the start and by
// yaya doctor.
func TestMistakesInConfigAreTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, toml string
		want       []string
	}{
		{"rules", "[approval]\nrules = [{principal = \"device:*\", kind = \"exce\", decision = \"deny\"}]\n", []string{"approval.rules: rule 1", `exce`}},
		{"profiles", "[plugin.mcp_bridge.profiles.team]\ngroup = [\"team\"]\n", []string{"plugin.mcp_bridge.profiles: profile team", "approval.groups.team"}},
		{"groups", "[approval.groups]\nteam = [\"phone\"]\n", []string{"approval.groups.team", "did you mean device:phone?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			name := filepath.Join(b.dir, "c", "config.toml")
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(tt.toml), 0o600); err != nil {
				t.Fatal(err)
			}
			doctor, err := b.run("doctor")
			if exitCode(err) != 1 || !strings.Contains(doctor, "failed") {
				t.Errorf("yaya doctor: got %v, want exit code 1 and what has failed", err)
			}
			daemon := b.serve()
			said := func() string { return strings.ReplaceAll(fmt.Sprint(daemon.Stdout), `\"`, `"`) }
			for _, want := range tt.want {
				if !strings.Contains(doctor, want) {
					t.Errorf("yaya doctor does not say %q: %s", want, doctor)
				}
				eventually.True(t, "yaya serve says "+want, func() bool { return strings.Contains(said(), want) })
			}
		})
	}
}

// R17: a pipe in the place of a file is refused, and waited for by nobody: neither by
// commands, nor by the daemon, whose file became one.
func TestPipesInThePlaceOfFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	pipe := filepath.Join(b.dir, "pipe")
	hosttest.Pipe(t, pipe)
	for _, args := range [][]string{{"mcp", "list", "--mcp-config", pipe}, {"config", "list", "--config", pipe}} {
		if out, err := b.run(args...); err == nil || !strings.Contains(out, "is not a regular file") {
			t.Errorf("yaya %v: %v, %q, want that it is not a regular file", args, err, out)
		}
	}
	b.serve()
	file := filepath.Join(b.dir, "c", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	hosttest.Pipe(t, file)
	if out, err := b.run("reload"); err == nil || !strings.Contains(out, "is not a regular file") {
		t.Errorf("yaya reload: %v, %q, want that it is not a regular file", err, out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if out, err := b.run("mcp", "add", "one", "--", "true"); err != nil {
		t.Errorf("mcp add after the pipe: %v, %s", err, out)
	}
}

// A value that cannot be ends with 2, as a flag that is not there does.
func TestValuesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.edit("mcp.json", `{"mcpServers":{"bounded":{"command":"true","sandbox":{}}}}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--listen", "foo"}, "HOST:PORT"},
		{[]string{"serve", "--mcp-config", "nope.json"}, "nope.json"},
		{[]string{"token", "create", "y", "--scope", "foo"}, `unknown scope "foo"`},
		{[]string{"sandbox", "run", "--profile", "nope", "--", "true"}, "the profiles are"}, // GF-7
		{[]string{"serve", "--acme", "--host", "yaya.example", "--acme-directory", "http://ca.example"}, "not an https URL"},
		{[]string{"serve", "--acme", "--host", "yaya.example", "--acme-email", "me"}, "--acme-email"},
		{[]string{"token", "create", "bad name"}, "cannot be the name of a token"},
		{[]string{"sandbox", "run", "--host", "http://x y", "--", "true"}, "--host"},
		{[]string{"sandbox", "run", "--read", "/nonexistent", "--", "true"}, "--read"},
		{[]string{"sandbox", "run", "--write", "", "--", "true"}, "--write"},
		{[]string{"sandbox", "run", "--env", "NOT_SET_HERE", "--", "true"}, "NOT_SET_HERE"},
		{[]string{"sandbox", "run", "--env", "A=B", "--", "true"}, "A=B"},
		{[]string{"mcp", "allow", "x", "--host", "a b"}, `"a b"`},
		{[]string{"mcp", "allow", "bounded", "--read", "/nonexistent"}, "--read"},
		{[]string{"mcp", "allow", "x", "--write", "nonexistent"}, "--write"},
		{[]string{"mcp", "allow", "x", "--env", "A=B"}, "A=B"},
		{[]string{"mcp", "allow", "bounded", "--env", "NOT_SET_HERE"}, "NOT_SET_HERE"},
		{[]string{"connect", "https://yaya.example", "--fingerprint", "abc"}, "--fingerprint"},
		{[]string{"connect", "yaya.example"}, "not the URL of a server"},
		{[]string{"device", "invite", "--url", "yaya.example"}, "--url"},
		{[]string{"provider", "add", "one", "--base-url", "yaya.example"}, "--base-url"},
		{[]string{"provider", "add", "one", "--plugin", "nope"}, "nope"},
		{[]string{"run", "--session", "../x", "hello"}, "--session"},
		{[]string{"client", "add", "zed", "--url", "https://yaya.example/mcp", "--token-file", "/nonexistent"}, "/nonexistent"},
		{[]string{"secret", "set", "one", "--file", "/nonexistent"}, "--file"},
		{[]string{"serve", "--listen", "127.0.0.1:99999"}, "--listen"},
		{[]string{"serve", "--tls-self-signed", "--local", "nope"}, "--local"},
		{[]string{"serve", "--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"}, "--tls-cert"},
		{[]string{"serve", "--local", "off"}, "--local is for a yaya that serves TLS"},
		{[]string{"device", "invite", "--url", "http://yaya.example:8443"}, "use https://yaya.example:8443"},
	} {
		if out, err := b.run(c.args...); exitCode(err) != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%v: got %v, %s; want exit code 2 and %q", c.args, err, out, c.want)
		}
	}
}

// GF-7: the password of a URL that is refused is not printed.
func TestDirectoryWithAPassword(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, directory := range []string{"https://user:hunter2@ca.example/d", "http://user:hunter2@ca.example", "user:hunter2@ca.example", "https://user:hunter2@[::", "https://user:hun/ter2@ca.example"} {
		out, err := b.run("serve", "--acme", "--host", "yaya.example", "--acme-directory", directory)
		if exitCode(err) != 2 || strings.Contains(out, "hun") || strings.Contains(out, "ter2") || !strings.Contains(out, "--acme-directory") {
			t.Errorf("%s: got %v, %s; want exit code 2 and no password", directory, err, out)
		}
	}
}

// Servers that were never started and names that are nobody's are told apart.
func TestNamesThatHaveNoLogs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{
		"bad": map[string]any{"command": 5},
		"off": map[string]any{"command": "sh", "disabled": true},
	}))
	for name, want := range map[string]string{"bad": `server "bad" has no log, because it cannot start: `, "off": "yaya mcp enable off", "nope": `there is no server "nope"`} {
		if out, err := b.run("mcp", "logs", name); err == nil || !strings.Contains(out, want) {
			t.Errorf("mcp logs %s: got %v, %s; want %q", name, err, out, want)
		}
	}
	if out, err := b.run("mcp", "approve", "nope"); err == nil || strings.Contains(out, "Nothing waits") || !strings.Contains(out, `no changes of server "nope" wait`) {
		t.Errorf("mcp approve: got %v, %s; want only that nothing of it waits", err, out)
	}
}
