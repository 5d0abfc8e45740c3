package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// shellServers configures servers that run commands: own of the user's, guarded; bounded
// of the user's, in profile server; theirs of a trusted folder, which the box works in.
func shellServers(t *testing.T) *box {
	t.Helper()
	needNamespaces(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	b := newBox(t)
	b.cwd = filepath.Join(b.dir, "ws")
	script, err := os.ReadFile("testdata/shell.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string]string{
		"ws/shell.mjs": string(script), "ws/.git/config": "[core]", "own/shell.mjs": string(script), "own/secret": "a secret", "home.txt": "of the home", "named/f": "its words",
		"repo/.git/config": "[ours]", "repo/.git/HEAD": "ref: refs/heads/main\n",
		"ws/.mcp.json": `{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs"]}}}`,
		"c/mcp.json": fmt.Sprintf(`{"mcpServers":{"own":{"command":%q,"args":[%q],"cwd":%q},"bounded":{"command":%[1]q,"args":[%[2]q],"sandbox":{"read":[%[4]q],"write":[%[5]q]}}}}`,
			node, filepath.Join(b.dir, "own/shell.mjs"), filepath.Join(b.dir, "own"), filepath.Join(b.dir, "named"), filepath.Join(b.dir, "repo")),
	} {
		path = filepath.Join(b.dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b.env = []string{"XDG_CACHE_HOME=" + filepath.Join(b.dir, "cache")}
	b.must("trust", "--yes", b.cwd)
	return b
}

// sh runs a command in a server and returns what it said; failed says that it failed.
func (b *box) sh(server, cmd string) (said string, failed bool) {
	b.t.Helper()
	out, err := b.run("mcp", "call", server+"__sh", "--args", string(jsonOf(b.t, map[string]string{"cmd": cmd})))
	return out, err != nil
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// SEC-5: no server in a sandbox is the owner, sees yaya's files, or reaches its socket;
// one that is guarded sees everything else, and one that is bounded what is named.
func TestServersInSandboxes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := shellServers(t)
	running := b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	port := b.addr
	socket := filepath.Join(b.dir, "d", "yaya.sock")
	in := func(elem ...string) string { return filepath.Join(append([]string{b.dir}, elem...)...) }
	for _, c := range []struct {
		name, cmd            string
		own, bounded, theirs string // a part of what is said
	}{
		{name: "the port, as owner", cmd: "curl -s --noproxy '*' -m 5 http://" + port + "/status || echo unreachable", own: "runs in a sandbox of yaya's", bounded: "unreachable", theirs: "unreachable"},
		{name: "the port, for MCP", cmd: `curl -s --noproxy '*' -m 5 -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' http://` + port + "/mcp || echo unreachable", own: "a token is needed", bounded: "unreachable", theirs: "unreachable"},
		{name: "the port, by an orphan without marks", cmd: `env -i setsid sh -c 'sh -c "sleep 0.3; curl -s --noproxy \* -m 5 http://` + port + `/status || echo unreachable" &' ; sleep 1.5`, own: "a token is needed", bounded: "unreachable", theirs: "unreachable"},
		{name: "the socket", cmd: "curl -s -m 5 --unix-socket " + socket + " http://x/status || echo unreachable", own: "unreachable", bounded: "unreachable", theirs: "unreachable"},
		{name: "yaya's files", cmd: "cat " + in("c/mcp.json") + " " + in("d") + "/* " + in("d") + "/keys/* || echo hidden", own: "hidden", bounded: "hidden", theirs: "hidden"},
		{name: "another name for yaya's files", cmd: "ln -s " + in("c") + " /tmp/l$$ && cat /tmp/l$$/mcp.json; rm /tmp/l$$; cat /proc/" + fmt.Sprint(running.Process.Pid) + "/root" + in("c/mcp.json") + " || echo hidden", own: "hidden", bounded: "hidden", theirs: "hidden"},
		{name: "yaya's memory and environment", cmd: "cat /proc/" + fmt.Sprint(running.Process.Pid) + "/environ || echo hidden", own: "hidden", bounded: "hidden", theirs: "hidden"},
		{name: "signals to yaya", cmd: "kill -0 " + fmt.Sprint(running.Process.Pid) + " 2>/dev/null && echo sent || echo kept", own: "kept", bounded: "kept", theirs: "kept"},
		{name: "the home folder", cmd: "cat " + in("home.txt") + " || echo hidden", own: "of the home", bounded: "hidden", theirs: "hidden"},
		{name: "a folder that is named", cmd: "cat " + in("named/f") + " || echo hidden", own: "its words", bounded: "its words", theirs: "hidden"},
		{name: "writing there", cmd: "echo x > " + in("named/new") + " && rm " + in("named/new") + " && echo written || echo kept", own: "written", bounded: "kept", theirs: "kept"},
		{name: "what configures Git in a folder to write", cmd: "touch " + in("repo/.git/index") + "; echo evil > " + in("repo/.git/config") + "; cat " + in("repo/.git/config") + "; ls " + in("repo/.git"), bounded: "[ours]HEAD\nconfig\nindex"},
		{name: "the folder that brings one", cmd: "cat " + in("ws/.git/config") + " || echo hidden", own: "[core]", bounded: "hidden", theirs: "[core]"},
		{name: "writing its own script", cmd: "echo x >> " + in("ws/shell.mjs") + " && echo written || echo kept", theirs: "kept"},
		{name: "where it works", cmd: "pwd", own: in("own"), bounded: "/\n", theirs: in("ws")},
		{name: "its own home and cache", cmd: `touch "$HOME/x" && mkdir -p "$XDG_CACHE_HOME/y" && echo writable`, own: "writable", bounded: "writable", theirs: "writable"},
		{name: "descriptors", cmd: "ls /proc/self/fd | wc -l", own: "4", bounded: "4", theirs: "4"}, // 3 is that of ls
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			for server, want := range map[string]string{"own": c.own, "bounded": c.bounded, "theirs": c.theirs} {
				if want == "" {
					continue
				}
				if said, _ := b.sh(server, c.cmd); !strings.Contains(said, want) {
					t.Errorf("%s: got %q, want %q in it", server, said, want)
				}
			}
		})
	}
	b.t = t
	if leak, err := os.ReadFile(filepath.Join(b.dir, "ws", "shell.mjs")); err != nil || bytes.HasSuffix(leak, []byte("x\n")) {
		t.Errorf("the folder's script was changed: %v", err)
	}
	t.Run("what is enforced is said", func(t *testing.T) {
		b.t = t
		for server, profile := range map[string]string{"own": "guarded", "bounded": "server", "theirs": "server"} {
			var s admin.Server
			if err := json.Unmarshal([]byte(b.must("mcp", "get", server, "--json")), &s); err != nil {
				t.Fatal(err)
			}
			if s.Sandbox == nil || s.Sandbox.Profile != profile || s.Sandbox.Backend != sandbox.Namespaces || len(s.Sandbox.Enforced) == 0 {
				t.Errorf("%s: got %+v, want profile %s and what is enforced", server, s.Sandbox, profile)
			}
			if text := b.must("mcp", "get", server); !strings.Contains(text, "in sandbox profile "+profile) || !strings.Contains(text, "back end namespaces") {
				t.Errorf("yaya mcp get %s says nothing of its sandbox:\n%s", server, text)
			}
		}
		if text, want := b.must("mcp", "get", "bounded"), in("own/shell.mjs"); !strings.Contains(text, ", "+want+"; writes") {
			t.Errorf("yaya mcp get bounded does not name its script %s:\n%s", want, text)
		}
		for _, st := range b.status().Servers {
			if d := daemon.DetailOf(st); d.Sandbox == nil || d.Sandbox.Backend != sandbox.Namespaces || d.Sandbox.Has == 0 {
				t.Errorf("yaya mcp list --json: %s: got sandbox %+v", st.ID, d.Sandbox)
			}
		}
	})
	t.Run("its process is told, and killed", func(t *testing.T) {
		b.t = t
		pid := b.pidOf("own")
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || !strings.HasPrefix(string(comm), "node") && !strings.HasPrefix(string(comm), "MainThread") {
			t.Errorf("process %d of own is %q, %v; want node", pid, comm, err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "it is started again", func() bool {
			for _, s := range b.listed() {
				if s.Name == "own" && s.State == "ready" && s.Restarts == 1 {
					return strings.Contains(s.LastError, "ended with SIGKILL")
				}
			}
			return false
		})
	})
}

// yaya reports once what a sandbox refused, with the command that would allow it: in the
// failed call, the server's log and yaya's own. A permit then works, and can be taken back.
func TestServerIsAllowedMore(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := shellServers(t)
	for name, to := range map[string]string{"l": "c", "n2": "named"} {
		if err := os.Symlink(filepath.Join(b.dir, to), filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	const reach = `exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n' >&3 && head -1 <&3 | grep -v 403`
	for _, server := range []string{"bounded", "theirs"} {
		message := `server "` + server + `" was kept from reaching example.com:443 (profile server). Allow it: yaya mcp allow ` + server + ` --host example.com`
		said, failed := b.sh(server, "bash -c '"+strings.ReplaceAll(reach, "'", `'\''`)+"'")
		if !failed || !strings.Contains(said, message) {
			t.Errorf("%s: got %q, want it to fail with %q", server, said, message)
		}
		home := filepath.Join(b.dir, "home.txt")
		maybe := `server "` + server + `" may have been kept from reading ` + home + ` (profile server). If you want it to, allow it: yaya mcp allow ` + server + ` --read ` + home
		if said, failed := b.sh(server, "cat "+home); !failed || !strings.Contains(said, "No such file") || strings.Count(said, maybe) != 1 { // GF-1: the failure says it
			t.Errorf("%s: got %q, want it hidden, and %q", server, said, maybe)
		}
		eventually.True(t, "both are in the log of "+server, func() bool {
			logs := b.must("mcp", "logs", server)
			return strings.Count(logs, message) == 1 && strings.Contains(logs, maybe)
		})

		var shown admin.Server
		if err := json.Unmarshal([]byte(b.must("mcp", "get", server, "--json")), &shown); err != nil || len(shown.Sandbox.Denied) < 2 || shown.Sandbox.Denied[1].Allow != "yaya mcp allow "+server+" --host example.com" {
			t.Errorf("%s: the state shows %+v, %v; want both denials", server, shown.Sandbox, err)
		}
		file := b.mcpFile()
		brings, err := os.ReadFile(filepath.Join(b.cwd, ".mcp.json"))
		if err != nil {
			t.Fatal(err)
		}
		out := b.must("mcp", "allow", server, "--read", home, "--host", "*.example.org")
		if !strings.Contains(out, "+ "+server+": in sandbox profile server: reads the files of the system, ") || !strings.Contains(out, home) || !strings.Contains(out, "*.example.org") {
			t.Errorf("yaya mcp allow says %q, want what has changed", out)
		}
		eventually.True(t, server+" reads what it was allowed", func() bool {
			said, failed := b.sh(server, "cat "+home)
			return !failed && strings.Contains(said, "of the home")
		})
		if after, err := os.ReadFile(filepath.Join(b.cwd, ".mcp.json")); err != nil || !bytes.Equal(after, brings) {
			t.Errorf("the folder's file is %s, %v; want it as it was", after, err)
		}
		if changed := file != b.mcpFile(); changed != (server == "bounded") {
			t.Errorf("%s: yaya's own file was %s and is %s", server, file, b.mcpFile())
		}
		if out := b.must("mcp", "get", server); !strings.Contains(out, home) {
			t.Errorf("yaya mcp get %s does not say what it was allowed:\n%s", server, out)
		}
		if out := b.must("mcp", "allow", server, "--read", home); !strings.Contains(out, "nothing changed") {
			t.Errorf("the same again: got %q", out)
		}
		b.must("mcp", "allow", server, "--read", home, "--remove")
		eventually.True(t, server+" no longer reads it", func() bool {
			said, failed := b.sh(server, "cat "+home)
			return failed && strings.Contains(said, "No such file")
		})
		if out, err := b.run("mcp", "allow", server, "--read", home, "--remove"); err == nil || !strings.Contains(out, "was not allowed") {
			t.Errorf("removing it again: got %q, %v", out, err)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"a guarded server", []string{"own", "--host", "a.example"}, `server "own" needs no permit: it is in sandbox profile guarded`},
		{"no server", []string{"nobody", "--host", "a.example"}, `there is no server "nobody"`},
		{"a URL", []string{"theirs", "--host", "https://a.example"}, `host "https://a.example"`},
		{"a variable that loads code", []string{"theirs", "--env", "LD_PRELOAD"}, "LD_PRELOAD"},
		{"yaya's own folder", []string{"theirs", "--read", filepath.Join(b.dir, "c")}, "/c belongs to yaya itself"},
		{"a folder above it", []string{"theirs", "--read", b.dir}, "which is yaya's own: name the files and folders in it"},
		{"yaya's own by a link", []string{"theirs", "--read", filepath.Join(b.dir, "l")}, "/c belongs to yaya itself"},
		{"yaya's socket", []string{"bounded", "--write", filepath.Join(b.dir, "d", "yaya.sock")}, "belongs to yaya itself"},
		{"caches of others", []string{"bounded", "--read", filepath.Join(b.dir, "cache/yaya/sandbox")}, "belongs to yaya itself"},
		{"a file that is not there", []string{"bounded", "--write", filepath.Join(b.dir, "named/new/er")}, "create it first, or name the folder above it: --write " + filepath.Join(b.dir, "named")},
		{"one beside what is yaya's own", []string{"theirs", "--write", filepath.Join(b.dir, "new")}, "file or folder not found: create it first"},
		{"a relative path", []string{"theirs", "--write", "out"}, "--write out: a server does not work in this folder: write the whole path, /"},
		{"a path without a value", []string{"theirs", "--read", "${NOT_SET_HERE}/x"}, "a variable in it has no value"},
		{"devices", []string{"theirs", "--read", "/dev"}, "which has /dev of its own"},
		{"a variable that is not set", []string{"theirs", "--env", "NOT_SET_HERE"}, "--env NOT_SET_HERE: the variable is not set where yaya runs"},
		{"nothing", []string{"theirs"}, "say what to allow"},
	} {
		out, err := b.run(append([]string{"mcp", "allow"}, c.args...)...)
		if c.want != "" && (err == nil || !strings.Contains(out, c.want)) {
			t.Errorf("%s: got %q, %v; want %q", c.name, out, err, c.want)
		}
	}
	// A link is kept as what it leads to, and taken back by both names.
	for _, server := range []string{"bounded", "theirs"} {
		if out := b.must("mcp", "allow", server, "--read", filepath.Join(b.dir, "n2")); !strings.Contains(out, filepath.Join(b.dir, "named")) || strings.Contains(out, "n2") {
			t.Errorf("%s: a link was allowed: got %q, want what it leads to", server, out)
		}
		b.must("mcp", "allow", server, "--read", filepath.Join(b.dir, "n2"), "--remove")
	}
	// F6: neither has another program, nor a folder whose trust was revoked.
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"another program", func() error {
			f, err := os.OpenFile(filepath.Join(b.cwd, "shell.mjs"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("\n// other\n")
			return errors.Join(err, f.Close())
		}},
		{"a revoked folder", func() error { _, err := b.run("trust", "revoke", b.cwd); return err }},
	} {
		b.must("mcp", "allow", "theirs", "--host", "f6.example")
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		b.must("trust", "--yes", b.cwd)
		if out := b.must("mcp", "get", "theirs"); strings.Contains(out, "f6.example") {
			t.Errorf("%s has the permit of the one before:\n%s", c.name, out)
		}
	}
	// An entry that changes has no permits.
	if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs","again"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", b.cwd)
	eventually.True(t, "the other entry has no permits", func() bool {
		out, err := b.run("mcp", "get", "theirs")
		return err == nil && strings.Contains(out, "ready") && strings.Contains(out, "reaches no host")
	})
}

// A daemon that is killed leaves no server behind, in whichever sandbox.
func TestKilledDaemonLeavesNoServer(t *testing.T) {
	t.Parallel()
	b := shellServers(t)
	running := b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	for _, server := range []string{"own", "bounded", "theirs"} {
		if said, failed := b.sh(server, "setsid sh -c 'exec sleep 987654321' >/dev/null 2>&1 & echo started"); failed || !strings.Contains(said, "started") {
			t.Fatalf(`%s: got %q, want "started" in it`, server, said)
		}
	}
	of := func() (found []string) {
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			line, lerr := os.ReadFile(dir + "/cmdline")
			env, eerr := os.ReadFile(dir + "/environ")
			if lerr == nil && eerr == nil && bytes.Contains(env, []byte("HOME="+b.dir+"\x00")) && bytes.Contains(env, []byte("YAYA_CHILD=")) {
				found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		return found
	}
	if got := of(); len(got) < 6 {
		t.Fatalf("got processes %q, want three servers and what they have started", got)
	}
	if err := running.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "nothing is left", func() bool { return len(of()) == 0 })
}

// The question about a folder shows a wider sandbox literally, and one that becomes wider
// is asked about again.
func TestFolderShowsItsSandboxes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	b.cwd = filepath.Join(b.dir, "ws")
	write := func(sandbox string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(b.cwd, 0o700), os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"s":{"command":"true"`+sandbox+`}}}`), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b.make(".ssh/id")
	write("")
	if err := os.Symlink(filepath.Join(b.dir, ".ssh"), filepath.Join(b.cwd, "data")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, sandbox, want string }{
		{"none", ``, "server s: true, in sandbox profile server: reads the files of the system, and the programs of your PATH with their installations, and " + b.cwd + "; writes none of your files; reaches no host"},
		{"a host", `,"sandbox":{"hosts":["evil.example"]}`, "reaches evil.example"},
		{"a folder", `,"sandbox":{"read":["~/.ssh"],"write":["/etc"]}`, "~/.ssh (credentials); writes /etc"},
		{"a link to credentials", `,"sandbox":{"read":["data"]}`, b.cwd + "/data (leads to " + b.dir + "/.ssh; credentials)"},
		{"a variable", `,"sandbox":{"read":["${HOME}/x"]}`, `"${HOME}/x" (leads to ` + b.dir + "/x)"},
		{"the name of a variable", `,"env":{"A, outside the sandbox":"1"}`, `with "A, outside the sandbox"`},
		{"guarded", `,"sandbox":{"profile":"guarded"}`, "reads and writes all files that you can, and reaches every host; kept from yaya alone"},
		{"off", `,"sandbox":{"profile":"off"}`, "outside the sandbox, with all your rights, yaya's own files included"},
	} {
		write(c.sandbox)
		out, err := b.run("trust", b.cwd)
		if err == nil || !strings.Contains(out, "is not trusted") || !strings.Contains(out, c.want) {
			t.Errorf("%s: the question is %q, %v; want %q", c.name, out, err, c.want)
		}
		b.must("trust", "--yes", b.cwd)
	}
}

// The servers that everybody has work in profile server with what they are for: their
// files, their repository, their host.
func TestRealServersBounded(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	node := needPeers(t)
	b := newBox(t)
	files, repository := filepath.Join(b.dir, "files"), filepath.Join(b.dir, "repository")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "trunk", repository).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	bounded := func(command string, args []string, sandbox map[string]any) map[string]any {
		return map[string]any{"command": command, "args": args, "sandbox": sandbox}
	}
	npm := func(script string, sandbox map[string]any, args ...string) map[string]any {
		return bounded(node, append([]string{unlinked(t, absolute(t, peers, script))}, args...), sandbox)
	}
	none := map[string]any{}
	servers := map[string]any{
		"everything": npm("@modelcontextprotocol/server-everything/dist/index.js", none, "stdio"),
		"filesystem": npm("@modelcontextprotocol/server-filesystem/dist/index.js", map[string]any{"write": []string{files}}, files),
		"memory":     npm("@modelcontextprotocol/server-memory/dist/index.js", map[string]any{"write": []string{files}}),
		"thinking":   npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js", none),
		"time":       bounded(python(t, "mcp-server-time"), nil, none),
		"git":        bounded(python(t, "mcp-server-git"), []string{"--repository", repository}, map[string]any{"write": []string{repository}}),
		"fetch":      bounded(python(t, "mcp-server-fetch"), []string{"--ignore-robots-txt"}, map[string]any{"hosts": []string{"example.org"}}),
	}
	servers["memory"].(map[string]any)["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(files, "memory.json")} //nolint:forcetypeassert // made above
	path := filepath.Join(b.dir, "c", "mcp.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, jsonOf(t, map[string]any{"mcpServers": servers}), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.firstStart([]string{"everything", "filesystem", "memory", "thinking", "time", "git", "fetch"})
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"everything__echo", map[string]any{"message": "hi"}, "Echo: hi"},
		{"filesystem__write_file", map[string]any{"path": filepath.Join(files, "a.txt"), "content": "x"}, "Successfully wrote"},
		{"filesystem__read_text_file", map[string]any{"path": filepath.Join(files, "a.txt")}, "x"},
		{"memory__create_entities", map[string]any{"entities": []any{map[string]any{"name": "n", "entityType": "t", "observations": []string{"o"}}}}, "n"},
		{"memory__read_graph", map[string]any{}, "entities"},
		{"thinking__sequentialthinking", map[string]any{"thought": "so", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}, "thoughtNumber"},
		{"time__get_current_time", map[string]any{"timezone": "Europe/Paris"}, "Europe/Paris"},
		{"git__git_status", map[string]any{"repo_path": repository}, "On branch trunk"},
	} {
		if out, err := b.run("mcp", "call", c.tool, "--args", string(jsonOf(t, c.args))); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %.500s, %v; want %q", c.tool, out, err, c.want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(files, "a.txt")); err != nil || string(data) != "x" {
		t.Errorf("the file that was written is %q, %v", data, err)
	}
	// The failed call names what the server was not allowed, with the remedy.
	const kept = `server "fetch" was kept from reaching example.com:443 (profile server). Allow it: yaya mcp allow fetch --host example.com`
	if out, err := b.run("mcp", "call", "fetch__fetch", "--args", `{"url":"https://example.com/"}`); err == nil || !strings.Contains(out, kept) {
		t.Errorf("fetch of a host that is not named: got %.500s, %v; want %q", out, err, kept)
	}
	b.notRestarted()
}

// unlinked is a path without links: those of a bounded server of the user's own have none.
func unlinked(t *testing.T, path string) string {
	t.Helper()
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// SEC-5: a server that may call tools of others does so as itself: a person is asked,
// rules name it, its own tools are not among them, and nothing else of yaya is there.
func TestServerCallsAsItself(t *testing.T) {
	t.Parallel()
	b := shellServers(t)
	if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs"],"sandbox":{"mcp":true}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.must("trust", "--yes", b.cwd); !strings.Contains(out, "asks you to call tools of other servers") {
		t.Errorf("the question does not say that the server calls others:\n%s", out)
	}
	b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	request := func(method string, params map[string]any) string {
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]string{"name": "theirs", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
		body := jsonOf(t, map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		name, _ := params["name"].(string)
		return fmt.Sprintf("curl -s -m 50 --noproxy '*' -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: %s' -H 'mcp-name: %s' -d '%s' \"$YAYA_MCP_URL\"", method, name, body)
	}
	call := func(tool, cmd string) string {
		return request("tools/call", map[string]any{"name": tool, "arguments": map[string]string{"cmd": cmd}})
	}
	if said, failed := b.sh("theirs", request("tools/list", map[string]any{})); failed || !strings.Contains(said, "own__sh") {
		t.Errorf("tools/list: got %.500s, want the tools of others", said)
	}
	if said, _ := b.sh("theirs", call("own__sh", "echo ran")); !strings.Contains(said, "nobody is there to ask") {
		t.Errorf("a call that nobody has agreed to: got %s, want it refused", said)
	}
	page, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+b.addr+"/api/live?vsn=2.0.0", http.Header{"Origin": {"http://" + b.addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if err := page.WriteMessage(websocket.TextMessage, []byte(`["1","1","dashboard:main","phx_join",{}]`)); err != nil {
		t.Fatal(err)
	}
	for joined := false; !joined; {
		_, data, err := page.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		joined = strings.Contains(string(data), `"status":"ok"`)
	}
	answers := func(answer string) string {
		t.Helper()
		said := make(chan string, 1)
		go func() {
			out, _ := b.run("mcp", "call", "theirs__sh", "--args", string(jsonOf(t, map[string]string{"cmd": call("own__sh", "cat "+filepath.Join(b.dir, "own/secret"))})))
			said <- out
		}()
		var asks []admin.Ask
		eventually.True(t, "somebody is asked about the call", func() bool {
			b.admin("GET", "/approvals", "", 200, &asks)
			return len(asks) == 1
		})
		if asks[0].Tool != "own__sh" {
			t.Errorf("asked about %+v, want own__sh", asks[0])
		}
		b.admin("POST", "/approvals/"+asks[0].ID, `{"response":"`+answer+`"}`, 200, nil)
		return <-said
	}
	if said := answers("reject"); strings.Contains(said, "a secret") {
		t.Errorf("a call that was rejected has run: %s", said)
	}
	if said := answers("approve"); !strings.Contains(said, "a secret") {
		t.Errorf("a call that was approved: got %s, want what it reads", said)
	}
	b.set("approval.rules", `[{"principal":"server:theirs","provider":"own","decision":"allow"},{"principal":"server:theirs","provider":"bounded","decision":"deny","reason":"not by servers"}]`)
	if said, _ := b.sh("theirs", call("own__sh", "echo allowed by a rule")); !strings.Contains(said, "allowed by a rule") {
		t.Errorf("a call that a rule allows: got %s", said)
	}
	if said, _ := b.sh("theirs", call("bounded__sh", "echo ran")); !strings.Contains(said, "not by servers") {
		t.Errorf("a call that a rule denies: got %s", said)
	}
	if said, _ := b.sh("theirs", call("theirs__sh", "echo ran in a loop")); strings.Contains(said, "ran in a loop\\n") || !strings.Contains(said, "theirs__sh") {
		t.Errorf("a call of its own tool: got %s, want it refused", said)
	}
	for _, path := range []string{"/status", "/api/mcp/servers", "/", "/v1/sessions"} {
		if said, _ := b.sh("theirs", "curl -s -o /dev/null -w '%{http_code}' --noproxy '*' http://127.0.0.1:8787"+path); !strings.HasPrefix(said, "404") {
			t.Errorf("%s: got %s, want 404", path, said)
		}
	}
	if said, _ := b.sh("bounded", "curl -s -m 5 --noproxy '*' http://127.0.0.1:8787/mcp || echo unreachable"); !strings.Contains(said, "unreachable") {
		t.Errorf("a server that was not given it: got %s", said)
	}
}

// SEC-5: a server that may call tools of others reads none of their resources and
// prompts, in either era, since nobody is asked about those.
func TestServerReadsNothingOfOthers(t *testing.T) {
	t.Parallel()
	b := shellServers(t)
	if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs"],"sandbox":{"mcp":true}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", b.cwd)
	b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	// One script for both eras; the URL is that of its sandbox.
	const curl = `curl -s -m 50 --noproxy '*' -H 'content-type: application/json' -H 'accept: application/json, text/event-stream'`
	modern := func(url, method, name string, params map[string]any) string {
		params = maps.Clone(params)
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"com.example/shell": map[string]any{}}}}
		return fmt.Sprintf("%s -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: %s' -H 'mcp-name: %s' -d '%s' %s", curl, method, name, jsonOf(t, map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), url)
	}
	hello := jsonOf(t, map[string]any{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-06-18", "clientInfo": map[string]string{"name": "x", "version": "1"},
		"capabilities": map[string]any{"sampling": map[string]any{}, "extensions": map[string]any{"com.example/shell": map[string]any{}}}}})
	legacy := func(url, method string, params map[string]any) string {
		return fmt.Sprintf(`%[1]s -D "$HOME/h" -d '%[2]s' %[3]s; s=$(tr -d '\r' < "$HOME/h" | grep -i '^mcp-session-id:'); %[1]s -H "$s" -d '%[4]s' %[3]s`,
			curl, hello, url, jsonOf(t, map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
	}
	if said, _ := b.sh("theirs", legacy(`"$YAYA_MCP_URL"`, "ping", map[string]any{})); !strings.Contains(said, `"capabilities":{"tools":{}}`) {
		t.Errorf("initialize: got %s, want tools alone", said)
	}
	for _, c := range []struct {
		method, name string
		params       map[string]any
	}{
		{"resources/list", "", map[string]any{}},
		{"prompts/list", "", map[string]any{}},
		{"resources/read", "shell://r", map[string]any{"uri": "shell://r"}},
		{"prompts/get", "own__p", map[string]any{"name": "own__p"}},
		{"completion/complete", "", map[string]any{"ref": map[string]string{"type": "ref/prompt", "name": "own__p"}, "argument": map[string]string{"name": "a", "value": ""}}},
		{"resources/subscribe", "", map[string]any{"uri": "shell://r"}},
		{"shell/run", "", map[string]any{"name": "own__sh"}},
	} {
		for era, cmd := range map[string]string{"modern": modern(`"$YAYA_MCP_URL"`, c.method, c.name, c.params), "legacy": legacy(`"$YAYA_MCP_URL"`, c.method, c.params)} {
			if said, _ := b.sh("theirs", cmd); strings.Contains(said, "RESOURCE") || !strings.Contains(said, "is not allowed for servers") {
				t.Errorf("%s, %s: got %s, want it refused", c.method, era, said)
			}
		}
	}
}

// Where there is Landlock alone, a server is never the owner either, and one that was
// promised hosts is refused instead of started without them. Settings that give sandboxes
// up say so in the server's state.
func TestServersInWeakerSandboxes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	for _, c := range []struct {
		name, settings string
		backend        map[string]string // by server; "" is refused
		port           string            // what a guarded server gets at yaya's port
		files          string            // and of yaya's files
	}{
		{"landlock", "[sandbox]\nbackend = \"landlock\"\n", map[string]string{"own": "landlock", "theirs": "landlock", "outside": "off", "hosts": ""}, "runs in a sandbox of yaya's", "hidden"},
		{"off", "[sandbox]\nmode = \"off\"\n", map[string]string{"own": "off", "theirs": "off", "outside": "off", "hosts": "off"}, "a tool or a server of yaya has started", "mcpServers"},
		{"require", "[sandbox]\nmode = \"require\"\nbackend = \"off\"\n", map[string]string{"own": "", "theirs": "", "outside": "", "hosts": ""}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := shellServers(t)
			if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"node","args":["shell.mjs"]},"outside":{"command":"node","args":["shell.mjs"],"sandbox":{"profile":"off"}},"hosts":{"command":"node","args":["shell.mjs"],"sandbox":{"hosts":["example.com"]}}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			b.settings(c.settings)
			b.must("trust", "--yes", b.cwd)
			b.serve()
			states := func() map[string]admin.Server {
				var all []admin.Server
				b.admin("GET", "/mcp/servers", "", 200, &all)
				out := map[string]admin.Server{}
				for _, s := range all {
					out[s.Name] = s
				}
				return out
			}
			for server, backend := range c.backend {
				want := map[bool]string{true: "ready", false: "failed"}[backend != ""]
				eventually.True(t, server+" is "+want, func() bool { return states()[server].State == want })
				s := states()[server]
				switch {
				case backend == "" && !strings.Contains(s.Reason, "the sandbox cannot enforce") && !strings.Contains(s.Reason, "because its network is off") && !strings.Contains(s.Reason, `sandbox.mode is "require"`):
					t.Errorf("%s: refused with %q, want what is not bounded", server, s.Reason)
				case backend != "" && (s.Sandbox == nil || s.Sandbox.Backend != backend || len(s.Sandbox.Missing) == 0):
					t.Errorf("%s: got %+v, want back end %s and what is missing", server, s.Sandbox, backend)
				}
			}
			if c.port == "" {
				return
			}
			if said, _ := b.sh("own", "curl -s --noproxy '*' -m 5 http://"+b.addr+"/status"); !strings.Contains(said, c.port) {
				t.Errorf("yaya's port: got %s, want %q", said, c.port)
			}
			socket := "curl -s -m 5 --unix-socket " + filepath.Join(b.dir, "d/yaya.sock") + " http://yaya/status || echo hidden"
			if said, _ := b.sh("own", socket); c.backend["own"] == "landlock" && (!strings.Contains(said, c.port) && !strings.Contains(said, "hidden") || strings.Contains(said, "mcp_url")) {
				t.Errorf("yaya's socket: got %s, want a refusal", said)
			}
			mcp := `curl -s --noproxy '*' -m 5 -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' http://` + b.addr + "/mcp"
			if said, _ := b.sh("own", mcp); c.backend["own"] == "landlock" && !strings.Contains(said, "a token is needed") {
				t.Errorf("yaya's MCP endpoint, as its owner: got %s, want a refusal", said)
			}
			if said, _ := b.sh("own", "cat "+filepath.Join(b.dir, "c/mcp.json")+" || echo hidden"); !strings.Contains(said, c.files) {
				t.Errorf("yaya's files: got %s, want %q", said, c.files)
			}
		})
	}
}
