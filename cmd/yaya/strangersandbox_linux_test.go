package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// F4: a process in a sandbox of another yaya is nobody's user here, whichever back end
// made the sandbox, even if the process has left its parents and its environment behind. A
// process in no sandbox stays the user.
func TestSandboxOfAnotherYaya(t *testing.T) {
	t.Parallel()
	needNamespaces(t) // where those work, so does Landlock
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip(err)
	}
	b := newBox(t)
	b.serve()
	_, port, _ := net.SplitHostPort(b.addr)
	ask := func(where string) string {
		mcp := fmt.Sprintf(`%s -s -m 20 --noproxy "*" -o /dev/null -w "%%{http_code}\n" -H "content-type: application/json" -H "accept: application/json, text/event-stream" -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}" `, curl)
		get := fmt.Sprintf(`%s -s -m 20 --noproxy "*" -o /dev/null -w "%%{http_code}\n" `, curl)
		switch where {
		case "mcp":
			return mcp + "http://127.0.0.1:" + port + "/mcp"
		case "api":
			return get + "http://127.0.0.1:" + port + "/api/config"
		case "socket":
			return get + "--unix-socket " + filepath.Join(b.dir, "d", "yaya.sock") + " http://yaya/api/config"
		}
		return mcp + "--unix-socket " + filepath.Join(b.dir, "d", "yaya.sock") + " http://yaya/mcp"
	}
	all := []string{"mcp", "api", "socket", "mcp by the socket"}
	for _, where := range all {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", ask(where)).Output(); err != nil || strings.TrimSpace(string(out)) != "200" {
			t.Errorf("%s, outside a sandbox: got %q, %v; want 200", where, out, err)
		}
	}
	for _, backend := range []string{"landlock", "namespaces"} {
		other := newBox(t)
		other.must("config", "set", "sandbox.backend", backend)
		for _, where := range all {
			for name, script := range map[string]string{
				"a child":   ask(where),
				"an orphan": `(env -i setsid sh -c '` + ask(where) + `; :' &) | cat`, // which waits for it
			} {
				out, errOut, code := other.in(other.dir, "sandbox", "run", "--profile", "guarded", "--", "env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", script)
				if got := strings.Fields(out); len(got) == 0 || got[0] != "401" && got[0] != "403" && got[0] != "000" {
					t.Errorf("%s, %s in %s: got %q, %q, %d; want a refusal", where, name, backend, out, errOut, code)
				}
			}
		}
	}
}
