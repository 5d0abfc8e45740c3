package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// recorder is an MCP server that writes a line to a file whenever it is started.
const recorder = `echo start >> "$1"
while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"called & done"}]}}' ;;
*'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
esac
done
`

// recorded is the command line of a server that records its starts, and how often it has
// been started.
func (b *box) recorded(name string) (command []string, starts func() int) {
	b.t.Helper()
	script, record := filepath.Join(b.dir, "recorder.sh"), filepath.Join(b.dir, name+".starts")
	if err := os.WriteFile(script, []byte(recorder), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return []string{"sh", script, record}, func() int {
		raw, err := os.ReadFile(record)
		if err != nil && !os.IsNotExist(err) {
			b.t.Fatalf("ReadFile(%s) = %v, want the record or no file", record, err)
		}
		return strings.Count(string(raw), "start\n")
	}
}

// state is how mcp list shows a server, "" if it does not.
func (b *box) state(name string) string {
	b.t.Helper()
	for line := range strings.Lines(b.must("mcp", "list")) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == name {
			return f[2]
		}
	}
	return ""
}

func (b *box) waitState(name, want string) {
	b.t.Helper()
	got := ""
	defer func() {
		if b.t.Failed() {
			b.t.Logf("the state of %s is %q, want %q", name, got, want)
		}
	}()
	eventually.True(b.t, name+" is "+want, func() bool { got = b.state(name); return got == want })
}

// USE-2: beside a running daemon, what is added, switched, edited and removed works at
// once, and mcp list shows it.
func TestServersBesideTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	first, _ := b.recorded("first")
	b.must(append([]string{"mcp", "add", "first", "--"}, first...)...)
	b.serve()
	second, starts := b.recorded("second")

	out := b.must(append([]string{"mcp", "add", "second"}, second...)...)
	if !strings.Contains(out, "added second: sh ") || strings.Contains(out, "restart") {
		t.Errorf("mcp add said %q, want that it works now", out)
	}
	if got := b.state("second"); got != "starting" && got != "ready" {
		t.Errorf("right after it was added, the state is %q, want starting or ready", got)
	}
	b.waitState("second", "ready")
	if got := b.must("mcp", "call", "second__t"); got != "called & done\n" {
		t.Errorf("mcp call: got %q", got)
	}

	if out := b.must("mcp", "disable", "second"); out != "disabled second\n" {
		t.Errorf("mcp disable: got %q", out)
	}
	if got := b.state("second"); got != "disabled" { // USE-10: it does not vanish
		t.Errorf("after disable the state is %q", got)
	}
	if out, err := b.run("mcp", "call", "second__t"); err == nil {
		t.Errorf("a tool of a server that is switched off was called: %s", out)
	}
	if out, err := b.run("mcp", "restart", "second"); err == nil || !strings.Contains(out, "yaya mcp enable second") {
		t.Errorf("restart of a server that is switched off: %v, %q", err, out)
	}
	b.must("mcp", "enable", "second")
	b.waitState("second", "ready")
	if got := starts(); got != 2 {
		t.Errorf("it was started %d times, want 2", got)
	}
	b.must("mcp", "restart", "second")
	b.waitState("second", "ready")
	if got := starts(); got != 3 {
		t.Errorf("it was started %d times, want 3", got)
	}

	if out := b.must("mcp", "get", "second"); !strings.Contains(out, "ready") || !strings.Contains(out, `"command": "sh"`) {
		t.Errorf("mcp get: got %q", out)
	}
	out = b.must("mcp", "add-json", "third", `{"command":"sh","args":["-c","exit 3"],"env":{"KEY":"secret-value"}}`)
	if !strings.Contains(out, "added third") {
		t.Errorf("mcp add-json: got %q", out)
	}
	if out := b.must("mcp", "get", "third"); strings.Contains(out, "secret-value") || !strings.Contains(out, `"KEY"`) {
		t.Errorf("mcp get shows a secret, or not that there is one: %q", out)
	}
	for _, name := range []string{"second", "third"} {
		if out := b.must("mcp", "remove", name); out != "removed "+name+"\n" {
			t.Errorf("mcp remove: got %q", out)
		}
		if got := b.state(name); got != "" {
			t.Errorf("%s was removed, and is %s", name, got)
		}
	}
	if out, err := b.run("mcp", "remove", "second"); err == nil || !strings.Contains(out, `there is no server "second"`) {
		t.Errorf("mcp remove of what is gone: %v, %q", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(b.dir, "c", "mcp.json"))
	if err != nil || strings.Contains(string(raw), "second") || !strings.Contains(string(raw), "first") {
		t.Errorf("the file has %s, %v", raw, err)
	}
}

// USE-2: servers of other clients that are taken over run at once.
func TestImportBesideTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	command, _ := b.recorded("other")
	entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"other": map[string]any{"command": command[0], "args": command[1:]}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "other.json"), entry, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := b.must("mcp", "import", "--yes", filepath.Join(b.dir, "other.json")); strings.Contains(out, "restart") {
		t.Errorf("mcp import said %q", out)
	}
	b.waitState("other", "ready")
}

// USE-2: the command reports a mistake in the file, and the audit does not
// tell of a change that never was.
func TestBrokenFileBesideTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	first, _ := b.recorded("first")
	b.must(append([]string{"mcp", "add", "first", "--"}, first...)...)
	b.serve()
	file := filepath.Join(b.dir, "c", "mcp.json")
	if err := os.WriteFile(file, []byte("{ bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mcp", "remove", "first"}, {"mcp", "disable", "first"}, append([]string{"mcp", "add", "other"}, first...)} {
		out, err := b.run(args...)
		if err == nil || !strings.Contains(out, file) || !strings.Contains(out, "line 1") || strings.Contains(out, "internal error") {
			t.Errorf("yaya %v: %v, %q, want the file and the line", args, err, out)
		}
	}
	if out, err := b.run("mcp", "enable", "ghost"); err == nil {
		t.Errorf("a server that is not there was switched on: %s", out)
	}
	audit := b.must("audit")
	if strings.Contains(audit, "server_switched") { // refused before anything is done
		t.Errorf("the audit has server_switched, want none:\n%s", audit)
	}
	for _, event := range []string{"server_removed", "server_changed"} {
		if did, failed := strings.Count(audit, event+" ")-0, strings.Count(audit, event+"_failed"); failed == 0 || did == 0 {
			t.Errorf("the audit has %d of %s, and %d that failed, want both:\n%s", did, event, failed, audit)
		}
	}
}

// An edit is checked, applied at once, and refused if the server was changed meanwhile.
func TestEditServer(t *testing.T) {
	t.Parallel()
	for _, beside := range []bool{true, false} {
		t.Run(map[bool]string{true: "beside a daemon", false: "alone"}[beside], func(t *testing.T) {
			b := newBox(t)
			command, starts := b.recorded("fake")
			b.must(append([]string{"mcp", "add", "fake", "-e", "KEY=secret-value"}, command...)...)
			if beside {
				b.serve()
				b.waitState("fake", "ready")
			}
			b.bin = b.editing(`sed -i 's/"command": "sh"/"command": "sh", "description": "edited"/'`)
			if out := b.must("mcp", "edit", "fake"); !strings.Contains(out, "changed fake: sh ") {
				t.Errorf("mcp edit: got %q", out)
			}
			file := filepath.Join(b.dir, "c", "mcp.json")
			if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), `"edited"`) || !strings.Contains(string(raw), "secret-value") {
				t.Errorf("the file has %s, %v", raw, err)
			}
			if beside {
				eventually.True(t, "it runs as it was edited", func() bool { return starts() == 2 })
				b.waitState("fake", "ready")
			}
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b.bin = b.editing("true")
			if out := b.must("mcp", "edit", "fake"); !strings.Contains(out, "Nothing was changed") {
				t.Errorf("an edit that changes nothing: got %q", out)
			}
			b.bin = b.editing(`sed -i 's/"command"/"comand"/'`)
			if out, err := b.run("mcp", "edit", "fake"); err == nil || !strings.Contains(out, "comand") || !strings.Contains(out, "your text is in ") {
				t.Errorf("a mistake: %v, %q", err, out)
			}
			if now, err := os.ReadFile(file); err != nil || string(now) != string(before) {
				t.Errorf("the file was changed to %s, %v", now, err)
			}
			started, changed := filepath.Join(b.dir, "started"), filepath.Join(b.dir, "changed")
			b.bin = b.editing("touch " + started + "; while [ ! -e " + changed + " ]; do sleep 0.01; done; sed -i s/edited/third/")
			editor := b.daemon("mcp", "edit", "fake")
			b.bin = binary(t)
			eventually.True(t, "the editor runs", func() bool { _, err := os.Stat(started); return err == nil })
			b.must("mcp", "disable", "fake")
			if err := os.WriteFile(changed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			<-editor.exited
			if out := editor.said.String(); editor.ProcessState.Success() || !strings.Contains(out, "changed meanwhile") {
				t.Errorf("a conflict: %v, %q", editor.ProcessState, out)
			}
			if now, err := os.ReadFile(file); err != nil || strings.Contains(string(now), "third") || !strings.Contains(string(now), "disabled") {
				t.Errorf("the file has %s, %v", now, err)
			}
		})
	}
}

// editing is yaya with an editor that runs a command on the file.
func (b *box) editing(command string) string {
	b.t.Helper()
	dir, err := os.MkdirTemp(b.dir, "e")
	if err != nil {
		b.t.Fatal(err)
	}
	path, editor := filepath.Join(dir, "yaya.sh"), filepath.Join(dir, "editor.sh")
	for name, text := range map[string]string{
		editor: "#!/bin/sh\nset -- \"$1\"\nFILE=$1\n" + command + " \"$FILE\"\n",
		path:   "#!/bin/sh\nVISUAL=" + editor + " exec " + binary(b.t) + " \"$@\"\n",
	} {
		writeProgram(b.t, name, text)
	}
	return path
}

// USE-2: commands start no server, neither beside a daemon that has it nor alone. The
// doctor looks at servers: beside a daemon at those that run, alone at its own.
func TestCommandsStartNothing(t *testing.T) {
	t.Parallel()
	lists := [][]string{{"session", "list"}, {"plugin", "list"}, {"provider", "list"}, {"config", "list"}, {"mcp", "get", "fake"}, {"mcp", "approve"}, {"provider", "use", "llm-echo"}, {"provider", "test"}}
	t.Run("alone", func(t *testing.T) {
		b := newBox(t)
		command, starts := b.recorded("fake")
		b.must(append([]string{"mcp", "add", "fake", "--"}, command...)...)
		for _, c := range lists {
			b.must(c...)
			if got := starts(); got != 0 {
				t.Fatalf("%v started the server %d times", c, got)
			}
		}
		if out := b.must("doctor"); !strings.Contains(out, "1 server works") || starts() != 1 {
			t.Errorf("doctor started the server %d times and said\n%s", starts(), out)
		}
	})
	t.Run("beside a daemon", func(t *testing.T) {
		b := newBox(t)
		command, starts := b.recorded("fake")
		b.must(append([]string{"mcp", "add", "fake", "--"}, command...)...)
		b.serve()
		b.waitState("fake", "ready")
		for _, c := range append(lists, []string{"mcp", "list"}, []string{"mcp", "tools"}, []string{"run", "hello"}) {
			b.must(c...)
		}
		if out := b.must("doctor"); !strings.Contains(out, "1 server works\n") {
			t.Errorf("doctor said\n%s", out)
		}
		var ds []plugin.Diagnosis
		if err := json.Unmarshal([]byte(b.must("doctor", "--json")), &ds); err != nil || len(ds) < 5 || ds[0].Status == "" {
			t.Errorf("doctor --json: %v, %v", err, ds)
		}
		if got := starts(); got != 1 {
			t.Errorf("the server was started %d times, want once, by the daemon", got)
		}
	})
}

// USE-10: provider add says what it did, and takes the key from standard input.
func TestProviderAdd(t *testing.T) {
	t.Parallel()
	for _, beside := range []bool{true, false} {
		t.Run(map[bool]string{true: "beside a daemon", false: "alone"}[beside], func(t *testing.T) {
			b := newBox(t)
			if beside {
				b.serve()
			}
			key := filepath.Join(b.dir, "key")
			if err := os.WriteFile(key, []byte("sk-secret-1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			yaya := b.bin
			b.bin = filepath.Join(b.dir, "with-key.sh")
			writeProgram(t, b.bin, "#!/bin/sh\nexec "+yaya+` "$@" < `+key+"\n")
			out := b.must("provider", "add", "work", "--model", "m1", "--base-url", "http://127.0.0.1:1/v1", "--api-key-stdin", "--use")
			b.bin = yaya
			if want := "added work: llm-openai, model m1, at http://127.0.0.1:1/v1, with its own key\nwork is the active provider\n"; out != want {
				t.Errorf("got %q, want %q", out, want)
			}
			if got := b.must("config", "get", "--show", "providers.work.api_key"); got != "\"sk-secret-1\"\n" {
				t.Errorf("the key is %s", got)
			}
			if out := b.must("provider", "list"); !strings.Contains(out, "*  work ") || strings.Contains(out, "sk-secret") {
				t.Errorf("yaya provider list says %s; want work as the active one, and no key", out)
			}
			if out, err := b.run("provider", "remove", "work"); err == nil || !strings.Contains(out, "active") {
				t.Errorf("the active one was removed: %v, %s", err, out)
			}
			if out := b.must("provider", "use", "llm-echo"); out != "llm-echo is the active provider\n" {
				t.Errorf(`yaya provider use says %q, want "llm-echo is the active provider\n"`, out)
			}
			if out := b.must("provider", "remove", "work"); out != "removed work\n" {
				t.Errorf(`yaya provider remove says %q, want "removed work\n"`, out)
			}
		})
	}
}

// USE-7: the command for clients is a path that they can start.
func TestSnippetsNameTheBinary(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := b.daemon("serve", "--listen", b.addr, "--no-open")
	args := daemon.JSONText(append([]string{"mcp", "serve"}, b.args()...))
	want := `"command": ` + strconv.Quote(b.bin) + `, "args": ` + args + "}}}\n"
	eventually.True(t, "the snippet names the binary and the folders", func() bool { return strings.Contains(p.said.String(), want) })
	var setup admin.Setup
	b.admin("GET", "/setup", "", 200, &setup)
	for _, s := range setup.Snippets {
		var file struct {
			Servers map[string]struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcpServers"`
		}
		switch {
		case s.Client == "Other clients":
			if line := strings.Join(append([]string{b.bin, "mcp", "serve"}, b.args()...), " "); !strings.Contains(s.Where, line) {
				t.Errorf("other clients run %q, want %s", s.Where, line)
			}
		case s.Client != "Claude Desktop":
		case json.Unmarshal([]byte(s.Text), &file) != nil || file.Servers["yaya"].Command != b.bin || daemon.JSONText(file.Servers["yaya"].Args) != args:
			t.Errorf("Claude Desktop runs %s, want the arguments %s", s.Text, args)
		}
	}
}

// A client that has none of the variables of this yaya is told the folders that they name.
func TestSnippetsNameFoldersOfVariables(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	state := filepath.Join(b.dir, "s t")
	cmd := exec.CommandContext(t.Context(), b.bin, "serve", "--listen", b.addr, "--no-open")
	cmd.Env = append(b.environ(), "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME=")
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	want := `"args": ` + daemon.JSONText([]string{"mcp", "serve", "--data-dir", filepath.Join(state, "yaya")}) + "}}}\n"
	eventually.True(t, "the snippet names the data directory and no other folder", func() bool { return strings.Contains(out.String(), want) })
}

// A daemon of another version that lacks what a command asks for is named.
func TestDaemonOfAnotherVersion(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	data := filepath.Join(b.dir, "d")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(data, "yaya.sock")) //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"0.0.1"}`)) })
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"detail":"there is no such resource"}`))
	})
	mux.HandleFunc("/api/mcp/", func(w http.ResponseWriter, _ *http.Request) { // as newer versions say it
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"detail":"resource not found"}`))
	})
	srv := &http.Server{Handler: mux} //nolint:gosec // test
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	for _, c := range [][]string{{"doctor"}, {"mcp", "disable", "x"}, {"run", "hello"}} {
		out, err := b.run(c...)
		if err == nil || !strings.Contains(out, "the running yaya is version 0.0.1, and this is yaya "+daemon.Version()+": restart it") {
			t.Errorf("yaya %v: %v, %q", c, err, out)
		}
	}
}

// Flags of a server's command are its own, with or without "--".
func TestAddWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no dashes", []string{"mcp", "add", "a", "npx", "-y", "foo", "--env", "x"}, `"args": ["-y","foo","--env","x"]`},
		{"dashes", []string{"mcp", "add", "a", "--", "npx", "-y", "foo"}, `"args": ["-y","foo"]`},
		{"flags before the command", []string{"mcp", "add", "a", "-e", "K=v", "npx", "-y"}, `"K": "****"`},
		{"flags before the name", []string{"mcp", "add", "-e", "K=v", "a", "--", "npx"}, `"K": "****"`},
		{"flags behind a URL", []string{"mcp", "add", "a", "http://127.0.0.1:1/mcp", "-H", "X: ${Y}"}, `"X": "${Y}"`},
		{"a URL as the argument of a command", []string{"mcp", "add", "a", "mcp-remote", "http://127.0.0.1:1/mcp", "-v"}, `"args": ["http://127.0.0.1:1/mcp","-v"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			b.must(c.args...)
			var row struct {
				Config map[string]json.RawMessage `json:"config"`
			}
			if err := json.Unmarshal([]byte(b.must("mcp", "get", "a", "--json")), &row); err != nil {
				t.Fatal(err)
			}
			var got []string
			for k, v := range row.Config {
				got = append(got, strconv.Quote(k)+": "+string(v))
				var table map[string]string
				if json.Unmarshal(v, &table) == nil {
					for k, v := range table {
						got = append(got, strconv.Quote(k)+": "+strconv.Quote(v))
					}
				}
			}
			flat := strings.NewReplacer("\n", "", "  ", "", ", ", ",").Replace(strings.Join(got, "\n"))
			if !strings.Contains(flat, c.want) {
				t.Errorf("got %s, want %s in it", flat, c.want)
			}
		})
	}
}
