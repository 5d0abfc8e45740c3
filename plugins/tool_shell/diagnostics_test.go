//go:build unix

package tool_shell_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func (w *world) diagnostics(paths ...string) tool.Result {
	w.t.Helper()
	res, err := w.call(w.t.Context(), "diagnostics", map[string]any{"paths": paths}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// The server of the TypeScript team's compiler finds what is wrong, and sees what others change.
func TestDiagnosticsOfTypeScript(t *testing.T) {
	wholeSandbox(t)
	bin, err := filepath.Abs("../../internal/peers/npm/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "typescript-language-server")); err != nil {
		if os.Getenv("YAYA_PEERS_REQUIRED") != "" {
			t.Fatal(err)
		}
		t.Skip("run make peers first")
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	w := newWorld(t)
	if got := w.c.tools["diagnostics"].(tool.PreApproved).PreApproved(tool.Call{}); !got {
		t.Error("the tool asks a person, though it changes nothing")
	}
	w.write("tsconfig.json", `{"compilerOptions":{"strict":true,"noEmit":true},"include":["*.ts"]}`)
	w.write("b.ts", "export const b = 1;\n")
	w.write("a.ts", "import { b } from './b';\nexport const a: string = b;\n")
	res := w.diagnostics("a.ts", "b.ts")
	if !res.OK || !strings.Contains(res.Text(), "a.ts:2:14: error: Type 'number' is not assignable to type 'string'. (typescript 2322)") || string(res.Structured) != `{"errors":1,"others":0,"whole":true}` {
		t.Fatalf("got %+v, want the error of a.ts", res)
	}
	w.write("a.ts", "import { b } from './b';\nexport const a: number = b;\n")
	if res := w.diagnostics("a.ts"); !res.OK || res.Text() != "nothing found\n" {
		t.Errorf("got %s, want nothing", res.Text())
	}
	w.write("b.ts", "export const b = 'x';\n") // by another tool
	if res := w.diagnostics("a.ts"); !strings.Contains(res.Text(), "Type 'string' is not assignable to type 'number'") {
		t.Errorf("got %s, want what the change of b.ts breaks", res.Text())
	}
}

// server makes a program that stands for gopls, and returns the folder that it is in.
func server(t *testing.T, script string) (dir string) {
	t.Helper()
	besideTmp(t)
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gopls"), []byte("#!/bin/sh\n"+script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// fakeServer answers as a language server does: the finding names the process, whose path has the mark.
const fakeServer = `mark=%s
say() { printf 'Content-Length: %%d\r\n\r\n%%s' "${#1}" "$1"; }
while IFS= read -r head; do
	n=$(printf %%s "$head" | tr -dc 0-9)
	IFS= read -r _
	body=$(head -c "$n")
	case $body in
	*'"initialize"'*) say '{"jsonrpc":"2.0","id":1,"result":{"capabilities":{}}}' ;;
	*'"textDocument/didOpen"'* | *'"textDocument/didChange"'*) say '{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":"file://'"$PWD"'/a.go","diagnostics":[{"range":{"start":{"line":0,"character":0}},"message":"of process '$$'"}]}}' ;;
	*'"shutdown"'*) exit ;;
	esac
done
`

// A server is kept for the calls of a session, and ends with it. One that ends is started again.
func TestServersLiveWithTheirSession(t *testing.T) {
	wholeSandbox(t)
	dir := server(t, "exec sh $(dirname $0)/server\n")
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(dir, "server"), fmt.Appendf(nil, fakeServer, dir), 0o644); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	w.write("a.go", "package a\n")
	running := func() (n int) {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, at := range all {
			if line, err := os.ReadFile(at); err == nil && bytes.Contains(line, []byte(dir+"/server")) {
				n++
			}
		}
		return n
	}
	first := w.diagnostics("a.go")
	if !first.OK || !strings.HasPrefix(first.Text(), "a.go:1:1: error: of process ") {
		t.Fatalf("got %+v, want the finding", first)
	}
	if second := w.diagnostics("a.go"); second.Text() != first.Text() {
		t.Errorf("got %s and then %s, want one process", first.Text(), second.Text())
	}
	if got := running(); got == 0 {
		t.Fatal("the server does not run between calls")
	}
	if err := w.p.OnEvent(t.Context(), event.Event{Payload: event.SessionArchived{SessionID: "s"}}, w.c); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the server ends with its session", func() bool { return running() == 0 })
	if again := w.diagnostics("a.go"); !again.OK {
		t.Errorf("got %+v, want that another one is started", again)
	}
}

// A server that asks without end and does not read is ended with the plugin, and with it the commands in the background.
func TestServersThatDoNotReadEnd(t *testing.T) {
	wholeSandbox(t)
	dir := server(t, "exec sh $(dirname $0)/server\n")
	w := newWorld(t)
	deaf := strings.Replace(fakeServer, `*'"textDocument/didOpen"'* | *'"textDocument/didChange"'*) `, `*'"textDocument/didSave"'*) while :; do say '{"jsonrpc":"2.0","id":"'$filler'","method":"client/registerCapability"}'; done ;;
	*'"textDocument/didOpen"'* | *'"textDocument/didChange"'*) filler=$(printf %%0120d 1); `, 1)
	if err := os.WriteFile(filepath.Join(dir, "server"), fmt.Appendf(nil, deaf, dir), 0o644); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	w.write("a.go", "package a\n")
	if res := w.diagnostics("a.go"); res.OK && !strings.Contains(res.Text(), "of process") {
		t.Fatalf("got %+v, want the finding, or that the server does not read", res)
	}
	begun := time.Now()
	must(t, w.p.OnUnload(t.Context(), w.c))
	if got := time.Since(begun); got > eventually.Limit {
		t.Errorf("unloading took %v, want that a server that does not read is ended after %v", got, 2*time.Second)
	}
}

// A server runs code of the workspace. It changes nothing there, and reaches nobody.
func TestServersOnlyRead(t *testing.T) {
	wholeSandbox(t)
	server(t, `{ echo x > evil; echo x > "$PWD/a.go"; mkdir "$HOME/evil"; } 2>/dev/null
cat "$HOME/.ssh/id" >&2
echo "no licence, key hunter2hunter2" >&2
exit 3
`)
	w := newWorld(t)
	t.Setenv("HOME", w.home)
	if err := os.MkdirAll(filepath.Join(w.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, ".ssh", "id"), []byte("canary-key"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write("a.go", "package a\n")
	res := w.diagnostics("a.go")
	if res.OK || res.ErrorKind != tool.ErrUnavailable || !strings.Contains(res.Text(), "start gopls: the language server has ended; it wrote:") || !strings.Contains(res.Text(), "no licence") || strings.Contains(res.Text(), "canary-key") {
		t.Errorf("got %+v, want why it did not start", res)
	}
	for _, p := range []string{filepath.Join(w.dir, "evil"), filepath.Join(w.home, "evil")} {
		if _, err := os.Stat(p); err == nil {
			t.Errorf("the server has made %s", p)
		}
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "a.go")); err != nil || string(text) != "package a\n" {
		t.Errorf("a.go has %q, %v; want it as it was", text, err)
	}
}

// A server runs without a question, so it does not run without a sandbox.
func TestNoServerWithoutSandbox(t *testing.T) {
	dir := server(t, `touch "$(dirname "$0")/ran"
`)
	w := newWorld(t)
	w.sandbox = sandbox.Settings{Mode: sandbox.Without}
	w.write("a.go", "package a\n")
	if res := w.diagnostics("a.go"); res.OK || res.ErrorKind != tool.ErrUnavailable || !strings.Contains(res.Text(), "yaya config set sandbox.mode prefer") {
		t.Errorf("got %+v, want a refusal that names the setting", res)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the server has run")
	}
}

// A refusal names its remedy, and a program in the workspace is not taken for a server that its user has chosen.
func TestDiagnosticsRefuses(t *testing.T) {
	wholeSandbox(t)
	w := newWorld(t)
	w.write("a.zig", "")
	w.write("a.txt", "")
	w.write("a.py", "")
	w.write("zls", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(w.dir, "zls"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", w.dir+":"+os.Getenv("PATH"))
	many := strings.Fields(strings.Repeat("a.zig ", 21))
	for want, paths := range map[string][]string{
		"machine: install zls, so":       {"a.zig"},
		"install one of basedpyright":    {"a.py"},
		"yaya knows no language server":  {"a.txt"},
		"name between 1 and 20 files":    many,
		"there is no file none.go":       {"none.go"},
		"../x.go: the path leads out of": {"../x.go"},
	} {
		if res := w.diagnostics(paths...); res.OK || !strings.Contains(res.Text(), want) {
			t.Errorf("diagnostics(%.40q) = %s, want %q", paths, res.Text(), want)
		}
	}
}
